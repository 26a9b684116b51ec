"""Models: a table of those registered. Handles carry a generation, so an old one never reaches a newer model.

A handle is generation << 8 | slot + 1; 0 is none, and the first one of a fresh table is 1.
"""

from synapticos.lang import *
from synapticos.kernel.backend import Need
from synapticos.kernel.capacity import MAX_MODELS
from synapticos.kernel.status import Status

NAME_BYTES: Final[u32] = 32
GENERATIONS: Final[u32] = 0xFFFFFF


class ModelState(u8, Enum):
    FREE = 0
    REGISTERED = 1
    LOADED = 2


@struct
class ModelInfo:
    """The published record, 84 bytes, as it also lies in flash."""

    name: Shaped[Array[u8], NAME_BYTES]  # padded with 0
    version: Shaped[Array[u8], 16]
    input_size: u32  # bytes; 0: not checked
    output_size: u32
    flash_offset: u32
    flash_size: u32
    sram_required: u32
    crc32: u32  # of the payload; 0: not known
    input_dtype: u8
    output_dtype: u8
    input_shape: Shaped[Array[u8], 4]
    output_shape: Shaped[Array[u8], 4]
    padding: Shaped[Array[u8], 2]


RAW_OUTPUT: Final[u32] = 128  # with a model's outputs: the first is bytes whose type and shape its record says


@fn(pure=True)
def noted_outputs(need: Need) -> u8:
    """A need's outputs as a model notes them: at most STAGE_INPUTS."""
    if need.raw:
        return u8(need.outputs | RAW_OUTPUT)
    return u8(need.outputs)


@struct
class Model:
    info: ModelInfo
    generation: u32
    at: u32  # of the payload, in its region
    bytes: u32  # of the payload; 0: none attached
    frame_bytes: u32  # that it needs to run; 0: as large as its output
    persistent_at: u32  # in the arena
    persistent_bytes: u32
    region: u8  # of the payload
    backend: u8
    state: ModelState
    crc_known: bool
    exclusive: bool  # its backend holds few models at a time
    asynchronous: bool  # its backend works beside the processor
    outputs: u8  # that it leaves; RAW_OUTPUT with it
    reserved: u8
    steps: u32


@struct
class Models:
    items: Shaped[Array[Model], MAX_MODELS]

    @fn
    def find(self, handle: u32) -> Model | None:
        """The model of a handle, or None: never given, or its model is gone."""
        slot = handle & 0xFF
        if slot == 0 or slot > MAX_MODELS:
            return None
        model = self.items[slot - 1]
        if model.state == ModelState.FREE or model.generation != handle >> 8:
            return None
        return model

    @fn
    def named(self, name: Ptr[u8]) -> u32:
        """The handle of the model with this name (NAME_BYTES of it, or up to a 0), or 0."""
        for i in range(MAX_MODELS):
            model = self.items[i]
            if model.state != ModelState.FREE and same_name(model.info.name, name):
                return model.generation << 8 | (i + 1)
        return 0

    @fn
    def register(self, info: ModelInfo) -> tuple[Status, u32]:
        """Take the first free slot; the record is copied. The second result is the handle.

        Returns OK; EXIST if the name is taken; NOMEM if all slots are.
        """
        taken = self.named(info.name)
        if taken != 0:
            return Status.EXIST, 0
        for i in range(MAX_MODELS):
            model = self.items[i]
            if model.state == ModelState.FREE:
                copy(model.info, info)
                model.info.padding[0] = 0
                model.info.padding[1] = 0
                model.at = 0
                model.bytes = 0
                model.frame_bytes = 0
                model.persistent_at = 0
                model.persistent_bytes = 0
                model.region = 0
                model.backend = 0
                model.crc_known = info.crc32 != 0
                model.exclusive = True
                model.asynchronous = False
                model.outputs = 0
                model.reserved = 0
                model.steps = 0
                model.state = ModelState.REGISTERED
                return Status.OK, model.generation << 8 | (i + 1)
        return Status.NOMEM, 0

    @fn
    def free(self, model: Model) -> None:
        """Forget a model: its handle is no longer good."""
        model.state = ModelState.FREE
        model.generation = (model.generation + 1) & GENERATIONS

    @fn
    def list(self, handles: Ptr[u32], most: u32) -> u32:
        """Write up to `most` handles in slot order; the result is how many."""
        n: u32 = 0
        for i in range(MAX_MODELS):
            model = self.items[i]
            if n < most and model.state != ModelState.FREE:
                handles[n] = model.generation << 8 | (i + 1)
                n += 1
        return n


@fn(pure=True)
def same_name(a: Ptr[u8], b: Ptr[u8]) -> bool:
    """Are two names equal? NAME_BYTES each, or up to a 0."""
    for i in range(NAME_BYTES):
        if a[i] != b[i]:
            return False
        if a[i] == 0:
            return True
    return True
