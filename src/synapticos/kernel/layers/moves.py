"""Operators that only move elements, as steps of `pick`. Plain Python, on the host.

Each says where every index of the output finds its element of the input, dimension by dimension.
"""

from typing import Any

import numpy as np

from synapticos.kernel.layers.pick import plan_pick, strides_of
from synapticos.kernel.layers.variants import MAX_ROWS, LayerPlan, Unsupported


def strided_slice(op: Any) -> LayerPlan:
    """`options["slices"]`: (begin, stride, count) of each dimension of the input, as the reader resolved them."""
    x, y = op.inputs[0], op.outputs[0]
    places = [
        (begin + np.arange(count) * step) * stride
        for (begin, step, count), stride in zip(op.options["slices"], strides_of(x.shape), strict=True)
    ]
    return plan_pick(op, x, y, places)


def pad(op: Any) -> LayerPlan:
    """`options["pads"]`: elements of real 0 before and after each dimension."""
    x, y = op.inputs[0], op.outputs[0]
    zero = np.array(int(y.zero[0]) if len(y.zero) else 0, y.dtype)
    return plan_pick(op, x, y, _around(x, op.options["pads"]), zero.tobytes())


def _around(x: Any, pads: Any) -> list[Any]:
    """The places of x with -1 around them."""
    places = []
    for n, (before, after), stride in zip(x.shape, pads, strides_of(x.shape), strict=True):
        places.append(np.concatenate([np.full(before, -1), np.arange(n) * stride, np.full(after, -1)]))
    return places


def mirror_pad(op: Any) -> LayerPlan:
    """`options["pads"]` as of a PAD; `options["skip"]`: 1 if the edge itself is not repeated."""
    x, y = op.inputs[0], op.outputs[0]
    places = []
    for n, (before, after), stride in zip(x.shape, op.options["pads"], strides_of(x.shape), strict=True):
        at = np.pad(np.arange(n), (before, after), "reflect" if op.options["skip"] else "symmetric")
        places.append(at * stride)
    return plan_pick(op, x, y, places)


def pad_with(op: Any) -> LayerPlan:
    """As PAD, with `options["value"]`, an integer or real of the tensor's type, around."""
    x, y = op.inputs[0], op.outputs[0]
    value = np.array(op.options["value"], y.dtype)
    return plan_pick(op, x, y, _around(x, op.options["pads"]), value.tobytes())


def transpose(op: Any) -> LayerPlan:
    """`options["order"]`: which dimension of the input each one of the output is."""
    x, y = op.inputs[0], op.outputs[0]
    strides = strides_of(x.shape)
    return plan_pick(op, x, y, [np.arange(x.shape[d]) * strides[d] for d in op.options["order"]])


def gather(op: Any) -> LayerPlan:
    """`options["axis"]`, `options["indices"]`: which lines of that dimension."""
    x, y = op.inputs[0], op.outputs[0]
    lines = [np.arange(n) for n in x.shape]
    lines[op.options["axis"]] = np.asarray(op.options["indices"]).reshape(-1)
    return plan_pick(op, x, y, [line * stride for line, stride in zip(lines, strides_of(x.shape), strict=True)])


def resize_nearest(op: Any) -> LayerPlan:
    """`options["places"]`, if there: which line and column of x each one of y is."""
    x, y = op.inputs[0], op.outputs[0]
    corners, centres = op.options.get("align_corners"), op.options.get("half_pixel_centers")
    one = np.float32

    def nearest(side: int, out: int) -> Any:
        scale = one(side - 1) / one(out - 1) if corners and out > 1 else one(side) / one(out)
        at = [one((one(i) + one(0.5 if centres else 0.0)) * scale) for i in range(out)]
        whole = [int(np.floor(float(a) + 0.5)) if corners else int(np.floor(a)) for a in at]
        return np.clip(whole, 0, side - 1)

    b, h, w, c = strides_of(x.shape)
    if "places" in op.options:
        lines, columns = (np.asarray(p, np.int64) for p in op.options["places"])
    else:
        lines, columns = nearest(x.shape[1], y.shape[1]), nearest(x.shape[2], y.shape[2])
    places = [
        np.arange(x.shape[0]) * b, lines * h, columns * w,
        np.arange(x.shape[3]) * c,
    ]  # fmt: skip
    return plan_pick(op, x, y, places)


def depth_to_space(op: Any) -> LayerPlan:
    x, y = op.inputs[0], op.outputs[0]
    block = op.options["block"]
    b, h, w, _ = strides_of(x.shape)
    depth = int(y.shape[3])
    inside = np.arange(block)
    places = [np.arange(n) * s for n, s in zip(x.shape[:3], (b, h, w), strict=True)]
    return plan_pick(op, x, y, [places[0], places[1], inside * block * depth, places[2], inside * depth, np.arange(depth)])


def space_to_depth(op: Any) -> LayerPlan:
    x, y = op.inputs[0], op.outputs[0]
    block = op.options["block"]
    b, h, w, _ = strides_of(x.shape)
    inside = np.arange(block)
    places = [
        np.arange(x.shape[0]) * b, np.arange(y.shape[1]) * block * h, np.arange(y.shape[2]) * block * w, inside * h,
        inside * w, np.arange(x.shape[3]),
    ]  # fmt: skip
    return plan_pick(op, x, y, places)


def batch_to_space(op: Any) -> LayerPlan:
    """`options["blocks"]` of height and width, `options["crops"]` before each."""
    x, y = op.inputs[0], op.outputs[0]
    (block_h, block_w), (top, left) = op.options["blocks"], op.options["crops"]
    b, h, w, c = strides_of(x.shape)
    line, column = np.arange(y.shape[1]) + top, np.arange(y.shape[2]) + left
    places = [
        np.arange(y.shape[0]) * b, line // block_h * h + line % block_h * block_w * y.shape[0] * b,
        column // block_w * w + column % block_w * y.shape[0] * b, np.arange(y.shape[3]) * c,
    ]  # fmt: skip
    return plan_pick(op, x, y, places)


def space_to_batch(op: Any) -> LayerPlan:
    """`options["blocks"]` of height and width, `options["pads"]` before each; real 0 around."""
    x, y = op.inputs[0], op.outputs[0]
    (block_h, block_w), (top, left) = op.options["blocks"], op.options["pads"]
    b, h, w, _ = strides_of(x.shape)
    batch, line, column = np.indices(y.shape[:3])
    block, picture = batch // x.shape[0], batch % x.shape[0]
    at_h = line * block_h + block // block_w - top
    at_w = column * block_w + block % block_w - left
    inside = (at_h >= 0) & (at_h < x.shape[1]) & (at_w >= 0) & (at_w < x.shape[2])
    flat = np.where(inside, picture * b + at_h * h + at_w * w, -1)
    zero = np.array(int(y.zero[0]) if len(y.zero) else 0, y.dtype)
    lines = flat.reshape(-1, y.shape[2])
    if len(lines) > MAX_ROWS:
        raise Unsupported(f"{len(lines)} lines", f"up to {MAX_ROWS}")
    return plan_pick(op, x, y, [flat.reshape(-1), np.arange(x.shape[3])], zero.tobytes())


MOVES = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "DEPTH_TO_SPACE": depth_to_space,
    "GATHER": gather,
    "MIRROR_PAD": mirror_pad,
    "PAD": pad,
    "PADV2": pad_with,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "SLICE": strided_slice,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPACE_TO_DEPTH": space_to_depth,
    "SPLIT": strided_slice,
    "SPLIT_V": strided_slice,
    "STRIDED_SLICE": strided_slice,
    "TRANSPOSE": transpose,
    "UNPACK": strided_slice,
}


def plan(op: Any) -> LayerPlan:
    """The step for an operator of `MOVES`."""
    x, y = op.inputs[0], op.outputs[0]
    if x.dtype != y.dtype or not (np.array_equal(x.scale, y.scale) and np.array_equal(x.zero, y.zero)):
        raise Unsupported("an output of another type or scale than the input", "equal ones")
    return MOVES[op.kind](op)
