"""Verify: a container's known answers, and each layer's result, on whatever runs this.

Outside of jobs and kernel state: before a device takes a model into service, or to find out where two differ. The
caller gives one piece of memory, laid out as

    0  persistent | frame | scratch  verify_bytes
"""

from synapticos.lang import *
from synapticos.kernel.arena import align_up
from synapticos.kernel.container import Header, ModelMemory
from synapticos.kernel.cpu import (
    answer_inputs_at, cpu_clear, cpu_input_bytes, cpu_load, cpu_outputs, cpu_rows, cpu_run, cpu_steps, cpu_tile, model_list, model_tensor,
)  # fmt: skip
from synapticos.kernel.crc import crc32
from synapticos.kernel.status import Status


@fn
def verify_open(m: ModelMemory, container: Ptr[u8], size: u32, memory: Ptr[u8], memory_bytes: u32) -> Status:
    """Load a container and lay its spaces out in `memory`, which is 16-aligned, as the container is.

    Returns OK; NOMEM if `memory` is too small; what `cpu_load` says of the container.
    """
    m.container = container
    m.container_bytes = size
    m.frame = memory
    m.frame_bytes = memory_bytes
    m.scratch = memory
    m.scratch_bytes = memory_bytes
    m.input = memory
    m.persistent = memory
    check(cpu_load(m))
    header = view(Header, container)
    frame_at = align_up(header.persistent_bytes)
    scratch_at = frame_at + align_up(header.frame_bytes)
    if scratch_at > memory_bytes or header.scratch_bytes > memory_bytes - scratch_at:
        return Status.NOMEM
    m.persistent_bytes = header.persistent_bytes
    m.frame = memory[frame_at : frame_at + header.frame_bytes]
    m.frame_bytes = header.frame_bytes
    m.scratch = memory[scratch_at : scratch_at + header.scratch_bytes]
    m.scratch_bytes = header.scratch_bytes
    return Status.OK


@fn
def verify_step(m: ModelMemory, step: u32) -> Status:
    """Run all rows of a step, in the pieces that the container asks for. Returns what `cpu_run` does."""
    rows = cpu_rows(m, step)
    tile = cpu_tile(m, step)
    if tile == 0:
        tile = rows
    row: u32 = 0
    while row < rows:
        end = min(row + tile, rows)
        check(cpu_run(m, step, row, end))
        row = end
    return Status.OK


@fn
def outputs_crc(m: ModelMemory) -> u32:
    """The checksum of the model's outputs, one after the other."""
    header = view(Header, m.container)
    crc: u32 = 0
    for i in range(cpu_outputs(m)):
        y = model_tensor(m, u32(model_list(m, header.inputs + i)))
        crc = crc32(m.frame[y.offset : y.offset + y.bytes], y.bytes, crc)
    return crc


@fn(pure=True)
def verify_answers(container: Ptr[u8], size: u32) -> u32:
    """How many known answers a loaded container has."""
    header = view(Header, container)
    if header.answers_at == 0:
        return 0
    return view(u32, container[header.answers_at :])[0]


@fn
def verify_answer(container: Ptr[u8], size: u32, memory: Ptr[u8], memory_bytes: u32, number: u32) -> tuple[Status, bool]:
    """Run known answer `number` from cleared state: the second result is whether the outputs are what they should be.

    Returns OK; NOENT if there is no such answer; what `verify_open` and the layers say.
    """
    m = local(ModelMemory)
    status = verify_open(m, container, size, memory, memory_bytes)
    if status != Status.OK:
        return status, False
    count = verify_answers(container, size)
    if number >= count:
        return Status.NOENT, False
    header = view(Header, container)
    need = cpu_input_bytes(m)
    at = header.answers_at + answer_inputs_at(count) + number * align_up(need)
    m.input = container[at : at + need]
    m.input_bytes = need
    status = cpu_clear(m)
    for step in range(cpu_steps(m)):
        if status == Status.OK:
            status = verify_step(m, step)
    if status != Status.OK:
        return status, False
    wanted = view(u32, container[header.answers_at :])[1 + number]
    crc = outputs_crc(m)
    return Status.OK, crc == wanted


@fn
def verify_layer(
    container: Ptr[u8], size: u32, memory: Ptr[u8], memory_bytes: u32, given: Ptr[u8], given_bytes: u32, step: u32, fresh: bool,
) -> Status:  # fmt: skip
    """Run one step over what the steps before left in `memory`; `fresh` clears the state first.

    Returns NOENT if there is no such step; what `verify_open` and the layer say.
    """
    m = local(ModelMemory)
    check(verify_open(m, container, size, memory, memory_bytes))
    m.input = given
    m.input_bytes = given_bytes
    if step >= cpu_steps(m):
        return Status.NOENT
    if fresh:
        check(cpu_clear(m))
    return verify_step(m, step)
