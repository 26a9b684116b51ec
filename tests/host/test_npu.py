"""An app with a model on the accelerator: the same bytes as on the processor, on this machine and on a board."""

import sys
from pathlib import Path

import numpy as np
import pytest

import synapticos as syn
from synapticos import boards, toolchain
from synapticos.emulator import Machine
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
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


@pytest.mark.parametrize("engine", ["native", "checked", "cortex-m"])
def test_on_this_machine_it_gives_the_processors_bytes(tmp_path, engine):
    if engine == "cortex-m":
        pytest.skip("its clock moves only when it is moved, so an accelerator would never end")
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
