"""Functions of one quantized number as tables, in the reference's own arithmetic, for `lookup`. Plain Python, on the host.

`FUNCTIONS[kind](op, values)`: the output's integer for each integer of the input. Fixed point is written as in `softmax`:
Qm.k has m bits above the point and k below; the numbers are i32 there and plain int here.
"""

from collections.abc import Iterable
from math import exp, floor, frexp
from typing import Any

import numpy as np

from synapticos.kernel.layers.operands import integer_range
from synapticos.kernel.layers.quantize import multiplier_of, round_away
from synapticos.kernel.layers.variants import Unsupported

ONE_Q0 = (1 << 31) - 1  # nearly 1
LOWEST = -(1 << 31)


def wrapped(x: int) -> int:
    """x modulo 2**32, as an i32."""
    return (x + (1 << 31) & 0xFFFFFFFF) - (1 << 31)


def high_mul(a: int, b: int) -> int:
    if a == b == LOWEST:
        return ONE_Q0
    return (a * b + (1 << 30)) >> 31


def round_shift(x: int, count: int) -> int:
    """x / 2**count to nearest, halves away from 0."""
    if count == 0:
        return x
    return (abs(x) + (1 << (count - 1)) >> count) * (1 if x >= 0 else -1)


def rescaled(x: int, scale: tuple[int, int]) -> int:
    """What `requantize` does."""
    multiplier, shift = scale
    return round_shift(high_mul(wrapped(x << max(shift, 0)), multiplier), max(-shift, 0))


def saturating_left(x: int, count: int) -> int:
    return min(max(x << count, LOWEST), ONE_Q0)


def exp_of_negative(a: int, above: int) -> int:
    """exp(a) in Q0.31 for a <= 0 with `above` bits above the point."""
    if a == 0:
        return ONE_Q0
    quarter = 1 << (29 - above)
    part = (a & (quarter - 1)) - quarter
    x = saturating_left(part, above) + (1 << 28)
    x2 = high_mul(x, x)
    x3 = high_mul(x2, x)
    x4 = high_mul(x2, x2)
    tail = round_shift(high_mul(round_shift(x4, 2) + x3, 715827883) + x2, 1)
    result = 1895147668 + high_mul(1895147668, x + tail)
    for power, factor in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242), -2):
        if above > power and (part - a) >> (31 - above + power) & 1:
            result = high_mul(result, factor)
    return result


def newton(half: int) -> int:
    """1 / half in Q2.29 for `half` in [1/2, 1] in Q0.31."""
    x = 1515870810 + high_mul(half, -1010580540)
    for _ in range(3):
        x += saturating_left(high_mul(x, (1 << 29) - high_mul(half, x)), 2)
    return x


def logistic_q0(a: int, above: int) -> int:
    """1 / (1 + exp(-a)) in Q0.31."""
    if a == 0:
        return 1 << 30
    positive = saturating_left(newton((exp_of_negative(-abs(a), above) + ONE_Q0 + 1) >> 1), 1)
    return positive if a > 0 else ONE_Q0 - positive


def tanh_q0(a: int, above: int) -> int:
    """tanh(a) in Q0.31: (1 - e) / (1 + e) with e = exp(-2 |a|)."""
    if a == 0:
        return 0
    half = (exp_of_negative(-abs(a), above + 1) + ONE_Q0 + 1) >> 1
    positive = saturating_left(newton(half) - (1 << 29), 2)
    return positive if a > 0 else -positive


def one_scale(t: Any) -> tuple[float, int]:
    """A tensor's scale and zero point, or Unsupported."""
    if len(t.scale) != 1 or not t.scale[0] > 0:
        raise Unsupported(f'{len(t.scale)} scales for "{t.name}"', "one scale above 0")
    return float(t.scale[0]), int(t.zero[0])


def _squashing(op: Any, values: Iterable[int], function: Any, bits: int, zero: int) -> list[int]:
    """LOGISTIC and TANH of int8: the input in Q4.27, the result rounded to `bits` bits."""
    x, y = op.inputs[0], op.outputs[0]
    scale, x_zero = one_scale(x)
    y_scale, y_zero = one_scale(y)
    if (y_scale, y_zero) != (1 / (1 << bits), zero) or x.dtype != "int8" or y.dtype != "int8":
        raise Unsupported(f"an output of scale {y_scale:g}, zero {y_zero}", f"1/{1 << bits} and {zero} in int8")
    mantissa, left = frexp(scale * (1 << 27))
    to_q4 = round_away(mantissa * (1 << 31)), left
    if left < 0 or left > 30:
        raise Unsupported(f"an input of scale {scale:g}", "2**-27 to 8")
    radius = floor(15.0 * (1 << 27) / (1 << left))
    results = []
    for q in values:
        v = q - x_zero
        if v <= -radius or v >= radius:
            results.append(-128 if v < 0 else 127)
            continue
        q0 = function(rescaled(v, to_q4), 4)
        results.append(min(max(round_shift(q0, 31 - bits) + zero, -128), 127))
    return results


def logistic(op: Any, values: Iterable[int]) -> list[int]:
    return _squashing(op, values, logistic_q0, 8, -128)


def tanh(op: Any, values: Iterable[int]) -> list[int]:
    return _squashing(op, values, tanh_q0, 7, 0)


def requantized(op: Any, values: Iterable[int]) -> list[int]:
    """QUANTIZE between types of one byte."""
    x, y = op.inputs[0], op.outputs[0]
    x_scale, x_zero = one_scale(x)
    y_scale, y_zero = one_scale(y)
    low, high = integer_range(y.dtype)
    scale = multiplier_of(x_scale / y_scale)
    return [min(max(rescaled(q - x_zero, scale) + y_zero, low), high) for q in values]


def _clamped(below: float, above: float | None) -> Any:
    """RELU and its kin: requantized, between two reals."""

    def function(op: Any, values: Iterable[int]) -> list[int]:
        y = op.outputs[0]
        y_scale, y_zero = one_scale(y)
        # The reference then only clamps, in the input's scale: the two would not agree.
        if above is not None and (y_scale, y_zero) != one_scale(op.inputs[0]):
            raise Unsupported("an output scale other than the input's", "equal scales")
        low, high = integer_range(y.dtype)
        low = max(low, y_zero + round_away(float(np.float32(below) / np.float32(y_scale))))
        if above is not None:
            high = min(high, y_zero + round_away(float(np.float32(above) / np.float32(y_scale))))
        return [min(max(q, low), high) for q in requantized(op, values)]

    return function


def leaky_relu(op: Any, values: Iterable[int]) -> list[int]:
    (x_scale, x_zero), (y_scale, y_zero) = one_scale(op.inputs[0]), one_scale(op.outputs[0])
    low, high = integer_range(op.outputs[0].dtype)
    above = multiplier_of(x_scale / y_scale)
    slope = float(np.float32(op.options["alpha"]))
    if slope < 0:
        raise Unsupported(f"a slope of {slope:g}", "0 or more")
    below = multiplier_of(x_scale * slope / y_scale)
    results = [rescaled(q - x_zero, above if q >= x_zero else below) + y_zero for q in values]
    return [min(max(r, low), high) for r in results]


def elu(op: Any, values: Iterable[int]) -> list[int]:
    """In float32, as the reference makes its table."""
    (x_scale, x_zero), (y_scale, y_zero) = one_scale(op.inputs[0]), one_scale(op.outputs[0])
    one = np.float32
    inverse = one(1) / one(y_scale)
    results = []
    for q in values:
        real = one(x_scale) * one(q - x_zero)
        real = one(one(exp(float(real))) - one(1)) if real < 0 else real
        results.append(min(max(round_away(float(real * inverse)) + y_zero, -128), 127))
    return results


def hard_swish(op: Any, values: Iterable[int]) -> list[int]:
    """x * min(6, max(0, x + 3)) / 6 in 16 bits: x on a finer scale, times a multiplier that goes from 0 to 1."""
    (x_scale, x_zero), (y_scale, y_zero) = one_scale(op.inputs[0]), one_scale(op.outputs[0])
    one = np.float32
    fine = one(1 / 128) * one(x_scale)

    def short(ratio: Any) -> tuple[int, int]:
        multiplier, shift = multiplier_of(float(ratio))
        return (0x7FFF if multiplier >= ONE_Q0 - (1 << 15) else multiplier + (1 << 15) >> 16), shift

    def high_16(a: int, b: int) -> int:
        return 32767 if a == b == -32768 else a * b + (1 << 14) >> 15

    def clamped(v: int) -> int:
        return min(max(v, -32768), 32767)

    (out, out_shift), (ramp, ramp_shift) = short(fine / one(y_scale)), short(fine / one(3 / 32768))
    if out_shift > 0:
        raise Unsupported(f"an output scale of {y_scale:g} for {x_scale:g}", "a coarser output")
    results = []
    for q in values:
        v = (q - x_zero) * 128
        part = clamped(v << max(ramp_shift - 1, 0)) if ramp_shift > 0 else v
        part = high_16(part, ramp)
        part = clamped(part << 1) if ramp_shift > 0 else round_shift(part, -ramp_shift)
        part = part + (1 << 15) >> 1
        product = part * high_16(v, out)
        whole = round_shift(abs(product) // (1 << 15) * (1 if product >= 0 else -1), -out_shift)
        results.append(min(max(whole + y_zero, -128), 127))
    return results


def stored_table(op: Any, values: Iterable[int]) -> list[int]:
    """A table that the reader has made, beginning with -128."""
    return [op.options["table"][q + 128] for q in values]


FUNCTIONS = {
    "ELU": elu,
    "HARD_SWISH": hard_swish,
    "LEAKY_RELU": leaky_relu,
    "LOGISTIC": logistic,
    "LOOKUP": stored_table,
    "QUANTIZE": requantized,
    "RELU": _clamped(0.0, None),
    "RELU6": _clamped(0.0, 6.0),
    "RELU_N1_TO_1": _clamped(-1.0, 1.0),
    "TANH": tanh,
}
