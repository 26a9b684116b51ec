"""SVDF, float32: each filter looks at one input through its weights and at its own last results through time.

    s[b, f]  <- its memory, the oldest dropped, and sum_k w[f, k] * x[b, k]
    y[b, u]  =  clamp(bias[u] + sum_{f of u} (sum_m t[f, m] * s[b, f, m]))

    x     f32 [batch, depth]
    w     f32 [filters, depth]
    t     f32 [filters, memory]
    bias  f32 [units]; zeros where there is none
    y     f32 [batch, units]            a unit is `rank` filters in a row
    s     f32 [batch, filters, memory]  kept from run to run

Every sum begins at 0 (the last one at the bias) and is taken in order, one rounding an operation, as in the reference,
which it equals in every bit. Rows are the outputs [batch, units]. A NaN or an infinity of the input stays in the
filter's memory for `memory` runs; `clear_state` removes it.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product
from synapticos.kernel.layers.dot import MAX_DEPTH
from synapticos.kernel.layers.elements_f32 import clamp_f32
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.status import Status


@struct
class SvdfF32Params:
    batch: u32
    depth: u32
    units: u32
    rank: u32
    memory: u32
    low: f32
    high: f32


SVDF_F32_PARAMS_BYTES: Final[u32] = sizeof(SvdfF32Params)


@fn
def svdf_f32_validate(check: LayerCheck) -> Status:
    if check.inputs != 4 or check.outputs != 2 or check.params_bytes < SVDF_F32_PARAMS_BYTES:
        return Status.INVAL
    p = view(SvdfF32Params, check.params)
    if p.depth > MAX_DEPTH or p.units > MAX_SIDE or p.rank > MAX_SIDE or p.memory > MAX_SIDE or p.batch > MAX_SIDE:
        return Status.INVAL
    if p.memory == 0 or isnan(p.low) or isnan(p.high):
        return Status.INVAL
    filters = product(p.units, p.rank)
    if not holds(check, 0, DTYPE_FLOAT32, product(p.batch, p.depth)) or not holds_const(check, 1, DTYPE_FLOAT32, product(filters, p.depth)):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_FLOAT32, product(filters, p.memory)) or not holds_const(check, 3, DTYPE_FLOAT32, p.units):
        return Status.INVAL
    if not holds(check, 4, DTYPE_FLOAT32, product(p.batch, p.units)) or check.rows > product(p.batch, p.units):
        return Status.INVAL
    if not holds(check, 5, DTYPE_FLOAT32, product(product(p.batch, filters), p.memory)) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def svdf_f32_filter(call: LayerCall, p: SvdfF32Params, b: u32, f: u32) -> f32:
    """One filter: its newest result into its memory, and what the memory amounts to."""
    x = view(f32, call.data[0])[b * p.depth :]
    w = view(f32, call.data[1])[f * p.depth :]
    newest: f32 = 0.0
    for k in range(p.depth):
        newest += w[k] * x[k]
    s = view(f32, call.data[5])[(b * (p.units * p.rank) + f) * p.memory :]
    t = view(f32, call.data[2])[f * p.memory :]
    last = p.memory - 1
    move(s, s[1:], last)
    s[last] = newest
    total: f32 = 0.0
    for m in range(p.memory):
        total += t[m] * s[m]
    return total


@fn(nan=True)
def svdf_f32_run(call: LayerCall) -> Status:
    p = view(SvdfF32Params, call.params)
    bias = view(f32, call.data[3])
    y = view(f32, call.data[4])
    for row in range(call.row, call.row_end):
        unit = row % p.units
        total = bias[unit]
        for j in range(p.rank):
            part = svdf_f32_filter(call, p, row // p.units, unit * p.rank + j)
            total += part
        y[row] = clamp_f32(total, p.low, p.high)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for an SVDF of float32. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import SVDF_F32, Const, LayerPlan, Unsupported

    x, w, t, bias = op.inputs
    y, state = op.outputs
    require("float32", x, w, t, y, state)
    filters, depth = (int(n) for n in w.shape)
    rank, memory = op.options["rank"], int(t.shape[1])
    batch, units = int(x.shape[0]), filters // rank
    if depth > MAX_DEPTH or max(filters, memory) > MAX_SIDE:
        raise Unsupported(f"{filters} filters of {depth} by {memory}", f"up to {MAX_SIDE} by {MAX_DEPTH}")
    values = np.zeros(units, np.float32) if bias is None else bias.data.reshape(-1)
    activation, inf = op.options.get("activation", "NONE"), float("inf")
    low, high = {"NONE": (-inf, inf), "RELU": (0.0, inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}[activation]
    params = pack(SvdfF32Params, batch=batch, depth=depth, units=units, rank=rank, memory=memory, low=low, high=high)
    cost = batch * filters * (depth + memory)
    return LayerPlan(SVDF_F32, [x, w, t, Const(f"{w.name}/bias", values)], [y, state], params, scratch=0, cost=cost, rows=batch * units)
