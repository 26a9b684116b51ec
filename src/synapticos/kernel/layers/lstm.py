"""UNIDIRECTIONAL_SEQUENCE_LSTM, int8 with a cell of int16: four gates a time step, then cell and hidden state.

    gate   = squash(clamp(requantize(bias + sum_k w x)) + clamp(requantize(sum_k r h)))    in Q3.12, results in Q0.15
    cell   = clip(clamp(f * cell) + clamp(i * g))          each product requantized to the cell's scale
    hidden = y = clamp(o * tanh(cell)) + zero              requantized to the output's scale

    x       i8 [batch, time, depth]
    w       i8 [4, units, depth] and [4, units, units]    one after another: input, forget, cell and output gate; zero point 0
    bias    i32 [8, units]                                of the gates' w, then of their r; the zero points are folded in
    y       i8 [batch, time, units]
    hidden  i8 [batch, units]     kept from run to run
    cell    i16 [batch, units]    kept from run to run
    scratch i16 [4, units]

With `time_major` batch and time change places. Rows are time steps, [batch, time] or [time, batch], and must run in
order. Bounds: depth, units <= 65535 keep a sum below 2**30; products of two i16 fit an i32.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, TOO_MUCH, apart, has_scratch, holds_i8, product
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, scale_is_sound, to_i8
from synapticos.kernel.layers.squash import logistic_i16, squash_scale_is_sound, tanh_i16
from synapticos.kernel.status import Status

GATES: Final[u32] = 4  # input, forget, cell, output
CELL_GATE: Final[u32] = 2


@struct
class LstmParams:
    batch: u32
    time: u32
    depth: u32
    units: u32
    time_major: u32
    clip: i32  # of the cell; 0: none
    tanh_multiplier: i32  # of the cell, into the table's units
    tanh_shift: u32
    multiplier: Shaped[Array[i32], 8]  # of the gates' sums, as their biases
    shift: Shaped[Array[i32], 8]
    forget_multiplier: i32  # of forget gate * cell
    forget_shift: i32
    input_multiplier: i32  # of input gate * cell gate
    input_shift: i32
    hidden_multiplier: i32  # of output gate * tanh(cell)
    hidden_shift: i32
    out: OutputRange


LSTM_PARAMS_BYTES: Final[u32] = sizeof(LstmParams)


@fn
def lstm_validate(check: LayerCheck) -> Status:
    if check.inputs != 3 or check.outputs != 3 or check.params_bytes < LSTM_PARAMS_BYTES:
        return Status.INVAL
    p = view(LstmParams, check.params)
    if p.batch > MAX_SIDE or p.time > MAX_SIDE or p.depth > MAX_SIDE or p.units > MAX_SIDE or p.time_major > 1:
        return Status.INVAL
    steps = product(p.batch, p.time)
    weights = product(p.units, p.depth + p.units)
    if weights == TOO_MUCH or not holds_const(check, 1, DTYPE_INT8, product(weights, GATES)):
        return Status.INVAL
    if not holds_i8(check, 0, product(steps, p.depth)) or not holds_const(check, 2, DTYPE_INT32, 8 * p.units):
        return Status.INVAL
    if not holds_i8(check, 3, product(steps, p.units)) or not holds_i8(check, 4, product(p.batch, p.units)):
        return Status.INVAL
    if not holds(check, 5, DTYPE_INT16, product(p.batch, p.units)) or check.rows > steps:
        return Status.INVAL
    if not has_scratch(check, 8 * p.units):
        return Status.INVAL
    if p.clip < 0 or p.clip > 32767 or not range_is_sound(p.out):
        return Status.INVAL
    for i in range(8):
        if not scale_is_sound(p.multiplier[i], p.shift[i]):
            return Status.INVAL
    if not scale_is_sound(p.forget_multiplier, p.forget_shift) or not scale_is_sound(p.input_multiplier, p.input_shift):
        return Status.INVAL
    if not scale_is_sound(p.hidden_multiplier, p.hidden_shift):
        return Status.INVAL
    if not squash_scale_is_sound(p.tanh_multiplier, p.tanh_shift) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(pure=True, inline=True)
def to_i16(value: i32) -> i16:
    return i16(min(max(value, -32768), 32767))


@fn(pure=True)
def lstm_sum(v: Ptr[i8], w: Ptr[i8], n: u32, bias: i32, multiplier: i32, shift: i32) -> i32:
    """One sum of a gate, as an i16."""
    acc = bias
    for k in range(n):
        acc = wrap(i32, acc + i32(v[k]) * w[k])
    return i32(to_i16(requantize(acc, multiplier, shift)))


@fn
def lstm_step(call: LayerCall, p: LstmParams, row: u32, b: u32) -> None:
    """One time step of one sequence."""
    units = p.units
    x = view(i8, call.data[0])[row * p.depth :]
    w = view(i8, call.data[1])
    r = w[GATES * units * p.depth :]
    bias = view(i32, call.data[2])
    y = view(i8, call.data[3])[row * units :]
    hidden = view(i8, call.data[4])[b * units :]
    cell = view(i16, call.data[5])[b * units :]
    gates = view(i16, call.scratch)
    for gate in range(GATES):
        for unit in range(units):
            at = gate * units + unit
            sum_x = lstm_sum(x, w[at * p.depth :], p.depth, bias[at], p.multiplier[gate], p.shift[gate])
            sum_h = lstm_sum(
                hidden, r[at * units :], units, bias[GATES * units + at], p.multiplier[GATES + gate], p.shift[GATES + gate]
            )
            total = to_i16(sum_x + sum_h)
            if gate == CELL_GATE:
                gates[at] = tanh_i16(total, 3, 0)
            else:
                gates[at] = logistic_i16(total, 3, 0)
    for unit in range(units):
        kept = to_i16(requantize(i32(gates[units + unit]) * cell[unit], p.forget_multiplier, p.forget_shift))
        new = to_i16(requantize(i32(gates[unit]) * gates[2 * units + unit], p.input_multiplier, p.input_shift))
        state = i32(to_i16(i32(kept) + new))
        if p.clip > 0:
            state = max(min(state, p.clip), -p.clip)
        cell[unit] = i16(state)
        squashed = tanh_i16(cell[unit], p.tanh_multiplier, p.tanh_shift)
        value = requantize(i32(squashed) * gates[3 * units + unit], p.hidden_multiplier, p.hidden_shift)
        hidden[unit] = to_i8(value, p.out)
        y[unit] = hidden[unit]


@fn
def lstm_run(call: LayerCall) -> Status:
    p = view(LstmParams, call.params)
    for row in range(call.row, call.row_end):
        b = row // p.time
        if p.time_major == 1:
            b = row % p.batch
        lstm_step(call, p, row, b)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a UNIDIRECTIONAL_SEQUENCE_LSTM. Plain Python."""
    from math import log2

    import numpy as np

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import LSTM_I8, MAX_ROWS, Const, LayerPlan, Unsupported

    x, *weights = op.inputs
    y, hidden, cell = op.outputs
    gate_weights, recurrent, biases = weights[:4], weights[4:8], weights[8:12]
    require("int8", x, y, hidden, *gate_weights, *recurrent)
    require("int16", cell)
    (x_scale, x_zero), (h_scale, h_zero), (c_scale, c_zero) = one_scale(x), one_scale(hidden), one_scale(cell)
    units, depth = (int(n) for n in gate_weights[0].shape)
    power = round(log2(c_scale))
    if c_zero != 0 or 2.0**power != c_scale:
        raise Unsupported(f"a cell of scale {c_scale:g}, zero {c_zero}", "a power of 2, and 0")
    left = 15 + power - 3
    tanh_scale = (3 << left, 0) if left >= 0 else (3, -left)
    major = bool(op.options["time_major"])
    time, batch = (int(n) for n in x.shape[:2])
    if not major:
        batch, time = time, batch
    scales, folded, data = [], [], []
    for tensors, v_scale, v_zero in ((gate_weights, x_scale, x_zero), (recurrent, h_scale, h_zero)):
        for gate, w in enumerate(tensors):
            rows = quantize.weights_of(w, 1)
            data.append(rows.reshape(-1))
            ratio = float(np.float32(v_scale) * np.float32(w.scale[0])) / float(np.float32(0.000244140625))
            scales.append(quantize.multiplier_of(ratio))
            folded.append(quantize.folded_bias(biases[gate] if tensors is gate_weights else None, rows, v_zero))
    unit = 2.0**-15
    products = [quantize.multiplier_of(v) for v in (unit * c_scale / c_scale, unit * unit / c_scale, unit * unit / h_scale)]
    clip = int(min(float(np.float32(op.options["cell_clip"])) / c_scale, 32767.0))
    if max(batch, time, depth, units) > MAX_SIDE or batch * time > MAX_ROWS or left > 14:
        raise Unsupported(f"{batch} sequences of {time} by {depth}, {units} units", f"up to {MAX_SIDE}")
    params = pack(
        LstmParams, batch=batch, time=time, depth=depth, units=units, time_major=int(major), clip=clip,
        tanh_multiplier=tanh_scale[0], tanh_shift=tanh_scale[1],
        multiplier=[m for m, _ in scales], shift=[s for _, s in scales],
        forget_multiplier=products[0][0], forget_shift=products[0][1], input_multiplier=products[1][0],
        input_shift=products[1][1], hidden_multiplier=products[2][0], hidden_shift=products[2][1],
        out={"zero": h_zero, "low": -128 - h_zero, "high": 127 - h_zero},
    )  # fmt: skip
    inputs = [x, Const("lstm/weights", np.concatenate(data)), Const("lstm/bias", np.concatenate(folded))]
    cost = batch * time * 4 * units * (depth + units)
    return LayerPlan(LSTM_I8, inputs, [y, hidden, cell], params, scratch=8 * units, cost=cost, rows=batch * time)
