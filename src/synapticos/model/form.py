"""Asks the layer kernels whether they can run an operator, and how.

`kernel/layers` has the one list of layers; a layer's `plan` turns an operator into the step that runs it.
"""

from __future__ import annotations

from synapticos.kernel.layers import LAYERS
from synapticos.kernel.layers.variants import LayerPlan, Unsupported
from synapticos.model.graph import Op

# no step: the result is the input under another shape
ALIASES = frozenset({"EXPAND_DIMS", "READ_VARIABLE", "RESHAPE", "SQUEEZE"})


class Cannot(Exception):
    """A form that cannot be compiled, and the nearest one that can."""

    def __init__(self, fact: str, nearest: str):
        super().__init__(fact)
        self.fact = fact
        self.nearest = nearest


def plan_step(op: Op) -> LayerPlan:
    """The layer's plan for this operator; raises Cannot."""
    layer = LAYERS.get(op.kind)
    if layer is None:
        raise Cannot("unknown operator", ", ".join(sorted(LAYERS)))
    try:
        plan: LayerPlan = layer.plan(op)
    except Unsupported as unsupported:
        raise Cannot(unsupported.fact, unsupported.nearest or f"another form of {op.kind}") from None
    return plan


def find_problem(op: Op) -> Cannot | None:
    """Why no layer can run this operator, or None."""
    if op.kind in ALIASES:
        return None
    try:
        plan_step(op)
    except Cannot as cannot:
        return cannot
    return None
