"""The kernel's own work in instructions of a Cortex-M33: exact, from the in-process emulator.

The thunk that carries a call's arguments is measured with a function that does nothing and taken off.
"""

from __future__ import annotations

from typing import Any

from synapticos.engine import Build
from synapticos.kernel.arena import Arena
from synapticos.kernel.compose import pipeline_add_model, pipeline_add_preprocess, pipeline_build, pipeline_create
from synapticos.kernel.job import JobParams
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.models import model_register
from synapticos.kernel.npu import npu_load_model
from synapticos.kernel.pipeline import APP_STAGE
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.runtime import kernel_init
from synapticos.kernel.sched import infer_cancel, infer_get_result, infer_post, kernel_poll
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Lifetime, StageCall, Tensor
from synapticos.lang import *

ARENA = 16384


@fn
def bench_stage(call: StageCall) -> Status:
    """Four bytes of nothing: a stage that costs as little as one can."""
    call.y.size = 48
    call.y.ndim = 1
    call.y.shape[0] = 48
    call.y.dtype = call.x[0].dtype
    return Status.OK


@fn
def bench_empty(kernel: Kernel) -> Status:
    return Status.OK


@fn
def bench_stage_alone(call: StageCall) -> Status:
    return bench_stage(call)


ROOTS = [Arena.tensor, Arena.reset, kernel_boot, kernel_init, model_register, npu_load_model, pipeline_create, pipeline_add_preprocess,
         pipeline_add_model, pipeline_build, infer_post, kernel_poll, infer_get_result, infer_cancel, bench_empty, bench_stage_alone]  # fmt: skip


class Bench:
    def __init__(self, jobs: int = 4) -> None:
        self.e: Any = Build(ROOTS, tables={APP_STAGES: [bench_stage]}, MAX_JOBS=jobs, MAX_PIPELINE_STAGES=8).engine("cortex-m")
        e = self.e
        self.kernel = e.new(Kernel)
        self.memory = e.array(u8, ARENA)
        self.none = 0
        e(bench_empty, self.kernel)
        self.none = e.instructions
        self("boot", kernel_boot, self.kernel, 0)
        self("init", kernel_init, self.kernel, self.memory, ARENA, 1024)
        info = e.new(ModelInfo, name=b"bench", input_size=48, output_size=10, sram_required=0)
        _, self.handle = e(model_register, self.kernel, info)
        self.payload = e.array(u8, 64)
        assert e(npu_load_model, self.kernel, self.payload, 64) == Status.OK
        self.input = e.array(u8, bytes(48))
        self.descriptor = e.new(Tensor, size=48, ndim=1, shape=[48], region=0, dtype=0)
        self.params = e.new(JobParams, priority=1)
        self.figures: dict[str, int] = {}

    def __call__(self, name: str, function: Any, *arguments: Any) -> Any:
        out = self.e(function, *arguments)
        self.last = self.e.instructions - self.none
        return out

    def pipeline(self, stages: int) -> int:
        e = self.e
        pipe = e(pipeline_create, self.kernel, None)
        for _ in range(stages):
            assert e(pipeline_add_preprocess, self.kernel, pipe, APP_STAGE, None, 0) == Status.OK
        assert e(pipeline_add_model, self.kernel, pipe, self.handle) == Status.OK
        assert e(pipeline_build, self.kernel, pipe) == Status.OK
        return int(pipe)

    def submit(self, pipe: int) -> int:
        status, job = self("submit", infer_post, self.kernel, pipe, self.descriptor, self.input, None, 0, self.params)
        assert status == Status.OK
        return int(job)

    def polls(self) -> list[int]:
        """Instructions of each poll until there is nothing to do."""
        out = []
        for _ in range(64):
            answer, _job = self("poll", kernel_poll, self.kernel)
            out.append(self.last)
            if int(answer) in (0, 2):
                return out
        raise AssertionError("the kernel never rests")


def figures() -> dict[str, int]:
    """Name -> instructions."""
    b = Bench()
    e, out = b.e, {}
    arena = e.new(Arena)
    e.fill = 0
    arena = b.kernel.arena
    b("tensor", Arena.tensor, arena, 300, Lifetime.EPHEMERAL)
    out["one tensor allocation (300 bytes)"] = b.last
    b("tensor", Arena.tensor, arena, 30, Lifetime.EPHEMERAL)
    out["one tensor allocation (30 bytes)"] = b.last
    b("reset", Arena.reset, arena, 0)
    out["arena reset"] = b.last
    call = e.new(StageCall)
    b("stage", bench_stage_alone, call)
    stage = b.last
    out["the stage of these figures, alone"] = stage
    out["poll with nothing to do"] = b.polls()[-1]
    pipes = [b.pipeline(n) for n in (1, 2, 3)]
    runs = []
    for pipe in pipes:
        job = b.submit(pipe)
        submit = b.last
        polls = b.polls()
        result = e.new(Tensor)
        assert b("result", infer_get_result, b.kernel, job, result) == Status.OK
        runs.append((submit, polls, b.last))
    submit, polls, result = runs[0]
    out["submit"] = submit
    out["poll that dispatches a job and runs its first stage"] = polls[0]
    out["submit to first step (both, less the stage)"] = submit + polls[0] - stage
    out["stage boundary (a later stage's poll, less the stage)"] = runs[1][1][1] - stage
    out["polls of a one-stage pipeline, its stub model included"] = sum(polls)
    out["reading the result"] = result
    job = b.submit(pipes[0])
    assert b("cancel", infer_cancel, b.kernel, job) == Status.OK
    out["cancel of a queued job"] = b.last
    out["boot (every field of the kernel)"] = 0
    b("boot", kernel_boot, b.kernel, 0)
    out["boot (every field of the kernel)"] = b.last
    return out
