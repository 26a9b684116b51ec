"""Boot-time questions to accelerators. One that answers wrong is never used; the software takes its place, silently but
for a bit in `Dsp.refused`."""

from synapticos.lang import *
from synapticos.kernel.dsp.biquad import Biquad, biquad_f32
from synapticos.kernel.dsp.contract import (
    ARGMAX,
    BIQUAD,
    FFT,
    FFT_Q15,
    MATMUL_Q15,
    MATVEC_Q15,
    NORMALIZE_INT8,
    OP_ARGMAX,
    OP_BIQUAD,
    OP_FFT,
    OP_FFT_Q15,
    OP_MATMUL_Q15,
    OP_MATVEC_Q15,
    OP_NORMALIZE_INT8,
    OP_RFFT,
    OP_SOFTMAX,
    RFFT,
    SOFTMAX,
    SOFTMAX_TOLERANCE,
    TOLERANCE,
    Dsp,
    software_argmax,
    software_normalize,
)
from synapticos.kernel.dsp.q15 import fft_q15, matmul_q15, matvec_q15
from synapticos.kernel.fmath import f32_abs, is_finite
from synapticos.kernel.stages.fft import fft_f32, rfft_f32
from synapticos.kernel.stages.softmax import softmax_f32
from synapticos.kernel.status import Status

IMPULSE = 8192.0
# Products by hand: the published known answers, one of which saturates.
MATRIX = rom(i16, [16384, 8192, -16384, 4096])
VECTOR = rom(i16, [16384, -16384])
MATRIX_ANSWER = rom(i16, [4096, -10240])


@fn
def dsp_init(dsp: Dsp) -> Status:
    """Use the accelerators that answer right. OK always: there is the software."""
    fill(dsp.row, 0, 12)
    dsp.refused = 0
    dsp.fft_gain = 0.0
    dsp.fft_gain_falls = 0
    right = fft_answers(dsp)
    dsp_decide(dsp, OP_FFT, len(FFT) - 1, right)
    right = rfft_answers()
    dsp_decide(dsp, OP_RFFT, len(RFFT) - 1, right)
    right = fft_q15_answers()
    dsp_decide(dsp, OP_FFT_Q15, len(FFT_Q15) - 1, right)
    right = matvec_answers()
    dsp_decide(dsp, OP_MATVEC_Q15, len(MATVEC_Q15) - 1, right)
    right = matmul_answers()
    dsp_decide(dsp, OP_MATMUL_Q15, len(MATMUL_Q15) - 1, right)
    right = softmax_answers()
    dsp_decide(dsp, OP_SOFTMAX, len(SOFTMAX) - 1, right)
    right = argmax_answers()
    dsp_decide(dsp, OP_ARGMAX, len(ARGMAX) - 1, right)
    right = biquad_answers()
    dsp_decide(dsp, OP_BIQUAD, len(BIQUAD) - 1, right)
    right = normalize_answers()
    dsp_decide(dsp, OP_NORMALIZE_INT8, len(NORMALIZE_INT8) - 1, right)
    return Status.OK


@fn
def dsp_decide(dsp: Dsp, operation: u32, row: u32, right: bool) -> None:
    if right:
        dsp.row[operation] = u8(row)
    elif row != 0:
        dsp.refused |= u32(1) << operation


@fn(pure=True)
def dsp_probe(i: u32) -> i32:
    """Numbers without a pattern, from -4096 to 4095."""
    return i32(wrap(u32, i * 1103515245 + 12345) >> 19) - 4096


@fn(pure=True)
def dsp_is_near(a: Ptr[f32], b: Ptr[f32], n: u32, share: f32) -> bool:
    """All of a within a share of b's largest; a may hold anything, b numbers."""
    peak: f32 = 0.0
    for i in range(n):
        peak = max(peak, f32_abs(b[i]))
    for i in range(n):
        if not is_finite(a[i]):
            return False
        if f32_abs(a[i] - b[i]) > peak * share:
            return False
    return True


@fn
def dsp_fft_gain(n: u32) -> f32:
    """The accelerator's gain, or 0 if an impulse does not come back as the same number in all bins."""
    row: u32 = len(FFT) - 1
    data = local(f32, 128)
    data[0] = IMPULSE
    if FFT[row](data, n) != Status.OK:
        return 0.0
    if not is_finite(data[0]):
        return 0.0
    flat = local(f32, 128)
    for i in range(n):
        flat[2 * i] = data[0]
    if not dsp_is_near(data, flat, 2 * n, TOLERANCE):
        return 0.0
    return data[0] / IMPULSE


@fn
def fft_answers(dsp: Dsp) -> bool:
    """Gains for 16 and 64 points that are equal within 5 %, or in the ratio 4 within 20 %; then a signal's spectrum."""
    row: u32 = len(FFT) - 1
    if row == 0:
        return False
    short = dsp_fft_gain(16)
    long = dsp_fft_gain(64)
    if short <= 0.0 or long <= 0.0:
        return False
    ratio = short / long
    falls: u32 = 0
    if 3.2 <= ratio <= 4.8:
        falls = 1
    elif ratio < 0.95 or ratio > 1.05:
        return False
    data = local(f32, 128)
    right = local(f32, 128)
    for i in range(128):
        data[i] = f32(dsp_probe(i))
        right[i] = data[i]
    if FFT[row](data, 64) != Status.OK:
        return False
    fft_f32(right, 64)
    for i in range(128):
        right[i] *= long
    if not dsp_is_near(data, right, 128, TOLERANCE):
        return False
    dsp.fft_gain = short
    dsp.fft_gain_falls = falls
    return True


@fn
def rfft_answers() -> bool:
    row: u32 = len(RFFT) - 1
    if row == 0:
        return False
    data = local(f32, 66)
    right = local(f32, 66)
    for i in range(64):
        data[i] = f32(dsp_probe(i))
        right[i] = data[i]
    if RFFT[row](data, 64) != Status.OK:
        return False
    rfft_f32(right, 64)
    return dsp_is_near(data, right, 66, TOLERANCE)


@fn(pure=True)
def dsp_is_same(a: Ptr[i16], b: Ptr[i16], n: u32) -> bool:
    for i in range(n):
        if a[i] != b[i]:
            return False
    return True


@fn
def fft_q15_answers() -> bool:
    row: u32 = len(FFT_Q15) - 1
    if row == 0:
        return False
    data = local(i16, 64)
    right = local(i16, 64)
    for i in range(64):
        data[i] = i16(dsp_probe(i) * 4)
        right[i] = data[i]
    if FFT_Q15[row](data, 32) != Status.OK:
        return False
    fft_q15(right, 32)
    return dsp_is_same(data, right, 64)


@fn
def matvec_answers() -> bool:
    """The published known answer, saturation, an odd size, and numbers without a pattern."""
    row: u32 = len(MATVEC_Q15) - 1
    if row == 0:
        return False
    a = local(i16, 64)
    b = local(i16, 8)
    got = local(i16, 8)
    right = local(i16, 8)
    for i in range(4):
        a[i] = MATRIX[i]
    b[0] = VECTOR[0]
    b[1] = VECTOR[1]
    if MATVEC_Q15[row](a, b, got, 2, 2) != Status.OK:
        return False
    if got[0] != MATRIX_ANSWER[0] or got[1] != MATRIX_ANSWER[1]:
        return False
    for i in range(3):
        a[i] = -32768
        b[i] = -32768
    if MATVEC_Q15[row](a, b, got, 1, 2) != Status.OK:
        return False
    if got[0] != 32767:
        return False
    for i in range(3):
        a[i] = 16384
        b[i] = 16384
    if MATVEC_Q15[row](a, b, got, 1, 3) != Status.OK:
        return False
    if got[0] != 24576:
        return False
    for i in range(64):
        a[i] = i16(dsp_probe(i) * 8)
    for i in range(8):
        b[i] = i16(dsp_probe(i + 64) * 8)
    if MATVEC_Q15[row](a, b, got, 8, 8) != Status.OK:
        return False
    matvec_q15(a, b, right, 8, 8)
    return dsp_is_same(got, right, 8)


@fn
def matmul_answers() -> bool:
    row: u32 = len(MATMUL_Q15) - 1
    if row == 0:
        return False
    a = local(i16, 15)
    b = local(i16, 20)
    got = local(i16, 12)
    right = local(i16, 12)
    for i in range(15):
        a[i] = i16(dsp_probe(i) * 8)
    for i in range(20):
        b[i] = i16(dsp_probe(i + 15) * 8)
    for i in range(5):
        a[i] = -32768
        b[4 * i] = -32768
    if MATMUL_Q15[row](a, b, got, 3, 5, 4) != Status.OK:
        return False
    matmul_q15(a, b, right, 3, 5, 4)
    return dsp_is_same(got, right, 12)


@fn
def softmax_answers() -> bool:
    row: u32 = len(SOFTMAX) - 1
    if row == 0:
        return False
    x = local(f32, 11)
    got = local(f32, 11)
    right = local(f32, 11)
    for i in range(11):
        x[i] = f32(dsp_probe(i)) / 1024.0
    if SOFTMAX[row](x, got, 11) != Status.OK:
        return False
    status = softmax_f32(x, right, 11)
    return status == Status.OK and dsp_is_near(got, right, 11, SOFTMAX_TOLERANCE)


@fn
def argmax_answers() -> bool:
    """The largest last, first, twice, and among negative numbers only."""
    row: u32 = len(ARGMAX) - 1
    if row == 0:
        return False
    data = local(i8, 17)
    for turn in range(17):
        for i in range(17):
            data[i] = i8(dsp_probe(i + turn * 17) >> 6) - 64
        if turn < 9:
            data[turn] = 5
            data[16 - turn] = 5
        status, best = software_argmax(data, 17)
        answer, got = ARGMAX[row](data, 17)
        if answer != status or got != best:
            return False
    return True


@fn
def biquad_answers() -> bool:
    """Two sections, in two parts, so that states must go on."""
    row: u32 = len(BIQUAD) - 1
    if row == 0:
        return False
    sections = local(Biquad, 2)
    others = local(Biquad, 2)
    x = local(f32, 32)
    got = local(f32, 32)
    right = local(f32, 32)
    for i in range(32):
        x[i] = f32(dsp_probe(i)) / 4096.0
    set_biquad(sections[0], 0.25, 0.5)
    set_biquad(sections[1], 0.75, -0.25)
    set_biquad(others[0], 0.25, 0.5)
    set_biquad(others[1], 0.75, -0.25)
    if BIQUAD[row](sections, 2, x, got, 16) != Status.OK:
        return False
    if BIQUAD[row](sections, 2, x[16:], got[16:], 16) != Status.OK:
        return False
    biquad_f32(others, 2, x, right, 32)
    return dsp_is_near(got, right, 32, SOFTMAX_TOLERANCE)


@fn
def set_biquad(section: Biquad, gain: f32, pole: f32) -> None:
    section.b0 = gain
    section.b1 = gain * 0.5
    section.b2 = -gain
    section.a1 = pole
    section.a2 = 0.25
    section.s1 = 0.0
    section.s2 = 0.0


@fn
def normalize_answers() -> bool:
    row: u32 = len(NORMALIZE_INT8) - 1
    if row == 0:
        return False
    x = local(u8, 256)
    got = local(i8, 256)
    right = local(i8, 256)
    for i in range(256):
        x[i] = u8(i)
    for turn in range(3):
        scale: f32 = 0.7
        zero_point: i32 = -100
        if turn == 1:
            scale = -1.3
            zero_point = 90
        elif turn == 2:
            scale = 1.0e10
            zero_point = 100  # a sum past 32 bits
        if NORMALIZE_INT8[row](x, got, 256, scale, zero_point) != Status.OK:
            return False
        if software_normalize(x, right, 256, scale, zero_point) != Status.OK:
            return False
        for i in range(256):
            if got[i] != right[i]:
                return False
    return True
