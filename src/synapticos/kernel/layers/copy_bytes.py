"""RESHAPE where the result cannot be the same bytes under another shape: a copy.

    x, y  any type, equal size

Rows are bytes in `row_bytes` pieces. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.status import Status


@struct
class CopyParams:
    rows: u32
    row_bytes: u32


COPY_PARAMS_BYTES: Final[u32] = sizeof(CopyParams)


@fn
def copy_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, COPY_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(CopyParams, check.params)
    size = product(p.rows, p.row_bytes)
    x = check.tensor(0)
    y = check.tensor(1)
    if x is None or y is None or size == 0 or check.rows > p.rows:
        return Status.INVAL
    if x.bytes != size or y.bytes != size or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def copy_run(call: LayerCall) -> Status:
    p = view(CopyParams, call.params)
    at = call.row * p.row_bytes
    x = call.data[0]
    y = call.data[1]
    move(y[at:], x[at:], (call.row_end - call.row) * p.row_bytes)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a RESHAPE. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.variants import COPY, LayerPlan, as_rows

    x, y = op.inputs[0], op.outputs[0]
    rows, n = as_rows(y.shape)
    params = pack(CopyParams, rows=rows, row_bytes=n * np.dtype(y.dtype).itemsize)
    return LayerPlan(COPY, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
