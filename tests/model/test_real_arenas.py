"""The arena of real networks: near the largest live set, below the reference interpreter's, and what a run really touches."""

import re

import numpy as np
import pytest
from judge import noise

from synapticos import importers
from synapticos.engine import Build
from synapticos.kernel.verify import verify_layer
from synapticos.lang import u8
from synapticos.model import compile_model
from synapticos.model.verify import ROOTS, job_input

MODELS = [
    "ad_autoencoder_int8", "audio_preprocessor_int8", "digits_cnn_int8", "face_blazeface_float", "face_blazeface_int8",
    "hello_world_float", "hello_world_int8", "ic_resnet8_int8", "keyword_svdf_int16", "kws_dscnn_int8", "magic_wand_int8",
    "micro_speech_int8", "mnist_lstm_int8", "person_detect_int8", "vww_mobilenet_int8", "wakeword_alexa_int8",
]  # fmt: skip
MOST = 1.1  # times the largest live set
EXCEPTIONS: dict[str, float] = {}  # model: what it needs instead; there is none
NEEDED: dict[str, tuple[int, int, int]] = {  # persistent, frame, scratch: none may grow
    "digits_cnn_int8": (0, 2_176, 288),
    "face_blazeface_int8": (0, 229_408, 2_048),
    "hello_world_int8": (0, 32, 0),
    "ic_resnet8_int8": (0, 33_792, 2_048),
    "kws_dscnn_int8": (0, 8_640, 576),
    "person_detect_int8": (0, 37_248, 2_304),
    "vww_mobilenet_int8": (0, 37_248, 2_304),
}


def compiled(name, folder):
    path = folder / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"no {path.name} there")
    return compile_model(importers.load(path))


@pytest.fixture(scope="module")
def reference_arena(shared_models):
    """What the reference interpreter needs for the same file, from the table beside the models."""
    text = (shared_models / "README.md").read_text()
    return {m[1]: int(m[2]) for m in re.finditer(r"^\| (\w+) \|(?:[^|\n]*\|){3} (\d+) \|$", text, re.MULTILINE)}


@pytest.mark.parametrize("name", MODELS)
def test_an_arena_is_near_the_largest_live_set_and_below_the_reference_s(name, shared_models, reference_arena):
    plan = compiled(name, shared_models).plan
    print(f"{name}: persistent {plan.persistent}, frame {plan.peak}, largest live set {plan.lower_bound}, scratch {plan.scratch}, all tensors {plan.total}")
    assert plan.peak <= plan.lower_bound * EXCEPTIONS.get(name, MOST)
    assert plan.ram <= (plan.persistent + plan.lower_bound + plan.scratch) * EXCEPTIONS.get(name, MOST)
    assert plan.ram < reference_arena[name]
    if name in NEEDED:
        assert all(now <= then for now, then in zip((plan.persistent, plan.peak, plan.scratch), NEEDED[name], strict=True))


@pytest.fixture(scope="module")
def native():
    return Build(list(ROOTS)).engine("native")


@pytest.mark.parametrize("name", MODELS)
def test_a_run_touches_what_was_planned_up_to_its_last_block(native, name, shared_models):
    c = compiled(name, shared_models)
    plan, size = c.plan, c.plan.ram
    touched = np.zeros(size, bool)
    given = native.array(u8, job_input(noise(c.graph, 3)[2]))
    container = native.array(u8, c.container)
    for paint in (0xA5, 0x5A):

        memory = native.array(u8, bytes([paint]) * size)
        for step in range(len(c.layers)):
            assert native(verify_layer, container, len(container), memory, size, given, len(given), step, step == 0) == 0
        touched |= np.frombuffer(bytes(memory), np.uint8) != paint
    frame = touched[plan.persistent : plan.persistent + plan.peak]
    assert -(-(int(np.flatnonzero(frame)[-1]) + 1) // 16) * 16 == plan.peak
    lowest = {at: t for t, at in plan.places.items()}
    assert min(lowest) == 0 and int(np.flatnonzero(frame)[0]) == 0
