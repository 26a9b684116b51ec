from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_calls import KINDS, ROOTS, check_config, config_bytes, run, scratch_size, state_size

from synapticos.engine import Build
from synapticos.kernel.stages.micro import MICRO_CONFIG_BYTES, MicroConfig, micro_bytes, micro_frontend
from synapticos.kernel.status import Status
from synapticos.lang import pack, u8, unpack

KIND = KINDS["micro_features"]
ANSWERS = np.load(Path(__file__).parents[2] / "examples" / "doorbell.npz")
HARD = ANSWERS["hard"]  # silence, full scale, clipped tones, noise of all levels
SMALL = dict(rate=2000, window_ms=4, step_ms=2, filters=3, low_hz=100, high_hz=900)


def stream(e, config):
    """A state as the kernel gives it."""
    return e.array(u8, e(state_size, KIND, e.array(u8, config), len(config)))


def rows_of(e, x, rows=3, hop=480):
    """What comes out window by window, counted in 10/256."""
    config = config_bytes("micro_features", rows=rows)
    state = stream(e, config)
    out = [run(e, "micro_features", x[i : i + hop], config, state=state).array for i in range(0, len(x), hop)]
    return np.concatenate(out) * np.float32(25.6)


def test_no_row_of_hard_sounds_differs_from_the_reference():
    e = Build(ROOTS).engine("native")
    assert np.array_equal(rows_of(e, HARD), ANSWERS["hard/rows"])


def test_engines_give_the_reference_s_bytes(engines):
    """The beginning: silence, and the largest square wave."""
    e = engines(*ROOTS)
    assert np.array_equal(rows_of(e, HARD[:2880]), ANSWERS["hard/rows"][:18])


@settings(max_examples=20)
@given(parts=st.lists(st.integers(0, 700), min_size=1, max_size=5), rows=st.integers(1, 4))
def test_however_sound_comes_in_the_latest_rows_come_out(parts, rows):
    e = Build(ROOTS).engine("native")
    config = config_bytes("micro_features", rows=rows)
    state, end = stream(e, config), 0
    silence = np.zeros((rows, 40), np.uint16)
    for n in parts:
        got = run(e, "micro_features", HARD[end : end + n], config, state=state).array
        end += n
        whole = np.concatenate([silence, ANSWERS["hard/rows"][: end // 160]])
        assert np.array_equal(got * np.float32(25.6), whole[-rows:])


@settings(max_examples=25)
@given(data=st.binary(min_size=2, max_size=60).map(lambda b: b[: len(b) // 2 * 2]), strength=st.sampled_from([0.0, 0.95, 4.0]), shift=st.sampled_from([0, 6, 15]))
def test_any_samples_give_the_same_bytes_on_all_engines(engines, data, strength, shift):
    e = engines(*ROOTS)
    config = config_bytes("micro_features", rows=2, **SMALL, pcan_strength=strength, log_scale_shift=shift)
    state = stream(e, config)
    for _ in range(2):
        assert run(e, "micro_features", np.frombuffer(data, np.int16), config, state=state).status == Status.OK


def test_what_is_missing_or_wrong_is_refused(engines):
    e = engines(*ROOTS)
    config = config_bytes("micro_features", rows=2, **SMALL)
    x = np.ones(8, np.int16)
    size = len(stream(e, config))
    assert run(e, "micro_features", x, config, state=e.array(u8, size)).array.shape == (2, 3)
    assert run(e, "micro_features", x, config, state=e.array(u8, size - 1)).status == Status.NOMEM
    assert run(e, "micro_features", x, config).status == Status.NOMEM
    assert run(e, "micro_features", x, config, room=23, state=e.array(u8, size)).status == Status.NOMEM
    assert run(e, "micro_features", x.astype(np.float32), config, state=e.array(u8, size)).status == Status.INVAL
    assert run(e, "micro_features", x, config, state=e.array(u8, size), inputs=2).status == Status.INVAL
    assert run(e, "micro_features", x, None, state=e.array(u8, size)).status == Status.INVAL
    broken = e.array(u8, bytes([9, 0, 0, 0, 1]) + bytes(size - 5))  # it has kept more samples than a window has
    assert run(e, "micro_features", x, config, state=broken).status == Status.INVAL
    assert e(scratch_size, KIND, e.array(u8, config), 4) == e(state_size, KIND, e.array(u8, config), 4) == 0


@pytest.mark.parametrize(
    "field, value",
    [("window", 1), ("window", 65), ("hop", 0), ("hop", 9), ("fft", 32), ("fft", 96), ("filters", 0), ("filters", 129), ("rows", 0), ("first", 34),
     ("end", 34), ("weights", 1), ("correction", 32), ("gain_shift", 32), ("scale", float("nan"))],
)  # fmt: skip
def test_a_field_out_of_its_range_is_refused(engines, field, value):
    e = engines(*ROOTS)
    config = config_bytes("micro_features", rows=2, **SMALL)
    bad = pack(MicroConfig, **{**unpack(MicroConfig, config), field: value}) + config[MICRO_CONFIG_BYTES:]
    assert e(check_config, KIND, e.array(u8, config), len(config)) == Status.OK
    assert e(check_config, KIND, e.array(u8, bad), len(bad)) == Status.INVAL


@settings(max_examples=60)
@given(at=st.integers(0, 10_000), value=st.integers(0, 255))
def test_no_damage_of_a_configuration_makes_it_trap(engines, at, value):
    e = engines(*ROOTS)
    config = bytearray(config_bytes("micro_features", rows=2, **SMALL))
    config[at % len(config)] = value
    config = bytes(config)
    state = stream(e, config)
    x = np.arange(-10, 20, dtype=np.int16) * 1000
    run(e, "micro_features", x, config, state=state if len(state) else None)


@pytest.mark.parametrize(
    "change, words",
    [(dict(filters=0), "filters is from 1 to 128, not 0"), (dict(step_ms=31), "leave no gaps"), (dict(high_hz=9000), "at most half the rate"),
     (dict(low_hz="x"), "low_hz is from"), (dict(pcan_gain_bits=3), "pcan_gain_bits is at least 15"), (dict(low_hz=30.0, high_hz=40.0, filters=1), "no bin lies between")],
)  # fmt: skip
def test_a_description_of_nothing_says_what_is_wrong(change, words):
    with pytest.raises(ValueError, match=words):
        micro_bytes(micro_frontend(**change), 1)
    with pytest.raises(ValueError, match="a micro front end has rate"):
        micro_bytes(dict(kind="micro"), 1)
