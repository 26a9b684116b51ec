"""Backends: what executes a model, seen from the scheduler.

A backend is a row of functions, one in each of the open tables in `npu.py`; its number is the row's. It gets the
model's memory anew for every call and keeps nothing of it.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import NPU_INPUT_BYTES, NPU_OUTPUT_BYTES
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.residency import Residency
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor


class NpuState(u8, Enum):
    IDLE = 0
    BUSY = 1
    ERROR = 2
    SUSPENDED = 3


class NpuWork(u8, Enum):
    """What the accelerator does beside the processor."""

    NOTHING = 0
    LOAD = 1  # takes in a model
    STEP = 2


@struct
class Caps:
    """What a backend is."""

    name: Shaped[Array[u8], 16]  # padded with 0
    max_ops: u32  # operations a second; 0: not stated
    scratch_bytes: u32
    dtypes: u32  # bit n: DType n
    model_limit: u32  # bytes; 0: none
    input_limit: u32  # bytes that `npu_set_input` takes
    asynchronous: bool
    exclusive: bool  # holds few models at a time: running another swaps it in
    models: u16  # that it holds at once, if exclusive; 0 is 1


@struct
class Need:
    """What a model asks for."""

    frame_bytes: u32  # while it runs, outputs included; 0: as large as its record's output
    scratch_bytes: u32  # within one step
    persistent_bytes: u32  # from run to run
    input_bytes: u32  # 0: any
    steps: u32
    outputs: u32
    raw: bool  # outputs are bytes whose type and shape the model's record says
    reserved: Shaped[Array[u8], 3]


@struct
class StepRows:
    """The rows of one step."""

    row: u32  # first
    row_end: u32
    tile: u32  # rows that one call may take; 0: all


CapsFn = Fn[[Caps], None]
LoadFn = Fn[[ModelMemory], Status]  # may this model run? looks at the container only
NeedFn = Fn[[ModelMemory, Need], None]
StepFn = Fn[[ModelMemory, u32, StepRows], None]
RunFn = Fn[[ModelMemory, u32, u32, u32], Status]  # step, first row, end row
ClearFn = Fn[[ModelMemory], Status]  # the persistent bytes as they are before the first run
OutputFn = Fn[[ModelMemory, u32, Tensor, Quant], Status]  # output i: offset from the frame's start, size, type, shape

# Of a backend that works beside the processor (`offload.py`): all get the board, and a ticket for `npu_done`.
BringFn = Fn[[u32, u32, ModelMemory, u32], Status]  # take in a model, in place n
StartFn = Fn[[u32, u32, ModelMemory, u32, u32, u32], Status]  # step, first row, end row
LimitFn = Fn[[u32, ModelMemory, u32], u32]  # microseconds that a step may take at most, or taking in (LOADING); 0: no limit
LookFn = Fn[[u32, u32], Status]  # INPROGRESS while it works, or if the device cannot be asked; else how it ended
FinishFn = Fn[[u32, ModelMemory, u32, u32, u32], Status]  # the processor's part once a step is done: caches
ResetFn = Fn[[u32], None]  # stop: afterwards the device reads and writes nothing, and holds no model
LOADING: Final[u32] = 0xFFFFFFFF


@struct
class Npu:
    """The accelerator: who has it, what it holds, and the state that an application sees which drives it by hand."""

    since: u64  # ticks since boot: when the work in progress began
    limit: u64  # ticks that it may take; 0: no limit
    holds: Residency
    owner: u32  # job slot + 1; 0: nobody
    ticket: u32  # of the work in progress
    coming: u32  # handle of the model that it takes in
    resets: u32  # since boot, of a device that has failed or did not end in time; wraps
    work: NpuWork
    place: u8  # where it takes in a model
    driver: u8  # the backend that works
    reserved: u8
    model_bytes: u32  # of the model loaded by hand; 0: none
    input_bytes: u32  # of the copied input; 0: none since the load
    output_bytes: u32
    backend: u32
    state: NpuState
    initialised: bool
    has_output: bool
    reserved_end: u8
    input: Shaped[Array[u8], NPU_INPUT_BYTES]
    output: Shaped[Array[u8], NPU_OUTPUT_BYTES]
