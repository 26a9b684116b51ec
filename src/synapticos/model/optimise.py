"""From a graph to the steps that will run: padding fused; reshapes, joinable concatenations and unused layers gone.

What changes no byte of any result that remains, and nothing else. The graph itself is left as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from synapticos.errors import UserError
from synapticos.model.form import ALIASES
from synapticos.model.graph import Graph, Op, Tensor

ALIGN = 16  # of every tensor's offset, bytes


@dataclass
class Program:
    """What runs, and which tensors are parts of others."""

    steps: list[Op]
    parts: dict[Tensor, tuple[Tensor, int]] = field(default_factory=dict)  # lies in another, from this byte on

    def root(self, tensor: Tensor) -> tuple[Tensor, int]:
        """The tensor whose bytes this one shares, and where in them it begins."""
        at = 0
        while tensor in self.parts:
            tensor, offset = self.parts[tensor]
            at += offset
        return tensor, at


def lower(graph: Graph, *, fuse: bool = True, join: bool = True) -> Program:
    """The steps of a graph in its own order. `fuse` merges padding into convolutions, `join` removes concatenations."""
    graph.check()
    ops = _without_unused(_fuse_padding(graph), graph) if fuse else graph.ops
    program = Program([])
    stale = _read_too_late(ops, graph)
    for op in ops:
        if op.kind in ALIASES and op not in stale:
            (x,) = op.activations
            program.parts[op.outputs[0]] = (x, 0)
        else:
            program.steps.append(op)
    given = set(graph.inputs)
    for tensor in graph.outputs:
        if program.root(tensor)[0] in given:
            raise UserError(f"{graph.where}: output {tensor} is an input unchanged; export a model that computes it")
    if join:
        _join(program, given)
    return program


def _read_too_late(ops: list[Op], graph: Graph) -> set[Op]:
    """The READ_VARIABLEs whose result is still needed when the variable has a new value: they must copy."""
    source: dict[Tensor, Op] = {}  # what shares a variable's bytes: the READ it came from
    overwritten: set[Op] = set()
    stale: set[Op] = set()
    for op in ops:
        stale.update(source[t] for t in op.activations if t in source and source[t] in overwritten)
        if op.kind == "READ_VARIABLE":
            source[op.outputs[0]] = op
        elif op.kind in ALIASES and op.activations[0] in source:
            source[op.outputs[0]] = source[op.activations[0]]
        for state in op.outputs:
            if state.state:
                overwritten.update(r for r in source.values() if r.inputs[0] is state)
    return stale | {source[t] for t in graph.outputs if t in source}


def _fuse_padding(graph: Graph) -> list[Op]:
    """Convolutions take over the zeros that a PAD before them would store."""
    padded = {op.outputs[0]: op for op in graph.ops if op.kind == "PAD" and _pads_picture(op)}
    ops: list[Op] = []
    for op in graph.ops:
        x = op.inputs[0]
        while op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D") and x in padded:
            pad = padded[x]
            (top, bottom), (left, right) = pad.options["pads"][1:3]
            more = {"pad_top": top, "pad_bottom": bottom, "pad_left": left, "pad_right": right}
            sides = {side: op.options.get(side, 0) + count for side, count in more.items()}
            op = replace(op, inputs=[pad.inputs[0], *op.inputs[1:]], options=op.options | sides)
            x = op.inputs[0]
        ops.append(op)
    return ops


def _without_unused(ops: list[Op], graph: Graph) -> list[Op]:
    """The operators whose results something needs."""
    needed = set(graph.outputs)
    kept = []
    for op in reversed(ops):
        if needed.intersection(op.outputs) or any(t.state for t in op.outputs):
            kept.append(op)
            needed.update(op.activations)
    return kept[::-1]


def _pads_picture(op: Op) -> bool:
    """Whether a PAD adds rows and columns of real zeros, as a convolution does by itself."""
    x, y, sides = op.inputs[0], op.outputs[0], op.options["pads"]
    assert x is not None
    if len(sides) != 4 or sides[0] != [0, 0] or sides[3] != [0, 0]:
        return False
    return bool(x.dtype == "int8" and _same_scale(x, y))


def _same_scale(x: Tensor, y: Tensor) -> bool:
    return np.array_equal(x.scale, y.scale) and np.array_equal(x.zero, y.zero)


def _join(program: Program, given: set[Tensor]) -> None:
    """Let the inputs of a concatenation be written where its result lies, if they lie there one after another."""
    steps = []
    for op in program.steps:
        if op.kind != "CONCATENATION" or not _joinable(program, op, given):
            steps.append(op)
            continue
        at = 0
        for tensor in op.activations:
            program.parts[program.root(tensor)[0]] = (op.outputs[0], at)
            at += tensor.bytes
    program.steps = steps


def _joinable(program: Program, op: Op, given: set[Tensor]) -> bool:
    y = op.outputs[0]
    if any(n != 1 for n in y.shape[: op.options["axis"]]) or op.options["activation"] != "NONE":
        return False
    roots = []
    at = 0
    for x in op.inputs:
        if x is None or x.data is not None or not _same_scale(x, y):
            return False
        root, offset = program.root(x)
        if root in given or root.state or offset != 0 or root.bytes != x.bytes or at % ALIGN != 0:
            return False
        roots.append(root)
        at += x.bytes
    return len(set(roots)) == len(roots)
