"""Front end: whether the features that a pipeline makes are those that its model was trained on.

A container may carry the number of a description (`feature_digest`). A network hears only what it was trained on, and
other features of the same shape run without any error: so boot compares.
"""

from synapticos.lang import *
from synapticos.kernel.container import HEADER_BYTES, MAGIC, VERSION, Header
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.pipeline import Pipeline, StageKind
from synapticos.kernel.region import REGION_TABLES
from synapticos.kernel.stages.features import FEATURE_CONFIG_BYTES, feature_digest
from synapticos.kernel.stages.micro import micro_digest
from synapticos.kernel.status import Status

FEATURES_STAGE: Final[u32] = 14  # the built-ins that make features of sound, as `stages.tables` numbers them
STREAM_STAGE: Final[u32] = 16
MICRO_STAGE: Final[u32] = 17


@fn
def trained_on(kernel: Kernel, handle: u32) -> u32:
    """The number of the features that a model was trained on; 0: it does not say."""
    model = kernel.models.find(handle)
    if model is None or model.bytes < HEADER_BYTES:
        return 0
    data = kernel.regions.get(model.region, model.at, model.bytes)
    if data is None or not aligned(data, 4):
        return 0
    header = view(Header, data)
    if header.magic != MAGIC or header.version != VERSION:
        return 0
    return header.features


@fn
def check_front_end(kernel: Kernel, pipeline: Pipeline) -> Status:
    """Compare each stage that makes features with what the pipeline's model says.

    Returns OK, also where the model says nothing or no such stage is there; ACCES for other features.
    """
    wanted = trained_on(kernel, pipeline.stages[pipeline.model].number)
    if wanted == 0:
        return Status.OK
    for i in range(u32(pipeline.model)):
        stage = pipeline.stages[i]
        micro = stage.number == MICRO_STAGE
        if stage.kind == StageKind.BUILTIN and (micro or stage.number == FEATURES_STAGE or stage.number == STREAM_STAGE):
            config = kernel.regions.get(REGION_TABLES, stage.config_at, u32(stage.config_bytes))
            if config is None or stage.config_bytes < FEATURE_CONFIG_BYTES:
                return Status.INVAL
            made: u32 = 0
            if micro:
                made = micro_digest(config, u32(stage.config_bytes))
            else:
                made = feature_digest(config)
            if made != wanted:
                return refuse(kernel.note, Status.ACCES, f"stage {i} makes features {made:x}, the model was trained on {wanted:x}")
    return Status.OK
