"""Any function of one byte, by a table of its 256 values.

    y = table[x]    x taken as u8

    x      i8 or u8 [rows, n]
    table  u8 [256]  constant: the results' bytes
    y      i8 or u8 [rows, n]; may be x itself

The tables are made when a model is compiled (`functions`), in the reference's own fixed-point steps, so the chip needs
no exp and no division. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_UINT8, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, holds_bytes, product, takes
from synapticos.kernel.layers.operands import holds_const
from synapticos.kernel.status import Status


@struct
class LookupParams:
    rows: u32
    n: u32  # elements in a row


LOOKUP_PARAMS_BYTES: Final[u32] = sizeof(LookupParams)


@fn
def lookup_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, LOOKUP_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(LookupParams, check.params)
    size = product(p.rows, p.n)
    if not holds_bytes(check, 0, size) or not holds_bytes(check, 2, size) or check.rows > p.rows:
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_UINT8, 256) or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def lookup_run(call: LayerCall) -> Status:
    p = view(LookupParams, call.params)
    first = call.row * p.n
    x = call.data[0][first:]
    table = call.data[1]
    y = call.data[2][first:]
    for i in range((call.row_end - call.row) * p.n):
        y[i] = table[x[i]]
    return Status.OK


def plan(op: Any) -> Any:
    """The step for an operator that maps each int8 by itself. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.functions import FUNCTIONS
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import LOOKUP, Const, LayerPlan, as_rows

    x, y = op.inputs[0], op.outputs[0]
    require("int8 uint8", x, y)
    low, high = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    results = np.array(FUNCTIONS[op.kind](op, range(low, high + 1)), np.int64)
    limits = np.iinfo(y.dtype)
    assert results.min() >= limits.min and results.max() <= limits.max
    table = np.zeros(256, np.uint8)
    table[np.arange(low, high + 1) & 255] = results & 255
    rows, n = as_rows(y.shape)
    params = pack(LookupParams, rows=rows, n=n)
    return LayerPlan(LOOKUP, [x, Const(f"{op.kind}/table", table)], [y], params, scratch=0, cost=rows * n, rows=rows)
