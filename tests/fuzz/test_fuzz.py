"""The fuzzers for a bounded time, in a child under the sanitizers. They print how far the mutants got."""

import json

import pytest
from harness import run_sanitized


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_damaged_containers_touch_nothing_outside(seed):
    found = run_sanitized("containers.py", "--cases", "4000", "--seconds", "60", "--seed", str(seed))
    print(json.dumps(found))
    # A fuzzer whose mutants all stop at the door tests the door only.
    assert found["past_header"] > found["cases"] * 0.8
    assert found["accepted"] > found["cases"] * 0.1
    assert found["executed"] > found["cases"] * 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_damaged_model_files_are_refused_or_run(seed):
    found = run_sanitized("tflites.py", "--cases", "300", "--seconds", "60", "--seed", str(seed))
    print(json.dumps(found))
    assert found["executed"] > found["cases"] * 0.1
    assert found["refused"] > found["cases"] * 0.1


@pytest.mark.parametrize("value", [None, "3", [1, 2], float("nan"), float("inf")])
def test_options_that_are_no_numbers_are_damage(value):
    """Found by the fuzzer: a null where a custom operator has a number."""
    import numpy as np
    from flatbuffers import flexbuffers

    from synapticos.importers.tflite import Damaged, _flexbuffer

    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("start")
        if isinstance(value, list):
            builder.TypedVectorFromElements(value)
        else:
            builder.Null() if value is None else builder.Add(value)

    class Op:
        data = np.frombuffer(bytes(builder.Finish()), np.uint8)

        def CustomOptionsLength(self):
            return len(self.data)

        def CustomOptionsAsNumpy(self):
            return self.data

    with pytest.raises(Damaged, match='option "start"'):
        _flexbuffer(Op(), ("start",))


def test_a_subnormal_scale_is_refused_by_the_compiler_not_by_the_kernel():
    """Found by the fuzzer: the kernel refused what had been compiled."""
    from tflite_writer import Writer

    from synapticos import importers
    from synapticos.errors import UserError

    w = Writer()
    x, y = w.tensor("x", (1, 4), type="float32"), w.tensor("y", (1, 4), 6e-45, -33)
    w.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
    with pytest.raises(UserError, match="a scale of 5.60519e-45"):
        importers.read(w.finish([x], [y]), "small")
