"""The built-in processors by number: what to call, how much room to give, whether a configuration will do.

A number is the row in `ROWS` and never changes its meaning: new processors go to the end. `BUILTINS` is open, so a
build's own stages follow them.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from synapticos.lang import *
from synapticos.kernel.stages.argmax import argmax_capacity, argmax_check, argmax_stage
from synapticos.kernel.stages.boxes import BoxMap, map_boxes_capacity, map_boxes_check, map_boxes_stage
from synapticos.kernel.stages.colour import ColourConfig, colour_capacity, colour_check, colour_stage
from synapticos.kernel.stages.crop import crop_check, crop_stage
from synapticos.kernel.stages.dequantize import dequantize_capacity, dequantize_check, dequantize_stage
from synapticos.kernel.stages.encode import (
    EncodeConfig,
    normalize_quantize_capacity,
    normalize_quantize_check,
    normalize_quantize_stage,
)
from synapticos.kernel.stages.features import (
    FeatureConfig,
    features_capacity,
    features_check,
    features_scratch,
    features_stage,
)
from synapticos.kernel.stages.fit import FitConfig, fit_capacity, fit_check, fit_stage
from synapticos.kernel.stages.mfcc import MfccConfig, mfcc_capacity, mfcc_check, mfcc_scratch, mfcc_stage
from synapticos.kernel.stages.micro import (
    MicroConfig,
    micro_features_capacity,
    micro_features_check,
    micro_features_scratch,
    micro_features_stage,
    micro_features_state,
)
from synapticos.kernel.stages.nms import NmsConfig, nms_capacity, nms_check, nms_stage
from synapticos.kernel.stages.normalize import NormalizeConfig, normalize_capacity, normalize_check, normalize_stage
from synapticos.kernel.stages.operands import Quantization, saturated
from synapticos.kernel.stages.quantize import quantize_capacity, quantize_check, quantize_stage
from synapticos.kernel.stages.resize import ResizeConfig, resize_capacity, resize_check, resize_stage
from synapticos.kernel.stages.scale import ScaleConfig, scale_capacity, scale_check, scale_stage
from synapticos.kernel.stages.softmax import softmax_capacity, softmax_check, softmax_stage
from synapticos.kernel.stages.stream import (
    StreamConfig,
    stream_features_capacity,
    stream_features_check,
    stream_features_stage,
    stream_features_state,
)
from synapticos.kernel.stages.suppress import SuppressConfig, suppress_capacity, suppress_check, suppress_stage
from synapticos.kernel.stages.top_k import TopKConfig, top_k_capacity, top_k_check, top_k_stage
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, StageFn, Tensor


class Row(NamedTuple):
    """A built-in: its name, functions and the struct of its configuration (None: it takes none)."""

    name: str
    stage: Any
    capacity: Any
    check: Any
    config: Any


ROWS = [
    Row("resize", resize_stage, resize_capacity, resize_check, ResizeConfig),
    Row("normalize", normalize_stage, normalize_capacity, normalize_check, NormalizeConfig),
    Row("quantize", quantize_stage, quantize_capacity, quantize_check, Quantization),
    Row("dequantize", dequantize_stage, dequantize_capacity, dequantize_check, Quantization),
    Row("softmax", softmax_stage, softmax_capacity, softmax_check, Quantization),
    Row("argmax", argmax_stage, argmax_capacity, argmax_check, None),
    Row("top_k", top_k_stage, top_k_capacity, top_k_check, TopKConfig),
    Row("nms", nms_stage, nms_capacity, nms_check, NmsConfig),
    Row("fit", fit_stage, fit_capacity, fit_check, FitConfig),
    Row("mfcc", mfcc_stage, mfcc_capacity, mfcc_check, MfccConfig),
    Row("scale", scale_stage, scale_capacity, scale_check, ScaleConfig),
    Row("map_boxes", map_boxes_stage, map_boxes_capacity, map_boxes_check, BoxMap),
    Row("colour", colour_stage, colour_capacity, colour_check, ColourConfig),
    Row("normalize_quantize", normalize_quantize_stage, normalize_quantize_capacity, normalize_quantize_check, EncodeConfig),
    Row("features", features_stage, features_capacity, features_check, FeatureConfig),
    Row("suppress", suppress_stage, suppress_capacity, suppress_check, SuppressConfig),
    Row("stream_features", stream_features_stage, stream_features_capacity, stream_features_check, StreamConfig),
    Row("micro_features", micro_features_stage, micro_features_capacity, micro_features_check, MicroConfig),
    Row("crop", crop_stage, scale_capacity, crop_check, ScaleConfig),
]
STAGE_NAMES = [row.name for row in ROWS]  # the place is the number
KINDS = {row.name: number for number, row in enumerate(ROWS)}


@fn
def absent_stage(call: StageCall) -> Status:
    """Stands where a firmware was built without a processor."""
    return Status.NOTSUP


@fn
def absent_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    return 0


@fn
def absent_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """Refused when it is added, before anything runs."""
    return Status.NOTSUP


def stage_tables(names: Collection[str]) -> dict[Any, list[Any]]:
    """The three tables for a build that needs only some processors: the others' places are kept, their code is not.

    Plain Python: `Build(roots, tables=stage_tables({"fit", "nms"}))`.
    """
    for name in names:
        if name not in KINDS:
            raise ValueError(f"{name} is no built-in processor; there are {', '.join(KINDS)}")
    return {
        BUILTINS: [row.stage if row.name in names else absent_stage for row in ROWS],
        CAPACITY: [row.capacity if row.name in names else absent_capacity for row in ROWS],
        CHECK: [row.check if row.name in names else absent_check for row in ROWS],
    }


KIND_RESIZE: Final[u32] = 0
KIND_NORMALIZE: Final[u32] = 1
KIND_QUANTIZE: Final[u32] = 2
KIND_DEQUANTIZE: Final[u32] = 3
KIND_SOFTMAX: Final[u32] = 4
KIND_ARGMAX: Final[u32] = 5
KIND_TOP_K: Final[u32] = 6
KIND_NMS: Final[u32] = 7
KIND_FIT: Final[u32] = 8
KIND_MFCC: Final[u32] = 9
KIND_SCALE: Final[u32] = 10
KIND_MAP_BOXES: Final[u32] = 11
KIND_COLOUR: Final[u32] = 12
KIND_NORMALIZE_QUANTIZE: Final[u32] = 13
KIND_FEATURES: Final[u32] = 14
KIND_SUPPRESS: Final[u32] = 15
KIND_STREAM_FEATURES: Final[u32] = 16
KIND_MICRO_FEATURES: Final[u32] = 17
KIND_CROP: Final[u32] = 18
KIND_COUNT = len(ROWS)

CapacityFn = Fn[[Tensor, Ptr[u8] | None, u32], u32]
CheckFn = Fn[[Ptr[u8] | None, u32], Status]

BUILTINS = table(StageFn, [row.stage for row in ROWS], open=True)
CAPACITY = table(CapacityFn, [row.capacity for row in ROWS], open=True)
CHECK = table(CheckFn, [row.check for row in ROWS], open=True)
CONFIG_BYTES = rom(u16, [sizeof(row.config) if row.config else 0 for row in ROWS])


@fn
def capacity(kind: u32, x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes to give stage `kind` for its result: its own rule, or max(4n, 64) where it has none or that gives 0."""
    n: u32 = 0
    if kind < KIND_COUNT:
        n = CAPACITY[kind](x, config, config_bytes)
    if n == 0:
        n = max(saturated(u64(x.size) * 4), 64)
    return n


@fn
def plan_result(kind: u32, x: Tensor, size: u32) -> None:
    """Turn `x`, which enters built-in `kind`, into the largest that can leave it, `size` bytes, as capacities ask of it:
    its type, its shape if it is a picture of known size, else the channels alone."""
    x.size = size
    if kind == KIND_RESIZE or kind == KIND_SCALE or kind == KIND_COLOUR or kind == KIND_FIT or kind == KIND_CROP:
        if kind == KIND_FIT:
            x.dtype = DType.INT8
        if kind == KIND_COLOUR:
            x.shape[3] = 3  # or 1: then what follows gets more room than it needs
        x.shape[1] = 1
        x.shape[2] = 1
        if x.shape[3] != 0:
            x.shape[2] = size // x.shape[3]
    elif kind == KIND_QUANTIZE or kind == KIND_NORMALIZE_QUANTIZE:
        x.dtype = DType.INT8
    else:
        x.dtype = DType.FLOAT32


@fn
def check_config(kind: u32, config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """Whether a configuration will do, asked when a stage is added: OK or INVAL. Of other stages nothing is known: OK."""
    if kind >= KIND_COUNT:
        return Status.OK
    return CHECK[kind](config, config_bytes)


@fn(pure=True)
def config_size(kind: u32) -> u32:
    """Bytes of a built-in's configuration, so that a caller who gives only its address can have it copied; 0 for none."""
    if kind >= KIND_COUNT:
        return 0
    return u32(CONFIG_BYTES[kind])


@fn
def scratch_size(kind: u32, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes of scratch that stage `kind` needs within its step, 16-aligned as all scratch; of other stages nothing is known: 0."""
    if kind == KIND_MFCC:
        return mfcc_scratch(config, config_bytes)
    if kind == KIND_FEATURES:
        return features_scratch(config, config_bytes)
    if kind == KIND_MICRO_FEATURES:
        return micro_features_scratch(config, config_bytes)
    return 0


@fn
def state_size(kind: u32, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes that stage `kind` keeps from one job to the next, zeroed at first; of other stages nothing is known: 0."""
    if kind == KIND_STREAM_FEATURES:
        return stream_features_state(config, config_bytes)
    if kind == KIND_MICRO_FEATURES:
        return micro_features_state(config, config_bytes)
    return 0
