"""Each operator at its extremes: three engines, exact arithmetic and, where it is installed, the reference kernels."""

from math import prod

import layer_models as models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_calls import Judge, Running, compiled
from layer_reference import REFERENCE

few = settings(max_examples=25, deadline=None)


def check_layer(e, model):
    compiled_model = compiled(model.data)
    running = Running(e, compiled_model, model.inputs)
    running.run(tiles=2)
    graph = compiled_model.graph
    got = running.tensor(graph.outputs[0])
    op = graph.ops[0]
    if op.kind in REFERENCE:
        assert np.array_equal(got, REFERENCE[op.kind](op, *model.inputs))
    if Judge is not None:
        assert np.array_equal(got, Judge(model.data).run(graph, model.inputs)[graph.outputs[0].number])
    return op, got


LAYERS = {
    "convolution": models.convolutions(),
    "depthwise_convolution": models.depthwise_convolutions(),
    "dense": models.dense_layers(),
    "addition": models.additions(),
    "max_pool": models.pools("MAX"),
    "average_pool": models.pools("AVERAGE"),
    "padding": models.paddings(),
    "concatenation": models.concatenations(),
    "requantization": models.requantizations(),
}


@pytest.mark.parametrize("kind", LAYERS)
@few
@given(data=st.data())
def test_a_layer_equals_the_references(e, kind, data):
    check_layer(e, data.draw(LAYERS[kind]))


@few
@given(models.softmaxes())
def test_softmax_equals_the_reference_and_is_near_the_real_one(e, model):
    op, got = check_layer(e, model)
    real = np.exp(
        float(op.inputs[0].scale[0]) * (model.inputs[0].astype(np.float64) - model.inputs[0].max(-1, keepdims=True))
    )
    exact = np.clip(256 * real / real.sum(-1, keepdims=True) - 128, -128, 127)
    assert np.abs(got - exact).max() <= 1.0


def test_a_filter_that_sees_no_pixel_counts_its_bias_only(e):
    """Padding wider than the picture: every tap of the corner windows is outside."""
    w = models.Writer()
    x = w.tensor("x", (1, 1, 1, 2), 0.5, 7)
    k = w.constant("w", np.full((3, 5, 5, 2), 127, np.int8), [0.01] * 3)
    b = w.constant("b", np.array([100, -100, 0], np.int32), [0.005] * 3)
    y = w.tensor("y", (1, 1, 1, 3), 0.01, -5)
    w.op("CONV_2D", [x, k, b], [y], 3, "Conv2DOptions", Padding=models.SAME, StrideW=1, StrideH=1, DilationWFactor=2,
         DilationHFactor=2, FusedActivationFunction=0)  # fmt: skip
    model = models.Model(w.finish([x], [y]), [np.full((1, 1, 1, 2), 7, np.int8)])
    _, got = check_layer(e, model)
    assert got.reshape(-1).tolist() == [45, -55, -5]


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_may_be_run_in_any_pieces(e, rows):
    random = np.random.default_rng(1)
    w = models.Writer()
    x = w.tensor("x", (1, 7, 6, 3), 0.1, 3)
    k = w.constant("w", random.integers(-127, 128, (1, 3, 3, 3)).astype(np.int8), [0.01] * 3, 3)
    b = w.constant("b", np.array([100, -100, 0], np.int32), [0.001] * 3)
    y = w.tensor("y", (1, 7, 6, 3), 0.05, -5)
    w.op("DEPTHWISE_CONV_2D", [x, k, b], [y], 3, "DepthwiseConv2DOptions", Padding=models.SAME, StrideW=1, StrideH=1,
         DepthMultiplier=1, DilationWFactor=1, DilationHFactor=1, FusedActivationFunction=0)  # fmt: skip
    data = random.integers(-128, 128, (1, 7, 6, 3)).astype(np.int8)
    model = compiled(w.finish([x], [y]))
    whole, pieces = Running(e, model, [data]), Running(e, model, [data])
    whole.run()
    for row in reversed(range(0, 7, rows)):
        pieces.step(0, row, min(row + rows, 7))
    out = model.graph.outputs[0]
    assert np.array_equal(whole.tensor(out), pieces.tensor(out))
    assert prod(out.shape) == whole.tensor(out).size
