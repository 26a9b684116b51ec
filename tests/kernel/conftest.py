import pytest
from kernels import OPTIONS, ROOTS, World


@pytest.fixture
def w(make):
    """A kernel that is up, on each engine in turn."""
    return World(make(*ROOTS, **OPTIONS))


@pytest.fixture
def world(make):
    """`world(arena=4096)`: a kernel of other measures, on each engine in turn."""
    return lambda **options: World(make(*ROOTS, **OPTIONS), **options)
