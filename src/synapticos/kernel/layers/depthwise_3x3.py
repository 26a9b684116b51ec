"""DEPTHWISE_CONV_2D, int8, 3 x 3 without dilation, one output a channel: the window of nearly every such layer.

Formula, operands, rows and bounds as in `depthwise`. Where the window lies inside the picture its three lines are
read where they are; at the border they are gathered first, with the zero point around them.
"""

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.layers.depthwise import (
    DEPTHWISE_PARAMS_BYTES, DepthwiseParams, depthwise_operands_fit, requantize_pixel,
)  # fmt: skip
from synapticos.kernel.layers.window import gather, is_inside
from synapticos.kernel.status import Status


@fn
def depthwise_3x3_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, DEPTHWISE_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(DepthwiseParams, check.params)
    win = p.window
    if not depthwise_operands_fit(check, p) or win.k_h != 3 or win.k_w != 3 or p.multiplier != 1:
        return Status.INVAL
    if win.dilation_h != 1 or win.dilation_w != 1:
        return Status.INVAL
    return Status.OK


@fn(disjoint=True)
def nine_taps(x: Ptr[i8], line: u32, w: Ptr[i8], acc: Ptr[i32], n: u32) -> None:
    """acc[c] = the sum over the 3 x 3 window of channel c; `line` elements from one line of x to the next."""
    x0 = x[0:]
    x1 = x[line:]
    x2 = x[2 * line :]
    w0 = w[0:]
    w1 = w[3 * n :]
    w2 = w[6 * n :]
    m = 2 * n
    for c in range(n):
        total = i32(x0[c]) * w0[c] + i32(x0[c + n]) * w0[c + n] + i32(x0[c + m]) * w0[c + m]
        total += i32(x1[c]) * w1[c] + i32(x1[c + n]) * w1[c + n] + i32(x1[c + m]) * w1[c + m]
        acc[c] = total + i32(x2[c]) * w2[c] + i32(x2[c + n]) * w2[c + n] + i32(x2[c + m]) * w2[c + m]


@fn
def depthwise_3x3_run(call: LayerCall) -> Status:
    p = view(DepthwiseParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i8, call.data[4])
    n = win.depth
    acc = view(i32, call.scratch[: 4 * n])
    patch = view(i8, call.scratch)[4 * n :]
    zero = i8(p.x_zero)
    line = win.x_w * n
    picture = win.x_h * line
    for row in range(call.row, call.row_end):
        source = x[row // win.y_h * picture :]
        top = i32(row % win.y_h * win.stride_h) - i32(win.pad_top)
        left = -i32(win.pad_left)
        inside = is_inside(top, 1, win.x_h, 3)
        at = row * win.y_w * n
        for column in range(win.y_w):
            if inside and is_inside(left, 1, win.x_w, 3):
                nine_taps(source[u32(top) * line + u32(left) * n :], line, w, acc, n)
            else:
                gather(win, source, top, left, zero, patch)
                nine_taps(patch, 3 * n, w, acc, n)
            requantize_pixel(acc, bias, scale, y[at : at + n], n, p.out)
            at += n
            left += i32(win.stride_w)
    return Status.OK


def fits(window: dict[str, int], multiplier: int) -> bool:
    """Whether a window of these fields can take this way. Plain Python."""
    sizes = (window["k_h"], window["k_w"], window["dilation_h"], window["dilation_w"], multiplier)
    return sizes == (3, 3, 1, 1, 1)
