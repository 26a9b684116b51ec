"""The filter bank behind a spectrum: bands, their roots, what is left above the noise, gain control and logarithm.

    BANK      y[c] = sum_j x[start_c + j] * w[c's j] + sum_j x[start_{c-1} + j] * u[..]     a frequency counts in two bands
    ROOT      y[c] = round(sqrt(x[c])) >> bits
    SUBTRACT  noise <- (s * x + (1 - s) * noise); y[c] = max(x[c] - noise, floor * x[c])
    PCAN      y[c] = shrink(x[c] * gain(noise[c]) >> shift)
    LOG       y[c] = min(scale * ln(x[c] << bits), 32767)

    BANK: x u32 [n], w u i16 [weights], starts, weight starts, widths i16 [channels + 1]; y u64 [channels]
    ROOT: x u64 [channels], bits i32 [1]; y u32 [channels]
    SUBTRACT: x u32 [channels]; y, noise as a result, noise kept from run to run  u32 [channels]
    PCAN: x, noise u32 [channels], gain's table i16 [125]; y u32 [channels]
    LOG: x u32 [channels]; y i16 [channels]

Modulo the width of each type, as in the reference. A row is all there is.
"""

from math import log2
from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import (
    DTYPE_INT16, DTYPE_INT32, DTYPE_UINT32, DTYPE_UINT64, LayerCall, LayerCheck,
)  # fmt: skip
from synapticos.kernel.layers.checks import apart, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.softmax import leading_zeros
from synapticos.kernel.status import Status

GAIN_TABLE: Final[u32] = 125
# log2(1 + i / 128) - i / 128, times 65536
LOG_TABLE = rom(i32, [round((log2(1 + i / 128) - i / 128) * 65536) for i in range(129)])


@struct
class BankParams:
    n: u32  # elements of the input
    channels: u32
    weights: u32
    shift: u32  # PCAN, LOG, SUBTRACT: bits
    scale_bits: u32  # SUBTRACT
    smoothing: Shaped[Array[u32], 2]  # of even and odd channels
    rest: Shaped[Array[u32], 2]  # one minus smoothing
    least: u32  # SUBTRACT: part of the signal that stays; LOG: scale
    clamping: u32


BANK_PARAMS_BYTES: Final[u32] = sizeof(BankParams)


@fn
def bank_validate(check: LayerCheck) -> Status:
    if not takes(check, 6, BANK_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(BankParams, check.params)
    if p.channels == 0 or p.channels > 65534 or p.n > 65535 or p.weights > 65535 or check.rows != 1:
        return Status.INVAL
    if not holds(check, 0, DTYPE_UINT32, p.n) or not holds(check, 6, DTYPE_UINT64, p.channels):
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_INT16, p.weights) or not holds_const(check, 2, DTYPE_INT16, p.weights):
        return Status.INVAL
    if not holds_const(check, 3, DTYPE_INT16, p.channels + 1) or not holds_const(check, 4, DTYPE_INT16, p.channels + 1):
        return Status.INVAL
    if not holds_const(check, 5, DTYPE_INT16, p.channels + 1) or not apart(check, False):
        return Status.INVAL
    starts = check.tensor(3)
    weight_starts = check.tensor(4)
    widths = check.tensor(5)
    if starts is None or weight_starts is None or widths is None:
        return Status.INVAL
    for i in range(p.channels + 1):
        start = view(u16, check.consts[starts.offset :])[i]
        weight = view(u16, check.consts[weight_starts.offset :])[i]
        width = view(u16, check.consts[widths.offset :])[i]
        if u32(start) + width > p.n or u32(weight) + width > p.weights:
            return Status.INVAL
    return Status.OK


@fn
def bank_sums(
    x: Ptr[u32], w: Ptr[u16], u: Ptr[u16], starts: Ptr[u16], weight_starts: Ptr[u16], widths: Ptr[u16], channels: u32, y: Ptr[u64]
) -> None:
    """BANK."""
    for c in range(channels):
        band: u64 = 0
        for j in range(u32(widths[c])):
            band = wrap(u64, band + u64(x[u32(starts[c]) + j]) * u[u32(weight_starts[c]) + j])
        for j in range(u32(widths[c + 1])):
            band = wrap(u64, band + u64(x[u32(starts[c + 1]) + j]) * w[u32(weight_starts[c + 1]) + j])
        y[c] = band


@fn
def bank_run(call: LayerCall) -> Status:
    p = view(BankParams, call.params)
    bank_sums(
        view(u32, call.data[0]),
        view(u16, call.data[1]),
        view(u16, call.data[2]),
        view(u16, call.data[3]),
        view(u16, call.data[4]),
        view(u16, call.data[5]),
        p.channels,
        view(u64, call.data[6]),
    )
    return Status.OK


@fn
def bank_root_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, BANK_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(BankParams, check.params)
    if not holds(check, 0, DTYPE_UINT64, p.channels) or not holds(check, 1, DTYPE_INT32, 1) or check.rows != 1:
        return Status.INVAL
    if not holds(check, 2, DTYPE_UINT32, p.channels) or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def root_u64(x: u64) -> u32:
    """The square root to nearest; of numbers near the top of 32 or 64 bits it stays below 2**16 or 2**32."""
    rest = x
    root: u64 = 0
    bit: u64 = 4611686018427387904
    for _ in range(32):  # whatever x is: a bound on the time is the time
        if rest >= root + bit:
            rest -= root + bit
            root = (root >> 1) + bit
        else:
            root >>= 1
        bit >>= 2
    most: u64 = 65535
    if x > 4294967295:
        most = 4294967295
    if rest > root and root != most:
        root += 1
    return u32(root)


@fn
def bank_root_run(call: LayerCall) -> Status:
    p = view(BankParams, call.params)
    x = view(u64, call.data[0])
    bits_ = view(i32, call.data[1])[0]
    y = view(u32, call.data[2])
    shift = u32(min(max(bits_, 0), 31))
    for i in range(p.channels):
        y[i] = root_u64(x[i]) >> shift
    return Status.OK


@fn
def bank_subtract_validate(check: LayerCheck) -> Status:
    if check.inputs != 1 or check.outputs != 3 or check.params_bytes < BANK_PARAMS_BYTES:
        return Status.INVAL
    p = view(BankParams, check.params)
    for i in range(4):
        if not holds(check, i, DTYPE_UINT32, p.channels):
            return Status.INVAL
    if check.rows != 1 or p.shift > 31 or p.scale_bits > 31 or p.clamping > 1 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def bank_subtract(p: BankParams, x: Ptr[u32], noise: Ptr[u32], y: Ptr[u32]) -> None:
    """SUBTRACT, in place too."""
    for i in range(p.channels):
        odd = i & 1
        scaled = wrap(u32, x[i] << p.shift)
        estimate = wrap(u32, wrap(u64, u64(scaled) * p.smoothing[odd] + u64(noise[i]) * p.rest[odd]) >> p.scale_bits)
        noise[i] = estimate
        if estimate > scaled:
            estimate = scaled
            if p.clamping == 1:
                noise[i] = estimate
        least = wrap(u32, (u64(x[i]) * p.least) >> p.scale_bits)
        y[i] = max((scaled - estimate) >> p.shift, least)


@fn
def bank_subtract_run(call: LayerCall) -> Status:
    p = view(BankParams, call.params)
    noise = view(u32, call.data[3])
    bank_subtract(p, view(u32, call.data[0]), noise, view(u32, call.data[1]))
    move(view(u32, call.data[2]), noise, p.channels)
    return Status.OK


@fn
def bank_pcan_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, BANK_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(BankParams, check.params)
    if not holds(check, 0, DTYPE_UINT32, p.channels) or not holds(check, 1, DTYPE_UINT32, p.channels):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_INT16, GAIN_TABLE) or not holds(check, 3, DTYPE_UINT32, p.channels):
        return Status.INVAL
    if check.rows != 1 or p.shift > 31 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def bank_gain(x: u32, table: Ptr[i16]) -> i16:
    """The gain for a noise of x: a parabola for each power of 2, three numbers a piece."""
    if x <= 2:
        return table[x]
    width = 32 - leading_zeros(x)
    at = 4 * width - 6
    part: u32 = 0
    if width < 11:
        part = wrap(u32, x << (11 - width))
    else:
        part = x >> (width - 11)
    fraction = i32(part & 1023)
    value = (i32(table[at + 2]) * fraction) >> 5
    value = wrap(i32, value + (i32(table[at + 1]) << 5))
    value = wrap(i32, value * fraction)
    value = wrap(i32, value + 16384) >> 15
    return wrap(i16, value + table[at])


@fn
def bank_pcan(x: Ptr[u32], noise: Ptr[u32], table: Ptr[i16], shift: u32, channels: u32, y: Ptr[u32]) -> None:
    """PCAN, in place too; shift is at most 31."""
    for i in range(channels):
        gain = wrap(u32, i32(bank_gain(noise[i], table)))
        ratio = wrap(u32, wrap(u64, u64(x[i]) * gain) >> shift)
        # The ratio has 12 bits below the point, the result 6: r**2 / 4 below 2, r - 1 above.
        if ratio < 8192:
            y[i] = (ratio * ratio) >> 20
        else:
            y[i] = (ratio >> 6) - 64


@fn
def bank_pcan_run(call: LayerCall) -> Status:
    p = view(BankParams, call.params)
    x = view(u32, call.data[0])
    bank_pcan(x, view(u32, call.data[1]), view(i16, call.data[2]), p.shift, p.channels, view(u32, call.data[3]))
    return Status.OK


@fn
def bank_log_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, BANK_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(BankParams, check.params)
    if not holds(check, 0, DTYPE_UINT32, p.channels) or not holds(check, 1, DTYPE_INT16, p.channels):
        return Status.INVAL
    if check.rows != 1 or p.shift > 31 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn(pure=True)
def bank_log(x: u32, scale: u32) -> u32:
    """scale * ln(x) for x > 0, with a table of 128 segments for the fraction of log2(x)."""
    whole = 31 - leading_zeros(x)
    over = x - (u32(1) << whole)
    part: u32 = 0
    if whole < 16:
        part = over << (16 - whole)
    else:
        part = over >> (whole - 16)
    at = part >> 9
    rise = LOG_TABLE[at + 1] - LOG_TABLE[at]
    fraction = i32(part) + LOG_TABLE[at] + ((rise * i32(part & 511)) >> 16)
    natural = wrap(u32, (u64((whole << 16) + u32(fraction)) * 45426 + 32768) >> 16)
    return wrap(u32, scale * natural + 32768) >> 16


@fn
def bank_log_run(call: LayerCall) -> Status:
    p = view(BankParams, call.params)
    x = view(u32, call.data[0])
    y = view(i16, call.data[1])
    for i in range(p.channels):
        scaled = wrap(u32, x[i] << p.shift)
        y[i] = 0
        if scaled > 1:
            y[i] = i16(min(bank_log(scaled, p.least), 32767))
    return Status.OK


def plan(op: Any) -> Any:
    """The step for one of the five. Plain Python."""
    from synapticos.kernel.layers import variants

    x, y, o = op.inputs[0], op.outputs[0], op.options
    fields = dict(n=x.elements, channels=y.elements)
    if op.kind == "SignalFilterBank":
        if any(t.data is None or int(t.data.min()) < 0 for t in op.inputs[1:]):
            raise variants.Unsupported("weights that are negative or computed", "constants of 0 or more")
        variant = variants.BANK
        fields["weights"] = op.inputs[1].elements
    elif op.kind == "SignalFilterBankSquareRoot":
        variant = variants.BANK_ROOT
    elif op.kind == "SignalFilterBankSpectralSubtraction":
        variant = variants.BANK_SUBTRACT
        fields |= dict(
            shift=o["smoothing_bits"], scale_bits=o["spectral_subtraction_bits"], least=o["min_signal_remaining"],
            smoothing=[o["smoothing"], o["alternate_smoothing"]], clamping=int(bool(o["clamping"])),
            rest=[o["one_minus_smoothing"], o["alternate_one_minus_smoothing"]],
        )  # fmt: skip
    elif op.kind == "SignalPCAN":
        variant = variants.BANK_PCAN
        fields["shift"] = o["snr_shift"]
    else:
        variant = variants.BANK_LOG
        fields |= dict(shift=o["input_correction_bits"], least=o["output_scale"])
    cost = 2 * fields.get("weights", 0) + y.elements
    params = pack(BankParams, **fields)
    return variants.LayerPlan(variant, list(op.inputs), list(op.outputs), params, scratch=0, cost=cost, rows=1)
