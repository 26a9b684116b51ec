"""The deterministic stub: a backend that needs no network.

    s = sum of all input bytes, each 0..255, modulo 2^32;   out[10] = 0, but out[s mod 10] = 127

The model's content and its declared output size do not matter.
"""

from synapticos.lang import *
from synapticos.kernel.backend import Caps, Need, StepRows
from synapticos.kernel.capacity import NPU_INPUT_BYTES, NPU_MODEL_BYTES
from synapticos.kernel.container import ModelMemory, Quant
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor

STUB_OUTPUTS: Final[u32] = 10  # bytes
STUB_WINNER: Final[u8] = 127
STUB_NAME = rom(b"stub")
STUB_NAME_BYTES: Final[u32] = 4


@fn
def stub_caps(caps: Caps) -> None:
    for i in range(STUB_NAME_BYTES):
        caps.name[i] = STUB_NAME[i]
    caps.max_ops = 0
    caps.scratch_bytes = 0
    caps.dtypes = 0x1F
    caps.model_limit = NPU_MODEL_BYTES
    caps.input_limit = NPU_INPUT_BYTES
    caps.asynchronous = False
    caps.exclusive = True


@fn
def stub_load(m: ModelMemory) -> Status:
    """Takes any bytes."""
    if m.container_bytes > NPU_MODEL_BYTES:
        return Status.NOMEM
    return Status.OK


@fn
def stub_need(m: ModelMemory, need: Need) -> None:
    need.frame_bytes = 0
    need.scratch_bytes = 0
    need.persistent_bytes = 0
    need.input_bytes = 0
    need.steps = 1
    need.outputs = 1
    need.raw = True


@fn
def stub_clear(m: ModelMemory) -> Status:
    return Status.OK


@fn
def stub_step(m: ModelMemory, step: u32, rows: StepRows) -> None:
    rows.row = 0
    rows.row_end = 1
    rows.tile = 0


@fn
def stub_run(m: ModelMemory, step: u32, row: u32, row_end: u32) -> Status:
    if m.frame_bytes < STUB_OUTPUTS:
        return Status.NOMEM
    total: u32 = 0
    data = m.input
    for i in range(m.input_bytes):
        total = wrap(u32, total + data[i])
    fill(m.frame, 0, STUB_OUTPUTS)
    m.frame[total % STUB_OUTPUTS] = STUB_WINNER
    return Status.OK


@fn
def stub_output(m: ModelMemory, i: u32, y: Tensor, quant: Quant) -> Status:
    y.offset = 0
    y.size = STUB_OUTPUTS
    y.dtype = DType.INT8
    y.ndim = 1
    y.shape[0] = STUB_OUTPUTS
    quant.scale = 0.0
    quant.zero = 0
    return Status.OK
