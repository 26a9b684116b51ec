"""The signal processing contract: nine operations with one meaning on every target, and a table for each, in which a
board's accelerator may stand.

Row 0 of a table is the software; a build may add one row. `dsp_init` asks the added row questions whose answers the
software knows, and from then on it is used where all were right; it may refuse a call (any status but OK, operands as
they were), which the software then takes. The integer operations must answer exactly. The others may differ from the
software a little (FFT_PPM of the peak), so what must be equal on all targets, the built-in processors before all,
calls the software itself.

Pointers are the callers': None, or a length out of range, is INVAL, and nothing is written.
"""

from synapticos.lang import *
from synapticos.kernel.dsp.biquad import Biquad, biquad_f32, is_biquad
from synapticos.kernel.dsp.q15 import fft_q15, matmul_q15, matvec_q15
from synapticos.kernel.fmath import f32_abs, is_finite
from synapticos.kernel.stages.fft import fft_f32, is_fft_length, rfft_f32
from synapticos.kernel.stages.softmax import softmax_f32
from synapticos.kernel.status import Status

OPERATIONS = ["fft", "rfft", "fft_q15", "matvec_q15", "matmul_q15", "softmax", "argmax", "biquad", "normalize_int8"]  # by number
OP_FFT: Final[u32] = 0
OP_RFFT: Final[u32] = 1
OP_FFT_Q15: Final[u32] = 2
OP_MATVEC_Q15: Final[u32] = 3
OP_MATMUL_Q15: Final[u32] = 4
OP_SOFTMAX: Final[u32] = 5
OP_ARGMAX: Final[u32] = 6
OP_BIQUAD: Final[u32] = 7
OP_NORMALIZE_INT8: Final[u32] = 8
MAX_SIDE: Final[u32] = 65536  # of a matrix, so that sizes stay in u32
MAX_ELEMENTS: Final[u32] = 0x10000000
LARGEST = 1.0e35  # sums of 1024 of these stay in f32
TOLERANCE = 0.002  # of the peak: what an accelerator's transform may be off (the published board's is off by 976 ppm)
SOFTMAX_TOLERANCE = 1.0e-5

FftFn = Fn[[Ptr[f32], u32], Status]  # in place, any gain that is constant or goes with 1 / n
RfftFn = Fn[[Ptr[f32], u32], Status]
FftQ15Fn = Fn[[Ptr[i16], u32], Status]
MatvecFn = Fn[[Ptr[i16], Ptr[i16], Ptr[i16], u32, u32], Status]
MatmulFn = Fn[[Ptr[i16], Ptr[i16], Ptr[i16], u32, u32, u32], Status]
SoftmaxFn = Fn[[Ptr[f32], Ptr[f32], u32], Status]
ArgmaxFn = Fn[[Ptr[i8], u32], tuple[Status, u32]]
BiquadFn = Fn[[Ptr[Biquad], u32, Ptr[f32], Ptr[f32], u32], Status]
NormalizeFn = Fn[[Ptr[u8], Ptr[i8], u32, f32, i32], Status]


@fn
def software_fft(data: Ptr[f32], n: u32) -> Status:
    fft_f32(data, n)
    return Status.OK


@fn
def software_rfft(data: Ptr[f32], n: u32) -> Status:
    rfft_f32(data, n)
    return Status.OK


@fn
def software_fft_q15(data: Ptr[i16], n: u32) -> Status:
    fft_q15(data, n)
    return Status.OK


@fn
def software_matvec(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, cols: u32) -> Status:
    matvec_q15(a, b, out, rows, cols)
    return Status.OK


@fn
def software_matmul(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, inner: u32, cols: u32) -> Status:
    matmul_q15(a, b, out, rows, inner, cols)
    return Status.OK


@fn
def software_argmax(data: Ptr[i8], n: u32) -> tuple[Status, u32]:
    """The first maximum."""
    best: u32 = 0
    for i in range(1, n):
        if data[i] > data[best]:
            best = i
    return Status.OK, best


@fn
def software_biquad(sections: Ptr[Biquad], count: u32, x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    biquad_f32(sections, count, x, y, n)
    return Status.OK


@fn
def software_normalize(x: Ptr[u8], y: Ptr[i8], n: u32, scale: f32, zero_point: i32) -> Status:
    """clamp(trunc(x scale) + zero_point); the sum is exact before it is clamped."""
    for i in range(n):
        y[i] = sat(i8, i64(sat(i32, f32(x[i]) * scale)) + zero_point)
    return Status.OK


FFT = table(FftFn, [software_fft], open=True)
RFFT = table(RfftFn, [software_rfft], open=True)
FFT_Q15 = table(FftQ15Fn, [software_fft_q15], open=True)
MATVEC_Q15 = table(MatvecFn, [software_matvec], open=True)
MATMUL_Q15 = table(MatmulFn, [software_matmul], open=True)
SOFTMAX = table(SoftmaxFn, [softmax_f32], open=True)
ARGMAX = table(ArgmaxFn, [software_argmax], open=True)
BIQUAD = table(BiquadFn, [software_biquad], open=True)
NORMALIZE_INT8 = table(NormalizeFn, [software_normalize], open=True)


@struct
class Dsp:
    """Who does what."""

    row: Shaped[Array[u8], 12]  # by operation: the row in use, 0 the software; three spare
    refused: u32  # bit n: operation n's accelerator gave a wrong answer, or none
    fft_gain: f32  # the accelerator's, for n = 16; 0: no accelerator
    fft_gain_falls: u32  # 1: the gain goes with 1 / n


@fn(pure=True)
def is_transformable(x: Ptr[f32], n: u32) -> bool:
    """Numbers whose sums stay in f32."""
    for i in range(n):
        if isnan(x[i]) or f32_abs(x[i]) > LARGEST:
            return False
    return True


@fn
def dsp_fft_f32(dsp: Dsp, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    """Forward complex FFT, no scaling, of n interleaved pairs; y may be x, or overlap it.

    Returns OK; INVAL for None, n not a power of two from 2 to 1024, or a number that is none or beyond +-1e35.
    """
    if x is None or y is None or not is_fft_length(n) or not is_transformable(x, 2 * n):
        return Status.INVAL
    move(y, x, 2 * n)
    row = u32(dsp.row[OP_FFT])
    if row != 0 and FFT[row](y, n) == Status.OK:
        gain = dsp.fft_gain
        if dsp.fft_gain_falls != 0:
            gain = gain * 16.0 / f32(n)
        for i in range(2 * n):
            y[i] = y[i] / gain
        return Status.OK
    fft_f32(y, n)
    return Status.OK


@fn
def dsp_rfft_f32(dsp: Dsp, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    """The FFT of n real samples: bins 0 to n / 2, so y has n + 2 floats; it may be x. Returns as `dsp_fft_f32`."""
    if x is None or y is None or not is_fft_length(n) or not is_transformable(x, n):
        return Status.INVAL
    move(y, x, n)
    row = u32(dsp.row[OP_RFFT])
    if row != 0 and RFFT[row](y, n) == Status.OK:
        return Status.OK
    rfft_f32(y, n)
    return Status.OK


@fn
def dsp_fft_q15(dsp: Dsp, x: Ptr[i16] | None, y: Ptr[i16] | None, n: u32) -> Status:
    """Forward complex FFT divided by n, of n interleaved pairs; y may be x. INVAL for None or a bad n."""
    if x is None or y is None or not is_fft_length(n):
        return Status.INVAL
    move(y, x, 2 * n)
    row = u32(dsp.row[OP_FFT_Q15])
    if row != 0 and FFT_Q15[row](y, n) == Status.OK:
        return Status.OK
    fft_q15(y, n)
    return Status.OK


@fn
def dsp_mat_mult_q15(dsp: Dsp, a: Ptr[i16] | None, b: Ptr[i16] | None, out: Ptr[i16] | None, rows: u32, cols: u32) -> Status:
    """out = a b for a matrix [rows, cols] and a vector: 64-bit sum, shift by 15, saturate. `out` shares nothing with a or b.

    Returns OK; INVAL for None, or a side of 0 or above 65536.
    """
    if a is None or b is None or out is None or rows == 0 or cols == 0 or rows > MAX_SIDE or cols > MAX_SIDE:
        return Status.INVAL
    if u64(rows) * cols > MAX_ELEMENTS:
        return Status.INVAL
    row = u32(dsp.row[OP_MATVEC_Q15])
    if row != 0 and MATVEC_Q15[row](a, b, out, rows, cols) == Status.OK:
        return Status.OK
    matvec_q15(a, b, out, rows, cols)
    return Status.OK


@fn
def dsp_matmul_q15(dsp: Dsp, a: Ptr[i16] | None, b: Ptr[i16] | None, out: Ptr[i16] | None, rows: u32, inner: u32, cols: u32) -> Status:
    """out [rows, cols] = a [rows, inner] b [inner, cols], as `dsp_mat_mult_q15`."""
    if a is None or b is None or out is None or rows == 0 or inner == 0 or cols == 0:
        return Status.INVAL
    if rows > MAX_SIDE or inner > MAX_SIDE or cols > MAX_SIDE:
        return Status.INVAL
    if u64(rows) * inner > MAX_ELEMENTS or u64(inner) * cols > MAX_ELEMENTS or u64(rows) * cols > MAX_ELEMENTS:
        return Status.INVAL
    row = u32(dsp.row[OP_MATMUL_Q15])
    if row != 0 and MATMUL_Q15[row](a, b, out, rows, inner, cols) == Status.OK:
        return Status.OK
    matmul_q15(a, b, out, rows, inner, cols)
    return Status.OK


@fn
def dsp_softmax_f32(dsp: Dsp, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    """e**(x - max) over the sum of them; y may be x. INVAL for None, n 0, or no number among them. A NaN gets 0."""
    if x is None or y is None or n == 0 or n > MAX_ELEMENTS:
        return Status.INVAL
    row = u32(dsp.row[OP_SOFTMAX])
    if row != 0 and is_transformable(x, n) and SOFTMAX[row](x, y, n) == Status.OK:
        return Status.OK
    return softmax_f32(x, y, n)


@fn
def dsp_argmax(dsp: Dsp, data: Ptr[i8] | None, n: u32, index: Ptr[u32] | None) -> Status:
    """Where the first maximum is. INVAL for None or n 0."""
    if data is None or index is None or n == 0:
        return Status.INVAL
    row = u32(dsp.row[OP_ARGMAX])
    if row != 0:
        status, best = ARGMAX[row](data, n)
        if status == Status.OK and best < n:
            index[0] = best
            return Status.OK
    status, best = software_argmax(data, n)
    index[0] = best
    return status


@fn
def dsp_biquad_f32(dsp: Dsp, sections: Ptr[Biquad] | None, count: u32, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    """n samples through `count` filters, whose states go on; y may be x.

    Returns OK; INVAL for None, no section, or one whose coefficients or states are out of range (`is_biquad`).
    """
    if sections is None or x is None or y is None or count == 0 or count > MAX_SIDE or n > MAX_ELEMENTS:
        return Status.INVAL
    for k in range(count):
        if not is_biquad(sections[k]):
            return Status.INVAL
    row = u32(dsp.row[OP_BIQUAD])
    if row != 0 and is_transformable(x, n) and BIQUAD[row](sections, count, x, y, n) == Status.OK:
        return Status.OK
    biquad_f32(sections, count, x, y, n)
    return Status.OK


@fn
def dsp_normalize_int8(dsp: Dsp, x: Ptr[u8] | None, y: Ptr[i8] | None, n: u32, scale: f32, zero_point: i32) -> Status:
    """clamp(trunc(x scale) + zero_point, -128, 127). INVAL for None, n 0, or a scale that is not finite."""
    if x is None or y is None or n == 0 or not is_finite(scale):
        return Status.INVAL
    row = u32(dsp.row[OP_NORMALIZE_INT8])
    if row != 0 and NORMALIZE_INT8[row](x, y, n, scale, zero_point) == Status.OK:
        return Status.OK
    return software_normalize(x, y, n, scale, zero_point)
