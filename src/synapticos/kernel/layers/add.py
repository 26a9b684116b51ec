"""ADD, int8: both inputs are brought to a common scale with 20 bits below the point, added, and requantized.

    y = i8(requantize(s(x1 - x1_zero) + s(x2 - x2_zero), out))    s(v) = requantize(v << 20, the input's scale)

    x1       i8 [rows, n]
    x2       i8 [rows, n], or [n] for all rows (`x2_step` 0)
    y        i8 [rows, n]; may be x1 or x2 itself
    scratch  i32 [2, 256]: s(v) of every value of x1 and of x2

Bounds: |v| <= 255, so v << 20 < 2**28. No shift is positive and a multiplier is below 2**31, so each term stays below
2**28 and their sum below 2**29.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, has_scratch, holds_i8, product, takes
from synapticos.kernel.layers.requant import MIN_SHIFT, OutputRange, range_is_sound, requantize, to_i8
from synapticos.kernel.status import Status

ADD_BITS: Final[u32] = 20  # below the point


@struct
class AddParams:
    rows: u32
    n: u32  # elements in a row
    x2_step: u32  # elements from one row of x2 to the next: n or 0
    x1_zero: i32
    x1_multiplier: i32
    x1_shift: i32
    x2_zero: i32
    x2_multiplier: i32
    x2_shift: i32
    multiplier: i32  # of the sum
    shift: i32
    out: OutputRange


TABLE: Final[u32] = 256  # values of an i8
SCRATCH: Final[u32] = 2048  # bytes of both tables
ADD_PARAMS_BYTES: Final[u32] = sizeof(AddParams)


@fn(pure=True)
def add_scale_is_sound(multiplier: i32, shift: i32) -> bool:
    return multiplier >= 0 and shift >= MIN_SHIFT and shift <= 0


@fn
def add_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, ADD_PARAMS_BYTES, 0):
        return Status.INVAL
    if not has_scratch(check, SCRATCH):
        return Status.INVAL
    p = view(AddParams, check.params)
    size = product(p.rows, p.n)
    if not holds_i8(check, 0, size) or not holds_i8(check, 2, size) or check.rows > p.rows:
        return Status.INVAL
    if p.x2_step == p.n:
        if not holds_i8(check, 1, size):
            return Status.INVAL
    elif p.x2_step != 0 or not holds_i8(check, 1, p.n):
        return Status.INVAL
    if p.x1_zero < -128 or p.x1_zero > 127 or p.x2_zero < -128 or p.x2_zero > 127 or not range_is_sound(p.out):
        return Status.INVAL
    if not add_scale_is_sound(p.x1_multiplier, p.x1_shift) or not add_scale_is_sound(p.x2_multiplier, p.x2_shift):
        return Status.INVAL
    if not add_scale_is_sound(p.multiplier, p.shift) or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def fill_table(scaled: Ptr[i32], zero: i32, multiplier: i32, shift: i32) -> None:
    """s(v - zero) for each i8 v, in the order of their bytes."""
    for byte in range(TABLE):
        scaled[byte] = requantize((i32(wrap(i8, byte)) - zero) << ADD_BITS, multiplier, shift)


@fn
def add_run(call: LayerCall) -> Status:
    p = view(AddParams, call.params)
    n = p.n
    multiplier = p.multiplier
    shift = p.shift
    out = p.out
    # Two requantizations of an element become two loads; the tables pay from some 300 elements on.
    scaled1 = view(i32, call.scratch)
    scaled2 = scaled1[TABLE:]
    fill_table(scaled1, p.x1_zero, p.x1_multiplier, p.x1_shift)
    fill_table(scaled2, p.x2_zero, p.x2_multiplier, p.x2_shift)
    for row in range(call.row, call.row_end):
        x1 = call.data[0][row * n :]
        x2 = call.data[1][row * p.x2_step :]
        y = view(i8, call.data[2])[row * n :]
        for i in range(n):
            y[i] = to_i8(requantize(scaled1[x1[i]] + scaled2[x2[i]], multiplier, shift), out)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for an ADD. Plain Python."""
    from math import prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import ADD_I8, LayerPlan, Unsupported, as_rows

    x1, x2 = op.inputs
    y = op.outputs[0]
    quantize.require_int8(x1, x2, y)
    if prod(x1.shape) < prod(x2.shape):
        x1, x2 = x2, x1
    size = prod(y.shape)
    trailing = list(x2.shape)
    while trailing and trailing[0] == 1:
        trailing.pop(0)
    if prod(x1.shape) != size or (list(x1.shape)[len(x1.shape) - len(trailing) :] != trailing):
        raise Unsupported(
            f"adding {list(x1.shape)} and {list(x2.shape)}",
            "equal shapes, or one that equals the other's last dimensions",
        )
    if prod(x2.shape) == size:
        rows, n = as_rows(y.shape)
        step = n
    else:
        n, step = prod(trailing), 0
        rows = size // n
    twice = 2.0 * max(float(x1.scale[0]), float(x2.scale[0]))
    scales = [
        quantize.multiplier_of(float(x1.scale[0]) / twice),
        quantize.multiplier_of(float(x2.scale[0]) / twice),
        quantize.multiplier_of(twice / ((1 << ADD_BITS) * float(y.scale[0]))),
    ]
    if scales[2][1] > 0:
        raise Unsupported(f"an output scale 2**{ADD_BITS} times finer than the inputs'", "scales nearer each other")
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    zero = int(y.zero[0])
    params = pack(
        AddParams, rows=rows, n=n, x2_step=step,
        x1_zero=int(x1.zero[0]), x1_multiplier=scales[0][0], x1_shift=scales[0][1],
        x2_zero=int(x2.zero[0]), x2_multiplier=scales[1][0], x2_shift=scales[1][1],
        multiplier=scales[2][0], shift=scales[2][1],
        out={"zero": zero, "low": low - zero, "high": high - zero},
    )  # fmt: skip
    return LayerPlan(ADD_I8, [x1, x2], [y], params, scratch=SCRATCH, cost=size, rows=rows)
