"""quantize_int8: reals to bytes, q = round_half_away(x / scale) + zero_point, clamped to -128..127.

x  f32, any shape      y  i8, the same shape
The sum is exact before it is clamped, whatever the zero point; an infinity clamps and a NaN gives the zero point.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import nearest_half_away
from synapticos.kernel.stages.operands import QUANTIZATION_BYTES, Quantization, describe_like, is_finite_scale, is_whole
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

BEYOND_ANY_ZERO_POINT = 1.0e12


@fn(pure=True, inline=True)
def quantized(x: f32, scale: f32, zero_point: i32) -> i8:
    """One element; `scale` is finite and not 0."""
    if isnan(x):
        return sat(i8, zero_point)
    steps = x / scale
    if -16777216.0 < steps < 16777216.0:
        # Past 2**25 a zero point decides alone, so there the clamp changes nothing and the sum fits i32.
        return sat(i8, nearest_half_away(steps) + min(max(zero_point, -0x2000000), 0x2000000))
    # Floats from 2**24 on are integers; the bound only keeps the sum within i64.
    return sat(i8, i64(min(max(steps, -BEYOND_ANY_ZERO_POINT), BEYOND_ANY_ZERO_POINT)) + zero_point)


@fn
def quantize(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Quantization) -> Status:
    """Returns OK; INVAL if the scale is 0 or not finite, or x is not f32 of its size; NOMEM if the result does not fit y."""
    if not is_finite_scale(config) or config.scale == 0.0:
        return Status.INVAL
    if x.dtype != DType.FLOAT32 or not is_whole(x):
        return Status.INVAL
    n = x.size // 4
    if y.size < n:
        return Status.NOMEM
    reals = view(f32, x_data)
    out = view(i8, y_data)
    scale = config.scale
    zero_point = config.zero_point
    for i in range(n):
        out[i] = quantized(reals[i], scale, zero_point)
    describe_like(y, x, DType.INT8, n)
    return Status.OK


@fn
def quantize_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or the scale is 0 or not finite."""
    if config is None or config_bytes != QUANTIZATION_BYTES:
        return Status.INVAL
    c = view(Quantization, config)
    if not is_finite_scale(c) or c.scale == 0.0:
        return Status.INVAL
    return Status.OK


@fn
def quantize_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n / 4."""
    return x.size // 4


@fn
def quantize_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != QUANTIZATION_BYTES:
        return Status.INVAL
    return quantize(call.x[0], call.x_data[0], call.y, call.y_data, view(Quantization, config))
