"""The cpu backend: a container checked as a whole, then run step by step.

`cpu_load` trusts no byte: header, sections, tensors, steps, in this order, and each step's layer then ties its
operands' sizes to its parameters. After that `cpu_run` only resolves operands and checks them against the memory it
was given. Products and sums in these checks cannot wrap: counts are bounded first, room is found by subtraction.
"""

from synapticos.lang import *
from synapticos.kernel.container import (
    ALIGN, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_UINT8, HEADER_BYTES, MAGIC, MAX_ANSWERS, MAX_BYTES, MAX_OPERANDS, MAX_RANK,
    MAX_TENSORS, NO_TENSOR, SPACE_CONSTS, SPACE_FRAME, SPACE_INPUT, SPACE_PERSISTENT, STEP_BYTES, STEP_DOWN,
    TENSOR_BYTES, VERSION,
    Header, LayerCall, LayerCheck, ModelMemory, Quant, StepRecord, TensorRecord,
)  # fmt: skip
from synapticos.kernel.crc import crc32
from synapticos.kernel.layers.checks import TOO_MUCH, product
from synapticos.kernel.layers.operands import element_bytes
from synapticos.kernel.layers.tables import RUN, VALIDATE
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor

HEADER_CRC_AT: Final[u32] = 64


@fn(pure=True)
def model_header(m: ModelMemory) -> Header:
    return view(Header, m.container)


@fn(pure=True)
def model_tensor(m: ModelMemory, number: u32) -> TensorRecord:
    header = view(Header, m.container)
    return view(TensorRecord, m.container[header.tensors_at + number * TENSOR_BYTES :])


@fn(pure=True)
def model_step(m: ModelMemory, step: u32) -> StepRecord:
    header = view(Header, m.container)
    return view(StepRecord, m.container[header.steps_at + step * STEP_BYTES :])


@fn(pure=True)
def model_list(m: ModelMemory, entry: u32) -> u16:
    header = view(Header, m.container)
    return view(u16, m.container[header.lists_at :])[entry]


@fn(pure=True)
def section_fits(at: u32, size: u32, end: u32) -> bool:
    """Whether a section lies behind the header, aligned, and ends by `end`."""
    return at >= HEADER_BYTES and at % ALIGN == 0 and at <= end and size <= end - at


@fn(pure=True)
def header_status(m: ModelMemory) -> Status:
    """Whether the header is whole and every section lies inside the container."""
    if m.container_bytes < HEADER_BYTES or m.container_bytes > MAX_BYTES or not aligned(m.container, 4):
        return Status.INVAL
    header = view(Header, m.container)
    if header.magic != MAGIC:
        return Status.ILSEQ
    if header.version != VERSION:
        return Status.NOTSUP
    # The checksum is of the header with its own four bytes 0.
    crc = crc32(m.container, HEADER_CRC_AT, 0)
    zeros = local(u8, 4)
    crc = crc32(zeros, 4, crc)
    crc = crc32(m.container[HEADER_CRC_AT + 4 :], HEADER_BYTES - HEADER_CRC_AT - 4, crc)
    if crc != header.header_crc:
        return Status.ILSEQ
    if header.payload_bytes > m.container_bytes - HEADER_BYTES:
        return Status.INVAL
    if crc32(m.container[HEADER_BYTES:], header.payload_bytes, 0) != header.payload_crc:
        return Status.ILSEQ
    end = HEADER_BYTES + header.payload_bytes
    if header.tensors > MAX_TENSORS or header.list_entries > MAX_BYTES:
        return Status.INVAL
    if not section_fits(header.tensors_at, u32(header.tensors) * TENSOR_BYTES, end):
        return Status.INVAL
    if not section_fits(header.steps_at, u32(header.steps) * STEP_BYTES, end):
        return Status.INVAL
    if not section_fits(header.lists_at, header.list_entries * 2, end):
        return Status.INVAL
    if not section_fits(header.params_at, header.params_bytes, end):
        return Status.INVAL
    if not section_fits(header.consts_at, header.consts_bytes, end):
        return Status.INVAL
    if header.answers_at != 0 and not section_fits(header.answers_at, 4, end):
        return Status.INVAL
    if header.frame_bytes > MAX_BYTES or header.scratch_bytes > MAX_BYTES or header.persistent_bytes > MAX_BYTES:
        return Status.INVAL
    if header.inputs == 0 or header.outputs == 0 or u32(header.inputs) + header.outputs > header.list_entries:
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def answer_inputs_at(count: u32) -> u32:
    """Where the inputs of `count` answers begin, from the section's start."""
    return (4 + 4 * count + (ALIGN - 1)) & ~u32(ALIGN - 1)


@fn(pure=True)
def answers_fit(m: ModelMemory, header: Header, input_bytes: u32) -> bool:
    """Whether all known answers lie inside the container. Its section begins there, as `header_status` has seen."""
    room = HEADER_BYTES + header.payload_bytes - header.answers_at
    count = view(u32, m.container[header.answers_at :])[0]
    if count > MAX_ANSWERS or answer_inputs_at(count) > room:
        return False
    each = (input_bytes + (ALIGN - 1)) & ~u32(ALIGN - 1)
    return product(count, each) <= room - answer_inputs_at(count)


@fn(pure=True)
def zero_fits(dtype: u8, zero: i32) -> bool:
    """Whether a zero point is a value of its tensor's type."""
    if dtype == DTYPE_INT8:
        return zero >= -128 and zero <= 127
    if dtype == DTYPE_UINT8:
        return zero >= 0 and zero <= 255
    if dtype == DTYPE_INT16:
        return zero >= -32768 and zero <= 32767
    return dtype == DTYPE_INT32 or zero == 0


@fn(pure=True)
def tensor_status(record: TensorRecord, header: Header, input_bytes: u32) -> Status:
    """Whether a record is one of the kinds that there are and lies inside its space."""
    size = element_bytes(record.dtype)
    if size == 0 or record.rank > MAX_RANK or record.layout != 0 or record.border != 0:
        return Status.NOTSUP
    need = size
    for d in range(4):
        if d < record.rank:
            if record.shape[d] == 0:
                return Status.INVAL
            need = product(need, record.shape[d])
        elif record.shape[d] != 0:
            return Status.INVAL
    if need == TOO_MUCH or need != record.bytes:
        return Status.INVAL
    # A scale is a finite number that is not negative.
    if bits(record.scale) >= 0x7F800000 or not zero_fits(record.dtype, record.zero):
        return Status.INVAL
    room: u32 = 0
    if record.space == SPACE_CONSTS:
        room = header.consts_bytes
    elif record.space == SPACE_FRAME:
        room = header.frame_bytes
    elif record.space == SPACE_INPUT:
        room = input_bytes
    elif record.space == SPACE_PERSISTENT:
        room = header.persistent_bytes
    else:
        return Status.NOTSUP
    if record.offset % size != 0 or record.offset > room or record.bytes > room - record.offset:
        return Status.INVAL
    return Status.OK


@fn
def step_status(m: ModelMemory, header: Header, step: StepRecord) -> Status:
    """Whether one step may run: its lists, its memory, then what its layer says."""
    inputs = u32(step.inputs)
    outputs = u32(step.outputs)
    count = inputs + outputs
    if inputs == 0 or outputs == 0 or count > MAX_OPERANDS:
        return Status.INVAL
    first = u32(step.first)
    if first > header.list_entries or count > header.list_entries - first:
        return Status.INVAL
    if step.params % 4 != 0 or step.params > header.params_bytes or step.scratch > header.scratch_bytes:
        return Status.INVAL
    if step.row >= step.row_end:
        return Status.INVAL
    if step.variant >= len(VALIDATE) or step.flags | STEP_DOWN != STEP_DOWN:  # no other flag has a meaning yet
        return Status.NOTSUP
    check = local(LayerCheck)
    check.params = m.container[header.params_at + step.params :]
    check.params_bytes = header.params_bytes - step.params
    check.consts = m.container[header.consts_at :]
    check.scratch = step.scratch
    check.rows = u32(step.row_end)
    check.down = step.flags & STEP_DOWN != 0
    check.inputs = inputs
    check.outputs = outputs
    check.tensors = m.container[header.tensors_at :]
    for i in range(count):
        number = model_list(m, first + i)
        if number == NO_TENSOR:
            if i >= inputs:
                return Status.INVAL
        else:
            if number >= header.tensors:
                return Status.INVAL
            record = model_tensor(m, u32(number))
            # Constants and the caller's input are only read.
            if i >= inputs and record.space != SPACE_FRAME and record.space != SPACE_PERSISTENT:
                return Status.INVAL
        check.number[i] = number
    status = VALIDATE[step.variant](check)
    if status != Status.OK and check.wanted > check.scratch:
        m.planned = step.scratch
        m.required = check.wanted
        return Status.NOTSUP
    return status


@fn
def cpu_load(m: ModelMemory) -> Status:
    """Check all of a container. Only `container` of the memory is touched; the other spaces may be empty.

    Returns OK; ILSEQ for a wrong magic or checksum; NOTSUP for a version, element type, space or layer that this
    build does not know, or a layer whose kernel takes more scratch here than the container gives it; NOMEM if the frame or scratch given is smaller than needed; INVAL for all else.
    """
    check(header_status(m))
    header = view(Header, m.container)
    # What the job's input must hold: the inputs' own records say it.
    input_bytes: u32 = 0
    for i in range(u32(header.inputs) + header.outputs):
        number = model_list(m, i)
        if number >= header.tensors:
            return Status.INVAL
        record = model_tensor(m, u32(number))
        if record.offset > MAX_BYTES or record.bytes > MAX_BYTES:
            return Status.INVAL
        if i < header.inputs:
            if record.space != SPACE_INPUT:
                return Status.INVAL
            input_bytes = max(input_bytes, record.offset + record.bytes)
        elif record.space != SPACE_FRAME or record.dtype > DTYPE_INT32:
            return Status.INVAL
    if header.answers_at != 0 and not answers_fit(m, header, input_bytes):
        return Status.INVAL
    for i in range(u32(header.tensors)):
        check(tensor_status(model_tensor(m, i), header, input_bytes))
    for i in range(u32(header.steps)):
        status = step_status(m, header, model_step(m, i))
        if status != Status.OK:
            m.bad_step = i
            return status
    if header.frame_bytes > m.frame_bytes or header.scratch_bytes > m.scratch_bytes:
        return Status.NOMEM
    return Status.OK


# What follows takes a container that `cpu_load` has accepted.


@fn
def cpu_clear(m: ModelMemory) -> Status:
    """Put a model's state back to where it begins: every persistent tensor to real 0, its zero point.

    Returns OK; NOMEM if `m` gives too little persistent memory.
    """
    header = view(Header, m.container)
    if header.persistent_bytes > m.persistent_bytes:
        return Status.NOMEM
    for i in range(u32(header.tensors)):
        record = model_tensor(m, i)
        if record.space == SPACE_PERSISTENT:
            data = m.persistent[record.offset : record.offset + record.bytes]
            value: u8 = 0
            if record.dtype == DTYPE_INT8 or record.dtype == DTYPE_UINT8:
                value = u8(record.zero & 255)
            fill(data, value, record.bytes)
    return Status.OK


@fn(pure=True)
def cpu_steps(m: ModelMemory) -> u32:
    return u32(model_header(m).steps)


@fn(pure=True)
def cpu_frame_bytes(m: ModelMemory) -> u32:
    return model_header(m).frame_bytes


@fn(pure=True)
def cpu_scratch_bytes(m: ModelMemory) -> u32:
    return model_header(m).scratch_bytes


@fn(pure=True)
def cpu_persistent_bytes(m: ModelMemory) -> u32:
    return model_header(m).persistent_bytes


@fn(pure=True)
def cpu_outputs(m: ModelMemory) -> u32:
    return u32(model_header(m).outputs)


@fn(pure=True)
def cpu_input_bytes(m: ModelMemory) -> u32:
    """Bytes of the job's input: where the last of the model's inputs ends."""
    header = view(Header, m.container)
    need: u32 = 0
    for i in range(u32(header.inputs)):
        record = model_tensor(m, u32(model_list(m, i)))
        need = max(need, record.offset + record.bytes)
    return need


@fn(pure=True)
def cpu_rows(m: ModelMemory, step: u32) -> u32:
    """Rows of a step."""
    record = model_step(m, step)
    return u32(record.row_end - record.row)


@fn(pure=True)
def cpu_tile(m: ModelMemory, step: u32) -> u32:
    """Rows that one call should take at most; 0: all."""
    return u32(model_step(m, step).tile_rows)


@fn
def cpu_input(m: ModelMemory, i: u32) -> TensorRecord | None:
    """The record of the model's input `i`, or None."""
    if i >= model_header(m).inputs:
        return None
    return model_tensor(m, u32(model_list(m, i)))


@fn
def cpu_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    """Describe output `i`: its offset is from the start of the frame. `region` and `lifetime` stay as they are.

    Returns OK, or NOENT if there is no such output.
    """
    header = view(Header, m.container)
    if i >= header.outputs:
        return Status.NOENT
    number = model_list(m, header.inputs + i)
    record = model_tensor(m, u32(number))
    y.offset = record.offset
    y.size = record.bytes
    y.dtype = DType(record.dtype)
    y.ndim = record.rank
    for d in range(4):
        y.shape[d] = record.shape[d]
    quant.scale = record.scale
    quant.zero = record.zero
    return Status.OK


@fn
def cpu_run(m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    """Run rows row..row_end-1 of a step, counted from the step's first, or from its last where they run downwards.

    Returns what the layer says; INVAL for a step or rows that there are not; NOMEM if `m` gives a space too little
    memory. Then nothing was written.
    """
    header = view(Header, m.container)
    if step >= header.steps:
        return Status.INVAL
    record = model_step(m, step)
    first_row = u32(record.row)
    if row >= row_end or row_end > u32(record.row_end) - first_row:
        return Status.INVAL
    if record.scratch > m.scratch_bytes:
        return Status.NOMEM
    call = local(LayerCall)
    call.params = m.container[header.params_at + record.params : header.params_at + header.params_bytes]
    call.scratch = m.scratch
    call.row = first_row + row
    call.row_end = first_row + row_end
    first = u32(record.first)
    for i in range(u32(record.inputs) + record.outputs):
        number = model_list(m, first + i)
        call.data[i] = m.container  # any pointer will do where there is no tensor
        if number != NO_TENSOR:
            tensor = model_tensor(m, u32(number))
            end = tensor.offset + tensor.bytes
            call.size[i] = tensor.bytes
            if tensor.space == SPACE_CONSTS:
                call.data[i] = m.container[header.consts_at + tensor.offset : header.consts_at + end]
            elif tensor.space == SPACE_FRAME:
                if end > m.frame_bytes:
                    return Status.NOMEM
                call.data[i] = m.frame[tensor.offset : end]
            elif tensor.space == SPACE_INPUT:
                if end > m.input_bytes:
                    return Status.NOMEM
                call.data[i] = m.input[tensor.offset : end]
            else:
                if end > m.persistent_bytes:
                    return Status.NOMEM
                call.data[i] = m.persistent[tensor.offset : end]
    if record.flags & STEP_DOWN == 0:
        return RUN[record.variant](call)
    for i in range(row, row_end):
        call.row_end = u32(record.row_end) - i
        call.row = call.row_end - 1
        status = RUN[record.variant](call)
        if status != Status.OK:
            return status
    return Status.OK
