"""PAD of bytes: elements of a given value around a tensor of up to four dimensions.

    y[i, j, k, l] = x[i - b0, j - b1, k - b2, l - b3] where that is an element of x, else `value`

    x  i8 [x0, x1, x2, x3]
    y  i8 [y0, y1, y2, y3]

Rows are all of y but its last dimension. No arithmetic on elements.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, holds_i8, product, takes, trails
from synapticos.kernel.status import Status


@struct
class PadParams:
    x: Shaped[Array[u32], 4]  # shape; 1 for dimensions in front that are not there
    y: Shaped[Array[u32], 4]
    before: Shaped[Array[u32], 4]
    value: i32


PAD_PARAMS_BYTES: Final[u32] = sizeof(PadParams)


@fn
def pad_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, PAD_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(PadParams, check.params)
    for d in range(4):
        if p.x[d] > MAX_SIDE or p.y[d] > MAX_SIDE or p.before[d] > MAX_SIDE:
            return Status.INVAL
        # x lies inside y, so a line of x never leaves its line of y.
        if p.before[d] + p.x[d] > p.y[d]:
            return Status.INVAL
    if not holds_i8(check, 0, product(product(product(p.x[0], p.x[1]), p.x[2]), p.x[3])):
        return Status.INVAL
    if not holds_i8(check, 1, product(product(product(p.y[0], p.y[1]), p.y[2]), p.y[3])):
        return Status.INVAL
    if check.rows > product(product(p.y[0], p.y[1]), p.y[2]) or p.value < -128 or p.value > 127 or not trails(check):
        return Status.INVAL
    return Status.OK


@fn
def pad_run(call: LayerCall) -> Status:
    p = view(PadParams, call.params)
    value = i8(p.value)
    n = p.x[3]
    width = p.y[3]
    first = p.before[3]
    for row in range(call.row, call.row_end):
        x = view(i8, call.data[0])
        y = view(i8, call.data[1])[row * width :]
        # A place before x is wrapped to a number past its end.
        k = wrap(u32, row % p.y[2] - p.before[2])
        j = wrap(u32, row // p.y[2] % p.y[1] - p.before[1])
        i = wrap(u32, row // p.y[2] // p.y[1] - p.before[0])
        if i < p.x[0] and j < p.x[1] and k < p.x[2]:
            fill(y, value, first)
            move(y[first:], x[((i * p.x[1] + j) * p.x[2] + k) * n :], n)
            fill(y[first + n :], value, width - first - n)
        else:
            fill(y, value, width)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a PAD. Plain Python."""
    from math import prod

    from synapticos.kernel.layers import quantize
    from synapticos.kernel.layers.variants import PAD_I8, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    quantize.require_int8(x, y)
    if len(x.shape) > 4:
        raise Unsupported(f"rank {len(x.shape)}", "up to rank 4")
    if (float(x.scale[0]), int(x.zero[0])) != (float(y.scale[0]), int(y.zero[0])):
        raise Unsupported("an output scale other than the input's", "equal scales")
    front = 4 - len(x.shape)
    shape = [1] * front + [int(n) for n in x.shape]
    around = [(0, 0)] * front + [(int(a), int(b)) for a, b in op.options["pads"]]
    whole = [a + n + b for (a, b), n in zip(around, shape, strict=True)]
    if min(min(pair) for pair in around) < 0 or prod(whole) != prod(int(n) for n in y.shape) or max(whole) > MAX_SIDE:
        raise Unsupported(f"padding {around}", f"0 or more, sides up to {MAX_SIDE}")
    params = pack(PadParams, x=shape, y=whole, before=[a for a, _ in around], value=int(y.zero[0]))
    return LayerPlan(PAD_I8, [x], [y], params, scratch=0, cost=prod(whole), rows=prod(whole[:3]))
