"""Meter: instructions and cycles of the pieces of a run, by the blocks that the engine executes.

A function of C, compiled for this machine, is called at each block and adds what the block's instructions cost; Python
would be a hundred times slower. The costs come from outside, so nothing here knows of a core.

    meter = Meter(machine.cpu, costs, begins=[poll], inside=[(run, run_end)])
    ...
    meter.pieces()      # (which function, instructions, cycles), one for each call
    meter.details()     # of each call of one of `roots` in a piece: how often each halfword of code ran

A piece begins as one of the functions `begins` is entered and ends as control is in the code that `inside` gives for it:
its caller's, which must not be part of what is measured. A root's call ends as control is in code that is none of its
`members`: the root's own and that of all it can call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from unicorn import unicorn_const as const
from unicorn.unicorn_py3.unicorn import uclib

from synapticos import toolchain
from synapticos.emulator.cpu import Cpu

SOURCE = r"""
#include <stdint.h>
struct meter {
    uint64_t base, end, jump, last, open, instructions, cycles, used, room;
    uint64_t begins[4], inside[4], inside_end[4];
    uint64_t *out;
    const uint64_t *count, *cost;
    uint64_t root_count, root_open, root_cycles, root_last, halves, detail_used, detail_room;
    const uint64_t *roots, *member;
    int32_t *edges;
    uint32_t *detail;
};
static void root_end(struct meter *m) {
    uint64_t at = m->detail_used, n = 0;
    int32_t runs = 0;
    if (at + 5 + 2 * m->halves > m->detail_room) {
        m->root_open = 0;
        return;
    }
    for (uint64_t i = 0; i < m->halves; i++) {
        runs += m->edges[i];
        m->edges[i] = 0;
        if (runs != 0) {
            m->detail[at + 5 + 2 * n] = (uint32_t)i;
            m->detail[at + 6 + 2 * n] = (uint32_t)runs;
            n++;
        }
    }
    m->edges[m->halves] = 0;
    m->detail[at] = (uint32_t)m->used;
    m->detail[at + 1] = (uint32_t)(m->root_open - 1);
    m->detail[at + 2] = (uint32_t)m->root_cycles;
    m->detail[at + 3] = (uint32_t)(m->root_cycles >> 32);
    m->detail[at + 4] = (uint32_t)n;
    m->detail_used = at + 5 + 2 * n;
    m->root_open = 0;
}
void syn_meter(void *engine, uint64_t at, uint32_t size, void *user) {
    struct meter *m = user;
    (void)engine;
    if (at < m->base || at + size > m->end) return;
    uint64_t a = (at - m->base) / 2, b = (at + size - m->base) / 2;
    if (m->root_open != 0 && (m->member[a] >> (m->root_open - 1) & 1) == 0) root_end(m);
    if (m->open != 0 && at >= m->inside[m->open - 1] && at < m->inside_end[m->open - 1]) {
        if (m->used < m->room) {
            m->out[3 * m->used] = m->open - 1;
            m->out[3 * m->used + 1] = m->instructions;
            m->out[3 * m->used + 2] = m->cycles;
        }
        m->used++;
        m->open = 0;
    }
    if (m->open == 0)
        for (uint64_t i = 0; i < 4; i++)
            if (at == m->begins[i]) {
                m->open = i + 1;
                m->instructions = 0;
                m->cycles = 0;
                m->last = 0;
            }
    if (m->open != 0) {
        m->instructions += m->count[b] - m->count[a];
        m->cycles += m->cost[b] - m->cost[a] + (at != m->last ? m->jump : 0);
        m->last = at + size;
        if (m->root_open == 0)
            for (uint64_t i = 0; i < m->root_count; i++)
                if (at == m->roots[i]) {
                    m->root_open = i + 1;
                    m->root_cycles = 0;
                    m->root_last = 0;
                }
        if (m->root_open != 0) {
            m->edges[a]++;
            m->edges[b]--;
            m->root_cycles += m->cost[b] - m->cost[a] + (at != m->root_last ? m->jump : 0);
            m->root_last = at + size;
        }
    }
}
"""
FLAGS = ("-O2",)


class CostTable(Protocol):
    """What all instructions before a halfword of the code cost."""

    base: int
    end: int
    jump: int  # cycles that going elsewhere adds
    count: list[int]
    cycles: list[int]


class _State(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("base", "end", "jump", "last", "open", "instructions", "cycles", "used", "room")),
        *((name, ctypes.c_uint64 * 4) for name in ("begins", "inside", "inside_end")),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_void_p),
        ("cost", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("root_count", "root_open", "root_cycles", "root_last", "halves", "detail_used", "detail_room")),
        *((name, ctypes.c_void_p) for name in ("roots", "member", "edges", "detail")),
    ]  # fmt: skip


@dataclass(frozen=True)
class Detail:
    """One call of a root: in which piece, its cycles, and (halfword, times) of the code that ran."""

    piece: int
    root: int
    cycles: int
    ran: tuple[tuple[int, int], ...]


MOST_ROOTS = 64
DETAIL_ROOM = 1 << 24  # words


class Meter:
    """Attached to a processor before it runs. Raises UserError where this machine has no compiler."""

    def __init__(
        self, cpu: Cpu, costs: CostTable, *, begins: Sequence[int], inside: Sequence[tuple[int, int]], room: int = 1 << 16,
        roots: Sequence[int] = (), members: Sequence[Sequence[tuple[int, int]]] = (),
    ) -> None:  # fmt: skip
        self._library = ctypes.CDLL(str(_library()))
        self._out = (ctypes.c_uint64 * (3 * room))()
        self._count = (ctypes.c_uint64 * len(costs.count))(*costs.count)
        self._cost = (ctypes.c_uint64 * len(costs.cycles))(*costs.cycles)
        state = self._state = _State()
        state.base, state.end, state.jump, state.room = costs.base, costs.end, costs.jump, room
        for i in range(4):
            state.begins[i] = begins[i] & ~1 if i < len(begins) else 1
            state.inside[i], state.inside_end[i] = inside[i] if i < len(begins) else (0, 0)
        state.out, state.count, state.cost = map(ctypes.addressof, (self._out, self._count, self._cost))
        halves = len(costs.count)
        self._roots = (ctypes.c_uint64 * MOST_ROOTS)(*roots)
        self._member = (ctypes.c_uint64 * (halves + 1))()
        self._edges = (ctypes.c_int32 * (halves + 1))()
        self._detail = (ctypes.c_uint32 * (DETAIL_ROOM if roots else 1))()
        for i, ranges in enumerate(members):
            for start, end in ranges:
                for half in range((start - costs.base) // 2, (end - costs.base) // 2):
                    self._member[half] |= 1 << i
        state.root_count, state.halves, state.detail_room = len(roots), halves, len(self._detail)
        state.roots, state.member = ctypes.addressof(self._roots), ctypes.addressof(self._member)
        state.edges, state.detail = ctypes.addressof(self._edges), ctypes.addressof(self._detail)
        handle = ctypes.c_size_t()
        callback = ctypes.cast(self._library.syn_meter, ctypes.c_void_p)
        error = uclib.uc_hook_add(
            cpu.engine, ctypes.byref(handle), const.UC_HOOK_BLOCK, callback, ctypes.cast(ctypes.pointer(state), ctypes.c_void_p),
            ctypes.c_uint64(1), ctypes.c_uint64(0),
        )  # fmt: skip
        if error:
            raise RuntimeError(f"unicorn: hook refused with {error}")
        cpu.uc.ctl_flush_tb()
        self._cpu: Any = cpu  # the engine calls into what hangs off here

    def pieces(self) -> list[tuple[int, int, int]]:
        """(number of the function in `begins`, instructions, cycles) of each call so far."""
        used = int(self._state.used)
        if used > self._state.room:
            raise RuntimeError(f"{used} pieces, and room for {self._state.room}")
        return [(self._out[3 * i], self._out[3 * i + 1], self._out[3 * i + 2]) for i in range(used)]


    def details(self) -> list[Detail]:
        """Every call of a root so far, in order; fewer if there were more than fit."""
        words, out, at = self._detail, [], 0
        while at < self._state.detail_used:
            piece, root, low, high, n = words[at : at + 5]
            pairs = words[at + 5 : at + 5 + 2 * n]
            out.append(Detail(piece, root, low | high << 32, tuple(zip(pairs[::2], pairs[1::2], strict=True))))
            at += 5 + 2 * n
        return out


def _library() -> Path:
    chain = toolchain.find("host")
    key = toolchain.key(SOURCE, chain.name, chain.version, FLAGS)

    def make(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meter.c").write_text(SOURCE)
        chain.shared([folder / "meter.c"], folder / "meter.so", FLAGS)

    return toolchain.cached(f"meter-{key}", make) / "meter.so"
