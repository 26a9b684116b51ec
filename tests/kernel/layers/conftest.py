import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from layer_calls import ROOTS  # noqa: E402

MODELS = Path(os.environ.get("SYNAPTICOS_MODELS", ROOT.parent / "shared" / "models"))


@pytest.fixture(scope="session")
def e(engines):
    """All three engines with the cpu backend in them; each call compares results and bytes."""
    return engines(*ROOTS)


@pytest.fixture(scope="session")
def model_file():
    """The path of a real model that is no part of the product, with its stored cases; skips where it is not."""

    def find(name: str) -> Path:
        path = MODELS / f"{name}.tflite"
        if not path.exists():
            pytest.skip(f"{path} is not there; set SYNAPTICOS_MODELS")
        return path

    return find
