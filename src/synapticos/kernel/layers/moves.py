"""Operators that only move elements, as steps of `pick`. Plain Python, on the host.

Each says where every index of the output finds its element of the input, dimension by dimension.
"""

from typing import Any

import numpy as np

from synapticos.kernel.layers.pick import plan_pick, strides_of
from synapticos.kernel.layers.variants import LayerPlan


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
    places = []
    for n, (before, after), stride in zip(x.shape, op.options["pads"], strides_of(x.shape), strict=True):
        places.append(np.concatenate([np.full(before, -1), np.arange(n) * stride, np.full(after, -1)]))
    return plan_pick(op, x, y, places, zero.tobytes())


MOVES = {"PAD": pad, "STRIDED_SLICE": strided_slice}


def plan(op: Any) -> LayerPlan:
    """The step for an operator of `MOVES`."""
    return MOVES[op.kind](op)
