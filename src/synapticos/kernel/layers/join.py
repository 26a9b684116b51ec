"""CONCATENATION and PACK of any type along one axis: row by row, a piece of each input.

    y[r] = x0[r] x1[r] ...

    x..  any one type [rows, n of this input]
    y    the same type [rows, sum of all n]

Rows are the dimensions before the axis. Up to 7 inputs. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import MAX_OPERANDS, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product
from synapticos.kernel.status import Status


@struct
class JoinParams:
    rows: u32
    inputs: u32
    n: Shaped[Array[u32], MAX_OPERANDS]  # bytes in a row of each input


JOIN_PARAMS_BYTES: Final[u32] = sizeof(JoinParams)


@fn
def join_validate(check: LayerCheck) -> Status:
    if check.outputs != 1 or check.params_bytes < JOIN_PARAMS_BYTES or check.inputs >= MAX_OPERANDS:
        return Status.INVAL
    p = view(JoinParams, check.params)
    if p.rows > MAX_SIDE or check.rows > p.rows or p.inputs != check.inputs:
        return Status.INVAL
    y = check.tensor(check.inputs)
    if y is None:
        return Status.INVAL
    width: u32 = 0
    for i in range(check.inputs):
        x = check.tensor(i)
        # An operand that holds rows * n bytes keeps the sum of at most 7 of them far below 2**32.
        if x is None or x.dtype != y.dtype or x.bytes != product(p.rows, p.n[i]):
            return Status.INVAL
        width += p.n[i]
    if y.bytes != product(p.rows, width) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def join_run(call: LayerCall) -> Status:
    p = view(JoinParams, call.params)
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


def plan_join(op: Any, axis: int) -> Any:
    """The step that puts a row of each input behind the other. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import JOIN, LayerPlan, Unsupported

    y = op.outputs[0]
    require(y.dtype, *op.inputs)
    if len(op.inputs) >= MAX_OPERANDS:
        raise Unsupported(f"{len(op.inputs)} inputs", f"up to {MAX_OPERANDS - 1}")
    if op.options.get("activation", "NONE") != "NONE":
        raise Unsupported(f"a fused {op.options['activation']}", "none")
    rows = prod(int(n) for n in y.shape[:axis])
    size = np.dtype(y.dtype).itemsize
    widths = [prod(int(n) for n in x.shape) // rows * size for x in op.inputs]
    params = pack(JoinParams, rows=rows, inputs=len(widths), n=widths + [0] * (MAX_OPERANDS - len(widths)))
    return LayerPlan(JOIN, list(op.inputs), [y], params, scratch=0, cost=rows * sum(widths) // size, rows=rows)


def plan(op: Any) -> Any:
    """The step for a CONCATENATION or a PACK. Plain Python."""
    return plan_join(op, op.options["axis"])
