"""Real networks, optimised as they are for a board: no layer differs from the reference kernels."""

import numpy as np
import pytest
from make_test_model import Layers
from test_real_arenas import MODELS

from synapticos import importers
from synapticos.engine import Build
from synapticos.errors import UserError
from synapticos.model import compile_model
from synapticos.model.verify import ROOTS, Reference, sample_inputs, ulps, verify_layers


@pytest.fixture(scope="module")
def native():
    if Reference.missing():
        pytest.skip(Reference.missing())
    return Build(list(ROOTS)).engine("native")


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_is_the_reference_s(native, name, shared_models):
    path = shared_models / f"{name}.tflite"
    data = path.read_bytes()
    graph = importers.load(path)
    reference = Reference(data, name)
    cases = 2 if "face" in name else 4
    verdict = verify_layers(
        native, compile_model(graph), sample_inputs(graph, cases), lambda x, fresh: reference.run(graph, x, fresh)
    )
    print(verdict.to_text())
    assert verdict.exact, verdict.to_text()


def test_state_goes_on_where_the_inputs_do(native, shared_models):
    """Three steps of one run: what a layer keeps is the reference's too."""
    path = shared_models / "wakeword_alexa_int8.tflite"
    graph = importers.load(path)
    reference = Reference(path.read_bytes())
    inputs = sample_inputs(graph, 5)[2:]
    verdict = verify_layers(
        native, compile_model(graph), inputs, lambda x, fresh: reference.run(graph, x, fresh), fresh=[True, False, False]
    )
    assert verdict.exact, verdict.to_text()


def test_the_count_is_of_the_elements_that_differ(native):
    m = Layers(8)
    x = m.tensor("x", (1, 6, 6, 3), 0.0078125, -1)
    y = m.conv("a", x, 4, (3, 3))
    z = m.conv("b", y, 4, (3, 3))
    graph = importers.read(m.finish([x], [z]), "two")
    reference = Reference(m.finish([x], [z]))
    a = graph.ops[0].outputs[0].number

    def wrong(inputs, fresh):
        results = reference.run(graph, inputs, fresh)
        results[a] = results[a].copy()
        results[a].reshape(-1)[:7] ^= 2
        return {a: results[a]}

    verdict = verify_layers(native, compile_model(graph), sample_inputs(graph, 1), wrong)
    assert (verdict.first.step, verdict.first.differing, verdict.first.largest) == (0, 7, 2)


def test_floats_are_compared_in_units_of_the_last_place():
    a = np.array([1, -1, 0, np.nan, 1e-45], np.float32)
    b = np.array([np.nextafter(np.float32(1), np.float32(2)), -1, -0.0, np.nan, -1e-45], np.float32)
    assert ulps(a, b).tolist() == [1, 0, 0, 0, 2]


def test_a_model_that_the_reference_cannot_run_is_a_message(native):
    with pytest.raises(UserError, match="broken.tflite: the reference cannot run"):
        Reference(b"\x1c\0\0\0TFL3" + bytes(64), "broken.tflite")
