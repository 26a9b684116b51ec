import pytest
from stage_calls import ROOTS


@pytest.fixture
def e(engines):
    """All three engines with the built-in processors in them; each call compares results and bytes."""
    return engines(*ROOTS)
