"""Processors and signal processing in instructions of a Cortex-M33 with FPU: exact, from the in-process emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from synapticos.engine import Build
from synapticos.kernel.dsp import contract
from synapticos.kernel.dsp.biquad import Biquad
from synapticos.kernel.dsp.calibrate import dsp_init
from synapticos.kernel.stages import features as sound
from synapticos.kernel.stages.stream import stream_push, stream_reset, stream_size
from synapticos.kernel.stages.tables import BUILTINS, KINDS, ROWS, capacity, scratch_size
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor
from synapticos.lang import *

CALLS = [contract.dsp_fft_f32, contract.dsp_rfft_f32, contract.dsp_fft_q15, contract.dsp_mat_mult_q15, contract.dsp_softmax_f32, contract.dsp_argmax,
         contract.dsp_biquad_f32, contract.dsp_normalize_int8]  # fmt: skip
DTYPES = {"uint8": DType.UINT8, "int8": DType.INT8, "int16": DType.INT16, "float32": DType.FLOAT32}


@fn
def bench_processor(kind: u32, x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Ptr[u8], config_bytes: u32, scratch: Ptr[u8], n: u32) -> Status:
    call = local(StageCall)
    call.inputs = 1
    copy(call.x[0], x)
    call.x_data[0] = x_data
    copy(call.y, y)
    call.y_data = y_data
    call.config = config
    call.config_bytes = config_bytes
    call.scratch = scratch
    call.scratch_bytes = n
    status = BUILTINS[kind](call)
    copy(y, call.y)
    return status


class Bench:
    def __init__(self) -> None:
        self.e: Any = Build([bench_processor, capacity, scratch_size, dsp_init, stream_reset, stream_push, stream_size, *CALLS]).engine("cortex-m")

    def stage(self, name: str, array: np.ndarray, **config: Any) -> tuple[int, list[int]]:
        """Instructions, and the shape of the result."""
        e, kind = self.e, KINDS[name]
        packed = pack(ROWS[kind].config, **config)
        given = e.array(u8, packed)
        x = e.new(Tensor, size=array.nbytes, dtype=DTYPES[str(array.dtype)], ndim=array.ndim, shape=[*array.shape, 0, 0, 0][:4])
        room = e(capacity, kind, x, given, len(packed))
        y = e.new(Tensor, size=room)
        n = e(scratch_size, kind, given, len(packed))
        status = e(bench_processor, kind, x, e.array(u8, array.tobytes()), y, e.array(u8, room), given, len(packed), e.array(u8, max(n, 4)), n)
        assert status == Status.OK, (name, status)
        return e.instructions, list(y.shape)[: y.ndim]


def processors() -> list[tuple[str, int, int, str]]:
    """What, instructions, of how many, of what."""
    b, rng, out = Bench(), np.random.default_rng(0), []
    image = rng.integers(0, 256, (1, 96, 96, 3), np.uint8)
    half = 48 * 48 * 3
    out.append(("resize 96 x 96 x 3 to 48 x 48", b.stage("resize", image, w=48, h=48)[0], half, "element"))
    for method, what in ((0, "nearest"), (1, "bilinear"), (2, "area")):
        out.append((f"scale, {what}, half pixel, the same", b.stage("scale", image, w=48, h=48, method=method, coordinates=1)[0], half, "element"))
    for what, source, target, pixels in (("rgb to grey", 1, 0, image), ("rgb to bgr", 1, 2, image), ("rgb565 to rgb", 4, 1, image[..., :2]), ("yuyv to rgb", 6, 1, image[..., :2])):
        out.append((f"colour, {what}", b.stage("colour", np.ascontiguousarray(pixels), source=source, target=target)[0], 96 * 96, "pixel"))
    out.append(("normalize_quantize", b.stage("normalize_quantize", image, channels=3, mean=[127.5] * 3, std=[127.5] * 3, scale=1 / 127)[0], image.size, "element"))
    samples = rng.normal(size=4000).astype(np.float32)
    for what, name, config in (
        ("features, 512 / 160, 40 mel, 13", "features", sound.librosa(top_db=None)),
        ("features, the same, 80 dB of range", "features", sound.librosa()),
        ("mfcc, 256, 20 mel, 10", "mfcc", dict(sample_rate_hz=16000, frame_len=256, num_mel=20, num_coeffs=10)),
    ):
        spent, shape = b.stage(name, samples, **config)
        out.append((what, spent, shape[0], "frame"))
    e = b.e
    config = e.new(sound.FeatureConfig, **sound.librosa(center=False, top_db=None))
    size = e(stream_size, config)
    memory, chunk, row = e.array(u8, size), e.array(u8, samples[:160].tobytes()), e.array(f32, 13)
    e(stream_reset, config, memory, size)
    for _ in range(4):
        e(stream_push, config, memory, size, chunk, False, 160, row, 1)
    out.append(("a stream of 160 samples a time, the same", e.instructions, 1, "frame"))
    boxes = np.array([[i, 0, i + 3, 3, 0.5 + i / 200, 0] for i in range(64)], np.float32)
    out.append(("nms of 64", b.stage("nms", boxes, iou_threshold=0.5, max_boxes=64)[0], 64, "box"))
    out.append(("suppress, gaussian, of 64", b.stage("suppress", boxes, iou_threshold=0.5, sigma=0.5, max_boxes=64, method=2)[0], 64, "box"))
    return out + dsp(b)


def dsp(b: Bench) -> list[tuple[str, int, int, str]]:
    e, rng, out, n = b.e, np.random.default_rng(0), [], 256
    state = e.new(contract.Dsp)
    e(dsp_init, state)
    floats, shorts = e.array(f32, rng.normal(size=2 * n).astype(np.float32)), e.array(i16, rng.integers(-9999, 9999, 4096).astype(np.int16))

    def measure(what: str, work: int, unit: str, call: Any, *arguments: Any) -> None:
        assert e(call, state, *arguments) == Status.OK
        out.append((what, e.instructions, work, unit))

    measure("fft_f32, 256 points", 1024, "butterfly", contract.dsp_fft_f32, floats, floats, n)
    measure("rfft_f32, 256 samples", n, "sample", contract.dsp_rfft_f32, floats, floats, n)
    measure("fft_q15, 256 points", 1024, "butterfly", contract.dsp_fft_q15, shorts, shorts, n)
    measure("mat_mult_q15, 64 x 64", 4096, "MAC", contract.dsp_mat_mult_q15, shorts, shorts, e.array(i16, 64), 64, 64)
    measure("softmax_f32, 256", n, "element", contract.dsp_softmax_f32, floats, floats, n)
    measure("argmax, 256", n, "element", contract.dsp_argmax, e.array(i8, n), n, e.array(u32, 1))
    measure("biquad_f32, one section, 256", n, "sample", contract.dsp_biquad_f32, e.array(Biquad, bytes(28)), 1, floats, floats, n)
    measure("normalize_int8, 256", n, "element", contract.dsp_normalize_int8, e.array(u8, n), e.array(i8, n), n, 0.5, 3)
    return out
