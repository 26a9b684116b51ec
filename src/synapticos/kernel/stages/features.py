"""features: log-mel energies or cepstral coefficients of overlapping frames, by a description that says everything.

x  f32 or i16 (counted in 1/32768), any shape: mono samples      y  f32 [frames, coefficients or filters]

A frame is `window` samples under a window, followed by zeros up to `fft`; its power spectrum goes through triangles
whose edges lie at equal steps of a mel scale from low_hz to high_hz, over fractional bins; then a logarithm with a
floor, then, if coefficients are asked for, a DCT-II. Each choice is a field of `FeatureConfig`: a network hears only
what it was trained on, so its description travels with it, and `differences` names what another one has otherwise.

Samples are clamped to +-1e12 and a NaN counts as 0, so that no square or sum leaves f32; the floor is above 0, so
silence is finite.
"""

import zlib
from typing import Any

from synapticos.lang import *
from synapticos.kernel.crc import crc32
from synapticos.kernel.fmath import f32_cos, f32_exp, f32_log, f32_sqrt
from synapticos.kernel.stages.fft import is_fft_length, rfft_f32
from synapticos.kernel.stages.operands import describe, is_whole, saturated
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

HAMMING: Final[u32] = 0  # 0.54 - 0.46 cos(2 pi i / (window - 1))
HANN: Final[u32] = 1  # 0.5 - 0.5 cos(2 pi i / window)

TIGHT: Final[u32] = 0  # a frame begins every `hop` samples and ends with its window
CENTRED: Final[u32] = 1  # a frame spans `fft` samples, the window in its middle
PADDED: Final[u32] = 2  # as CENTRED, with fft / 2 zeros before the first sample and after the last
REFLECTED: Final[u32] = 3  # as PADDED, with the samples' mirror image in place of zeros

HTK: Final[u32] = 0  # mel = 2595 log10(1 + f/700)
SLANEY: Final[u32] = 1  # linear below 1000 Hz, logarithmic above

NATURAL: Final[u32] = 0
DECIBEL: Final[u32] = 1  # 10 log10

ADDED: Final[u32] = 0  # log(energy + floor)
AT_LEAST: Final[u32] = 1  # log(max(energy, floor))

PLAIN: Final[u32] = 0
ORTHONORMAL: Final[u32] = 1

MAX_FILTERS: Final[u32] = 128
LOUDEST = 1.0e12
PI = 3.1415927
TWO_PI = 6.2831855
DECIBELS = 4.3429448  # 10 / ln 10
SLANEY_STEP = 0.068751777  # ln(6.4) / 27


@struct
class FeatureConfig:
    rate: u32  # samples a second
    window: u16  # samples, 2..fft
    hop: u16  # samples from one frame to the next
    fft: u16  # length of the transform: a power of two, 8..1024
    filters: u8  # mel triangles, 1..128
    coefficients: u8  # of the DCT; 0: the log energies themselves
    window_shape: u8
    placing: u8
    mel: u8
    unit_area: u8  # 1: each triangle is divided by half its width in Hz
    power: u8  # of the magnitudes: 2 or 1
    log: u8
    floor_rule: u8
    dct: u8
    keep_first: u8  # 1: the coefficients begin with the sum of the logs; 0: with the one after it
    reserved: Shaped[Array[u8], 5]
    floor: f32  # of an energy, above 0
    range_db: f32  # log energies are raised to that much below the clip's highest; 0: they are not
    low_hz: f32  # the first triangle's lower edge
    high_hz: f32  # the last one's upper edge, at most rate / 2


FEATURE_CONFIG_BYTES = sizeof(FeatureConfig)
WORDS = {
    "window_shape": ["hamming", "hann"],
    "placing": ["tight", "centred", "padded", "reflected"],
    "mel": ["htk", "slaney"],
    "log": ["natural", "decibel"],
    "floor_rule": ["added", "at least"],
    "dct": ["plain", "orthonormal"],
}


def published(rate: int = 16000, frame_len: int = 256, num_mel: int = 20, num_coeffs: int = 10) -> dict[str, Any]:
    """The fields of the published front end, `audio_mfcc`."""
    return dict(
        rate=rate, window=frame_len, hop=frame_len, fft=frame_len, filters=num_mel, coefficients=num_coeffs, window_shape=0, placing=0,
        mel=0, unit_area=0, power=2, log=0, floor_rule=0, dct=0, keep_first=1, floor=1e-6, range_db=0.0, low_hz=0.0, high_hz=rate / 2,
    )  # fmt: skip


def librosa(
    sr: int = 16000, n_fft: int = 512, hop_length: int = 160, n_mels: int = 40, n_mfcc: int = 13, *, win_length: int | None = None, center: bool = True,
    htk: bool = False, norm: str | None = "slaney", power: float = 2.0, fmin: float = 0.0, fmax: float | None = None, amin: float = 1e-10,
    top_db: float | None = 80.0, pad_mode: str = "constant",
) -> dict[str, Any]:  # fmt: skip
    """The fields that give what `librosa.feature.mfcc(...).T` gives for these arguments; with n_mfcc=0, `power_to_db(melspectrogram(...)).T`."""
    if pad_mode not in ("constant", "reflect") or norm not in ("slaney", None) or power not in (1.0, 2.0):
        raise ValueError("pad_mode is constant or reflect, norm slaney or None, power 1 or 2")
    return dict(
        rate=sr, window=win_length or n_fft, hop=hop_length, fft=n_fft, filters=n_mels, coefficients=n_mfcc, window_shape=1,
        placing=(3 if pad_mode == "reflect" else 2) if center else 1, mel=0 if htk else 1, unit_area=int(norm == "slaney"), power=int(power),
        log=1, floor_rule=1, dct=1, keep_first=1, floor=amin, range_db=top_db or 0.0, low_hz=fmin, high_hz=sr / 2 if fmax is None else fmax,
    )  # fmt: skip


def differences(a: bytes, b: bytes) -> list[str]:
    """What two packed descriptions say otherwise, field by field: `mel: htk, slaney`."""
    one, other = unpack(FeatureConfig, a), unpack(FeatureConfig, b)

    def word(name: str, value: Any) -> str:
        words = WORDS.get(name, [])
        return words[value] if isinstance(value, int) and value < len(words) else f"{value:.6g}"

    names = [name for name in one if name != "reserved" and one[name] != other[name]]
    return [f"{name}: {word(name, one[name])}, {word(name, other[name])}" for name in names]


def digest(config: bytes) -> int:
    """What `feature_digest` gives, of a packed description, on the host."""
    return zlib.crc32(config)


@fn
def feature_digest(config: Ptr[u8]) -> u32:
    """A number for a description: the CRC-32 of its bytes. It travels with a model, and is compared before it runs."""
    return crc32(config, FEATURE_CONFIG_BYTES, 0)


@struct
class FeatureWork:
    """Memory while frames are made, floats all: what stays the same from frame to frame, and the frame itself."""

    half_window: Ptr[f32]  # window / 2 + 1: it is symmetric
    edges: Ptr[f32]  # filters + 2, in bins
    cosines: Ptr[f32]  # of i half steps of the DCT, half a circle of them: 2 filters + 1
    logs: Ptr[f32]  # filters
    bins: Ptr[f32]  # fft + 2


@fn(pure=True)
def is_features(config: FeatureConfig) -> bool:
    """All fields in their ranges, and consistent with each other."""
    fft = u32(config.fft)
    if config.rate == 0 or fft < 8 or not is_fft_length(fft) or config.window < 2 or config.window > fft or config.hop == 0:
        return False
    if config.filters == 0 or config.filters > MAX_FILTERS or config.keep_first > 1:
        return False
    if config.coefficients != 0 and u32(config.coefficients) + 1 - config.keep_first > config.filters:
        return False
    if config.window_shape > HANN or config.placing > REFLECTED or config.mel > SLANEY or config.unit_area > 1 or config.dct > ORTHONORMAL:
        return False
    if config.power == 0 or config.power > 2 or config.log > DECIBEL or config.floor_rule > AT_LEAST:
        return False
    if isnan(config.low_hz) or isnan(config.high_hz) or isnan(config.floor) or isnan(config.range_db):
        return False
    if config.floor < 1.0e-30 or config.floor > 1.0e30 or config.range_db < 0.0 or config.range_db > 1000.0:
        return False
    if config.range_db > 0.0 and config.log != DECIBEL:
        return False
    return config.low_hz >= 0.0 and config.low_hz < config.high_hz and config.high_hz <= f32(config.rate) * 0.5


@fn(pure=True)
def feature_span(config: FeatureConfig) -> u32:
    """Samples from a frame's first to its last, those under a window of 0 too."""
    if config.placing == TIGHT:
        return u32(config.window)
    return u32(config.fft)


@fn(pure=True)
def feature_frames(config: FeatureConfig, samples: u32) -> u32:
    """Frames in a clip; a last part that fills none is dropped."""
    n = u64(samples)
    if config.placing >= PADDED:
        n += u64(config.fft)
        if config.placing == REFLECTED and samples <= u32(config.fft) // 2:
            return 0
    span = feature_span(config)
    if n < span or samples == 0:
        return 0
    return 1 + sat(u32, n - span) // u32(config.hop)


@fn(pure=True)
def feature_width(config: FeatureConfig) -> u32:
    """Numbers a frame."""
    if config.coefficients == 0:
        return u32(config.filters)
    return u32(config.coefficients)


@fn(pure=True)
def feature_floats(config: FeatureConfig) -> u32:
    """Floats of work memory."""
    return u32(config.window) // 2 + u32(config.fft) + 4 * u32(config.filters) + 6


@fn
def feature_work(config: FeatureConfig, memory: Ptr[f32], work: FeatureWork) -> None:
    """Share `feature_floats` floats out, and fill what does not change."""
    feature_share(config, memory, work)
    feature_prepare(config, work)


@fn
def feature_share(config: FeatureConfig, memory: Ptr[f32], work: FeatureWork) -> None:
    """What lies where in `feature_floats` floats."""
    filters = u32(config.filters)
    work.edges = memory
    work.cosines = memory[filters + 2 :]
    work.logs = memory[3 * filters + 3 :]
    work.half_window = memory[4 * filters + 3 :]
    work.bins = memory[4 * filters + 4 + u32(config.window) // 2 :]


@fn
def feature_prepare(config: FeatureConfig, work: FeatureWork) -> None:
    """Window, edges and cosines."""
    filters = u32(config.filters)
    cosines = work.cosines
    if config.coefficients != 0:
        for i in range(2 * filters + 1):
            cosines[i] = f32_cos(PI * f32(i) / f32(2 * filters))
    half_window = work.half_window
    period = u32(config.window)
    if config.window_shape == HAMMING:
        period -= 1
    for i in range(period // 2 + 1):
        cosine = f32_cos(TWO_PI * f32(i) / f32(period))
        if config.window_shape == HAMMING:
            half_window[i] = 0.54 - 0.46 * cosine
        else:
            half_window[i] = 0.5 - 0.5 * cosine
    edges = work.edges
    per_hz = f32(config.fft) / f32(config.rate)
    low = mel_of(config.low_hz, u32(config.mel))
    step = (mel_of(config.high_hz, u32(config.mel)) - low) / f32(filters + 1)
    edges[0] = config.low_hz * per_hz
    for i in range(1, filters + 1):
        edges[i] = hertz_of(low + step * f32(i), u32(config.mel)) * f32(config.fft) / f32(config.rate)
    edges[filters + 1] = config.high_hz * f32(config.fft) / f32(config.rate)  # to the bit: a bin on this edge is outside


@fn(pure=True)
def mel_of(hz: f32, scale: u32) -> f32:
    """A place on a mel scale, without the factor that makes it 2595 or 15 and drops out of equal steps."""
    if scale == HTK:
        return f32_log(1.0 + hz / 700.0)
    if hz < 1000.0:
        return hz * 0.015
    return 15.0 + f32_log(hz * 0.001) / SLANEY_STEP


@fn(pure=True)
def hertz_of(place: f32, scale: u32) -> f32:
    """The frequency at a place on a mel scale."""
    if scale == HTK:
        return 700.0 * (f32_exp(place) - 1.0)
    if place < 15.0:
        return place / 0.015
    return 1000.0 * f32_exp((place - 15.0) * SLANEY_STEP)


@fn(pure=True, inline=True)
def audible(sample: f32) -> f32:
    """A sample that can be squared and summed."""
    if isnan(sample):
        return 0.0
    return min(max(sample, -LOUDEST), LOUDEST)


@fn(pure=True)
def sample_at(config: FeatureConfig, x_data: Ptr[u8], short: bool, n: u32, place: i32) -> f32:
    """A sample of a clip, also before its beginning and after its end."""
    at = place
    if at < 0:
        at = -at
        if config.placing != REFLECTED:
            return 0.0
    elif at >= i32(n):
        at = 2 * i32(n) - 2 - at
        if config.placing != REFLECTED or at < 0:
            return 0.0
    if short:
        return f32(view(i16, x_data)[u32(at)]) * 0.000030517578125
    return audible(view(f32, x_data)[u32(at)])


@fn
def feature_load(config: FeatureConfig, work: FeatureWork, x_data: Ptr[u8], short: bool, n: u32, frame: u32) -> None:
    """Put a clip's frame under the window."""
    length = u32(config.window)
    start = i32(frame * config.hop)
    if config.placing != TIGHT:
        start += i32((u32(config.fft) - length) // 2)
    if config.placing >= PADDED:
        start -= i32(u32(config.fft) // 2)
    period = length
    if config.window_shape == HAMMING:
        period -= 1
    half_window = work.half_window
    bins = work.bins
    if start >= 0 and u32(start) + length <= n and not short:
        samples = view(f32, x_data)[u32(start) :]
        for i in range(length):
            bins[i] = audible(samples[i]) * half_window[min(i, period - i)]
    else:
        for i in range(length):
            bins[i] = sample_at(config, x_data, short, n, start + i32(i)) * half_window[min(i, period - i)]


@fn
def feature_logs(config: FeatureConfig, work: FeatureWork) -> f32:
    """From a windowed frame to log energies; the result is the highest."""
    length = u32(config.fft)
    bins = work.bins
    edges = work.edges
    logs = work.logs
    fill(bins[u32(config.window) :], 0.0, length - u32(config.window))
    rfft_f32(bins, length)
    for k in range(length // 2 + 1):
        power = bins[2 * k] * bins[2 * k] + bins[2 * k + 1] * bins[2 * k + 1]
        if config.power == 1:
            power = f32_sqrt(power)
        bins[k] = power
    highest: f32 = 0.0
    for m in range(u32(config.filters)):
        low = edges[m]
        middle = edges[m + 1]
        high = edges[m + 2]
        energy: f32 = 0.0
        k = u32(low) + 1
        while k <= length // 2 and f32(k) < high:
            at = f32(k)
            if at <= middle:
                energy += bins[k] * ((at - low) / (middle - low))
            else:
                energy += bins[k] * ((high - at) / (high - middle))
            k += 1
        if config.unit_area != 0 and energy > 0.0:
            energy *= 2.0 / ((high - low) * (f32(config.rate) / f32(length)))
        if config.floor_rule == ADDED:
            energy += config.floor
        else:
            energy = max(energy, config.floor)
        logs[m] = f32_log(energy)
        if config.log == DECIBEL:
            logs[m] = logs[m] * DECIBELS
        if m == 0:
            highest = logs[0]
        highest = max(highest, logs[m])
    return highest


@fn
def feature_row(config: FeatureConfig, work: FeatureWork, least: f32, out: Ptr[f32]) -> None:
    """From log energies, raised to `least`, to a row of the result."""
    filters = u32(config.filters)
    logs = work.logs
    cosines = work.cosines
    if config.range_db > 0.0:
        for m in range(filters):
            logs[m] = max(logs[m], least)
    if config.coefficients == 0:
        move(out, logs, filters)
        return
    circle = 4 * filters
    skipped = 1 - u32(config.keep_first)
    for i in range(u32(config.coefficients)):
        j = i + skipped
        total: f32 = 0.0
        for m in range(filters):
            turn = j * (2 * m + 1) % circle
            if turn > 2 * filters:
                turn = circle - turn
            total += logs[m] * cosines[turn]
        if config.dct == ORTHONORMAL:
            parts: f32 = 2.0
            if j == 0:
                parts = 1.0
            total *= f32_sqrt(parts / f32(filters))
        out[i] = total


@fn
def feature_clip(config: FeatureConfig, work: FeatureWork, x_data: Ptr[u8], short: bool, n: u32, frames: u32, out: Ptr[f32]) -> None:
    """All frames of a clip. Where the range is limited, coefficients need the highest energy first: each frame is made twice."""
    width = feature_width(config)
    least: f32 = 0.0
    if config.range_db > 0.0:
        for frame in range(frames):
            feature_load(config, work, x_data, short, n, frame)
            highest = feature_logs(config, work)
            if frame == 0:
                least = highest
            least = max(least, highest)
        least -= config.range_db
    for frame in range(frames):
        feature_load(config, work, x_data, short, n, frame)
        highest = feature_logs(config, work)
        feature_row(config, work, least, out[frame * width :])


@fn
def features(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: FeatureConfig, scratch: Ptr[u8], scratch_bytes: u32) -> Status:
    """Returns OK; INVAL if the configuration is bad (`features_check`), or x is not f32 or i16 of its size with a frame in it;
    NOMEM if the result does not fit y, or `scratch` has less than `features_scratch`."""
    if not is_features(config) or not is_whole(x) or (x.dtype != DType.FLOAT32 and x.dtype != DType.INT16):
        return Status.INVAL
    short = x.dtype == DType.INT16
    n = x.size // 4
    if short:
        n = x.size // 2
    if n > 0x3FFFFFFF:
        return Status.INVAL
    frames = feature_frames(config, n)
    if frames == 0:
        return Status.INVAL
    width = feature_width(config)
    if y.size // 4 // width < frames or scratch_bytes // 4 < feature_floats(config):
        return Status.NOMEM
    work = local(FeatureWork)
    feature_work(config, view(f32, scratch), work)
    feature_clip(config, work, x_data, short, n, frames, view(f32, y_data))
    describe(y, DType.FLOAT32, frames * width * 4, 2, frames, width, 0, 0)
    return Status.OK


@fn
def features_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or a field in it is out of its range."""
    if config is None or config_bytes != FEATURE_CONFIG_BYTES:
        return Status.INVAL
    if not is_features(view(FeatureConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def features_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """4 bytes for each number of each frame; 0 where there is no telling."""
    if features_check(config, config_bytes) != Status.OK or config is None:
        return 0
    c = view(FeatureConfig, config)
    n = x.size // 4
    if x.dtype == DType.INT16:
        n = x.size // 2
    return saturated(u64(feature_frames(c, n)) * feature_width(c) * 4)


@fn
def features_scratch(config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """`feature_floats` in bytes; 0 where there is no telling."""
    if config is None or config_bytes != FEATURE_CONFIG_BYTES:
        return 0
    return feature_floats(view(FeatureConfig, config)) * 4


@fn
def features_stage(call: StageCall) -> Status:
    """NOMEM also where the kernel gives no scratch."""
    config = call.config
    scratch = call.scratch
    if call.inputs != 1 or config is None or call.config_bytes != FEATURE_CONFIG_BYTES:
        return Status.INVAL
    if scratch is None:
        if not is_features(view(FeatureConfig, config)):
            return Status.INVAL
        return Status.NOMEM
    return features(call.x[0], call.x_data[0], call.y, call.y_data, view(FeatureConfig, config), scratch, call.scratch_bytes)
