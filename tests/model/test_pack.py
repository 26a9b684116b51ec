"""The container: what the kernel reads back is what the graph said."""

import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make_test_model import VALID, Layers

from synapticos import importers
from synapticos.errors import UserError
from synapticos.kernel import container as c
from synapticos.kernel.layers.variants import VARIANTS
from synapticos.model import Answer, compile_model, draw_png, draw_text, load_container

DATA = __file__.rsplit("/tests/", 1)[0] + "/tests/data"


@pytest.fixture(scope="module")
def graph():
    return importers.load(f"{DATA}/every_layer.tflite")


@pytest.fixture(scope="module")
def compiled(graph):
    return compile_model(graph)


def test_the_records_come_back(graph, compiled):
    d = load_container(compiled.container, "m")
    assert d.name == "every_layer"
    assert (d.header["magic"], d.header["version"]) == (int(c.MAGIC), 2)
    assert d.header["frame_bytes"] == compiled.plan.peak and d.header["scratch_bytes"] == compiled.plan.scratch
    assert [s["source"] for s in d.steps] == [op.index for op in compiled.plan.steps]
    assert all(s["variant"] in VARIANTS for s in d.steps)
    for numbers, tensors in ((d.inputs, graph.inputs), (d.outputs, graph.outputs)):
        for number, tensor in zip(numbers, tensors, strict=True):
            record = d.tensors[number]
            assert tuple(record["shape"][: record["rank"]]) == tensor.shape
            assert np.float32(record["scale"]) == tensor.scale[0] and record["zero"] == tensor.zero[0]
            assert record["bytes"] == tensor.bytes
    assert d.header["input_shape"] == [1, 13, 9, 3]


def test_sections_are_aligned_and_checksums_hold(compiled):
    data = compiled.container
    h = load_container(data, "m").header
    assert len(data) % 16 == 0
    assert h["payload_bytes"] == len(data) - 128 and h["payload_crc"] == zlib.crc32(data[128:])
    assert all(h[f"{name}_at"] % 16 == 0 for name in ("tensors", "steps", "lists", "params", "consts"))


def test_every_tensor_lies_in_its_space(graph, compiled):
    d = load_container(compiled.container, "m")
    size = {0: d.header["consts_bytes"], 1: d.header["frame_bytes"], 2: graph.inputs[0].bytes}
    for record in d.tensors:
        assert record["offset"] % 16 == 0
        assert record["offset"] + record["bytes"] <= size[record["space"]]


def test_without_optimising_every_layer_keeps_its_output(graph):
    compiled = compile_model(graph, optimize="none")
    assert [op.index for op in compiled.plan.steps] == [op.index for op in graph.ops if op.kind != "RESHAPE"]
    results = sorted((compiled.plan.places[op.outputs[0]], op.outputs[0].bytes) for op in compiled.plan.steps)
    for (at, size), (after, _) in zip(results, results[1:], strict=False):
        assert at + size <= after
    assert all(op.outputs[0] in compiled.plan.places for op in graph.ops)


def test_optimising_fuses_padding_and_joins_results(graph, compiled):
    kinds = [op.kind for op in compiled.plan.steps]
    assert kinds.count("PAD") == 1  # the one of channels, before a sum
    assert kinds.count("CONCATENATION") == 1  # the one by channel
    assert "RESHAPE" not in kinds
    fused = next(op for op in compiled.plan.steps if op.kind == "DEPTHWISE_CONV_2D")
    assert (fused.options["pad_top"], fused.options["pad_right"]) == (1, 2)


def test_compiling_changes_no_graph_and_repeats_to_the_byte(graph, compiled):
    again = importers.load(f"{DATA}/every_layer.tflite")
    assert compile_model(graph).container == compiled.container == compile_model(again).container


def test_two_paddings_in_a_row_become_one():
    m = Layers(8)
    x = m.tensor("x", (1, 6, 6, 4), 0.1, 3)
    p = m.pad("p", x, [(0, 0), (1, 0), (0, 1), (0, 0)])
    q = m.pad("q", p, [(0, 0), (0, 1), (1, 0), (0, 0)])
    y = m.conv("y", q, 4, (3, 3), padding=VALID)
    plan = compile_model(importers.read(m.finish([x], [y]), "m")).plan
    (op,) = plan.steps
    assert [op.options[f"pad_{side}"] for side in ("top", "bottom", "left", "right")] == [1, 1, 1, 1]


def test_padding_that_someone_else_needs_stays():
    m = Layers(8)
    x = m.tensor("x", (1, 6, 6, 4), 0.1, 3)
    p = m.pad("p", x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    y = m.conv("y", p, 4, (3, 3), padding=VALID)
    plan = compile_model(importers.read(m.finish([x], [y, p]), "m")).plan
    assert sorted(op.kind for op in plan.steps) == ["CONV_2D", "PAD"]


def test_long_layers_are_given_tiles_of_rows(graph):
    limit = 2000
    compiled = compile_model(graph, max_step=limit)
    for step, layer in zip(load_container(compiled.container, "m").steps, compiled.layers, strict=True):
        assert (step["row"], step["row_end"]) == (0, layer.rows)
        if layer.cost <= limit:
            assert step["tile_rows"] == 0
        else:
            assert step["tile_rows"] == max(1, layer.rows * limit // layer.cost)


def test_answers_are_kept_after_everything_else(graph):
    x = np.zeros(graph.inputs[0].shape, np.int8)
    outputs = [np.ones(t.shape, np.int8) for t in graph.outputs]
    data = compile_model(graph, answers=[Answer([x], outputs)]).container
    at = load_container(data, "m").header["answers_at"]
    crc = zlib.crc32(b"".join(o.tobytes() for o in outputs))
    assert data[at : at + 8] == b"\1\0\0\0" + crc.to_bytes(4, "little")
    assert data[at + 16 : at + 16 + x.nbytes] == x.tobytes()  # where it can be run
    with pytest.raises(UserError, match="an answer must have"):
        compile_model(graph, answers=[Answer([x[0, 0]], outputs)])


@pytest.mark.parametrize("name, kept", [("x" * 40, "x" * 31), ("näme" * 10, "nämenämenämenämenämenämen"), ("", "")])
def test_names_are_cut_to_whole_characters(graph, name, kept):
    shown = load_container(compile_model(graph, name=name or None).container, "m").name
    assert shown == (kept or "every_layer")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 255), st.booleans())
def test_a_damaged_container_is_one_clear_line(compiled, where, value, repair):
    data = bytearray(compiled.container)
    at = where % (4096 if where & 1 << 20 else len(data))
    data[at] = value
    if repair:  # a damaged file with right checksums
        data[44:48] = zlib.crc32(data[128:]).to_bytes(4, "little")
        data[64:68] = zlib.crc32(data[:64] + bytes(4) + data[68:128]).to_bytes(4, "little")
    try:
        d = load_container(bytes(data), "m.synm")
        d.info.to_text()
    except UserError as error:
        assert str(error).startswith("m.synm: ") and "\n" not in str(error)


def test_a_plan_can_be_drawn(compiled, tmp_path):
    text = draw_text(compiled.info, width=60)
    assert max(map(len, text.splitlines()[:20])) <= 60
    assert f"{compiled.plan.lower_bound:,} bytes alive" in text
    draw_png(compiled.info, tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(UserError, match="cannot be written"):
        draw_png(compiled.info, tmp_path / "nowhere" / "plan.png")


def test_what_is_known_of_a_model_is_plain_json(compiled):
    told = json.loads(json.dumps(compiled.info.to_json()))
    assert told["frame"] == compiled.plan.peak and len(told["layers"]) == len(compiled.plan.steps)
    text = compiled.info.to_text()
    assert "CONV_2D" in text and f"{compiled.plan.peak:,}" in text


def test_multiply_accumulates_are_counted(shared_models):
    # As counted when the models were chosen.
    for name, macs in (("hello_world_int8", 288), ("digits_cnn_int8", 89_344)):
        assert compile_model(importers.load(shared_models / f"{name}.tflite")).info.macs == macs
