"""Makes the repository's own models, each from a fixed seed.

    python tools/make_test_model.py

writes, below the repository,

    tests/data/every_layer.tflite   each operator in the forms that go wrong easily: odd sizes, strides, padding,
                                    channel multipliers, dilation, fused activations, skips, joined results
    examples/hello_world/sine.tflite    1 -> 16 -> 16 -> 1: sine of an angle of 0 to 2 pi, trained here

and beside the first, when `tflite-micro` is installed, what that package's reference kernels answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tflite_writer import Writer

ROOT = Path(__file__).resolve().parent.parent
SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3


class Layers(Writer):
    """Layers with random weights, and scales that keep results inside int8 but use most of it."""

    def __init__(self, seed: int) -> None:
        super().__init__("made by tools/make_test_model.py")
        self.random = np.random.Generator(np.random.PCG64(seed))

    def result(self, name: str, shape: Sequence[int], spread: float) -> int:
        """A tensor whose values are expected to spread by `spread`."""
        return self.tensor(name, shape, float(np.float32(spread / 36)), int(self.random.integers(-20, 20)))

    def spread(self, x: int) -> float:
        return self.tensors[x].scale[0] * 25

    def weights(
        self, name: str, shape: Sequence[int], channels: int, axis: int, one_scale: bool = False
    ) -> tuple[int, list[float]]:
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        scales = self.random.uniform(0.002, 0.006, 1 if one_scale else channels).astype(np.float32).tolist()
        return self.constant(name, values, scales, axis), scales

    def bias(self, name: str, x: int, scales: list[float], channels: int) -> int:
        values = self.random.integers(-2000, 2000, channels).astype(np.int32)
        return self.constant(name, values, [self.tensors[x].scale[0] * s for s in scales])

    def window(self, x: int, k: tuple[int, int], stride: int, padding: int, dilation: int = 1) -> list[int]:
        made = []
        for n, size in zip(self.tensors[x].shape[1:3], k, strict=True):
            extent = (size - 1) * dilation + 1
            made.append(-(-n // stride) if padding == SAME else -(-(n - extent + 1) // stride))
        return made

    def conv(
        self,
        name: str,
        x: int,
        filters: int,
        k: tuple[int, int],
        *,
        stride: int = 1,
        padding: int = SAME,
        dilation: int = 1,
        activation: int = NONE,
        bias: bool = True,
    ) -> int:
        batch, _, _, depth = self.tensors[x].shape
        w, scales = self.weights(f"{name}/w", (filters, *k, depth), filters, 0)
        b = self.bias(f"{name}/b", x, scales, filters) if bias else -1
        spread = self.spread(x) * 0.3 * np.sqrt(depth * k[0] * k[1])
        y = self.result(name, (batch, *self.window(x, k, stride, padding, dilation), filters), spread)
        self.op(
            "CONV_2D", [x, w, b], [y], 3, "Conv2DOptions", Padding=padding, StrideW=stride, StrideH=stride,
            DilationWFactor=dilation, DilationHFactor=dilation, FusedActivationFunction=activation,
        )  # fmt: skip
        return y

    def depthwise(
        self,
        name: str,
        x: int,
        multiplier: int,
        k: tuple[int, int],
        *,
        stride: int = 1,
        padding: int = SAME,
        dilation: int = 1,
        activation: int = NONE,
    ) -> int:
        batch, _, _, depth = self.tensors[x].shape
        channels = depth * multiplier
        w, scales = self.weights(f"{name}/w", (1, *k, channels), channels, 3)
        b = self.bias(f"{name}/b", x, scales, channels)
        spread = self.spread(x) * 0.3 * np.sqrt(k[0] * k[1])
        y = self.result(name, (batch, *self.window(x, k, stride, padding, dilation), channels), spread)
        self.op(
            "DEPTHWISE_CONV_2D", [x, w, b], [y], 3, "DepthwiseConv2DOptions", Padding=padding, StrideW=stride,
            StrideH=stride, DepthMultiplier=multiplier, DilationWFactor=dilation, DilationHFactor=dilation,
            FusedActivationFunction=activation,
        )  # fmt: skip
        return y

    def pool(self, kind: str, name: str, x: int, k: tuple[int, int], stride: int, padding: int) -> int:
        t = self.tensors[x]
        y = self.tensor(name, (t.shape[0], *self.window(x, k, stride, padding), t.shape[3]), t.scale, t.zero)
        self.op(
            f"{kind}_POOL_2D", [x], [y], 2, "Pool2DOptions", Padding=padding, StrideW=stride, StrideH=stride,
            FilterWidth=k[1], FilterHeight=k[0], FusedActivationFunction=NONE,
        )  # fmt: skip
        return y

    def pad(self, name: str, x: int, amounts: list[tuple[int, int]]) -> int:
        t = self.tensors[x]
        p = self.constant(f"{name}/amounts", np.array(amounts, np.int32))
        shape = [n + a + b for n, (a, b) in zip(t.shape, amounts, strict=True)]
        y = self.tensor(name, shape, t.scale, t.zero)
        self.op("PAD", [x, p], [y], 2, "PadOptions")
        return y

    def add(self, name: str, a: int, b: int, activation: int = NONE) -> int:
        y = self.result(name, self.tensors[a].shape, float(np.hypot(self.spread(a), self.spread(b))))
        self.op("ADD", [a, b], [y], 2, "AddOptions", FusedActivationFunction=activation)
        return y

    def requantize(self, name: str, x: int, factor: float, zero: int) -> int:
        t = self.tensors[x]
        y = self.tensor(name, t.shape, float(np.float32(t.scale[0] * factor)), zero)
        self.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
        return y

    def requantize_as(self, name: str, x: int, like: int) -> int:
        y = self.tensor(name, self.tensors[x].shape, self.tensors[like].scale, self.tensors[like].zero)
        self.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
        return y

    def concatenate(self, name: str, parts: list[int], axis: int) -> int:
        t = self.tensors[parts[0]]
        shape = list(t.shape)
        shape[axis] = sum(self.tensors[p].shape[axis] for p in parts)
        y = self.tensor(name, shape, t.scale, t.zero)
        self.op("CONCATENATION", parts, [y], 2, "ConcatenationOptions", Axis=axis, FusedActivationFunction=NONE)
        return y

    def reshape(self, name: str, x: int, shape: Sequence[int]) -> int:
        t = self.tensors[x]
        target = self.constant(f"{name}/shape", np.array(shape, np.int32))
        y = self.tensor(name, shape, t.scale, t.zero)
        self.op("RESHAPE", [x, target], [y])
        return y

    def dense(
        self,
        name: str,
        x: int,
        outputs: int,
        *,
        one_scale: bool = True,
        activation: int = NONE,
        spread: float | None = None,
    ) -> int:
        batch, depth = self.tensors[x].shape
        w, scales = self.weights(f"{name}/w", (outputs, depth), outputs, 0, one_scale)
        b = self.bias(f"{name}/b", x, scales, outputs)
        y = self.result(name, (batch, outputs), spread or self.spread(x) * 0.3 * np.sqrt(depth))
        self.op(
            "FULLY_CONNECTED", [x, w, b], [y], 4, "FullyConnectedOptions", FusedActivationFunction=activation
        )  # fmt: skip
        return y

    def softmax(self, name: str, x: int) -> int:
        y = self.tensor(name, self.tensors[x].shape, 1 / 256, -128)
        self.op("SOFTMAX", [x], [y], 2, "SoftmaxOptions", Beta=1.0)
        return y


def every_layer(seed: int = 7) -> bytes:
    """A network with each operator, two outputs, and little in it that is even or square."""
    m = Layers(seed)
    x = m.tensor("picture", (1, 13, 9, 3), 0.0078125, -1)
    a = m.conv("stride_2_same", x, 8, (3, 3), stride=2, activation=RELU)
    padded = m.pad("padded", a, [(0, 0), (1, 1), (0, 2), (0, 0)])
    b = m.depthwise("multiplier_2", padded, 2, (3, 3), padding=VALID, activation=RELU6)
    c = m.conv("one_by_one", b, 16, (1, 1))
    d = m.add("skip", b, c, RELU)
    e = m.depthwise("five_by_three", d, 1, (5, 3), stride=2)
    f = m.pool("MAX", "max_pool", d, (2, 2), 2, SAME)
    f = m.conv("after_pool", f, 12, (1, 1))
    g = m.pad("wider", f, [(0, 0), (0, 0), (0, 0), (0, 4)])
    h = m.add("padded_skip", g, e)
    i = m.conv("dilated", h, 16, (3, 3), dilation=2, bias=False)
    j = m.pool("AVERAGE", "average_pool", h, (3, 2), 1, SAME)
    k = m.requantize_as("average_as_dilated", j, i)
    channels = m.concatenate("by_channel", [i, k], 3)
    n = int(np.prod(m.tensors[channels].shape))
    flat = m.reshape("flat", channels, (1, n))
    left = m.dense("dense", flat, 16, activation=RELU)
    right = m.dense("dense_by_channel", flat, 32, one_scale=False)
    right = m.requantize_as("right_as_left", right, left)
    both = m.concatenate("joined", [left, right], 1)
    logits = m.dense("logits", both, 10, spread=6.0)
    scores = m.softmax("scores", logits)
    map_ = m.requantize("map", h, 1.7, 5)
    return m.finish([x], [scores, map_])


def sine(seed: int = 1, steps: int = 6000) -> bytes:
    """Sine of an angle: trained here in float, then quantised by the ranges that it was seen to use."""
    random = np.random.Generator(np.random.PCG64(seed))
    x = np.linspace(0, 2 * np.pi, 512)[:, None]
    goal = np.sin(x)
    sizes = [1, 16, 16, 1]
    w = [random.normal(0, np.sqrt(2 / n), (n, m)) for n, m in zip(sizes, sizes[1:], strict=False)]
    b = [np.zeros(m) for m in sizes[1:]]
    b[0] = -w[0][0] * random.uniform(0, 2 * np.pi, sizes[1])  # bends spread over the whole range
    parameters = [*w, *b]
    mean = [np.zeros_like(p) for p in parameters]
    square = [np.zeros_like(p) for p in parameters]

    def forward() -> list[np.ndarray]:
        values = [x]
        for i in range(3):
            y = values[-1] @ w[i] + b[i]
            values.append(np.maximum(y, 0) if i < 2 else y)
        return values

    for step in range(1, steps + 1):  # Adam
        values = forward()
        delta = 2 * (values[3] - goal) / len(x)
        gradients: list[np.ndarray] = [np.zeros(0)] * 6
        for i in (2, 1, 0):
            gradients[i] = values[i].T @ delta
            gradients[3 + i] = delta.sum(axis=0)
            if i:
                delta = (delta @ w[i].T) * (values[i] > 0)
        rate = 0.01 * (1 - step / (steps + 1))
        for p, g, m, s in zip(parameters, gradients, mean, square, strict=True):
            m += 0.1 * (g - m)
            s += 0.001 * (g * g - s)
            p -= rate * (m / (1 - 0.9**step)) / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)

    values = forward()
    out = Writer("sine of an angle, made by tools/make_test_model.py")
    limits = [(0.0, 2 * np.pi), *((min(v.min(), 0.0), max(v.max(), 0.0)) for v in values[1:])]
    limits[3] = (-1.05, 1.05)
    scales = [float(np.float32((high - low) / 255)) for low, high in limits]
    zeros = [int(round(-128 - low / scale)) for (low, _), scale in zip(limits, scales, strict=True)]
    names = ["angle", "dense_0", "dense_1", "sine"]
    tensors = [out.tensor(n, (1, m), s, z) for n, m, s, z in zip(names, sizes, scales, zeros, strict=True)]
    for i in range(3):
        scale = float(np.float32(np.abs(w[i]).max() / 127))
        k = out.constant(f"{names[i + 1]}/w", np.rint(w[i].T / scale).astype(np.int8), [scale])
        bias_scale = scales[i] * scale
        c = out.constant(f"{names[i + 1]}/b", np.rint(b[i] / bias_scale).astype(np.int32), [bias_scale])
        out.op(
            "FULLY_CONNECTED", [tensors[i], k, c], [tensors[i + 1]], 4, "FullyConnectedOptions",
            FusedActivationFunction=RELU if i < 2 else NONE,
        )  # fmt: skip
    return out.finish([tensors[0]], [tensors[3]])


def main() -> None:
    from judge import judge, to_text

    models = {
        ROOT / "tests/data/every_layer.tflite": every_layer(),
        ROOT / "examples/hello_world/sine.tflite": sine(),
    }
    for path, data in models.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{path.relative_to(ROOT)}: {len(data)} bytes")
        answers = ROOT / "tests/data" / f"{path.stem}.json"
        try:
            result = judge(data, path.stem, None, 6)
        except ImportError:
            print(f"{answers.relative_to(ROOT)}: not made, tflite-micro is not installed")
            continue
        answers.write_text(to_text(result))
        print(f"{answers.relative_to(ROOT)}: {len(json.dumps(result))} bytes")


if __name__ == "__main__":
    main()
