"""Where each tensor lies in a job's frame, so that the frame is small and no two tensors meet.

    plan = plan_memory(graph, program)
    plan.peak, plan.lower_bound, plan.places[tensor]

A buffer is alive from the first step that writes it to the last that reads it. Two buffers that are alive at the same
step share no byte, unless the step writes one over what it no longer reads of the other (`overlap`). Nothing can be
smaller than what the worst step needs at once: `lower_bound`.
Deterministic: the same graph gives the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from synapticos.errors import UserError
from synapticos.model.graph import Graph, Op, Tensor, short
from synapticos.model.optimise import Program
from synapticos.model.order import align_up, best_order, flow, shared
from synapticos.model.overlap import Leads

SHUFFLES = 400  # orders of placement tried where the simple ones leave a gap
MAX_WORK = 4_000_000  # about the comparisons that may be spent on them


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
    live: list[int]  # bytes that each step needs at once; a frame can be no smaller
    total: int  # bytes of all tensors that steps write, as if none shared memory
    worst_step: int
    program: Program
    scratch: int = 0  # bytes a step may use beside the frame; the largest
    states: dict[Tensor, int] = field(default_factory=dict)  # offset of each among the persistent bytes
    downwards: set[Op] = field(default_factory=set)  # steps whose rows run from the last to the first

    @property
    def persistent(self) -> int:
        """Bytes kept from run to run."""
        return sum(align_up(t.bytes) for t in self.states)

    @property
    def lower_bound(self) -> int:
        return self.live[self.worst_step]

    @property
    def ram(self) -> int:
        """Bytes of the arena that a job with this model needs: its state, its frame and the scratch above."""
        return self.persistent + self.peak + self.scratch

    def alive(self, step: int) -> list[Buffer]:
        return [b for b in self.buffers if b.alive(step)]

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor whose bytes this one shares."""
        return self.program.root(tensor)[0]

    def layer(self, step: int) -> str:
        op = self.steps[step]
        return f'{op.kind} "{short(op.outputs[0].name)}" (node {op.index})'


class ArenaTooSmall(UserError):
    """A model whose frame and scratch are more than there is."""

    def __init__(self, where: str, plan: MemoryPlan, available: int):
        self.needed = plan.ram
        self.available = available
        self.missing = plan.ram - available
        self.layer = plan.layer(plan.worst_step)
        self.alive = [(b.name, b.size) for b in plan.alive(plan.worst_step)]
        alive = ", ".join(f'"{short(name)}" {size}' for name, size in self.alive)
        shared = (
            f", {plan.lower_bound} with what they share" if sum(s for _, s in self.alive) > plan.lower_bound else ""
        )
        super().__init__(
            f"{where}: needs {self.needed} bytes of arena ({plan.peak} frame, {plan.scratch} scratch), {available} are "
            f"available, {self.missing} are missing; the peak is at {self.layer}, where {alive} are alive{shared}; "
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

    def ends(buffer: int, step: int) -> bool:
        return buffer not in f.kept and last[buffer] == when[step]

    group = list(range(len(f.roots)))  # buffer: the first of those that hold the same bytes in turn
    if share:
        for step in order:
            ending = [b for b in f.in_place[step] if ends(b, step)]
            if ending:
                (result,) = f.writes[step]
                group[result] = group[min(ending, key=lambda b: (first[group[b]], b))]
    members: dict[int, list[int]] = {}
    for buffer in sorted(range(len(f.roots)), key=lambda b: (first[b], b)):
        members.setdefault(group[buffer], []).append(buffer)
    number = {leader: i for i, leader in enumerate(members)}
    spans = [
        Span(f.sizes[leader], *((first[leader], max(last[b] for b in who)) if share else (0, end)))
        for leader, who in members.items()
    ]
    live = alive_at(spans, len(order))
    trails: dict[tuple[int, int], Leads] = {}
    running: list[tuple[Op, int, int]] = []  # step, its input, its result
    for step in order if share else ():
        trail = f.trails[step]
        if trail is None or not ends(trail[0], step) or first[f.writes[step][0]] != when[step]:
            continue
        pair = number[group[trail[0]]], number[group[f.writes[step][0]]]
        trails[pair] = trail[1]
        running.append((program.steps[step], *pair))
        live[when[step]] -= f.saved(step, [trail[0]])
    offsets = place(spans, trails)
    buffers = [
        Buffer(tuple(f.roots[b] for b in who), span.size, span.first, span.last, at)
        for who, span, at in zip(members.values(), spans, offsets, strict=True)
    ]
    steps = [program.steps[s] for s in order]
    written = [t for op in steps for t in op.outputs]
    where = {tensor: b.offset for b in buffers for tensor in b.tensors}
    places = {}
    for tensor in {*written, *graph.outputs, *(t for op in steps for t in op.activations), *program.parts}:
        root, at = program.root(tensor)
        if root in where:
            places[tensor] = where[root] + at
    worst = max(range(len(live)), key=lambda at: (live[at], -at))
    peak = max((b.offset + b.size for b in buffers), default=0)
    states: dict[Tensor, int] = {}
    at = 0
    for op in program.steps:
        for tensor in [*op.activations, *op.outputs]:
            root, _ = program.root(tensor)
            if root.state and root not in states:
                states[root] = at
                at += align_up(root.bytes)
    total = sum(t.bytes for t in written if not t.state)
    downwards = {
        op
        for op, x, y in running
        if offsets[x] < offsets[y] + spans[y].size
        and offsets[y] < offsets[x] + spans[x].size
        and offsets[x] - offsets[y] < trails[x, y].up
    }
    return MemoryPlan(steps, buffers, places, peak, live, total, worst, program, states=states, downwards=downwards)


class Span(NamedTuple):
    """A buffer to be placed."""

    size: int
    first: int  # step
    last: int


def alive_at(spans: Sequence[Span], steps: int) -> list[int]:
    """Bytes of the spans alive at each step."""
    change = [0] * (steps + 1)
    for span in spans:
        change[span.first] += span.size
        change[span.last + 1] -= span.size
    return list(accumulate(change[:steps]))


def together(spans: Sequence[Span]) -> list[list[int]]:
    """For each span the others that are alive with it, in ascending order."""
    found: list[list[int]] = [[] for _ in spans]
    alive: list[int] = []
    for i in sorted(range(len(spans)), key=lambda i: spans[i].first):
        alive = [j for j in alive if spans[j].last >= spans[i].first]
        for j in alive:
            found[i].append(j)
            found[j].append(i)
        alive.append(i)
    return [sorted(others) for others in found]


def place(spans: Sequence[Span], trails: Mapping[tuple[int, int], Leads] | None = None) -> list[int]:
    """Offsets such that spans alive together share no byte, and the last one ends early.

    `trails[x, y]`: x and y may share bytes if x begins at least `up` above y, or y at least `down` above x.

    Each order of placement gives two packings: the next span goes to the lowest gap, or to where it makes the whole
    least larger, above or below the others. Four orders by size, time and both come first; then the best one is
    changed by placing some span earlier, until the bound is met.
    """
    trails = trails or {}
    numbers = range(len(spans))
    bound = _bound(spans, trails)
    above = {pair: apart.up for pair, apart in trails.items()}  # how far the first begins above the second
    above |= {(y, x): apart.down for (x, y), apart in trails.items()}
    orders = [
        sorted(numbers, key=lambda i: (-spans[i].size, spans[i].first, i)),
        sorted(numbers, key=lambda i: (-spans[i].size * (spans[i].last - spans[i].first + 1), i)),
        sorted(numbers, key=lambda i: (spans[i].first - spans[i].last, -spans[i].size, i)),
        sorted(numbers, key=lambda i: (spans[i].first, -spans[i].size, i)),
    ]
    conflicts = together(spans)
    packings = [_pack(spans, above, conflicts, order, up) for up in (True, False) for order in orders]
    best = min(packings, key=lambda packing: packing.end)
    random = 1
    work = 1 + sum(len(c) ** 2 for c in conflicts)
    for _ in range(min(SHUFFLES, MAX_WORK // work) if len(spans) > 2 else 0):
        if best.end <= bound:
            break
        order = list(best.order)
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF  # a fixed sequence: plans must repeat
        high = max(numbers, key=lambda i: (best.offsets[i] + spans[i].size, i))
        moved = high if random >> 8 & 1 else order[(random >> 9) % len(order)]
        at = order.index(moved)
        order.insert((random >> 16) % max(at, 1), order.pop(at))
        packing = _pack(spans, above, conflicts, order, best.upwards)
        if packing.end <= best.end:
            best = packing
    return best.offsets


def _bound(spans: Sequence[Span], trails: Mapping[tuple[int, int], Leads]) -> int:
    """What no packing can be smaller than."""
    live = alive_at(spans, 1 + max((s.last for s in spans), default=0))
    for (x, y), apart in trails.items():
        live[spans[y].first] -= shared(spans[x].size, spans[y].size, apart)
    return max((live[s.first] for s in spans), default=0)


class _Packing(NamedTuple):
    end: int
    offsets: list[int]
    order: Sequence[int]
    upwards: bool


def _pack(
    spans: Sequence[Span],
    may: Mapping[tuple[int, int], int],  # how far the first must begin above the second, to share bytes
    conflicts: Sequence[list[int]],
    order: Sequence[int],
    upwards: bool,
) -> _Packing:
    offsets: dict[int, int] = {}
    low = high = 0  # what is covered so far
    for i in order:
        size = spans[i].size
        taken = []  # (from, to): where i cannot begin, both ends excluded
        for j in conflicts[i]:
            if j in offsets:
                below = may.get((j, i), size)  # from i's begin to j's, if i lies below
                above = may.get((i, j), spans[j].size)
                taken.append((offsets[j] - below, offsets[j] + above))
        edges = {low, *(edge for pair in taken for edge in pair)}
        free = [at for at in edges if all(at <= start or stop <= at for start, stop in taken)]
        if upwards:
            at = min(at for at in free if at >= 0)
        else:
            at = min(free, key=lambda at: (max(high, at + size) - min(low, at), at))
        offsets[i] = at
        low, high = min(low, at), max(high, at + size)
    return _Packing(high - low, [offsets[i] - low for i in range(len(spans))], order, upwards)
