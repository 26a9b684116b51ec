"""The memory plan: live tensors never meet, nothing is lost, and the frame is as small as it can be shown to be."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapticos import importers
from synapticos.kernel.layers import IN_PLACE, TRAILING
from synapticos.model import ArenaTooSmall, Graph, Op, Tensor, compile_model
from synapticos.model.optimise import lower
from synapticos.model.order import best_order, flow, peak_of
from synapticos.model.plan import Span, place, plan_memory

ONE = np.ones(1, np.float32)
ZERO = np.zeros(1, np.int32)
KINDS = ["CONV_2D", "CONV_2D", "MAX_POOL_2D", "PAD", "FULLY_CONNECTED", "ADD", "QUANTIZE", "RESHAPE", "CONCATENATION"]
MODELS = ("hello_world_int8", "digits_cnn_int8", "person_detect_int8", "face_blazeface_int8")


@st.composite
def graphs(draw):
    """Random networks: windows and padding, sums, reshapes, joins, and layers that read all of an earlier tensor."""
    number = itertools.count()
    side = st.integers(1, 6)

    def tensor(shape):
        return Tensor(f"t{next(number)}", tuple(shape), "int8", ONE, ZERO)

    def window(x):
        _, h, w, _ = x.shape
        stride = draw(st.integers(1, 3))
        top = draw(st.integers(0, 2))
        rows = draw(st.integers(1, (h + top - 1) // stride + 1))  # each window begins inside the padded picture
        y = tensor((1, rows, w, draw(st.integers(1, 24))))
        return y, {"stride_h": stride, "pad_top": top, "filter_h": draw(st.integers(1, 4)), "dilation_h": draw(st.integers(1, 2))}

    def padded(x):
        pads = [[0, 0], *([draw(st.integers(0, 2)), draw(st.integers(0, 2))] for _ in range(3))]
        return tensor([n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)]), {"pads": pads}

    inputs = [tensor((1, draw(side), draw(side), draw(st.integers(1, 24))))]
    known = list(inputs)
    ops = []
    for index in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(KINDS))
        x = draw(st.sampled_from(known))
        read, options, y = [x], {}, None
        if kind in ("CONV_2D", "MAX_POOL_2D"):
            y, options = window(x)
        elif kind == "PAD":
            y, options = padded(x)
        elif kind == "FULLY_CONNECTED":
            y = tensor((1, draw(side), draw(side), draw(st.integers(1, 24))))
        elif kind == "RESHAPE":
            y = tensor((1, x.shape[1] * x.shape[2], 1, x.shape[3]))
        elif kind == "CONCATENATION":
            fitting = [t for t in known if t.shape[2:] == x.shape[2:]]
            read += draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=3))
            y = tensor((1, sum(t.shape[1] for t in read), *x.shape[2:]))
            options = {"axis": 1, "activation": "NONE"}
        else:  # ADD, QUANTIZE
            if kind == "ADD":
                read.append(draw(st.sampled_from([t for t in known if t.shape == x.shape])))
            y = tensor(x.shape)
        ops.append(Op(kind, index, read, [y], options))
        known.append(y)
    aliases = {op.outputs[0]: op.inputs[0] for op in ops if op.kind == "RESHAPE"}

    def is_input(t):
        while t in aliases:
            t = aliases[t]
        return t in inputs

    wanted = [t for t in known if not is_input(t)]
    if not wanted:
        y = tensor((1, 1, 1, 5))
        ops.append(Op("FULLY_CONNECTED", len(ops), [known[-1]], [y], {}))
        wanted = [y]
    outputs = draw(st.lists(st.sampled_from(wanted), min_size=1, max_size=3, unique=True))
    return Graph("random", inputs, outputs, ops)


def contents(graph):
    """What each tensor must hold, as one mark a byte, if nothing is ever overwritten."""
    marks = itertools.count(1)
    held = {t: [next(marks) for _ in range(t.bytes)] for t in graph.inputs}
    for op in graph.ops:
        y = op.outputs[0]
        if op.kind == "RESHAPE":
            held[y] = held[op.inputs[0]]
        elif op.kind == "CONCATENATION":
            held[y] = [mark for t in op.inputs for mark in held[t]]
        else:
            held[y] = [next(marks) for _ in range(y.bytes)]
    return held


def rows_of(op):
    """How a layer goes: for each row of its output where it begins, its length, and what of the input it reads: from, to."""
    x, y = op.inputs[0], op.outputs[0]
    if op.kind in ("CONV_2D", "MAX_POOL_2D"):
        y_row, x_row = y.bytes // y.shape[1], x.bytes // x.shape[1]
        for row in range(y.shape[1]):
            top = row * op.options["stride_h"] - op.options["pad_top"]
            end = top + (op.options["filter_h"] - 1) * op.options["dilation_h"] + 1
            first, end = (min(max(n, 0), x.shape[1]) for n in (top, end))
            yield row * y_row, y_row, first * x_row, end * x_row
    elif op.kind == "PAD":
        at = to = 0
        (top, _), (left, _) = op.options["pads"][1:3]
        for row in range(y.shape[1]):
            for column in range(y.shape[2]):
                copied = x.shape[3] if 0 <= row - top < x.shape[1] and 0 <= column - left < x.shape[2] else 0
                yield to, y.shape[3], at, at + copied
                at += copied
                to += y.shape[3]
    else:
        yield 0, y.bytes, 0, x.bytes


def run(graph, plan):
    """Execute a plan on marks, row by row: every operand must hold what it should when it is read."""
    held = contents(graph)
    memory = [0] * plan.peak

    def check(tensor, start=0, end=None):
        if tensor in plan.places:
            at, end = plan.places[tensor], tensor.bytes if end is None else end
            assert memory[at + start : at + end] == held[tensor][start:end], f"{tensor} was overwritten"

    for op in plan.steps:
        (y,) = op.outputs
        to = plan.places[y]
        assert to % 16 == 0 and to + y.bytes <= plan.peak
        for x in op.inputs:
            at = plan.places.get(x)
            if at is not None and at < to + y.bytes and to < at + x.bytes:
                in_place = op.kind in IN_PLACE and at == to and x.bytes == y.bytes
                assert in_place or (op.kind in TRAILING and (at <= to if op in plan.downwards else at >= to))
        for tensor in op.inputs[1:]:
            check(tensor)
        written = 0
        rows = list(rows_of(op))
        for begin, length, start, end in reversed(rows) if op in plan.downwards else rows:
            check(op.inputs[0], start, end)
            memory[to + begin : to + begin + length] = held[y][begin : begin + length]
            x = plan.places.get(op.inputs[0])
            if x is not None and op.kind in TRAILING and start != end:  # a row does not meet what it is made from
                assert to + begin + length <= x + start or x + end <= to + begin
            written += length
        assert written == y.bytes
    for tensor in graph.outputs:
        check(tensor)


@settings(max_examples=300, deadline=None)
@given(graphs(), st.booleans(), st.booleans(), st.booleans())
def test_live_tensors_never_overlap(graph, fuse, join, share):
    plan = plan_memory(graph, lower(graph, fuse=fuse, join=join), share=share)
    run(graph, plan)
    assert plan.lower_bound <= plan.peak


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_a_plan_is_never_larger_than_tensors_that_share_nothing(graph):
    program = lower(graph, join=False)
    assert plan_memory(graph, program).peak <= plan_memory(graph, program, share=False).peak


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_same_graph_gives_the_same_plan(graph):
    first, second = (plan_memory(graph, lower(graph)) for _ in range(2))
    assert first.places == second.places
    assert [op.index for op in first.steps] == [op.index for op in second.steps]


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_the_chosen_order_is_no_worse_than_the_file_s(graph):
    f = flow(graph, lower(graph, join=False))
    assert peak_of(f, best_order(f)) <= peak_of(f, range(len(f.reads)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12), st.integers(0, 5)), max_size=14))
def test_placed_spans_that_are_alive_together_share_no_byte(rows):
    spans = [Span(16 * size, first, first + length) for size, first, length in rows]
    offsets = place(spans)
    for (a, at_a), (b, at_b) in itertools.combinations(zip(spans, offsets, strict=True), 2):
        if a[1] <= b[2] and b[1] <= a[2]:
            assert at_a + a[0] <= at_b or at_b + b[0] <= at_a


def diamond():
    """Two wide branches that the file computes side by side."""
    x = Tensor("x", (1, 16), "int8", ONE, ZERO)
    sizes = {"a": 160, "left": 1600, "right": 1600, "b": 16, "c": 16, "y": 16}
    t = {name: Tensor(name, (1, n), "int8", ONE, ZERO) for name, n in sizes.items()}
    ops = [
        Op("FULLY_CONNECTED", 0, [x], [t["a"]], {}),
        Op("FULLY_CONNECTED", 1, [t["a"]], [t["left"]], {}),
        Op("FULLY_CONNECTED", 2, [t["a"]], [t["right"]], {}),
        Op("FULLY_CONNECTED", 3, [t["left"]], [t["b"]], {}),
        Op("FULLY_CONNECTED", 4, [t["right"]], [t["c"]], {}),
        Op("ADD", 5, [t["b"], t["c"]], [t["y"]], {}),
    ]
    return Graph("diamond", [x], [t["y"]], ops)


def test_operators_are_ordered_for_the_smallest_peak():
    graph = diamond()
    plan = plan_memory(graph, lower(graph))
    assert [op.index for op in plan.steps] == [0, 1, 3, 2, 4, 5]
    assert plan.peak == plan.lower_bound == 1600 + 160 + 16


def test_a_sum_takes_over_the_bytes_of_an_input_that_ends_there():
    graph = diamond()
    plan = plan_memory(graph, lower(graph))
    (y,) = graph.outputs
    sum_ = plan.steps[-1]
    assert plan.places[y] in [plan.places[t] for t in sum_.inputs]


@pytest.mark.parametrize("name", MODELS)
def test_the_frame_is_close_to_the_largest_set_alive(name, shared_models):
    path = shared_models / f"{name}.tflite"
    plan = compile_model(importers.load(path)).plan
    print(f"{name}: frame {plan.peak}, alive {plan.lower_bound}, all results {plan.total}, scratch {plan.scratch}")
    assert plan.peak == plan.lower_bound


EXPECTED = {  # bytes of the frame, inputs not counted: they stay where the caller has them
    "hello_world_int8": 32,
    "digits_cnn_int8": 2_176,
    "person_detect_int8": 37_248,
    "face_blazeface_int8": 229_408,
}


@pytest.mark.parametrize("name", MODELS)
def test_no_frame_has_grown(name, shared_models):
    assert compile_model(importers.load(shared_models / f"{name}.tflite")).plan.peak <= EXPECTED[name]


def five_layers():
    """Five int8 layers where the first one's output is needed again by the fourth."""
    from make_test_model import Layers

    m = Layers(9)
    x = m.tensor("x", (1, 10, 10, 3), 0.05, 0)
    one = m.conv("one", x, 8, (3, 3))
    two = m.conv("two", one, 16, (1, 1))
    three = m.conv("three", two, 8, (3, 3))
    four = m.add("four", one, three)
    five = m.conv("five", four, 4, (3, 3), stride=2)
    return importers.read(m.finish([x], [five]), "skip", "skip.tflite")


def test_the_ram_figure_is_exact():
    graph = five_layers()
    need = compile_model(graph).plan.ram
    assert compile_model(graph, ram=need).plan.ram == need
    with pytest.raises(ArenaTooSmall) as caught:
        compile_model(graph, ram=need - 1)
    error = caught.value
    assert (error.needed, error.available, error.missing) == (need, need - 1, 1)
    assert "two" in error.layer or "three" in error.layer
    assert ("one", 800) in error.alive and ("two", 1600) in error.alive
    text = str(error)
    assert text.startswith("skip.tflite: needs ") and "\n" not in text
    for figure in (str(need), str(need - 1), error.layer, '"two" 1600'):
        assert figure in text


def test_a_chain_of_windows_needs_no_more_than_its_widest_step():
    """Rows upwards move a result down, rows downwards the next one up again."""
    from make_test_model import Layers

    m = Layers(9)
    y = x = m.tensor("x", (1, 24, 5, 16), 0.05, 0)
    for i in range(8):
        y = m.depthwise(f"d{i}", y, 1, (3, 3))
    plan = compile_model(importers.read(m.finish([x], [y]), "chain")).plan
    assert plan.peak == plan.lower_bound == 24 * 80 + 2 * 80
    assert len(plan.downwards) in (3, 4)
