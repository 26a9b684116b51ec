"""Audio features, against librosa's own output and against a formulation in double precision."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signals import clip
from stage_calls import ROOTS, config_bytes, run

from synapticos.kernel.stages import features as module
from synapticos.kernel.stages.features import FeatureConfig, feature_digest, is_features
from synapticos.kernel.stages.fft import rfft_f32
from synapticos.kernel.stages.stream import stream_push, stream_reset, stream_size
from synapticos.kernel.stages.tables import KINDS, scratch_size, state_size
from synapticos.kernel.status import Status
from synapticos.lang import f32, pack, u8

STORED = json.loads(Path(__file__).with_name("librosa_features.json").read_text())["cases"]
NAMES = ["usual", "window shorter than the transform", "htk and reflected", "log mel of magnitudes"]


@pytest.fixture
def e(engines):
    return engines(feature_digest, is_features, rfft_f32, stream_push, stream_reset, stream_size, *ROOTS)


def to(**fields):
    return config_bytes("features", **fields)


def mel_of(hz, scale):
    if scale == module.HTK:
        return 2595 * math.log10(1 + hz / 700)
    return hz * 3 / 200 if hz < 1000 else 15 + math.log(hz / 1000) * 27 / math.log(6.4)


def hz_of(mel, scale):
    if scale == module.HTK:
        return 700 * (10 ** (mel / 2595) - 1)
    return mel * 200 / 3 if mel < 15 else 1000 * math.exp((mel - 15) * math.log(6.4) / 27)


def exact(samples, rate, window, hop, fft, filters, coefficients, window_shape, placing, mel, unit_area, power, log, floor_rule, dct,
          keep_first, floor, range_db, low_hz, high_hz):  # fmt: skip
    """The definition, whole matrices at a time, in double precision."""
    samples = np.asarray(samples, float)
    if placing >= module.PADDED:
        samples = np.pad(samples, fft // 2, mode="reflect" if placing == module.REFLECTED else "constant")
    i = np.arange(window)
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * i / window) if window_shape == module.HANN else 0.54 - 0.46 * np.cos(2 * np.pi * i / (window - 1))
    span = window if placing == module.TIGHT else fft
    before = (span - window) // 2
    starts = np.arange(0, len(samples) - span + 1, hop)
    spectra = np.abs(np.fft.rfft(np.stack([samples[s + before : s + before + window] * shape for s in starts]), fft)) ** power
    hz = np.array([hz_of(m, mel) for m in np.linspace(mel_of(low_hz, mel), mel_of(high_hz, mel), filters + 2)])
    bins = np.arange(fft // 2 + 1) * rate / fft
    up, down = (bins - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None], (hz[2:, None] - bins) / (hz[2:] - hz[1:-1])[:, None]
    triangles = np.maximum(0, np.minimum(up, down))
    if unit_area:
        triangles *= (2 / (hz[2:] - hz[:-2]))[:, None]
    energies = spectra @ triangles.T
    energies = energies + floor if floor_rule == module.ADDED else np.maximum(energies, floor)
    logs = 10 * np.log10(energies) if log == module.DECIBEL else np.log(energies)
    if range_db:
        logs = np.maximum(logs, logs.max() - range_db)
    if not coefficients:
        return logs
    j = np.arange(coefficients)[:, None] + 1 - keep_first
    basis = np.cos(np.pi * j * (np.arange(filters) + 0.5) / filters)
    if dct == module.ORTHONORMAL:
        basis *= np.where(j == 0, math.sqrt(1 / filters), math.sqrt(2 / filters))
    return logs @ basis.T


@pytest.mark.parametrize("case", STORED, ids=NAMES)
def test_librosa_gives_the_same(e, case):
    """Its output is stored, to three places; silence of -100 dB included."""
    got = run(e, "features", clip(), to(**module.librosa(**case["arguments"]))).array
    assert got.shape == np.shape(case["features"])
    np.testing.assert_allclose(got, case["features"], rtol=0, atol=0.001)


@pytest.mark.parametrize("case", STORED, ids=NAMES)
def test_what_is_stored_is_what_librosa_gives(case):
    pytest.importorskip("librosa", reason="librosa is not installed (pip install librosa)")
    from make_librosa import features

    np.testing.assert_allclose(features(**case["arguments"]), case["features"], rtol=0, atol=0.002)


@pytest.mark.parametrize("case", STORED, ids=NAMES)
def test_the_formulation_here_is_librosas(case):
    got = exact(clip() / 32768, **module.librosa(**case["arguments"]))
    np.testing.assert_allclose(got, case["features"], rtol=0, atol=0.001)


def test_the_published_front_end_is_one_description(e):
    samples = (clip() / 32768).astype(np.float32)
    for rate, length, filters, coefficients in ((16000, 256, 20, 10), (8000, 512, 32, 32), (16000, 8, 1, 1)):
        fields = dict(sample_rate_hz=rate, frame_len=length, num_mel=filters, num_coeffs=coefficients)
        published = run(e, "mfcc", samples, config_bytes("mfcc", **fields))
        assert run(e, "features", samples, to(**module.published(rate, length, filters, coefficients))).bytes == published.bytes


@st.composite
def descriptions(draw):
    fft = 1 << draw(st.integers(3, 10))
    filters = draw(st.integers(1, 40))
    keep = draw(st.integers(0, 1))
    log = draw(st.integers(0, 1))
    rate = draw(st.sampled_from([8000, 16000, 22050, 44100]))
    low = draw(st.sampled_from([0.0, 20.0, 300.0]))
    return dict(
        rate=rate, window=draw(st.integers(max(2, fft // 2), fft)), hop=draw(st.integers(1, 2 * fft)) + fft // 3, fft=fft, filters=filters,
        coefficients=draw(st.integers(0, filters - 1 + keep)), window_shape=draw(st.integers(0, 1)), placing=draw(st.integers(0, 3)),
        mel=draw(st.integers(0, 1)), unit_area=draw(st.integers(0, 1)), power=draw(st.integers(1, 2)), log=log,
        floor_rule=draw(st.integers(0, 1)), dct=draw(st.integers(0, 1)), keep_first=keep, floor=draw(st.sampled_from([1e-6, 1e-3, 1.0])),
        range_db=draw(st.sampled_from([0.0, 20.0])) if log else 0.0, low_hz=low, high_hz=draw(st.sampled_from([rate / 2, rate / 2 - 500])),
    )  # fmt: skip


@given(fields=descriptions(), seed=st.integers(0, 2**32 - 1), frames=st.integers(1, 3), short=st.booleans())
def test_any_description_equals_its_definition(e, fields, seed, frames, short):
    n = fields["fft"] + (frames - 1) * fields["hop"]
    samples = np.random.default_rng(seed).integers(-20000, 20000, n).astype(np.int16)
    want = exact(samples / 32768, **fields)
    got = run(e, "features", samples if short else (samples / 32768).astype(np.float32), to(**fields)).array
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=0.02 * math.sqrt(fields["filters"]))


@given(fields=descriptions(), cuts=st.lists(st.integers(0, 400), max_size=8), short=st.booleans())
def test_a_stream_gives_the_bytes_of_a_clip(e, fields, cuts, short):
    fields |= dict(placing=fields["placing"] % 2, range_db=0.0)
    samples = clip(3000)[-(fields["fft"] + 2 * fields["hop"] + 5) :]
    samples = samples if short else (samples / 32768).astype(np.float32)
    whole = run(e, "features", samples, to(**fields)).array
    config = e.new(FeatureConfig, **fields)
    size = e(stream_size, config)
    memory = e.array(u8, size)
    assert e(stream_reset, config, memory, size) == Status.OK
    rows = []
    edges = sorted({0, len(samples), *(min(c, len(samples)) for c in np.cumsum(cuts))})
    for a, b in zip(edges, edges[1:], strict=False):
        part = samples[a:b]
        out = e.array(f32, 128 * 8)
        status, frames = e(stream_push, config, memory, size, e.array(u8, part.tobytes()), short, len(part), out, 8)
        assert status == Status.OK
        rows += out.numpy()[: frames * whole.shape[1]].tolist()
    assert np.array(rows, np.float32).tobytes() == whole.tobytes()


def test_a_stream_that_gives_more_frames_than_fit_takes_nothing(e):
    fields = module.published(8000, 8, 3, 2)
    config = e.new(FeatureConfig, **fields)
    size = e(stream_size, config)
    memory, x = e.array(u8, size), e.array(u8, np.ones(24, np.float32).tobytes())
    assert e(stream_reset, config, memory, size - 1) == Status.NOMEM
    assert e(stream_reset, config, memory, size) == Status.OK
    before = bytes(memory)
    assert e(stream_push, config, memory, size, x, False, 24, e.array(f32, 6), 2) == (Status.NOMEM, 0)
    assert bytes(memory) == before
    assert e(stream_push, config, memory, size, x, False, 24, e.array(f32, 6), 3) == (Status.OK, 3)
    assert e(stream_push, config, memory, size, x, False, 0, e.array(f32, 6), 0) == (Status.OK, 0)
    for bad in (dict(placing=2), dict(range_db=80.0, log=1), dict(fft=12)):
        assert e(stream_reset, e.new(FeatureConfig, **{**fields, **bad}), memory, size) == Status.INVAL


@given(chunks=st.lists(st.integers(0, 40), max_size=6), rows=st.integers(1, 4), hop=st.sampled_from([3, 8, 11]), short=st.booleans())
def test_the_window_of_a_stream_is_the_last_frames_of_silence_and_all_samples(e, chunks, rows, hop, short):
    fields = module.published(8000, 8, 3, 2) | dict(hop=hop)
    stream = config_bytes("stream_features", features=pack(FeatureConfig, **fields), rows=rows)
    samples = clip(400)[100 : 100 + sum(chunks)]
    samples = samples if short else (samples / 32768).astype(np.float32)
    silence = run(e, "features", np.zeros(8, np.float32), to(**fields)).array
    size = e(state_size, KINDS["stream_features"], e.array(u8, stream), len(stream))
    state = e.array(u8, size)
    end = 0
    for n in chunks:
        window = run(e, "stream_features", samples[end : end + n], stream, state=state).array
        end += n
        frames = [silence] * rows
        if end >= 8:
            frames += list(run(e, "features", samples[:end], to(**fields)).array[:, None])
        assert window.tobytes() == np.concatenate(frames[-rows:]).tobytes()


def test_a_stream_without_its_memory_is_refused(e):
    stream = config_bytes("stream_features", features=pack(FeatureConfig, **module.published(8000, 8, 3, 2)), rows=2)
    size = e(state_size, KINDS["stream_features"], e.array(u8, stream), len(stream))
    x = np.zeros(8, np.float32)
    assert run(e, "stream_features", x, stream, state=e.array(u8, size)).array.shape == (2, 2)
    assert run(e, "stream_features", x, stream, state=e.array(u8, size - 1)).status == Status.NOMEM
    assert run(e, "stream_features", x, stream).status == Status.NOMEM
    assert run(e, "stream_features", x, stream, room=15, state=e.array(u8, size)).status == Status.NOMEM
    assert run(e, "stream_features", x.view(np.int8), stream, state=e.array(u8, size)).status == Status.INVAL
    assert run(e, "stream_features", x, stream[:-1], state=e.array(u8, size)).status == Status.INVAL
    assert e(state_size, KINDS["features"], e.array(u8, stream), len(stream)) == 0


def test_silence_and_what_is_no_number_are_finite(e):
    for description in (module.published(), module.librosa(center=False, top_db=None)):
        for fill in (0, np.nan, np.inf, -np.inf, 3e38, 1e-40):
            assert np.isfinite(run(e, "features", np.full(1024, fill, np.float32), to(**description)).array).all()
        assert run(e, "features", np.zeros(1024, np.int16), to(**description)).array.tolist() == run(e, "features", np.zeros(1024, np.float32), to(**description)).array.tolist()
    logs = run(e, "features", np.zeros(600, np.float32), to(**module.librosa(n_mfcc=0))).array
    np.testing.assert_allclose(logs, -100, atol=1e-4)


BAD = dict(
    rate=0, window=[1, 513], hop=0, fft=[4, 500, 2048], filters=[0, 129], coefficients=41, window_shape=2, placing=4, mel=2, unit_area=2, power=[0, 3],
    log=2, floor_rule=2, dct=2, keep_first=2, floor=[0.0, -1.0, float("nan"), float("inf")], range_db=[-1.0, float("nan")], low_hz=[-1.0, 8000.0, float("nan")],
    high_hz=[0.0, 8001.0, float("nan")],
)  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_field_out_of_its_range_is_refused(e, name):
    good = module.librosa()
    assert e(is_features, e.new(FeatureConfig, **good))
    for value in BAD[name] if isinstance(BAD[name], list) else [BAD[name]]:
        assert not e(is_features, e.new(FeatureConfig, **{**good, name: value}))
        assert run(e, "features", clip(), to(**{**good, name: value}), room=4096).status == Status.INVAL


def test_other_refusals(e):
    assert not e(is_features, e.new(FeatureConfig, **{**module.librosa(), "log": 0}))  # a range of decibels
    assert not e(is_features, e.new(FeatureConfig, **{**module.librosa(n_mfcc=40), "keep_first": 0}))
    published = to(**module.published())
    assert run(e, "features", np.zeros(255, np.float32), published).status == Status.INVAL
    assert run(e, "features", np.zeros(256, np.int8), published).status == Status.INVAL
    assert run(e, "features", np.zeros(256, np.float32), published, room=39).status == Status.NOMEM
    assert run(e, "features", np.zeros(256, np.float32), published[:-1], room=40).status == Status.INVAL
    assert run(e, "features", np.zeros(256, np.int16), to(**module.librosa(pad_mode="reflect"))).status == Status.INVAL  # nothing to mirror
    assert e(scratch_size, KINDS["features"], e.array(u8, published), len(published)) == 4 * (128 + 256 + 80 + 6)


def test_a_mismatch_names_the_field(e):
    trained = pack(FeatureConfig, **module.librosa())
    declared = pack(FeatureConfig, **module.librosa(htk=True))
    assert module.differences(trained, trained) == []
    assert module.differences(trained, declared) == ["mel: slaney, htk"]
    assert module.differences(trained, pack(FeatureConfig, **module.librosa(hop_length=200, amin=1e-6))) == ["hop: 160, 200", "floor: 1e-10, 1e-06"]
    assert e(feature_digest, e.array(u8, trained)) == module.digest(trained) != module.digest(declared)
    with pytest.raises(ValueError, match="pad_mode"):
        module.librosa(pad_mode="edge")


@pytest.mark.parametrize("log", range(1, 11))
def test_the_real_transform_is_near_numpy(e, log):
    n = 1 << log
    values = np.random.default_rng(log).uniform(-1, 1, n).astype(np.float32)
    data = e.array(f32, np.concatenate([values, [9, 9]]).astype(np.float32))
    e(rfft_f32, data, n)
    np.testing.assert_allclose(data.numpy().view(np.complex64), np.fft.rfft(values.astype(float)), atol=2e-6 * math.sqrt(n) * log)
