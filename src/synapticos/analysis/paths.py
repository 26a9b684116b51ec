"""The longest way through a function's code, where how often its loops go round is known.

Inputs that were run say how often each loop went round. Where that was the same for all inputs, or the same each time
the loop was entered, it does not depend on the data, and only branches do: then no input takes longer than

    sum over functions of N(f) path(f) + sum over loops of N(loop) path(loop)

where a path is the longest way through the body once, inner loops and calls left out for they are counted by
themselves, and N says how often: of a function, all calls of it; of a loop, all times that its head is reached. Branches
that no input took are in it too. A loop that goes round by the data has no such bound, and is named.

This is the structured form of implicit path enumeration: Y.-T. S. Li, S. Malik, "Performance Analysis of Embedded
Software Using Implicit Path Enumeration", DAC 1995; R. Wilhelm et al., "The worst-case execution-time problem", ACM
TECS 7(3), 2008. Counts come from runs and not from a proof about the source, which is why the inputs are chosen to be
far apart, and why a bound says "bound" and not "exact".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from synapticos.analysis.cycles import Costs, thumb
from synapticos.boards.faults import Image

# Calls that end a step with an error, and the job with it: no time of these is part of a result that counts.
REFUSALS = ("refuse", "note_", "log_", "syn_panic", "console_", "board_panic")


WORD_BITS = 64  # how often a loop of the compiler's own arithmetic goes round at most: once a bit of a number


MOVES = "boards/memory.c"  # memcpy and its like: their loops go by a number of bytes that their callers know


class NoBound(Exception):
    """There is none: the text says at which place, and why."""


@dataclass
class Block:
    """Instructions that run one after the other."""

    at: int
    end: int
    follows: list[tuple[int, bool]] = field(default_factory=list)  # next block, and whether by a jump
    calls: list[int] = field(default_factory=list)
    indirect: bool = False
    returns: bool = False


@dataclass
class Loop:
    head: int
    body: set[int]
    parent: Loop | None = None


class Code:
    """An image's functions as graphs, made when first asked for."""

    def __init__(self, image: Image, costs: Costs) -> None:
        self.image, self.costs = image, costs
        self.code = sorted(image.code)
        self.ranges: dict[int, int] = {}
        begins = sorted({at & ~1 for at in image.symbols.values() if at & 1} | {end for _, end in self.code})
        for name, at in image.symbols.items():
            if at & 1:  # the assembler's functions have no size: they end where the next begins
                here = at & ~1
                after = next((b for b in begins if b > here), here)
                self.ranges[here] = max(here + image.sizes[name] if image.sizes[name] else after, self.ranges.get(here, 0))
        self._graphs: dict[int, dict[int, Block]] = {}

    def name(self, at: int) -> str:
        return self.image.name_of(at)

    def half(self, at: int) -> int:
        return (at - self.costs.base) // 2

    def graph(self, entry: int) -> dict[int, Block]:
        """Blocks by address. Raises NoBound for code that cannot be followed."""
        if entry not in self._graphs:
            self._graphs[entry] = self._read(entry)
        return self._graphs[entry]

    def _instructions(self, entry: int) -> list[tuple[int, int, int, int]]:
        end = self.ranges.get(entry)
        if end is None:  # a way into the middle of another function, which is its end too
            end = next((b for a, b in self.ranges.items() if a < entry < b), None)
        if end is None:
            raise NoBound(f"{self.name(entry)} has no end that is known")
        out = []
        for start, stop in self.code:
            a, b = max(start, entry), min(stop, end)
            if a < b:
                segment = next(s for s in self.image.segments if s.address <= a < s.address + len(s.data))
                out += list(thumb(segment.data[a - segment.address : b - segment.address], a))
        return out

    def _read(self, entry: int) -> dict[int, Block]:
        found = self._instructions(entry)
        inside = {at for at, *_ in found}
        ends: dict[int, tuple[list[tuple[int, bool]], bool]] = {}  # of a last instruction: what follows, whether it returns
        calls: dict[int, int | None] = {}
        leaders = {entry}
        conditional = 0  # instructions of an IT block still to come
        for at, size, first, second in found:
            in_it = conditional > 0
            conditional -= in_it
            if first & 0xFF00 == 0xBF00 and first & 0xF:
                conditional = 4 - ((first & -first).bit_length() - 1)
                continue
            kind, targets = _control(first, second, at)
            after = at + size
            if kind == "call":
                calls[at] = targets[0] if targets else None
                name = self.name(targets[0]) if targets else ""
                if name.startswith(("syn_panic", "board_panic")):
                    ends[at] = ([], True)
                    leaders.add(after)
                continue
            if kind == "":
                continue
            if kind == "table":
                targets = self._table(at, first, second, inside)
            follows: list[tuple[int, bool]] = []
            returns = kind in ("return", "indirect")
            for target in targets:
                if target in inside:
                    follows.append((target, True))
                    leaders.add(target)
                else:
                    calls[at] = target  # a tail call
                    returns = True
            if kind == "indirect":
                calls[at] = None
            if kind == "if" or in_it:
                follows.append((after, False))
            ends[at] = (follows, returns)
            leaders.add(after)
        blocks: dict[int, Block] = {}
        current: Block | None = None
        for at, size, _, _ in found:
            if at in leaders or current is None or current.end != at:
                if current is not None and current.end == at:
                    current.follows.append((at, False))
                current = Block(at, at)
                blocks[at] = current
            current.end = at + size
            if at in calls:
                called = calls[at]
                if called is None:
                    current.indirect = True
                else:
                    current.calls.append(called)
            if at in ends:
                current.follows, current.returns = list(ends[at][0]), ends[at][1]
                current = None
        return blocks

    def _table(self, at: int, first: int, second: int, inside: set[int]) -> list[int]:
        """Where a table branch can go: its table lies behind it."""
        if first & 0xF != 15:
            raise NoBound(f"{self.name(at)} jumps by a table elsewhere")
        wide = second & 0x10
        stop = next((start for start, _ in self.code if start >= at + 4), at + 4)
        segment = next(s for s in self.image.segments if s.address <= at < s.address + len(s.data))
        data = segment.data[at + 4 - segment.address : stop - segment.address]
        steps = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data) - 1, 2)] if wide else list(data)
        return sorted({t for t in (at + 4 + 2 * step for step in steps if step) if t in inside})


def _control(first: int, second: int, at: int) -> tuple[str, list[int]]:
    """What an instruction does to the way: "" nothing, call, jump, if, return, indirect, table."""
    if first >> 11 not in (0b11101, 0b11110, 0b11111):
        if first & 0xF000 == 0xD000 and first >> 8 & 15 < 14:
            return "if", [at + 4 + _signed(first & 0xFF, 8) * 2]
        if first & 0xF800 == 0xE000:
            return "jump", [at + 4 + _signed(first & 0x7FF, 11) * 2]
        if first & 0xF500 == 0xB100:
            return "if", [at + 4 + ((first >> 9 & 1) << 6 | (first >> 3 & 31) << 1)]
        if first & 0xFF87 == 0x4780:
            return "call", []
        if first & 0xFF87 == 0x4700:
            return ("return", []) if first >> 3 & 15 == 14 else ("indirect", [])
        if first & 0xFF00 == 0xBD00 or first & 0xFF87 == 0x4687:
            return "return", []
        return "", []
    if first & 0xF800 == 0xF000 and second & 0x8000:
        sign = first >> 10 & 1
        if second & 0x5000 in (0x1000, 0x5000):  # B.W, BL
            i1, i2 = 1 - ((second >> 13 & 1) ^ sign), 1 - ((second >> 11 & 1) ^ sign)
            offset = _signed(sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1, 25)
            return ("call" if second & 0x4000 else "jump"), [at + 4 + offset]
        if second & 0x5000 == 0 and first >> 6 & 15 < 14:
            offset = _signed(sign << 20 | (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 | (first & 0x3F) << 12 | (second & 0x7FF) << 1, 21)
            return "if", [at + 4 + offset]
        return "", []
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return "table", []
    if first & 0xFE50 == 0xE810 and second & 0x8000:  # LDM with the PC in it
        return "return", []
    if first & 0xFF70 == 0xF850 and second >> 12 == 15:  # LDR into the PC
        return "return", []
    return "", []


def _signed(value: int, bits: int) -> int:
    return value - ((value >> (bits - 1)) << bits)


def loops_of(blocks: dict[int, Block], entry: int) -> list[Loop]:
    """Natural loops, outer before inner. Raises NoBound for one that is entered at two places."""
    order = _postorder(blocks, entry)
    number = {at: i for i, at in enumerate(order)}
    before: dict[int, list[int]] = {at: [] for at in order}
    for at in order:
        for to, _ in blocks[at].follows:
            if to in number:
                before[to].append(at)
    above: dict[int, int] = {entry: entry}
    changed = True
    while changed:
        changed = False
        for at in reversed(order):
            if at == entry:
                continue
            best: int | None = None
            for p in before[at]:
                if p in above:
                    best = p if best is None else _common(above, number, p, best)
            if best is not None and above.get(at) != best:
                above[at], changed = best, True
    heads: dict[int, set[int]] = {}
    for at in order:
        for to, _ in blocks[at].follows:
            if to not in number or number[to] < number[at]:
                continue
            if not _dominates(above, to, at, entry):
                raise NoBound("a loop with two entries")
            body = heads.setdefault(to, {to})
            work = [at]
            while work:
                b = work.pop()
                if b not in body:
                    body.add(b)
                    work += before[b]
    loops = sorted((Loop(head, body) for head, body in heads.items()), key=lambda loop: -len(loop.body))
    for i, loop in enumerate(loops):
        outer = [o for o in loops[:i] if loop.head in o.body and o.head != loop.head]
        loop.parent = outer[-1] if outer else None
    return loops


def _postorder(blocks: dict[int, Block], entry: int) -> list[int]:
    seen, out = {entry}, []
    stack = [(entry, iter(blocks[entry].follows))]
    while stack:
        at, rest = stack[-1]
        for to, _ in rest:
            if to not in seen and to in blocks:
                seen.add(to)
                stack.append((to, iter(blocks[to].follows)))
                break
        else:
            out.append(at)
            stack.pop()
    return out


def _common(above: dict[int, int], number: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while number[a] < number[b]:
            a = above[a]
        while number[b] < number[a]:
            b = above[b]
    return a


def _dominates(above: dict[int, int], head: int, at: int, entry: int) -> bool:
    while at != head and at != entry:
        at = above[at]
    return at == head


# Of a loop at a file and line: why it must be thought to depend on the data, whatever runs say ("": it need not), and
# how often it goes round at most where that stands in the source.
Source = Callable[[str, int], tuple[str, int | None]]


class Longest:
    """The bound of one root function over runs of it: `counts[k][half]`, how often the halfword ran in run k.

    `limit`: each loop goes round at most so often each time it is entered, and nothing is concluded from how often it
    did; None: no such limit is known. `source` knows more of a loop by its place in Python.
    """

    def __init__(
        self, code: Code, counts: Sequence[Sequence[int]], limit: int | None = None, source: Source | None = None
    ) -> None:  # fmt: skip
        self.code, self.counts, self.limit, self.source = code, counts, limit, source
        self.times: dict[int, int] = {}
        self.total = 0

    def ran(self, at: int) -> list[int]:
        half = self.code.half(at)
        return [int(run[half]) for run in self.counts]

    def bound(self, root: int) -> int:
        """Cycles of one call of `root`. Raises NoBound."""
        order = self._callers_first(root)
        self.times = dict.fromkeys(order, 0)
        self.times[root] = 1
        self.total = 0
        for entry in order:
            if self.times[entry]:
                self._function(entry)
        return self.total

    def _callers_first(self, root: int) -> list[int]:
        out: list[int] = []
        state: dict[int, int] = {}

        def visit(entry: int) -> None:
            if state.get(entry) == 2:
                return
            if state.get(entry) == 1:
                raise NoBound(f"{self.code.name(entry)} calls itself")
            state[entry] = 1
            for block in self.code.graph(entry).values():
                if block.indirect:
                    raise NoBound(f"{self.code.name(entry)} calls by a table")
                for callee in block.calls:
                    if not self.refuses(callee):
                        visit(callee)
            state[entry] = 2
            out.append(entry)

        visit(root)
        return out[::-1]

    def refuses(self, entry: int) -> bool:
        return self.code.name(entry).startswith(REFUSALS)

    def _function(self, entry: int) -> None:
        blocks = {at: b for at, b in self.code.graph(entry).items() if not any(self.refuses(c) for c in b.calls) or any(self.ran(at))}
        if entry not in blocks:
            raise NoBound(f"{self.code.name(entry)} only refuses")
        reached = set(_postorder(blocks, entry))
        blocks = {at: Block(b.at, b.end, [(t, j) for t, j in b.follows if t in blocks], b.calls, b.indirect, b.returns) for at, b in blocks.items() if at in reached}
        loops = loops_of(blocks, entry)
        times = {id(loop): 0 for loop in loops}
        inner: dict[int, Loop] = {}
        for loop in loops:  # outer first, so the innermost is what stays
            for at in loop.body:
                inner[at] = loop
        for loop in loops:
            times[id(loop)] = self._rounds(entry, blocks, loop, inner, times)

        def often(at: int) -> int:
            loop = inner.get(at)
            return times[id(loop)] if loop is not None else self.times[entry]

        for at, block in blocks.items():
            seen = self.ran(at)
            n = seen[0] if seen[0] and len(set(seen)) == 1 else often(at)
            for callee in block.calls:
                self.times[callee] = self.times.get(callee, 0) + n
        self.total += self.times[entry] * self._path(blocks, entry, set(blocks), None, loops)
        for loop in loops:
            self.total += times[id(loop)] * self._path(blocks, loop.head, loop.body, loop, loops)

    def _rounds(self, entry: int, blocks: dict[int, Block], loop: Loop, inner: dict[int, Loop], times: dict[int, int]) -> int:
        """How often a loop's head is reached at most."""
        seen = self.ran(loop.head)
        where = self.code.image.place(loop.head)
        outside = [at for at, b in blocks.items() if at not in loop.body and any(t == loop.head for t, _ in b.follows)]
        most = 0
        for at in outside:
            outer = inner.get(at)
            most += times[id(outer)] if outer is not None else self.times[entry]
        reason, known = self.source(where.file, where.line) if self.source is not None else ("", None)
        if self.limit is not None:  # the head is reached once more than the body
            return most * (min(self.limit, known if known is not None else self.limit) + 1)
        if reason:
            raise NoBound(f"the loop at {where} {reason}")
        if where.function.startswith("__"):
            return most * (WORD_BITS + 1)
        rate = self._rate(blocks, loop.head, outside)
        moves = where.file.endswith(MOVES)
        if moves and not any(seen):
            return 0  # the other direction, which where the bytes lie decides and not what they are
        if known is not None and (rate is None or rate <= 1):
            return most * (known + 1)
        if not any(seen) or (rate == 1 and not moves and not where.file.startswith("synapticos/")):
            raise NoBound(f"the loop at {where} never went round in any input")
        if len(set(seen)) == 1:
            return seen[0]
        if rate is None:
            raise NoBound(f"the loop at {where} goes round by the data")
        return most * rate

    def _rate(self, blocks: dict[int, Block], head: int, outside: list[int]) -> int | None:
        """How often a loop's head is reached for each time that it is entered, if that never differed."""
        entered = [0] * len(self.counts)
        for at in outside:
            ran = self.ran(at)
            for other in {t for t, _ in blocks[at].follows} - {head}:
                if sum(any(t == other for t, _ in b.follows) for b in blocks.values()) != 1:
                    return None
                ran = [a - b for a, b in zip(ran, self.ran(other), strict=True)]
            entered = [a + b for a, b in zip(entered, ran, strict=True)]
        rates = {(h // e if e and h % e == 0 else -1) for h, e in zip(self.ran(head), entered, strict=True) if h or e}
        return rates.pop() if len(rates) == 1 and -1 not in rates else None

    def _path(self, blocks: dict[int, Block], start: int, body: set[int], own: Loop | None, loops: list[Loop]) -> int:
        """The longest way once through a body, inner loops passed as if they took no time."""
        inside = [loop for loop in loops if loop.parent is own and loop.head in body and loop is not own]
        stands = {at: loop for loop in inside for at in loop.body}

        def node(at: int) -> int:
            return stands[at].head if at in stands else at

        follows: dict[int, list[tuple[int, int]]] = {}
        cost: dict[int, int] = {}
        jump = self.code.costs.jump
        for at in body:
            block, me = blocks[at], node(at)
            if at in stands:
                cost.setdefault(me, 0)
            else:
                cost[me] = self._block(block)
            for to, jumps in block.follows:
                if to not in body or to == start or node(to) == me:
                    continue
                follows.setdefault(me, []).append((node(to), jump if jumps else 0))
        best: dict[int, int] = {}
        graph = {at: Block(at, at, [(to, False) for to, _ in follows.get(at, [])]) for at in cost}
        for at in _postorder(graph, node(start)):
            best[at] = cost[at] + max((weight + best[to] for to, weight in follows.get(at, []) if to in best), default=0)
        return best[node(start)] + (jump if own is not None else 0)

    def _block(self, block: Block) -> int:
        costs = self.code.costs
        spent = costs.cycles[self.code.half(block.end)] - costs.cycles[self.code.half(block.at)]
        return spent + costs.jump * (len(block.calls) + block.returns)
