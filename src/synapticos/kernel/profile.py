"""Profiles: where a job's time went.

Kept in ticks of the board's counter and worked out in microseconds only when somebody asks. A step's time is what
passes while it runs, so time that a job lies suspended is in its total but in no part of it.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import LAYER_TIMES, MAX_PIPELINE_STAGES
from synapticos.kernel.clock import Clock
from synapticos.kernel.divide import divide


@struct
class JobTimes:
    """One job, in ticks (the largest u32 stands for all beyond)."""

    total: u32  # from the first step's start to the last one's end
    preprocess: u32
    npu: u32
    postprocess: u32
    peak: u32  # the arena's largest use since init, at the end of the job, bytes
    frame: u32  # arena bytes that this job used
    job: u32  # id
    stages: u32  # in `stage`
    stage: Shaped[Array[u32], MAX_PIPELINE_STAGES]


@struct
class ProfileResult:
    """The published record."""

    total_us: u32
    preprocess_us: u32
    npu_us: u32
    postprocess_us: u32
    ipc_overhead_us: u32
    mem_peak_bytes: u32
    npu_utilization_pct: u32


@struct
class Profile:
    last: JobTimes  # the last job that ended well; `last.job` 0: none since enable
    layer_job: u32  # whose layers `layer` has; 0: none
    layers: u32
    layer: Shaped[Array[u32], LAYER_TIMES]  # ticks
    enabled: bool
    trace: bool  # layers too
    reserved: u16

    @fn
    def enable(self) -> None:
        self.enabled = True
        self.last.job = 0

    @fn
    def begin_layers(self, job: u32) -> None:
        """A model begins to run in `job`: from here on its layers are traced, and no other job's."""
        if not self.trace:
            return
        self.layer_job = job
        self.layers = 0
        for i in range(LAYER_TIMES):
            self.layer[i] = 0

    @fn
    def add_layer(self, job: u32, layer: u32, ticks: u32) -> None:
        if not self.trace or job != self.layer_job or layer >= LAYER_TIMES:
            return
        self.layer[layer] = add_ticks(self.layer[layer], ticks)
        self.layers = max(self.layers, layer + 1)

    @fn
    def finish(self, times: JobTimes) -> None:
        """A job ended well."""
        if self.enabled:
            copy(self.last, times)


@fn(pure=True, inline=True)
def add_ticks(a: u32, b: u32) -> u32:
    """a + b, at most the largest u32."""
    return sat(u32, u64(a) + b)


@fn
def times_result(clock: Clock, times: JobTimes, out: ProfileResult) -> None:
    """A job's times as the published record: microseconds rounded up."""
    out.total_us = clock.to_us_up(times.total)
    out.preprocess_us = clock.to_us_up(times.preprocess)
    out.npu_us = clock.to_us_up(times.npu)
    out.postprocess_us = clock.to_us_up(times.postprocess)
    out.ipc_overhead_us = 0
    out.mem_peak_bytes = times.peak
    out.npu_utilization_pct = 0
    if times.total != 0:
        out.npu_utilization_pct = u32(divide(u64(times.npu) * 100, times.total))
