"""How far apart a layer's output and its input must begin, if one is written over what is not read again of the other.

Row layers go through their output from the first row to the last, and an output row reads no input row before its
window's first. So where the input begins `up` bytes above the output, each output row ends below all that is still
to be read, and the two need little more than the larger of them alone. Or they go from the last row to the first, and
the output begins `down` bytes above the input: in a chain of layers one of each takes back what the other has moved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from synapticos.kernel.layers import TRAILING
from synapticos.model.graph import DTYPES, Op

MAX_LINES = 1 << 20  # of a PAD that are looked at


class Leads(NamedTuple):
    """Bytes, at least."""

    up: int  # from the output's begin to the input's
    down: int  # from the input's begin to the output's, if rows run downwards


def leads(op: Op) -> Leads | None:
    """How far apart the two must begin; None if they share nothing."""
    if op.kind not in TRAILING or len(op.activations) != 1:
        return None
    return _pad_leads(op) if op.kind == "PAD" else _window_leads(op)


def _window_leads(op: Op) -> Leads | None:
    (x,) = op.activations
    y = op.outputs[0]
    if x.shape[0] != 1:
        return None
    rows = np.arange(y.shape[1], dtype=np.int64)
    top = rows * op.options["stride_h"] - op.options["pad_top"]
    first, end = np.clip(top, 0, x.shape[1]), np.clip(top + _reach(op), 0, x.shape[1])
    x_row, y_row = x.bytes // x.shape[1], y.bytes // y.shape[1]
    return Leads(int(np.max((rows + 1) * y_row - first * x_row)), int(np.max(end * x_row - rows * y_row)))


def _reach(op: Op) -> int:
    """Rows of the input from a window's first to its last."""
    filters = op.inputs[1] if len(op.inputs) > 1 else None
    k = op.options["filter_h"] if filters is None else filters.shape[1]
    return int((k - 1) * op.options.get("dilation_h", 1) + 1)


def _pad_leads(op: Op) -> Leads | None:
    (x,) = op.activations
    y = op.outputs[0]
    lines = math.prod(y.shape[:-1])
    if lines > MAX_LINES or not x.shape:
        return None
    # For each line of the output, the first line of the input that it or a later one copies.
    inner = np.zeros(y.shape[:-1], bool)
    inner[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape[:-1], op.options["pads"], strict=False))] = True
    copied = np.cumsum(inner.reshape(-1)) - inner.reshape(-1)
    through = copied + inner.reshape(-1)
    size = DTYPES[x.dtype]
    line = np.arange(lines)
    return Leads(
        int(np.max((line + 1) * y.shape[-1] - copied * x.shape[-1])) * size,
        int(np.max(through * x.shape[-1] - line * y.shape[-1])) * size,
    )
