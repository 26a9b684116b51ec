"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of float32, row by row.

    SOFTMAX      e_c = exp((x_c - max) * beta); y_c = e_c / sum e
    LOG_SOFTMAX  y_c = (x_c - max) - log(sum exp(x_c - max))
    L2           y_c = x_c / max(sqrt(sum x_c**2), 1e-6)

    x  f32 [rows, n]
    y  f32 [rows, n]; may be x itself, but for LOG_SOFTMAX

Sums begin at 0 and take their terms in order; each operation is rounded. exp, log and sqrt are those of `fmath`.
Takes no NaN and no infinity.

Beside the reference kernels, whose exp and log are the C library's, 150 random models differ by at most 5 units in the last place
(SOFTMAX) and 15 (LOG_SOFTMAX, where x - max and the logarithm nearly cancel); L2 is equal.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.fmath import f32_exp, f32_log, f32_sqrt
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.status import Status

ROWS_SOFTMAX: Final[u32] = 0
ROWS_LOG: Final[u32] = 1
ROWS_L2: Final[u32] = 2
LEAST_NORM = 9.999999974752427e-07

ROWS = {"SOFTMAX": 0, "LOG_SOFTMAX": 1, "L2_NORMALIZATION": 2}


@struct
class RowsF32Params:
    rows: u32
    n: u32
    op: u32
    beta: f32


ROWS_F32_PARAMS_BYTES: Final[u32] = sizeof(RowsF32Params)


@fn
def rows_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, ROWS_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(RowsF32Params, check.params)
    size = product(p.rows, p.n)
    if not holds(check, 0, DTYPE_FLOAT32, size) or not holds(check, 1, DTYPE_FLOAT32, size) or check.rows > p.rows:
        return Status.INVAL
    if p.op > ROWS_L2 or isnan(p.beta) or not apart(check, p.op != ROWS_LOG):
        return Status.INVAL
    return Status.OK


@fn
def rows_f32_run(call: LayerCall) -> Status:
    p = view(RowsF32Params, call.params)
    n = p.n
    for row in range(call.row, call.row_end):
        x = view(f32, call.data[0])[row * n :]
        y = view(f32, call.data[1])[row * n :]
        largest = x[0]
        total: f32 = 0.0
        if p.op == ROWS_L2:
            for c in range(n):
                total += x[c] * x[c]
            norm = f32_sqrt(total)
            if norm < LEAST_NORM:
                norm = LEAST_NORM
            for c in range(n):
                y[c] = x[c] / norm
            continue
        for c in range(1, n):
            if largest < x[c]:
                largest = x[c]
        if p.op == ROWS_SOFTMAX:
            for c in range(n):
                y[c] = f32_exp((x[c] - largest) * p.beta)
                total += y[c]
            for c in range(n):
                y[c] = y[c] / total
        else:
            for c in range(n):
                total += f32_exp(x[c] - largest)
            log = f32_log(total)
            for c in range(n):
                y[c] = x[c] - largest - log
    return Status.OK


def plan(op: Any) -> Any:
    """The step. Plain Python."""
    from math import prod

    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import MAX_ROWS, ROWS_F32, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    require("float32", x, y)
    n = int(x.shape[-1])
    rows = prod(int(k) for k in x.shape) // n
    if rows > MAX_ROWS:
        raise Unsupported(f"{rows} rows", f"up to {MAX_ROWS}")
    params = pack(RowsF32Params, rows=rows, n=n, op=ROWS[op.kind], beta=op.options.get("beta", 1.0))
    return LayerPlan(ROWS_F32, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
