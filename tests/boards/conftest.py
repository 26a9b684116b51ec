"""C programs for a board by a compiler, each built once; among them that of `board_program.py`."""

import pytest
from board_program import FLAGS, PROGRAM

from synapticos import boards, toolchain
from synapticos.boards import firmware
from synapticos.boards.board import HERE


@pytest.fixture(scope="session")
def program_of(tmp_path_factory):
    """`program_of(TEXT, board, "zig")`: the board and the ELF of a C program for it, by a compiler; skips where that is missing."""
    made = {}

    def build(text, board, compiler="", flags=()):
        chains = {c.name: c for c in toolchain.find_all(board.target)}
        if not chains or compiler and compiler not in chains:
            pytest.skip(f"{compiler or 'a compiler for ' + board.target} is not installed")
        key = (text, str(board), compiler, flags)
        if key not in made:
            folder = tmp_path_factory.mktemp(f"{board.name}-{compiler}")
            (folder / "program.c").write_text(text)
            chain = chains[compiler] if compiler else next(iter(chains.values()))
            own = (*FLAGS, *flags, f"-I{HERE / 'cortex_m'}")
            made[key] = firmware.build(board, [folder / "program.c"], folder / "program.elf", chain=chain, flags=own)
        return board, made[key]

    return build


@pytest.fixture(scope="session")
def program(program_of):
    """A function: the ELF of the test program for a board by a compiler's name, or a skip."""
    return lambda name, compiler="": program_of(PROGRAM, boards.find(name), compiler)[1]
