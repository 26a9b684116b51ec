"""The operators in exact arithmetic: integers and fractions, no shifts, no fixed width.

Written from the meaning of the operators and of their two roundings, not from the kernel's code.
"""

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

HALF = Fraction(1, 2)


def half_up(x: Fraction) -> int:
    return floor(x + HALF)


def half_away(x: Fraction) -> int:
    return floor(x + HALF) if x >= 0 else ceil(x - HALF)


def fixed(scale: float) -> tuple[int, int]:
    """The scale as an integer of 31 bits and a power of two, by exact fractions."""
    exact = Fraction(scale)
    if exact == 0:
        return 0, 0
    power = 0
    while exact >= Fraction(2) ** power:
        power += 1
    while exact < Fraction(2) ** (power - 1):
        power -= 1
    number = half_away(exact / Fraction(2) ** power * 2**31)
    if number == 2**31:
        number, power = 2**30, power + 1
    return (0, 0) if power < -31 else (number, power)


def rescale(total: int, scale: float) -> int:
    number, power = fixed(scale)
    if power > 0:
        total = (total * 2**power + 2**31) % 2**32 - 2**31
    return half_away(Fraction(half_up(Fraction(total * number, 2**31)), 2 ** max(-power, 0)))


def limits(op: Any) -> tuple[int, int]:
    y = op.outputs[0]
    scale, zero = np.float32(y.scale[0]), int(y.zero[0])

    def at(real: float) -> int:
        return zero + half_away(Fraction(float(np.float32(real) / scale)))

    low, high = {"NONE": (None, None), "RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}[
        op.options.get("activation", "NONE")
    ]
    return max(-128, -128 if low is None else at(low)), min(127, 127 if high is None else at(high))


def finish(op: Any, value: int) -> int:
    low, high = limits(op)
    return min(max(value + int(op.outputs[0].zero[0]), low), high)


def channel_scales(op: Any, channels: int) -> list[float]:
    x, w = op.inputs[:2]
    y = float(op.outputs[0].scale[0])
    if op.kind == "FULLY_CONNECTED" and len(w.scale) == 1:
        return [float(np.float32(x.scale[0]) * np.float32(w.scale[0])) / y] * channels
    return [float(x.scale[0]) * float(s) / y for s in np.broadcast_to(w.scale, channels)]


def taps(op: Any, k_h: int, k_w: int) -> Any:
    """For each output pixel, the pairs of a tap and the input pixel under it, where there is one."""
    o = op.options
    _, x_h, x_w, _ = op.inputs[0].shape
    _, y_h, y_w, _ = op.outputs[0].shape
    for r in range(y_h):
        for c in range(y_w):
            inside = []
            for i in range(k_h):
                for j in range(k_w):
                    at = r * o["stride_h"] + i * o.get("dilation_h", 1) - o["pad_top"]
                    to = c * o["stride_w"] + j * o.get("dilation_w", 1) - o["pad_left"]
                    if 0 <= at < x_h and 0 <= to < x_w:
                        inside.append(((i, j), (at, to)))
            yield r, c, inside


def wrapped(total: int) -> int:
    return (total + 2**31) % 2**32 - 2**31


def conv_2d(op: Any, x: np.ndarray) -> np.ndarray:
    w = op.inputs[1].data.astype(np.int64)
    bias = op.inputs[2].data if len(op.inputs) > 2 and op.inputs[2] is not None else np.zeros(w.shape[0], np.int64)
    real = x.astype(np.int64) - int(op.inputs[0].zero[0])
    scales = channel_scales(op, w.shape[0])
    y = np.zeros(op.outputs[0].shape, np.int8)
    for n in range(x.shape[0]):
        for r, c, inside in taps(op, *w.shape[1:3]):
            for k in range(w.shape[0]):
                total = int(bias[k]) + sum(int(real[n, a, b] @ w[k, i, j]) for (i, j), (a, b) in inside)
                y[n, r, c, k] = finish(op, rescale(wrapped(total), scales[k]))
    return y


def depthwise_conv_2d(op: Any, x: np.ndarray) -> np.ndarray:
    w = op.inputs[1].data.astype(np.int64)[0]
    channels = w.shape[2]
    bias = op.inputs[2].data if len(op.inputs) > 2 and op.inputs[2] is not None else np.zeros(channels, np.int64)
    real = x.astype(np.int64) - int(op.inputs[0].zero[0])
    each = channels // x.shape[3]
    scales = channel_scales(op, channels)
    y = np.zeros(op.outputs[0].shape, np.int8)
    for n in range(x.shape[0]):
        for r, c, inside in taps(op, *w.shape[:2]):
            for k in range(channels):
                total = int(bias[k]) + sum(int(real[n, a, b, k // each] * w[i, j, k]) for (i, j), (a, b) in inside)
                y[n, r, c, k] = finish(op, rescale(wrapped(total), scales[k]))
    return y


def fully_connected(op: Any, x: np.ndarray) -> np.ndarray:
    w = op.inputs[1].data.astype(np.int64)
    bias = op.inputs[2].data if len(op.inputs) > 2 and op.inputs[2] is not None else np.zeros(w.shape[0], np.int64)
    real = x.reshape(-1, w.shape[1]).astype(np.int64) - int(op.inputs[0].zero[0])
    scales = channel_scales(op, w.shape[0])
    sums = real @ w.T
    made = [
        [finish(op, rescale(int(t) + int(b), s)) for t, b, s in zip(row, bias, scales, strict=True)] for row in sums
    ]
    return np.array(made, np.int8).reshape(op.outputs[0].shape)


def add(op: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    s1, s2, s3 = (float(t.scale[0]) for t in (*op.inputs, op.outputs[0]))
    z1, z2 = (int(t.zero[0]) for t in op.inputs)
    twice = 2 * max(s1, s2)

    def one(p: int, q: int) -> int:
        total = rescale((p - z1) * 2**20, s1 / twice) + rescale((q - z2) * 2**20, s2 / twice)
        return finish(op, rescale(total, twice / (2**20 * s3)))

    pairs = np.broadcast(a, b)
    return np.array([one(int(p), int(q)) for p, q in pairs], np.int8).reshape(op.outputs[0].shape)


def pool_2d(op: Any, x: np.ndarray) -> np.ndarray:
    low, high = limits(op)
    y = np.zeros(op.outputs[0].shape, np.int8)
    for n in range(x.shape[0]):
        for r, c, inside in taps(op, op.options["filter_h"], op.options["filter_w"]):
            values = np.array([x[n, a, b] for _, (a, b) in inside], np.int64)
            for k in range(x.shape[3]):
                if op.kind == "MAX_POOL_2D":
                    value = int(values[:, k].max())
                else:
                    value = half_away(Fraction(int(values[:, k].sum()), len(inside)))
                y[n, r, c, k] = min(max(value, low), high)
    return y


def pad(op: Any, x: np.ndarray) -> np.ndarray:
    return np.pad(x, op.options["pads"], constant_values=int(op.outputs[0].zero[0]))


def concatenation(op: Any, *parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, op.options["axis"])


def quantize(op: Any, x: np.ndarray) -> np.ndarray:
    scale = float(op.inputs[0].scale[0]) / float(op.outputs[0].scale[0])
    table = {v: finish(op, rescale(v - int(op.inputs[0].zero[0]), scale)) for v in np.unique(x).tolist()}
    return np.vectorize(table.get)(x).astype(np.int8)


REFERENCE = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "ADD": add,
    "MAX_POOL_2D": pool_2d,
    "AVERAGE_POOL_2D": pool_2d,
    "PAD": pad,
    "CONCATENATION": concatenation,
    "QUANTIZE": quantize,
}
