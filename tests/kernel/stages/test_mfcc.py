import math

import numpy as np
import pytest
import stage_calls
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import BEFORE, ROOTS, tensor

from synapticos.kernel.stages.fft import fft_f32
from synapticos.kernel.stages.mfcc import MfccConfig, mfcc, mfcc_capacity, mfcc_check
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.lang import f32, pack, u8, unpack


@pytest.fixture
def e(engines):
    return engines(mfcc, mfcc_capacity, mfcc_check, fft_f32, *ROOTS)


def config(rate=16000, length=256, filters=20, coefficients=10):
    return dict(sample_rate_hz=rate, frame_len=length, num_mel=filters, num_coeffs=coefficients)


def run(e, samples, room=4096, scratch=4096, size=None, **fields):
    samples = np.asarray(samples, np.float32)
    y, y_data = e.new(Tensor, size=room, **BEFORE), e.array(u8, b"\xa5" * max(room, 4))
    before = bytes(y)
    x, x_data = tensor(e, samples, size=size), e.array(u8, samples.tobytes())
    given_config = e.new(MfccConfig, **config(**fields))
    status = Status(e(mfcc, x, x_data, y, y_data, given_config, e.array(u8, b"\xa5" * max(scratch, 4)), scratch))
    if status != Status.OK:
        assert bytes(y) == before
        return status
    got = unpack(Tensor, bytes(y))
    assert got["ndim"] == 2 and got["size"] == 4 * got["shape"][0] * got["shape"][1]
    return np.frombuffer(bytes(y_data)[: got["size"]], np.float32).reshape(got["shape"][:2])


def exact(samples, rate, length, filters, coefficients):
    """The processor's definition in double precision."""
    edges = 700 * (10 ** (np.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), filters + 2) / 2595) - 1) * length / rate
    k = np.arange(length // 2 + 1)
    m = np.arange(filters)
    out = []
    for frame in samples[: len(samples) // length * length].reshape(-1, length):
        power = np.abs(np.fft.fft(frame * (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(length) / (length - 1))))[: len(k)]) ** 2
        energy = []
        for low, middle, high in zip(edges, edges[1:], edges[2:]):
            weight = np.where(k <= middle, (k - low) / (middle - low), (high - k) / (high - middle))
            energy.append((power * weight)[(k > low) & (k < high)].sum())
        logs = np.log(np.array(energy) + 1e-6)
        out.append([(logs * np.cos(np.pi * j * (m + 0.5) / filters)).sum() for j in range(coefficients)])
    return np.array(out)


def test_two_tones_give_the_published_coefficients(e):
    t = np.arange(520)
    got = run(e, 0.5 * np.sin(2 * np.pi * 440 * t / 16000) + 0.25 * np.sin(2 * np.pi * 3000 * t / 16000))
    want = [-73.898, 20.061, -5.317, 21.180, -37.286, -42.094, -2.913, -30.416, -16.736, 19.734]
    assert got.shape == (2, 10)  # eight samples are left over
    np.testing.assert_allclose(got[0], want, atol=0.01)
    np.testing.assert_allclose(got[1][:3], [-73.082, 22.082, -3.501], atol=0.01)


def test_a_tone_is_louder_than_silence(e):
    t = np.arange(64)
    got = run(e, np.concatenate([np.sin(2 * np.pi * 1000 * t / 8000), np.zeros(64)]), rate=8000, length=64, filters=12, coefficients=6)
    assert got.shape == (2, 6) and np.isfinite(got).all() and got[0, 0] > got[1, 0]
    np.testing.assert_allclose(got[1], [-165.786, 0, 0, 0, 0, 0], atol=0.001)


@pytest.mark.parametrize(
    "rate, length, filters, coefficients",
    [(16000, 512, 32, 32), (16000, 256, 20, 1), (8000, 64, 12, 12), (48000, 128, 1, 1), (11025, 8, 3, 2), (1, 16, 4, 4)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_mfcc_is_near_its_definition(e, rate, length, filters, coefficients, seed):
    samples = np.random.default_rng(seed).normal(size=2 * length).astype(np.float32)
    got = run(e, samples, rate=rate, length=length, filters=filters, coefficients=coefficients)
    np.testing.assert_allclose(got, exact(samples.astype(float), rate, length, filters, coefficients), atol=0.01)


@pytest.mark.parametrize("samples", [np.full(64, np.inf), np.full(64, np.nan), np.tile([1e38, -1e38], 32), np.tile([np.inf, -np.inf], 32)])
def test_any_samples_give_finite_coefficients(e, samples):
    assert np.isfinite(run(e, samples, length=64)).all()


def test_what_it_refuses(e):
    samples = np.zeros(300, np.float32)
    for bad in (dict(rate=0), dict(length=4), dict(length=100), dict(length=1024), dict(length=0), dict(filters=0), dict(filters=33),
                dict(coefficients=0), dict(filters=5, coefficients=6), dict(length=512)):  # fmt: skip
        assert isinstance(run(e, samples, **bad), Status) and run(e, samples, **bad) == Status.INVAL
    assert run(e, samples, room=39) == Status.NOMEM and run(e, samples, scratch=2047) == Status.NOMEM
    assert run(e, samples, size=1196) == Status.INVAL
    assert run(e, samples, room=40, scratch=2048).shape == (1, 10)


def test_its_row_in_the_table_gives_the_same(e):
    samples = np.sin(np.arange(64, dtype=np.float32))
    row = stage_calls.run(e, "mfcc", samples, pack(MfccConfig, **config(length=32)))
    np.testing.assert_array_equal(row.array, run(e, samples, length=32))
    assert stage_calls.run(e, "mfcc", samples, None).status == Status.INVAL
    assert stage_calls.run(e, "mfcc", samples, pack(MfccConfig, **config(length=32)), inputs=2).status == Status.INVAL
    assert stage_calls.run(e, "mfcc", samples, pack(MfccConfig, **config(length=32)), room=79).status == Status.NOMEM


def test_room_for_the_result(e):
    x = tensor(e, np.zeros(600, np.float32))
    good = pack(MfccConfig, **config())
    assert e(mfcc_capacity, x, e.array(u8, good), len(good)) == 2 * 10 * 4
    empty = pack(MfccConfig, **config(length=0))
    assert e(mfcc_capacity, x, e.array(u8, empty), len(empty)) == 0
    assert e(mfcc_capacity, x, None, 0) == 0
    assert e(mfcc_check, e.array(u8, good), len(good)) == Status.OK
    assert e(mfcc_check, e.array(u8, empty), len(empty)) == Status.INVAL and e(mfcc_check, None, 0) == Status.INVAL


@given(log=st.integers(1, 6), seed=st.integers(0, 100))
def test_fft_is_near_numpy(e, log, seed):
    n = 2**log
    values = np.random.default_rng(seed).normal(size=2 * n).astype(np.float32)
    data = e.array(f32, values)
    e(fft_f32, data, n)
    np.testing.assert_allclose(np.frombuffer(bytes(data), np.complex64), np.fft.fft(values.view(np.complex64)), atol=1e-5 * n)


def test_the_longest_fft_finds_its_tone(e):
    n = 1024
    data = e.array(f32, np.exp(2j * np.pi * 37 * np.arange(n) / n).astype(np.complex64).view(np.float32))
    e(fft_f32, data, n)
    want = np.zeros(n)
    want[37] = n
    np.testing.assert_allclose(np.frombuffer(bytes(data), np.complex64), want, atol=1e-3)
