"""Accelerators for tests: right ones, ones that are wrong in one way each, and ones that refuse calls."""

from synapticos.kernel.dsp.biquad import Biquad, biquad_f32
from synapticos.kernel.dsp.q15 import fft_q15, matmul_q15, matvec_q15
from synapticos.kernel.stages.fft import fft_f32, rfft_f32
from synapticos.kernel.stages.softmax import softmax_f32
from synapticos.kernel.status import Status
from synapticos.lang import *


@fn
def fft_falling(data: Ptr[f32], n: u32) -> Status:
    """Right, with a gain of 1 / n; takes 8 to 512 points, as the published board."""
    if n < 8 or n > 512:
        return Status.NOTSUP
    fft_f32(data, n)
    for i in range(2 * n):
        data[i] = data[i] / f32(n)
    return Status.OK


@fn
def fft_constant(data: Ptr[f32], n: u32) -> Status:
    """Right, with a gain of 3."""
    fft_f32(data, n)
    for i in range(2 * n):
        data[i] = data[i] * 3.0
    return Status.OK


@fn
def fft_backwards(data: Ptr[f32], n: u32) -> Status:
    """The inverse transform's sign: an impulse does not tell, nor does bin 0."""
    fft_f32(data, n)
    for k in range(1, n // 2):
        for part in range(2):
            held = data[2 * k + part]
            data[2 * k + part] = data[2 * (n - k) + part]
            data[2 * (n - k) + part] = held
    return Status.OK


@fn
def fft_odd_gain(data: Ptr[f32], n: u32) -> Status:
    """A gain that goes with the root of n: neither rule."""
    fft_f32(data, n)
    if n == 64:
        for i in range(2 * n):
            data[i] = data[i] * 0.5
    return Status.OK


@fn
def fft_bin_0_only(data: Ptr[f32], n: u32) -> Status:
    """The defect that a look at one bin misses."""
    fft_f32(data, n)
    fill(data[2:], 0.0, 2 * n - 2)
    return Status.OK


@fn
def fft_nothing(data: Ptr[f32], n: u32) -> Status:
    fill(data, from_bits(0x7FC00000), 2 * n)
    return Status.OK


@fn
def fft_refuses(data: Ptr[f32], n: u32) -> Status:
    return Status.BUSY


@fn
def rfft_right(data: Ptr[f32], n: u32) -> Status:
    rfft_f32(data, n)
    return Status.OK


@fn
def rfft_unscaled(data: Ptr[f32], n: u32) -> Status:
    rfft_f32(data, n)
    for i in range(n + 2):
        data[i] = data[i] * 0.5
    return Status.OK


@fn
def fft_q15_right(data: Ptr[i16], n: u32) -> Status:
    fft_q15(data, n)
    return Status.OK


@fn
def fft_q15_one_off(data: Ptr[i16], n: u32) -> Status:
    fft_q15(data, n)
    data[2 * n - 1] = data[2 * n - 1] ^ 1
    return Status.OK


@fn
def matvec_right(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, cols: u32) -> Status:
    """Up to 16 x 16, as the published board."""
    if rows > 16 or cols > 16:
        return Status.NOTSUP
    matvec_q15(a, b, out, rows, cols)
    return Status.OK


@fn
def matvec_wraps(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, cols: u32) -> Status:
    """Does not saturate."""
    for row in range(rows):
        total: i64 = 0
        for col in range(cols):
            total += i32(a[row * cols + col]) * b[col]
        out[row] = wrap(i16, total >> 15)
    return Status.OK


@fn
def matvec_rounds(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, cols: u32) -> Status:
    """Rounds where the contract goes down; right on the published known answers."""
    for row in range(rows):
        total: i64 = 0
        for col in range(cols):
            total += i32(a[row * cols + col]) * b[col]
        out[row] = sat(i16, (total + 16384) >> 15)
    return Status.OK


@fn
def matmul_right(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, inner: u32, cols: u32) -> Status:
    matmul_q15(a, b, out, rows, inner, cols)
    return Status.OK


@fn
def matmul_transposed(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, inner: u32, cols: u32) -> Status:
    for row in range(rows):
        matvec_q15(b, a[row * inner :], out[row * cols :], cols, inner)
    return Status.OK


@fn
def softmax_right(x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    return softmax_f32(x, y, n)


@fn
def softmax_unshared(x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    status = softmax_f32(x, y, n)
    y[n - 1] = 0.0
    return status


@fn
def argmax_right(data: Ptr[i8], n: u32) -> tuple[Status, u32]:
    best: u32 = 0
    for i in range(n):
        if data[i] > data[best]:
            best = i
    return Status.OK, best


@fn
def argmax_last(data: Ptr[i8], n: u32) -> tuple[Status, u32]:
    """The last maximum, where the contract says the first."""
    best: u32 = 0
    for i in range(n):
        if data[i] >= data[best]:
            best = i
    return Status.OK, best


@fn
def biquad_right(sections: Ptr[Biquad], count: u32, x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    biquad_f32(sections, count, x, y, n)
    return Status.OK


@fn
def biquad_forgets(sections: Ptr[Biquad], count: u32, x: Ptr[f32], y: Ptr[f32], n: u32) -> Status:
    """Starts every call from rest."""
    for k in range(count):
        sections[k].s1 = 0.0
        sections[k].s2 = 0.0
    biquad_f32(sections, count, x, y, n)
    return Status.OK


@fn
def normalize_right(x: Ptr[u8], y: Ptr[i8], n: u32, scale: f32, zero_point: i32) -> Status:
    for i in range(n):
        y[i] = sat(i8, i64(sat(i32, f32(x[i]) * scale)) + zero_point)
    return Status.OK


@fn
def normalize_wraps(x: Ptr[u8], y: Ptr[i8], n: u32, scale: f32, zero_point: i32) -> Status:
    """Adds in 32 bits."""
    for i in range(n):
        y[i] = sat(i8, wrap(i32, sat(i32, f32(x[i]) * scale) + zero_point))
    return Status.OK
