"""FC-05: a slow best-effort network does not stop a control job, nor requests: in virtual time, on each engine, and as
`syn check` says beforehand of firmware that then runs on the emulated board."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from apps import PREEMPTIBLE, PipelineOf, model, tables
from make_test_model import RELU, Layers
from kernels import BEST_EFFORT, NORMAL, OPTIONS, REALTIME, ROOTS, TABLES, World
from synapticos import boards, toolchain
from synapticos.analysis.cycles import timing
from synapticos.analysis.tasks import MS, US
from synapticos.host.check import check_app
from synapticos.host.execute import run_on_board
from synapticos.host.firmware import build_firmware
from synapticos.kernel import hal
from synapticos.kernel.backend import Need, StepRows
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.release import Queue
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.kernel.stub import stub_load
from synapticos.kernel.tables import JOB_BY_SOURCE
from synapticos.kernel.tensor import DType, Tensor
from synapticos.kernel.timed import timed_caps
from synapticos.lang import *

import synapticos as syn

LAYERS, TILES, SIDE = 40, 32, 64
LONGEST = 15_000  # us: the longest step
OWN = 1000  # us: the one step of a control job or an echo
OVERHEAD = 1  # us: what the kernel itself may add, in virtual time the resolution of its clock


@fn
def work_need(m: ModelMemory, need: Need) -> None:
    """A container is: layers, tiles of each, kind."""
    need.frame_bytes = SIDE
    need.steps = u32(m.container[0])
    need.outputs = 1
    need.raw = False


@fn
def work_step(m: ModelMemory, step: u32, rows: StepRows) -> None:
    rows.row = 0
    rows.row_end = u32(m.container[1])
    rows.tile = 1


@fn
def work_run(m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    """Unequal times of 1 to 15 ms, and bytes that depend on every step before."""
    if m.container[2] == 0:
        hal.spend(0, OWN)
        return Status.OK
    if step == 7 and row == 3:
        hal.spend(0, LONGEST)
    else:
        hal.spend(0, 1000 + (step * 7919 + row * 104729) % 14000)
    if step == 0 and row == 0:
        move(m.frame, m.input, SIDE)
    sum: u32 = step * 31 + row
    for i in range(SIDE):
        sum = (sum * 5 + m.frame[i]) & 0xFFFF
        m.frame[i] = u8(sum >> 8)
    return Status.OK


@fn
def work_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    y.offset = 0
    y.size = SIDE
    y.dtype = DType.INT8
    y.ndim = 1
    y.shape[0] = SIDE
    return Status.OK


@fn
def work_clear(m: ModelMemory) -> Status:
    return Status.OK


BACKENDS = {
    BACKEND_CAPS: timed_caps, BACKEND_LOAD: stub_load, BACKEND_NEED: work_need, BACKEND_STEP: work_step, BACKEND_RUN: work_run,
    BACKEND_OUTPUT: work_output, BACKEND_CLEAR: work_clear,
}  # fmt: skip
WORK = len(TABLES[BACKEND_CAPS])
HERE = {**OPTIONS, "RELEASES": 3, "FEEDS": 1, "MAX_WAITING": 1, "tables": {**TABLES, **{t: [*TABLES[t], f] for t, f in BACKENDS.items()}}}
VISION, CONTROL, ECHO = range(3)


class Device(World):
    def boot(self, control: bool) -> None:
        models = [(bytes([LAYERS, TILES, 1]), WORK), (bytes([1, 1, 0]), WORK)]
        clock = dict(priority=REALTIME, depth=1, policy=int(Queue.OLDEST), period_us=20_000, deadline_us=20_000)
        once = dict(priority=BEST_EFFORT, flags=int(JOB_BY_SOURCE) | PREEMPTIBLE, depth=1, policy=int(Queue.OLDEST))
        pipelines = [
            PipelineOf([model(0)], result=SIDE, job=once, source=1),
            PipelineOf([model(1)], result=SIDE, job=clock if control else dict(priority=REALTIME)),
            PipelineOf([model(1)], result=SIDE, job=dict(priority=NORMAL)),
        ]
        source = dict(bytes=SIDE, hop=SIDE, ndim=1, shape=[SIDE, 0, 0, 0], dtype=0, keep=1)
        app = tables(models, pipelines, sources=[source])
        for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
            self.e(Regions.set, self.kernel.regions, int(region), self.keep(self.e.array(u8, data)), len(data))
        assert self("app_boot") == Status.OK
        for i in (VISION, CONTROL):
            self.kernel.releases.items[i].collect = True

    def play(self, echoes: list[int]) -> tuple[bytes, dict[int, list[int]]]:
        """The vision result's digest, and of each pipeline how long after its release each job began, in us."""
        board = self.e.board
        origin = int(self.kernel.releases.origin_us)
        board.now = origin
        assert self("source_push", 0, self.e.array(u8, bytes(range(SIDE))), SIDE) == Status.OK
        late: dict[int, list[int]] = {CONTROL: [], ECHO: []}
        seen = [0, 0]
        open_: dict[int, int] = {}
        picture = None
        while picture is None:
            while echoes and board.now - origin >= echoes[0]:
                echoes.pop(0)
                open_[self.submit(self("app_pipeline", ECHO), bytes(SIDE))] = ECHO
            answer, _ = self("kernel_poll")
            for i in (VISION, CONTROL):
                last = int(self.kernel.releases.items[i].last)
                if last != seen[i]:
                    seen[i], open_[last] = last, i
            for job, kind in list(open_.items()):
                over, status = self("outcome", job)
                if over:
                    assert status == Status.OK
                    slot = next(s for s in self.kernel.jobs if s.id == job)
                    if kind == VISION:
                        picture = self.result(job)
                    else:
                        late[kind].append(int(slot.began) - OWN - int(slot.release))  # ended: one step of its own ago it began
                        self("infer_detach", job)
                    del open_[job]
            if answer == Poll.IDLE and picture is None:
                board.now = int(self("kernel_due"))
        self.took = board.now - origin
        return hashlib.sha256(picture).digest(), late


@pytest.fixture
def device(make):
    from synapticos.kernel.sched import outcome

    World.names["outcome"] = outcome
    engine = make(*ROOTS, outcome, **HERE)
    return lambda: Device(engine)


def test_control_and_echoes_keep_their_bound_and_the_picture_is_the_same(device):
    alone = device()
    alone.boot(control=False)
    undisturbed, _ = alone.play([])
    assert alone.took > 9_000_000
    w = device()
    w.boot(control=True)
    asked = [1_234_567, 4_000_001, 7_777_777]
    picture, late = w.play(list(asked))
    assert picture == undisturbed
    release = w.kernel.releases.items[CONTROL]
    assert len(late[CONTROL]) > 500 and release.dropped == release.coalesced == 0
    assert max(late[CONTROL]) <= LONGEST + OVERHEAD and len(late[ECHO]) == 3
    # An echo of the middle class also lets one control job go before it.
    assert max(late[ECHO]) <= LONGEST + OWN + OVERHEAD
    assert sum(w.kernel.stats.misses) == 0
    # Each control job and each echo that came into the middle of the picture set it aside once, and it went on.
    assert w.kernel.stats.preemptions >= len(late[CONTROL]) // 2 and w.kernel.stats.errors == 0


def forty_layers() -> bytes:
    """A network of forty layers of unequal length."""
    m = Layers(5)
    x = m.tensor("picture", (1, 8, 8, 4), 0.0078125, -1)
    for i in range(40):
        wide = (3, 3) if i % 3 == 1 else (1, 1)
        x = m.conv(f"layer{i}", x, 4 + i * 7 % 9 if i < 39 else 4, wide, activation=RELU)
    return m.finish([0], [x])


def device_app(folder: Path, control: bool) -> syn.App:
    app = syn.App("device")
    rng = np.random.default_rng(5)
    for name, size in (("cam", 2 * 8 * 8 * 4), ("motor", 60), ("desk", 3)):
        (folder / f"{name}.raw").write_bytes(rng.integers(-128, 128, size, np.int8).tobytes())
    (folder / "vision.tflite").write_bytes(forty_layers())
    cam = app.frames("cam", (1, 8, 8, 4), "int8", file=folder / "cam.raw", every=600 * syn.ms)
    app.job(app.pipeline("vision", cam).model(app.model(folder / "vision.tflite")), on=cam, priority=syn.BEST_EFFORT)
    if control:
        motor = app.frames("motor", (1, 1), "int8", file=folder / "motor.raw", every=20 * syn.ms)
        desk = app.frames("desk", (1, 1), "int8", file=folder / "desk.raw", every=401 * syn.ms)
        small = app.model(Path(syn.__file__).parent / "app" / "sine.tflite")
        app.job(app.pipeline("control", motor).model(small), every=20 * syn.ms, deadline=20 * syn.ms, priority=syn.REALTIME)
        app.job(app.pipeline("echo", desk).model(small), on=desk, deadline=30 * syn.ms)
    return app


@pytest.mark.skipif(not toolchain.find_all("cortex-m33"), reason="needs a compiler for Cortex-M")
def test_the_bound_is_stated_before_a_board_exists_and_a_run_on_the_board_keeps_it(tmp_path):
    app = device_app(tmp_path, control=True)
    check = check_app(app, "mps2-an521", timing(boards.find("mps2-an521")))
    said = {r.name: r for r in check.responses}
    layers = [bound.ns for bound in check.bounds["vision"]]
    control, echo = said["control"], said["echo"]
    assert len(layers) == 40 and max(layers) > 3 * min(layers)
    assert check.verdict(control) == check.verdict(echo) == "kept" and control.culprit.startswith("vision")
    # The longest layer, and a constant that is stated: what the kernel needs for whatever may be released meanwhile.
    constant = sum(ns for name, ns in control.others if name.startswith(("releases of", "data of"))) + sum(check.kernel.values())
    assert max(layers) < control.start <= max(layers) + constant and control.start < control.response < 20 * MS
    report = run_on_board(build_firmware(app, "mps2-an521", settings={"TRACE": 1}), {})
    for job in (control, echo):
        steps = [step for step in report.steps if step.pipeline == job.name]
        begun = [step.begin_us - step.release_us for step in steps if (step.stage, step.layer) == (0, 0)]
        ended = [result.finish_us - result.release_us for result in report.results if result.pipeline == job.name]
        assert len(begun) == len(ended) >= {"control": 60, "echo": 3}[job.name]
        assert max(begun) * US <= job.start and max(ended) * US <= job.response, job.name
    # The picture was set aside and resumed, which the trace shows, and is bit by bit what it is alone.
    seen = [step.pipeline for step in report.steps]
    assert sum(a == "vision" and b == "control" for a, b in zip(seen, seen[1:], strict=False)) > 5
    alone = run_on_board(build_firmware(device_app(tmp_path, control=False), "mps2-an521"), {})
    pictures = [[r.arrays[0].tobytes() for r in made.results if r.pipeline == "vision"] for made in (report, alone)]
    assert len(pictures[1]) == 2 and pictures[0][:2] == pictures[1]
