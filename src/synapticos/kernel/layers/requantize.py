"""QUANTIZE from int8 to int8: the same reals at another scale.

    y = i8(requantize(x - x_zero, scale))

    x  i8 [rows, n]
    y  i8 [rows, n]; may be x itself

Bounds: |x - x_zero| <= 255; a shift to the left is modulo 2**32, as everywhere.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, holds_i8, product, takes
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, scale_is_sound, to_i8
from synapticos.kernel.status import Status


@struct
class RequantizeParams:
    rows: u32
    n: u32  # elements in a row
    x_zero: i32
    multiplier: i32
    shift: i32
    out: OutputRange


REQUANTIZE_PARAMS_BYTES: Final[u32] = sizeof(RequantizeParams)


@fn
def requantize_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, REQUANTIZE_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(RequantizeParams, check.params)
    size = product(p.rows, p.n)
    if not holds_i8(check, 0, size) or not holds_i8(check, 1, size) or check.rows > p.rows:
        return Status.INVAL
    if p.x_zero < -128 or p.x_zero > 127 or not scale_is_sound(p.multiplier, p.shift) or not range_is_sound(p.out):
        return Status.INVAL
    if not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def requantize_run(call: LayerCall) -> Status:
    p = view(RequantizeParams, call.params)
    first = call.row * p.n
    x = view(i8, call.data[0])[first:]
    y = view(i8, call.data[1])[first:]
    zero = p.x_zero
    multiplier = p.multiplier
    shift = p.shift
    for i in range((call.row_end - call.row) * p.n):
        y[i] = to_i8(requantize(i32(x[i]) - zero, multiplier, shift), p.out)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a QUANTIZE. Plain Python."""
    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import REQUANTIZE_I8, LayerPlan, as_rows

    x, y = op.inputs[0], op.outputs[0]
    quantize.require_int8(x, y)
    rows, n = as_rows(y.shape)
    multiplier, shift = quantize.multiplier_of(float(x.scale[0]) / float(y.scale[0]))
    zero = int(y.zero[0])
    params = pack(
        RequantizeParams, rows=rows, n=n, x_zero=int(x.zero[0]), multiplier=multiplier, shift=shift,
        out={"zero": zero, "low": -128 - zero, "high": 127 - zero},
    )  # fmt: skip
    return LayerPlan(REQUANTIZE_I8, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
