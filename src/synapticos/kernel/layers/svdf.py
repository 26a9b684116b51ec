"""SVDF, int8: each filter looks at one input through its weights and at its own last results through time.

    s[b, f]  <- its memory, the oldest dropped, and clamp(requantize(bias_1[f] + sum_k x[b, k] * w[f, k], scale_1) + s_zero)
    y[b, u]  =  i8(requantize(bias[u] + sum_{f of u, m} t[f, m] * (s[b, f, m] - s_zero), scale_2))

    x     i8 [batch, depth]
    w     i8 [filters, depth]           zero point 0
    t     i8 or i16 [filters, memory]   zero point 0
    bias  i32 [units]
    bias_1  i32 [filters]               folded: -x_zero * sum of the filter's weights
    y     i8 [batch, units]             a unit is `rank` filters in a row
    s     i8 or i16 [batch, filters, memory], as t; kept from run to run

Rows are the outputs [batch, units]; each touches its own filters' memory only. Bounds: depth <= 65536 keeps the first
sum below 2**30; the second is modulo 2**32, as in the reference.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, holds_i8, product
from synapticos.kernel.layers.dot import MAX_DEPTH
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, scale_is_sound, to_i8
from synapticos.kernel.status import Status


@struct
class SvdfParams:
    batch: u32
    depth: u32
    units: u32
    rank: u32
    memory: u32
    s_zero: i32
    s_low: i32  # of the state's type
    s_high: i32
    multiplier_1: i32
    shift_1: i32
    multiplier_2: i32
    shift_2: i32
    out: OutputRange


SVDF_PARAMS_BYTES: Final[u32] = sizeof(SvdfParams)


@fn
def svdf_validate(check: LayerCheck) -> Status:
    if check.inputs != 5 or check.outputs != 2 or check.params_bytes < SVDF_PARAMS_BYTES:
        return Status.INVAL
    p = view(SvdfParams, check.params)
    if p.depth > MAX_DEPTH or p.units > MAX_SIDE or p.rank > MAX_SIDE or p.memory > MAX_SIDE or p.batch > MAX_SIDE:
        return Status.INVAL
    state = check.tensor(6)
    if state is None or (state.dtype != DTYPE_INT8 and state.dtype != DTYPE_INT16):
        return Status.INVAL
    low: i32 = -128
    high: i32 = 127
    if state.dtype == DTYPE_INT16:
        low = -32768
        high = 32767
    if p.s_low != low or p.s_high != high or p.s_zero < low or p.s_zero > high:
        return Status.INVAL
    filters = product(p.units, p.rank)
    if not holds_i8(check, 0, product(p.batch, p.depth)) or not holds_i8(check, 1, product(filters, p.depth)):
        return Status.INVAL
    if not holds_const(check, 2, state.dtype, product(filters, p.memory)):
        return Status.INVAL
    if not holds_const(check, 3, DTYPE_INT32, p.units) or not holds_const(check, 4, DTYPE_INT32, filters):
        return Status.INVAL
    if not holds_i8(check, 5, product(p.batch, p.units)) or check.rows > product(p.batch, p.units):
        return Status.INVAL
    if not holds(check, 6, state.dtype, product(product(p.batch, filters), p.memory)):
        return Status.INVAL
    if not scale_is_sound(p.multiplier_1, p.shift_1) or not scale_is_sound(p.multiplier_2, p.shift_2):
        return Status.INVAL
    if not range_is_sound(p.out) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def svdf_filter(call: LayerCall, p: SvdfParams, b: u32, f: u32) -> i32:
    """One filter: its newest result into its memory, and what the memory amounts to."""
    x = view(i8, call.data[0])[b * p.depth :]
    w = view(i8, call.data[1])[f * p.depth :]
    acc = view(i32, call.data[4])[f]
    for k in range(p.depth):
        acc = wrap(i32, acc + i32(x[k]) * w[k])
    newest = requantize(acc, p.multiplier_1, p.shift_1)
    # Clamped so that the zero point cannot make it wrap.
    newest = min(max(newest, p.s_low - p.s_zero), p.s_high - p.s_zero) + p.s_zero
    at = (b * (p.units * p.rank) + f) * p.memory
    last = p.memory - 1
    total: i32 = 0
    if p.s_high == 127:
        s = view(i8, call.data[6])[at:]
        t = view(i8, call.data[2])[f * p.memory :]
        move(s, s[1:], last)
        s[last] = i8(newest)
        for m in range(p.memory):
            total = wrap(i32, total + i32(t[m]) * (i32(s[m]) - p.s_zero))
    else:
        s_wide = view(i16, call.data[6])[at:]
        t_wide = view(i16, call.data[2])[f * p.memory :]
        move(s_wide, s_wide[1:], last)
        s_wide[last] = i16(newest)
        for m in range(p.memory):
            total = wrap(i32, total + i32(t_wide[m]) * (i32(s_wide[m]) - p.s_zero))
    return total


@fn
def svdf_run(call: LayerCall) -> Status:
    p = view(SvdfParams, call.params)
    bias = view(i32, call.data[3])
    y = view(i8, call.data[5])
    for row in range(call.row, call.row_end):
        b = row // p.units
        unit = row % p.units
        acc = bias[unit]
        for j in range(p.rank):
            part = svdf_filter(call, p, b, unit * p.rank + j)
            acc = wrap(i32, acc + part)
        y[row] = to_i8(requantize(acc, p.multiplier_2, p.shift_2), p.out)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for an SVDF. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import integer_range
    from synapticos.kernel.layers.variants import SVDF, Const, LayerPlan, Unsupported

    x, w, t, bias = op.inputs
    y, state = op.outputs
    quantize.require_int8(x, y)
    filters, depth = (int(n) for n in w.shape)
    weights = quantize.weights_of(w, 1)
    (s_scale, s_zero), (t_scale, t_zero) = one_scale(state), one_scale(t)
    if t_zero != 0 or t.data is None or t.dtype != state.dtype:
        raise Unsupported("time weights with a zero point or of another type than the state", "alike, zero point 0")
    rank, memory = op.options["rank"], int(t.shape[1])
    batch, units = int(x.shape[0]), filters // rank
    scale_1 = quantize.multiplier_of(float(x.scale[0]) * float(w.scale[0]) / s_scale)
    scale_2 = quantize.multiplier_of(s_scale * t_scale / float(y.scale[0]))
    low, high = integer_range(state.dtype)
    zero = int(y.zero[0])
    values = np.zeros(units, np.int32) if bias is None else bias.data.reshape(-1).astype(np.int32)
    params = pack(
        SvdfParams, batch=batch, depth=depth, units=units, rank=rank, memory=memory, s_zero=s_zero, s_low=low, s_high=high,
        multiplier_1=scale_1[0], shift_1=scale_1[1], multiplier_2=scale_2[0], shift_2=scale_2[1],
        out={"zero": zero, "low": -128 - zero, "high": 127 - zero},
    )  # fmt: skip
    if depth > MAX_DEPTH or max(filters, memory) > MAX_SIDE:
        raise Unsupported(f"{filters} filters of {depth} by {memory}", f"up to {MAX_SIDE} by {MAX_DEPTH}")
    inputs = [
        x, w, t, Const(f"{w.name}/bias", values),
        Const(f"{w.name}/offset", quantize.folded_bias(None, weights, int(x.zero[0]))),
    ]  # fmt: skip
    cost = batch * filters * (depth + memory)
    return LayerPlan(SVDF, inputs, [y, state], params, scratch=0, cost=cost, rows=batch * units)
