"""DEPTHWISE_CONV_2D, int8, 3 x 3 without dilation, one output a channel: the window of nearly every such layer.

Formula, operands, rows and bounds as in `depthwise`; scratch holds the patch only. Where the window lies inside the
picture its three lines are read where they are; at the border they are gathered first, with the zero point around
them.
"""

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import has_scratch, takes
from synapticos.kernel.layers.depthwise import DEPTHWISE_PARAMS_BYTES, DepthwiseParams, depthwise_operands_fit
from synapticos.kernel.layers.requant import OutputRange, requantize, to_i8
from synapticos.kernel.layers.window import gather, is_inside, window_patch_bytes
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
    if not has_scratch(check, window_patch_bytes(win)):
        return Status.INVAL
    return Status.OK


@fn(disjoint=True)
def pixel_3x3(
    x: Ptr[i8], line: u32, w: Ptr[i8], bias: Ptr[i32], scale: Ptr[i32], y: Ptr[i8], n: u32, out: OutputRange
) -> None:
    """One output pixel; `line` elements from one line of x to the next."""
    x1 = x[line:]
    x2 = x[2 * line :]
    w1 = w[3 * n :]
    w2 = w[6 * n :]
    m = 2 * n
    for c in range(n):
        total = i32(x[c]) * w[c] + i32(x[c + n]) * w[c + n] + i32(x[c + m]) * w[c + m]
        total += i32(x1[c]) * w1[c] + i32(x1[c + n]) * w1[c + n] + i32(x1[c + m]) * w1[c + m]
        total += i32(x2[c]) * w2[c] + i32(x2[c + n]) * w2[c + n] + i32(x2[c + m]) * w2[c + m]
        y[c] = to_i8(requantize(wrap(i32, total + bias[c]), scale[2 * c], scale[2 * c + 1]), out)


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
    patch = view(i8, call.scratch)
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
                at_x = u32(top) * line + u32(left) * n
                pixel_3x3(source[at_x : at_x + 2 * line + 3 * n], line, w, bias, scale, y[at : at + n], n, p.out)
            else:
                gather(win, source, top, left, zero, patch)
                pixel_3x3(patch, 3 * n, w, bias, scale, y[at : at + n], n, p.out)
            at += n
            left += i32(win.stride_w)
    return Status.OK


def fits(window: dict[str, int], multiplier: int) -> bool:
    """Whether a window of these fields can take this way. Plain Python."""
    sizes = (window["k_h"], window["k_w"], window["dilation_h"], window["dilation_w"], multiplier)
    return sizes == (3, 3, 1, 1, 1)
