"""softmax: scores to probabilities, e**(v - max) / sum of them, over all elements of the tensor.

x  i8 or f32, any shape, not empty      y  f32, the same shape, which may be x itself for f32
v is q itself, or (q - zero_point) * scale where a configuration is given. The sum runs in element order.
A NaN gets probability 0, infinite scores share the whole between them, and if all are NaN there is no answer (INVAL).
"""

from synapticos.lang import *
from synapticos.kernel.fmath import f32_exp
from synapticos.kernel.stages.dequantize import dequantized
from synapticos.kernel.stages.operands import (
    QUANTIZATION_BYTES,
    Quantization,
    describe_like,
    is_finite_scale,
    is_numbers,
    saturated,
)
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@fn
def softmax_f32(x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    """The processor's arithmetic on bare floats; y may be x. Returns OK; INVAL, with y as it was, if no element is a number."""
    top: f32 = 0.0
    found = False
    for i in range(n):
        if not isnan(x[i]):
            if not found or x[i] > top:
                top = x[i]
                found = True
    if not found:
        return Status.INVAL
    total: f32 = 0.0
    for i in range(n):
        e: f32 = 0.0
        if not isnan(x[i]):
            if x[i] == top:
                e = 1.0  # also where the largest is infinite and the difference would be a NaN
            else:
                e = f32_exp(x[i] - top)
        y[i] = e
        total += e
    for i in range(n):
        y[i] = y[i] / total
    return Status.OK


@fn
def softmax(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Quantization | None) -> Status:
    """Returns OK; INVAL if a scale is given and not finite, x is neither i8 nor f32 of its size, empty or all NaN;
    NOMEM if the result does not fit y."""
    scale: f32 = 1.0
    zero_point: i32 = 0
    if config is not None:
        if not is_finite_scale(config):
            return Status.INVAL
        scale = config.scale
        zero_point = config.zero_point
    if not is_numbers(x):
        return Status.INVAL
    n = x.size
    if x.dtype == DType.FLOAT32:
        n = x.size // 4
    if y.size // 4 < n:
        return Status.NOMEM
    out = view(f32, y_data)
    status = Status.OK
    if x.dtype == DType.FLOAT32:
        status = softmax_f32(view(f32, x_data), out, n)
    else:
        values = view(i8, x_data)
        for i in range(n):
            out[i] = dequantized(values[i], scale, zero_point)
        status = softmax_f32(out, out, n)
    if status == Status.OK:
        describe_like(y, x, DType.FLOAT32, n * 4)
    return status


@fn
def softmax_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """OK without a configuration; INVAL if its scale is not finite."""
    if config is None:
        return Status.OK
    if config_bytes != QUANTIZATION_BYTES or not is_finite_scale(view(Quantization, config)):
        return Status.INVAL
    return Status.OK


@fn
def softmax_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n if float32, else 4n."""
    if x.dtype == DType.FLOAT32:
        return x.size
    return saturated(u64(x.size) * 4)


@fn
def softmax_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1:
        return Status.INVAL
    if config is None:
        return softmax(call.x[0], call.x_data[0], call.y, call.y_data, None)
    if call.config_bytes != QUANTIZATION_BYTES:
        return Status.INVAL
    return softmax(call.x[0], call.x_data[0], call.y, call.y_data, view(Quantization, config))
