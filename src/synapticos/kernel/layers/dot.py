"""One output pixel of a layer whose channels each take the whole patch: convolutions and dense layers.

    y[c] = i8(requantize(bias[c] + sum_k x[k] * w[c, k], scale[c]))

    x      i8 [depth]
    w      i8 [channels, depth]  zero point 0
    bias   i32 [channels]        bias - x_zero * sum_k w[c, k], modulo 2**32
    scale  i32 [channels, 2]     multiplier and shift; or one pair for all, `scale_step` 0
    y      i8 [channels]

Bounds: depth <= 65536 and |x|, |w| <= 128: every partial sum is at most 2**30. The bias is added modulo 2**32, as
the reference does, so no constant can overflow it.
"""

from synapticos.lang import *
from synapticos.kernel.layers.dsp import dot2, even_bytes, has_dsp, load4, odd_bytes
from synapticos.kernel.layers.requant import OutputRange, requantize, to_i8

MAX_DEPTH: Final[u32] = 65536


@fn(disjoint=True)
def dot_pixel(
    x: Ptr[i8],
    w: Ptr[i8],
    bias: Ptr[i32],
    scale: Ptr[i32],
    scale_step: u32,
    y: Ptr[i8],
    depth: u32,
    channels: u32,
    out: OutputRange,
) -> None:
    blocks = channels // 4
    sums = local(i32, 4)
    for block in range(blocks):
        # Four channels share each load of x.
        c = block * 4
        w0 = w[c * depth :]
        w1 = w0[depth:]
        w2 = w1[depth:]
        w3 = w2[depth:]
        a0: i32 = 0
        a1: i32 = 0
        a2: i32 = 0
        a3: i32 = 0
        done: u32 = 0
        if has_dsp():
            done = depth - depth % 4
            for k in range(0, done, 4):
                four = load4(x[k:])
                even = even_bytes(four)
                odd = odd_bytes(four)
                four = load4(w0[k:])
                a0 = dot2(odd, odd_bytes(four), dot2(even, even_bytes(four), a0))
                four = load4(w1[k:])
                a1 = dot2(odd, odd_bytes(four), dot2(even, even_bytes(four), a1))
                four = load4(w2[k:])
                a2 = dot2(odd, odd_bytes(four), dot2(even, even_bytes(four), a2))
                four = load4(w3[k:])
                a3 = dot2(odd, odd_bytes(four), dot2(even, even_bytes(four), a3))
        for k in range(done, depth):
            v = i32(x[k])
            a0 += v * w0[k]
            a1 += v * w1[k]
            a2 += v * w2[k]
            a3 += v * w3[k]
        sums[0] = a0
        sums[1] = a1
        sums[2] = a2
        sums[3] = a3
        for i in range(4):
            s = scale[(c + i) * scale_step :]
            y[c + i] = to_i8(requantize(wrap(i32, sums[i] + bias[c + i]), s[0], s[1]), out)
    for c in range(blocks * 4, channels):
        row = w[c * depth :]
        acc: i32 = 0
        for k in range(depth):
            acc += i32(x[k]) * row[k]
        s1 = scale[c * scale_step :]
        acc = wrap(i32, acc + bias[c])
        y[c] = to_i8(requantize(acc, s1[0], s1[1]), out)
