"""How far above its output a layer's input must begin, if the output may be written over input that is not read again.

Row layers go through their output from the first row to the last, and an output row reads no input row before its
window's first. So where the input begins `lead` bytes above the output, each output row ends below all that is still
to be read, and the two need little more than the larger of them alone.
"""

from __future__ import annotations

import math

import numpy as np

from synapticos.kernel.layers import TRAILING
from synapticos.model.graph import DTYPES, Op

MAX_LINES = 1 << 20  # of a PAD that are looked at


def lead(op: Op) -> int | None:
    """Bytes from the output's begin to the input's, at least; None if the two must lie apart."""
    if op.kind not in TRAILING or len(op.activations) != 1:
        return None
    return _pad_lead(op) if op.kind == "PAD" else _window_lead(op)


def _window_lead(op: Op) -> int | None:
    (x,) = op.activations
    y = op.outputs[0]
    if x.shape[0] != 1:
        return None
    rows = np.arange(y.shape[1], dtype=np.int64)
    first = np.clip(rows * op.options["stride_h"] - op.options["pad_top"], 0, x.shape[1])
    return int(np.max((rows + 1) * (y.bytes // y.shape[1]) - first * (x.bytes // x.shape[1])))


def _pad_lead(op: Op) -> int | None:
    (x,) = op.activations
    y = op.outputs[0]
    lines = math.prod(y.shape[:-1])
    if lines > MAX_LINES or not x.shape:
        return None
    # For each line of the output, the first line of the input that it or a later one copies.
    inner = np.zeros(y.shape[:-1], bool)
    inner[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape[:-1], op.options["pads"], strict=False))] = True
    copied = np.cumsum(inner.reshape(-1)) - inner.reshape(-1)
    return int(np.max((np.arange(lines) + 1) * y.shape[-1] - copied * x.shape[-1])) * DTYPES[x.dtype]
