"""Worst-case stack of a firmware: the longest path through its call graph, frame by frame.

Frames come from the ELF's call frame information (the largest distance of the stack pointer from the caller's), or,
for code without it, from the instructions that move the stack pointer. Edges are the branches in the code itself; an
indirect call may go wherever the tables lead that its function (or one inlined into it) calls through. The language has
no recursion and no other function pointers, so this is an upper bound. Interrupts add a path and a frame of their own.

A guarded call (boards/cortex_m/guard.c) leaves a gap on the stack up to where memory protection can draw a line, and has
a copy of its block below it. The line never rises as the stack grows, so the deepest way to the call has the lowest line.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from synapticos.compiler import Program, ir
from synapticos.compiler.program import walk
from synapticos.errors import UserError

_SP = 13
EXCEPTION_FRAME = 104  # bytes that the core itself pushes, the FPU's registers and alignment included
SHORT_FRAME = 36  # where there is no FPU
_GUARDED = "guarded_call"


@dataclass
class Node:
    """A function of the ELF."""

    name: str
    frame: int = 0  # bytes
    calls: set[str] = field(default_factory=set)
    indirect: bool = False  # it calls where no table is known to lead


@dataclass
class StackReport:
    """`bytes` at most, along `path` (names and frames, outermost first)."""

    bytes: int
    path: list[tuple[str, int]]

    def to_json(self) -> dict[str, object]:
        return {"bytes": self.bytes, "path": [{"function": n, "frame": f} for n, f in self.path]}

    def __str__(self) -> str:
        return f"{self.bytes} bytes: " + " > ".join(f"{n} {f}" for n, f in self.path)


def worst_stack(elf: bytes, program: Program, entry: str = "main", interrupts: tuple[str, ...] = (), fpu: bool = True) -> StackReport:
    """The deepest use of the stack from `entry`, with the deepest of `interrupts` on top of it.

    Raises UserError if an indirect call goes where no table is known, or the code calls itself.
    """
    nodes = read_nodes(elf)
    resolve(nodes, program)
    if (call := nodes.get(_GUARDED)) is not None and "board_guard_grain" in (at := _addresses(elf)):
        guarded, call.calls = call.calls, set()  # below the line
        main = _deepest(nodes, entry)
        above = _deepest(nodes, entry, _GUARDED)
        gap = _gap(at["board_stack_bottom"], at["board_stack_top"] - above.bytes, at["board_guard_grain"])
        copy = -(-max(_blocks(program), default=0) // 8) * 8
        below = max((_deepest(nodes, name) for name in guarded), key=lambda r: r.bytes)
        path = [*above.path, ("(gap)", gap), ("(block)", copy), *below.path]
        main = max(main, StackReport(above.bytes + gap + copy + below.bytes, path), key=lambda r: r.bytes)
    else:
        main = _deepest(nodes, entry)
    if interrupts:
        frame = EXCEPTION_FRAME if fpu else SHORT_FRAME
        deepest = max((_deepest(nodes, name) for name in interrupts), key=lambda r: r.bytes)
        path = [*main.path, ("(exception)", frame), *deepest.path]
        return StackReport(main.bytes + frame + deepest.bytes, path)
    return main


def _gap(bottom: int, pointer: int, grain: int) -> int:
    """Bytes that a guarded call leaves out between the stack pointer above it and its line, as the board works it out."""
    if grain == 0:
        grain = 1 << (max(pointer - bottom - 1, 0) | 255).bit_length() - 3
    return pointer % grain


def _addresses(elf: bytes) -> dict[str, int]:
    """Name -> address of a board's symbols."""
    symbols = ELFFile(io.BytesIO(elf)).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    return {s.name: s["st_value"] for s in symbols.iter_symbols() if s.name.startswith("board_")}


def _blocks(program: Program) -> list[int]:
    """Bytes that guarded calls are handed."""
    out: list[int] = []

    def visit(e: ir.Expr) -> None:
        if isinstance(e, ir.Call) and e.function.c_name == "hal_guard_run":
            out.append(e.args[3].hi)

    for made in program.functions.values():
        walk(made.body, visit)
    return out


def read_nodes(elf: bytes) -> dict[str, Node]:
    """Functions, frames and direct calls of an ELF for Thumb."""
    file = ELFFile(io.BytesIO(elf))
    symbols = file.get_section_by_name(".symtab")
    if not isinstance(symbols, SymbolTableSection):
        raise UserError("the firmware has no symbols: build it with them to know its stack")
    functions: dict[int, tuple[str, int]] = {}
    data_at: set[int] = set()
    code_at: set[int] = set()
    for s in symbols.iter_symbols():
        if s["st_info"]["type"] == "STT_FUNC" and s["st_size"]:
            weak = s["st_info"]["bind"] == "STB_WEAK"  # of two names for one place its own counts
            if not weak or s["st_value"] & ~1 not in functions:
                functions[s["st_value"] & ~1] = s.name, s["st_size"]
        if s.name.startswith("$d"):
            data_at.add(s["st_value"])
        if s.name.startswith("$t"):
            code_at.add(s["st_value"])
    frames = dict(_frames(file))
    segments = [(p["p_vaddr"], p.data()) for p in file.iter_segments() if p["p_type"] == "PT_LOAD"]
    out: dict[str, Node] = {}
    for address, (name, size) in functions.items():
        node = Node(name)
        code = next((d[address - at :][:size] for at, d in segments if at <= address < at + len(d)), b"")
        pushed = 0
        for word, second, at in _instructions(code, address, data_at, code_at):
            target, moved, indirect = _decode(word, second, at)
            pushed += moved
            node.indirect = node.indirect or indirect
            if target is not None and not address <= target < address + size:
                callee = functions.get(target)
                if callee is not None:
                    node.calls.add(callee[0])
        frame, whole = frames.get(address, (0, False))
        node.frame = frame if whole and frame else max(frame, pushed)  # naked code says 0
        out[name] = node
    return out


def _frames(file: ELFFile) -> Iterator[tuple[int, tuple[int, bool]]]:
    """(address, (largest distance of the stack pointer, whether that is all)) of what has call frame information.

    Behind a frame pointer the stack pointer may go further than the information says.
    """
    if not file.has_dwarf_info():
        return
    dwarf = file.get_dwarf_info()
    if not dwarf.has_CFI():
        return
    for entry in dwarf.CFI_entries():
        if isinstance(entry, FDE):
            rules = [line["cfa"] for line in entry.get_decoded().table if line.get("cfa") is not None]
            offsets = [rule.offset for rule in rules if rule.offset is not None]
            whole = bool(rules) and all(rule.reg == _SP for rule in rules)
            yield entry["initial_location"] & ~1, (max(offsets, default=0), whole)


def _instructions(code: bytes, base: int, data_at: set[int], code_at: set[int]) -> Iterator[tuple[int, int, int]]:
    """(first halfword, second or 0, address), literal pools left out."""
    at, in_data = 0, False
    while at + 2 <= len(code):
        here = base + at
        in_data = (in_data or here in data_at) and here not in code_at
        if in_data:
            at += 2
            continue
        word = struct.unpack_from("<H", code, at)[0]
        if word >> 11 in (0b11101, 0b11110, 0b11111) and at + 4 <= len(code):
            yield word, struct.unpack_from("<H", code, at + 2)[0], here
            at += 4
        else:
            yield word, 0, here
            at += 2


def _decode(word: int, second: int, at: int) -> tuple[int | None, int, bool]:
    """(target of a branch, bytes pushed, whether it calls through a register) of one instruction."""
    if word & 0xF800 == 0xF000 and second & 0xD000 in (0xD000, 0x9000):  # BL, B.W
        sign = word >> 10 & 1
        i1, i2 = 1 - ((second >> 13 & 1) ^ sign), 1 - ((second >> 11 & 1) ^ sign)
        offset = i1 << 23 | i2 << 22 | (word & 0x3FF) << 12 | (second & 0x7FF) << 1
        return at + 4 + offset - (sign << 24), 0, False
    if word & 0xF800 == 0xE000 and second == 0:  # B
        offset = (word & 0x7FF) << 1
        return at + 4 + offset - ((offset & 0x800) << 1), 0, False
    if word & 0xFF87 == 0x4780:  # BLX register
        return None, 0, True
    if word & 0xFF87 == 0x4700 and word >> 3 & 15 not in (14,):  # BX register that is not a return
        return None, 0, True
    if word & 0xFE00 == 0xB400:  # PUSH
        return None, 4 * bin(word & 0x1FF).count("1"), False
    if word & 0xFF80 == 0xB080:  # SUB SP
        return None, (word & 0x7F) * 4, False
    if word == 0xE92D:  # PUSH.W
        return None, 4 * bin(second).count("1"), False
    if word & 0xFBEF == 0xF1AD and second & 0x8F00 == 0x0D00:  # SUB.W SP
        return None, _expand((word >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF), False
    if word & 0xFFBF == 0xED2D:  # VPUSH
        return None, (second & 0xFF) * 4, False
    if word == 0xF84D and second & 0x0F00 == 0x0D00:  # STR register, [SP, #-n]!
        return None, second & 0xFF, False
    return None, 0, False


def _expand(imm12: int) -> int:
    """A Thumb modified immediate."""
    if imm12 >> 10 == 0:
        low = imm12 & 0xFF
        return (low, low << 16 | low, low << 24 | low << 8, low * 0x01010101)[imm12 >> 8 & 3]
    value, turn = 0x80 | imm12 & 0x7F, imm12 >> 7
    return (value >> turn | value << (32 - turn)) & 0xFFFFFFFF


def resolve(nodes: dict[str, Node], program: Program) -> None:
    """Give indirect calls the targets of the tables that their functions call through; those are then direct."""
    by_name = {f.c_name: f for f in program.functions}
    handed = _handed(program) & set(nodes)
    for node in nodes.values():
        function = by_name.get(node.name.partition(".")[0])  # gcc calls its variants of f f.constprop.0, f.part.0...
        if node.indirect and function is None and handed:  # a board's, which calls what it was handed
            node.calls |= handed
            node.indirect = False
        if not node.indirect or function is None:
            continue
        work, seen = [function], set()
        while work:
            here = work.pop()
            if here in seen or here not in program.functions:
                continue
            seen.add(here)
            made = program.functions[here]
            for table in made.tables:
                node.calls |= {e.c_name for e in program.entries(table) if e.c_name in nodes}
                node.indirect = False
            work += [c for c in made.calls if c.c_name not in nodes]  # inlined here


def _handed(program: Program) -> set[str]:
    """Functions that are handed to the board, by their names in C."""
    out: set[str] = set()

    def visit(e: ir.Expr) -> None:
        if isinstance(e, ir.FunctionRef):
            out.add(e.function.c_name)

    for made in program.functions.values():
        walk(made.body, visit)
    return out


def _deepest(nodes: dict[str, Node], entry: str, to: str = "") -> StackReport:
    """The deepest path from `entry`; with `to` of those that end there."""
    if entry not in nodes:
        raise UserError(f"the firmware has no function {entry}: nothing to measure the stack from")
    known: dict[str, StackReport | None] = {}
    path: list[str] = []

    def visit(name: str) -> StackReport | None:
        if name in path:
            raise UserError(f"the stack has no bound: {' > '.join([*path[path.index(name) :], name])} calls itself")
        if name not in known:
            path.append(name)
            node = nodes[name]
            if node.indirect:
                raise UserError(f"the stack has no bound: {name} calls through a register, and no table says where to")
            ways = [way for c in node.calls if c in nodes and (way := visit(c)) is not None]
            below = max(ways, key=lambda r: r.bytes, default=StackReport(0, []) if to in ("", name) else None)
            path.pop()
            known[name] = below and StackReport(node.frame + below.bytes, [(name, node.frame), *below.path])
        return known[name]

    found = visit(entry)
    if found is None:
        raise UserError(f"the firmware never calls {to}")
    return found
