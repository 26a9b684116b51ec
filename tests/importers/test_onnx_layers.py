"""Every operator of an .onnx beside onnxruntime's own result: at most 1 apart, on this machine and on a Cortex-M."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx", reason="no onnx package for this Python or machine")
pytest.importorskip("onnxruntime", reason="no onnxruntime for this Python or machine")
from make_onnx_models import MODELS, Network, Quantized  # noqa: E402
from onnx_layers import largest_differences  # noqa: E402

from synapticos.engine import Build  # noqa: E402
from synapticos.importers.onnx import OPERATORS  # noqa: E402
from synapticos.model.verify import ROOTS  # noqa: E402


@pytest.fixture(scope="module")
def native():
    return Build(list(ROOTS)).engine("native")


@pytest.fixture(scope="module", params=["native", "cortex-m"])
def engine(request):
    return Build(list(ROOTS)).engine(request.param)


@pytest.mark.parametrize("optimize", ["none", "default"])
@pytest.mark.parametrize("name", MODELS)
def test_networks_of_the_static_quantiser_are_at_most_1_apart(engine, name, optimize):
    found = largest_differences(engine, MODELS[name](), 4, optimize)
    assert found and max(found.values()) <= 1, found


# ---- each operator ----


def one(kind, *shapes, scale=0.05, zero=0, **attributes):
    """A model of one operator of computed inputs."""

    def make():
        m = Quantized(1)
        inputs = [m.input(shape, 0.04 + 0.01 * i, 3 - 8 * i) for i, shape in enumerate(shapes)]
        return m.finish(m.op(kind, inputs, scale, zero, **attributes))

    return make


def moving(kind, shape, *constants, **attributes):
    """A model of one operator that gives its input's scale, with further inputs that are integers, and one behind it."""

    def make():
        m = Quantized(2)
        x = m.input(shape, 0.04, 3)
        y = m.op(kind, [x, *(m.ints(*c) for c in constants)], 0.04, 3, **attributes)
        return m.finish(m.op("Neg", [y], 0.05, 2))

    return make


def with_number(kind, number, at, scale=0.05, zero=0):
    def make():
        m = Quantized(3)
        x = m.input((1, 5, 6, 4), 0.03, -20)
        inputs = [x, m.const(np.float32(number))]
        return m.finish(m.op(kind, inputs if at else inputs[::-1], scale, zero))

    return make


def with_constant(kind, shape, const, scale=0.05, axis=None):
    """Element by element with a quantised constant."""

    def make():
        m = Quantized(4)
        x = m.input(shape, 0.03, -20)
        w = m.weights(m.random.integers(-128, 128, const).astype(np.int8), 0.02, zero=5)
        return m.finish(m.op(kind, [x, w], scale, 7))

    return make


def linear(mode, scales, how="linear", nearest="floor"):
    def make():
        m = Quantized(5)
        x = m.input((1, 3, 7, 9), 0.04, 3)
        inputs = [x, "", m.const(np.array((1, 1, *scales), np.float32))]
        return m.finish(
            m.op("Resize", inputs, 0.04, 3, mode=how, coordinate_transformation_mode=mode, nearest_mode=nearest)
        )

    return make


def padded(amounts, value=None, mode="constant"):
    def make():
        m = Quantized(6)
        x = m.input((1, 3, 5, 6), 0.04, 3)
        inputs = [x, m.ints(*amounts)] + ([m.const(np.float32(value))] if value is not None else [])
        return m.finish(m.op("Pad", inputs, 0.04, 3, mode=mode))

    return make


def joined(*scales):
    def make():
        m = Quantized(7)
        inputs = [m.input((1, 2 + i, 4, 3), scale, i) for i, scale in enumerate(scales)]
        inputs.append(m.weights(m.random.integers(-128, 128, (1, 2, 4, 3)).astype(np.int8), 0.03))
        return m.finish(m.op("Concat", inputs, 0.05, -3, axis=1))

    return make


def parts():
    m = Quantized(8)
    x = m.input((1, 6, 4, 3), 0.04, 3)
    m.nodes.append(__import__("onnx").helper.make_node("Split", [x, m.ints(2, 4)], ["a", "b"], axis=1))
    return m.finish(m._pair("a", 0.04, 3, np.int8), m._pair("b", 0.05, -3, np.int8))


def clipped_convolution():
    """Ends that no fused activation has, and a scale at which they lie inside the int8."""
    m = Quantized(9)
    x = m.input((1, 4, 6, 6), 0.05, 4)
    w = m.weights(m.random.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8), m.random.uniform(0.001, 0.01, 8))
    ends = [m.const(np.float32(-0.7)), m.const(np.float32(1.3))]
    return m.finish(m.op("Conv", [x, w], 0.03, -10, relu=ends))


def dense_behind_a_picture():
    m = Quantized(10)
    x = m.input((2, 3, 4, 5), 0.05, 4)
    f = m.op("Reshape", [x, m.ints(2, -1)], 0.05, 4)
    w = m.weights(m.random.integers(-127, 128, (60, 7)).astype(np.int8), m.random.uniform(0.001, 0.01, 7), axis=1)
    return m.finish(m.op("MatMul", [f, w], 0.2, 4))


FUNCTIONS = {
    "Abs": {}, "Elu": {"alpha": 0.7}, "Erf": {}, "Exp": {}, "HardSigmoid": {}, "HardSwish": {}, "LeakyRelu": {"alpha": 0.3},
    "Mish": {}, "Neg": {}, "Relu": {}, "Sigmoid": {}, "Softplus": {}, "Softsign": {}, "Sqrt": {}, "Tanh": {}, "Log": {},
    "Reciprocal": {}, "Gelu": {"approximate": "tanh"},
}  # fmt: skip
PICTURE = (1, 4, 5, 6)


def function(kind):
    def make():
        m = Quantized(11)
        # Roots, logarithms and reciprocals of what has them.
        x = m.input(PICTURE, 0.03, -20) if kind not in ("Sqrt", "Log", "Reciprocal") else m.input(PICTURE, 0.02, -128)
        if kind in ("Log", "Reciprocal"):
            x = m.op("Add", [x, m.const(np.float32(0.3))], 0.02, -128)
        return m.finish(m.op(kind, [x], 0.011, -30, **FUNCTIONS[kind]), opset=22)

    return make


CASES = {
    **{kind: function(kind) for kind in FUNCTIONS},
    "Add": one("Add", PICTURE, PICTURE), "Add by rows": one("Add", PICTURE, (4, 1, 1)), "Sub": one("Sub", PICTURE, (6,)),
    "Mul": one("Mul", PICTURE, PICTURE, scale=0.1), "Mul by channels": one("Mul", PICTURE, (1, 4, 1, 1), scale=0.1),
    "Mul by a constant": with_constant("Mul", PICTURE, (4, 1, 1)), "Add of a constant": with_constant("Add", PICTURE, (1, 4, 1, 1)),
    "PRelu": with_constant("PRelu", PICTURE, (4, 1, 1)), "Add in three dimensions": one("Add", (2, 3, 4), (3, 1)),
    "Max": lambda: same_scales("Max"), "Min": lambda: same_scales("Min"),
    "Add of a number": with_number("Add", 0.7, 1), "Sub from a number": with_number("Sub", 0.7, 0),
    "Div by a number": with_number("Div", 1.7, 1), "Div of a number": with_number("Div", 0.4, 0), "Mul with a number": with_number("Mul", -1.3, 1),
    "Clip": lambda: clip_alone(), "clipped Conv": clipped_convolution, "MatMul behind a picture": dense_behind_a_picture,
    "Concat": joined(0.04, 0.05, 0.06), "Split": parts, "Identity": moving("Identity", PICTURE),
    "AveragePool to another scale": one("AveragePool", PICTURE, scale=0.03, kernel_shape=[2, 3], count_include_pad=1, pads=[1, 0, 1, 2]),
    "lines": lambda: lines(), "Softmax of lines": one("Softmax", (2, 5, 6), scale=1 / 256, zero=-128, axis=1),
    "Softmax": one("Softmax", (3, 20), scale=1 / 256, zero=-128, axis=-1),
    "Softmax at another scale": one("Softmax", (3, 20), scale=1 / 255, zero=-128, axis=1),
    "Softmax of channels": one("Softmax", PICTURE, scale=1 / 256, zero=-128, axis=1),
    "Softmax of columns": one("Softmax", PICTURE, scale=1 / 256, zero=-128, axis=3),
    "GlobalAveragePool": one("GlobalAveragePool", PICTURE, scale=0.02), "GlobalMaxPool": moving("GlobalMaxPool", PICTURE),
    "ReduceMean": one("ReduceMean", PICTURE, scale=0.02, axes=[2, 3], keepdims=0), "ReduceMean of channels": one("ReduceMean", PICTURE, axes=[1]),
    "ReduceMean of lines": one("ReduceMean", PICTURE, axes=[2], keepdims=0), "ReduceMax": moving("ReduceMax", PICTURE, axes=[3], keepdims=0),
    "ReduceSum": one("ReduceSum", (3, 8), scale=0.3), "Transpose": moving("Transpose", PICTURE, perm=[0, 1, 3, 2]),
    "Transpose of three": moving("Transpose", (2, 3, 4), perm=[2, 0, 1]), "Transpose to the end": moving("Transpose", PICTURE, perm=[0, 2, 3, 1]),
    "Flatten": moving("Flatten", PICTURE), "Reshape": moving("Reshape", PICTURE, (0, 8, -1)), "Reshape to a picture": moving("Reshape", (2, 60), (2, 3, 4, 5)),
    "Squeeze": moving("Squeeze", (1, 4, 1, 6), (2,)), "Unsqueeze": moving("Unsqueeze", (3, 4), (0, 3)),
    "Slice": moving("Slice", PICTURE, (1, 5), (3, -7), (1, 3), (1, -2)), "Gather": lambda: gathered(),
    "Pad": padded((0, 0, 1, 2, 0, 0, 0, 3)), "Pad channels": padded((0, 2, 0, 0, 0, 1, 0, 0)), "Pad with a number": padded((0, 0, 1, 2, 0, 1, 0, 3), 1.234),
    "Pad mirrored": padded((0, 0, 1, 2, 0, 0, 2, 3), mode="reflect"),
    "DepthToSpace": moving("DepthToSpace", (1, 12, 3, 4), blocksize=2), "DepthToSpace CRD": moving("DepthToSpace", (1, 12, 3, 4), blocksize=2, mode="CRD"),
    "SpaceToDepth": moving("SpaceToDepth", (1, 3, 4, 6), blocksize=2),
    "Resize nearest": linear("asymmetric", (2, 3), "nearest"), "Resize nearest half": linear("half_pixel", (2, 1.5), "nearest", "round_prefer_floor"),
    "Resize linear": linear("half_pixel", (2, 2)), "Resize linear by 3": linear("half_pixel", (3, 3)),
    "Resize linear asymmetric": linear("asymmetric", (2, 4)), "Resize linear corners": linear("align_corners", (3, 2)),
    "Resize linear smaller": linear("pytorch_half_pixel", (0.5, 0.7)),
}  # fmt: skip


def test_a_much_finer_scale_behind_what_is_rounded_is_refused():
    from synapticos.model import UnsupportedModel

    m = Quantized(15)
    y = m.op("AveragePool", [m.input(PICTURE, 0.05, 3)], 0.02, 3, kernel_shape=[2, 2])
    with pytest.raises(UnsupportedModel, match="a scale of 0.02 behind 0.05"):
        largest_differences(None, m.finish(y))


def lines():
    """[batch, channels, length] through all that has it."""
    m = Quantized(16)
    x = m.input((2, 4, 16), 0.05, 3)
    t = m.op("Conv", [x, m.weights(m.random.integers(-127, 128, (6, 4, 3)).astype(np.int8), m.random.uniform(0.002, 0.01, 6))], 0.1, 4, pads=[1, 2], strides=[2], relu=[])
    u = m.op("Conv", [t, m.weights(m.random.integers(-127, 128, (6, 1, 5)).astype(np.int8), 0.01)], 0.05, -4, group=6, dilations=[2], auto_pad="NOTSET", pads=[4, 4])
    t = m.op("Add", [t, u], 0.11, 1)
    t = m.op("Concat", [m.op("MaxPool", [t], 0.11, 1, kernel_shape=[3], pads=[1, 1], strides=[2]), m.op("AveragePool", [t], 0.11, 1, kernel_shape=[2], strides=[2])], 0.11, 1, axis=2)
    v = m.op("ConvTranspose", [t, m.weights(m.random.integers(-127, 128, (6, 3, 4)).astype(np.int8), 0.01)], 0.15, 1, strides=[2], pads=[1, 1])
    f = m.op("Flatten", [t], 0.11, 1)
    y = m.op("Gemm", [f, m.weights(m.random.integers(-127, 128, (5, 54)).astype(np.int8), 0.004)], 0.2, 4, transB=1)
    return m.finish(y, v, m.op("GlobalAveragePool", [t], 0.1, 0), m.op("Transpose", [u], 0.05, -4, perm=[0, 2, 1]))


def same_scales(kind):
    m = Quantized(12)
    return m.finish(m.op(kind, [m.input(PICTURE, 0.05, 3), m.input((4, 5, 6), 0.05, 3)], 0.06, 1))


def clip_alone():
    m = Quantized(13)
    return m.finish(m.op("Clip", [m.input(PICTURE, 0.05, 3), m.const(np.float32(-1)), m.const(np.float32(2.5))], 0.02, 1))


def gathered():
    m = Quantized(14)
    return m.finish(m.op("Gather", [m.input(PICTURE, 0.05, 3), m.ints(3, -4, 0)], 0.05, 3, axis=1))


@pytest.mark.parametrize("name", CASES)
def test_each_operator_is_at_most_1_apart(engine, name):
    found = largest_differences(engine, CASES[name]())
    assert max(found.values(), default=0) <= 1, found


def test_every_operator_of_the_table_is_compared():
    """Here, in the networks, or below by its shapes."""
    kinds = {word for name in CASES for word in name.split()} | {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "Gemm"}
    assert set(OPERATORS) - kinds == {"Dropout"}


# ---- shapes ----


@st.composite
def windows(draw):
    """Height, width, and a window that fits."""
    h, w = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    k = [draw(st.integers(1, 4)), draw(st.integers(1, 4))]
    dilations = [draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([1, 1, 3]))]
    extents = [(n - 1) * d + 1 for n, d in zip(k, dilations)]
    attributes = {"strides": [draw(st.integers(1, 3)), draw(st.integers(1, 3))]}
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k[0] - 1)), draw(st.integers(0, k[1] - 1)), draw(st.integers(0, k[0] - 1)), draw(st.integers(0, k[1] - 1))]
        h, w = max(h, extents[0] - attributes["pads"][0]), max(w, extents[1] - attributes["pads"][1])
    else:
        attributes["auto_pad"] = auto
        if auto.startswith("SAME"):  # onnxruntime has neither dilation nor gaps there
            dilations, extents = [1, 1], k
            attributes["strides"] = [min(s, n) for s, n in zip(attributes["strides"], k)]
        h, w = max(h, extents[0]), max(w, extents[1])
    return h, w, k, dilations, attributes


SETTINGS = dict(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
numbers = st.integers(-128, 127)


@settings(**SETTINGS)
@given(windows(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans(), numbers, numbers, st.integers(0, 1000), st.integers(1, 2))
def test_convolutions_of_any_shape(native, window, groups, part, each, relu, x_zero, y_zero, seed, batch):
    h, w, k, dilations, attributes = window
    m = Quantized(seed)
    x = m.input((batch, groups * part, h, w), 0.05, x_zero)
    scales = m.random.uniform(0.001, 0.02, groups * each) if seed % 2 else 0.01
    weights = m.weights(m.random.integers(-127, 128, (groups * each, part, *k)).astype(np.int8), scales)
    inputs = [x, weights]
    if seed % 3:
        inputs.append(m.bias(m.random.integers(-3000, 3000, groups * each), x, scales))
    relu_ends = [] if relu else None
    y = m.op("Conv", inputs, 0.1, y_zero, group=groups, dilations=dilations, relu=relu_ends, **attributes)
    found = largest_differences(native, m.finish(y))
    assert max(found.values()) <= 1, found


@settings(**SETTINGS)
@given(windows(), st.sampled_from(["MaxPool", "AveragePool"]), st.integers(1, 5), st.booleans(), st.booleans(), numbers)
def test_pools_of_any_shape(native, window, kind, channels, flag, ceil, zero):
    from synapticos.model import UnsupportedModel

    h, w, k, _, attributes = window
    if kind == "AveragePool":
        attributes["count_include_pad"] = int(flag)
    m = Quantized(zero + 200)
    x = m.input((1, channels, h, w), 0.05, zero)
    y = m.op(kind, [x], 0.05, zero, kernel_shape=k, ceil_mode=int(ceil and "auto_pad" not in attributes), **attributes)
    data = m.finish(y, opset=22)
    try:
        found = largest_differences(native, data)
    except UnsupportedModel as error:
        fact = error.problems[0].fact
        assert "ceil_mode" in fact or "in the padding only" in fact
        return
    assert max(found.values()) <= 1, found


@settings(**SETTINGS)
@given(st.integers(1, 3), st.integers(1, 70), st.integers(1, 9), st.booleans(), st.sampled_from(["Gemm", "MatMul"]), numbers, numbers, st.integers(0, 1000))
def test_dense_layers_of_any_shape(native, batch, depth, out, turned, kind, x_zero, y_zero, seed):
    m = Quantized(seed)
    x = m.input((batch, depth), 0.05, x_zero)
    turned = turned and kind == "Gemm"
    array = m.random.integers(-127, 128, (out, depth) if turned else (depth, out)).astype(np.int8)
    scales = m.random.uniform(0.001, 0.02, out) if seed % 2 else 0.01
    inputs = [x, m.weights(array, scales, 0 if turned else 1)]
    if kind == "Gemm" and seed % 3:
        inputs.append(m.bias(m.random.integers(-3000, 3000, out), x, scales))
    y = m.op(kind, inputs, 0.01 * math.sqrt(depth), y_zero, **({"transB": int(turned)} if kind == "Gemm" else {}))
    found = largest_differences(native, m.finish(y))
    assert max(found.values()) <= 1, found


@settings(**SETTINGS | {"max_examples": 30})
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2), st.integers(0, 1000))
def test_transposed_convolutions_of_any_shape(native, h, w, depth, stride, k, pad, seed):
    m = Quantized(seed)
    x = m.input((1, depth, h, w), 0.05, seed % 200 - 100)
    pad = min(pad, (k - 1) // 2)
    more = seed % stride
    scales = m.random.uniform(0.001, 0.02, 4) if seed % 2 else 0.01
    weights = m.weights(m.random.integers(-127, 128, (depth, 4, k, k)).astype(np.int8), scales, axis=1)
    inputs = [x, weights, m.bias(m.random.integers(-3000, 3000, 4), x, scales)]
    y = m.op("ConvTranspose", inputs, 0.1, 3, strides=[stride] * 2, pads=[pad] * 4, output_padding=[more] * 2)
    found = largest_differences(native, m.finish(y))
    assert max(found.values()) <= 1, found


@pytest.mark.parametrize("weights, activations, per_channel, pairs", [("QInt8", "QInt8", False, False), ("QInt8", "QUInt8", True, False), ("QInt8", "QInt8", True, True)])
def test_each_way_to_quantize(native, weights, activations, per_channel, pairs):
    m = Network(20, (1, 3, 10, 10))
    t = m.op("Relu", [m.conv("x", 3, 8, 3, pads=[1, 1, 1, 1])])
    t = m.conv(m.op("MaxPool", [t], kernel_shape=[2, 2], strides=[2, 2]), 8, 4, 3, kind="ConvTranspose", strides=[2, 2])
    y = m.gemm(m.op("Flatten", [t]), 4 * 11 * 11, 5)
    options = {"extra_options": {"AddQDQPairToWeight": True}} if pairs else {}
    data = m.quantized(y, weights=weights, activations=activations, per_channel=per_channel, **options)
    found = largest_differences(native, data)
    assert max(found.values()) <= 1, found
