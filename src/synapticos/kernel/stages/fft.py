"""fft_f32: forward complex FFT in place, no scaling, interleaved real and imaginary parts.

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
    half: u32 = 1
    step: u32 = MAX_FFT >> 1  # in the table, for one twiddle to the next
    while half < n:
        for k in range(half):
            turn = k * step
            cosine: f32 = 0.0
            sine: f32 = 0.0
            if turn <= QUARTER_WAVE:
                cosine = SINES[QUARTER_WAVE - turn]
                sine = SINES[turn]
            else:
                cosine = -SINES[turn - QUARTER_WAVE]
                sine = SINES[2 * QUARTER_WAVE - turn]
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
