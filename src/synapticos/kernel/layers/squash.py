"""LOGISTIC and TANH of int16: a table of the logistic function, between whose entries lies a straight line.

    logistic  y = (L(|v|) * 2**9 rounded, mirrored for v < 0) >> 10          in units of 2**-15
    tanh      y = 2 L(2 v) - 1, from the same table read twice as fast       in units of 2**-15
    v = (x * multiplier + half) >> shift                                      in units of 1/12288

    x  i16 [rows, n]
    y  i16 [rows, n]; may be x itself

Bounds: multiplier <= 65535, so |x * multiplier| < 2**31.
"""

from math import exp
from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.status import Status


def logistic_entry(i: int) -> int:
    """65536 / (1 + exp(-i / 24)), raised by half of what a line to the next entry misses in its middle."""
    here, middle, next_ = (1 / (1 + exp(-x / 24)) for x in (i, i + 0.5, i + 1))
    return int(65536 * (here + (middle - (here + next_) / 2) / 2) + 0.5)


LOGISTIC = rom(u16, [logistic_entry(i) for i in range(255)] + [65535])
MAX_MULTIPLIER: Final[i32] = 65535


@struct
class SquashParams:
    rows: u32
    n: u32
    multiplier: i32
    shift: u32
    tanh: u32  # 1: TANH, 0: LOGISTIC


SQUASH_PARAMS_BYTES: Final[u32] = sizeof(SquashParams)


@fn(pure=True)
def squash_scale_is_sound(multiplier: i32, shift: u32) -> bool:
    return multiplier >= 0 and multiplier <= MAX_MULTIPLIER and shift <= 30


@fn(pure=True)
def to_table(x: i16, multiplier: i32, shift: u32) -> i32:
    """x in units of the table, 1/12288."""
    v = i32(x) * multiplier
    if shift > 0:
        v = i32((i64(v) + (i64(1) << (shift - 1))) >> shift)
    return v


@fn(pure=True)
def logistic_i16(x: i16, multiplier: i32, shift: u32) -> i16:
    v = to_table(x, multiplier, shift)
    size = u32(abs_i32(v))
    at = size >> 9
    result: i32 = 33553408  # 32767 << 10
    if at < 255:
        a = i32(LOGISTIC[at])
        b = i32(LOGISTIC[at + 1])
        result = (a << 9) + i32(size & 511) * (b - a)
    if v >= 0:
        result += 512
    else:
        result = 33554432 - result + 511
    return i16(result >> 10)


@fn(pure=True)
def tanh_i16(x: i16, multiplier: i32, shift: u32) -> i16:
    v = to_table(x, multiplier, shift)
    size = u32(abs_i32(v))
    at = size >> 8
    result: i32 = 16776960  # 65535 << 8
    if at < 255:
        a = i32(LOGISTIC[at])
        b = i32(LOGISTIC[at + 1])
        result = (a << 8) + i32(size & 255) * (b - a)
    if v >= 0:
        result = result - 8388608 + 128
    else:
        result = -result + 8388608 + 127
    return i16(result >> 8)


@fn(pure=True)
def abs_i32(v: i32) -> i32:
    """|v| for v above -2**31."""
    if v < 0:
        return -v
    return v


@fn
def squash_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, SQUASH_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SquashParams, check.params)
    size = product(p.rows, p.n)
    if not holds(check, 0, DTYPE_INT16, size) or not holds(check, 1, DTYPE_INT16, size) or check.rows > p.rows:
        return Status.INVAL
    if not squash_scale_is_sound(p.multiplier, p.shift) or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def squash_run(call: LayerCall) -> Status:
    p = view(SquashParams, call.params)
    first = call.row * p.n
    x = view(i16, call.data[0])[first:]
    y = view(i16, call.data[1])[first:]
    for i in range((call.row_end - call.row) * p.n):
        if p.tanh == 1:
            y[i] = tanh_i16(x[i], p.multiplier, p.shift)
        else:
            y[i] = logistic_i16(x[i], p.multiplier, p.shift)
    return Status.OK


def table_scale(scale: float) -> tuple[int, int]:
    """Multiplier and shift that bring x into units of the table. Plain Python."""
    from synapticos.kernel.layers.variants import Unsupported

    if scale == 2.0**-12:
        return 3, 0
    multiplier, shift = scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        shift += 1
        multiplier *= 2.0
    if shift > 30 or multiplier > MAX_MULTIPLIER:
        raise Unsupported(f"an input of scale {scale:g}", "2**-28 to 5")
    return int(multiplier), shift


def plan(op: Any) -> Any:
    """The step for a LOGISTIC or TANH of int16. Plain Python."""
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import SQUASH_I16, LayerPlan, Unsupported, as_rows

    x, y = op.inputs[0], op.outputs[0]
    require("int16", x, y)
    (x_scale, x_zero), (y_scale, y_zero) = one_scale(x), one_scale(y)
    if (x_zero, y_zero, y_scale) != (0, 0, 2.0**-15):
        raise Unsupported(f"scales {x_scale:g} and {y_scale:g}, zero points {x_zero} and {y_zero}", "2**-15 and 0")
    rows, n = as_rows(y.shape)
    multiplier, shift = table_scale(x_scale)
    params = pack(SquashParams, rows=rows, n=n, multiplier=multiplier, shift=shift, tanh=int(op.kind == "TANH"))
    return LayerPlan(SQUASH_I16, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
