"""CONCATENATION of bytes along one axis: row by row, a piece of each input.

    y[r] = x0[r] x1[r] ...

    x..  i8 [rows, n of this input]
    y    i8 [rows, sum of all n]

Rows are the dimensions before the axis. Up to 7 inputs. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import MAX_OPERANDS, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, holds_bytes, product
from synapticos.kernel.status import Status


@struct
class ConcatParams:
    rows: u32
    inputs: u32
    n: Shaped[Array[u32], MAX_OPERANDS]  # bytes in a row of each input


CONCAT_PARAMS_BYTES: Final[u32] = sizeof(ConcatParams)


@fn
def concat_validate(check: LayerCheck) -> Status:
    if check.outputs != 1 or check.params_bytes < CONCAT_PARAMS_BYTES or check.inputs >= MAX_OPERANDS:
        return Status.INVAL
    p = view(ConcatParams, check.params)
    if p.rows > MAX_SIDE or check.rows > p.rows or p.inputs != check.inputs:
        return Status.INVAL
    width: u32 = 0
    for i in range(check.inputs):
        # An operand that holds rows * n bytes keeps the sum of at most 7 of them far below 2**32.
        if not holds_bytes(check, i, product(p.rows, p.n[i])):
            return Status.INVAL
        width += p.n[i]
    if not holds_bytes(check, check.inputs, product(p.rows, width)) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def concat_run(call: LayerCall) -> Status:
    p = view(ConcatParams, call.params)
    width: u32 = 0
    for i in range(p.inputs):
        width += p.n[i]
    at: u32 = 0
    for i in range(p.inputs):
        n = p.n[i]
        for row in range(call.row, call.row_end):
            x = call.data[i]
            y = call.data[p.inputs]
            move(y[row * width + at :], x[row * n :], n)
        at += n
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a CONCATENATION. Plain Python."""
    from math import prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import CONCAT_I8, LayerPlan, Unsupported

    y = op.outputs[0]
    quantize.require_int8(*op.inputs, y)
    if len(op.inputs) >= MAX_OPERANDS:
        raise Unsupported(f"{len(op.inputs)} inputs", f"up to {MAX_OPERANDS - 1}")
    if op.options.get("activation", "NONE") != "NONE":
        raise Unsupported(f"a fused {op.options['activation']}", "none")
    axis = op.options["axis"] % len(y.shape)
    rows = prod(int(n) for n in y.shape[:axis])
    widths = [prod(int(n) for n in x.shape[axis:]) for x in op.inputs]
    for x in op.inputs:
        if (float(x.scale[0]), int(x.zero[0])) != (float(y.scale[0]), int(y.zero[0])):
            raise Unsupported(f'"{x.name}" has another scale than the output', "equal scales")
    params = pack(ConcatParams, rows=rows, inputs=len(widths), n=widths + [0] * (MAX_OPERANDS - len(widths)))
    return LayerPlan(CONCAT_I8, list(op.inputs), [y], params, scratch=0, cost=rows * sum(widths), rows=rows)
