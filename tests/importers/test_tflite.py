"""What the reader of .tflite takes, and what it says of what it does not."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_test_model import NONE, RELU6, SAME, VALID, Layers
from tflite_writer import Writer

from synapticos import importers
from synapticos.errors import UserError
from synapticos.model import UnsupportedModel, compile_model

DATA = __file__.rsplit("/tests/", 1)[0] + "/tests/data"


def every_layer() -> bytes:
    with open(f"{DATA}/every_layer.tflite", "rb") as file:
        return file.read()


def test_every_operator_is_read_with_its_options_in_numbers():
    graph = importers.load(f"{DATA}/every_layer.tflite")
    first = graph.ops[0]
    assert first.kind == "CONV_2D"
    # 13 x 9 with a window of 3 and stride 2, SAME: one row and column before, one after.
    assert {k: first.options[k] for k in ("pad_top", "pad_bottom", "pad_left", "pad_right")} == {
        "pad_top": 1,
        "pad_bottom": 1,
        "pad_left": 1,
        "pad_right": 1,
    }
    assert first.options["activation"] == "RELU"
    kinds = {op.kind for op in graph.ops}
    from synapticos.importers.tflite import OPERATORS

    assert kinds <= set(OPERATORS)
    assert [t.shape for t in graph.outputs] == [(1, 10), (1, 4, 3, 16)]
    assert graph.inputs[0].scale.dtype == np.float32


@pytest.mark.parametrize("stride, before, after", [(1, 1, 1), (2, 0, 1)])
def test_same_padding_puts_the_odd_row_after(stride, before, after):
    m = Layers(1)
    x = m.tensor("x", (1, 8, 8, 3), 0.1, 0)
    y = m.conv("y", x, 4, (3, 3), stride=stride, padding=SAME)
    op = importers.read(m.finish([x], [y]), "m").ops[0]
    assert (op.options["pad_top"], op.options["pad_bottom"]) == (before, after)


def test_operator_codes_are_read_from_either_field():
    for old in (True, False):
        w = Writer(old_codes=old)
        x = w.tensor("x", (1, 16), 0.1, 0)
        y = w.tensor("y", (1, 16), 0.2, 3)
        w.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
        assert importers.read(w.finish([x], [y]), "m").ops[0].kind == "QUANTIZE"


def test_a_bias_may_name_a_dimension_that_it_has_not():
    m = Layers(2)
    x = m.tensor("x", (1, 8, 8, 4), 0.1, 0)
    y = m.depthwise("y", x, 1, (3, 3))
    bias = m.tensors[m.ops[0].inputs[2]]
    bias.axis = 3
    assert importers.read(m.finish([x], [y]), "m").ops[0].kind == "DEPTHWISE_CONV_2D"


def chain_with_three_problems() -> bytes:
    m = Layers(3)
    x = m.tensor("x", (1, 8, 8, 4), 0.1, 0)
    t = x
    for node in range(14):
        if node == 4:
            y = m.tensor("unheard_of", (1, 8, 8, 4), 0.1, 0)
            m.op("FancyNorm", [t], [y])
        elif node == 12:
            y = m.tensor("wide", (1, 8, 8, 4), 0.1, 0, type="int16")
            m.op(
                "MAX_POOL_2D",
                [t],
                [y],
                2,
                "Pool2DOptions",
                Padding=SAME,
                StrideW=1,
                StrideH=1,
                FilterWidth=2,
                FilterHeight=2,
            )
        else:
            y = m.conv(f"conv_{node}", t, 4, (1, 1))
            if node == 9:
                m.ops[-1].version = 9
        t = y if node != 12 else t
    return m.finish([x], [t])


def test_all_that_cannot_be_compiled_is_in_one_report():
    with pytest.raises(UnsupportedModel) as caught:
        importers.read(chain_with_three_problems(), "chain", "chain.tflite")
    problems = caught.value.problems
    assert [(p.node, p.operator, p.version) for p in problems] == [
        (4, "custom operator FancyNorm", 1),
        (9, "CONV_2D", 9),
        (12, "MAX_POOL_2D", 2),
    ]
    assert "unheard_of" in problems[0].tensors
    assert "version 1 to 6" in problems[1].nearest
    assert problems[2].types == "int8 -> int16"
    assert "int8 -> int8" in problems[2].nearest
    text = str(caught.value)
    assert text.startswith("chain.tflite: 3 operators cannot be compiled\n")
    assert len(text.splitlines()) == 4
    assert len(json.loads(json.dumps(caught.value.to_json()))["problems"]) == 3


def test_the_list_of_operators_is_the_reader_s_own_table():
    from synapticos.importers.tflite import OPERATORS, supported

    assert {kind for kind, _, _ in supported()} == set(OPERATORS)
    assert ("CONV_2D", 6, "int8, int8, int32? -> int8") in supported()


def test_what_a_layer_refuses_is_in_the_same_report():
    m = Layers(4)
    x = m.tensor("x", (1, 8, 8, 4), 0.1, 0)
    a = m.conv("a", x, 4, (1, 1))
    m.tensors[m.ops[-1].inputs[1]].zero = (3,) * 4  # weights with a zero point
    b = m.tensor("b", (1, 8, 8, 4), 0.1, 0)
    m.op("DENSIFY", [a], [b])
    with pytest.raises(UnsupportedModel) as caught:
        importers.read(m.finish([x], [b]), "m")
    assert [p.operator for p in caught.value.problems] == ["CONV_2D", "DENSIFY"]


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "empty"),
        (b"\x00" * 40, "not a .tflite"),
        (b"SYNM" + bytes(100), "compiled container already"),
        (b"\x1c\x00\x00\x00TFL3", "damaged"),
        (every_layer()[:2000], "damaged"),
    ],
)
def test_a_file_that_is_no_model_is_one_clear_line(tmp_path, content, words):
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        importers.load(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and words in text and "\n" not in text


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="nothing.tflite: cannot be read"):
        importers.load(tmp_path / "nothing.tflite")
    with pytest.raises(UserError, match="cannot be read"):
        importers.load(tmp_path)


def simple() -> Layers:
    m = Layers(5)
    m.tensor("x", (1, 8, 8, 4), 0.1, 0)
    m.conv("y", 0, 4, (3, 3), padding=VALID, activation=NONE)
    return m


def out_of_order(m: Layers) -> None:
    m.ops.append(m.ops[0])


def no_scale(m: Layers) -> None:
    m.tensors[0].scale = m.tensors[0].zero = ()


def negative_scale(m: Layers) -> None:
    m.tensors[0].scale = (-1.0,)


def infinite_scale(m: Layers) -> None:
    m.tensors[0].scale = (float("inf"),)


def zero_outside(m: Layers) -> None:
    m.tensors[0].zero = (300,)


def short_weights(m: Layers) -> None:
    m.tensors[1].data = b"123"


def wrong_shape(m: Layers) -> None:
    m.tensors[-1].shape = (1, 7, 6, 4)


def strange_tensor(m: Layers) -> None:
    m.ops[0].inputs[0] = 77


def no_stride(m: Layers) -> None:
    m.ops[0].fields["StrideW"] = 0


def unwritten_input(m: Layers) -> None:
    m.ops[0].inputs[0] = m.tensor("nowhere", (1, 8, 8, 4), 0.1, 0)


def huge(m: Layers) -> None:
    m.tensors[0].shape = (1, 1 << 20, 1 << 20, 4)


def no_options(m: Layers) -> None:
    m.ops[0].options = None


@pytest.mark.parametrize(
    "change, words",
    [
        (out_of_order, "already written"),
        (no_scale, "needs one scale"),
        (negative_scale, "no positive number"),
        (infinite_scale, "no positive number"),
        (zero_outside, "zero point outside its type"),
        (short_weights, "has 3 bytes where"),
        (wrong_shape, "7 rows or columns where 6 follow"),
        (strange_tensor, "tensor 77 of"),
        (no_stride, "stride 0"),
        (unwritten_input, "before anything writes it"),
        (huge, "would have"),
        (no_options, "has no Conv2DOptions"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(change, words):
    m = simple()
    change(m)
    with pytest.raises(UserError) as caught:
        importers.read(m.finish([0], [3]), "m", "m.tflite")
    text = str(caught.value)
    assert text.startswith("m.tflite: ") and words in text and "\n" not in text


@pytest.mark.parametrize("part", ["inputs", "outputs", "ops"])
def test_a_model_without_ends_or_middle_is_refused(part):
    m = simple()
    if part == "ops":
        m.ops = []
    with pytest.raises(UserError):
        importers.read(m.finish([] if part == "inputs" else [0], [] if part == "outputs" else [3]), "m")


def read_and_compile(data: bytes) -> str:
    try:
        compile_model(importers.read(data, "m", "m.tflite"))
    except UserError as error:
        assert str(error).startswith("m.tflite: ")
        return "refused"
    return "compiled"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_damaged_file_is_refused_or_compiles(changes):
    data = bytearray(every_layer())
    for where, value in changes:
        data[int(where * len(data))] = value
    read_and_compile(bytes(data))


def test_damage_in_the_tables_is_refused_or_compiles():
    # The weights are most of a file and harmless; the tables are where the offsets are.
    whole = bytearray(simple().finish([0], [3]))
    random = np.random.Generator(np.random.PCG64(11))
    seen = set()
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(len(data)))
            if random.integers(2):
                data[at] ^= 1 << int(random.integers(8))
            else:
                data[at : at + 4] = int(random.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data)])).to_bytes(
                    4, "little"
                )
        seen.add(read_and_compile(bytes(data)))
    assert seen == {"refused", "compiled"}


def test_a_file_cut_anywhere_is_refused_or_compiles():
    data = simple().finish([0], [3])
    for end in range(0, len(data), 7):
        read_and_compile(data[:end])


def test_padding_before_a_pool_is_not_its_own(tmp_path):
    m = Layers(6)
    x = m.tensor("x", (1, 6, 6, 4), 0.1, 5)
    p = m.pad("p", x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    y = m.pool("MAX", "y", p, (2, 2), 2, VALID)
    z = m.conv("z", y, 4, (1, 1), activation=RELU6)
    compiled = compile_model(importers.read(m.finish([x], [z]), "m"))
    assert [op.kind for op in compiled.plan.steps] == ["PAD", "MAX_POOL_2D", "CONV_2D"]
