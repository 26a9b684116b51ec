import numpy as np
import pytest
from stage_calls import ROOTS, config_bytes, run, tensor

from synapticos.kernel.stages import tables
from synapticos.kernel.stages.tables import (
    KINDS,
    ROWS,
    STAGE_NAMES,
    capacity,
    check_config,
    config_size,
    plan_result,
    scratch_size,
    stage_tables,
)
from synapticos.kernel.stages.features import FeatureConfig, librosa, published
from synapticos.kernel.stages.scale import Rect
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import pack, sizeof, u8, unpack

BYTES = np.zeros((1, 4, 6, 3), np.uint8)
PUBLISHED = pack(FeatureConfig, **published())
FEW = stage_tables({"argmax"})


@pytest.fixture
def e(engines):
    return engines(plan_result, *ROOTS)


def room(e, kind, array, config=None, **declared):
    given = e.array(u8, config) if config is not None else None
    return e(capacity, kind, tensor(e, array, **declared), given, len(config) if config is not None else 0)


def test_numbers_names_and_constants_agree():
    assert STAGE_NAMES == list(KINDS) == "resize normalize quantize dequantize softmax argmax top_k nms fit mfcc scale map_boxes colour normalize_quantize features suppress stream_features micro_features crop".split()
    for name, number in KINDS.items():
        assert getattr(tables, f"KIND_{name.upper()}") == number


@pytest.mark.parametrize(
    "name, array, fields, want",
    [
        ("resize", BYTES, dict(w=5, h=7), 105),
        ("resize", BYTES, dict(w=65535, h=65535), 0xFFFFFFFF),
        ("resize", BYTES[0], dict(w=5, h=7), 288),  # not an image: the rule for anything else
        ("normalize", BYTES, dict(channels=3), 288),
        ("quantize", np.zeros(400, np.float32), dict(scale=1), 400),
        ("quantize", np.zeros(0, np.float32), dict(scale=1), 64),
        ("dequantize", np.zeros(3, np.int8), dict(scale=1), 12),
        ("softmax", np.zeros(10, np.int8), dict(scale=1), 40),
        ("softmax", np.zeros(10, np.float32), dict(scale=1), 40),
        ("top_k", np.zeros(10, np.int8), dict(k=3), 24),
        ("top_k", np.zeros(10, np.int8), dict(k=0), 64),
        ("nms", np.zeros((5, 6), np.float32), dict(max_boxes=1), 120),
        ("fit", BYTES, dict(w=5, h=7, channels=3), 105),
        ("mfcc", np.zeros(600, np.float32), dict(frame_len=256, num_coeffs=10), 80),
        ("mfcc", np.zeros(600, np.float32), dict(frame_len=0, num_coeffs=10), 9600),
        ("scale", BYTES, dict(w=5, h=7), 105),
        ("map_boxes", np.zeros((5, 6), np.float32), dict(), 120),
        ("colour", BYTES, dict(source=1, target=0), 24),
        ("colour", BYTES, dict(source=1, target=2, roi=pack(Rect, w=3, h=2)), 18),
        ("colour", BYTES, dict(source=99), 288),
        ("normalize_quantize", BYTES, dict(channels=3), 72),
        ("features", np.zeros(600, np.float32), published(), 80),
        ("stream_features", np.zeros(5, np.int16), dict(features=PUBLISHED, rows=3), 120),
        ("suppress", np.zeros((5, 6), np.float32), dict(max_boxes=1), 120),
        ("micro_features", np.zeros(5, np.int16), dict(rows=3), 480),
        ("micro_features", np.zeros(5, np.int16), dict(rows=0), 64),
        ("features", np.zeros(600, np.int16), librosa(), 4 * 13 * 4),
        ("features", np.zeros(600, np.float32), {**published(), "hop": 0}, 9600),
    ],
)
def test_room_for_a_result(e, name, array, fields, want):
    assert room(e, KINDS[name], array, config_bytes(name, **fields)) == want


def test_room_without_a_rule_or_a_configuration(e):
    assert room(e, KINDS["argmax"], BYTES) == 8
    assert room(e, 1000, BYTES) == 288
    assert room(e, 1000, BYTES[0, 0, 0]) == 64
    assert room(e, KINDS["resize"], BYTES) == 288
    assert room(e, KINDS["softmax"], np.zeros(10, np.int8)) == 40
    assert room(e, KINDS["normalize"], BYTES, size=0x40000000) == 0xFFFFFFFF
    assert room(e, 1000, BYTES, size=0xFFFFFFFF) == 0xFFFFFFFF


def test_config_sizes(e):
    for number, row in enumerate(ROWS):
        assert e(config_size, number) == (sizeof(row.config) if row.config else 0)
    assert e(config_size, 1000) == 0


GOOD = {
    "resize": dict(w=1, h=1), "normalize": dict(std=[1], channels=1), "quantize": dict(scale=1), "dequantize": dict(scale=0),
    "softmax": dict(scale=2), "top_k": dict(k=16), "nms": dict(max_boxes=1), "fit": dict(w=1, h=1, channels=1, std=[1], scale=1),
    "mfcc": dict(sample_rate_hz=1, frame_len=8, num_mel=1, num_coeffs=1), "scale": dict(w=1, h=1),
    "map_boxes": dict(), "colour": dict(), "normalize_quantize": dict(channels=1, std=[1], scale=1),
    "features": published(), "suppress": dict(max_boxes=1),
    "stream_features": dict(features=PUBLISHED, rows=4096), "micro_features": dict(rows=4096),
}  # fmt: skip
BAD = {
    "resize": [dict(w=1)], "normalize": [dict(channels=1), dict(std=[1] * 4, channels=5)], "quantize": [dict(), dict(scale=float("nan"))],
    "dequantize": [dict(scale=float("inf"))], "softmax": [dict(scale=float("inf"))], "top_k": [dict(), dict(k=17)],
    "nms": [dict(), dict(max_boxes=1, iou_threshold=float("nan"))], "fit": [dict(), {**GOOD["fit"], "scale": 0}],
    "mfcc": [dict(), {**GOOD["mfcc"], "frame_len": 12}, {**GOOD["mfcc"], "num_coeffs": 2}],
    "scale": [dict(), dict(w=16385, h=1), dict(w=1, h=1, method=2), dict(w=1, h=1, method=3, coordinates=1), dict(w=1, h=1, coordinates=3),
              dict(w=1, h=1, fit=3), dict(w=1, h=1, roi=pack(Rect, w=1))],
    "stream_features": [dict(), dict(features=PUBLISHED), dict(features=PUBLISHED, rows=4097), dict(features=pack(FeatureConfig, **librosa()), rows=1)],
    "suppress": [dict(), dict(max_boxes=1, method=3), dict(max_boxes=1, any_class=2), dict(max_boxes=1, method=1, score_threshold=-1),
                 dict(max_boxes=1, method=2), dict(max_boxes=1, sigma=float("nan"))],
    "features": [dict(), {**published(), "hop": 0}], "map_boxes": [dict(scale_x=float("inf")), dict(height=-1.0)],
    "colour": [dict(source=8), dict(target=3), dict(video=2, source=6), dict(video=1, source=1), dict(roi=pack(Rect, h=1)), dict(roi=pack(Rect, x=1))],
    "micro_features": [dict(rows=0), dict(rows=4097)],
    "normalize_quantize": [dict(), {**GOOD["normalize_quantize"], "scale": 0}, {**GOOD["normalize_quantize"], "channels": 5}],
}  # fmt: skip


def checked(e, name, config):
    given = e.array(u8, config) if config is not None else None
    return Status(e(check_config, KINDS[name], given, len(config) if config is not None else 0))


@pytest.mark.parametrize("name", GOOD)
def test_a_configuration_is_refused_when_it_is_added(e, name):
    good = config_bytes(name, **GOOD[name])
    assert checked(e, name, good) == Status.OK
    assert checked(e, name, good + bytes(4)) == Status.INVAL
    assert checked(e, name, None) == (Status.OK if name == "softmax" else Status.INVAL)
    for bad in BAD[name]:
        assert checked(e, name, config_bytes(name, **bad)) == Status.INVAL


def test_stages_that_are_not_built_in_are_not_judged(e):
    assert e(check_config, 1000, None, 0) == Status.OK
    assert checked(e, "argmax", None) == Status.OK


def test_the_published_chain_ends_in_its_record(e):
    pixels = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    x = run(e, "normalize", pixels, config_bytes("normalize", std=[1] * 3, channels=3)).array
    x = run(e, "quantize", x, config_bytes("quantize", scale=1)).array
    assert x.ravel().tolist() == list(range(48))
    answer = np.zeros(10, np.int8)  # as the stub accelerator answers: 127 at the sum of the bytes modulo 10
    answer[int(x.view(np.uint8).astype(int).sum()) % 10] = 127
    ((index, score),) = run(e, "argmax", run(e, "softmax", answer).array).records
    assert index == 8 and score > 0.99


def test_only_audio_features_need_scratch(e):
    config = config_bytes("mfcc", frame_len=256)
    assert e(scratch_size, KINDS["mfcc"], e.array(u8, config), len(config)) == 2048
    assert e(scratch_size, KINDS["mfcc"], None, 0) == 0
    assert e(scratch_size, KINDS["fit"], None, 0) == 0 and e(scratch_size, 1000, None, 0) == 0


def test_a_build_may_leave_processors_out(engines):
    few = engines(*ROOTS, tables=FEW)
    scores = np.array([1, 3, 2], np.int8)
    assert run(few, "argmax", scores).records == [(1, 3)]
    assert checked(few, "argmax", None) == Status.OK
    assert run(few, "softmax", scores).status == Status.NOTSUP
    assert checked(few, "softmax", None) == Status.NOTSUP
    assert room(few, KINDS["top_k"], scores, config_bytes("top_k", k=3)) == 64
    with pytest.raises(ValueError, match="sofmax is no built-in"):
        stage_tables({"sofmax"})


@pytest.mark.parametrize(
    "name, array, config, size, dtype",
    [("resize", BYTES, dict(w=5, h=7), 105, DType.UINT8), ("scale", BYTES, dict(w=5, h=7), 105, DType.UINT8),
     ("fit", BYTES, dict(w=5, h=7, channels=3), 105, DType.INT8), ("colour", BYTES, dict(source=1, target=2), 72, DType.UINT8),
     ("normalize_quantize", BYTES, dict(channels=3), 72, DType.INT8), ("normalize", BYTES, dict(channels=3), 288, DType.FLOAT32),
     ("quantize", np.zeros(4, np.float32), dict(), 4, DType.INT8), ("features", np.zeros(600, np.float32), published(), 80, DType.FLOAT32)],
)  # fmt: skip
def test_what_the_next_stage_may_expect(e, name, array, config, size, dtype):
    x = tensor(e, array)
    e(plan_result, KINDS[name], x, room(e, KINDS[name], array, config_bytes(name, **config)))
    got = unpack(Tensor, bytes(x))
    assert (got["size"], got["dtype"]) == (size, dtype)
    if dtype == DType.UINT8 or name == "fit":
        assert got["shape"][2] * got["shape"][3] == size  # what normalize makes room by
