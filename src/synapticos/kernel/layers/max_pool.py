"""MAX_POOL_2D, int8: the largest element of each window's part inside the picture, channel by channel.

    y[r, c, k] = min(max(max_{i, j} x[r * s + i - top, c * s + j - left, k], low), high)

    x  i8 [batch, x_h, x_w, depth]
    y  i8 [batch, y_h, y_w, depth]

Rows are output rows. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import holds_i8, takes, trails
from synapticos.kernel.layers.window import (
    Window, end_tap, first_tap, window_is_sound, window_rows, window_x_bytes, window_y_bytes,
)  # fmt: skip
from synapticos.kernel.status import Status


@struct
class PoolParams:
    window: Window  # k_h, k_w: the pooled window; no dilation
    low: i32
    high: i32


POOL_PARAMS_BYTES: Final[u32] = sizeof(PoolParams)


@fn(pure=True)
def pool_operands_fit(check: LayerCheck) -> bool:
    """Whether a pooling step's operands have the sizes that its parameters say."""
    if not takes(check, 1, POOL_PARAMS_BYTES, 0):
        return False
    p = view(PoolParams, check.params)
    win = p.window
    if not window_is_sound(win) or win.dilation_h != 1 or win.dilation_w != 1:
        return False
    if not holds_i8(check, 0, window_x_bytes(win)) or not holds_i8(check, 1, window_y_bytes(win, win.depth)):
        return False
    if check.rows > window_rows(win) or p.low < -128 or p.high > 127 or p.low > p.high:
        return False
    return trails(check)


@fn
def max_pool_validate(check: LayerCheck) -> Status:
    if not pool_operands_fit(check):
        return Status.INVAL
    return Status.OK


@fn(disjoint=True)
def keep_larger(y: Ptr[i8], x: Ptr[i8], n: u32) -> None:
    for c in range(n):
        y[c] = max(y[c], x[c])


@fn
def max_pool_run(call: LayerCall) -> Status:
    p = view(PoolParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    y = view(i8, call.data[1])
    n = win.depth
    low = i8(p.low)
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
            best = y[at : at + n]
            fill(best, low, n)
            for ky in range(y0, y1):
                for kx in range(x0, x1):
                    tap = u32(top + i32(ky)) * line + u32(left + i32(kx)) * n
                    keep_larger(best, source[tap : tap + n], n)
            if p.high < 127:
                for c in range(n):
                    best[c] = min(best[c], i8(p.high))
            at += n
            left += i32(win.stride_w)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a MAX_POOL_2D. Plain Python."""
    from synapticos.kernel.layers.variants import MAX_POOL_I8

    return plan_pool(op, MAX_POOL_I8)


def plan_pool(op: Any, variant: int) -> Any:
    """The step for a pooling operator. Plain Python."""
    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import LayerPlan, Unsupported
    from synapticos.kernel.layers.window import window_fields

    x, y = op.inputs[0], op.outputs[0]
    quantize.require_int8(x, y)
    if len(x.shape) != 4:
        raise Unsupported(f"rank {len(x.shape)}", "rank 4")
    if (float(x.scale[0]), int(x.zero[0])) != (float(y.scale[0]), int(y.zero[0])):
        raise Unsupported("an output scale other than the input's", "equal scales")
    window = window_fields(op, op.options["filter_h"], op.options["filter_w"])
    low, high = quantize.activation_range(op.options.get("activation", "NONE"), y)
    cost = window["batch"] * window["y_h"] * window["y_w"] * window["depth"] * window["k_h"] * window["k_w"]
    params = pack(PoolParams, window=window, low=low, high=high)
    return LayerPlan(variant, [x], [y], params, scratch=0, cost=cost, rows=window["batch"] * window["y_h"])
