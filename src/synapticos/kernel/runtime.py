"""Start and stop, and the profiler's published calls."""

from synapticos.lang import *
from synapticos.kernel.capacity import LAYER_TIMES, MAX_JOBS, MAX_MODELS, PROFILING
from synapticos.kernel.dsp.calls import kernel_dsp_init
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import Inside, Kernel
from synapticos.kernel.memory import mem_init_pool
from synapticos.kernel.model import ModelState
from synapticos.kernel.npu import npu_deinit, npu_init
from synapticos.kernel.profile import ProfileResult, times_result
from synapticos.kernel.sched import cancel_slot, find_slot, sched_quiesce, sched_release
from synapticos.kernel.status import Status

VERSION_TEXT = rom(b"0.4.0")


@fn
def kernel_init(kernel: Kernel, base: Ptr[u8] | None, size: u32, scratch: u32) -> Status:
    """Bring a booted kernel up over an arena of `size` bytes: arena, accelerator, signal processing, profiler.

    An accelerator that an application has brought up is left as it is. A failed start leaves nothing half done.
    Returns OK; ALREADY if it is up; what `mem_init_pool` says.
    """
    if kernel.up:
        return Status.ALREADY
    check(mem_init_pool(kernel, base, size, scratch))
    ignore(npu_init(kernel))
    ignore(kernel_dsp_init(kernel))
    if PROFILING != 0:
        kernel.profile.enable()
    kernel.up = True
    return Status.OK


@fn
def kernel_shutdown(kernel: Kernel) -> Status:
    """Cancel what is queued or suspended, run what is running to its end, unload all models, power the accelerator down.

    Returns OK; PERM if it is not up; BUSY from a stage or callback, or if a running job waits for somebody else, and
    then it stays up.
    """
    if not kernel.up:
        return Status.PERM
    if kernel.inside != Inside.NOTHING:
        return Status.BUSY
    for i in range(MAX_JOBS):
        job = kernel.jobs[i]
        if job.state == JobState.QUEUED or job.state == JobState.SUSPENDED:
            cancel_slot(kernel, i)
    check(sched_quiesce(kernel))
    sched_release(kernel)
    for i in range(MAX_MODELS):
        model = kernel.models.items[i]
        if model.state == ModelState.LOADED:
            model.state = ModelState.REGISTERED
    kernel.profile.enabled = False
    npu_deinit(kernel)
    kernel.up = False
    return Status.OK


@fn
def prof_enable(kernel: Kernel) -> None:
    """On; forgets the last result."""
    kernel.profile.enable()


@fn
def prof_disable(kernel: Kernel) -> None:
    kernel.profile.enabled = False


@fn
def prof_get_last(kernel: Kernel, out: ProfileResult | None) -> Status:
    """The last job that ended well. Returns OK; INVAL for None; NOENT if there was none since `prof_enable`."""
    if out is None:
        return Status.INVAL
    if kernel.profile.last.job == 0:
        return Status.NOENT
    times_result(kernel.clock, kernel.profile.last, out)
    return Status.OK


@fn
def prof_get_job(kernel: Kernel, id: u32, out: ProfileResult) -> Status:
    """One finished job, as long as its slot is not free. Returns OK; NOENT for no such job, or not profiled."""
    slot = find_slot(kernel, id)
    if slot == MAX_JOBS:
        return Status.NOENT
    if kernel.jobs[slot].times.job != id:
        return Status.NOENT
    times_result(kernel.clock, kernel.jobs[slot].times, out)
    return Status.OK


@fn
def prof_get_stage(kernel: Kernel, stage: u32) -> tuple[Status, u32]:
    """Ticks that a stage of the last job took. Returns OK; NOENT if there is no such stage or job."""
    last = kernel.profile.last
    if last.job == 0 or stage >= last.stages:
        return Status.NOENT, 0
    return Status.OK, last.stage[stage]


@fn
def prof_enable_layer_trace(kernel: Kernel) -> Status:
    """From the next model on, keep the time of each layer. Returns OK."""
    kernel.profile.trace = True
    kernel.profile.layers = 0
    kernel.profile.layer_job = 0
    return Status.OK


@fn
def prof_get_layer_ticks(kernel: Kernel, layer: u32) -> tuple[Status, u32]:
    """Ticks that a layer of the model traced last took; layers from LAYER_TIMES on are not kept. Returns OK; NOENT."""
    if layer >= kernel.profile.layers or layer >= LAYER_TIMES:
        return Status.NOENT, 0
    return Status.OK, kernel.profile.layer[layer]


@fn
def prof_get_layer_time(kernel: Kernel, layer: u32, us: Ptr[u32] | None) -> Status:
    """Microseconds that a layer of the model traced last took, rounded up. Returns OK; INVAL for None; NOENT."""
    if us is None:
        return Status.INVAL
    us[0] = 0
    status, ticks = prof_get_layer_ticks(kernel, layer)
    if status == Status.OK:
        us[0] = kernel.clock.to_us_up(ticks)
    return status


@fn
def prof_print_summary(kernel: Kernel) -> None:
    """One line on the console."""
    out = local(ProfileResult)
    status = prof_get_last(kernel, out)
    if status != Status.OK:
        console.print(f"profile: no data")
        return
    console.print(f"profile: total {out.total_us} us, pre {out.preprocess_us}, npu {out.npu_us}, post {out.postprocess_us}; peak {out.mem_peak_bytes} bytes; npu {out.npu_utilization_pct} %")
