"""audio_mfcc: mel-frequency cepstral coefficients of whole frames, as published.

x  f32, any shape: mono samples      y  f32 [frames, num_coeffs]      frames do not overlap, a last part is dropped

Per frame of L samples: window 0.54 - 0.46 cos(2 pi i / (L-1)); complex FFT; power p[k] for k = 0..L/2, not divided by L;
num_mel triangles over fractional bin positions, equally spaced in mel = 2595 log10(1 + f/700) from 0 to half the rate;
log(energy + 1e-6); unnormalised DCT-II. Models must be trained on this front end: its features are not librosa's.

Samples are clamped to +-1e15 and a NaN counts as 0, so that no square or sum leaves f32.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import f32_cos, f32_exp, f32_log
from synapticos.kernel.stages.fft import fft_f32, is_fft_length
from synapticos.kernel.stages.operands import describe, is_whole, saturated
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

MAX_MEL: Final[u32] = 32
MIN_FRAME: Final[u32] = 8
MAX_FRAME: Final[u32] = 512
LOUDEST = 1.0e15
TWO_PI = 6.2831855
PI = 3.1415927


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
    filters = u32(config.num_mel)
    edges = local(f32, 34)
    mel_edges(edges, filters, config.sample_rate_hz, length)
    cosines = local(f32, 65)  # of i half steps of the DCT, half a circle of them
    for i in range(2 * filters + 1):
        cosines[i] = f32_cos(PI * f32(i) / f32(2 * filters))
    samples = view(f32, x_data)
    out = view(f32, y_data)
    bins = view(f32, scratch)
    for frame in range(frames):
        mfcc_windowed(samples[frame * length :], bins, length)
        fft_f32(bins, length)
        for k in range(length // 2 + 1):
            bins[k] = bins[2 * k] * bins[2 * k] + bins[2 * k + 1] * bins[2 * k + 1]
        mfcc_coefficients(bins, length, edges, filters, cosines, out[frame * coefficients :], coefficients)
    describe(y, DType.FLOAT32, frames * coefficients * 4, 2, frames, coefficients, 0, 0)
    return Status.OK


@fn
def mel_edges(edges: Ptr[f32], filters: u32, rate: u32, length: u32) -> None:
    """The filters' edges in bins, `filters` + 2 of them.

    Equal steps of 2595 log10(1 + f/700) are equal steps of log(1 + f/700), so 2595 and the base drop out.
    """
    top = f32_log(1.0 + f32(rate) * 0.5 / 700.0)
    edges[filters + 1] = f32(length // 2)  # half the rate, to the bit: a bin on this edge is outside
    for i in range(filters + 1):
        hz = 700.0 * (f32_exp(top * f32(i) / f32(filters + 1)) - 1.0)
        edges[i] = hz * f32(length) / f32(rate)


@fn
def mfcc_windowed(samples: Ptr[f32], bins: Ptr[f32], length: u32) -> None:
    """One frame, windowed, as complex numbers. The window is symmetric: each value serves twice."""
    for i in range(length // 2):
        mirror = length - 1 - i
        window = 0.54 - 0.46 * f32_cos(TWO_PI * f32(i) / f32(length - 1))
        bins[2 * i] = audible(samples[i]) * window
        bins[2 * i + 1] = 0.0
        bins[2 * mirror] = audible(samples[mirror]) * window
        bins[2 * mirror + 1] = 0.0


@fn(pure=True, inline=True)
def audible(sample: f32) -> f32:
    """A sample that can be squared and summed."""
    if isnan(sample):
        return 0.0
    return min(max(sample, -LOUDEST), LOUDEST)


@fn
def mfcc_coefficients(
    power: Ptr[f32], length: u32, edges: Ptr[f32], filters: u32, cosines: Ptr[f32], out: Ptr[f32], coefficients: u32
) -> None:
    """Power spectrum to coefficients, by way of the filters' log energies."""
    logs = local(f32, 32)
    for m in range(filters):
        low = edges[m]
        middle = edges[m + 1]
        high = edges[m + 2]
        energy: f32 = 0.0
        k = u32(low) + 1
        while k <= length // 2 and f32(k) < high:
            at = f32(k)
            if at <= middle:
                energy += power[k] * ((at - low) / (middle - low))
            else:
                energy += power[k] * ((high - at) / (high - middle))
            k += 1
        logs[m] = f32_log(energy + 1.0e-6)
    circle = 4 * filters
    for j in range(coefficients):
        total: f32 = 0.0
        for m in range(filters):
            turn = j * (2 * m + 1) % circle
            if turn > 2 * filters:
                turn = circle - turn
            total += logs[m] * cosines[turn]
        out[j] = total


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
