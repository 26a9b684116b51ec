"""Firmware on both boards, in QEMU and in the in-process emulator: same text, same exit code, same files."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from board_program import line_of

from synapticos import boards, toolchain
from synapticos.boards import faults, firmware, qemu
from synapticos.emulator import Machine

BOARDS = list(boards.BOARDS)
COMPILERS = ["arm-none-eabi-gcc", "zig"]
FILES = {"in.bin": b"0123456789"}
M33, M3 = "mps2-an521", "lm3s6965evb"


def emulate(elf, board, argument="", files=FILES, **options):
    return Machine(elf, boards.find(board), argument=argument, files=files).run(20_000_000, **options)


@pytest.fixture(params=COMPILERS)
def compiler(request):
    return request.param


@pytest.mark.parametrize("board", BOARDS)
def test_a_firmware_boots_and_finds_all_that_a_board_gives(program, compiler, board):
    result = emulate(program(board, compiler), board, "hello")
    lines = result.text.splitlines()
    assert result.code == 5
    for line in (
        "argument 5",
        "counted 42",
        "slept when woken 0",
        "slept 1",
        "masked 1",
        "ticks while masked 1",
        f"stack {boards.find(board).stack}",
        "used 1",
        "third 33333",
        "read 8",
        "wrote 8",
    ):
        assert line in lines, line
    assert result.files["out.bin"] == b"234523456789"


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("argument", ["", "divide", "undefined", "svc", "breakpoint", "panic", "exit", "even"])
def test_qemu_and_the_emulator_print_the_same(program, compiler, board, argument):
    agree(program(board, compiler), board, argument)


@pytest.mark.parametrize("argument", ["null", "wild", "bus", "constant", "jump", "data", "deep"])
def test_qemu_and_the_emulator_print_the_same_of_wrong_accesses(program, compiler, argument):
    agree(program(M33, compiler), M33, argument)


def agree(elf, board, argument):
    if why := qemu.missing(boards.find(board)):
        pytest.skip(why)
    one = qemu.run(boards.find(board), elf, argument=argument, files=FILES)
    two = emulate(elf, board, argument)
    if argument == "divide":
        # QEMU 7.2 shows an old value of the register that the division would have set.
        one.text, two.text = (re.sub(r" (r[0-9]+) [0-9a-f]{8}", r" \1", text) for text in (one.text, two.text))
    assert two.text == one.text
    assert (two.code, two.files) == (one.code, one.files)


@pytest.mark.parametrize(
    "argument, words, place",
    [
        (
            "null",
            "memory protection: access that is not allowed, address 0x00000000",
            "static void __attribute__((noinline)) null",
        ),
        ("wild", "memory protection: access that is not allowed, address 0x60000000", '"wild"'),
        ("bus", "bus fault: access to memory that is not there, address 0x5f000000", '"bus"'),
        ("constant", "memory protection: access that is not allowed", '"constant"'),
        ("divide", "division by zero", "static void __attribute__((noinline)) divide"),
        ("undefined", "undefined instruction", '"undefined"'),
        ("svc", "SVC, which nothing here handles", None),
        ("breakpoint", "breakpoint without a debugger", '"breakpoint"'),
        ("jump", "memory protection: jump to memory that holds no code", None),
        ("even", "jump to an even address", None),
        ("deep", "stack overflow", None),
    ],
)
def test_a_fault_ends_with_code_3_and_names_its_cause_and_line(program, compiler, argument, words, place):
    elf = program(M33, compiler)
    result = emulate(elf, M33, argument)
    assert result.code == 3
    told = faults.explain(elf, result.text)
    assert words in told
    if place is not None:
        assert re.search(rf"^  at .*program\.c:{line_of(place)}\)", told, re.MULTILINE), told


@pytest.mark.parametrize("argument", ["wild", "constant", "jump", "deep"])
def test_the_emulator_is_strict_where_qemu_is_not(program, argument):
    assert emulate(program(M3), M3, argument).code == 3


def test_a_panic_ends_with_code_4_and_its_file_is_named(program, compiler):
    elf = program(M33, compiler)
    result = emulate(elf, M33, "panic")
    assert result.code == 4 and "\npanic: file 3 line 41\n" in result.text
    assert "\n  at kernel/arena.py:41\n" in faults.explain(elf, result.text, {3: "kernel/arena.py"})


def test_a_missing_file_is_a_status_and_no_file_is_made(program):
    result = emulate(program(M33), M33, files={})
    assert "no file 2\n" in result.text and result.code == 5 and result.files == {}


def test_files_of_a_folder_are_read_and_written(program, tmp_path):
    (tmp_path / "in.bin").write_bytes(b"ABCDEFG")
    result = Machine(program(M33), boards.find(M33), folder=tmp_path).run()
    assert result.code == 5
    assert (tmp_path / "out.bin").read_bytes() == b"CDEFCDEFG"


def test_a_firmware_that_never_ends_is_stopped_and_may_go_on(program):
    machine = Machine(program(M33), boards.find(M33), argument="spin")
    first = machine.run(1_000_000)
    assert first.code is None and "no end after" in first.reason
    assert 1_000_000 <= first.instructions < 1_000_010
    assert machine.run(1000).instructions - first.instructions in range(1000, 1010)


def test_a_sleep_that_nothing_can_end_is_told(program):
    assert "no interrupt can come" in emulate(program(M3), M3, "sleep").reason


def test_a_run_is_the_same_each_time_and_however_it_is_sliced(program, compiler, monkeypatch):
    elf = program(M3, compiler)
    once = emulate(elf, M3)
    assert emulate(elf, M3) == once
    for size in (997, 12_345):
        monkeypatch.setattr("synapticos.emulator.machine.SLICE", size)
        assert emulate(elf, M3) == once


def test_text_comes_while_it_runs(program):
    parts = []
    result = Machine(program(M33), boards.find(M33), on_text=parts.append).run()
    assert "".join(parts) == result.text and len(parts) > 1


@pytest.mark.parametrize("board", BOARDS)
def test_a_firmware_takes_little(program, board):
    sizes = firmware.sizes(program(board), boards.find(board))
    assert sizes["flash"] < 6000
    assert sizes["data"] + sizes["bss"] < 64
    assert sizes["ram"] == sizes["data"] + sizes["bss"] + sizes["stack"]


def test_what_is_programmed_is_the_same_as_binary_and_as_hex(program):
    elf = program(M33)
    base, data = firmware.binary(elf)
    assert base == boards.find(M33).flash.base and len(data) == firmware.sizes(elf, boards.find(M33))["flash"]
    memory, upper, ended = {}, 0, False
    for line in firmware.intel_hex(0x1000FFF3, data).splitlines():
        record = bytes.fromhex(line[1:])
        assert sum(record) & 255 == 0 and len(record) == record[0] + 5 and not ended
        if record[3] == 4:
            upper = int.from_bytes(record[4:6], "big") << 16
        elif record[3] == 1:
            ended = True
        else:
            address = upper + int.from_bytes(record[1:3], "big")
            assert address // 65536 == (address + record[0] - 1) // 65536
            memory.update({address + i: b for i, b in enumerate(record[4:-1])})
    assert ended and bytes(memory[a] for a in sorted(memory)) == data and min(memory) == 0x1000FFF3


def test_a_program_that_does_not_compile_leaves_nothing(tmp_path):
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for cortex-m33 is installed")
    (tmp_path / "bad.c").write_text("int main(void) { return x; }\n")
    with pytest.raises(toolchain.CompileError, match=r"bad\.c:1:25"):
        firmware.build(boards.find(M33), [tmp_path / "bad.c"], tmp_path / "out.elf")
    assert not (tmp_path / "out.elf").exists()


def test_a_board_that_does_not_exist_names_those_that_do():
    with pytest.raises(boards.UserError, match="lm3s6965evb, mps2-an521"):
        boards.find("esp32")
    assert boards.find("mps2_an521") is boards.find("mps2-an521")


def test_calls_of_a_function_are_counted_each_for_itself(program, compiler, monkeypatch):
    machine = Machine(program(M33, compiler), boards.find(M33), files=FILES)
    counts = machine.count("work", "hal_idle")
    result = machine.run()
    assert len(counts["work"]) == 5 and len(set(counts["work"][1:])) == 1
    one, two = counts["work"][:2]
    assert 4 * 1000 < one < 8 * 1000 and abs(two - 2 * one) < 20
    assert len(counts["hal_idle"]) == 4 and counts["hal_idle"][0] < counts["hal_idle"][1] < 60
    assert result == emulate(program(M33, compiler), M33)  # and counting changes nothing
    monkeypatch.setattr("synapticos.emulator.machine.SLICE", 97)
    again = Machine(program(M33, compiler), boards.find(M33), files=FILES)
    sliced = again.count("work", "hal_idle")
    assert again.run() == result and sliced == counts
    with pytest.raises(KeyError):
        again.count("nothing")


def test_ctrl_c_ends_a_run(program):
    machine = Machine(program(M33), boards.find(M33), argument="spin")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        machine.run()
    timer.join()
    assert time.monotonic() - started < 5


def test_no_emulator_is_said_with_the_way_out():
    code = (
        "import sys; sys.modules['unicorn'] = None\n"
        "from synapticos.errors import UserError\n"
        "try:\n    import synapticos.emulator\n"
        "except UserError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("the in-process emulator needs unicorn (") and "pip install unicorn" in done.stdout
