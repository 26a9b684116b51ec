"""Board: what a build and an emulator must know of a board, as data, and the linker script that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from synapticos.errors import UserError

HERE = Path(__file__).parent
CHIP_SOURCES = (
    *(HERE / "cortex_m" / f"{name}.c" for name in ("startup", "fault", "semihost")),
    HERE / "memory.c",
)


def core_mhz(mhz: float) -> float:
    """A core's clock as a reader says it. Raises UserError for one that cannot be."""
    if not 0.001 <= mhz <= 10_000:
        raise UserError(f"--mhz {mhz:g}: the core's clock, from 0.001 to 10000")
    return mhz


@dataclass(frozen=True)
class Region:
    """Memory at a fixed address."""

    name: str  # in the linker script: FLASH, RAM, ...
    base: int
    size: int

    @property
    def end(self) -> int:
        return self.base + self.size

    def __str__(self) -> str:
        return f"{self.name} {self.base:#010x} {self.size // 1024} KB"


@dataclass(frozen=True)
class Board:
    """One board. `sources` and the linker script make a firmware of any program with `int main(void)`."""

    name: str
    title: str
    cpu: str  # cortex-m33, cortex-m3
    target: str  # of toolchain.TARGETS
    fpu: bool
    dsp: bool
    flash: Region
    ram: Region
    more_ram: tuple[Region, ...] = ()  # a variable goes there by the section of its name: ".extra"
    stack: int = 8192  # bytes
    uart: int = 0  # base address of the console's UART
    uart_kind: str = "none"  # cmsdk, pl011: what an emulator puts there
    timer: int = 0  # base address of a CMSDK timer, 0 for none
    tick_rate: int = 0  # Hz
    instruction_ns: int = 32  # what emulators take one instruction to last (QEMU's -icount shift=5)
    sources: tuple[Path, ...] = ()
    npu: int = 0  # base address of the emulator's own accelerator, 0 for none; it makes interrupt 0
    devices: Region = Region("DEVICES", 0x40000000, 0x20000000)
    guard: bool = False  # with what `hal.guard_run` needs: see `guarded`
    interrupts: int = 0  # entries of the vector table after the core's own sixteen
    qemu: tuple[str, ...] = ()  # how QEMU is told of this board; empty if it does not know it

    def at(self, mhz: float) -> Board:
        """The same board in an emulator whose core has this clock, an instruction a cycle; whole nanoseconds, rounded down.

        Raises UserError for a clock that none has.
        """
        return replace(self, instruction_ns=max(int(1000 / core_mhz(mhz)), 1))

    def guarded(self) -> Board:
        """The same board for a program with GUARD: guarded calls run without privilege, behind the MPU."""
        return self if self.guard else replace(self, guard=True, sources=(*self.sources, HERE / "cortex_m" / "guard.c"))

    @property
    def flags(self) -> tuple[str, ...]:
        """What the board's own C needs to be compiled with."""
        values = {
            "BOARD_INTERRUPTS": self.interrupts,
            "BOARD_FPU": int(self.fpu),
            "BOARD_STACK_LIMIT": int(self.cpu == "cortex-m33"),  # the core has MSPLIM
            "BOARD_GUARD": int(self.guard),
            "BOARD_MPU": 8 if self.cpu == "cortex-m33" else 7,  # whose architecture: ARMv8-M, ARMv7-M
        }
        for region in (self.flash, self.ram, *self.more_ram, self.devices):
            values[f"BOARD_{region.name}"] = region.base
            values[f"BOARD_{region.name}_SIZE"] = region.size
        return tuple(f"-D{name}={value:#x}" for name, value in values.items())

    @property
    def inputs(self) -> tuple[Path, ...]:
        """All files that `sources` are made of: what the key of a cached firmware depends on, with `flags`."""
        return (*self.sources, HERE / "hal.h", HERE / "cortex_m" / "chip.h")

    @property
    def per_file(self) -> dict[str, tuple[str, ...]]:
        """Flags of single files of `sources`, by their name."""
        return PER_FILE

    def script(self, *, stack: int | None = None) -> str:
        """The linker script of a firmware: code and constants in flash, initial data copied by the startup code."""
        return linker_script(self.flash, self.ram, self.more_ram, stack=self.stack if stack is None else stack)


# memory.c defines memcpy and its like: no loop in it may be turned into a call of them.
PER_FILE: dict[str, tuple[str, ...]] = {"memory.c": ("-fno-builtin", "-fno-tree-loop-distribute-patterns")}


def linker_script(
    flash: Region, ram: Region, more_ram: tuple[Region, ...] = (), *, stack: int, copied: bool = True
) -> str:
    """A linker script. The stack lies lowest in RAM, so that one that grows too far leaves the memory and faults.

    `.syn.words`, what the host says for the program's message numbers, is kept in the ELF and loaded nowhere.
    With `copied` initial data are kept in flash (startup copies them), else the loader puts them in RAM.
    """
    if stack % 8 or not 0 < stack < ram.size:
        raise ValueError(f"a stack of {stack} bytes: it must be a multiple of 8 and fit {ram}")
    regions = "".join(f"    {r.name} : ORIGIN = {r.base:#x}, LENGTH = {r.size:#x}\n" for r in (flash, ram, *more_ram))
    load = f" AT> {flash.name}" if copied else ""
    extra = "".join(
        f"    .{r.name.lower()} (NOLOAD) : {{ *(.{r.name.lower()} .{r.name.lower()}.*) }} > {r.name}\n"
        for r in more_ram
    )
    return f"""ENTRY(board_reset)
MEMORY {{
{regions}}}
SECTIONS {{
    .text : {{
        KEEP(*(.vectors))
        *(.text .text.*)
    }} > {flash.name}
    .rodata : ALIGN(16) {{
        *(.rodata .rodata.*)
        . = ALIGN(4);
    }} > {flash.name}
    .stack (NOLOAD) : {{
        board_stack_bottom = .;
        . += {stack:#x};
        board_stack_top = .;
    }} > {ram.name}
    .data : ALIGN(8) {{
        board_data_start = .;
        *(.data .data.*)
        . = ALIGN(4);
        board_data_end = .;
    }} > {ram.name}{load}
    board_data_load = LOADADDR(.data);
    .bss (NOLOAD) : ALIGN(16) {{
        board_bss_start = .;
        *(.bss .bss.* COMMON)
        . = ALIGN(4);
        board_bss_end = .;
    }} > {ram.name}
{extra}    .syn.words 0 (INFO) : {{ KEEP(*(.syn.words)) }}
    /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) *(.note.*) }}
}}
"""
