"""SignalRfft, int16: the spectrum of real samples, each stage scaled down by its radix so that nothing overflows.

    y[k] = sum_n x[n] * exp(-2 pi i n k / N) / N,  k = 0..N/2, computed as a complex transform of N/2 pairs of samples

    x       i16 [n], n <= N; zeros follow
    order   u16 [N/2]        constant: which pair begins where
    turn    i16 [N/2, 2]     constant: exp(-2 pi i k / (N/2)) in Q0.15
    unfold  i16 [N/4, 2]     constant: exp(-pi i ((k + 1) / (N/2) + 1/2)) in Q0.15
    y       i16 [N/2 + 1, 2]
    scratch i16 [N/2, 2]

Radix 4 from the smallest stage up, with one of radix 2 before them where N/2 is no power of 4. Products are Q0.15 rounded
half up, sums are modulo 2**16, as in the reference. A row is all there is. N is 4..16384.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, has_scratch, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.status import Status

MAX_FFT: Final[u32] = 16384
HALF: Final[i32] = 16383  # a half, as the reference divides by 2
QUARTER: Final[i32] = 8191


@struct
class RfftParams:
    n: u32  # samples
    pairs: u32  # N/2, a power of 2


RFFT_PARAMS_BYTES: Final[u32] = sizeof(RfftParams)


@fn
def rfft_validate(check: LayerCheck) -> Status:
    if not takes(check, 4, RFFT_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(RfftParams, check.params)
    if p.pairs < 2 or p.pairs > MAX_FFT // 2 or p.pairs & (p.pairs - 1) != 0 or p.n > 2 * p.pairs:
        return Status.INVAL
    if not holds(check, 0, DTYPE_INT16, p.n) or not holds_const(check, 1, DTYPE_INT16, p.pairs):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_INT16, 2 * p.pairs) or not holds_const(check, 3, DTYPE_INT16, p.pairs):
        return Status.INVAL
    if not holds(check, 4, DTYPE_INT16, 2 * p.pairs + 2) or check.rows != 1:
        return Status.INVAL
    if not has_scratch(check, 4 * p.pairs):
        return Status.INVAL
    table = check.tensor(1)
    if table is None or not apart(check, False):
        return Status.INVAL
    order = view(u16, check.consts[table.offset :])
    for i in range(p.pairs):
        if order[i] >= p.pairs:
            return Status.INVAL
    return Status.OK


@fn(pure=True, inline=True)
def q15(x: i32) -> i16:
    """A product of two Q0.15 as one, rounded."""
    return wrap(i16, wrap(i32, x + 16384) >> 15)


@fn(pure=True, inline=True)
def times_re(ar: i16, ai: i16, br: i16, bi: i16) -> i16:
    return q15(wrap(i32, i32(ar) * br - i32(ai) * bi))


@fn(pure=True, inline=True)
def times_im(ar: i16, ai: i16, br: i16, bi: i16) -> i16:
    return q15(wrap(i32, i32(ar) * bi + i32(ai) * br))


@fn
def scale_pair(v: Ptr[i16], at: u32, factor: i32) -> None:
    v[2 * at] = q15(i32(v[2 * at]) * factor)
    v[2 * at + 1] = q15(i32(v[2 * at + 1]) * factor)


@fn
def radix_2(v: Ptr[i16], turn: Ptr[i16]) -> None:
    """A pair with its neighbour."""
    scale_pair(v, 0, HALF)
    scale_pair(v, 1, HALF)
    re = times_re(v[2], v[3], turn[0], turn[1])
    im = times_im(v[2], v[3], turn[0], turn[1])
    v[2] = wrap(i16, v[0] - re)
    v[3] = wrap(i16, v[1] - im)
    v[0] = wrap(i16, v[0] + re)
    v[1] = wrap(i16, v[1] + im)


@fn
def radix_4(v: Ptr[i16], turn: Ptr[i16], m: u32, step: u32) -> None:
    """Four transforms of length m into one of 4 m; `step` is how fast it goes round the circle."""
    for k in range(m):
        a = k
        b = k + m
        c = k + 2 * m
        d = k + 3 * m
        scale_pair(v, a, QUARTER)
        scale_pair(v, b, QUARTER)
        scale_pair(v, c, QUARTER)
        scale_pair(v, d, QUARTER)
        t1 = 2 * (k * step)
        t2 = 2 * t1
        t3 = 3 * t1
        br = times_re(v[2 * b], v[2 * b + 1], turn[t1], turn[t1 + 1])
        bi = times_im(v[2 * b], v[2 * b + 1], turn[t1], turn[t1 + 1])
        cr = times_re(v[2 * c], v[2 * c + 1], turn[t2], turn[t2 + 1])
        ci = times_im(v[2 * c], v[2 * c + 1], turn[t2], turn[t2 + 1])
        dr = times_re(v[2 * d], v[2 * d + 1], turn[t3], turn[t3 + 1])
        di = times_im(v[2 * d], v[2 * d + 1], turn[t3], turn[t3 + 1])
        low_r = wrap(i16, v[2 * a] - cr)
        low_i = wrap(i16, v[2 * a + 1] - ci)
        sum_r = wrap(i16, v[2 * a] + cr)
        sum_i = wrap(i16, v[2 * a + 1] + ci)
        both_r = wrap(i16, br + dr)
        both_i = wrap(i16, bi + di)
        side_r = wrap(i16, br - dr)
        side_i = wrap(i16, bi - di)
        v[2 * c] = wrap(i16, sum_r - both_r)
        v[2 * c + 1] = wrap(i16, sum_i - both_i)
        v[2 * a] = wrap(i16, sum_r + both_r)
        v[2 * a + 1] = wrap(i16, sum_i + both_i)
        v[2 * b] = wrap(i16, low_r + side_i)
        v[2 * b + 1] = wrap(i16, low_i - side_r)
        v[2 * d] = wrap(i16, low_r - side_i)
        v[2 * d + 1] = wrap(i16, low_i + side_r)


@fn
def rfft_i16(
    x: Ptr[i16], samples: u32, n: u32, order: Ptr[u16], turn: Ptr[i16], unfold: Ptr[i16], v: Ptr[i16], y: Ptr[i16]
) -> None:
    """The formula above for n = N/2 pairs, with the scratch in v."""
    for i in range(2 * n):
        at = u32(order[i // 2]) * 2 + i % 2
        v[i] = 0
        if at < samples:
            v[i] = x[at]
    twos = n & 0x2AAAAAAA != 0  # n is twice a power of 4
    m: u32 = 1
    while m < n:
        first: u32 = 0
        while first < n:
            if twos:
                radix_2(v[2 * first :], turn)
                first += 2
            else:
                radix_4(v[2 * first :], turn, m, n // (4 * m))
                first += 4 * m
        if twos:
            m = 2
            twos = False
        else:
            m *= 4
    scale_pair(v, 0, HALF)
    y[0] = wrap(i16, v[0] + v[1])
    y[1] = 0
    y[2 * n] = wrap(i16, v[0] - v[1])
    y[2 * n + 1] = 0
    for k in range(1, n // 2 + 1):
        far = n - k
        ar = q15(i32(v[2 * k]) * HALF)
        ai = q15(i32(v[2 * k + 1]) * HALF)
        br = q15(i32(v[2 * far]) * HALF)
        bi = q15(i32(wrap(i16, -v[2 * far + 1])) * HALF)
        even_r = wrap(i16, ar + br)
        even_i = wrap(i16, ai + bi)
        odd_r = wrap(i16, ar - br)
        odd_i = wrap(i16, ai - bi)
        wr = unfold[2 * k - 2]
        wi = unfold[2 * k - 1]
        turned_r = i32(times_re(odd_r, odd_i, wr, wi))
        turned_i = i32(times_im(odd_r, odd_i, wr, wi))
        y[2 * k] = i16((even_r + turned_r) >> 1)
        y[2 * k + 1] = i16((even_i + turned_i) >> 1)
        y[2 * far] = i16((even_r - turned_r) >> 1)
        y[2 * far + 1] = i16((turned_i - even_i) >> 1)


@fn
def rfft_run(call: LayerCall) -> Status:
    p = view(RfftParams, call.params)
    rfft_i16(
        view(i16, call.data[0]),
        p.n,
        p.pairs,
        view(u16, call.data[1]),
        view(i16, call.data[2]),
        view(i16, call.data[3]),
        view(i16, call.scratch),
        view(i16, call.data[4]),
    )
    return Status.OK


def rfft_tables(n: int) -> dict[str, Any]:
    """`order`, `turn` and `unfold` for n = N/2 pairs. Plain Python."""
    from math import cos, floor, pi, sin

    import numpy as np

    def circle(phase: float) -> list[int]:
        return [floor(0.5 + 32767 * cos(phase)), floor(0.5 + 32767 * sin(phase))]

    def spread(first: int, step: int, count: int) -> list[int]:
        if count == 1:
            return [first]
        radix = 4 if count % 4 == 0 else 2
        return [at for i in range(radix) for at in spread(first + i * step, step * radix, count // radix)]

    return {
        "order": np.array(spread(0, 1, n), np.int16),
        "turn": np.array([circle(-2 * pi * k / n) for k in range(n)], np.int16),
        "unfold": np.array([circle(-pi * ((k + 1) / n + 0.5)) for k in range(n // 2)], np.int16),
    }


def plan(op: Any) -> Any:
    """The step for a SignalRfft of int16. Plain Python."""
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import RFFT_I16, Const, LayerPlan, Unsupported

    x, y = op.inputs[0], op.outputs[0]
    require("int16", x, y)
    length = op.options["fft_length"]
    n = length // 2
    if not 4 <= length <= MAX_FFT or length & (length - 1) or x.elements != x.shape[-1]:
        raise Unsupported(f"a length of {length} for {list(x.shape)}", f"one row, a power of 2 up to {MAX_FFT}")
    consts = [Const(f"rfft/{name}", array) for name, array in rfft_tables(n).items()]
    params = pack(RfftParams, n=x.elements, pairs=n)
    cost = n * (n.bit_length() + 1)
    return LayerPlan(RFFT_I16, [x, *consts], [y], params, scratch=4 * n, cost=cost, rows=1)
