"""Apps of small networks on the simulated accelerator, for tests: booted kernels, and what happened as a list of events."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from apps import PREEMPTIBLE, PipelineOf, model, tables
from kernels import OPTIONS as KERNEL
from kernels import ROOTS as KERNEL_ROOTS
from kernels import World
from synapticos import importers
from synapticos.kernel import hal, offload
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.cpu import cpu_run
from synapticos.kernel.job import HostWork, JobState
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.sim import SIM_BACKEND, sim_finish
from synapticos.kernel.status import Status
from synapticos.lang import fn, u8, u32
from synapticos.model import compile_model

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from make_test_model import RELU, Layers  # noqa: E402

CPU, SIM = 1, 2  # backends
ROOTS = (*KERNEL_ROOTS, hal.npu_reset, hal.npu_start)
OPTIONS: dict[str, Any] = {**KERNEL, "OFFLOAD": 1, "MAX_JOBS": 6, "MAX_MODELS": 4, "tables": {**KERNEL["tables"], **SIM_BACKEND}}
RATE = 1_000_000


@cache
def network(seed: int) -> Any:
    """Three layers on a picture of 6 x 6 x 2."""
    m = Layers(seed)
    x = m.tensor("picture", (1, 6, 6, 2), 0.0078125, -1)
    one = m.conv("one", x, 4 + seed % 3, (3, 3), activation=RELU)
    two = m.conv("two", one, 4, (1, 1))
    return m.finish([x], [m.pool("AVERAGE", "three", two, (6, 6), 6, 0)])


@cache
def compiled(seed: int, on: int = SIM) -> Any:
    return compile_model(importers.read(network(seed), f"net{seed}"), name=f"net{seed}_{on}")


def noise(seed: int) -> bytes:
    return np.random.Generator(np.random.PCG64(seed)).integers(-128, 128, 72).astype(np.int8).tobytes()


class Offloaded(World):
    """A kernel with an app: pipeline i is model i on its backend, a job of class `classes[i]`."""

    names = {f.c_name: f for f in ROOTS}

    def __init__(self, engine: Any, pipelines: list[dict[str, Any]], arena: int = 16384) -> None:
        super().__init__(engine, arena=arena, scratch=2048)
        for one in getattr(engine, "each", [engine]):
            one.board.set_npu(0)
        engine(hal.npu_reset, self.board)
        nets, rows = [], []
        for p in pipelines:
            key = (p["net"], p.get("on", SIM))
            if key not in nets:
                nets.append(key)
            flags = PREEMPTIBLE if p.get("preemptible", True) else 0
            job = dict(priority=p.get("priority", 1), flags=flags)
            stages = [*p.get("pre", ()), model(nets.index(key)), *p.get("post", ())]
            rows.append(PipelineOf(stages, result=64, job=job))
        app = tables([(compiled(net, on).container, on) for net, on in nets], rows)
        for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
            self.e(Regions.set, self.kernel.regions, int(region), self.keep(self.e.array(u8, data)), len(data))
        status = self("app_boot")
        assert status == Status.OK, status
        self.pipes = [self("app_pipeline", i) for i in range(len(pipelines))]

    def go(self, number: int, seed: int = 1, **options: Any) -> int:
        """Submit a job of a pipeline of the app; its id."""
        id = self.submit(self.pipes[number], noise(seed), **options)
        assert id != 0, self.status
        return id

    def pass_time(self, ticks: int) -> None:
        for one in getattr(self.e, "each", [self.e]):
            one.board.advance(ticks)

    def job(self, id: int) -> Any:
        return next(j for j in self.kernel.jobs if int(j.id) == id)

    def slot_state(self, id: int) -> tuple[JobState, HostWork]:
        job = self.job(id)
        return JobState(int(job.state)), HostWork(int(job.host))

    def check(self) -> None:
        """What always holds: one job at most has the accelerator, those that wait own their frames."""
        npu, jobs = self.kernel.npu, list(self.kernel.jobs)
        holders = [i for i, j in enumerate(jobs) if j.holds_npu and int(j.state) in (2, 3, 8)]
        assert len(holders) <= 1
        assert int(npu.owner) == (holders[0] + 1 if holders else 0)
        away = [i for i, j in enumerate(jobs) if int(j.host) == HostWork.AWAY and int(j.state) in (2, 3, 8)]
        assert len(away) <= 1 and all(i in holders for i in away)
        for i, j in enumerate(jobs):
            if int(j.state) == JobState.WAITING:
                assert int(self.kernel.frames[int(j.frame)].owner) == i + 1
        held = [int(p.model) for p in npu.holds.places if int(p.model)]
        assert len(held) == len(set(held))

    def finish(self, step: int = 10, most: int = 100_000) -> list[tuple[int, int]]:
        """Poll, and where there is nothing to do let time pass: the answers (poll, job), until no job is unfinished."""
        out = []
        for _ in range(most):
            answer, id = self("kernel_poll")
            self.check()
            if answer == 1:
                out.append((int(answer), int(id)))
            elif self.kernel.unfinished == 0:
                return out
            else:
                self.pass_time(step)
        raise AssertionError("still at it")

    def alone(self, number: int, seed: int) -> bytes:
        """What a job gives that runs by itself."""
        id = self.go(number, seed)
        self.finish()
        assert self("infer_wait", id, 0) == Status.OK
        return self.result(id)


# Three more backends: one that is done at once, one that cannot be asked and has no limit, and the simulated one with a
# driver that fails at the end of a step.

INSTANT, DEAF, FRAIL = 3, 4, 5


@fn
def at_once(board: u32, ticket: u32, m: ModelMemory, place: u32) -> Status:
    return Status.OK


@fn
def run_at_once(board: u32, ticket: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    return cpu_run(m, step, row, row_end)


@fn
def only_begin(board: u32, ticket: u32, m: ModelMemory, place: u32) -> Status:
    return Status.INPROGRESS


@fn
def only_start(board: u32, ticket: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    return Status.INPROGRESS


@fn
def no_limit(board: u32, m: ModelMemory, step: u32) -> u32:
    return 0


@fn
def not_asked(board: u32, ticket: u32) -> Status:
    return Status.INPROGRESS


@fn
def run_at_last(board: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    return cpu_run(m, step, row, row_end)


@fn
def fail_at_last(board: u32, m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    if m.input[0] == 0x55:
        return Status.IO
    return sim_finish(board, m, step, row, row_end)


@fn
def nothing_to_stop(board: u32) -> None:
    """There is no device."""


TWO = {
    offload.BACKEND_BRING: [at_once, only_begin], offload.BACKEND_START: [run_at_once, only_start],
    offload.BACKEND_LIMIT: [no_limit, no_limit], offload.BACKEND_LOOK: [not_asked, not_asked],
    offload.BACKEND_FINISH: [run_at_last, run_at_last], offload.BACKEND_RESET: [nothing_to_stop, nothing_to_stop],
}  # fmt: skip
LAST = {offload.BACKEND_FINISH: fail_at_last}
MORE = {**OPTIONS, "tables": {**OPTIONS["tables"], **{
    t: [*rows, *TWO.get(t, [rows[SIM]] * 2), LAST.get(t, rows[SIM])] for t, rows in SIM_BACKEND.items()
}}}  # fmt: skip
