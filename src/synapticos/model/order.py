"""The order of a program's steps that needs the least memory at its worst step.

Works on buffers: what shares bytes is one buffer, alive from the first step that writes it to the last that reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from synapticos.kernel.layers import IN_PLACE
from synapticos.model.graph import Graph, Tensor
from synapticos.model.optimise import ALIGN, Program
from synapticos.model.overlap import Leads, leads

BEAM = 24  # partial orders kept
MAX_STEPS = 400  # above, the order of the file stands


def align_up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


@dataclass
class Flow:
    """What each step reads and writes, as numbers of buffers; -1 in no list: inputs lie with the caller."""

    roots: list[Tensor]  # a buffer's largest tensor
    sizes: list[int]  # bytes, aligned
    reads: list[list[int]]  # for each step
    writes: list[list[int]]
    before: list[set[int]]  # steps whose results a step needs
    users: list[set[int]]  # for each buffer: the steps that touch it
    kept: set[int]  # buffers that outlive the last step
    in_place: list[list[int]]  # for each step: inputs that its result may take over, if they end there
    trails: list[tuple[int, Leads] | None]  # for each step: an input that its result may run into, if it ends there,
    #                                         and how far apart the two begin

    def saved(self, step: int, ending: Collection[int]) -> int:
        """Bytes that a step's result shares with an input; `ending`: buffers that nothing needs afterwards."""
        if any(b in ending for b in self.in_place[step]):
            return self.sizes[self.writes[step][0]]
        trail = self.trails[step]
        if trail is None or trail[0] not in ending:
            return 0
        x, y = self.sizes[trail[0]], self.sizes[self.writes[step][0]]
        return shared(x, y, trail[1])


def shared(x: int, y: int, apart: Leads) -> int:
    """Bytes that an input of `x` bytes and its result of `y` have in common at best."""
    return x + y - min(max(y, apart.up + x), max(x, apart.down + y))


def flow(graph: Graph, program: Program) -> Flow:
    number: dict[Tensor, int] = {}
    roots: list[Tensor] = []
    given = set(graph.inputs)

    def buffer(tensor: Tensor) -> int | None:
        root, _ = program.root(tensor)
        if root in given or root.state:
            return None
        if root not in number:
            number[root] = len(roots)
            roots.append(root)
        return number[root]

    reads: list[list[int]] = []
    writes: list[list[int]] = []
    before: list[set[int]] = []
    in_place: list[list[int]] = []
    trails: list[tuple[int, Leads] | None] = []
    # A buffer may be written in parts by several steps. Readers of one part need only its writer; a reader of the
    # whole (after a joined concatenation) needs them all.
    writers: dict[int, list[tuple[int, int, int]]] = {}  # buffer: (from, to, step)
    touched: dict[Tensor, list[tuple[int, bool]]] = {}  # state: steps that touch it, and whether they write it
    for step, op in enumerate(program.steps):
        needs: set[int] = set()
        for tensors, writing in ((op.activations, False), (op.outputs, True)):
            for state in {program.root(t)[0] for t in tensors if program.root(t)[0].state}:
                users_of = touched.setdefault(state, [])
                needs |= {s for s, wrote in users_of if (writing or wrote) and s != step}
                users_of.append((step, writing))
        read = []
        for tensor in op.activations:
            at = buffer(tensor)
            if at is None:
                continue
            read.append(at)
            start = program.root(tensor)[1]
            needs |= {s for a, b, s in writers.get(at, []) if a < start + tensor.bytes and start < b}
        write = []
        for tensor in op.outputs:
            at = buffer(tensor)
            if at is None:
                continue  # a state
            write.append(at)
            start = program.root(tensor)[1]
            writers.setdefault(at, []).append((start, start + tensor.bytes, step))
        takes = []
        if op.kind in IN_PLACE and len(op.outputs) == 1 and write:
            y = op.outputs[0]
            for tensor in op.activations:
                at = buffer(tensor)
                fits = tensor.bytes == y.bytes and tensor.dtype == y.dtype
                if at is not None and at not in takes and fits and _whole(program, tensor) and _whole(program, y):
                    takes.append(at)
        distance = leads(op)
        trail = None
        if distance is not None and read and write and all(_whole(program, t) for t in (*op.activations, op.outputs[0])):
            trail = (read[0], Leads(align_up(distance.up), align_up(distance.down)))
        reads.append(sorted(set(read)))
        writes.append(write)
        before.append(needs)
        in_place.append(takes)
        trails.append(trail)
    users: list[set[int]] = [set() for _ in roots]
    for step, (read, write) in enumerate(zip(reads, writes, strict=True)):
        for at in [*read, *write]:
            users[at].add(step)
    kept = {number[program.root(t)[0]] for t in graph.outputs}
    return Flow(roots, [align_up(r.bytes) for r in roots], reads, writes, before, users, kept, in_place, trails)


def _whole(program: Program, tensor: Tensor) -> bool:
    """Whether a tensor is all of its buffer."""
    return program.root(tensor)[0].bytes == tensor.bytes


@dataclass(frozen=True)
class _State:
    done: int  # bit a step
    alive: frozenset[int]  # buffers
    live: int  # their bytes
    peak: int
    order: tuple[int, ...]

    def after(self, flow: Flow, step: int) -> _State:
        done = self.done | 1 << step
        ending = {
            b
            for b in self.alive | set(flow.writes[step])
            if b not in flow.kept and all(done >> user & 1 for user in flow.users[b])
        }
        new = [b for b in flow.writes[step] if b not in self.alive]
        grown = self.live + sum(flow.sizes[b] for b in new)
        saved = flow.saved(step, ending & self.alive) if new else 0
        peak = max(self.peak, grown - saved)
        alive = (self.alive | set(new)) - ending
        return _State(done, frozenset(alive), sum(flow.sizes[b] for b in alive), peak, (*self.order, step))


def peak_of(flow: Flow, order: Sequence[int]) -> int:
    """Bytes alive at the worst step of an order."""
    state = _State(0, frozenset(), 0, 0, ())
    for step in order:
        state = state.after(flow, step)
    return state.peak


def best_order(flow: Flow) -> list[int]:
    """The order with the smallest peak that a search of bounded width finds; the file's own, unless one is better."""
    steps = len(flow.reads)
    source = list(range(steps))
    if steps > MAX_STEPS:
        return source
    states = [_State(0, frozenset(), 0, 0, ())]
    for _ in source:
        reached: dict[int, _State] = {}
        for state in states:
            for step in source:
                if state.done >> step & 1 or not all(state.done >> need & 1 for need in flow.before[step]):
                    continue
                after = state.after(flow, step)
                known = reached.get(after.done)
                if known is None or (after.peak, after.order) < (known.peak, known.order):
                    reached[after.done] = after
        states = sorted(reached.values(), key=lambda s: (s.peak, s.live, s.order))[:BEAM]
    best = states[0]
    return list(best.order) if best.peak < peak_of(flow, source) else source
