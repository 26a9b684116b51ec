"""Optimised models in execution: whatever was fused, joined, reordered or laid over something else, each layer's
result is the reference's at the moment it is complete."""

import json
from pathlib import Path

import numpy as np
import pytest
from judge import Judge, digest, noise, stored
from layer_calls import ROOTS, Running
from make_test_model import NONE, RELU, RELU6, SAME, VALID, Layers

from synapticos import importers
from synapticos.engine import Build
from synapticos.kernel.status import Status
from synapticos.model import compile_model

DATA = Path(__file__).resolve().parents[1] / "data"
MODELS = ("hello_world_int8", "digits_cnn_int8", "person_detect_int8", "face_blazeface_int8")


@pytest.fixture(scope="module")
def native():
    return Build(list(ROOTS)).engine("native")


def run_and_compare(engine, compiled, inputs, wanted):
    """Run step by step in the tiles that the container asks for; `wanted(tensor)`: the crc32 of its bytes."""
    running = Running(engine, compiled, inputs)
    limit = compiled.max_step
    for number, (op, layer) in enumerate(zip(compiled.plan.steps, compiled.layers, strict=True)):
        rows = layer.rows
        tile = rows if limit is None or layer.cost <= limit else max(1, rows * limit // layer.cost)
        for row in range(0, rows, tile):
            assert running.step(number, row, min(row + tile, rows)) == Status.OK
        (y,) = op.outputs
        assert digest(running.tensor(y)) == wanted(y), f"{op} is the first to differ"
    for y in compiled.graph.outputs:
        assert digest(running.tensor(y)) == wanted(y)


@pytest.mark.parametrize("max_step", [None, 20_000])
@pytest.mark.parametrize("name", ["every_layer", *MODELS])
def test_each_layer_of_an_optimised_model_has_the_judge_s_digest(native, request, name, max_step):
    path = DATA / "every_layer.tflite"
    if name != "every_layer":
        path = request.getfixturevalue("shared_models") / f"{name}.tflite"
    graph = importers.load(path)
    known = json.loads((DATA / f"{name}.json").read_text())["cases"]
    compiled = compile_model(graph, max_step=max_step)
    cases = [(x, known["noise"][i]) for i, x in enumerate(noise(graph, 3))]
    if "stored" in known:
        cases += [(x, known["stored"][i]) for i, x in enumerate(stored(graph, path.with_suffix(".npz"), 2))]
    for inputs, digests in cases:
        run_and_compare(native, compiled, inputs, lambda t, d=digests: d[str(t.number)])


def random_network(seed):
    """A network of 4 to 14 layers of every kind, from a seed."""
    m = Layers(seed)
    r = np.random.Generator(np.random.PCG64(seed))

    def pick(*options):
        return options[int(r.integers(len(options)))]

    h, w, c = (int(n) for n in r.integers(3, 14, 3))
    known = [m.tensor("x", (1, h, w, c), 0.05, int(r.integers(-128, 128)))]
    for i in range(int(r.integers(4, 15))):
        # Mostly go on from the last result, so that long chains arise.
        x = known[-1] if r.integers(4) else known[int(r.integers(len(known)))]
        _, h, w, c = m.tensors[x].shape
        kind = pick("conv", "conv", "one", "depthwise", "pad", "channels", "max", "average", "add", "quantize", "join")
        name = f"{kind}_{i}"
        k = min(int(pick(1, 2, 3, 3)), h), min(int(pick(1, 3)), w)
        how = {"stride": int(pick(1, 1, 2)), "padding": pick(SAME, VALID)}
        activation = pick(NONE, RELU, RELU6)
        if h * w * c > 12_000:
            kind = "max"
        if kind == "conv":
            y = m.conv(name, x, int(r.integers(1, 24)), k, activation=activation, **how)
        elif kind == "one":
            y = m.conv(name, x, int(r.integers(1, 32)), (1, 1))
        elif kind == "depthwise":
            y = m.depthwise(name, x, int(pick(1, 1, 2)) if c < 24 else 1, k, activation=activation, **how)
        elif kind == "pad":
            y = m.pad(name, x, [(0, 0), *(tuple(int(n) for n in r.integers(0, 3, 2)) for _ in range(2)), (0, 0)])
        elif kind == "channels":
            y = m.pad(name, x, [(0, 0), (0, 0), (0, 0), (int(r.integers(2)), int(r.integers(9)))])
        elif kind in ("max", "average"):
            y = m.pool(kind.upper(), name, x, k, how["stride"], how["padding"])
        elif kind == "add":
            same = [t for t in known if m.tensors[t].shape == m.tensors[x].shape]
            y = m.add(name, x, same[int(r.integers(len(same)))], pick(NONE, RELU))
        elif kind == "quantize":
            y = m.requantize(name, x, float(r.uniform(0.6, 1.8)), int(r.integers(-100, 100)))
        else:
            other = m.requantize_as(f"{name}_other", known[int(r.integers(len(known)))], x)
            known.append(other)
            y = m.concatenate(name, [x, other], 1) if m.tensors[other].shape[2:] == (w, c) else other
        if y not in known:
            known.append(y)
    outputs = [known[-1]]
    if r.integers(2) and len(known) > 3:
        extra = known[int(r.integers(1, len(known) - 1))]
        outputs.append(extra)
    return m.finish([0], outputs)


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_run_as_the_reference_does(native, seed):
    pytest.importorskip("tflite_micro", reason="no tflite-micro wheel for this Python or machine")
    data = random_network(seed)
    graph = importers.read(data, f"random_{seed}")
    compiled = compile_model(graph, max_step=[None, 500][seed % 2])
    judge = Judge(data)
    for inputs in noise(graph, 4)[1:]:
        answers = judge.run(graph, inputs)
        run_and_compare(native, compiled, inputs, lambda t, a=answers: digest(a[t.number]))
