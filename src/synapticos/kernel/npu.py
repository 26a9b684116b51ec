"""The accelerator contract: one model, one input, one output, four states; and the backends behind it.

    IDLE -> BUSY (invoke) -> IDLE, or ERROR if it failed; suspend -> SUSPENDED -> resume -> IDLE
    ERROR is left by a successful load, or by deinit and init

Pipelines use the same backends step by step and hand tensors over by reference (`run.py`); these calls are for an
application that drives the accelerator by hand, while none of its jobs is running.
"""

from synapticos.lang import *
from synapticos.kernel.backend import Caps, CapsFn, ClearFn, LoadFn, Need, NeedFn, Npu, NpuState, OutputFn, RunFn, StepFn, StepRows
from synapticos.kernel.capacity import NPU_INPUT_BYTES, NPU_OUTPUT_BYTES
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_NPU
from synapticos.kernel.status import Status
from synapticos.kernel.stub import stub_caps, stub_clear, stub_load, stub_need, stub_output, stub_run, stub_step
from synapticos.kernel.tensor import Tensor

BACKEND_STUB: Final[u32] = 0
BACKEND_CPU: Final[u32] = 1  # where a build has it

BACKEND_CAPS = table(CapsFn, [stub_caps], open=True)
BACKEND_LOAD = table(LoadFn, [stub_load], open=True)
BACKEND_NEED = table(NeedFn, [stub_need], open=True)
BACKEND_STEP = table(StepFn, [stub_step], open=True)
BACKEND_RUN = table(RunFn, [stub_run], open=True)
BACKEND_OUTPUT = table(OutputFn, [stub_output], open=True)
BACKEND_CLEAR = table(ClearFn, [stub_clear], open=True)


@fn
def npu_clear(npu: Npu) -> None:
    """No model, no input, no output, IDLE."""
    npu.holds.clear()
    npu.model_bytes = 0
    npu.input_bytes = 0
    npu.output_bytes = 0
    npu.state = NpuState.IDLE
    npu.has_output = False


@fn
def npu_init(kernel: Kernel) -> Status:
    """Returns OK; ALREADY if it is up."""
    npu = kernel.npu
    if npu.initialised:
        return Status.ALREADY
    npu_clear(npu)
    npu.backend = BACKEND_STUB
    npu.initialised = True
    return Status.OK


@fn
def npu_deinit(kernel: Kernel) -> None:
    """Down: no model, and nothing of the last one can be reached. Nothing happens while a job has the accelerator."""
    if kernel.npu.owner != 0:
        return
    npu_clear(kernel.npu)
    kernel.npu.holds.pinned = 0
    kernel.npu.initialised = False
    kernel.regions.set(REGION_NPU, None, 0)


@fn
def npu_get_caps(kernel: Kernel, out: Caps | None) -> Status:
    """What the backend is; works before init. Returns OK; INVAL if `out` is None."""
    if out is None:
        return Status.INVAL
    fill(view(u8, out), 0, sizeof(Caps))
    BACKEND_CAPS[kernel.npu.backend](out)
    return Status.OK


@fn
def npu_get_state(kernel: Kernel) -> NpuState:
    return kernel.npu.state


@fn
def npu_memory(kernel: Kernel, m: ModelMemory) -> Status:
    """The memory of the model loaded by hand, its input and output the copies kept here.

    Returns OK; PERM if none is loaded.
    """
    npu = kernel.npu
    if npu.model_bytes == 0:
        return Status.PERM
    model = kernel.regions.get(REGION_NPU, 0, npu.model_bytes)
    if model is None:
        return Status.PERM
    m.container = model
    m.container_bytes = npu.model_bytes
    m.input = npu.input
    m.input_bytes = npu.input_bytes
    m.frame = npu.output
    m.frame_bytes = NPU_OUTPUT_BYTES
    return Status.OK


@fn
def npu_load_model(kernel: Kernel, data: Ptr[u8] | None, size: u32) -> Status:
    """Use the model at `data`, which must stay there; what was loaded and computed before is gone.

    Returns OK; INVAL for None or 0 bytes; PERM before init or while SUSPENDED; BUSY; NOMEM for more than the backend
    takes; what the backend says.
    """
    npu = kernel.npu
    if data is None or size == 0:
        return Status.INVAL
    if not npu.initialised or npu.state == NpuState.SUSPENDED:
        return Status.PERM
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    caps = local(Caps)
    BACKEND_CAPS[npu.backend](caps)
    if caps.model_limit != 0 and size > caps.model_limit:
        return Status.NOMEM
    m = local(ModelMemory)
    m.container = data
    m.container_bytes = size
    status = BACKEND_LOAD[npu.backend](m)
    if status != Status.OK:
        return status
    npu_clear(npu)
    npu.model_bytes = size
    kernel.regions.set(REGION_NPU, data, size)
    return Status.OK


@fn
def npu_set_input(kernel: Kernel, index: u32, data: Ptr[u8] | None, size: u32) -> Status:
    """Copy the input.

    Returns OK; INVAL for None, an index but 0, or 0 bytes; PERM before init, without a model or while SUSPENDED;
    BUSY; NOMEM for more than NPU_INPUT_BYTES.
    """
    npu = kernel.npu
    if data is None or index != 0 or size == 0:
        return Status.INVAL
    if not npu.initialised or npu.model_bytes == 0 or npu.state == NpuState.SUSPENDED:
        return Status.PERM
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    if size > NPU_INPUT_BYTES:
        return Status.NOMEM
    move(npu.input, data, size)
    npu.input_bytes = size
    return Status.OK


@fn
def npu_invoke(kernel: Kernel) -> Status:
    """Run the model on the input, to the end.

    Returns OK; PERM before init, without a model or an input since its load, in ERROR, or while SUSPENDED; BUSY; what
    the backend says, and then the state is ERROR.
    """
    npu = kernel.npu
    if not npu.initialised or npu.model_bytes == 0:
        return Status.PERM
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    if npu.state != NpuState.IDLE or npu.input_bytes == 0:
        return Status.PERM
    m = local(ModelMemory)
    status = npu_memory(kernel, m)
    if status != Status.OK:
        return status
    npu.state = NpuState.BUSY
    npu.has_output = False
    status = npu_all_steps(npu, m)
    if status != Status.OK:
        npu.state = NpuState.ERROR
        return status
    npu.state = NpuState.IDLE
    npu.has_output = True
    return Status.OK


@fn
def npu_all_steps(npu: Npu, m: ModelMemory) -> Status:
    """Run every step; at the end the first output is at the start of the frame, and its size in `npu`."""
    need = local(Need)
    BACKEND_NEED[npu.backend](m, need)
    if need.frame_bytes > m.frame_bytes or need.scratch_bytes != 0 or need.persistent_bytes != 0:
        return Status.NOMEM
    rows = local(StepRows)
    for i in range(need.steps):
        BACKEND_STEP[npu.backend](m, i, rows)
        status = BACKEND_RUN[npu.backend](m, i, rows.row, rows.row_end)
        if status != Status.OK:
            return status
    y = local(Tensor)
    quant = local(Quant)
    found = BACKEND_OUTPUT[npu.backend](m, 0, y, quant)
    if found != Status.OK:
        return found
    if y.size > m.frame_bytes or y.offset > m.frame_bytes - y.size:
        return Status.IO
    move(m.frame, m.frame[y.offset :], y.size)
    npu.output_bytes = y.size
    return Status.OK


@fn
def npu_get_output(kernel: Kernel, index: u32, data: Ptr[u8] | None, size: Ptr[u32] | None) -> Status:
    """Copy the output and write its length to `size`, which holds the room at `data` (0: enough, the caller says).

    Returns OK; INVAL for None or an index but 0; PERM before init; BUSY; NODATA before an invoke that ended well;
    MSGSIZE if the room is too small.
    """
    npu = kernel.npu
    if data is None or size is None or index != 0:
        return Status.INVAL
    if not npu.initialised:
        return Status.PERM
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    if not npu.has_output:
        return Status.NODATA
    if size[0] != 0 and size[0] < npu.output_bytes:
        return Status.MSGSIZE
    move(data, npu.output, npu.output_bytes)
    size[0] = npu.output_bytes
    return Status.OK


@fn
def npu_invoke_async(kernel: Kernel) -> Status:
    """Returns NOTSUP, as the capabilities say."""
    return Status.NOTSUP


@fn
def npu_suspend(kernel: Kernel) -> Status:
    """Returns OK; PERM before init; BUSY while it computes."""
    npu = kernel.npu
    if not npu.initialised:
        return Status.PERM
    if npu.state == NpuState.BUSY:
        return Status.BUSY
    npu.state = NpuState.SUSPENDED
    return Status.OK


@fn
def npu_resume(kernel: Kernel) -> Status:
    """Returns OK; PERM before init; INVAL unless SUSPENDED."""
    npu = kernel.npu
    if not npu.initialised:
        return Status.PERM
    if npu.state != NpuState.SUSPENDED:
        return Status.INVAL
    npu.state = NpuState.IDLE
    return Status.OK
