"""micro_features: the front end of wake words for microcontrollers, over a stream: log energies above a running noise.

x  i16, any shape: mono samples      y  f32 [rows, filters], each a whole number times `scale`

Every `hop` samples the last `window` of them become a row, in integers throughout:

    w[i]     = x[i] * floor(4096 (1/2 - cos(2 pi (i + 1/2) / window) / 2) + 1/2) >> 12
    e[k]     = |FFT(w * 2**free)[k] / fft|**2       free: the bits that the largest |w| leaves
    s[m]     = round(sqrt(sum_k e[k] * weight[m, k])) >> free
    noise[m] moves towards s[m] by `even` or `odd` of the way; s[m] = max(s[m] - noise[m], least * s[m])
    p[m]     = shrink(s[m] * 2**gain_bits * (noise[m] + offset)**-strength)
    row[m]   = 2**log_shift * ln(p[m] * 2**correction)

Filters are triangles at equal steps of mel = 1127 ln(1 + f/700). The formulas, their roundings and their tables are those
of TensorFlow Lite's library `microfrontend`, by which such networks are trained and which `pymicro-features` wraps; the
tests hold stored answers of it. The gain is "per-channel amplitude normalisation": Wang et al., Trainable Frontend For
Robust and Far-Field Keyword Spotting, 2017. Its tables are computed where the app is built and lie in the configuration,
so in flash: a `MicroConfig` and behind it what `micro_places` says.

Before the first sample there was silence, so after n samples there were n // hop rows.
"""

import zlib
from math import cos, floor, pi
from typing import Any

from synapticos.lang import *
from synapticos.kernel.crc import crc32
from synapticos.kernel.layers.filter_bank import GAIN_TABLE, BankParams, bank_log, bank_pcan, bank_subtract, bank_sums, root_u64
from synapticos.kernel.layers.rfft import rfft_i16, rfft_tables
from synapticos.kernel.layers.signal import signal_energy, signal_scale, signal_window
from synapticos.kernel.stages.operands import describe, is_whole, saturated
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

WINDOW_BITS: Final[u32] = 12
WEIGHT_BITS: Final[u32] = 12
PART_BITS: Final[u32] = 14  # of what is between 0 and 1
SNR_BITS: Final[u32] = 12
MIN_FFT: Final[u32] = 64
MAX_FFT: Final[u32] = 4096
MAX_FILTERS: Final[u32] = 128
MAX_ROWS: Final[u32] = 4096


@struct
class MicroConfig:
    rows: u16  # 1..4096; what follows and the tables say what a row is
    reserved: u16
    window: u16  # samples, 2..fft
    hop: u16  # 1..window
    fft: u16  # a power of two, 64..4096
    filters: u16  # 1..128
    first: u16  # bins that count: from `first` to before `end`
    end: u16  # at most fft / 2 + 1
    weights: u16  # of all filters
    correction: u16  # bits, 0..31
    log_scale: u16
    reserved_scale: u16
    scale: f32
    noise: BankParams  # of SUBTRACT; `shift` is unused beside it: PCAN's stands in gain_shift
    gain_shift: u32  # 0..31


MICRO_CONFIG_BYTES = sizeof(MicroConfig)


@struct
class MicroPlaces:
    """Where the tables begin, in numbers of 16 bits from the end of the MicroConfig."""

    order: u32  # fft / 2; the window lies at 0
    turn: u32  # fft
    unfold: u32  # fft / 2
    gain: u32  # GAIN_TABLE
    starts: u32  # filters + 1, of bins
    weight_starts: u32  # filters + 1
    widths: u32  # filters + 1
    weights: u32  # `weights`: a bin's share of the filter whose peak is above it
    unweights: u32  # `weights`: its share of the one below
    end: u32


@struct
class MicroStream:
    """The beginning of the state. Behind it: noise, a u32 a filter; samples, `window`; the latest rows as u16."""

    filled: u32  # samples kept
    begun: u32  # 1 after the first call
    reserved: Shaped[Array[u32], 2]


MICRO_STREAM_BYTES = sizeof(MicroStream)


def micro_frontend(
    rate: int = 16000, window_ms: int = 30, step_ms: int = 10, filters: int = 40, low_hz: float = 125.0, high_hz: float = 7500.0, *,
    smoothing_bits: int = 10, even_smoothing: float = 0.025, odd_smoothing: float = 0.06, min_signal_remaining: float = 0.05,
    pcan_strength: float = 0.95, pcan_offset: float = 80.0, pcan_gain_bits: int = 21, log_scale_shift: int = 6, scale: float = 10 / 256,
) -> dict[str, Any]:  # fmt: skip
    """The description of a micro front end, as `features` takes it. Unless said otherwise the one of microWakeWord, whose
    rows are counted in 10/256; TensorFlow's names for what each number is."""
    return dict(
        kind="micro", rate=rate, window_ms=window_ms, step_ms=step_ms, filters=filters, low_hz=low_hz, high_hz=high_hz,
        smoothing_bits=smoothing_bits, even_smoothing=even_smoothing, odd_smoothing=odd_smoothing,
        min_signal_remaining=min_signal_remaining, pcan_strength=pcan_strength, pcan_offset=pcan_offset,
        pcan_gain_bits=pcan_gain_bits, log_scale_shift=log_scale_shift, scale=scale,
    )  # fmt: skip


def micro_number(description: dict[str, Any]) -> int:
    """What `micro_digest` gives, of a description, on the host."""
    return zlib.crc32(micro_bytes(description, 1)[4:])


RANGES: dict[str, tuple[type, float, float]] = {
    "rate": (int, 1000, 192000), "window_ms": (int, 1, 4096), "step_ms": (int, 1, 4096), "filters": (int, 1, 128),
    "low_hz": (float, 0, 96000), "high_hz": (float, 1, 96000), "smoothing_bits": (int, 0, 20), "even_smoothing": (float, 0, 1),
    "odd_smoothing": (float, 0, 1), "min_signal_remaining": (float, 0, 1), "pcan_strength": (float, 0, 4),
    "pcan_offset": (float, 1e-3, 1e9), "pcan_gain_bits": (int, 0, 31), "log_scale_shift": (int, 0, 15), "scale": (float, 1e-9, 1e9),
}  # fmt: skip


def micro_bytes(description: dict[str, Any], rows: int) -> bytes:
    """The configuration that a description means: a MicroConfig and its tables. ValueError names the field that is wrong."""
    import numpy as np

    d = dict(description)
    if d.pop("kind", None) != "micro" or d.keys() != RANGES.keys():
        raise ValueError(f"a micro front end has {', '.join(RANGES)}")
    for name, (kind, low, high) in RANGES.items():
        value = d[name]
        good = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        if not good or not low <= value <= high:
            raise ValueError(f"{name} is from {low:g} to {high:g}, not {value!r}")
    window, hop = d["rate"] * d["window_ms"] // 1000, d["rate"] * d["step_ms"] // 1000
    fft = max(1 << (window - 1).bit_length(), MIN_FFT)
    correction = fft.bit_length() - 1 - WEIGHT_BITS // 2
    gain_shift = d["pcan_gain_bits"] - correction - SNR_BITS
    if not 2 <= window <= MAX_FFT or not 1 <= hop <= window:
        raise ValueError(f"a window of {window} samples every {hop}: windows are 2 to {MAX_FFT} long and leave no gaps")
    if gain_shift < 0 or d["smoothing_bits"] < correction:
        raise ValueError(f"with {fft} bins pcan_gain_bits is at least {correction + SNR_BITS}, smoothing_bits {correction}")
    starts, widths, weights, unweights, first, end = _triangles(d, fft)
    one = np.float32
    angle = one(one(2 * pi) / one(window))
    shape = [one(0.5) - one(0.5) * one(cos(float(angle * one(i + 0.5)))) for i in range(window)]
    window_table = [_whole(share, WINDOW_BITS) for share in shape]
    smoothing = [int(np.float32(d[name]) * (1 << PART_BITS)) for name in ("even_smoothing", "odd_smoothing")]
    noise = dict(
        channels=d["filters"], shift=d["smoothing_bits"], scale_bits=PART_BITS, smoothing=smoothing,
        rest=[(1 << PART_BITS) - s for s in smoothing], least=int(np.float32(d["min_signal_remaining"]) * (1 << PART_BITS)),
    )  # fmt: skip
    config = pack(
        MicroConfig, window=window, hop=hop, fft=fft, filters=d["filters"], rows=rows, first=first, end=end, weights=len(weights),
        correction=correction, log_scale=1 << d["log_scale_shift"], scale=d["scale"], noise=pack(BankParams, **noise), gain_shift=gain_shift,
    )  # fmt: skip
    tables = rfft_tables(fft // 2)
    weight_starts = [sum(widths[:i]) for i in range(len(widths))]
    parts = [window_table, tables["order"], tables["turn"], tables["unfold"], _gains(d, d["smoothing_bits"] - correction), starts]
    parts += [weight_starts, widths, weights, unweights]
    return config + b"".join(np.asarray(part, np.int64).astype(np.int16).tobytes() for part in parts)


def _mel(hz: Any) -> Any:
    import numpy as np

    return np.float32(1127.0) * _log1p(np.float32(hz) / np.float32(700.0))


def _log1p(x: Any) -> Any:
    """ln(1 + x) for x >= 0, in single precision from step to step: the last bits decide about a filter's share.

    The rule of C libraries from fdlibm on (glibc up to 2.40, newlib), which may be off by one in the last place, and with
    which the networks' own front ends were built: 1 + x = 2**k (1 + f), and ln(1 + f) by a polynomial in f / (2 + f).
    """
    import numpy as np

    one = np.float32
    k, f, lost = 0, x, one(0)
    if x >= one(0.41421354):
        whole = one(1) + x
        fraction, k = np.frexp(whole)
        k = int(k) - 1
        f = one(2) * fraction
        lost = (one(1) - (whole - x) if k > 0 else x - (whole - one(1))) / whole
        if f >= one(1.4142135):
            k, f = k + 1, fraction
        f = f - one(1)
    s = f / (one(2) + f)
    z, total = s * s, one(0)
    for c in (0.14798199, 0.15313838, 0.18183573, 0.22222199, 0.2857143, 0.4, 0.6666667):
        total = one(c) + z * total
    half, total = one(0.5) * f * f, z * total
    if k == 0:
        return f - (half - s * (half + total))
    return one(k) * one(0.69313812256) - ((half - (s * (half + total) + (one(k) * one(9.0580006145e-06) + lost))) - f)


def _whole(share: Any, bits_: int) -> int:
    import numpy as np

    return floor(share * np.float32(1 << bits_) + np.float32(0.5))


def _triangles(d: dict[str, Any], fft: int) -> Any:
    """Filter m rises from peak m - 2 to peak m - 1 and falls to peak m; a bin between two peaks is shared by two filters."""
    import numpy as np

    one = np.float32
    low, high = _mel(d["low_hz"]), _mel(d["high_hz"])
    step = (high - low) / one(d["filters"] + 1)
    peaks = [low, *(low + step * one(i + 1) for i in range(d["filters"] + 1))]
    hz_per_bin = one(0.5 * d["rate"] / float(one(fft // 2)))
    if d["low_hz"] >= d["high_hz"] or d["high_hz"] * 2 > d["rate"]:
        raise ValueError("low_hz is below high_hz, high_hz at most half the rate")
    first = k = int(1.5 + float(one(d["low_hz"]) / hz_per_bin))
    starts, widths, weights, unweights = [], [], [], []
    for below, peak in zip(peaks, peaks[1:]):
        starts.append(k)
        while k <= fft // 2 and _mel(one(k) * hz_per_bin) <= peak:
            share = (peak - _mel(one(k) * hz_per_bin)) / (peak - below)
            weights.append(_whole(share, WEIGHT_BITS))
            unweights.append(_whole(one(1) - share, WEIGHT_BITS))
            k += 1
        widths.append(k - starts[-1])
    if first >= k:
        raise ValueError(f"no bin lies between {d['low_hz']} and {d['high_hz']} Hz")
    return starts, widths, weights, unweights, first, k


def _gains(d: dict[str, Any], bits_: int) -> list[int]:
    """The gain by noise: at 0, 1 and 2, then for each power of 2 the parabola through its ends and its middle."""
    import numpy as np

    one = np.float32

    def gain(x: int) -> int:
        base = one(one(x) / one(1 << bits_) + one(d["pcan_offset"]))
        value = one(1 << d["pcan_gain_bits"]) * np.power(base, one(-d["pcan_strength"]))
        return 32767 if value > 32767 else int(value + one(0.5))

    table = [0] * GAIN_TABLE
    table[0], table[1] = gain(0), gain(1)
    for width in range(2, 33):
        low = 1 << (width - 1)
        high = 2 * low - (width == 32)
        begin = gain(low)
        middle, end = gain(low + low // 2) - begin, gain(high) - begin
        rise = 4 * middle - end
        table[4 * width - 6 : 4 * width - 3] = begin, rise, end - rise
    return table


@fn
def micro_places(config: MicroConfig, at: MicroPlaces) -> None:
    """Where the tables of a configuration lie."""
    fft = u32(config.fft)
    bands = u32(config.filters) + 1
    at.order = u32(config.window)
    at.turn = at.order + fft // 2
    at.unfold = at.turn + fft
    at.gain = at.unfold + fft // 2
    at.starts = at.gain + GAIN_TABLE
    at.weight_starts = at.starts + bands
    at.widths = at.weight_starts + bands
    at.weights = at.widths + bands
    at.unweights = at.weights + config.weights
    at.end = at.unweights + config.weights


@fn
def micro_digest(config: Ptr[u8], config_bytes: u32) -> u32:
    """A number for a front end of at least 4 bytes, however many rows are asked of it. It travels with a model, and is compared
    before it runs."""
    return crc32(config[4:], config_bytes - 4, 0)


@fn(pure=True)
def is_micro(config: MicroConfig) -> bool:
    """All fields in their ranges; of the tables nothing."""
    fft = u32(config.fft)
    if fft < MIN_FFT or fft > MAX_FFT or fft & (fft - 1) != 0 or config.window < 2 or config.window > fft:
        return False
    if config.hop == 0 or config.hop > config.window or config.filters == 0 or config.filters > MAX_FILTERS:
        return False
    if config.rows == 0 or config.rows > MAX_ROWS or config.first > config.end or config.end > fft // 2 + 1:
        return False
    if config.correction > 31 or config.gain_shift > 31 or isnan(config.scale):
        return False
    noise = config.noise
    return noise.channels == config.filters and noise.shift <= 31 and noise.scale_bits <= 31


@fn
def micro_features_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, a field in it is out of its range, or a table is too short or points outside."""
    if config is None or config_bytes < MICRO_CONFIG_BYTES:
        return Status.INVAL
    c = view(MicroConfig, config)
    if not is_micro(c):
        return Status.INVAL
    at = local(MicroPlaces)
    micro_places(c, at)
    if config_bytes != MICRO_CONFIG_BYTES + 2 * at.end:
        return Status.INVAL
    tables = view(u16, config[MICRO_CONFIG_BYTES:])
    pairs = u32(c.fft) // 2
    for i in range(pairs):
        if tables[at.order + i] >= pairs:
            return Status.INVAL
    for i in range(u32(c.filters) + 1):
        width = tables[at.widths + i]
        start = u32(tables[at.starts + i])
        if start < c.first or start + width > c.end or u32(tables[at.weight_starts + i]) + width > c.weights:
            return Status.INVAL
    return Status.OK


@fn(pure=True)
def micro_floats(config: MicroConfig) -> u32:
    """Numbers in the result."""
    return u32(config.rows) * config.filters


@fn
def micro_features_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """4 bytes for each number of each row; 0 where there is no telling."""
    if config is None or config_bytes < MICRO_CONFIG_BYTES:
        return 0
    if not is_micro(view(MicroConfig, config)):
        return 0
    return saturated(u64(micro_floats(view(MicroConfig, config))) * 4)


@fn
def micro_features_scratch(config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes within a step; 0 where there is no telling: sums, energies' roots, a spectrum, and twice the samples."""
    if config is None or config_bytes < MICRO_CONFIG_BYTES:
        return 0
    c = view(MicroConfig, config)
    if not is_micro(c):
        return 0
    return 12 * u32(c.filters) + 4 * (u32(c.fft) // 2 + 1) + 4 * u32(c.fft)


@fn
def micro_features_state(config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes of memory from one call to the next; 0 where there is no telling."""
    if config is None or config_bytes < MICRO_CONFIG_BYTES:
        return 0
    c = view(MicroConfig, config)
    if not is_micro(c):
        return 0
    return MICRO_STREAM_BYTES + 4 * u32(c.filters) + 2 * u32(c.window) + 2 * micro_floats(c)


@fn(inline=False)
def micro_row(config: MicroConfig, tables: Ptr[u8], samples: Ptr[i16], noise: Ptr[u32], scratch: Ptr[u8], row: Ptr[u16]) -> None:
    """One row from a window of samples."""
    at = local(MicroPlaces)
    micro_places(config, at)
    table = view(i16, tables)
    indices = view(u16, tables)
    filters = u32(config.filters)
    fft = u32(config.fft)
    sums = view(u64, scratch)
    signal = view(u32, scratch[8 * filters :])
    spectrum = view(i16, scratch[12 * filters :])
    work = scratch[12 * filters + 4 * (fft // 2 + 1) :]
    ready = view(i16, work)
    signal_window(samples, table, u32(config.window), WINDOW_BITS, ready)
    free = signal_scale(ready, u32(config.window), ready)
    rfft_i16(
        ready, u32(config.window), fft // 2, indices[at.order :], table[at.turn :], table[at.unfold :], view(i16, work[2 * fft :]), spectrum
    )
    energies = view(u32, work)  # the samples are not needed any more
    signal_energy(spectrum, u32(config.first), u32(config.end), energies)
    bank_sums(
        energies, indices[at.weights :], indices[at.unweights :], indices[at.starts :], indices[at.weight_starts :], indices[at.widths :], filters, sums
    )
    for i in range(filters):
        signal[i] = root_u64(sums[i]) >> free
    bank_subtract(config.noise, signal, noise, signal)
    bank_pcan(signal, noise, table[at.gain :], config.gain_shift, filters, signal)
    for i in range(filters):
        scaled = wrap(u32, signal[i] << config.correction)
        row[i] = 0
        if scaled > 1:
            row[i] = u16(min(bank_log(scaled, u32(config.log_scale)), 65535))


@fn
def micro_features(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Ptr[u8], state: Ptr[u8], scratch: Ptr[u8]) -> Status:
    """Take the samples in x, any number; y is the latest `rows` rows, oldest first. Configuration, state and scratch are as
    they must be. Returns OK; INVAL if x is not i16 of its size; NOMEM if the result does not fit y."""
    c = view(MicroConfig, config)
    if not is_whole(x) or x.dtype != DType.INT16:
        return Status.INVAL
    numbers = micro_floats(c)
    if y.size // 4 < numbers:
        return Status.NOMEM
    filters = u32(c.filters)
    window = u32(c.window)
    hop = u32(c.hop)
    stream = view(MicroStream, state)
    noise = view(u32, state[MICRO_STREAM_BYTES:])
    kept = view(i16, state[MICRO_STREAM_BYTES + 4 * filters :])
    latest = view(u16, state[MICRO_STREAM_BYTES + 4 * filters + 2 * window :])
    if stream.begun == 0:
        stream.begun = 1
        stream.filled = window - hop
    if stream.filled >= window:
        return Status.INVAL
    samples = view(i16, x_data)
    n = x.size // 2
    at: u32 = 0
    while at < n:
        count = min(window - stream.filled, n - at)
        move(kept[stream.filled :], samples[at:], count)
        at += count
        stream.filled += count
        if stream.filled == window:
            move(latest, latest[filters:], numbers - filters)
            micro_row(c, config[MICRO_CONFIG_BYTES:], kept, noise, scratch, latest[numbers - filters :])
            move(kept, kept[hop:], window - hop)
            stream.filled = window - hop
    out = view(f32, y_data)
    for i in range(numbers):
        out[i] = f32(latest[i]) * c.scale
    describe(y, DType.FLOAT32, numbers * 4, 2, u32(c.rows), filters, 0, 0)
    return Status.OK


@fn
def micro_features_stage(call: StageCall) -> Status:
    """NOMEM also where the kernel keeps no state, or gives no scratch."""
    config = call.config
    state = call.state
    scratch = call.scratch
    if call.inputs != 1 or config is None or micro_features_check(config, call.config_bytes) != Status.OK:
        return Status.INVAL
    if state is None or scratch is None:
        return Status.NOMEM
    kept = micro_features_state(config, call.config_bytes)
    needed = micro_features_scratch(config, call.config_bytes)
    if call.state_bytes < kept or call.scratch_bytes < needed:
        return Status.NOMEM
    return micro_features(call.x[0], call.x_data[0], call.y, call.y_data, config, state, scratch)
