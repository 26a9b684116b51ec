"""Scales to integer multipliers, on the host: the model format's own rounding, step by step.

Plain Python. What the kernel does with the numbers is in `requant`.
"""

from math import floor, frexp
from typing import Any

from synapticos.kernel.layers.variants import Unsupported


def round_away(x: float) -> int:
    """To the nearest integer; halves away from 0."""
    return int(floor(abs(x) + 0.5)) * (1 if x >= 0 else -1)


def multiplier_of(scale: float) -> tuple[int, int]:
    """`scale` as (multiplier, shift): scale = multiplier * 2**(shift - 31), multiplier 0 or 2**30..2**31-1."""
    if scale == 0.0:
        return 0, 0
    mantissa, shift = frexp(scale)
    multiplier = round_away(mantissa * (1 << 31))
    if multiplier == 1 << 31:  # 0.9999999999 rounds up to 1
        multiplier //= 2
        shift += 1
    if shift < -31:  # too small to move any i32 off 0
        return 0, 0
    if shift > 30:
        raise Unsupported(f"scales whose ratio is {scale:g}", "a ratio below 2**30")
    return multiplier, shift


def channel_multipliers(x: Any, w: Any, y: Any, channels: int) -> Any:
    """i32 [channels, 2]: multiplier and shift of each output channel; the ratio is taken in double."""
    import numpy as np

    scales = np.broadcast_to(np.asarray(w.scale, np.float32), (channels,))
    ratios = [float(x.scale[0]) * float(s) / float(y.scale[0]) for s in scales]
    return np.array([multiplier_of(r) for r in ratios], np.int32).reshape(channels, 2)


def activation_range(activation: str, y: Any) -> tuple[int, int]:
    """Lowest and highest i8 that a fused activation lets through; the quotient is taken in float32."""
    import numpy as np

    scale, zero = np.float32(y.scale[0]), int(y.zero[0])

    def at(real: float) -> int:
        return zero + round_away(float(np.float32(real) / scale))

    if activation == "NONE":
        return -128, 127
    if activation == "RELU":
        return max(-128, at(0.0)), 127
    if activation == "RELU6":
        return max(-128, at(0.0)), min(127, at(6.0))
    if activation == "RELU_N1_TO_1":
        return max(-128, at(-1.0)), min(127, at(1.0))
    raise Unsupported(f"a fused {activation}", "NONE, RELU, RELU6 or RELU_N1_TO_1")


def require_int8(*tensors: Any) -> None:
    """All tensors are int8 with one scale, or Unsupported says which is not."""
    for t in tensors:
        if t.dtype != "int8":
            raise Unsupported(f'{t.dtype} in "{t.name}"', "int8")
        if t.data is None and (len(t.scale) != 1 or not t.scale[0] > 0):
            raise Unsupported(f'{len(t.scale)} scales for "{t.name}"', "one scale above 0")


def weights_of(w: Any, channels: int) -> Any:
    """The int8 constants of a layer, or Unsupported: symmetric, one scale or one for each channel."""
    if w.dtype != "int8":
        raise Unsupported(f'{w.dtype} weights "{w.name}"', "int8")
    if w.data is None:
        raise Unsupported(f'weights "{w.name}" that are not constant', "constant weights")
    if len(w.scale) not in (1, channels):
        raise Unsupported(f'{len(w.scale)} scales for "{w.name}" with {channels} channels', "one, or one a channel")
    if any(int(z) != 0 for z in w.zero):
        raise Unsupported(f'weights "{w.name}" with a zero point', "zero point 0")
    return w.data


def folded_bias(bias: Any, rows: Any, x_zero: int) -> Any:
    """i32 [channels]: bias - x_zero * sum(weights) modulo 2**32, so that the inner loop needs no zero point.

    `rows` are the weights, one row a channel.
    """
    import numpy as np

    total = -x_zero * rows.astype(np.int64).sum(axis=1)
    if bias is not None:
        if bias.data is None or bias.dtype != "int32":
            raise Unsupported(f'a bias "{bias.name}" that is not constant int32', "constant int32")
        total = total + bias.data.reshape(-1).astype(np.int64)
    return (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
