"""One-operator .tflite models at the extremes of their arithmetic, and inputs for them."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
from tflite_writer import Writer

ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
SAME, VALID = 0, 1

zeros = st.one_of(st.sampled_from([-128, -1, 0, 1, 127]), st.integers(-128, 127))
scales = st.one_of(
    st.sampled_from([1 / 256, 1 / 128, 0.5, 1.0, 0.0235294122248888, 3.921568847431445e-09]), st.floats(1e-4, 1.0)
)
ratios = st.one_of(st.sampled_from([2.0**-40, 2.0**-31, 2.0**-9, 0.5, 0.9999999999, 1.0, 1.5]), st.floats(1e-6, 4.0))
activations = st.sampled_from(list(ACTIVATIONS.values()))
seeds = st.integers(0, 2**32 - 1)
fills = st.sampled_from(["noise", "ends", "low", "high"])


def fill(random: np.random.Generator, how: str, shape: tuple[int, ...]) -> np.ndarray:
    """int8 values: all of them alike at an end, either end, or any."""
    if how == "low":
        return np.full(shape, -128, np.int8)
    if how == "high":
        return np.full(shape, 127, np.int8)
    if how == "ends":
        return random.choice(np.array([-128, 127], np.int8), shape)
    return random.integers(-128, 128, shape).astype(np.int8)


class Model:
    """A model file and inputs for it."""

    def __init__(self, data: bytes, inputs: list[np.ndarray]) -> None:
        self.data = data
        self.inputs = inputs


def _weights(draw: Any, random: np.random.Generator, w: Writer, shape: tuple[int, ...], channels: int, axis: int,
             x_scale: float, y_scale: float, bare: bool = True) -> tuple[int, int]:  # fmt: skip
    """Weights and bias whose channels' scales give drawn ratios of sum to output; `bare`: the bias may be missing."""
    each = draw(st.booleans())
    wanted = [draw(ratios) for _ in range(channels if each else 1)]
    w_scales = [float(np.float32(min(max(r * y_scale / x_scale, 1e-30), 1e30))) for r in wanted]
    k = w.constant("w", fill(random, draw(fills), shape), w_scales, axis)
    if bare and draw(st.booleans()):
        return k, -1
    limit = draw(st.sampled_from([100, 2**20, 2**29]))
    bias = random.integers(-limit, limit + 1, channels).astype(np.int32)
    b_scales = [float(np.float32(x_scale) * np.float32(s)) for s in w_scales]
    return k, w.constant("b", bias, b_scales)


def _x(
    draw: Any, random: np.random.Generator, w: Writer, shape: tuple[int, ...], name: str = "x"
) -> tuple[int, np.ndarray, float]:
    scale = draw(scales)
    return w.tensor(name, shape, scale, draw(zeros)), fill(random, draw(fills), shape), scale


def _window(draw: Any) -> tuple[int, int, int, int, int, int, int]:
    k_h, k_w = draw(st.sampled_from([(1, 1), (3, 3), (2, 2), (1, 3), (3, 2), (5, 5)]))
    padding = draw(st.sampled_from([SAME, VALID]))
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilation = draw(st.sampled_from([1, 1, 1, 2]))
    return k_h, k_w, padding, *stride, dilation, dilation


def _outputs(side: int, k: int, padding: int, stride: int, dilation: int) -> int:
    reach = (k - 1) * dilation + 1
    return -(-side // stride) if padding == SAME else (side - reach) // stride + 1


def _sides(draw: Any, k_h: int, k_w: int, padding: int, d_h: int, d_w: int) -> tuple[int, int]:
    least_h = (k_h - 1) * d_h + 1 if padding == VALID else 1
    least_w = (k_w - 1) * d_w + 1 if padding == VALID else 1
    return draw(st.integers(least_h, least_h + 5)), draw(st.integers(least_w, least_w + 5))


@st.composite
def convolutions(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    k_h, k_w, padding, s_h, s_w, d_h, d_w = _window(draw)
    x_h, x_w = _sides(draw, k_h, k_w, padding, d_h, d_w)
    batch, depth, channels = draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9))
    x, data, x_scale = _x(draw, random, w, (batch, x_h, x_w, depth))
    y_scale = draw(scales)
    k, b = _weights(draw, random, w, (channels, k_h, k_w, depth), channels, 0, x_scale, y_scale)
    shape = batch, _outputs(x_h, k_h, padding, s_h, d_h), _outputs(x_w, k_w, padding, s_w, d_w), channels
    y = w.tensor("y", shape, y_scale, draw(zeros))
    w.op("CONV_2D", [x, k, b], [y], 3, "Conv2DOptions", Padding=padding, StrideW=s_w, StrideH=s_h,
         DilationWFactor=d_w, DilationHFactor=d_h, FusedActivationFunction=draw(activations))  # fmt: skip
    return Model(w.finish([x], [y]), [data])


@st.composite
def depthwise_convolutions(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    k_h, k_w, padding, s_h, s_w, d_h, d_w = _window(draw)
    x_h, x_w = _sides(draw, k_h, k_w, padding, d_h, d_w)
    batch, depth, multiplier = draw(st.integers(1, 2)), draw(st.integers(1, 9)), draw(st.sampled_from([1, 1, 2, 3]))
    channels = depth * multiplier
    x, data, x_scale = _x(draw, random, w, (batch, x_h, x_w, depth))
    y_scale = draw(scales)
    k, b = _weights(
        draw, random, w, (1, k_h, k_w, channels), channels, 3, x_scale, y_scale, bare=False
    )  # the reference kernels end the process without one
    shape = batch, _outputs(x_h, k_h, padding, s_h, d_h), _outputs(x_w, k_w, padding, s_w, d_w), channels
    y = w.tensor("y", shape, y_scale, draw(zeros))
    w.op("DEPTHWISE_CONV_2D", [x, k, b], [y], 3, "DepthwiseConv2DOptions", Padding=padding, StrideW=s_w, StrideH=s_h,
         DepthMultiplier=multiplier, DilationWFactor=d_w, DilationHFactor=d_h,
         FusedActivationFunction=draw(activations))  # fmt: skip
    return Model(w.finish([x], [y]), [data])


@st.composite
def dense_layers(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    batch, depth, channels = draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 11))
    x, data, x_scale = _x(draw, random, w, (batch, depth))
    y_scale = draw(scales)
    k, b = _weights(draw, random, w, (channels, depth), channels, 0, x_scale, y_scale)
    y = w.tensor("y", (batch, channels), y_scale, draw(zeros))
    w.op("FULLY_CONNECTED", [x, k, b], [y], 4, "FullyConnectedOptions", FusedActivationFunction=draw(activations))
    return Model(w.finish([x], [y]), [data])


@st.composite
def additions(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    shape = 1, draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    a, a_data, a_scale = _x(draw, random, w, shape, "a")
    wide = draw(st.booleans())
    b_shape = shape if wide else (1, 1, 1, shape[3])
    b_scale = float(np.float32(a_scale * draw(st.sampled_from([2.0**-12, 0.3, 1.0, 1.7, 100.0]))))
    b = w.tensor("b", b_shape, b_scale, draw(zeros))
    b_data = fill(random, draw(fills), b_shape)
    # The reference refuses an output scale for which 6 is no i32.
    y_scale = float(np.float32(max(max(a_scale, b_scale) * draw(st.floats(0.01, 10.0)), 4e-9)))
    y = w.tensor("y", shape, y_scale, draw(zeros))
    pair = [(a, a_data), (b, b_data)]
    if draw(st.booleans()):
        pair.reverse()
    w.op("ADD", [n for n, _ in pair], [y], 2, "AddOptions", FusedActivationFunction=draw(activations))
    return Model(w.finish([n for n, _ in pair], [y]), [d for _, d in pair])


@st.composite
def pools(draw: Any, kind: str) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    k_h, k_w, padding, s_h, s_w, _, _ = _window(draw)
    x_h, x_w = _sides(draw, k_h, k_w, padding, 1, 1)
    batch, depth = draw(st.integers(1, 2)), draw(st.integers(1, 9))
    x, data, x_scale = _x(draw, random, w, (batch, x_h, x_w, depth))
    shape = batch, _outputs(x_h, k_h, padding, s_h, 1), _outputs(x_w, k_w, padding, s_w, 1), depth
    y = w.tensor("y", shape, w.tensors[x].scale, w.tensors[x].zero)
    w.op(f"{kind}_POOL_2D", [x], [y], 2, "Pool2DOptions", Padding=padding, StrideW=s_w, StrideH=s_h, FilterWidth=k_w,
         FilterHeight=k_h, FusedActivationFunction=draw(activations))  # fmt: skip
    return Model(w.finish([x], [y]), [data])


@st.composite
def paddings(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    x, data, _ = _x(draw, random, w, shape)
    amounts = [(draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in range(rank)]
    p = w.constant("p", np.array(amounts, np.int32))
    y_shape = [n + a + b for n, (a, b) in zip(shape, amounts, strict=True)]
    y = w.tensor("y", y_shape, w.tensors[x].scale, w.tensors[x].zero)
    w.op("PAD", [x, p], [y], 2, "PadOptions")
    return Model(w.finish([x], [y]), [data])


@st.composite
def concatenations(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(0, rank - 1))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    scale, zero = draw(scales), draw(zeros)
    parts, arrays, total = [], [], 0
    for i in range(draw(st.integers(2, 7))):
        shape[axis] = draw(st.integers(1, 4))
        total += shape[axis]
        parts.append(w.tensor(f"x{i}", tuple(shape), scale, zero))
        arrays.append(fill(random, "noise", tuple(shape)))
    shape[axis] = total
    y = w.tensor("y", tuple(shape), scale, zero)
    w.op("CONCATENATION", parts, [y], 2, "ConcatenationOptions", Axis=axis, FusedActivationFunction=0)
    return Model(w.finish(parts, [y]), arrays)


@st.composite
def softmaxes(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    rows, n = draw(st.integers(1, 3)), draw(st.integers(1, 40))
    x = w.tensor("x", (rows, n), draw(st.floats(0.001, 2.0)), draw(zeros))
    data = fill(random, draw(fills), (rows, n))
    y = w.tensor("y", (rows, n), 1 / 256, -128)
    w.op("SOFTMAX", [x], [y], 2, "SoftmaxOptions", Beta=1.0)
    return Model(w.finish([x], [y]), [data])


@st.composite
def requantizations(draw: Any) -> Model:
    w = Writer()
    random = np.random.default_rng(draw(seeds))
    shape = 1, draw(st.integers(1, 9)), draw(st.integers(1, 40))
    x, data, scale = _x(draw, random, w, shape)
    y_scale = float(np.float32(scale / draw(st.floats(1e-3, 100.0))))
    y = w.tensor("y", shape, y_scale, draw(zeros))
    w.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
    return Model(w.finish([x], [y]), [data])
