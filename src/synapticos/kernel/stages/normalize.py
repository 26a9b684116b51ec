"""image_normalize: bytes to reals, out = (v - mean[c]) / std[c].

x  u8 or i8 [1, H, W, C], C <= 4      y  f32, the same shape      INT8 pixels are signed numbers
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.stages.operands import MAX_CHANNELS, describe_like, is_byte_image, saturated
from synapticos.kernel.stages.resize import pixel
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class NormalizeConfig:
    mean: Shaped[Array[f32], MAX_CHANNELS]
    std: Shaped[Array[f32], MAX_CHANNELS]
    channels: u8  # entries used, and the image's own channels
    reserved: Shaped[Array[u8], 3]


NORMALIZE_CONFIG_BYTES = sizeof(NormalizeConfig)


@fn(pure=True)
def is_normalization(mean: Ptr[f32], std: Ptr[f32], channels: u32) -> bool:
    """1 to 4 channels, each with a finite mean and a finite deviation other than 0."""
    if channels == 0 or channels > MAX_CHANNELS:
        return False
    for c in range(channels):
        if not is_finite(mean[c]) or not is_finite(std[c]) or std[c] == 0.0:
            return False
    return True


@fn(pure=True, inline=True)
def normalized(value: i32, mean: f32, std: f32) -> f32:
    """One element; the two operands are finite and `std` is not 0, so the result is no NaN."""
    return (f32(value) - mean) / std


@fn
def normalize(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: NormalizeConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`normalize_check`), x is no byte image or has other channels;
    NOMEM if the result does not fit y."""
    channels = u32(config.channels)
    if not is_normalization(config.mean, config.std, channels):
        return Status.INVAL
    if not is_byte_image(x) or x.shape[3] != channels:
        return Status.INVAL
    if y.size // 4 < x.size:
        return Status.NOMEM
    flip: u8 = 0
    if x.dtype == DType.INT8:
        flip = 128
    out = view(f32, y_data)
    size = x.size
    at: u32 = 0
    while at < size:
        for c in range(channels):
            out[at] = normalized(pixel(x_data[at], flip), config.mean[c], config.std[c])
            at += 1
    describe_like(y, x, DType.FLOAT32, size * 4)
    return Status.OK


@fn
def normalize_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, channels is not 1 to 4, or a mean or deviation in use cannot be used."""
    if config is None or config_bytes != NORMALIZE_CONFIG_BYTES:
        return Status.INVAL
    c = view(NormalizeConfig, config)
    if not is_normalization(c.mean, c.std, u32(c.channels)):
        return Status.INVAL
    return Status.OK


@fn
def normalize_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """4n."""
    return saturated(u64(x.size) * 4)


@fn
def normalize_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != NORMALIZE_CONFIG_BYTES:
        return Status.INVAL
    return normalize(call.x[0], call.x_data[0], call.y, call.y_data, view(NormalizeConfig, config))
