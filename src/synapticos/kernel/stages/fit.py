"""fit: an image as a model wants it: resize, normalize and quantize in one pass over the bytes.

x  u8 or i8 [1, H, W, C], C <= 4      y  i8 [1, h, w, C]

The bytes are those of the three processors one after another, without the picture of floats between them: what the
other two make of a resized pixel is looked up in y itself.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.stages.encode import encode_pixels
from synapticos.kernel.stages.normalize import is_normalization
from synapticos.kernel.stages.operands import MAX_CHANNELS, is_byte_image, saturated
from synapticos.kernel.stages.resize import ResizeConfig, resize
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class FitConfig:
    w: u16  # of the result, pixels
    h: u16
    channels: u8  # entries of mean and std in use, and the image's own channels
    reserved: Shaped[Array[u8], 3]
    mean: Shaped[Array[f32], MAX_CHANNELS]
    std: Shaped[Array[f32], MAX_CHANNELS]
    scale: f32  # of the model's input
    zero_point: i32


FIT_CONFIG_BYTES = sizeof(FitConfig)


def full_range(scale: float, zero_point: int) -> tuple[float, float]:
    """Mean and deviation that send pixels 0..255 to the whole real range of an int8 tensor. Plain Python, for the host."""
    return 128.0 + zero_point, 1.0 / scale


@fn(pure=True)
def is_fit(config: FitConfig) -> bool:
    """The three configurations in it are ones that resize, normalize and quantize take."""
    if config.w == 0 or config.h == 0 or not is_finite(config.scale):
        return False
    return config.scale != 0.0 and is_normalization(config.mean, config.std, u32(config.channels))


@fn
def fit(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: FitConfig) -> Status:
    """Returns OK; INVAL if the configuration is bad (`fit_check`), x is no byte image or has other channels;
    NOMEM if the result does not fit y."""
    channels = u32(config.channels)
    if not is_fit(config) or not is_byte_image(x) or x.shape[3] != channels:
        return Status.INVAL
    flip: u8 = 0
    if x.dtype == DType.INT8:
        flip = 128
    size = local(ResizeConfig)
    size.w = config.w
    size.h = config.h
    status = resize(x, x_data, y, y_data, size)
    if status != Status.OK:
        return status
    pixels = u32(config.w) * config.h
    encode_pixels(y_data, view(i8, y_data), pixels, channels, flip, config.mean, config.std, config.scale, config.zero_point)
    y.dtype = DType.INT8
    return Status.OK


@fn
def fit_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or resize, normalize or quantize would refuse its part."""
    if config is None or config_bytes != FIT_CONFIG_BYTES:
        return Status.INVAL
    if not is_fit(view(FitConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def fit_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """w * h * channels."""
    if config is None or config_bytes != FIT_CONFIG_BYTES:
        return 0
    c = view(FitConfig, config)
    return saturated(u64(c.w) * c.h * c.channels)


@fn
def fit_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != FIT_CONFIG_BYTES:
        return Status.INVAL
    return fit(call.x[0], call.x_data[0], call.y, call.y_data, view(FitConfig, config))
