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


MOVES = {"STRIDED_SLICE": strided_slice}


def plan(op: Any) -> LayerPlan:
    """The step for an operator of `MOVES`."""
    return MOVES[op.kind](op)
