"""A chip without a board: code, RAM and nothing else. The emulator calls single functions on it (`emulator.Core`)."""

from pathlib import Path

from synapticos.boards.board import HERE, PER_FILE, Region, linker_script

CODE = Region("FLASH", 0x10000000, 4 << 20)
RAM = Region("RAM", 0x38000000, 1 << 20)
HEAP = Region("HEAP", 0x80000000, 64 << 20)  # what the host allocates for arguments; not known to the linker
STACK = 64 << 10
INSTRUCTION_NS = 32  # what the emulator takes one instruction to last
RETURN = CODE.end - 16  # a breakpoint: where the called function returns to

SOURCES: tuple[Path, ...] = (HERE / "bare" / "hal_bare.c", HERE / "memory.c")
PER_FILE = PER_FILE


def script() -> str:
    """The linker script: no startup code, so initial data are loaded where they are used."""
    text = linker_script(CODE, RAM, stack=STACK, copied=False)
    return text.replace("ENTRY(board_reset)\n", "ENTRY(syn_panic)\n")
