"""An app with a model on the accelerator: the same bytes as on the processor, on this machine and on a board."""

import sys
from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos import lang, toolchain
from synapticos.app.program import FrameRecord
from synapticos.emulator import Machine
from synapticos.errors import UserError
from synapticos.host.execute import read_sources, run_on_board, run_on_host
from synapticos.host.firmware import build_firmware

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from make_test_model import RELU, Layers  # noqa: E402

BOARD = "mps2-an521"
FRAMES = 3


def network(seed: int) -> bytes:
    m = Layers(seed)
    x = m.tensor("picture", (1, 12, 12, 4), 0.0078125, -1)
    one = m.conv("one", x, 16, (3, 3), activation=RELU)
    two = m.conv("two", one, 8, (1, 1))
    return m.finish([x], [m.pool("AVERAGE", "three", two, (12, 12), 12, 0)])


def app_of(folder, *where, **options):
    """A pipeline a model, each of a class of its own, the first the least urgent."""
    app = syn.App("side", **options)
    for i, on in enumerate(where):
        (folder / f"net{i}.tflite").write_bytes(network(i + 1))
        frames = np.random.Generator(np.random.PCG64(i)).integers(-128, 128, (FRAMES, 1, 12, 12, 4)).astype(np.int8)
        frames.tofile(folder / f"in{i}.bin")
        source = app.frames(f"picture{i}", (1, 12, 12, 4), "int8", file=folder / f"in{i}.bin")
        app.job(app.pipeline(f"p{i}", source).model(app.model(folder / f"net{i}.tflite", on=on)), priority=i)
    return app


# Not on "cortex-m": its clock moves only when it is moved, so an accelerator would never end.
@pytest.mark.parametrize("engine", ["native", "checked"])
def test_on_this_machine_it_gives_the_processors_bytes(tmp_path, engine):
    on_npu = run_on_host(app_of(tmp_path, "npu", "npu"), {}, engine=engine)
    assert on_npu.digest == run_on_host(app_of(tmp_path, "cpu", "cpu"), {}).digest


@pytest.fixture
def needs_arm():
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M")


def test_on_the_emulated_board_it_gives_the_same(tmp_path, needs_arm):
    built = build_firmware(app_of(tmp_path, "npu", "cpu", "npu"), BOARD)
    on_board = run_on_board(built, {})
    assert on_board.digest == run_on_host(app_of(tmp_path, "npu", "cpu", "npu"), {}).digest
    assert on_board.digest == run_on_host(app_of(tmp_path, "cpu", "cpu", "cpu"), {}).digest


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """`machine()`: the board with an app whose second model runs on the processor, its frames given, not started."""
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M")
    folder = tmp_path_factory.mktemp("npu")
    app = app_of(folder, "npu", "cpu", "npu")
    built = build_firmware(app, BOARD)
    fed = {f"in{j}": b"".join(np.ascontiguousarray(f).tobytes() for f in own) for j, own in enumerate(read_sources(app, {}, False))}
    return lambda: Machine(built.elf, built.board, files=fed)


def outputs(done):
    """Status and first output of each frame of each job."""
    out = {}
    for name, data in sorted(done.files.items()):
        at = 0
        while name.startswith("out") and at < len(data):
            record = lang.unpack(FrameRecord, data, at)
            at += lang.sizeof(FrameRecord)
            size = sum(record["size"][: record["outputs"]])
            out[name, len(out)] = (int(record["status"]), data[at : at + size])
            at += size + 4 * (record["stages"] + record["layers"])
    return out


def test_the_board_works_on_while_the_accelerator_does_and_is_told_by_interrupt(machine):
    m = machine()
    beside = []
    m._hook_block(m.image.symbols["cpu_run"] & ~1, lambda: beside.append(m.npu.state == m.npu.WORKS))
    told = m.count("npu_interrupt")["npu_interrupt"]
    done = m.run()
    assert done.code == 0
    assert len(m.npu.started) == len(m.npu.ended) == len(told)
    assert len(beside) == 3 * FRAMES and all(beside)  # each layer of the second model


def test_a_device_that_never_ends_costs_its_own_jobs_and_no_others(machine):
    good = outputs(machine().run())
    m = machine()
    m.npu.lost = True
    got = outputs(m.run())
    assert {name: status for (name, _), (status, _) in got.items()} == {"out0": -116, "out1": 0, "out2": -116}
    assert [v for (name, _), v in got.items() if name == "out1"] == [v for (name, _), v in good.items() if name == "out1"]
    m = machine()
    m.npu.fails = -5 & 0xFFFFFFFF
    assert {status for (name, _), (status, _) in outputs(m.run()).items() if name != "out1"} == {-5}


def test_whenever_the_interrupt_comes_the_bytes_are_the_same(machine):
    """The accelerator takes n instructions longer: its interrupts come at other instructions of the processor each time."""
    good = outputs(machine().run())
    for n in range(1, 14):
        m = machine()
        m.npu.extra_ns = n * m.board.instruction_ns
        assert outputs(m.run()) == good


def test_where_there_is_no_accelerator_the_app_is_refused_in_a_line(tmp_path):
    with pytest.raises(UserError, match='lm3s6965evb has no accelerator for model "net0"; leave out on="npu", or take mps2-an521'):
        build_firmware(app_of(tmp_path, "npu"), "lm3s6965evb")
    with pytest.raises(UserError, match='on is "cpu" or "npu", not "gpu"'):
        app_of(tmp_path, "gpu")


def test_qemu_lacks_the_device_and_says_so(tmp_path, needs_arm):
    built = build_firmware(app_of(tmp_path, "npu"), BOARD)
    with pytest.raises(UserError, match="--emulator qemu: it has no accelerator, and side has a model on it"):
        run_on_board(built, {}, emulator="qemu")


def test_firmware_without_a_model_on_it_has_nothing_of_it(tmp_path, needs_arm):
    built = build_firmware(app_of(tmp_path, "cpu"), BOARD)
    symbols = Machine(built.elf, built.board).image.symbols
    assert not [s for s in symbols if "npu" in s or s.startswith("sim_")]
