"""What the reader of .onnx takes, and what it says of what it does not."""

import builtins
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synapticos import importers
from synapticos.errors import UserError
from synapticos.model import UnsupportedModel, compile_model

onnx = pytest.importorskip("onnx", reason="no onnx package for this Python or machine")
from make_onnx_models import Network, Quantized, pictures  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402


def small(**attributes) -> Quantized:
    m = Quantized(1)
    x = m.input((1, 4, 8, 8), 0.05, 3)
    w = m.weights(np.ones((6, 4, 3, 3), np.int8), np.full(6, 0.01))
    m.y = m.op("Conv", [x, w], 0.1, 5, **attributes)
    return m


def finished(**options) -> bytes:
    m = small()
    return m.finish(m.y, **options)


def read(data: bytes):
    return importers.read(data, "m", "m.onnx")


# ---- what it becomes ----


def test_pictures_have_their_channels_last():
    m = small(strides=[2, 2], pads=[0, 0, 1, 1])
    graph = read(m.finish(m.y))
    (op,) = graph.ops
    assert graph.inputs[0].shape == (1, 8, 8, 4) and graph.outputs[0].shape == (1, 4, 4, 6)
    assert op.kind == "CONV_2D" and op.inputs[1].shape == (6, 3, 3, 4) and op.inputs[1].axis == 0
    assert {k: op.options[k] for k in ("pad_top", "pad_bottom", "pad_left", "pad_right")} == {
        "pad_top": 0,
        "pad_bottom": 1,
        "pad_left": 0,
        "pad_right": 1,
    }
    assert (graph.inputs[0].name, graph.outputs[0].name) == ("x_1", m.y)
    assert (float(graph.inputs[0].scale[0]), int(graph.inputs[0].zero[0])) == (pytest.approx(0.05), 3)


def test_a_flattened_picture_needs_no_transpose_before_a_dense_layer():
    m = Quantized(2)
    x = m.input((1, 3, 4, 5), 0.05, 4)
    f = m.op("Flatten", [x], 0.05, 4)
    array = m.random.integers(-127, 128, (7, 60)).astype(np.int8)
    graph = read(m.finish(m.op("Gemm", [f, m.weights(array, 0.01)], transB=1)))
    assert [op.kind for op in graph.ops] == ["RESHAPE", "FULLY_CONNECTED"]
    wanted = array.reshape(7, 3, 4, 5).transpose(0, 2, 3, 1).reshape(7, 60)
    assert np.array_equal(graph.ops[1].inputs[1].data, wanted)


def test_sound_has_its_channels_last_and_needs_no_transpose():
    from test_onnx_layers import lines

    graph = read(lines())
    assert graph.inputs[0].shape == (2, 16, 4)
    assert "TRANSPOSE" not in [op.kind for op in graph.ops]


def test_a_flattened_picture_that_is_a_result_has_the_file_s_order():
    m = Quantized(2)
    x = m.op("Neg", [m.input((1, 3, 4, 5), 0.05, 4)], 0.05, 4)
    graph = read(m.finish(m.op("Flatten", [x], 0.05, 4)))
    assert [op.kind for op in graph.ops] == ["LOOKUP", "TRANSPOSE", "RESHAPE"]


def test_a_file_that_turns_its_input_has_no_transpose_left():
    m = Network(3, (1, 8, 6, 3))
    t = m.conv(m.op("Transpose", ["x"], perm=[0, 3, 1, 2]), 3, 4, 3)
    pytest.importorskip("onnxruntime")
    graph = read(m.quantized(m.op("Transpose", [t], perm=[0, 2, 3, 1])))
    assert [op.kind for op in graph.ops] == ["CONV_2D"]
    assert graph.inputs[0].shape == (1, 8, 6, 3) and graph.outputs[0].shape == (1, 6, 4, 4)


@pytest.mark.parametrize("ends, activation", [([0, 6], "RELU6"), ([0, 100], "RELU"), ([-100, 100], "NONE")])
def test_an_activation_between_reals_is_fused(ends, activation):
    m = Quantized(4)
    x = m.input((1, 4), 0.05, 4)
    clip = [m.const(np.float32(e)) for e in ends]
    w = m.weights(np.ones((5, 4), np.int8), 0.01)
    (op,) = read(m.finish(m.op("Gemm", [x, w], 0.1, 0, relu=clip, transB=1))).ops
    assert op.options["activation"] == activation


def test_the_bias_has_the_scale_of_input_times_weights():
    m = Quantized(5)
    x = m.input((1, 4), 0.05, 4)
    scales = np.array([0.01, 0.02, 0.03], np.float32)
    w = m.weights(np.ones((3, 4), np.int8), scales)
    kept = read(m.finish(m.op("Gemm", [x, w, m.bias([1, -2, 3], x, scales)], 0.1, 0, transB=1))).ops[0].inputs[2]
    assert kept.dtype == "int32" and kept.data.tolist() == [1, -2, 3]
    m = Quantized(5)
    x = m.input((1, 4), 0.05, 4)
    w = m.weights(np.ones((3, 4), np.int8), scales)
    real = m.const(np.array([0.0051, -0.02, 0.3], np.float32))
    made = read(m.finish(m.op("Gemm", [x, w, real], 0.1, 0, transB=1))).ops[0].inputs[2]
    assert made.data.tolist() == [10, -20, 200]


def test_an_open_batch_is_one():
    m = small()
    m.inputs[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    assert read(m.finish(m.y)).inputs[0].shape == (1, 8, 8, 4)


def test_a_zero_point_that_is_not_said_is_0_of_the_integers_type():
    m = Quantized(8)
    x = m.input((1, 4), 0.05, 0)
    for node in m.nodes:
        node.input.pop() if node.op_type == "DequantizeLinear" else None
    assert int(read(m.finish(m.op("Neg", [x]))).inputs[0].zero[0]) == 0
    m = Quantized(8)
    x = m.input((1, 4), 0.05, 0, dtype=np.uint8)
    for node in m.nodes:
        node.input.pop()
    assert int(read(m.finish(m.op("Neg", [x]))).inputs[0].zero[0]) == -128


def test_a_bias_that_no_sum_can_hold_is_refused():
    m = Quantized(5)
    x = m.input((1, 4), 0.05, 4)
    y = m.op("Gemm", [x, m.weights(np.ones((3, 4), np.int8), 0.01), m.bias([1, -2, 1 << 30], x, 0.01)], transB=1)
    with pytest.raises(UnsupportedModel, match="2\\*\\*30 units"):
        read(m.finish(y))


def test_the_format_is_seen_without_its_name():
    data = finished()
    assert importers.read(data, "m").ops[0].kind == "CONV_2D"


# ---- what it refuses ----


def chain(opset=17):
    """A network with three things that cannot be compiled, far apart."""
    m = Quantized(6)
    x = m.input((1, 4, 8, 8), 0.05, 3)
    t = m.op("Det2", [x])
    for _ in range(3):
        t = m.op("Conv", [t, m.weights(np.ones((4, 4, 1, 1), np.int8), 0.01)])
    t = m.op("MaxPool", [t], kernel_shape=[2, 2], dilations=[2, 2])
    t = m.op("Conv", [t, m.weights(np.ones((4, 4, 1, 1), np.int8), 0.01, zero=3)])
    t = m.op("Relu", [t], 0.01, 0, dtype=np.int16)
    m.op("Relu", [t])
    onnx_model = onnx.ModelProto.FromString(m.finish(m.op("Relu", [t])))
    for node in onnx_model.graph.node:
        if node.op_type in ("Det2", "MaxPool", "Conv"):
            shape = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, (1, 4, 6, 6))
            onnx_model.graph.value_info.append(shape)
    return onnx_model.SerializeToString()


def test_all_that_cannot_be_compiled_is_in_one_report():
    with pytest.raises(UnsupportedModel) as caught:
        read(chain())
    problems = caught.value.problems
    assert [p.operator for p in problems] == ["Det2", "MaxPool", "Conv", "Relu"]
    assert [p.node for p in problems] == sorted(p.node for p in problems)
    assert problems[0].fact == "unknown operator" and "x_1_dq" in problems[0].tensors
    assert problems[1].fact == "dilation" and "no dilation" in problems[1].nearest
    assert problems[2].types == "int8, int8 -> int8" and "zero point 0" in problems[2].nearest
    assert "int16" in problems[3].fact and "QInt8" in problems[3].nearest and problems[3].types == "int8 -> int16"
    text = str(caught.value)
    assert text.startswith("m.onnx: 4 operators cannot be compiled\n") and len(text.splitlines()) == 5
    assert len(json.loads(json.dumps(caught.value.to_json()))["problems"]) == 4


def float_model():
    return Network(7, (1, 4)), lambda m: m.finish(m.gemm("x", 4, 3)).SerializeToString()


def test_a_float_model_is_told_how_to_become_int8():
    m, finish = float_model()
    with pytest.raises(UserError, match="quantize_static") as caught:
        read(finish(m))
    assert "\n" not in str(caught.value)


def test_a_model_of_quantised_operators_is_told_of_the_other_form():
    nodes = [helper.make_node("QLinearConv", ["x"] * 8, ["y"])]
    given = [helper.make_tensor_value_info(n, TensorProto.INT8, [1, 4]) for n in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", given[:1], given[1:]), opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(UnsupportedModel, match="QuantFormat.QDQ"):
        read(model.SerializeToString())


def test_a_result_that_stays_float_is_named():
    m = small()
    m.nodes.append(helper.make_node("Softmax", [m.y], ["y"]))
    with pytest.raises(UnsupportedModel, match='Softmax version 17 .* its result "y" stays float'):
        read(m.finish("y"))


@pytest.mark.parametrize("opset", [12, 99])
def test_an_opset_that_is_not_known_is_named(opset):
    with pytest.raises(UserError, match=f"m.onnx: opset {opset} is not among 13 to "):
        read(finished(opset=opset))


def test_without_the_package_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *rest, **more)

    data = finished()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"m.onnx: the onnx package is not installed: pip install synapticos\[onnx\]"):
        read(data)


def node_of(model, kind):
    return next(n for n in model.graph.node if n.op_type == kind)


def array_of(model, name):
    return next(t for t in model.graph.initializer if t.name == name)


def cut_constant(model):
    model.graph.initializer[0].raw_data = b"12"


def huge_constant(model):
    model.graph.initializer[-1].dims[:] = [1 << 30, 1 << 30]


def outside(model):
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL


def negative_scale(model):
    array_of(model, node_of(model, "QuantizeLinear").input[1]).CopyFrom(
        onnx.numpy_helper.from_array(np.float32(-1), node_of(model, "QuantizeLinear").input[1])
    )


def unwritten(model):
    node_of(model, "Conv").input[0] = "nowhere"


def written_twice(model):
    model.graph.node.append(node_of(model, "Conv"))


def open_shape(model):
    model.graph.input[0].type.tensor_type.shape.dim[2].Clear()


def huge_input(model):
    for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = 1 << 30


def no_shape(model):
    model.graph.input[0].type.tensor_type.shape.Clear()


def strange_stride(model):
    node_of(model, "Conv").attribute.append(helper.make_attribute("strides", [0, 1]))


def strange_type(model):
    node_of(model, "Conv").attribute.append(helper.make_attribute("strides", "two"))


def strange_group(model):
    node_of(model, "Conv").attribute.append(helper.make_attribute("group", 3))


def no_nodes(model):
    del model.graph.node[:]


def no_outputs(model):
    del model.graph.output[:]


def output_of_nothing(model):
    model.graph.output[0].name = "nowhere"


def too_many_inputs(model):
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]))


@pytest.mark.parametrize(
    "change, words",
    [
        (cut_constant, "cannot be read"), (huge_constant, "cannot be read"), (outside, "in another file"),
        (negative_scale, "no positive number"), (unwritten, "before anything writes it"), (written_twice, "there already"),
        (open_shape, "open shape"), (huge_input, "sides of 1 or more"), (no_shape, "dimensions"), (strange_stride, "stride 0"),
        (strange_type, "attribute strides is no list"), (strange_group, "3 groups"), (no_nodes, "without nodes"),
        (no_outputs, "no input or no output"), (output_of_nothing, "nowhere"), (too_many_inputs, "nothing reads"),
    ],
)  # fmt: skip
def test_a_model_that_contradicts_itself_is_refused(change, words):
    model = onnx.ModelProto.FromString(finished())
    change(model)
    with pytest.raises(UserError) as caught:
        read(model.SerializeToString())
    assert str(caught.value).startswith("m.onnx: ") and words in str(caught.value)


@pytest.mark.parametrize("content, words", [(b"", "empty"), (b"\x00" * 40, "damaged"), (b"SYNM" + bytes(90), "compiled container")])
def test_a_file_that_is_no_model_is_one_clear_line(tmp_path, content, words):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        importers.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and words in text and "\n" not in text


# ---- damage ----


@pytest.fixture(scope="module")
def whole():
    pytest.importorskip("onnxruntime", reason="no onnxruntime for this Python or machine")
    return pictures()


def read_and_compile(data: bytes) -> str:
    try:
        compile_model(read(data))
    except UserError as error:
        assert str(error).startswith("m.onnx: ")
        return "refused"
    return "compiled"


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_file_is_refused_or_compiles(whole, changes):
    data = bytearray(whole)
    for where, value in changes:
        data[int(where * len(data))] = value
    read_and_compile(bytes(data))


def test_a_file_cut_anywhere_is_refused_or_compiles():
    data = finished()
    for end in range(0, len(data), 7):
        read_and_compile(data[:end])


def test_damage_to_the_records_is_refused_or_compiles(whole):
    """Bytes of a protobuf are mostly names and weights; here its numbers, names and lists are changed themselves."""
    random = np.random.Generator(np.random.PCG64(12))
    model = onnx.ModelProto.FromString(whole)
    numbers = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 5, 7, 255, 65_536, (1 << 31) - 1, 1 << 40, (1 << 63) - 1]
    seen = set()
    for _ in range(400):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        for _ in range(int(random.integers(1, 3))):
            nodes, constants = copy.graph.node, copy.graph.initializer
            node = nodes[int(random.integers(len(nodes)))]
            array = constants[int(random.integers(len(constants)))]
            names = [name for n in nodes for name in n.output] + [a.name for a in constants] + ["", "nowhere"]

            def some(values):
                return values[int(random.integers(len(values)))]

            match int(random.integers(9)):
                case 0 if node.input:
                    node.input[int(random.integers(len(node.input)))] = some(names)
                case 1:
                    node.op_type = some(nodes).op_type
                case 2 if node.attribute:
                    attribute = some(node.attribute)
                    if attribute.ints:
                        attribute.ints[int(random.integers(len(attribute.ints)))] = some(numbers)
                    else:
                        attribute.i = some(numbers)
                case 3:
                    other = onnx.numpy_helper.to_array(some(constants))
                    array.CopyFrom(onnx.numpy_helper.from_array(other, array.name))
                case 4 if onnx.numpy_helper.to_array(array).dtype == np.int64:
                    values = np.array(onnx.numpy_helper.to_array(array))
                    values.reshape(-1)[int(random.integers(max(values.size, 1)))] = some(numbers)
                    array.CopyFrom(onnx.numpy_helper.from_array(values, array.name))
                case 5 if array.dims:
                    array.dims[int(random.integers(len(array.dims)))] = some(numbers)
                case 6:
                    dim = some(copy.graph.input[0].type.tensor_type.shape.dim)
                    dim.dim_value = some(numbers)
                case 7:
                    del nodes[int(random.integers(len(nodes)))]
                case 8 if node.input:
                    node.input.pop() if random.integers(2) else node.input.append(some(names))
        seen.add(read_and_compile(copy.SerializeToString()))
    assert "refused" in seen
