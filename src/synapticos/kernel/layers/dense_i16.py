"""FULLY_CONNECTED, int16 with int8 weights.

    y[b, o] = i16(requantize_wide(bias[o] + sum_k x[b, k] * w[o, k], scale[o]))

    x      i16 [batch, depth]     zero point 0
    w      i8 [channels, depth]   zero point 0
    bias   i32 [channels, 2]      64 bits each
    scale  i32 [channels, 2]      multiplier and shift
    y      i16 [batch, channels]  zero point 0

Rows are channels. Bounds: a product is below 2**22, so sums stay far inside 64 bits.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.wide import holds_halves, requantize_wide, wide_bias, wide_scales_are_sound
from synapticos.kernel.status import Status


@struct
class DenseI16Params:
    depth: u32
    channels: u32
    batch: u32
    low: i32
    high: i32


DENSE_I16_PARAMS_BYTES: Final[u32] = sizeof(DenseI16Params)


@fn
def dense_i16_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, DENSE_I16_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(DenseI16Params, check.params)
    if p.channels > MAX_SIDE or check.rows > p.channels or p.low < -32768 or p.high > 32767 or p.low > p.high:
        return Status.INVAL
    if not holds(check, 0, DTYPE_INT16, product(p.batch, p.depth)):
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_INT8, product(p.channels, p.depth)) or not holds_halves(check, 2, p.channels):
        return Status.INVAL
    if not wide_scales_are_sound(check, 3, p.channels) or not apart(check, False):
        return Status.INVAL
    if not holds(check, 4, DTYPE_INT16, product(p.batch, p.channels)):
        return Status.INVAL
    return Status.OK


@fn
def dense_i16_run(call: LayerCall) -> Status:
    p = view(DenseI16Params, call.params)
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i16, call.data[4])
    for b in range(p.batch):
        x = view(i16, call.data[0])[b * p.depth :]
        for o in range(call.row, call.row_end):
            w = view(i8, call.data[1])[o * p.depth :]
            acc = wide_bias(bias, o)
            for k in range(p.depth):
                acc = wrap(i64, acc + i64(i32(x[k]) * w[k]))
            value = requantize_wide(acc, scale[2 * o], scale[2 * o + 1])
            y[b * p.channels + o] = i16(min(max(value, p.low), p.high))
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a FULLY_CONNECTED of int16. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import DENSE_I16, Const, LayerPlan, Unsupported
    from synapticos.kernel.layers.wide import MAX_WIDE_SHIFT, require_wide, wide_bias_halves, wide_limits

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    require_wide(x, y)
    channels, depth = (int(n) for n in w.shape)
    quantize.weights_of(w, channels)
    batch = prod(int(n) for n in x.shape) // depth
    if len(w.scale) == 1:
        # The reference takes the product of the two input scales in float32, and only then goes to double.
        together = float(np.float32(x.scale[0]) * np.float32(w.scale[0]))
        scales = np.array([quantize.multiplier_of(together / float(y.scale[0]))] * channels, np.int32)
    else:
        scales = quantize.channel_multipliers(x, w, y, channels)
    if scales[:, 1].max() > MAX_WIDE_SHIFT:
        raise Unsupported(f"sums 2**{scales[:, 1].max()} times finer than the output", f"2**{MAX_WIDE_SHIFT}")
    low, high = wide_limits(op.options.get("activation", "NONE"), y)
    params = pack(DenseI16Params, depth=depth, channels=channels, batch=batch, low=low, high=high)
    inputs = [x, w, Const(f"{w.name}/bias", wide_bias_halves(bias, channels)), Const(f"{w.name}/scale", scales)]
    return LayerPlan(DENSE_I16, inputs, [y], params, scratch=0, cost=batch * channels * depth, rows=channels)
