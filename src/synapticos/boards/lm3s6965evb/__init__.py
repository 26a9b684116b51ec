"""TI's Stellaris LM3S6965 evaluation board: a Cortex-M3 with 256 KB of flash and 64 KB of RAM, no FPU, no DSP.

QEMU lets writes to flash and to unmapped addresses pass on this board: look for wild pointers on the other one.
"""

from synapticos.boards.board import CHIP_SOURCES, HERE, Board, Region

BOARD = Board(
    name="lm3s6965evb",
    title="TI LM3S6965 evaluation board, Cortex-M3, 12.5 MHz",
    cpu="cortex-m3",
    target="cortex-m3",
    fpu=False,
    dsp=False,
    flash=Region("FLASH", 0x00000000, 256 << 10),
    ram=Region("RAM", 0x20000000, 64 << 10),
    stack=4 << 10,
    uart=0x4000C000,
    uart_kind="pl011",
    tick_rate=12_500_000,
    sources=(*CHIP_SOURCES, HERE / "lm3s6965evb" / "board.c"),
    qemu=("-M", "lm3s6965evb"),
)
