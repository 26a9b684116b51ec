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
