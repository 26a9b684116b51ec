"""normalize_quantize: normalize and quantize in one pass, the bytes of one after the other.

x  u8 or i8 [1, H, W, C], C <= 4      y  i8, the same shape

A pixel has only 256 values, so what becomes of each is worked out once a channel and looked up.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.stages.normalize import is_normalization, normalized
from synapticos.kernel.stages.operands import MAX_CHANNELS, describe_like, is_byte_image
from synapticos.kernel.stages.quantize import quantized
from synapticos.kernel.stages.resize import pixel
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class EncodeConfig:
    channels: u8  # entries of mean and std in use, and the image's own channels
    reserved: Shaped[Array[u8], 3]
    mean: Shaped[Array[f32], MAX_CHANNELS]
    std: Shaped[Array[f32], MAX_CHANNELS]
    scale: f32  # of the model's input
    zero_point: i32


ENCODE_CONFIG_BYTES = sizeof(EncodeConfig)


@fn(pure=True)
def is_encode(config: EncodeConfig) -> bool:
    """Both configurations in it are ones that normalize and quantize take."""
    if not is_finite(config.scale) or config.scale == 0.0:
        return False
    return is_normalization(config.mean, config.std, u32(config.channels))


@fn
def encode_pixels(
    x_data: Ptr[u8], y_data: Ptr[i8], pixels: u32, channels: u32, flip: u8, mean: Ptr[f32], std: Ptr[f32], scale: f32, zero_point: i32
) -> None:
    """x may be y. `flip` is 0 for unsigned bytes, 128 for signed ones."""
    made = local(i8, 256)  # what becomes of each byte, in this channel
    for c in range(channels):
        if c == 0 or mean[c] != mean[c - 1] or std[c] != std[c - 1]:
            for byte in range(256):
                real = normalized(pixel(u8(byte), flip), mean[c], std[c])
                made[byte] = quantized(real, scale, zero_point)
        at = c
        for _ in range(pixels):
            y_data[at] = made[x_data[at]]
            at += channels


@fn
def normalize_quantize(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: EncodeConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`normalize_quantize_check`), x is no byte image or has other channels;
    NOMEM if the result does not fit y."""
    if not is_encode(config) or not is_byte_image(x) or x.shape[3] != config.channels:
        return Status.INVAL
    size = x.size
    if y.size < size:
        return Status.NOMEM
    flip: u8 = 0
    if x.dtype == DType.INT8:
        flip = 128
    channels = u32(config.channels)
    encode_pixels(x_data, view(i8, y_data), size // channels, channels, flip, config.mean, config.std, config.scale, config.zero_point)
    describe_like(y, x, DType.INT8, size)
    return Status.OK


@fn
def normalize_quantize_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or normalize or quantize would refuse its part."""
    if config is None or config_bytes != ENCODE_CONFIG_BYTES:
        return Status.INVAL
    if not is_encode(view(EncodeConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def normalize_quantize_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """n."""
    return x.size


@fn
def normalize_quantize_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != ENCODE_CONFIG_BYTES:
        return Status.INVAL
    return normalize_quantize(call.x[0], call.x_data[0], call.y, call.y_data, view(EncodeConfig, config))
