"""MEAN, SUM and REDUCE_MAX over any dimensions, and ARG_MAX and ARG_MIN over one.

    y[a, b, c] = of x[a, i, b, j, c] for all i, j:
        MEAN, SUM of int8   i8(requantize(sum - count * x_zero, scale))    a mean's scale has 1 / count in it
        MEAN, SUM of int16  i16(requantize(sum, scale))
        MEAN, SUM of f32    sum, divided by count for MEAN
        REDUCE_MAX          the largest
        ARG_MAX, ARG_MIN    the first i whose x is largest or smallest (j is 0 only)

    x  i8, i16 or f32 [outer, first, middle, second, inner]
    y  of the same type, i32 of ARG_*, [outer, middle, inner]

Terms are taken in the order i, j, and a sum of f32 begins at 0; each step is rounded. Rows are [outer, middle]. Bounds:
count <= 65536 keeps a sum of int8 below 2**25, of int16 at most 2**31 from 0 on its lower side.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.layers.requant import OutputRange, range_is_sound, requantize, scale_is_sound, to_i8
from synapticos.kernel.status import Status

MAX_COUNT: Final[u32] = 65536
REDUCE_SUM: Final[u32] = 0
REDUCE_MEAN: Final[u32] = 1
REDUCE_MAX: Final[u32] = 2
ARG_MAX: Final[u32] = 3
ARG_MIN: Final[u32] = 4

REDUCTIONS = {"SUM": 0, "MEAN": 1, "REDUCE_MAX": 2, "ARG_MAX": 3, "ARG_MIN": 4}


@struct
class ReduceParams:
    outer: u32
    first: u32
    middle: u32
    second: u32
    inner: u32
    op: u32
    x_offset: i32  # count * x_zero
    multiplier: i32
    shift: i32
    out: OutputRange


REDUCE_PARAMS_BYTES: Final[u32] = sizeof(ReduceParams)


@fn(pure=True)
def reduce_fits(check: LayerCheck, dtype: u8) -> bool:
    if not takes(check, 1, REDUCE_PARAMS_BYTES, 0):
        return False
    p = view(ReduceParams, check.params)
    count = product(p.first, p.second)
    rows = product(p.outer, p.middle)
    if p.op > ARG_MIN or count > MAX_COUNT or rows > MAX_SIDE or check.rows > rows or p.inner == 0:
        return False
    if p.op >= ARG_MAX and p.second != 1:
        return False
    out = dtype
    if p.op >= ARG_MAX:
        out = DTYPE_INT32
    if not holds(check, 0, dtype, product(product(rows, p.inner), count)):
        return False
    return holds(check, 1, out, product(rows, p.inner)) and apart(check, False)


@fn
def reduce_i8_validate(check: LayerCheck) -> Status:
    if not reduce_fits(check, DTYPE_INT8):
        return Status.INVAL
    p = view(ReduceParams, check.params)
    if not range_is_sound(p.out) or not scale_is_sound(p.multiplier, p.shift):
        return Status.INVAL
    if p.x_offset > 8388608 or p.x_offset < -8388608:
        return Status.INVAL
    return Status.OK


@fn
def reduce_i8_run(call: LayerCall) -> Status:
    p = view(ReduceParams, call.params)
    n = p.inner
    line = p.middle * p.second * n
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])[row // p.middle * p.first * line + row % p.middle * p.second * n :]
        for c in range(n):
            total: i32 = 0
            best = x[c]
            at: u32 = 0
            for i in range(p.first):
                for j in range(p.second):
                    value = x[i * line + j * n + c]
                    total += i32(value)
                    if (p.op == ARG_MIN and value < best) or (p.op != ARG_MIN and value > best):
                        best = value
                        at = i
            if p.op >= ARG_MAX:
                view(i32, call.data[1])[row * n + c] = i32(at)
            elif p.op == REDUCE_MAX:
                view(i8, call.data[1])[row * n + c] = best
            else:
                view(i8, call.data[1])[row * n + c] = to_i8(requantize(total - p.x_offset, p.multiplier, p.shift), p.out)
    return Status.OK


@fn
def reduce_i16_validate(check: LayerCheck) -> Status:
    if not reduce_fits(check, DTYPE_INT16):
        return Status.INVAL
    p = view(ReduceParams, check.params)
    if p.op > REDUCE_MEAN or p.out.zero != 0 or p.out.low < -32768 or p.out.high > 32767 or p.out.low > p.out.high:
        return Status.INVAL
    if not scale_is_sound(p.multiplier, p.shift):
        return Status.INVAL
    return Status.OK


@fn
def reduce_i16_run(call: LayerCall) -> Status:
    p = view(ReduceParams, call.params)
    n = p.inner
    line = p.middle * p.second * n
    for row in range(call.row, call.row_end):
        x = view(i16, call.data[0])[row // p.middle * p.first * line + row % p.middle * p.second * n :]
        for c in range(n):
            total: i32 = 0
            for i in range(p.first):
                for j in range(p.second):
                    total += i32(x[i * line + j * n + c])
            value = requantize(total, p.multiplier, p.shift)
            view(i16, call.data[1])[row * n + c] = i16(min(max(value, p.out.low), p.out.high))
    return Status.OK


@fn
def reduce_f32_validate(check: LayerCheck) -> Status:
    if not reduce_fits(check, DTYPE_FLOAT32):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def reduce_f32_run(call: LayerCall) -> Status:
    p = view(ReduceParams, call.params)
    n = p.inner
    line = p.middle * p.second * n
    for row in range(call.row, call.row_end):
        x = view(f32, call.data[0])[row // p.middle * p.first * line + row % p.middle * p.second * n :]
        for c in range(n):
            total: f32 = 0.0
            best = x[c]
            at: u32 = 0
            for i in range(p.first):
                for j in range(p.second):
                    value = x[i * line + j * n + c]
                    if p.op <= REDUCE_MEAN:
                        total += value
                    elif (p.op == ARG_MIN and value < best) or (p.op != ARG_MIN and value > best):
                        best = value
                        at = i
            if p.op >= ARG_MAX:
                view(i32, call.data[1])[row * n + c] = i32(at)
                continue
            if p.op == REDUCE_MEAN:
                total = total / f32(p.first * p.second)
            if p.op == REDUCE_MAX:
                total = best
            view(f32, call.data[1])[row * n + c] = total
    return Status.OK


def plan(op: Any) -> Any:
    """The step; `options["axes"]` are the dimensions that go. Plain Python."""
    from math import prod

    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import integer_range, require
    from synapticos.kernel.layers.quantize import multiplier_of
    from synapticos.kernel.layers.variants import REDUCE_F32, REDUCE_I8, REDUCE_I16, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    require("int8 int16 float32", x)
    if x.dtype == "int16" and op.kind not in ("SUM", "MEAN"):
        raise Unsupported("int16", "int8 or float32")
    require("int32" if op.kind.startswith("ARG") else x.dtype, y)
    groups = [[False, 1]]  # dimensions that go and stay in turn, beginning with what stays
    for d, n in enumerate(x.shape):
        if n == 1:
            continue
        if groups[-1][0] != (d in op.options["axes"]):
            groups.append([not groups[-1][0], 1])
        groups[-1][1] *= int(n)
    sides = [n for _, n in groups] + [1] * 5
    if len(groups) > 5 or prod((sides[1], sides[3])) > MAX_COUNT:
        raise Unsupported(f"a reduction of {list(x.shape)} over {sorted(op.options['axes'])}", f"{MAX_COUNT} elements")
    # Two groups stay and one goes: what comes last is the inner one.
    outer, first, middle, second, inner = sides[:5]
    if len(groups) <= 3:
        middle, second, inner = 1, 1, middle
    fields: dict[str, Any] = dict(outer=outer, first=first, middle=middle, second=second, inner=inner)
    variant = REDUCE_F32
    if x.dtype in ("int8", "int16"):
        variant = REDUCE_I8 if x.dtype == "int8" else REDUCE_I16
        low, high = integer_range(x.dtype)
        out = {"zero": 0, "low": low, "high": high}
        if op.kind in ("SUM", "MEAN"):
            (x_scale, x_zero), (y_scale, y_zero) = one_scale(x), one_scale(y)
            multiplier, shift = multiplier_of(x_scale / y_scale)
            count = first * second
            if op.kind == "MEAN":
                bits = min(count.bit_length() - 1, 32, 31 + shift)
                multiplier, shift = (multiplier << bits) // count, shift - bits
            if x.dtype == "int16" and (x_zero or y_zero):
                raise Unsupported(f"zero points {x_zero} and {y_zero}", "0, as int16 has it")
            out = {"zero": y_zero, "low": low - y_zero, "high": high - y_zero}
            fields |= dict(multiplier=multiplier, shift=shift, x_offset=count * x_zero)
        elif op.kind == "REDUCE_MAX" and one_scale(x) != one_scale(y):
            raise Unsupported("an output scale other than the input's", "equal scales")
        fields["out"] = out
    params = pack(ReduceParams, op=REDUCTIONS[op.kind], **fields)
    return LayerPlan(variant, [x], [y], params, scratch=0, cost=prod(int(n) for n in x.shape), rows=outer * middle)
