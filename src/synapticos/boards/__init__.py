"""Boards: a folder each, with its memory map as data and its answers to the hardware contract (kernel/hal) in C.

`find("mps2-an521")` gives one. `cortex_m/` is what the chips share: startup, fault report, semihosting. `host` is a
board too, `bare` is a chip without one. `firmware.build` makes an ELF, `qemu.run` executes it.
"""

from synapticos.boards.board import Board, Region
from synapticos.boards.lm3s6965evb import BOARD as _lm3s6965evb
from synapticos.boards.mps2_an521 import BOARD as _mps2_an521
from synapticos.errors import UserError

BOARDS: dict[str, Board] = {board.name: board for board in (_mps2_an521, _lm3s6965evb)}


def find(name: str) -> Board:
    """The board of that name, underscores as good as dashes. Raises UserError, with the names that there are."""
    board = BOARDS.get(name.replace("_", "-"))
    if board is None:
        raise UserError(f"{name}: there is no such board; there are {', '.join(sorted(BOARDS))}")
    return board


__all__ = ["BOARDS", "Board", "Region", "find"]
