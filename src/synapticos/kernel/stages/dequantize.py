"""dequantize: bytes to reals, x = (q - zero_point) * scale.

x  i8, any shape      y  f32, the same shape      the difference is exact, then one rounding to f32 and one product
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import (
    QUANTIZATION_BYTES,
    Quantization,
    describe_like,
    is_finite_scale,
    is_whole,
    saturated,
)
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@fn(pure=True, inline=True)
def dequantized(q: i8, scale: f32, zero_point: i32) -> f32:
    """One element. The clamp is invisible: a difference past i32 rounds to the same float as its end."""
    return f32(sat(i32, i64(q) - zero_point)) * scale


@fn
def dequantize(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Quantization) -> Status:
    """Returns OK; INVAL if the scale is not finite or x is not i8 of its size; NOMEM if the result does not fit y."""
    if not is_finite_scale(config):
        return Status.INVAL
    if x.dtype != DType.INT8 or not is_whole(x):
        return Status.INVAL
    if y.size // 4 < x.size:
        return Status.NOMEM
    values = view(i8, x_data)
    out = view(f32, y_data)
    scale = config.scale
    zero_point = config.zero_point
    n = x.size
    for i in range(n):
        out[i] = dequantized(values[i], scale, zero_point)
    describe_like(y, x, DType.FLOAT32, n * 4)
    return Status.OK


@fn
def dequantize_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or the scale is not finite."""
    if config is None or config_bytes != QUANTIZATION_BYTES:
        return Status.INVAL
    if not is_finite_scale(view(Quantization, config)):
        return Status.INVAL
    return Status.OK


@fn
def dequantize_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """4n."""
    return saturated(u64(x.size) * 4)


@fn
def dequantize_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != QUANTIZATION_BYTES:
        return Status.INVAL
    return dequantize(call.x[0], call.x_data[0], call.y, call.y_data, view(Quantization, config))
