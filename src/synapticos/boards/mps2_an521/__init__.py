"""Arm's MPS2+ board with the AN521 image: two Cortex-M33, 4 MB of code memory, 4 MB and 16 MB of RAM.

A generous board to develop on: what fits a product's budget is the budget's to say, not this board's.
"""

from synapticos.boards.board import CHIP_SOURCES, HERE, Board, Region

BOARD = Board(
    name="mps2-an521",
    title="Arm MPS2+ AN521, Cortex-M33 with FPU and DSP, 20 MHz",
    cpu="cortex-m33",
    target="cortex-m33",
    fpu=True,
    dsp=True,
    flash=Region("FLASH", 0x10000000, 4 << 20),
    ram=Region("RAM", 0x38000000, 4 << 20),
    more_ram=(Region("PSRAM", 0x80000000, 16 << 20),),
    stack=16 << 10,
    uart=0x50200000,
    uart_kind="cmsdk",
    timer=0x50000000,
    npu=0x50F00000,  # where the board has nothing; in the in-process emulator only
    tick_rate=20_000_000,
    sources=(*CHIP_SOURCES, HERE / "mps2_an521" / "board.c"),
    # The FPU of the first core is off in QEMU unless it is asked for.
    qemu=("-M", "mps2-an521", "-global", "sse-200.CPU0_FPU=on", "-global", "sse-200.CPU0_DSP=on"),
)
