"""One-call inference: a pipeline of one model, built, run and taken down again."""

from synapticos.lang import *
from synapticos.kernel.capacity import SYNC_TIMEOUT_MS
from synapticos.kernel.compose import pipeline_add_model, pipeline_build, pipeline_create
from synapticos.kernel.job import JobParams
from synapticos.kernel.kernel import Inside, Kernel
from synapticos.kernel.region import REGION_NONE
from synapticos.kernel.sched import infer_detach, infer_get_result, infer_post, infer_wait, pipeline_destroy
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, Tensor

RUN_SYNC = rom(b"run_sync")


@fn
def infer_run_sync(kernel: Kernel, model: u32, input: Tensor | None, output: Tensor | None, priority: u32) -> Status:
    """Run `model` once on `input` and wait for it, SYNC_TIMEOUT_MS at most.

    If `output` names a region, the result's bytes are copied to where it says, into its `size`, and its size, type and
    shape are set; else `output` becomes the result's own descriptor, good until the next ephemeral reset.
    Returns OK; BUSY from a stage or a callback; INVAL for None or handle 0; NOMEM without a free pipeline; NOENT;
    BUSY if the job is refused; AGAIN after the timeout, and the job is left to end by itself; MSGSIZE if `output` is
    too small; the job's error.
    """
    if kernel.inside != Inside.NOTHING:
        return Status.BUSY
    if input is None or output is None or model == 0 or priority > 2:
        return Status.INVAL
    pipe = pipeline_create(kernel, RUN_SYNC)
    if pipe == 0:
        return Status.NOMEM
    status = pipeline_add_model(kernel, pipe, model)
    if status == Status.OK:
        status = pipeline_build(kernel, pipe)
    if status == Status.OK:
        status = run_once(kernel, pipe, input, output, priority)
    pipeline_destroy(kernel, pipe)
    return status


@fn
def run_once(kernel: Kernel, pipe: u32, input: Tensor, output: Tensor, priority: u32) -> Status:
    """Submit, wait, and hand over the result."""
    params = local(JobParams)
    params.priority = u8(priority)
    refused, job = infer_post(kernel, pipe, input, None, None, 0, params)
    if refused != Status.OK:
        return Status.BUSY
    status = infer_wait(kernel, job, SYNC_TIMEOUT_MS)
    if status == Status.AGAIN or status == Status.BUSY:
        ignore(infer_detach(kernel, job))
        return status
    result = local(Tensor)
    status = infer_get_result(kernel, job, result)
    if status != Status.OK:
        return status
    if output.region == REGION_NONE:
        copy(output, result)
        return Status.OK
    if output.size < result.size:
        return Status.MSGSIZE
    source = kernel.regions.get(result.region, result.offset, result.size)
    target = kernel.regions.get(output.region, output.offset, result.size)
    if source is None or target is None:
        return Status.INVAL
    move(target, source, result.size)
    output.size = result.size
    output.dtype = result.dtype
    output.ndim = result.ndim
    for i in range(MAX_DIMS):
        output.shape[i] = result.shape[i]
    return Status.OK
