"""The stored digests are what TensorFlow Lite Micro's reference kernels answer today, and what it answered before."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from synapticos import importers

DATA = Path(__file__).resolve().parents[1] / "data"
SHARED = ("hello_world_int8", "digits_cnn_int8", "person_detect_int8", "face_blazeface_int8")


def test_the_repository_s_model_is_what_its_script_makes():
    from make_test_model import every_layer

    assert every_layer() == (DATA / "every_layer.tflite").read_bytes()


def test_the_judge_answers_as_stored():
    pytest.importorskip("tflite_micro", reason="no tflite-micro wheel for this Python or machine")
    from judge import judge

    stored = json.loads((DATA / "every_layer.json").read_text())
    data = (DATA / "every_layer.tflite").read_bytes()
    assert stored["crc32"] == zlib.crc32(data)
    assert judge(data, "every_layer", None, 3)["cases"]["noise"] == stored["cases"]["noise"][:3]


@pytest.mark.parametrize("name", SHARED)
def test_digests_belong_to_the_models_and_end_in_their_published_answers(name, shared_models):
    data = (shared_models / f"{name}.tflite").read_bytes()
    stored = json.loads((DATA / f"{name}.json").read_text())
    assert stored["crc32"] == zlib.crc32(data)
    graph = importers.read(data, name)
    with np.load(shared_models / f"{name}.npz") as file:
        for i, tensor in enumerate(graph.outputs):
            key = f"out_{i}_tflm" if f"out_{i}_tflm" in file else f"out_{i}_litert_ref"
            for case, digests in enumerate(stored["cases"]["stored"]):
                assert digests[str(tensor.number)] == zlib.crc32(np.ascontiguousarray(file[key][case]).tobytes())
