"""What the layers with int16 activations and int8 weights share: sums of 64 bits, and how they become an i16.

    y = clamp((acc * reduced + half) >> (15 - shift))    reduced: the multiplier's upper 16 bits, rounded

Zero points are 0 throughout. The reference rounds once here, half up, with 15 bits of the multiplier.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT32, LayerCheck
from synapticos.kernel.layers.checks import product, scales_are_sound
from synapticos.kernel.layers.operands import holds_const

MAX_WIDE_SHIFT: Final[i32] = 7


@fn(pure=True)
def wide_scales_are_sound(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is a constant i32 [n, 2] of multipliers and shifts for `requantize_wide`."""
    if not scales_are_sound(check, operand, n):
        return False
    record = check.tensor(operand)
    if record is None:
        return False
    scales = view(i32, check.consts[record.offset :])
    for i in range(n):
        if scales[2 * i + 1] > MAX_WIDE_SHIFT:
            return False
    return True


@fn(pure=True)
def holds_halves(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is a constant of `n` numbers of 64 bits, each as two i32, the lower first."""
    return holds_const(check, operand, DTYPE_INT32, product(n, 2))


@fn(pure=True, inline=True)
def wide_bias(halves: Ptr[i32], i: u32) -> i64:
    return (i64(halves[2 * i + 1]) << 32) | i64(wrap(u32, halves[2 * i]))


@fn(pure=True)
def requantize_wide(acc: i64, multiplier: i32, shift: i32) -> i32:
    """Bounds: |acc| < 2**47 as in the reference; beyond, modulo 2**64."""
    reduced: i64 = 32767
    if multiplier < 2147418112:
        reduced = i64((multiplier + 32768) >> 16)
    total = u32(15 - shift)
    value = wrap(i64, acc * reduced + (i64(1) << (total - 1))) >> total
    return i32(min(max(value, -2147483648), 2147483647))


def wide_bias_halves(bias: Any, channels: int) -> Any:
    """i32 [channels, 2]: the bias, int32 or int64, or zeros. Plain Python."""
    import numpy as np

    values = np.zeros(channels, np.int64) if bias is None else bias.data.reshape(-1).astype(np.int64)
    return values.view(np.int32).reshape(channels, 2)


def wide_limits(activation: str, y: Any) -> tuple[int, int]:
    """Lowest and highest i16 that a fused activation lets through. Plain Python."""
    import numpy as np

    from synapticos.kernel.layers.quantize import round_away
    from synapticos.kernel.layers.variants import Unsupported

    def at(real: float) -> int:
        return min(round_away(float(np.float32(real) / np.float32(y.scale[0]))), 32767)

    if activation == "NONE":
        return -32768, 32767
    if activation == "RELU":
        return 0, 32767
    if activation == "RELU6":
        return 0, at(6.0)
    if activation == "RELU_N1_TO_1":
        return max(-at(1.0), -32768), at(1.0)
    raise Unsupported(f"a fused {activation}", "NONE, RELU, RELU6 or RELU_N1_TO_1")


def require_wide(*tensors: Any) -> None:
    """All tensors are int16 with one scale and zero point 0, or Unsupported says which is not. Plain Python."""
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import Unsupported

    require("int16", *tensors)
    for t in tensors:
        if one_scale(t)[1] != 0:
            raise Unsupported(f'zero point {one_scale(t)[1]} of "{t.name}"', "0, as int16 has it")
