"""Forward FFTs in f32, in place, no scaling, interleaved real and imaginary parts: complex, and of real samples.

Radix 2, decimation in time: bit-reversed order first, then log2(n) passes. The twiddles come from a table of a quarter
wave, so they carry one rounding each however long the transform.
"""

import math

from synapticos.lang import *

MAX_FFT: Final[u32] = 1024
QUARTER_WAVE: Final[u32] = MAX_FFT // 4
SINES = rom(f32, [math.sin(2 * math.pi * i / int(MAX_FFT)) for i in range(int(MAX_FFT) // 4 + 1)])


@fn(pure=True)
def is_fft_length(n: u32) -> bool:
    """A power of two from 2 to MAX_FFT."""
    return n >= 2 and n <= MAX_FFT and (n & (n - 1)) == 0


@fn(pure=True, inline=True)
def sine_of(turn: u32) -> f32:
    """Of `turn` in MAX_FFT parts of a circle, up to half of it."""
    if turn <= QUARTER_WAVE:
        return SINES[turn]
    return SINES[2 * QUARTER_WAVE - turn]


@fn(pure=True, inline=True)
def cosine_of(turn: u32) -> f32:
    """As `sine_of`."""
    if turn <= QUARTER_WAVE:
        return SINES[QUARTER_WAVE - turn]
    return -SINES[turn - QUARTER_WAVE]


@fn(inline=True)
def first_two_passes(p: Ptr[f32]) -> None:
    """Four numbers: their twiddles are 1 and -i, so there is nothing to multiply."""
    a = p[0] + p[2]
    b = p[1] + p[3]
    c = p[0] - p[2]
    d = p[1] - p[3]
    e = p[4] + p[6]
    f = p[5] + p[7]
    g = p[4] - p[6]
    h = p[5] - p[7]
    p[0] = a + e
    p[1] = b + f
    p[2] = c + h
    p[3] = d - g
    p[4] = a - e
    p[5] = b - f
    p[6] = c - h
    p[7] = d + g


@fn
def fft_f32(data: Ptr[f32], n: u32) -> None:
    """`data` holds n pairs; n as `is_fft_length` says."""
    swap: u32 = 0
    for i in range(n):
        if i < swap:
            real = data[2 * i]
            imaginary = data[2 * i + 1]
            data[2 * i] = data[2 * swap]
            data[2 * i + 1] = data[2 * swap + 1]
            data[2 * swap] = real
            data[2 * swap + 1] = imaginary
        bit = n >> 1
        while bit != 0 and (swap & bit) != 0:
            swap ^= bit
            bit >>= 1
        swap |= bit
    half: u32 = 4
    step: u32 = MAX_FFT >> 3  # in the table, for one twiddle to the next
    if n == 2:
        real = data[2]
        imaginary = data[3]
        data[2] = data[0] - real
        data[3] = data[1] - imaginary
        data[0] = data[0] + real
        data[1] = data[1] + imaginary
    elif n >= 4:
        for at in range(0, 2 * n, 8):
            first_two_passes(data[at:])
    while half < n:
        for k in range(half):
            cosine = cosine_of(k * step)
            sine = sine_of(k * step)
            at = 2 * k
            while at < 2 * n:
                other = at + 2 * half
                real = data[other] * cosine + data[other + 1] * sine
                imaginary = data[other + 1] * cosine - data[other] * sine
                data[other] = data[at] - real
                data[other + 1] = data[at + 1] - imaginary
                data[at] = data[at] + real
                data[at + 1] = data[at + 1] + imaginary
                at = other + 2 * half
        half <<= 1
        step >>= 1


@fn
def rfft_f32(data: Ptr[f32], n: u32) -> None:
    """`data` holds n real samples and has room for n + 2 floats: bins 0 to n / 2. n as `is_fft_length` says.

    Samples at even and at odd places are the two parts of n / 2 complex ones; with E and O the transforms of each,
    bin k is E[k] + w**k O[k].
    """
    half = n // 2
    fft_f32(data, half)
    step = MAX_FFT // n
    first = data[0]
    data[2 * half] = first - data[1]
    data[2 * half + 1] = 0.0
    data[0] = first + data[1]
    data[1] = 0.0
    for k in range(1, half // 2 + 1):
        at = 2 * k
        other = 2 * (half - k)
        even_real = 0.5 * (data[at] + data[other])
        even_imaginary = 0.5 * (data[at + 1] - data[other + 1])
        odd_real = 0.5 * (data[at + 1] + data[other + 1])
        odd_imaginary = 0.5 * (data[other] - data[at])
        cosine = cosine_of(k * step)
        sine = sine_of(k * step)
        real = odd_real * cosine + odd_imaginary * sine
        imaginary = odd_imaginary * cosine - odd_real * sine
        data[at] = even_real + real
        data[at + 1] = even_imaginary + imaginary
        data[other] = even_real - real
        data[other + 1] = imaginary - even_imaginary
