"""FC-12: bit-exact, layer by layer, and a layer that is off by one rounding is found and counted."""

import numpy as np
import pytest
from case_models import graph_of
from make_test_model import NONE, RELU, RELU6, SAME, VALID, Layers

from synapticos.kernel.container import LayerCall
from synapticos.kernel.layers.requant import to_i8
from synapticos.kernel.layers.requantize import RequantizeParams, requantize_run
from synapticos.kernel.layers.tables import RUN, RUNS
from synapticos.kernel.status import Status
from synapticos.lang import *
from synapticos.model import compile_model
from synapticos.model.verify import ROOTS, Reference, sample_inputs, verify_layers

CASES = 4  # the two extremes, then noise


def start(seed, shape=(1, 9, 8, 4)):
    m = Layers(seed)
    return m, m.tensor("x", shape, 0.0078125, -1)


def convolutions():
    """Per channel, stride 2 on odd and even sides, same and valid, dilated; depthwise with two results a channel."""
    m, x = start(21)
    a = m.conv("odd_and_even", x, 6, (3, 3), stride=2, activation=RELU)
    b = m.conv("again", a, 8, (2, 3), stride=2, padding=SAME)
    c = m.conv("dilated", x, 5, (3, 2), dilation=2, padding=VALID)
    d = m.depthwise("two_each", b, 2, (3, 3), activation=RELU6)
    e = m.depthwise("wide", c, 1, (3, 1), stride=2)
    return m.finish([x], [d, e])


def tail():
    """Pools, dense layers of both kinds, softmax."""
    m, x = start(22)
    a = m.pool("AVERAGE", "average", x, (3, 3), 2, SAME)
    b = m.pool("MAX", "max", a, (2, 2), 1, VALID)
    n = int(np.prod(m.tensors[b].shape))
    f = m.reshape("flat", b, (1, n))
    g = m.dense("dense", f, 16, activation=RELU)
    h = m.dense("by_channel", g, 10, one_scale=False)
    return m.finish([x], [m.softmax("scores", h)])


def pairs(kind):
    """Both operands whole, one 1x1xC, one a single element."""
    m, x = start(23)
    outputs = []
    y = m.conv("other", x, 4, (1, 1))
    for name, shape in (("channels", (1, 1, 1, 4)), ("scalar", (1, 1, 1, 1))):
        values = m.random.integers(-128, 128, shape).astype(np.int8)
        outputs.append(two(m, kind, f"{kind}_{name}", x, m.constant(name, values, [0.02])))
    outputs.append(two(m, kind, f"{kind}_whole", x, y))
    return m.finish([x], outputs)


def two(m, kind, name, a, b):
    spread = m.spread(a) * m.spread(b) if kind == "MUL" else float(np.hypot(m.spread(a), m.spread(b)))
    y = m.result(name, m.tensors[a].shape, spread)
    m.op(kind, [a, b], [y], 2, f"{kind.capitalize()}Options", FusedActivationFunction=NONE)
    return y


MODELS = {"convolutions": convolutions, "tail": tail, "ADD": lambda: pairs("ADD"), "MUL": lambda: pairs("MUL")}


def compare(e, data, inputs, name="case"):
    graph = graph_of(data, name)
    reference = Reference(data, name)
    return verify_layers(
        e, compile_model(graph), inputs, lambda x, fresh: reference.run(graph, x, fresh), name=reference.name
    )


@pytest.fixture(scope="module", autouse=True)
def judge():
    if Reference.missing():
        pytest.skip(Reference.missing())


@pytest.mark.parametrize("name", MODELS)
def test_no_element_of_any_layer_differs_from_the_reference_kernels(make, name):
    data = MODELS[name]()
    cases = 3 if make.engine == "checked" else CASES
    verdict = compare(make(*ROOTS), data, sample_inputs(graph_of(data), cases))
    assert verdict.exact, verdict.to_text()
    assert verdict.layers == len(compile_model(graph_of(data)).plan.steps) and verdict.elements > 0


@fn
def once_rounded_run(call: LayerCall) -> Status:
    """A requantizer that rounds the exact product once, where the reference rounds twice."""
    p = view(RequantizeParams, call.params)
    first = call.row * p.n
    x = view(i8, call.data[0])[first:]
    y = view(i8, call.data[1])[first:]
    down = u32(31 - p.shift)
    for i in range((call.row_end - call.row) * p.n):
        exact = i64(i32(x[i]) - p.x_zero) * p.multiplier
        y[i] = to_i8(i32((exact + (i64(1) << (down - 1))) >> down), p.out)
    return Status.OK


BROKEN = {RUN: [once_rounded_run if f is requantize_run else f for f in RUNS]}


def halves():
    """A quantisation by exactly 1/4: many products lie on a tie, where the two roundings part."""
    m, x = start(24, (1, 4, 4, 16))
    a = m.pool("MAX", "before", x, (1, 1), 1, VALID)
    t = m.tensors[a]
    b = m.tensor("quarter", t.shape, float(np.float32(t.scale[0] * 4)), 0)
    m.op("QUANTIZE", [a], [b], 2, "QuantizeOptions")
    c = m.pool("AVERAGE", "after", b, (2, 2), 2, VALID)
    d = m.requantize("twice", c, 1.5, 3)
    return m.finish([x], [d])


def test_one_rounding_less_names_that_layer_first_with_the_count(make):
    data = halves()
    inputs = sample_inputs(graph_of(data), CASES)
    assert compare(make(*ROOTS), data, inputs).exact
    verdict = compare(make(*ROOTS, tables=BROKEN), data, inputs)
    first = verdict.first
    assert first is not None
    assert (first.operator, first.node, first.tensor) == ("QUANTIZE", 1, "quarter")
    # (x + 1) / 4: the reference rounds the half, halves up, and then half of that, halves away from 0.
    q = inputs[first.case][0].astype(int) + 1
    half = np.floor((q + 1) / 2)
    twice = np.sign(half) * np.floor((np.abs(half) + 1) / 2)
    assert first.differing == int((twice != np.floor((q + 2) / 4)).sum()) > 0
    assert first.largest == 1 and first.elements == 256
    assert '"quarter" (node 1) is the first layer that differs' in verdict.to_text()
    assert f"{first.differing:,} of 256 elements" in verdict.to_text()
