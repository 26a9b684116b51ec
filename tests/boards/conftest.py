"""The test program of `board_program.py`, built for a board by a compiler, each once."""

import functools
from pathlib import Path

import pytest
from board_program import FLAGS, PROGRAM

from synapticos import boards, toolchain
from synapticos.boards import firmware
from synapticos.boards.board import HERE


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """A function: the ELF of the test program for a board by a compiler's name, or a skip."""

    @functools.cache
    def build(board_name: str, compiler: str = "") -> Path:
        board = boards.find(board_name)
        chains = {c.name: c for c in toolchain.find_all(board.target)}
        if not chains or compiler and compiler not in chains:
            pytest.skip(f"{compiler or 'a compiler for ' + board.target} is not installed")
        folder = tmp_path_factory.mktemp(f"{board_name}-{compiler}")
        source = folder / "program.c"
        source.write_text(PROGRAM)
        chain = chains[compiler] if compiler else next(iter(chains.values()))
        flags = (*FLAGS, f"-I{HERE / 'cortex_m'}")
        return firmware.build(board, [source], folder / "program.elf", chain=chain, flags=flags)

    return build
