"""Whole models, layer by layer, against what the reference kernels answered: digests kept in the repository."""

import json
from pathlib import Path

import layer_models  # noqa: F401 - puts tools/ on the path
import numpy as np
import pytest
from judge import digest, noise, stored
from layer_calls import ROOTS, Judge, Running, compiled

from synapticos.engine import Build

DATA = Path(__file__).resolve().parents[2] / "data"
ROOT = DATA.parents[1]
OURS = {"every_layer": DATA / "every_layer.tflite", "sine": ROOT / "examples" / "hello_world" / "sine.tflite"}


def check_model(e, path: Path, cases: int) -> None:
    """Every layer's output of every case has the digest that the judge gave."""
    known = json.loads((DATA / f"{path.stem}.json").read_text())
    model = compiled(path.read_bytes())
    graph = model.graph
    sets = {"noise": lambda n: noise(graph, n), "stored": lambda n: stored(graph, path.with_suffix(".npz"), n)}
    for source, digests in known["cases"].items():
        for inputs, wanted in list(zip(sets[source](len(digests)), digests, strict=False))[:cases]:
            running = Running(e, model, inputs)
            running.run()
            for op in graph.ops:
                for y in op.outputs:
                    if y in model.plan.places:
                        assert digest(running.tensor(y)) == wanted[str(y.number)], f"{path.stem}: {op}"


@pytest.fixture(scope="module")
def engine_of():
    """One engine by its name, for models that are too large for all three."""
    build = Build(roots=list(ROOTS))
    return build.engine


@pytest.mark.parametrize("name", OURS)
def test_our_models_have_the_judges_digests_on_every_engine(e, name):
    check_model(e, OURS[name], cases=2)


@pytest.mark.parametrize("name", ["hello_world_int8", "digits_cnn_int8"])
def test_small_models_have_the_judges_digests_on_every_engine(e, shared_models, name):
    check_model(e, shared_models / f"{name}.tflite", cases=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["person_detect_int8", "face_blazeface_int8"])
@pytest.mark.parametrize("engine", ["native", "cortex-m"])
def test_large_models_have_the_judges_digests(engine_of, shared_models, name, engine):
    check_model(engine_of(engine), shared_models / f"{name}.tflite", cases=2 if engine == "native" else 1)


def check_shared_frame(e, path: Path, tiles: int) -> None:
    """Results placed over each other's bytes, in place and below inputs still in use: the last ones are the same."""
    known = json.loads((DATA / f"{path.stem}.json").read_text())
    model = compiled(path.read_bytes(), optimize="default")
    running = Running(e, model, noise(model.graph, 3)[2])
    running.run(tiles)
    for y in model.graph.outputs:
        assert digest(running.tensor(y)) == known["cases"]["noise"][2][str(y.number)]


@pytest.mark.parametrize("fill", [0xA5, 0x5A])
@pytest.mark.parametrize("name", OURS)
def test_a_shared_frame_gives_the_same_answers_whatever_was_in_it(e, name, fill):
    for engine in e.each:
        engine.fill = fill
    try:
        check_shared_frame(e, OURS[name], tiles=1 if fill == 0xA5 else 3)
    finally:
        for engine in e.each:
            engine.fill = 0xA5


@pytest.mark.parametrize("tiles", [1, 5])
@pytest.mark.parametrize("name", ["digits_cnn_int8", "person_detect_int8", "face_blazeface_int8"])
def test_a_shared_frame_of_a_real_model_gives_the_same_answers(engine_of, shared_models, name, tiles):
    check_shared_frame(engine_of("native"), shared_models / f"{name}.tflite", tiles)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["kws_dscnn_int8", "vww_mobilenet_int8", "ic_resnet8_int8", "ad_autoencoder_int8", "micro_speech_int8"]
)
def test_other_networks_equal_the_reference_kernels(engine_of, shared_models, name):
    """Not needed by the product's examples; no digests are kept."""
    if Judge is None:
        pytest.skip("tflite-micro has no wheel here")
    data = (shared_models / f"{name}.tflite").read_bytes()
    model = compiled(data)
    inputs = noise(model.graph, 3)[2]
    running = Running(engine_of("native"), model, inputs)
    running.run()
    judged = Judge(data).run(model.graph, inputs)
    for op in model.graph.ops:
        for y in op.outputs:
            if y in model.plan.places:
                assert np.array_equal(running.tensor(y).reshape(-1), judged[y.number].reshape(-1)), str(op)
