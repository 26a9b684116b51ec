"""Where each tensor lies in a job's frame, so that the frame is small and no two tensors meet.

    plan = plan_memory(graph, program)
    plan.peak, plan.lower_bound, plan.places[tensor]

A buffer is alive from the first step that writes it to the last that reads it. Two buffers that are alive at the same
step share no byte. Nothing can be smaller than the largest set of buffers alive at once: `lower_bound`.
Deterministic: the same graph gives the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synapticos.errors import UserError
from synapticos.model.graph import Graph, Op, Tensor
from synapticos.model.optimise import Program
from synapticos.model.order import best_order, flow

SHUFFLES = 400  # orders of placement tried where the simple ones leave a gap


@dataclass(frozen=True)
class Buffer:
    """Bytes of the frame that a tensor, or several in turn or in parts, hold."""

    tensors: tuple[Tensor, ...]  # roots, in the order in which they are written
    size: int  # bytes, a multiple of 16
    first: int  # step that writes it
    last: int  # step that reads it last
    offset: int  # in the frame

    @property
    def name(self) -> str:
        return self.tensors[0].name

    def alive(self, step: int) -> bool:
        return self.first <= step <= self.last


@dataclass
class MemoryPlan:
    """The frame of a model."""

    steps: list[Op]  # in the order in which they run
    buffers: list[Buffer]
    places: dict[Tensor, int]  # offset in the frame of everything that lies there
    peak: int  # bytes of the frame
    lower_bound: int  # bytes alive at the worst step
    total: int  # bytes of all tensors that steps write, as if none shared memory
    worst_step: int
    program: Program
    scratch: int = 0  # bytes a step may use beside the frame; the largest

    @property
    def ram(self) -> int:
        """Bytes of the arena that a job with this model needs: its frame and the scratch above."""
        return self.peak + self.scratch

    def alive(self, step: int) -> list[Buffer]:
        return [b for b in self.buffers if b.alive(step)]

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor whose bytes this one shares."""
        return self.program.root(tensor)[0]

    def layer(self, step: int) -> str:
        op = self.steps[step]
        return f'{op.kind} "{op.outputs[0].name}" (node {op.index})'


class ArenaTooSmall(UserError):
    """A model whose frame and scratch are more than there is."""

    def __init__(self, where: str, plan: MemoryPlan, available: int):
        self.needed = plan.ram
        self.available = available
        self.missing = plan.ram - available
        self.layer = plan.layer(plan.worst_step)
        self.alive = [(b.name, b.size) for b in plan.alive(plan.worst_step)]
        alive = ", ".join(f'"{name}" {size}' for name, size in self.alive)
        super().__init__(
            f"{where}: needs {self.needed} bytes of arena ({plan.peak} frame, {plan.scratch} scratch), {available} are "
            f"available, {self.missing} are missing; the peak is at {self.layer}, where {alive} are alive; "
            "give it more memory or a model with smaller layers"
        )


def plan_memory(graph: Graph, program: Program, *, share: bool = True) -> MemoryPlan:
    """Order the steps and place their tensors. Without `share` the order stays and every tensor has its own bytes."""
    f = flow(graph, program)
    order = best_order(f) if share else list(range(len(program.steps)))
    when = {step: position for position, step in enumerate(order)}
    end = len(order) - 1

    first = [min(when[s] for s in users) for users in f.users]
    last = [end if b in f.kept else max(when[s] for s in users) for b, users in enumerate(f.users)]
    group = list(range(len(f.roots)))  # buffer: the one whose bytes it takes over

    def leader(buffer: int) -> int:
        while group[buffer] != buffer:
            buffer = group[buffer]
        return buffer

    if share:
        for step in order:
            ending = [b for b in f.in_place[step] if last[b] == when[step] and b not in f.kept]
            if ending:
                (result,) = f.writes[step]
                group[result] = leader(min(ending, key=lambda b: (first[leader(b)], b)))
    members: dict[int, list[int]] = {}
    for buffer in sorted(range(len(f.roots)), key=lambda b: (first[b], b)):
        members.setdefault(leader(buffer), []).append(buffer)
    spans = [
        (
            f.sizes[who[0]],
            0 if not share else min(first[b] for b in who),
            end if not share else max(last[b] for b in who),
        )
        for who in members.values()
    ]
    offsets = place(spans)
    buffers = [
        Buffer(tuple(f.roots[b] for b in who), size, start, stop, at)
        for who, (size, start, stop), at in zip(members.values(), spans, offsets, strict=True)
    ]
    where = {tensor: b.offset for b in buffers for tensor in b.tensors}
    steps = [program.steps[s] for s in order]
    written = [t for op in steps for t in op.outputs]
    shown = {*written, *graph.outputs, *(t for op in steps for t in op.activations), *program.parts}
    places = {}
    for tensor in shown:
        root, at = program.root(tensor)
        if root in where:
            places[tensor] = where[root] + at
    live = [sum(size for size, start, stop in spans if start <= step <= stop) for step in range(len(steps))]
    worst = max(range(len(live)), key=lambda step: (live[step], -step))
    peak = max((b.offset + b.size for b in buffers), default=0)
    return MemoryPlan(steps, buffers, places, peak, live[worst], sum(t.bytes for t in written), worst, program)


def place(spans: Sequence[tuple[int, int, int]]) -> list[int]:
    """Offsets for (size, first step, last step) such that spans alive together share no byte, with a small end.

    Each order of placement gives a packing: the next span goes to the lowest gap it fits. Four orders by size, time
    and both come first; then the best one is changed by moving forward what stuck out, until the bound is met.
    """
    bound = max((sum(s for s, a, b in spans if a <= step <= b) for step in {a for _, a, _ in spans}), default=0)
    numbers = range(len(spans))
    orders = [
        sorted(numbers, key=lambda i: (-spans[i][0], spans[i][1], i)),
        sorted(numbers, key=lambda i: (-spans[i][0] * (spans[i][2] - spans[i][1] + 1), i)),
        sorted(numbers, key=lambda i: (spans[i][1] - spans[i][2], -spans[i][0], i)),
        sorted(numbers, key=lambda i: (spans[i][1], -spans[i][0], i)),
    ]
    best: list[int] = []
    best_end = -1
    best_order: list[int] = []
    for order in orders:
        offsets, end = _pack(spans, order)
        if best_end < 0 or end < best_end:
            best, best_end, best_order = offsets, end, order
    random = 1
    for _ in range(SHUFFLES if len(spans) > 2 else 0):
        if best_end <= bound:
            break
        order = list(best_order)
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF  # a fixed sequence: plans must repeat
        high = max(numbers, key=lambda i: (best[i] + spans[i][0], i))
        moved = high if random >> 8 & 1 else order[(random >> 9) % len(order)]
        at = order.index(moved)
        order.insert((random >> 16) % max(at, 1), order.pop(at))
        offsets, end = _pack(spans, order)
        if end <= best_end:
            best, best_end, best_order = offsets, end, order
    return best


def _pack(spans: Sequence[tuple[int, int, int]], order: Sequence[int]) -> tuple[list[int], int]:
    offsets = [0] * len(spans)
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    top = 0
    for i in order:
        size, first, last = spans[i]
        at = 0
        for start, end, _, _ in sorted(p for p in placed if p[2] <= last and first <= p[3]):
            if at + size <= start:
                break
            at = max(at, end)
        offsets[i] = at
        placed.append((at, at + size, first, last))
        top = max(top, at + size)
    return offsets, top
