"""No descriptor, configuration or number makes a built-in trap, or write past what it was given."""

import struct

from hypothesis import example, given, settings
from hypothesis import strategies as st
from stage_calls import KINDS, ROWS, capacity, check_config, config_bytes, run_stage

from synapticos.kernel.stages.features import FeatureConfig, published
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import pack, sizeof, u8, unpack

SPECIAL = [0.0, -0.0, 1.0, -1.0, 127.5, 0.5, 1e30, -3e38, 1e-40, float("inf"), float("-inf"), float("nan")]
reals = (st.sampled_from(SPECIAL) | st.floats(width=32)).map(lambda v: struct.pack("<f", v))
words = st.integers(0, 6).map(lambda v: struct.pack("<I", v)) | st.sampled_from([struct.pack("<HH", a, b) for a in (1, 2, 8, 40) for b in (1, 3)])
chunks = st.lists(reals | words | st.binary(min_size=4, max_size=4), min_size=1, max_size=36).map(b"".join)
sizes = st.integers(0, 6) | st.sampled_from([8, 16, 24, 48, 0x40000000, 0x80000000, 0xFFFFFFFF])
GOOD = {
    "resize": dict(w=3, h=2), "normalize": dict(mean=[1e30, 2, 3, 4], std=[1e-40, 1, -2, 3], channels=3), "quantize": dict(scale=0.5, zero_point=-(2**31)),
    "dequantize": dict(scale=3e38, zero_point=2**31 - 1), "softmax": dict(scale=1e30, zero_point=5), "top_k": dict(k=5),
    "nms": dict(iou_threshold=0.25, score_threshold=-1e30, max_boxes=3),
    "fit": dict(w=4, h=3, channels=3, mean=[1e30, 2, 3, 4], std=[1e-40, 1, -2, 3], scale=1e-40, zero_point=7),
    "mfcc": dict(sample_rate_hz=8000, frame_len=8, num_mel=3, num_coeffs=2),
    "scale": dict(w=3, h=2, coordinates=1, fit=2), "map_boxes": dict(scale_x=3e38, scale_y=-2, offset_x=-3e38, width=9, height=1),
    "colour": dict(source=1), "normalize_quantize": dict(channels=3, mean=[1e30, 2, 3, 4], std=[1e-40, 1, -2, 3], scale=1e-40, zero_point=7),
    "features": dict(published(8000, 8, 3, 2), hop=3, placing=3), "stream_features": dict(features=pack(FeatureConfig, **published(8000, 8, 3, 2)), rows=2), "suppress": dict(max_boxes=5, method=2, sigma=1e-40, any_class=1),
    "crop": dict(w=3, h=2, coordinates=1, fit=2), "micro_features": dict(rate=2000, window_ms=4, step_ms=2, filters=3, low_hz=100, high_hz=900, rows=2),
}  # fmt: skip


@st.composite
def calls(draw):
    kind = draw(st.sampled_from(sorted(KINDS.values())))
    config = ROWS[kind].config
    n = sizeof(config) if config else 0
    given = draw(st.none() if n == 0 else st.lists(reals | words, min_size=n // 4 + 1, max_size=n // 4 + 1).map(lambda c: b"".join(c)[:n]))
    if config and draw(st.booleans()):
        given = config_bytes(ROWS[kind].name, **GOOD[ROWS[kind].name])
    data = draw(chunks)
    shape = draw(st.lists(sizes, min_size=4, max_size=4))
    size = draw(st.integers(0, len(data)))
    form = draw(st.sampled_from(["any", "image", "flat", "boxes"]))
    dtype, ndim = draw(st.sampled_from(list(DType))), draw(st.integers(0, 5))
    if form == "image":
        h, w, c = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 3, 3, 3, 4]))
        dtype, ndim, shape, size = draw(st.sampled_from([DType.UINT8, DType.INT8])), 4, [1, h, w, c], h * w * c
        data = data.ljust(size, b"\x80")
    elif form == "flat":
        dtype = draw(st.sampled_from([DType.FLOAT32, DType.INT8]))
        width = 4 if dtype == DType.FLOAT32 else 1
        ndim, shape, size = 1, [len(data) // width, 0, 0, 0], len(data)
    elif form == "boxes":
        data = data[: len(data) // 24 * 24]
        dtype, ndim, shape, size = DType.FLOAT32, 2, [len(data) // 24, 6, 0, 0], len(data)
    return kind, given, data, dict(size=size, dtype=dtype, ndim=ndim, shape=shape), draw(st.integers(0, 300))


@settings(max_examples=300)
@given(calls())
@example((KINDS["dequantize"], bytes(8), b"", dict(size=0, dtype=DType.INT8, ndim=1, shape=[0, 0, 0, 0]), 0))
def test_any_call_ends_in_a_status_and_inside_its_memory(e, call):
    kind, config, data, described, room = call
    x, x_data = e.new(Tensor, **described), e.array(u8, data or bytes(4))
    y, y_data = e.new(Tensor, size=room), e.array(u8, b"\xa5" * max(room, 4))
    given = e.array(u8, config) if config is not None else None
    n = len(config) if config is not None else 0
    valid = e(check_config, kind, given, n)
    assert e(capacity, kind, x, given, n) > 0
    status = e(run_stage, kind, 1, x, x_data, y, y_data, given, n, e.array(u8, 2048), 2048)
    assert status in (Status.OK, Status.INVAL, Status.NOMEM)
    assert valid == Status.OK or status == Status.INVAL
    assert bytes(x_data) == (data or bytes(4))
    got = unpack(Tensor, bytes(y))
    if status == Status.OK:
        assert got["size"] <= room and bytes(y_data)[got["size"] : room] == b"\xa5" * (room - got["size"])
    else:
        assert got["size"] == room
