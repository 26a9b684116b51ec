"""The computed stack bounds what a run really used, and is not far from it."""

import re
import subprocess
from pathlib import Path

import pytest
import synapticos as syn
from hypothesis import given
from hypothesis import strategies as st

from synapticos import boards, toolchain
from synapticos.analysis import stack
from synapticos.analysis.stack import Node, read_nodes, worst_stack
from synapticos.compiler import Program
from synapticos.emulator import Machine
from synapticos.errors import UserError
from synapticos.host.firmware import build_firmware, link_program
from synapticos.lang import *

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"

Leaf = Fn[[u32], u32]


@hal_function
def stack_used(board: u32) -> u32:
    """The painted stack's high-water mark, bytes."""


@fn
def shallow(n: u32) -> u32:
    return n


@fn
def deep(n: u32) -> u32:
    """400 bytes of words, all of them used."""
    words = local(u32, 100)
    for i in range(100):
        words[i] = wrap(u32, n * i)
    console.print(f"sum {words[n % 100]}")
    return words[n % 7]


LEAVES = table(Leaf, [shallow, deep])


@fn
def through(at: u32) -> u32:
    return LEAVES[at](9)


@fn
def stack_main() -> i32:
    for i in range(2):
        word = through(i)
        console.print(f"{word}")
    used = stack_used(0)
    console.print(f"used {used}")
    return 0


def built(board_name: str, compiler: str) -> tuple[bytes, Program, boards.Board]:
    board = boards.find(board_name)
    chains = [c for c in toolchain.find_all(board.target) if c.name == compiler]
    if not chains:
        pytest.skip(f"{compiler} is not installed")
    program = Program.of([stack_main], {}, 4)
    elf, _ = link_program(program, stack_main, board, chains[0])
    return elf, program, board


@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "zig"])
@pytest.mark.parametrize("board_name", ["mps2-an521", "lm3s6965evb"])
def test_the_bound_holds_and_is_near(board_name, compiler):
    elf, program, board = built(board_name, compiler)
    report = worst_stack(elf, program, "board_reset")
    ran = Machine(elf, board).run()
    used = int(re.search(r"used (\d+)", ran.text).group(1))
    assert 400 < used <= report.bytes <= used + 400, f"{ran.text}\n{report}"


def test_an_indirect_call_reaches_every_row_of_its_table():
    elf, program, _ = built("mps2-an521", "arm-none-eabi-gcc")
    report = worst_stack(elf, program, "board_reset")
    assert "deep" in [name for name, _ in report.path]


def nodes_of(through_name):
    """A call graph as gcc may leave it, `through` under a name of its own."""
    made = [Node("main", 8, {through_name}), Node(through_name, 100, indirect=True), Node("shallow", 4), Node("deep", 400)]
    return {node.name: node for node in made}


@pytest.mark.parametrize("name", ["through", "through.constprop.0", "through.part.0.isra.0"])
def test_a_variant_of_a_function_calls_through_the_same_tables(monkeypatch, name):
    monkeypatch.setattr(stack, "read_nodes", lambda elf: nodes_of(name))
    assert worst_stack(b"", Program.of([stack_main], {}, 4)).path == [("main", 8), (name, 100), ("deep", 400)]


def test_a_call_that_no_table_explains_has_no_bound(monkeypatch):
    monkeypatch.setattr(stack, "read_nodes", lambda elf: nodes_of("stranger"))
    with pytest.raises(UserError, match="stranger calls through a register"):
        worst_stack(b"", Program.of([stack_main], {}, 4))


def test_an_interrupt_adds_the_core_s_frame_and_its_own_path():
    elf, program, _ = built("mps2-an521", "arm-none-eabi-gcc")
    alone = worst_stack(elf, program, "board_reset")
    nested = worst_stack(elf, program, "board_reset", interrupts=("board_fault",))
    assert nested.bytes >= alone.bytes + 104


def test_an_entry_that_is_not_there_is_named():
    elf, program, _ = built("mps2-an521", "arm-none-eabi-gcc")
    with pytest.raises(UserError, match="no function nowhere"):
        worst_stack(elf, program, "nowhere")


def test_code_that_calls_itself_has_no_bound(tmp_path):
    chain = toolchain.find_all("cortex-m33")
    if not chain or chain[0].name != "arm-none-eabi-gcc":
        pytest.skip("arm-none-eabi-gcc is not installed")
    source = tmp_path / "r.c"
    source.write_text("int again(int n); __attribute__((noinline)) int other(int n) { return n ? again(n - 1) + 1 : 0; }\n"
                      "__attribute__((noinline)) int again(int n) { return other(n) * 2 + 1; } int main(void) { return again(3); }\n")
    elf = tmp_path / "r.elf"
    subprocess.run(["arm-none-eabi-gcc", "-mcpu=cortex-m33", "-mthumb", "-O1", "-fno-optimize-sibling-calls", "-nostdlib", "-Wl,-emain", str(source), "-o", str(elf)], check=True)
    with pytest.raises(UserError, match="calls itself"):
        worst_stack(elf.read_bytes(), Program.of([], {}, 4), "main")


def test_frames_and_calls_of_plain_code(tmp_path):
    chain = toolchain.find_all("cortex-m33")
    if not chain or chain[0].name != "arm-none-eabi-gcc":
        pytest.skip("arm-none-eabi-gcc is not installed")
    source = tmp_path / "f.c"
    source.write_text("void sink(volatile int *); __attribute__((noinline)) void sink(volatile int *p) { *p = 1; }\n"
                      "int main(void) { volatile int a[64]; sink(a); return a[0]; }\n")
    for debug in ("-g", "-g0"):  # with call frame information, and by the instructions alone
        elf = tmp_path / f"f{debug}.elf"
        command = ["arm-none-eabi-gcc", "-mcpu=cortex-m33", "-mthumb", "-O1", debug, "-fno-asynchronous-unwind-tables", "-nostdlib", "-Wl,-emain", str(source), "-o", str(elf)]
        subprocess.run(command, check=True)
        nodes = read_nodes(elf.read_bytes())
        assert nodes["main"].calls == {"sink"}
        assert 256 <= nodes["main"].frame <= 280


@syn.stage
def small(x: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> tuple[syn.Status, u32]:
    out[0, 0] = x[0, 0]
    return syn.Status.OK, 1


@syn.stage
def larger(x: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> tuple[syn.Status, u32]:
    words = local(u32, 99)
    for i in range(99):
        words[i] = wrap(u32, u32(i) * 0x01010101)
    out[0, 0] = i8(words[u32(x[0, 0]) % 99] & 63)
    return syn.Status.OK, 1


@syn.stage
def largest(x: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> tuple[syn.Status, u32]:
    words = local(u32, 270)
    for i in range(270):
        words[i] = wrap(u32, u32(i) * 0x01010101)
    out[0, 0] = i8(words[u32(x[0, 0]) % 270] & 63)
    return syn.Status.OK, 1


@pytest.mark.parametrize("stage", [small, larger, largest])
@pytest.mark.parametrize("board_name", ["mps2-an521", "lm3s6965evb"])
def test_the_gap_above_a_guarded_call_and_its_block_are_counted(board_name, stage):
    """What the paint says: the deepest word that a run, interrupted each millisecond, has written."""
    app = syn.App("deep", watchdog=5 * syn.ms)
    model = app.model(SINE, outputs=("y",))
    app.job(app.pipeline("wave", app.frames("x", (1, 1), "int8")).stage(stage).model(model))
    built = build_firmware(app, board_name)
    assert {"(gap)", "(block)"} <= {name for name, _ in built.stack.path}
    machine = Machine(built.elf, built.board, files={"in0": bytes(64)})
    assert machine.run().code == 0
    at = machine.image.symbols
    bottom, top = at["board_stack_bottom"], at["board_stack_top"]
    words = memoryview(machine.cpu.read(bottom, top - bottom)).cast("I")
    used = top - bottom - 4 * next(i for i, word in enumerate(words) if word != 0x57AC57AC)
    assert used <= built.stack.bytes <= used + 400, (used, str(built.stack))


@given(st.integers(0, 1000), st.integers(0, 1000), st.sampled_from([1024, 1536, 4096, 8192]))
def test_a_deeper_call_has_no_higher_line(words, more, size):
    bottom = 0x20000000
    for grain in (0, 32):
        pointers = [bottom + max(size - 8 * depth, 0) for depth in (words, words + more)]
        lines = [p - stack._gap(bottom, p, grain) for p in pointers]
        assert lines[0] >= lines[1] >= bottom and all(line % 32 == 0 for line in lines)
