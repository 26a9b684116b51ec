"""AVERAGE_POOL_2D, int8: the mean of each window's part inside the picture, rounded to nearest, halves away from 0.

    y[r, c, k] = clamp((sum +- count / 2) / count)    sum and count over the taps inside; both quotients truncate

    x  i8 [batch, x_h, x_w, depth]
    y  i8 [batch, y_h, y_w, depth]

Rows are output rows. Bounds: count <= 255 * 255 and |x| <= 128, so |sum| < 2**23.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.max_pool import PoolParams, plan_pool, pool_operands_fit
from synapticos.kernel.layers.window import end_tap, first_tap
from synapticos.kernel.status import Status


@fn
def average_pool_validate(check: LayerCheck) -> Status:
    if not pool_operands_fit(check):
        return Status.INVAL
    return Status.OK


@fn
def average_pool_run(call: LayerCall) -> Status:
    p = view(PoolParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    y = view(i8, call.data[1])
    n = win.depth
    line = win.x_w * n
    picture = win.x_h * line
    at = call.row * win.y_w * n
    for row in range(call.row, call.row_end):
        source = x[row // win.y_h * picture :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        y0 = first_tap(top, 1)
        y1 = end_tap(top, 1, win.x_h, win.k_h)
        left = -i32(win.pad_left)
        for column in range(win.y_w):
            x0 = first_tap(left, 1)
            x1 = end_tap(left, 1, win.x_w, win.k_w)
            count: i32 = 0
            if y1 > y0 and x1 > x0:
                count = i32((y1 - y0) * (x1 - x0))
            for c in range(n):
                total: i32 = 0
                for ky in range(y0, y1):
                    for kx in range(x0, x1):
                        total += source[u32(top + i32(ky)) * line + u32(left + i32(kx)) * n + c]
                mean: i32 = 0
                if count > 0:
                    half = count >> 1
                    if total > 0:
                        mean = div_trunc(total + half, count)
                    else:
                        mean = div_trunc(total - half, count)
                y[at + c] = i8(min(max(mean, p.low), p.high))
            at += n
            left += i32(win.stride_w)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for an AVERAGE_POOL_2D. Plain Python."""
    from synapticos.kernel.layers.variants import AVERAGE_POOL_I8

    return plan_pool(op, AVERAGE_POOL_I8)
