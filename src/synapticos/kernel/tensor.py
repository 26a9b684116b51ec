"""Tensors: the descriptor that stages hand on, and the call that a stage sees.

A descriptor names its data by region and offset; a pointer exists only in a StageCall, which lives on the stack
for as long as one stage runs.
"""

from synapticos.lang import *
from synapticos.kernel.status import Status

MAX_DIMS: Final[u32] = 4
MAX_STAGE_INPUTS: Final[u32] = 4  # tensors that one step may hand to the next, in any build
STAGE_INPUTS = param(u32, 4, min=1, max=4)  # in this build


class DType(u8, Enum):
    INT8 = 0
    UINT8 = 1
    INT16 = 2
    FLOAT16 = 3
    FLOAT32 = 4
    INT32 = 5


class Lifetime(u8, Enum):
    PERSISTENT = 0
    EPHEMERAL = 1
    SHARED = 2


@struct
class Tensor:
    """32 bytes on every engine, as published (the accounting of the arena counts them)."""

    offset: u32  # of the data, from the start of its region, bytes
    size: u32  # data, bytes
    dtype: DType
    ndim: u8  # 1..MAX_DIMS
    region: u8  # number of the region that holds the data
    reserved: u8
    shape: Shaped[Array[u32], MAX_DIMS]  # unused entries 0
    lifetime: Lifetime
    reserved_end: Shaped[Array[u8], 3]


@struct
class StageCall:
    """One stage at work: its operands, resolved."""

    inputs: u32  # tensors in `x`
    config_bytes: u32
    scale: Shaped[Array[f32], STAGE_INPUTS]  # quantisation of each input; 0.0: not known
    zero: Shaped[Array[i32], STAGE_INPUTS]
    scratch_bytes: u32  # at `scratch`; 0: the kernel gives none
    state_bytes: u32  # at `state`; 0: the stage has none
    x: Shaped[Array[Tensor], STAGE_INPUTS]
    y: Tensor  # size: capacity on entry; the stage sets the final size, shape, ndim and dtype
    x_data: Shaped[Array[Ptr[u8]], STAGE_INPUTS]
    y_data: Ptr[u8]
    config: Ptr[u8] | None
    scratch: Ptr[u8] | None  # alive within this step only
    state: Ptr[u8] | None  # the stage's own from run to run, zeros at first


StageFn = Fn[[StageCall], Status]


@fn(pure=True)
def element_size(dtype: DType) -> u32:
    """Bytes an element."""
    if dtype == DType.INT8 or dtype == DType.UINT8:
        return 1
    if dtype == DType.INT16 or dtype == DType.FLOAT16:
        return 2
    return 4
