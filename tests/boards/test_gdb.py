"""gdb on a firmware of kernel-Python: it stops at a Python line, lists Python and reads a Python local."""

import shutil
import subprocess
from pathlib import Path

import pytest

from synapticos import boards, toolchain
from synapticos.boards import firmware, qemu
from synapticos.engine import Build
from synapticos.lang import *

GDB = shutil.which("gdb-multiarch") or shutil.which("arm-none-eabi-gdb")


@fn
def weigh(grams: u32) -> u32:
    """Twice the weight, and one."""
    doubled = grams * 2
    return doubled + 1  # the line to stop at


@fn
def main() -> i32:
    total: u32 = 0
    for i in range(3):
        total += weigh(total + i)
    return i32(total)


@pytest.mark.skipif(GDB is None, reason="gdb-multiarch is not installed (apt install gdb-multiarch)")
@pytest.mark.parametrize("name", list(boards.BOARDS))
def test_gdb_stops_at_a_python_line(name, tmp_path):
    board = boards.find(name)
    if why := qemu.missing(board):
        pytest.skip(why)
    if not toolchain.find_all(board.target):
        pytest.skip(f"no compiler for {board.target} is installed")
    files = Build([main]).c_files(tmp_path)
    flags = ("-Og", "-g", f"-I{tmp_path}", f"-Wa,-I{tmp_path}", "-Dmain_=main")
    elf = firmware.build(board, files, tmp_path / "fw.elf", flags=flags)
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "the line to stop at" in text)
    orders = [
        "set confirm off",
        "set pagination off",
        f"directory {Path(__file__).parents[1]}",
        qemu.debug_target(board, elf),
        f"break {Path(__file__).name}:{line}",
        "continue",
        "info args",
        "list",
        "kill",
    ]
    done = subprocess.run(
        [str(GDB), "-nx", "-batch", str(elf), *(x for order in orders for x in ("-ex", order))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert f"test_gdb.py:{line}" in said, said
    assert "grams = 0" in said, said
    assert "return doubled + 1  # the line to stop at" in said, said
