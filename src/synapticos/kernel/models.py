"""The models' life: register, attach a payload, load, swap, unload. Thread mode.

A payload with a known checksum is checked before anything stops. A backend that holds one model at a time is given
the one that the next job needs when that job gets there (`run.py`); others keep theirs.
"""

from synapticos.lang import *
from synapticos.kernel.backend import Caps, Need, NpuState
from synapticos.kernel.capacity import ACCELERATOR, MODEL_STATE, OFFLOAD
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.crc import crc32
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import Model, ModelInfo, ModelState, noted_outputs
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED
from synapticos.kernel.offload import npu_empty_place
from synapticos.kernel.region import REGION_ARENA, REGION_MODEL
from synapticos.kernel.residency import NOWHERE
from synapticos.kernel.sched import sched_quiesce, sched_release
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import STAGE_INPUTS, Lifetime


@fn
def model_register(kernel: Kernel, info: ModelInfo | None) -> tuple[Status, u32]:
    """Register a model; its record is copied. The second result is its handle.

    Returns OK; INVAL for None; EXIST if the name is taken; NOMEM if the table is full.
    """
    if info is None:
        return Status.INVAL, 0
    status, handle = kernel.models.register(info)
    return status, handle


@fn
def model_get_info(kernel: Kernel, handle: u32, out: ModelInfo | None) -> Status:
    """Returns OK; INVAL for a bad handle or None."""
    model = kernel.models.find(handle)
    if model is None or out is None:
        return Status.INVAL
    copy(out, model.info)
    return Status.OK


@fn
def model_get_by_name(kernel: Kernel, name: Ptr[u8] | None) -> tuple[Status, u32]:
    """Returns OK and the handle; INVAL for None; NOENT."""
    if name is None:
        return Status.INVAL, 0
    handle = kernel.models.named(name)
    if handle == 0:
        return Status.NOENT, 0
    return Status.OK, handle


@fn
def model_is_loaded(kernel: Kernel, handle: u32) -> bool:
    model = kernel.models.find(handle)
    if model is None:
        return False
    return model.state == ModelState.LOADED


@fn
def model_set_payload(kernel: Kernel, handle: u32, region: u32, at: u32, bytes: u32, backend: u32) -> Status:
    """Attach what lies in a region as the model's payload, for `backend`; 0 bytes detaches it. Not while it is loaded.

    Returns OK; INVAL for a bad handle, backend, or bytes outside the region; BUSY while it is loaded.
    """
    model = kernel.models.find(handle)
    if model is None or backend >= len(BACKEND_CAPS):
        return Status.INVAL
    if model.state == ModelState.LOADED and model.bytes != 0:
        return Status.BUSY
    if bytes != 0:
        data = kernel.regions.get(region, at, bytes)
        if data is None:
            return Status.INVAL
    model.region = u8(region)
    model.at = at
    model.bytes = bytes
    model.backend = u8(backend)
    model.exclusive = False
    model.asynchronous = False
    if ACCELERATOR != 0:
        caps = local(Caps)
        BACKEND_CAPS[backend](caps)
        model.exclusive = caps.exclusive
        model.asynchronous = OFFLOAD != 0 and caps.asynchronous
    return Status.OK


@fn
def model_set_data(kernel: Kernel, handle: u32, data: Ptr[u8] | None, size: u32, backend: u32) -> Status:
    """Attach the `size` bytes at `data` (16-aligned), which must stay there; None detaches.

    Returns what `model_set_payload` does; INVAL for data of 0 bytes.
    """
    model = kernel.models.find(handle)
    if model is None or (data is not None and size == 0):
        return Status.INVAL
    if model.state == ModelState.LOADED and model.bytes != 0:
        return Status.BUSY
    region = REGION_MODEL + ((handle & 0xFF) - 1)
    kernel.regions.set(region, data, size)
    if data is None:
        return model_set_payload(kernel, handle, 0, 0, 0, backend)
    return model_set_payload(kernel, handle, region, 0, size, backend)


@fn
def model_set_crc(kernel: Kernel, handle: u32, crc: u32) -> Status:
    """State the payload's checksum, 0 included, which a record cannot. Returns OK; INVAL for a bad handle."""
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    model.info.crc32 = crc
    model.crc_known = True
    return Status.OK


@fn
def check_payload(kernel: Kernel, model: Model) -> Status:
    """Is the payload what the record says? Returns OK; INVAL if it is not in its region; ILSEQ for another checksum."""
    if model.bytes == 0:
        return Status.OK
    data = kernel.regions.get(model.region, model.at, model.bytes)
    if data is None:
        return Status.INVAL
    if model.crc_known:
        crc = crc32(data, model.bytes, 0)
        if crc != model.info.crc32:
            return refuse(kernel.note, Status.ILSEQ, f"the model's checksum is {crc:x} and should be {model.info.crc32:x}")
    return Status.OK


@fn
def load_payload(kernel: Kernel, model: Model, handle: u32) -> Status:
    """Let the backend check the payload and note what it needs; give it persistent memory; make it resident.

    Returns what the backend says; NOTSUP, NOMEM or PERM for what this build, its arena or its accelerator cannot give.
    After an error nothing has changed but, if the backend cannot clear the model's state, that it has memory for it.
    """
    arena = kernel.arena
    data = kernel.regions.get(model.region, model.at, model.bytes)
    if data is None:
        return Status.INVAL
    m = local(ModelMemory)
    m.container = data
    m.container_bytes = model.bytes
    m.input_bytes = model.info.input_size
    m.frame_bytes = arena.size
    m.scratch_bytes = arena.scratch_size
    m.persistent_bytes = arena.size
    status = BACKEND_LOAD[model.backend](m)
    if status != Status.OK and m.required != 0:
        return refuse(kernel.note, status, f"layer {m.bad_step} of the model was planned with {m.planned} bytes of scratch, its kernel here takes {m.required}; compile the model for this firmware")
    if status != Status.OK:
        return status
    need = local(Need)
    BACKEND_NEED[model.backend](m, need)
    if need.outputs == 0 or need.outputs > STAGE_INPUTS:
        return refuse(kernel.note, Status.NOTSUP, f"a model of {need.outputs} outputs; a stage takes at most {STAGE_INPUTS}")
    if need.frame_bytes > arena.size or need.scratch_bytes > arena.scratch_size:
        return refuse(kernel.note, Status.NOMEM, f"the model needs {need.frame_bytes} bytes of the arena's {arena.size}, {need.scratch_bytes} of {arena.scratch_size} scratch")
    if MODEL_STATE == 0 and need.persistent_bytes != 0:
        return Status.NOTSUP
    # Nothing has changed until here, and nothing below refuses but for want of memory, which changes nothing either.
    place: u32 = NOWHERE
    if ACCELERATOR != 0 and model.exclusive:
        if not kernel.npu.initialised:
            return Status.PERM
        if OFFLOAD == 0 or not model.asynchronous:
            place = npu_empty_place(kernel, model.backend)
            if place == NOWHERE:
                return Status.NOMEM
    if MODEL_STATE != 0 and need.persistent_bytes > model.persistent_bytes:
        at = check(arena.block(need.persistent_bytes, Lifetime.PERSISTENT))
        model.persistent_at = at
        model.persistent_bytes = need.persistent_bytes
    if MODEL_STATE != 0 and need.persistent_bytes != 0:
        check(clear_payload(kernel, model))
    model.frame_bytes = need.frame_bytes
    model.steps = need.steps
    model.outputs = noted_outputs(need)
    if need.input_bytes != 0:
        model.info.input_size = need.input_bytes
    if ACCELERATOR != 0 and place != NOWHERE:
        kernel.npu.holds.put(place, handle, 0)
        kernel.npu.state = NpuState.IDLE
    return Status.OK


@fn
def clear_payload(kernel: Kernel, model: Model) -> Status:
    """Put a model's persistent bytes to where they begin."""
    data = kernel.regions.get(model.region, model.at, model.bytes)
    state = kernel.regions.get(REGION_ARENA, model.persistent_at, model.persistent_bytes)
    if data is None or state is None:
        return Status.INVAL
    m = local(ModelMemory)
    m.container = data
    m.container_bytes = model.bytes
    m.persistent = state
    m.persistent_bytes = model.persistent_bytes
    return BACKEND_CLEAR[model.backend](m)


@fn
def model_clear_state(kernel: Kernel, handle: u32) -> Status:
    """Let a model that remembers forget: its next run is as its first. Waits for half-done jobs.

    Returns OK; INVAL for a bad handle; PERM if it is not loaded; BUSY as `model_load`.
    """
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    if model.state != ModelState.LOADED:
        return Status.PERM
    if model.bytes == 0 or model.persistent_bytes == 0:
        return Status.OK
    check(sched_quiesce(kernel))
    status = clear_payload(kernel, model)
    sched_release(kernel)
    return status


@fn
def forget_payload(kernel: Kernel, handle: u32) -> None:
    """The accelerator no longer knows this model."""
    kernel.npu.holds.drop(handle)


@fn
def model_load(kernel: Kernel, handle: u32) -> Status:
    """Load a model: checksum, then the backend's own checks, then the flag. Without a payload only the flag.

    Waits for half-done jobs if the backend holds one model at a time.
    Returns OK; INVAL for a bad handle; ALREADY; ILSEQ; BUSY from a stage, or if a half-done job waits for somebody
    else; what the backend says. On any error the model stays not loaded.
    """
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    if model.state == ModelState.LOADED:
        return Status.ALREADY
    check(check_payload(kernel, model))
    if model.bytes != 0:
        check(sched_quiesce(kernel))
        status = load_payload(kernel, model, handle)
        sched_release(kernel)
        if status != Status.OK:
            return status
    model.state = ModelState.LOADED
    return Status.OK


@fn
def model_unload(kernel: Kernel, handle: u32) -> Status:
    """Clear the flag, and the accelerator's hold of the payload.

    Returns OK; INVAL for a bad handle; ALREADY if it is not loaded; BUSY as `model_load`.
    """
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    if model.state != ModelState.LOADED:
        return Status.ALREADY
    check(sched_quiesce(kernel))
    model.state = ModelState.REGISTERED
    forget_payload(kernel, handle)
    sched_release(kernel)
    return Status.OK


@fn
def model_unregister(kernel: Kernel, handle: u32) -> Status:
    """Forget a model, unloading it first. Returns OK; INVAL for a bad handle; BUSY as `model_load`."""
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    check(sched_quiesce(kernel))
    forget_payload(kernel, handle)
    kernel.regions.set(REGION_MODEL + ((handle & 0xFF) - 1), None, 0)
    kernel.models.free(model)
    sched_release(kernel)
    return Status.OK


@fn
def model_swap(kernel: Kernel, old: u32, new: u32) -> Status:
    """Unload one model and load another between two jobs; queued jobs run with the new one.

    Returns OK; INVAL for a bad handle or the same twice; ILSEQ, and nothing stopped; BUSY as `model_load`; what the
    backend says. After an error but INVAL and BUSY neither is loaded.
    """
    leaving = kernel.models.find(old)
    coming = kernel.models.find(new)
    if leaving is None or coming is None or old == new:
        return Status.INVAL
    status = check_payload(kernel, coming)
    check(sched_quiesce(kernel))
    leaving.state = ModelState.REGISTERED
    forget_payload(kernel, old)
    if status == Status.OK and coming.state != ModelState.LOADED:
        if coming.bytes != 0:
            status = load_payload(kernel, coming, new)
        if status == Status.OK:
            coming.state = ModelState.LOADED
    if status != Status.OK:
        coming.state = ModelState.REGISTERED
        forget_payload(kernel, new)
    sched_release(kernel)
    return status


@fn
def model_pin(kernel: Kernel, handle: u32, pinned: bool) -> Status:
    """Let a model keep its place on the accelerator from when it next runs, or no longer.

    Returns OK; INVAL for a bad handle; NOTSUP if its backend holds any number of models; NOMEM if no place would be left
    for the others, as where there is only one.
    """
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL
    if ACCELERATOR == 0 or not model.exclusive:
        return Status.NOTSUP
    if not pinned:
        kernel.npu.holds.unpin(handle)
        return Status.OK
    caps = local(Caps)
    BACKEND_CAPS[model.backend](caps)
    if not kernel.npu.holds.pin(handle, caps.models):
        return Status.NOMEM
    return Status.OK


@fn
def model_loads(kernel: Kernel, handle: u32) -> tuple[Status, u32, u32]:
    """How often the accelerator has taken in a model, and the ticks that this took (at most the largest u32), since boot.

    Returns OK; INVAL for a bad handle.
    """
    model = kernel.models.find(handle)
    if model is None:
        return Status.INVAL, 0, 0
    if ACCELERATOR == 0:
        return Status.OK, 0, 0
    loads = kernel.npu.holds.loads[(handle & 0xFF) - 1]
    return Status.OK, loads.count, loads.ticks
