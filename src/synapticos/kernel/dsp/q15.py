"""Q15 arithmetic: 16-bit fractions, where 32768 would be 1. Matrix products and an FFT."""

import math

from synapticos.lang import *
from synapticos.kernel.stages.fft import MAX_FFT, QUARTER_WAVE

SINES_Q15 = rom(u16, [round(32768 * math.sin(2 * math.pi * i / int(MAX_FFT))) for i in range(int(MAX_FFT) // 4 + 1)])  # 32768: exactly 1


@fn(pure=True)
def dot_q15(a: Ptr[i16], b: Ptr[i16], n: u32, stride: u32) -> i16:
    """The sum of a[i] b[i stride] in 64 bits, shifted right by 15 (down), saturated."""
    total: i64 = 0
    at: u32 = 0
    for i in range(n):
        total += i32(a[i]) * b[at]
        at += stride
    return sat(i16, total >> 15)


@fn
def matvec_q15(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, cols: u32) -> None:
    """out [rows] = a [rows, cols] b [cols], as `dot_q15`. `out` shares nothing with a or b."""
    for row in range(rows):
        out[row] = dot_q15(a[row * cols :], b, cols, 1)


@fn
def matmul_q15(a: Ptr[i16], b: Ptr[i16], out: Ptr[i16], rows: u32, inner: u32, cols: u32) -> None:
    """out [rows, cols] = a [rows, inner] b [inner, cols], as `dot_q15`. `out` shares nothing with a or b."""
    for row in range(rows):
        for col in range(cols):
            out[row * cols + col] = dot_q15(a[row * inner :], b[col:], inner, cols)


@fn(pure=True, inline=True)
def half_q15(sum: i32) -> i16:
    """Half of it, of two the even one: rounding up would add a quarter of a step to bin 0 in every pass."""
    return sat(i16, (sum + ((sum >> 1) & 1)) >> 1)


@fn
def fft_q15(data: Ptr[i16], n: u32) -> None:
    """Forward complex FFT in place, divided by n: each pass halves, to the nearest, of two the even one. `data` holds n pairs; n as `is_fft_length` says.

    A part saturates only where the pairs given are longer than 1 (both parts near it). With |b| <= 2**15.5 and |w| <= 1,
    b w stays below 2**31 before its shift.
    """
    swap: u32 = 0
    for i in range(n):
        if i < swap:
            for part in range(2):
                held = data[2 * i + part]
                data[2 * i + part] = data[2 * swap + part]
                data[2 * swap + part] = held
        bit = n >> 1
        while bit != 0 and (swap & bit) != 0:
            swap ^= bit
            bit >>= 1
        swap |= bit
    half: u32 = 1
    step: u32 = MAX_FFT >> 1
    while half < n:
        for k in range(half):
            turn = k * step
            cosine: i32 = 0
            sine: i32 = 0
            if turn <= QUARTER_WAVE:
                cosine = i32(SINES_Q15[QUARTER_WAVE - turn])
                sine = i32(SINES_Q15[turn])
            else:
                cosine = -i32(SINES_Q15[turn - QUARTER_WAVE])
                sine = i32(SINES_Q15[2 * QUARTER_WAVE - turn])
            at = 2 * k
            while at < 2 * n:
                other = at + 2 * half
                real = (data[other] * cosine + data[other + 1] * sine + 16384) >> 15
                imaginary = (data[other + 1] * cosine - data[other] * sine + 16384) >> 15
                first = i32(data[at])
                second = i32(data[at + 1])
                data[other] = half_q15(first - real)
                data[other + 1] = half_q15(second - imaginary)
                data[at] = half_q15(first + real)
                data[at + 1] = half_q15(second + imaginary)
                at = other + 2 * half
        half <<= 1
        step >>= 1
