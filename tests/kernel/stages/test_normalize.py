import numpy as np
import pytest
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType

ROW = np.array([0, 128, 255], np.uint8).reshape(1, 1, 3, 1)
HALF = config_bytes("normalize", mean=[127.5], std=[127.5], channels=1)
reals = st.floats(-1e6, 1e6, width=32)


def test_bytes_become_minus_one_to_one(e):
    result = run(e, "normalize", ROW, HALF)
    assert result.tensor["dtype"] == DType.FLOAT32 and result.array.shape == ROW.shape
    np.testing.assert_allclose(result.array.ravel(), [-1, 0, 1], atol=0.01)


@pytest.mark.parametrize(
    "fields",
    [dict(mean=[0], std=[0], channels=1), dict(mean=[0], std=[-0.0], channels=1), dict(mean=[0] * 3, std=[1] * 3, channels=3),
     dict(channels=0), dict(std=[1] * 4, channels=5), dict(std=[float("nan")], channels=1), dict(std=[float("inf")], channels=1),
     dict(mean=[float("nan")], std=[1], channels=1), dict(mean=[float("-inf")], std=[1], channels=1)],
)  # fmt: skip
def test_a_bad_configuration_is_refused(e, fields):
    assert run(e, "normalize", ROW, config_bytes("normalize", **fields)).status == Status.INVAL


def test_channels_that_are_not_used_may_hold_anything(e):
    config = config_bytes("normalize", mean=[127.5, float("nan")], std=[127.5, 0], channels=1)
    assert run(e, "normalize", ROW, config).status == Status.OK


def test_what_it_refuses(e):
    assert run(e, "normalize", ROW, None).status == Status.INVAL
    assert run(e, "normalize", ROW, HALF, room=11).status == Status.NOMEM
    assert run(e, "normalize", ROW, HALF, room=12).status == Status.OK
    assert run(e, "normalize", ROW.astype(np.float32), HALF).status == Status.INVAL
    assert run(e, "normalize", ROW.ravel(), HALF).status == Status.INVAL
    assert run(e, "normalize", ROW, HALF, size=4).status == Status.INVAL
    assert run(e, "normalize", ROW, HALF, room=64, shape=(1, 0x40000000, 1, 1), size=0x40000000).status == Status.NOMEM


@given(
    image=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.sampled_from([np.uint8, np.int8])).flatmap(
        lambda s: arrays.arrays(s[3], (1, *s[:3]))
    ),
    mean=st.lists(reals, min_size=4, max_size=4),
    std=st.lists(reals.filter(lambda v: v != 0), min_size=4, max_size=4),
)
def test_normalize_equals_numpy(e, image, mean, std):
    config = config_bytes("normalize", mean=mean, std=std, channels=image.shape[3])
    with np.errstate(over="ignore"):
        want = reference.normalize(image, mean, std)
    assert run(e, "normalize", image, config).array.tobytes() == want.tobytes()


def test_a_quotient_past_f32_is_infinite(e):
    config = config_bytes("normalize", mean=[128], std=[1e-40], channels=1)
    assert run(e, "normalize", ROW, config).array.ravel().tolist() == [-np.inf, 0, np.inf]
