"""Each operator on all three engines, and against the reference kernels where they are installed."""

import numpy as np
import pytest
from layer_calls import Judge, Running, compiled
from operator_models import OPERATORS, Maker, space_to_batch_model

from synapticos.model.verify import ROOTS, Reference, verify_layers

# Units in the last place that e**x and tanh may be off together with the reference's own; all else is exact, but for
# rows that are held against exact reals (`test_rows_f32`), and from which the reference kernels themselves are this far.
ULP = {"logistic": 2, "tanh": 2, "elu": 2}
CLOSE = {"lstm_f32": 2e-6}  # what squashing in time step after time step adds up to
NEAR = {"softmax_f32": 1e-7, "log_softmax_f32": 1e-5}


def distance(a: np.ndarray, b: np.ndarray) -> int:
    """The largest distance of two arrays: floats between the two plus one, or the integers' difference."""
    if a.dtype != np.float32:
        return int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max())
    apart = np.abs(a.view(np.int32).astype(np.int64) - b.view(np.int32).astype(np.int64))
    return int(np.where(a == b, 0, apart).max())


def wide(name: str, count: int) -> list:
    """The first models of an operator that take int16."""
    made = (OPERATORS[name](np.random.default_rng([seed, 7])) for seed in range(200))
    return [m for m in made if m.inputs[0].dtype == np.int16][:count]


@pytest.mark.skipif(Judge is None, reason="tflite-micro is not installed")
@pytest.mark.parametrize("extreme", [None, -32768, 32767])
@pytest.mark.parametrize("name", ["mean", "sum", "transpose_conv", "leaky_relu", "maximum", "minimum"])
def test_int16_is_as_the_reference_at_its_ends_too(e, name, extreme):
    for model in wide(name, 3):
        inputs = [x if extreme is None else np.full_like(x, extreme) for x in model.inputs]
        made = compiled(model.data)
        running = Running(e, made, inputs)
        running.run(tiles=2)
        answers = Judge(model.data).run(made.graph, inputs)
        (y,) = made.graph.outputs
        assert np.array_equal(running.tensor(y), answers[y.number].reshape(y.shape))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_the_same_everywhere_and_as_the_reference(e, name, seed):
    model = OPERATORS[name](np.random.default_rng([seed, 7]))
    made = compiled(model.data)
    running = Running(e, made, model.inputs)
    running.run(tiles=2)
    answers = Judge(model.data).run(made.graph, model.inputs) if Judge is not None else {}
    for op in made.graph.ops:
        for y in op.outputs:
            if y.number < 0 or made.plan.root(y) in made.graph.inputs:  # no tensor of the file, or an input as it is
                continue
            got = running.tensor(y)  # fails if two engines differ in a byte
            if answers:
                wanted = answers[y.number].reshape(y.shape)
                if name in NEAR:
                    assert np.allclose(got, wanted, rtol=2e-5, atol=NEAR[name]), f"{name}: {op}"
                    continue
                if name in CLOSE:
                    assert np.allclose(got, wanted, rtol=2e-6, atol=CLOSE[name]), f"{name}: {op}"
                    continue
                assert distance(got, wanted) <= (ULP.get(name, 0) if y.dtype == "float32" else 0), f"{name}: {op}"


@pytest.mark.skipif(Judge is None, reason="tflite-micro is not installed")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NEAR)
def test_verify_holds_them_against_exact_reals(make, name, seed):
    model = OPERATORS[name](np.random.default_rng([seed, 7]))
    made, reference = compiled(model.data), Reference(model.data)
    verdict = verify_layers(make(*ROOTS), made, [model.inputs], lambda x, fresh: reference.run(made.graph, x, fresh))
    assert verdict.exact and verdict.elements > 0, verdict.to_text()


@pytest.mark.parametrize("seed", range(6))
def test_what_space_to_batch_adds_is_real_zero(e, seed):
    model, wanted = space_to_batch_model(np.random.default_rng(seed), 1)
    made = compiled(model.data)
    running = Running(e, made, model.inputs)
    running.run()
    assert np.array_equal(running.tensor(made.graph.outputs[0]), wanted)


def test_every_form_that_the_reader_takes_is_in_some_test():
    """A new row of the reader's table needs a model here, in `layer_models`, or among the whole networks."""
    from synapticos.importers.tflite import OPERATORS as ROWS

    elsewhere = {
        "ASSIGN_VARIABLE", "AVERAGE_POOL_2D", "CALL_ONCE", "CONV_2D", "DEPTHWISE_CONV_2D", "EXPAND_DIMS",
        "FULLY_CONNECTED", "MAX_POOL_2D", "READ_VARIABLE", "RELU_N1_TO_1", "RESHAPE", "SOFTMAX", "SQUEEZE",
        "UNIDIRECTIONAL_SEQUENCE_LSTM", "VAR_HANDLE",
    }  # fmt: skip
    names = {name.removesuffix("_f32").rstrip("_") for name in OPERATORS} | {"batch_to_space_nd", "space_to_batch_nd"}
    missing = [k for k in ROWS if k not in elsewhere and not k.startswith("Signal") and k.lower() not in names]
    assert not missing


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("type", ["int8", "float32"])
def test_relu_n1_to_1_is_numpy_s_clip(e, type, seed):
    """The reference kernels have it only fused, so it is held against NumPy."""
    random = np.random.default_rng([seed, 11])
    m = Maker(random)
    q = m.scale(type)
    x = m.x((2, 128), type, **q)
    if type == "int8":
        m.given[-1] = np.arange(-128, 128).astype(np.int8).reshape(2, 128)
    y = m.y((2, 128), type, **q)
    m.w.op("RELU_N1_TO_1", [x], [y], 1, None)
    model = m.done(y)
    made = compiled(model.data)
    running = Running(e, made, model.inputs)
    running.run(tiles=2)
    one = np.round(np.float32(1) / np.float32(q["scale"])) if q else np.float32(1)
    zero = q.get("zero", 0)
    wanted = np.clip(model.inputs[0].astype(float), zero - one, zero + one)
    assert np.array_equal(running.tensor(made.graph.outputs[0]), wanted.astype(type))


STRANGE = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38, 1.0, -1.0], np.float32)


def real_models() -> list:
    """For each operator that takes float32, a model of it."""
    found = []
    for name in OPERATORS:
        made = (OPERATORS[name](np.random.default_rng([seed, 7])) for seed in range(40))
        model = next((m for m in made if any(x.dtype == np.float32 for x in m.inputs)), None)
        if model is not None:
            found.append(pytest.param(model, id=name))
    return found


@pytest.mark.parametrize("model", real_models())
def test_what_is_no_number_runs_the_same_everywhere(e, model):
    """NaNs, infinities, the smallest and the largest: no check fails, and the three engines give the same; of a NaN its
    being one."""
    made = compiled(model.data)
    for shift in range(0, len(STRANGE), 3):
        inputs = [np.resize(np.roll(STRANGE, shift), x.shape).astype(np.float32) if x.dtype == np.float32 else x for x in model.inputs]
        answers = []
        for one in e.each:
            running = Running(one, made, inputs)
            running.run(tiles=2)
            answers.append([running.tensor(y) for op in made.graph.ops for y in op.outputs if y.number >= 0 and made.plan.root(y) not in made.graph.inputs])
        for other in answers[1:]:
            for a, b in zip(answers[0], other, strict=True):
                assert np.array_equal(a, b, equal_nan=a.dtype == np.float32)
