"""UNIDIRECTIONAL_SEQUENCE_LSTM, float32: four gates a time step, then cell and hidden state.

    gate   = squash((sum_k w[k] * x[k] + bias) + sum_k r[k] * h[k])    LOGISTIC, of the cell's gate TANH
    cell   = clip(f * cell + i * g)
    hidden = y = o * tanh(cell)

    x       f32 [batch, time, depth]
    w       f32 [4, units, depth] and [4, units, units]    one after another: input, forget, cell and output gate
    bias    f32 [4, units]
    y       f32 [batch, time, units]
    hidden  f32 [batch, units]    kept from run to run
    cell    f32 [batch, units]    kept from run to run

Rows are the time steps, sequence after sequence, or time first if `time_major`; they must run in order. Sums begin at 0
and are taken in order, one rounding an operation; squashing is that of `unary_f32`, so a gate is within 2 units in the
last place of what exact functions give for the same sum. The same bits on every engine. A NaN of the input stays in the
state until that is cleared.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.fmath import f32_tanh
from synapticos.kernel.layers.checks import MAX_SIDE, TOO_MUCH, apart, has_scratch, product
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.unary_f32 import logistic_f32
from synapticos.kernel.status import Status

GATES: Final[u32] = 4  # input, forget, cell, output
CELL_GATE: Final[u32] = 2


@struct
class LstmF32Params:
    batch: u32
    time: u32
    depth: u32
    units: u32
    time_major: u32
    clip: f32  # of the cell; 0: none


LSTM_F32_PARAMS_BYTES: Final[u32] = sizeof(LstmF32Params)


@fn
def lstm_f32_validate(check: LayerCheck) -> Status:
    if check.inputs != 3 or check.outputs != 3 or check.params_bytes < LSTM_F32_PARAMS_BYTES:
        return Status.INVAL
    p = view(LstmF32Params, check.params)
    if p.batch > MAX_SIDE or p.time > MAX_SIDE or p.depth > MAX_SIDE or p.units > MAX_SIDE or p.time_major > 1:
        return Status.INVAL
    steps = product(p.batch, p.time)
    weights = product(p.units, p.depth + p.units)
    if weights == TOO_MUCH or not holds_const(check, 1, DTYPE_FLOAT32, product(weights, GATES)):
        return Status.INVAL
    if not holds(check, 0, DTYPE_FLOAT32, product(steps, p.depth)) or not holds_const(check, 2, DTYPE_FLOAT32, GATES * p.units):
        return Status.INVAL
    if not holds(check, 3, DTYPE_FLOAT32, product(steps, p.units)) or check.rows > steps:
        return Status.INVAL
    if not holds(check, 4, DTYPE_FLOAT32, product(p.batch, p.units)) or not holds(check, 5, DTYPE_FLOAT32, product(p.batch, p.units)):
        return Status.INVAL
    if not has_scratch(check, 4 * GATES * p.units) or isnan(p.clip) or p.clip < 0.0 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def lstm_f32_step(call: LayerCall, p: LstmF32Params, row: u32, b: u32) -> None:
    """One time step of one sequence."""
    units = p.units
    x = view(f32, call.data[0])[row * p.depth :]
    w = view(f32, call.data[1])
    r = w[GATES * units * p.depth :]
    bias = view(f32, call.data[2])
    y = view(f32, call.data[3])[row * units :]
    hidden = view(f32, call.data[4])[b * units :]
    cell = view(f32, call.data[5])[b * units :]
    gates = view(f32, call.scratch)
    for gate in range(GATES):
        for unit in range(units):
            at = gate * units + unit
            from_x: f32 = 0.0
            for k in range(p.depth):
                from_x += w[at * p.depth + k] * x[k]
            from_x += bias[at]
            from_h: f32 = 0.0
            for k in range(units):
                from_h += r[at * units + k] * hidden[k]
            total = from_x + from_h
            if isnan(total):
                gates[at] = total
            elif gate == CELL_GATE:
                gates[at] = f32_tanh(total)
            else:
                gates[at] = logistic_f32(total)
    for unit in range(units):
        kept = gates[units + unit] * cell[unit]
        new = gates[unit] * gates[2 * units + unit]
        state = kept + new
        if p.clip > 0.0:
            state = max(min(state, p.clip), -p.clip)
        cell[unit] = state
        squashed = state
        if not isnan(state):
            squashed = f32_tanh(state)
        hidden[unit] = squashed * gates[3 * units + unit]
        y[unit] = hidden[unit]


@fn(nan=True)
def lstm_f32_run(call: LayerCall) -> Status:
    p = view(LstmF32Params, call.params)
    for row in range(call.row, call.row_end):
        b = row // p.time
        if p.time_major == 1:
            b = row % p.batch
        lstm_f32_step(call, p, row, b)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a UNIDIRECTIONAL_SEQUENCE_LSTM of float32. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import LSTM_F32, MAX_ROWS, Const, LayerPlan, Unsupported

    x, *weights = op.inputs
    y, hidden, cell = op.outputs
    require("float32", x, y, hidden, cell, *weights)
    units, depth = (int(n) for n in weights[0].shape)
    major = bool(op.options["time_major"])
    time, batch = (int(n) for n in x.shape[:2])
    if not major:
        batch, time = time, batch
    if max(batch, time, depth, units) > MAX_SIDE or batch * time > MAX_ROWS:
        raise Unsupported(f"{batch} sequences of {time} by {depth}, {units} units", f"up to {MAX_SIDE}")
    params = pack(
        LstmF32Params, batch=batch, time=time, depth=depth, units=units, time_major=int(major), clip=float(op.options["cell_clip"])
    )
    data = np.concatenate([w.data.reshape(-1) for w in weights[:8]])
    bias = np.concatenate([b.data.reshape(-1) for b in weights[8:12]])
    inputs = [x, Const("lstm/weights", data), Const("lstm/bias", bias)]
    cost = batch * time * 4 * units * (depth + units)
    return LayerPlan(LSTM_F32, inputs, [y, hidden, cell], params, scratch=16 * units, cost=cost, rows=batch * time)
