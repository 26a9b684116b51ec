"""RESIZE_BILINEAR, int8 and float32: each output element between the four nearest of the input.

    int8  y = round((x00 * (1024 - v) * (1024 - u) + x10 * v * (1024 - u) + x01 * (1024 - v) * u + x11 * v * u) / 2**20)
    f32   y = x00 * (1 - v) * (1 - u) + x10 * v * (1 - u) + x01 * (1 - v) * u + x11 * v * u

    x   i8 or f32 [batch, x_h, x_w, depth]
    at  i32 [y_h + y_w, 3]  constant: for each output line, then column: first and second line of x, and how far between (v,
                            u): in 1024ths, or the bits of an f32
    y   of the same type [batch, y_h, y_w, depth]

Halves go away from 0; f32 rounds each operation from the left. Rows are output lines. Modulo 2**32 for a distance that no
model has.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.status import Status


@struct
class ResizeParams:
    batch: u32
    x_h: u32
    x_w: u32
    y_h: u32
    y_w: u32
    depth: u32


RESIZE_PARAMS_BYTES: Final[u32] = sizeof(ResizeParams)


@fn(pure=True)
def resize_fits(check: LayerCheck, dtype: u8) -> bool:
    """Whether all operands have their sizes and every line and column is one of x."""
    if not takes(check, 2, RESIZE_PARAMS_BYTES, 0):
        return False
    p = view(ResizeParams, check.params)
    if p.batch > MAX_SIDE or p.x_h > MAX_SIDE or p.x_w > MAX_SIDE or p.y_h > MAX_SIDE or p.y_w > MAX_SIDE or p.depth > MAX_SIDE:
        return False
    if not holds(check, 0, dtype, product(product(product(p.batch, p.x_h), p.x_w), p.depth)):
        return False
    if not holds(check, 2, dtype, product(product(product(p.batch, p.y_h), p.y_w), p.depth)):
        return False
    if not holds_const(check, 1, DTYPE_INT32, 3 * (p.y_h + p.y_w)) or check.rows > product(p.batch, p.y_h):
        return False
    table = check.tensor(1)
    if table is None:
        return False
    at = view(u32, check.consts[table.offset :])
    for i in range(p.y_h + p.y_w):
        side = p.x_h
        if i >= p.y_h:
            side = p.x_w
        if at[3 * i] >= side or at[3 * i + 1] >= side:
            return False
        if dtype == DTYPE_INT8 and wrap(u32, at[3 * i + 2] + 1024) > 3071:
            return False
        if dtype == DTYPE_FLOAT32 and isnan(from_bits(at[3 * i + 2])):
            return False
    return apart(check, False)


@fn
def resize_i8_validate(check: LayerCheck) -> Status:
    if not resize_fits(check, DTYPE_INT8):
        return Status.INVAL
    return Status.OK


@fn
def resize_f32_validate(check: LayerCheck) -> Status:
    if not resize_fits(check, DTYPE_FLOAT32):
        return Status.INVAL
    return Status.OK


@fn
def resize_i8_run(call: LayerCall) -> Status:
    p = view(ResizeParams, call.params)
    at = view(i32, call.data[1])
    columns = at[3 * p.y_h :]
    n = p.depth
    for row in range(call.row, call.row_end):
        line = row % p.y_h
        picture = view(i8, call.data[0])[row // p.y_h * p.x_h * p.x_w * n :]
        top = picture[u32(at[3 * line]) * p.x_w * n :]
        bottom = picture[u32(at[3 * line + 1]) * p.x_w * n :]
        v = at[3 * line + 2]
        for column in range(p.y_w):
            left = u32(columns[3 * column]) * n
            right = u32(columns[3 * column + 1]) * n
            u = columns[3 * column + 2]
            y = view(i8, call.data[2])[(row * p.y_w + column) * n :]
            for c in range(n):
                upper = wrap(i32, i32(top[left + c]) * (1024 - u) + i32(top[right + c]) * u)
                lower = wrap(i32, i32(bottom[left + c]) * (1024 - u) + i32(bottom[right + c]) * u)
                total = wrap(i32, upper * (1024 - v) + lower * v)
                half: i32 = -524288
                if total > 0:
                    half = 524288
                y[c] = wrap(i8, div_trunc(wrap(i32, total + half), 1048576))
    return Status.OK


@fn(nan=True)
def resize_f32_run(call: LayerCall) -> Status:
    p = view(ResizeParams, call.params)
    at = view(u32, call.data[1])
    columns = at[3 * p.y_h :]
    n = p.depth
    for row in range(call.row, call.row_end):
        line = row % p.y_h
        picture = view(f32, call.data[0])[row // p.y_h * p.x_h * p.x_w * n :]
        top = picture[at[3 * line] * p.x_w * n :]
        bottom = picture[at[3 * line + 1] * p.x_w * n :]
        v = from_bits(at[3 * line + 2])
        for column in range(p.y_w):
            left = columns[3 * column] * n
            right = columns[3 * column + 1] * n
            u = from_bits(columns[3 * column + 2])
            y = view(f32, call.data[2])[(row * p.y_w + column) * n :]
            for c in range(n):
                total = top[left + c] * (1.0 - v) * (1.0 - u)
                total += bottom[left + c] * v * (1.0 - u)
                total += top[right + c] * (1.0 - v) * u
                total += bottom[right + c] * v * u
                y[c] = total + 0.0
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a RESIZE_BILINEAR; `options["places"]`, if there: where in x each line and column of y lies. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import RESIZE_F32, RESIZE_I8, Const, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    require("int8 float32", x)
    require(x.dtype, y)
    if len(x.scale) and (float(x.scale[0]), int(x.zero[0])) != (float(y.scale[0]), int(y.zero[0])):
        raise Unsupported("an output scale other than the input's", "equal scales")
    corners, centres = op.options.get("align_corners"), op.options.get("half_pixel_centers")
    one = np.float32

    def reals(side: int, out: int) -> list[list[int]]:
        scale = one(side - 1) / one(out - 1) if corners and out > 1 else one(side) / one(out)
        rows = []
        for i in range(out):
            at = one((one(i) + one(0.5)) * scale) - one(0.5) if centres else one(i) * scale
            low = max(int(np.floor(at)), 0)
            high = min(int(np.ceil(at)), side - 1)
            rows.append([low, high, int(np.array(at - one(low), np.float32).view(np.int32))])
        return rows

    def integers(side: int, out: int) -> list[list[int]]:
        scale = (1024 * side + out // 2) // out
        if corners and out > 1:
            scale = (1024 * (side - 1) + (out - 1) // 2) // (out - 1)
        rows = []
        for i in range(out):
            at = i * scale + (scale // 2 - 512 if centres else 0)
            low = max(int(at / 1024), 0)
            rows.append([low, min(int((at + 1023) / 1024), side - 1), at - 1024 * low])
        return rows

    (batch, x_h, x_w, depth), (_, y_h, y_w, _) = ([int(n) for n in t.shape] for t in (x, y))
    table = integers if x.dtype == "int8" else reals

    def given(side: int, places: list[float]) -> list[list[int]]:
        lows = [min(int(at), side - 1) for at in places]
        return [[low, min(low + 1, side - 1), round(1024 * (at - low))] for at, low in zip(places, lows)]

    if x.dtype == "int8" and "places" in op.options:
        lines, columns = op.options["places"]
        at = np.array(given(x_h, lines) + given(x_w, columns), np.int32)
    else:
        at = np.array(table(x_h, y_h) + table(x_w, y_w), np.int32)
    if max(batch, x_h, x_w, y_h, y_w, depth) > MAX_SIDE:
        raise Unsupported(f"{list(x.shape)} to {list(y.shape)}", f"sides up to {MAX_SIDE}")
    params = pack(ResizeParams, batch=batch, x_h=x_h, x_w=x_w, y_h=y_h, y_w=y_w, depth=depth)
    variant = RESIZE_I8 if x.dtype == "int8" else RESIZE_F32
    cost = batch * y_h * y_w * depth
    return LayerPlan(variant, [x, Const("resize/at", at)], [y], params, scratch=0, cost=cost, rows=batch * y_h)
