"""GATHER with indices that are computed: lines of a tensor, as an embedding is looked up. (`moves` has constant ones.)

    y[a, i] = x[a, at[i]]    an index outside is the nearest inside

    x   any type [outer, lines, run bytes]
    at  i32 [count]
    y   the same type [outer, count, run bytes]

Rows are [outer, count]. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.status import Status


@struct
class GatherParams:
    outer: u32
    lines: u32
    count: u32
    run: u32  # bytes


GATHER_PARAMS_BYTES: Final[u32] = sizeof(GatherParams)


@fn
def gather_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, GATHER_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(GatherParams, check.params)
    x = check.tensor(0)
    y = check.tensor(2)
    rows = product(p.outer, p.count)
    if x is None or y is None or x.dtype != y.dtype or rows > MAX_SIDE or check.rows > rows or p.lines == 0:
        return Status.INVAL
    if p.lines > 2147483647 or x.bytes != product(product(p.outer, p.lines), p.run) or x.bytes == 0:
        return Status.INVAL
    if y.bytes != product(rows, p.run) or not holds(check, 1, DTYPE_INT32, p.count) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def gather_run(call: LayerCall) -> Status:
    p = view(GatherParams, call.params)
    x = call.data[0]
    at = view(i32, call.data[1])
    y = call.data[2]
    for row in range(call.row, call.row_end):
        line = u32(min(max(at[row % p.count], 0), i32(p.lines - 1)))
        move(y[row * p.run :], x[(row // p.count * p.lines + line) * p.run :], p.run)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a GATHER. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers import moves
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import GATHER, MAX_ROWS, LayerPlan, Unsupported

    if "indices" in op.options:
        return moves.plan(op)
    (x, at), y = op.inputs, op.outputs[0]
    require("int32", at)
    require(x.dtype, y)
    axis = op.options["axis"]
    if not (np.array_equal(x.scale, y.scale) and np.array_equal(x.zero, y.zero)):
        raise Unsupported("an output of another scale than the input", "equal ones")
    outer, count = prod(int(n) for n in x.shape[:axis]), at.elements
    run = prod(int(n) for n in x.shape[axis + 1 :]) * np.dtype(x.dtype).itemsize
    if outer * count > MAX_ROWS:
        raise Unsupported(f"{outer * count} lines", f"up to {MAX_ROWS}")
    params = pack(GatherParams, outer=outer, lines=int(x.shape[axis]), count=count, run=run)
    return LayerPlan(GATHER, [x, at], [y], params, scratch=0, cost=y.elements, rows=outer * count)
