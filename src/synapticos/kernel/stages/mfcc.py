"""audio_mfcc: mel-frequency cepstral coefficients of whole frames, as published.

x  f32, any shape: mono samples      y  f32 [frames, num_coeffs]      frames do not overlap, a last part is dropped

Per frame of L samples: window 0.54 - 0.46 cos(2 pi i / (L-1)); FFT; power p[k] for k = 0..L/2, not divided by L;
num_mel triangles over fractional bin positions, equally spaced in mel = 2595 log10(1 + f/700) from 0 to half the rate;
log(energy + 1e-6); unnormalised DCT-II: one description of those that `features` can have. Models must be trained on
this front end: its features are not librosa's.
"""

from synapticos.lang import *
from synapticos.kernel.stages.features import FeatureConfig, FeatureWork, feature_clip, feature_prepare
from synapticos.kernel.stages.fft import is_fft_length
from synapticos.kernel.stages.operands import describe, is_whole, saturated
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

MAX_MEL: Final[u32] = 32
MIN_FRAME: Final[u32] = 8
MAX_FRAME: Final[u32] = 512


@struct
class MfccConfig:
    sample_rate_hz: u32
    frame_len: u16  # samples, a power of two
    num_mel: u8
    num_coeffs: u8


MFCC_CONFIG_BYTES = sizeof(MfccConfig)


@fn(pure=True)
def is_mfcc(config: MfccConfig) -> bool:
    """A rate, a frame of 8 to 512 samples, 1 to 32 filters and no more coefficients than filters."""
    if config.sample_rate_hz == 0 or config.frame_len < MIN_FRAME or config.frame_len > MAX_FRAME:
        return False
    if config.num_mel == 0 or config.num_mel > MAX_MEL or config.num_coeffs == 0:
        return False
    return config.num_coeffs <= config.num_mel and is_fft_length(u32(config.frame_len))


@fn
def mfcc(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: MfccConfig, scratch: Ptr[u8], scratch_bytes: u32) -> Status:
    """Returns OK; INVAL if the configuration is bad (`mfcc_check`), or x is not f32 of its size with a frame in it;
    NOMEM if the result does not fit y, or `scratch` has less than 8 bytes a sample of a frame."""
    if not is_mfcc(config) or x.dtype != DType.FLOAT32 or not is_whole(x):
        return Status.INVAL
    length = u32(config.frame_len)
    frames = x.size // 4 // length
    if frames == 0:
        return Status.INVAL
    coefficients = u32(config.num_coeffs)
    if y.size // 4 // coefficients < frames or scratch_bytes < length * 8:
        return Status.NOMEM
    features = local(FeatureConfig)
    mfcc_features(config, features)
    edges = local(f32, 34)
    cosines = local(f32, 65)
    logs = local(f32, 32)
    floats = view(f32, scratch)
    work = local(FeatureWork)
    work.edges = edges
    work.cosines = cosines
    work.logs = logs
    work.half_window = floats
    work.bins = floats[length // 2 + 1 :]
    feature_prepare(features, work)
    feature_clip(features, work, x_data, False, x.size // 4, frames, view(f32, y_data))
    describe(y, DType.FLOAT32, frames * coefficients * 4, 2, frames, coefficients, 0, 0)
    return Status.OK


@fn
def mfcc_features(config: MfccConfig, features: FeatureConfig) -> None:
    """The description of this front end (`features.published`); all other fields are 0."""
    features.rate = config.sample_rate_hz
    features.window = config.frame_len
    features.hop = config.frame_len
    features.fft = config.frame_len
    features.filters = config.num_mel
    features.coefficients = config.num_coeffs
    features.power = 2
    features.keep_first = 1
    features.floor = 1.0e-6
    features.high_hz = f32(config.sample_rate_hz) * 0.5


@fn
def mfcc_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or a number in it is out of its range."""
    if config is None or config_bytes != MFCC_CONFIG_BYTES:
        return Status.INVAL
    if not is_mfcc(view(MfccConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def mfcc_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """floor((n / 4) / frame_len) * num_coeffs * 4."""
    if config is None or config_bytes != MFCC_CONFIG_BYTES:
        return 0
    c = view(MfccConfig, config)
    if c.frame_len == 0:
        return 0
    return saturated(u64(x.size // 4 // u32(c.frame_len)) * c.num_coeffs * 4)


@fn
def mfcc_scratch(config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """8 bytes a sample of a frame; 0 where there is no telling."""
    if config is None or config_bytes != MFCC_CONFIG_BYTES:
        return 0
    return u32(view(MfccConfig, config).frame_len) * 8


@fn
def mfcc_stage(call: StageCall) -> Status:
    """NOMEM also where the kernel gives no scratch."""
    config = call.config
    scratch = call.scratch
    if call.inputs != 1 or config is None or call.config_bytes != MFCC_CONFIG_BYTES:
        return Status.INVAL
    if scratch is None:
        if mfcc_check(config, call.config_bytes) != Status.OK:
            return Status.INVAL
        return Status.NOMEM
    return mfcc(call.x[0], call.x_data[0], call.y, call.y_data, view(MfccConfig, config), scratch, call.scratch_bytes)
