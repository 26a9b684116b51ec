"""Tensor memory as the published calls see it: the arena of a kernel, in its region."""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.arena import HEADER, SCRATCH_POOL_SIZE, shape_bytes
from synapticos.kernel.capacity import COMPOSING
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import FRAMES, Kernel
from synapticos.kernel.model import ModelState
from synapticos.kernel.pipeline import PipelineState
from synapticos.kernel.region import REGION_ARENA
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import MAX_DIMS, DType, Lifetime, Tensor

DTYPES: Final[u32] = 6
LIFETIMES: Final[u32] = 3


@struct
class MemStats:
    """The published record, bytes and counts."""

    arena_total: u32
    arena_used: u32
    arena_peak: u32
    scratch_total: u32
    scratch_used: u32
    alloc_count: u32
    reset_count: u32


@fn
def forget_persistent(kernel: Kernel) -> Status:
    """Models that are not loaded have no persistent bytes any more. Returns OK; BUSY if a loaded one or a stage has some."""
    for model in kernel.models.items:
        if model.state == ModelState.LOADED and model.persistent_bytes != 0:
            return Status.BUSY
    for pipeline in kernel.pipelines.items:
        for i in range(pipeline.count):
            if pipeline.state != PipelineState.FREE and pipeline.stages[i].state_bytes != 0:
                return Status.BUSY
    for model in kernel.models.items:
        model.persistent_bytes = 0
    return Status.OK


@fn
def mem_init_pool(kernel: Kernel, base: Ptr[u8] | None, size: u32, scratch: u32) -> Status:
    """Adopt `size` bytes at `base` as the arena, the last `scratch` of them as scratch pool; all counters 0.

    Returns OK; INVAL if `base` is None or no multiple of 16, `size` is 0, or `size` <= `scratch`; BUSY while a job
    is unfinished or unread, for its tensors may lie there, or a loaded model or a stage keeps a state there.
    """
    if base is None or not aligned(base, 16):
        return Status.INVAL
    for job in kernel.jobs:
        if job.state != JobState.FREE:
            return Status.BUSY
    if COMPOSING != 0:
        check(forget_persistent(kernel))
    status = kernel.arena.init(size, scratch)
    if status != Status.OK:
        return status
    kernel.regions.set(REGION_ARENA, base, size)
    for i in range(FRAMES):
        frame = kernel.frames[i]
        frame.at = 0
        frame.bytes = 0
        frame.used = 0
        frame.owner = 0
    kernel.results_at = 0
    kernel.result_bytes = 0
    return Status.OK


@fn
def mem_init(kernel: Kernel, base: Ptr[u8] | None, size: u32) -> Status:
    """`mem_init_pool` with a pool of SCRATCH_POOL_SIZE bytes."""
    return mem_init_pool(kernel, base, size, SCRATCH_POOL_SIZE)


@fn
def mem_tensor_init(tensor: Tensor | None, shape: Ptr[u32] | None, ndim: u32, dtype: u32) -> Status:
    """Fill a descriptor's size, dtype, ndim and shape; its data and lifetime are left alone.

    Returns OK; INVAL if an argument is None, `ndim` is 0 or above 4, `dtype` unknown, or the size does not fit 32 bits.
    """
    if tensor is None or shape is None or ndim == 0 or ndim > MAX_DIMS or dtype >= DTYPES:
        return Status.INVAL
    kind = DType(u8(dtype))
    status, size = shape_bytes(shape, ndim, kind)
    if status != Status.OK:
        return Status.INVAL
    tensor.size = size
    tensor.dtype = kind
    tensor.ndim = u8(ndim)
    for i in range(MAX_DIMS):
        tensor.shape[i] = 0
        if i < ndim:
            tensor.shape[i] = shape[i]
    return Status.OK


@fn
def mem_tensor_alloc(kernel: Kernel, shape: Ptr[u32] | None, ndim: u32, dtype: u32, lifetime: u32) -> Tensor | None:
    """A tensor in the arena, its descriptor just before its data; both begin at a multiple of 16.

    None: no arena yet, `shape` None, `ndim` 0 or above 4, `dtype` or `lifetime` unknown, or it does not fit; or it is
    PERSISTENT and ephemeral tensors are alive. A dimension of 0 gives a tensor of size 0.
    """
    fresh = local(Tensor)
    status = mem_tensor_init(fresh, shape, ndim, dtype)
    if status != Status.OK or lifetime >= LIFETIMES:
        return None
    kind = Lifetime(u8(lifetime))
    state = hal.critical_enter(kernel.board)
    placed, at = kernel.arena.tensor(fresh.size, kind)
    hal.critical_exit(kernel.board, state)
    if placed != Status.OK:
        return None
    fresh.offset = at + HEADER
    fresh.region = REGION_ARENA
    fresh.lifetime = kind
    bytes = kernel.regions.get(REGION_ARENA, at, HEADER)
    if bytes is None:
        return None
    tensor = view(Tensor, bytes)
    copy(tensor, fresh)
    return tensor


@fn
def mem_tensor_free(kernel: Kernel, tensor: Tensor | None) -> None:
    """Accepted; tensors go together, by a reset."""
    return


@fn
def mem_data(kernel: Kernel, tensor: Tensor) -> Ptr[u8] | None:
    """Where a tensor's data lie now, or None if not all of it lies in its region."""
    return kernel.regions.get(tensor.region, tensor.offset, tensor.size)


@fn
def mem_live(kernel: Kernel) -> u32:
    """The end of the last ephemeral block that a job still needs: running, suspended, or finished but unread."""
    mark: u32 = 0
    for job in kernel.jobs:
        if job.state != JobState.FREE:
            mark = max(mark, job.mark)
    return mark


@fn
def mem_reset_ephemeral(kernel: Kernel) -> None:
    """Drop the ephemeral tensors above the last one that a job still needs, and all scratch. Ignored without an arena."""
    if kernel.arena.size == 0:
        return
    state = hal.critical_enter(kernel.board)
    mark = mem_live(kernel)
    kernel.arena.reset(mark)
    hal.critical_exit(kernel.board, state)


@fn
def mem_scratch_acquire(kernel: Kernel, n: u32) -> Ptr[u8] | None:
    """`n` bytes of the scratch pool at a multiple of 16, or None: no arena, `n` is 0, or the pool is exhausted."""
    state = hal.critical_enter(kernel.board)
    status, at = kernel.arena.scratch(n)
    hal.critical_exit(kernel.board, state)
    if status != Status.OK:
        return None
    return kernel.regions.get(REGION_ARENA, at, n)


@fn
def mem_scratch_release(kernel: Kernel) -> None:
    """Give back the scratch block handed out last (the order is that of a stack). Accepted if there is none."""
    arena = kernel.arena
    state = hal.critical_enter(kernel.board)
    arena.scratch_pop()
    hal.critical_exit(kernel.board, state)


@fn
def mem_get_stats(kernel: Kernel, out: MemStats | None) -> Status:
    """Returns OK; INVAL if `out` is None or there is no arena."""
    if out is None or kernel.arena.size == 0:
        return Status.INVAL
    arena = kernel.arena
    out.arena_total = arena.size
    out.arena_used = arena.end
    out.arena_peak = arena.peak
    out.scratch_total = arena.scratch_size
    out.scratch_used = arena.scratch_used
    out.alloc_count = arena.allocs
    out.reset_count = arena.resets
    return Status.OK


@fn
def mem_print_stats(kernel: Kernel) -> None:
    """One line on the console, whole KB."""
    arena = kernel.arena
    if arena.size == 0:
        log.warning(kernel.log, f"no arena")
        return
    usable = arena.size // 1024
    used = arena.end // 1024
    persistent = arena.persistent // 1024
    ephemeral = (arena.end - arena.persistent) // 1024
    peak = arena.peak // 1024
    scratch = arena.scratch_used // 1024
    pool = arena.scratch_size // 1024
    console.print(f"arena {usable} KB: used {used} (persistent {persistent}, ephemeral {ephemeral}), peak {peak}; scratch {scratch}/{pool}")
