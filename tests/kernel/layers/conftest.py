import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from layer_calls import ROOTS


@pytest.fixture(scope="session")
def e(engines):
    """All three engines with the cpu backend in them; each call compares results and bytes."""
    return engines(*ROOTS)
