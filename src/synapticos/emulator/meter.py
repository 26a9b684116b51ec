"""Meter: instructions and cycles of the pieces of a run, by the blocks that the engine executes.

A function of C, compiled for this machine, is called at each block and adds what the block's instructions cost; Python
would be a hundred times slower. The costs come from outside, so nothing here knows of a core.

    meter = Meter(machine.cpu, costs, begins=[poll], inside=[(run, run_end)])
    ...
    meter.pieces()      # (which function, instructions, cycles), one for each call

A piece begins as one of the functions `begins` is entered and ends as control is in the code that `inside` gives for it:
its caller's, which must not be part of what is measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
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
};
void syn_meter(void *engine, uint64_t at, uint32_t size, void *user) {
    struct meter *m = user;
    (void)engine;
    if (at < m->base || at + size > m->end) return;
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
        uint64_t a = (at - m->base) / 2, b = (at + size - m->base) / 2;
        m->instructions += m->count[b] - m->count[a];
        m->cycles += m->cost[b] - m->cost[a] + (at != m->last ? m->jump : 0);
        m->last = at + size;
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
    ]  # fmt: skip


class Meter:
    """Attached to a processor before it runs. Raises UserError where this machine has no compiler."""

    def __init__(self, cpu: Cpu, costs: CostTable, *, begins: Sequence[int], inside: Sequence[tuple[int, int]], room: int = 1 << 16) -> None:
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


def _library() -> Path:
    chain = toolchain.find("host")
    key = toolchain.key(SOURCE, chain.name, chain.version, FLAGS)

    def make(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meter.c").write_text(SOURCE)
        chain.shared([folder / "meter.c"], folder / "meter.so", FLAGS)

    return toolchain.cached(f"meter-{key}", make) / "meter.so"
