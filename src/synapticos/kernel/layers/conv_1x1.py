"""CONV_2D, int8, a window of one pixel without padding: the input's pixels are the patches.

    y[p, o] = i8(requantize(bias[o] + sum_k x[q, k] * w[o, k], scale[o]))    q: the pixel that p's stride leads to

Operands, rows and bounds as in `conv`; no scratch. A window lies inside the picture at every output pixel: checked
when the container is loaded.
"""

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import takes
from synapticos.kernel.layers.conv import CONV_PARAMS_BYTES, ConvParams, conv_operands_fit
from synapticos.kernel.layers.dot import dot_pixel
from synapticos.kernel.status import Status


@fn
def conv_1x1_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, CONV_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(ConvParams, check.params)
    win = p.window
    if not conv_operands_fit(check, p) or win.k_h != 1 or win.k_w != 1 or win.pad_top != 0 or win.pad_left != 0:
        return Status.INVAL
    if (win.y_h - 1) * win.stride_h >= win.x_h or (win.y_w - 1) * win.stride_w >= win.x_w:
        return Status.INVAL
    return Status.OK


@fn
def conv_1x1_run(call: LayerCall) -> Status:
    p = view(ConvParams, call.params)
    win = p.window
    x = view(i8, call.data[0])
    w = view(i8, call.data[1])
    bias = view(i32, call.data[2])
    scale = view(i32, call.data[3])
    y = view(i8, call.data[4])
    depth = win.depth
    channels = p.channels
    step = win.stride_w * depth
    for row in range(call.row, call.row_end):
        line = row // win.y_h * win.x_h + row % win.y_h * win.stride_h
        at = line * win.x_w * depth
        to = row * win.y_w * channels
        for column in range(win.y_w):
            dot_pixel(x[at : at + depth], w, bias, scale, 2, y[to : to + channels], depth, channels, p.out)
            at += step
            to += channels
    return Status.OK


def fits(window: dict[str, int]) -> bool:
    """Whether a window of these fields can take the direct way. Plain Python."""
    if window["k_h"] != 1 or window["k_w"] != 1 or window["pad_top"] or window["pad_left"]:
        return False
    inside_h = (window["y_h"] - 1) * window["stride_h"] < window["x_h"]
    return inside_h and (window["y_w"] - 1) * window["stride_w"] < window["x_w"]
