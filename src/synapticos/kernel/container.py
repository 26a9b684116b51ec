"""Container: a compiled model as it lies in flash, and the checks that make it safe to run.

A header, tensor records, step records, lists of tensor numbers, parameters and constants, all found by offsets from
the container's start. Nothing in it is trusted: `load` looks at every number before the first step runs, and a
container that it accepts reads and writes nothing outside itself and the memory that it asks for, whatever its bytes.

The lists begin with the model's inputs and outputs (`Header.inputs`, `Header.outputs` entries); the steps' follow.
Known answers: their count, for each the crc32 of the outputs' bytes one after the other, then from the next multiple
of ALIGN on for each the job's input, as it lies in memory, rounded up to ALIGN. So a device runs them where they are.
"""

from synapticos.lang import *

MAGIC: Final[u32] = 0x4D4E5953  # "SYNM"
VERSION: Final[u32] = 2
MAX_OPERANDS: Final[u32] = 8  # inputs and outputs of one step together
MAX_RANK: Final[u32] = 4
MAX_TENSORS: Final[u32] = 0xFFF0
MAX_BYTES: Final[u32] = 0x10000000  # of a container and of each space: sums of two cannot wrap
STEP_DOWN: Final[u16] = 1  # a step's flag: rows run from the last to the first, one by one
NO_TENSOR: Final[u16] = 0xFFFF  # in a list: an optional input that is not there
MAX_ANSWERS: Final[u32] = 4096
HEADER_BYTES: Final[u32] = 128
TENSOR_BYTES: Final[u32] = 40  # of a tensor record
STEP_BYTES: Final[u32] = 32  # of a step record
ALIGN: Final[u32] = 16  # of every section and of the spaces' bases, bytes

# Element types, numbered as kernel.tensor.DType. Records hold plain numbers: a stranger must not trap.
DTYPE_INT8: Final[u8] = 0
DTYPE_UINT8: Final[u8] = 1
DTYPE_INT16: Final[u8] = 2
DTYPE_FLOAT16: Final[u8] = 3
DTYPE_FLOAT32: Final[u8] = 4
DTYPE_INT32: Final[u8] = 5
# Inside a model only: no stage takes them, so they are no model's output.
DTYPE_UINT32: Final[u8] = 6
DTYPE_UINT64: Final[u8] = 7

# Where a tensor lies.
SPACE_CONSTS: Final[u8] = 0  # the container's constants
SPACE_FRAME: Final[u8] = 1  # the job's frame
SPACE_INPUT: Final[u8] = 2  # the job's input, where the caller has it
SPACE_PERSISTENT: Final[u8] = 3  # kept from run to run


@struct
class Header:
    """128 bytes. The first 64 are those of version 1, so an old reader can name the model."""

    magic: u32
    version: u32
    name: Shaped[Array[u8], 32]  # padded with 0
    payload_bytes: u32  # all after the header
    payload_crc: u32  # crc32 of the payload
    input_shape: Shaped[Array[u16], 4]  # of the first input
    output_shape: Shaped[Array[u16], 4]  # of the first output
    header_crc: u32  # crc32 of the header with this field 0
    tensors_at: u32
    tensors: u16
    steps: u16
    steps_at: u32
    lists_at: u32
    list_entries: u32
    params_at: u32
    params_bytes: u32
    consts_at: u32
    consts_bytes: u32
    frame_bytes: u32
    scratch_bytes: u32
    inputs: u16
    outputs: u16
    answers_at: u32  # 0: none
    persistent_bytes: u32
    features: u32  # number of the features that it was trained on, `feature_digest`; 0: not stated


@struct
class TensorRecord:
    """40 bytes."""

    dtype: u8
    rank: u8  # entries of `shape` in use
    space: u8
    layout: u8  # 0: row-major, last dimension fastest
    zero: i32  # of the first channel, where there are several
    scale: f32
    offset: u32  # from the start of its space, bytes
    bytes: u32  # data, bytes
    shape: Shaped[Array[u32], MAX_RANK]  # unused entries 0
    border: u32  # elements kept around the data; 0


@struct
class StepRecord:
    """32 bytes: one layer, or one tile of its rows."""

    variant: u16  # number in kernel.layers.variants
    flags: u16
    first: u16  # entry in the lists; the inputs, then the outputs
    inputs: u8
    outputs: u8
    params: u32  # offset in the parameters, bytes
    scratch: u32  # bytes
    row: u16
    row_end: u16
    source: u16  # number of the operator in the source model
    tile_rows: u16  # rows a call may take at most; 0: all
    reserved: u32
    cost: u32  # multiply-accumulates, or elements


@struct
class Quant:
    """How a tensor's integers stand for reals: scale * (q - zero)."""

    scale: f32
    zero: i32


@struct
class ModelMemory:
    """Where a model's spaces lie while it is loaded or one step runs. Built on the stack, never stored.

    All bases are multiples of 16.
    """

    container: Ptr[u8]
    container_bytes: u32
    frame: Ptr[u8]
    frame_bytes: u32
    scratch: Ptr[u8]
    scratch_bytes: u32
    input: Ptr[u8]
    input_bytes: u32
    persistent: Ptr[u8]
    persistent_bytes: u32
    # What loading refused: set with an error that a step is the reason of.
    bad_step: u32
    planned: u32  # scratch that the container gives that step, bytes
    required: u32  # what this build's layer kernel takes; 0: the reason is another


@struct
class LayerCall:
    """The operands of one step, resolved once: what a layer's `run` gets."""

    params: Ptr[u8]
    scratch: Ptr[u8]
    row: u32
    row_end: u32
    data: Shaped[Array[Ptr[u8]], MAX_OPERANDS]  # inputs, then outputs
    size: Shaped[Array[u32], MAX_OPERANDS]  # bytes; 0: an optional input that is not there


@struct
class LayerCheck:
    """What a layer's `validate` sees of a step. Tensor records are checked by now, parameters are not."""

    params: Ptr[u8]
    params_bytes: u32  # from `params` to the end of all parameters
    consts: Ptr[u8]  # the constants, for layers that look into theirs
    scratch: u32  # bytes the step may use
    wanted: u32  # bytes that the layer takes, as far as `validate` has said by now
    rows: u32  # the step's last row + 1: at most this many rows must exist
    down: bool  # rows run from the last to the first
    inputs: u32
    outputs: u32
    tensors: Ptr[u8]  # the tensor records
    number: Shaped[Array[u16], MAX_OPERANDS]  # of each operand's record; NO_TENSOR: not there

    @fn(pure=True)
    def tensor(self, operand: u32) -> TensorRecord | None:
        """The record of an operand (inputs, then outputs), or None if it is not there."""
        if operand >= self.inputs + self.outputs or self.number[operand] == NO_TENSOR:
            return None
        return view(TensorRecord, self.tensors[u32(self.number[operand]) * TENSOR_BYTES :])
