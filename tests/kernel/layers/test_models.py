"""Whole models, layer by layer, against what the reference kernels answered: digests kept in the repository."""

import json
from pathlib import Path

import layer_models  # noqa: F401 - puts tools/ on the path
import numpy as np
import pytest
from judge import digest, noise, stored
from layer_calls import ROOTS, Running, compiled

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


@pytest.mark.parametrize("name", OURS)
def test_our_models_have_the_judges_digests_on_every_engine(e, name):
    check_model(e, OURS[name], cases=2)


@pytest.mark.parametrize("name", ["hello_world_int8", "digits_cnn_int8"])
def test_small_models_have_the_judges_digests_on_every_engine(e, model_file, name):
    check_model(e, model_file(name), cases=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["person_detect_int8", "face_blazeface_int8"])
@pytest.mark.parametrize("engine", ["native", "cortex-m"])
def test_large_models_have_the_judges_digests(engine_of, model_file, name, engine):
    check_model(engine_of(engine), model_file(name), cases=2 if engine == "native" else 1)


@pytest.fixture(scope="module")
def engine_of():
    from synapticos.engine import Build

    build = Build(roots=list(ROOTS), board="host")
    return lambda name: build.engine(name)


@pytest.mark.parametrize("name", OURS)
def test_a_shared_frame_gives_the_same_answers(e, name):
    """Results placed over each other's bytes, in place and trailing: the final outputs are the same."""
    path = OURS[name]
    known = json.loads((DATA / f"{name}.json").read_text())
    model = compiled(path.read_bytes(), optimize="default")
    inputs = noise(model.graph, 3)[2]
    running = Running(e, model, inputs)
    running.run()
    for y in model.graph.outputs:
        assert digest(running.tensor(y)) == known["cases"]["noise"][2][str(y.number)]
    assert np.frombuffer(bytes(running.frame), np.uint8).size >= model.frame_bytes
