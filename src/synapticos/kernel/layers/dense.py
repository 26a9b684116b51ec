"""FULLY_CONNECTED, int8.

    y[b, o] = i8(requantize(bias[o] + sum_k x[b, k] * w[o, k], scale[o]))

    x      i8 [batch, depth]
    w      i8 [channels, depth]  zero point 0
    bias   i32 [channels]        folded: bias - x_zero * sum of the channel's weights
    scale  i32 [channels, 2]     multiplier and shift; missing where one pair, in the parameters, serves all
    y      i8 [batch, channels]

Rows are output channels, so a large layer can be split. Bounds: depth <= 65536, so no partial sum passes 2**30.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, holds_i8, holds_i32, product, scales_are_sound, takes
from synapticos.kernel.layers.dot import MAX_DEPTH, dot_pixel
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, scale_is_sound
from synapticos.kernel.status import Status


@struct
class DenseParams:
    multiplier: i32  # of all channels, where there is no table of them
    shift: i32
    depth: u32
    channels: u32
    batch: u32
    out: OutputRange


DENSE_PARAMS_BYTES: Final[u32] = sizeof(DenseParams)


@fn
def dense_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, DENSE_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(DenseParams, check.params)
    if p.depth > MAX_DEPTH or p.channels > MAX_SIDE or check.rows > p.channels or not range_is_sound(p.out):
        return Status.INVAL
    if not holds_i8(check, 0, product(p.batch, p.depth)) or not holds_i8(check, 1, product(p.channels, p.depth)):
        return Status.INVAL
    if not holds_i32(check, 2, p.channels) or not holds_i8(check, 4, product(p.batch, p.channels)):
        return Status.INVAL
    if check.tensor(3) is None:
        if not scale_is_sound(p.multiplier, p.shift):
            return Status.INVAL
    elif not scales_are_sound(check, 3, p.channels):
        return Status.INVAL
    if not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def dense_run(call: LayerCall) -> Status:
    p = view(DenseParams, call.params)
    x = view(i8, call.data[0])
    depth = p.depth
    first = call.row
    count = call.row_end - first
    w = view(i8, call.data[1])[first * depth :]
    bias = view(i32, call.data[2])[first:]
    y = view(i8, call.data[4])
    scale = view(i32, call.params)  # begins with multiplier and shift
    scale_step: u32 = 0
    if call.size[3] != 0:
        scale = view(i32, call.data[3])[2 * first :]
        scale_step = 2
    for b in range(p.batch):
        dot_pixel(x[b * depth :], w, bias, scale, scale_step, y[b * p.channels + first :], depth, count, p.out)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a FULLY_CONNECTED. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import DENSE_I8, Const, LayerPlan, Unsupported

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    quantize.require_int8(x, y)
    channels, depth = w.shape
    weights = quantize.weights_of(w, channels)
    batch = int(np.prod(x.shape, dtype=np.int64)) // depth
    if depth > MAX_DEPTH:
        raise Unsupported(f"{depth} inputs", f"up to {MAX_DEPTH}")
    scales = None
    multiplier, shift = 0, 0
    if len(w.scale) == 1:
        # The reference takes the product of the two input scales in float32, and only then goes to double.
        product = float(np.float32(x.scale[0]) * np.float32(w.scale[0]))
        multiplier, shift = quantize.multiplier_of(product / float(y.scale[0]))
    else:
        scales = Const(f"{w.name}/scale", quantize.channel_multipliers(x, w, y, channels))
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    zero = int(y.zero[0])
    params = pack(
        DenseParams, multiplier=multiplier, shift=shift, depth=depth, channels=channels, batch=batch,
        out={"zero": zero, "low": low - zero, "high": high - zero},
    )  # fmt: skip
    folded = quantize.folded_bias(bias, weights, int(x.zero[0]))
    return LayerPlan(
        variant=DENSE_I8,
        inputs=[x, w, Const(f"{w.name}/bias", folded), scales],
        outputs=[y],
        params=params,
        scratch=0,
        cost=batch * channels * depth,
        rows=channels,
    )
