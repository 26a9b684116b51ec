"""The operations, against NumPy and plain integers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapticos.kernel.dsp.biquad import Biquad
from synapticos.kernel.dsp.calibrate import dsp_init
from synapticos.kernel.dsp.contract import (
    Dsp,
    dsp_argmax,
    dsp_biquad_f32,
    dsp_fft_f32,
    dsp_fft_q15,
    dsp_mat_mult_q15,
    dsp_matmul_q15,
    dsp_normalize_int8,
    dsp_rfft_f32,
    dsp_softmax_f32,
)
from synapticos.kernel.status import Status
from synapticos.lang import f32, i8, i16, pack, u8, u32

CALLS = (dsp_init, dsp_fft_f32, dsp_rfft_f32, dsp_fft_q15, dsp_mat_mult_q15, dsp_matmul_q15, dsp_softmax_f32, dsp_argmax, dsp_biquad_f32, dsp_normalize_int8)


@pytest.fixture
def e(engines):
    return engines(*CALLS)


@pytest.fixture
def dsp(e):
    made = e.new(Dsp)
    assert e(dsp_init, made) == Status.OK
    assert made.refused == 0 and bytes(made.row) == bytes(12)
    return made


def fft(e, dsp, values, call=dsp_fft_f32):
    values = np.asarray(values, np.complex64)
    x, y = e.array(f32, values.view(np.float32)), e.array(f32, 2 * len(values))
    assert e(call, dsp, x, y, len(values)) == Status.OK
    assert bytes(x) == values.tobytes()
    return y.numpy().copy().view(np.complex64)


def test_an_impulse_is_in_all_bins_and_a_constant_in_the_first(e, dsp):
    np.testing.assert_allclose(fft(e, dsp, [1] + [0] * 3), 1, atol=1e-3)
    np.testing.assert_allclose(fft(e, dsp, [1] + [0] * 15), 1, atol=1e-3)
    np.testing.assert_allclose(fft(e, dsp, [1] * 16), [16] + [0] * 15, atol=1e-3)
    data = e.array(f32, [1.0] + [0.0] * 31)
    assert e(dsp_fft_f32, dsp, data, data, 16) == Status.OK
    assert abs(data[2] - 1) < 1e-3


@pytest.mark.parametrize("log", range(1, 11))
def test_transforms_are_near_numpy(e, dsp, log):
    n = 1 << log
    rng = np.random.default_rng(log)
    values = (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(np.complex64)
    exact = np.fft.fft(values.astype(complex))
    assert abs(fft(e, dsp, values) - exact).max() <= 4e-7 * abs(exact).max() * log
    real = e.array(f32, n + 2)
    x = e.array(f32, values.real.copy())
    assert e(dsp_rfft_f32, dsp, x, real, n) == Status.OK
    exact = np.fft.rfft(values.real.astype(float))
    assert abs(real.numpy().view(np.complex64) - exact).max() <= 4e-7 * abs(exact).max() * log


@pytest.mark.parametrize("log", range(1, 11))
@pytest.mark.parametrize("loud", [1000, 23000])
def test_the_q15_transform_is_a_few_steps_off(e, dsp, log, loud):
    n = 1 << log
    values = np.random.default_rng(log).integers(-loud, loud + 1, 2 * n).astype(np.int16)
    y = e.array(i16, 2 * n)
    assert e(dsp_fft_q15, dsp, e.array(i16, values), y, n) == Status.OK
    exact = np.fft.fft(values[0::2] + 1j * values[1::2]) / n
    got = y.numpy().reshape(-1, 2)
    assert abs(got[:, 0] - exact.real).max() <= 2.5 and abs(got[:, 1] - exact.imag).max() <= 2.5


def test_the_q15_transform_at_full_scale(e, dsp):
    for n in (2, 64, 1024):
        for values in (np.full(2 * n, 32767), np.full(2 * n, -32768), np.tile([32767, 0, -32768, 0], n // 2)):
            y = e.array(i16, 2 * n)
            assert e(dsp_fft_q15, dsp, e.array(i16, values.astype(np.int16)), y, n) == Status.OK
            exact = np.fft.fft(values[0::2] + 1j * values[1::2]) / n
            got = y.numpy().reshape(-1, 2)
            assert abs(got[:, 0] - exact.real).max() <= 2.5 and abs(got[:, 1] - exact.imag).max() <= 2.5


def test_what_a_transform_refuses(e, dsp):
    x, y = e.array(f32, 2100), e.array(f32, 2100)
    s = e.array(i16, 2100)
    for call in (dsp_fft_f32, dsp_rfft_f32):
        assert e(call, dsp, None, y, 16) == e(call, dsp, x, None, 16) == Status.INVAL
        for n in (0, 1, 12, 2048):
            assert e(call, dsp, x, y, n) == Status.INVAL
        for bad in (math.nan, math.inf, -math.inf, 2e35):
            assert e(call, dsp, e.array(f32, [bad] + [0.0] * 31), y, 16) == Status.INVAL
    assert e(dsp_fft_f32, dsp, e.array(f32, [1e35] * 2048), y, 1024) == Status.OK
    assert e(dsp_fft_q15, dsp, None, s, 16) == e(dsp_fft_q15, dsp, s, None, 16) == e(dsp_fft_q15, dsp, s, s, 12) == Status.INVAL
    assert bytes(s) == bytes(4200)


def product(e, dsp, a, b):
    a = np.asarray(a, np.int16)
    out = e.array(i16, len(a))
    assert e(dsp_mat_mult_q15, dsp, e.array(i16, a.ravel()), e.array(i16, np.asarray(b, np.int16)), out, *a.shape) == Status.OK
    return out.numpy().tolist()


def test_published_products(e, dsp):
    assert product(e, dsp, [[0, 0], [0, 0]], [0, 0]) == [0, 0]
    assert np.allclose(product(e, dsp, np.eye(3) * 32767, [1000, -2000, 3000]), [1000, -2000, 3000], atol=1)
    assert product(e, dsp, [[16384]], [16384]) == product(e, dsp, [[8192, 8192]], [16384, 16384]) == [8192]
    assert product(e, dsp, [[16384, 8192], [-16384, 4096]], [16384, -16384]) == [4096, -10240]
    assert product(e, dsp, [[-32768, -32768]], [-32768, -32768]) == [32767]
    assert product(e, dsp, [[16384] * 3], [16384] * 3) == [24576]
    assert product(e, dsp, [[1]], [-1]) == [-1]  # down, not towards 0


edges = st.sampled_from([-32768, -32767, -1, 0, 1, 16384, 32767]) | st.integers(-32768, 32767)


@given(rows=st.integers(1, 5), inner=st.integers(1, 6), cols=st.integers(1, 5), data=st.data())
def test_products_equal_whole_numbers(e, dsp, rows, inner, cols, data):
    a = np.array(data.draw(st.lists(edges, min_size=rows * inner, max_size=rows * inner)), object).reshape(rows, inner)
    b = np.array(data.draw(st.lists(edges, min_size=inner * cols, max_size=inner * cols)), object).reshape(inner, cols)
    want = np.clip((a @ b) // 32768, -32768, 32767).astype(int)
    out = e.array(i16, rows * cols)
    flat = [e.array(i16, m.astype(np.int16).ravel()) for m in (a, b)]
    assert e(dsp_matmul_q15, dsp, *flat, out, rows, inner, cols) == Status.OK
    assert out.numpy().reshape(rows, cols).tolist() == want.tolist()
    assert product(e, dsp, a.astype(int), b[:, 0].astype(int)) == want[:, 0].tolist()


def test_sums_past_32_bits_do_not_wrap(e, dsp):
    assert product(e, dsp, [[-32768] * 4096], [-32768] * 4096) == [32767]
    assert product(e, dsp, [[-32768] * 2 + [32767] * 2], [-32768] * 2 + [-32767] * 2) == [(2 * 2**30 - 2 * 32767**2) >> 15]


def test_what_a_product_refuses(e, dsp):
    m = e.array(i16, 4)
    for bad in ((None, m, m, 1, 1), (m, None, m, 1, 1), (m, m, None, 1, 1), (m, m, m, 0, 1), (m, m, m, 1, 0), (m, m, m, 65537, 1), (m, m, m, 65536, 65536)):
        assert e(dsp_mat_mult_q15, dsp, *bad) == Status.INVAL
        assert e(dsp_matmul_q15, dsp, *bad[:4], 1, bad[4]) == Status.INVAL
    assert e(dsp_matmul_q15, dsp, m, m, m, 1, 0, 1) == Status.INVAL


def softmax(e, dsp, values):
    x = e.array(f32, np.asarray(values, np.float32))
    assert e(dsp_softmax_f32, dsp, x, x, len(values)) == Status.OK
    return x.numpy().copy()


def test_softmax(e, dsp):
    for values in ([1, 2, 3], [1, 2, 3, 4]):
        got = softmax(e, dsp, values)
        assert abs(got.sum() - 1) < 1e-3 and (np.diff(got) > 0).all()
    assert abs(got[0] - 0.0321) < 1e-2 and abs(got[3] - 0.6439) < 1e-2
    np.testing.assert_allclose(softmax(e, dsp, [0] * 4), 0.25, atol=1e-6)
    x = e.array(f32, 3)
    assert e(dsp_softmax_f32, dsp, None, x, 3) == e(dsp_softmax_f32, dsp, x, None, 3) == e(dsp_softmax_f32, dsp, x, x, 0) == Status.INVAL
    assert e(dsp_softmax_f32, dsp, e.array(f32, [math.nan] * 2), x, 2) == Status.INVAL


@pytest.mark.parametrize(
    "values, want",
    [([-10, 5, 127, -128, 0], 2), ([-100, -50, -10, -80], 2), ([-10, -5, 0, 127, 50, 10, -128], 3), ([100, 50, 0, -50, -100], 0),
     ([-100, -50, 0, 50, 100], 4), ([-20, -15, -10, -5, 0, 5, 10, 80, -30, -40], 7), ([-50, -30, 15, -80, -10, 127, -128, 42, 90, -5], 5),
     ([-128, -128], 0), ([3, 7, 7], 1)],
)  # fmt: skip
def test_argmax(e, dsp, values, want):
    index = e.array(u32, [99])
    assert e(dsp_argmax, dsp, e.array(i8, values), len(values), index) == Status.OK
    assert index[0] == want == int(np.argmax(values))
    data = e.array(i8, values)
    assert e(dsp_argmax, dsp, None, 2, index) == e(dsp_argmax, dsp, data, 2, None) == e(dsp_argmax, dsp, data, 0, index) == Status.INVAL


@given(scale=st.floats(width=32, allow_nan=False, allow_infinity=False), zero=st.integers(-(2**31), 2**31 - 1) | st.integers(-300, 300))
def test_normalize_int8_truncates_and_saturates(e, dsp, scale, zero):
    x, y = e.array(u8, bytes(range(256))), e.array(i8, 256)
    assert e(dsp_normalize_int8, dsp, x, y, 256, scale, zero) == Status.OK
    with np.errstate(over="ignore"):
        products = np.arange(256, dtype=np.float32) * np.float32(scale)
    want = [max(-128, min(127, max(-(2**31), min(2**31 - 1, int(p) if np.isfinite(p) else int(np.sign(p)) << 40)) + zero)) for p in products]
    assert y.numpy().tolist() == want


def test_what_normalize_int8_refuses(e, dsp):
    x, y = e.array(u8, 4), e.array(i8, 4)
    for bad in ((None, y, 4, 1.0, 0), (x, None, 4, 1.0, 0), (x, y, 0, 1.0, 0), (x, y, 4, math.nan, 0), (x, y, 4, math.inf, 0)):
        assert e(dsp_normalize_int8, dsp, *bad) == Status.INVAL


def sections(e, *rows):
    return e.array(Biquad, b"".join(pack(Biquad, **dict(zip(("b0", "b1", "b2", "a1", "a2"), r))) for r in rows))


LOWPASS = (0.0675, 0.1349, 0.0675, -1.1430, 0.4128)  # second order Butterworth at a tenth of the rate
RESONATOR = (0.1, 0.0, -0.1, -1.6, 0.81)


def recursion(rows, x):
    """The difference equation, direct form I, in double precision."""
    y = np.asarray(x, float)
    for b0, b1, b2, a1, a2 in rows:
        x, y = y, np.zeros(len(y))
        for i in range(len(x)):
            past = [x[i - k] if i >= k else 0 for k in (0, 1, 2)] + [y[i - k] if i >= k else 0 for k in (1, 2)]
            y[i] = b0 * past[0] + b1 * past[1] + b2 * past[2] - a1 * past[3] - a2 * past[4]
    return y


def biquad(e, dsp, s, count, x):
    y = e.array(f32, np.asarray(x, np.float32))
    assert e(dsp_biquad_f32, dsp, s, count, y, y, len(x)) == Status.OK
    return y.numpy().copy()


def test_biquads_follow_their_difference_equation_and_go_on(e, dsp):
    x = np.random.default_rng(4).normal(size=60)
    s = sections(e, LOWPASS, RESONATOR)
    got = np.concatenate([biquad(e, dsp, s, 2, x[:7]), biquad(e, dsp, s, 2, x[7:])])
    np.testing.assert_allclose(got, recursion((LOWPASS, RESONATOR), x), atol=2e-6)
    whole = biquad(e, dsp, sections(e, LOWPASS, RESONATOR), 2, x)
    assert got.tobytes() == whole.tobytes()


def test_a_filter_that_runs_away_ends_at_a_bound(e, dsp):
    s = sections(e, (1e6, 1e6, -1e6, -1e6, 1e6))
    for _ in range(3):
        got = biquad(e, dsp, s, 1, [1e38, -1e38, math.inf, math.nan, 5.0] * 4)
        assert np.isfinite(got).all() and abs(got).max() <= 1.0001e30
    assert abs(biquad(e, dsp, sections(e, LOWPASS), 1, [math.nan] * 8)).max() == 0


def test_what_a_biquad_refuses(e, dsp):
    s, x = sections(e, LOWPASS), e.array(f32, 4)
    for bad in ((None, 1, x, x, 4), (s, 0, x, x, 4), (s, 1, None, x, 4), (s, 1, x, None, 4)):
        assert e(dsp_biquad_f32, dsp, *bad) == Status.INVAL
    for row in ((math.nan, 0, 0, 0, 0), (0, 0, 0, math.inf, 0), (0, 2e6, 0, 0, 0)):
        assert e(dsp_biquad_f32, dsp, sections(e, row), 1, x, x, 4) == Status.INVAL
    assert e(dsp_biquad_f32, dsp, s, 1, x, x, 0) == Status.OK
    for state in (dict(s1=math.nan), dict(s2=2e37), dict(s1=-3e37)):
        assert e(dsp_biquad_f32, dsp, e.array(Biquad, pack(Biquad, **state)), 1, x, x, 4) == Status.INVAL
    edge = e.array(Biquad, pack(Biquad, b0=1e6, b1=1e6, b2=1e6, a1=-1e6, a2=-1e6, s1=2e37, s2=1e37))
    for _ in range(3):
        assert np.isfinite(biquad(e, dsp, edge, 1, [1e30])).all()  # what it leaves behind is accepted again
