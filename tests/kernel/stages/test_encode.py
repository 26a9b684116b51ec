import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stage_calls import config_bytes, run
from test_fit import reals

from synapticos.kernel.status import Status

GOOD = dict(channels=3, mean=[1, 2, 3], std=[1, 1, 2], scale=0.5, zero_point=3)
IMAGE = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)


@given(
    image=st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.sampled_from([np.uint8, np.int8])).flatmap(
        lambda s: arrays.arrays(s[3], (1, *s[:3]))
    ),
    mean=st.lists(reals | st.just(127.5), min_size=4, max_size=4),
    std=st.lists(reals.filter(lambda v: v != 0) | st.just(127.5), min_size=4, max_size=4),
    scale=st.floats(-100, 100, width=32).filter(lambda s: s != 0) | st.just(0.0078125),
    zero_point=st.integers(-(2**31), 2**31 - 1) | st.integers(-128, 127),
)
def test_one_pass_gives_the_bytes_of_two(e, image, mean, std, scale, zero_point):
    channels = image.shape[3]
    real = run(e, "normalize", image, config_bytes("normalize", mean=mean, std=std, channels=channels)).array
    parts = run(e, "quantize", real, config_bytes("quantize", scale=scale, zero_point=zero_point))
    config = config_bytes("normalize_quantize", channels=channels, mean=mean, std=std, scale=scale, zero_point=zero_point)
    whole = run(e, "normalize_quantize", image, config)
    assert whole.array.tobytes() == parts.array.tobytes() and whole.tensor == parts.tensor


def test_what_it_refuses(e):
    assert run(e, "normalize_quantize", IMAGE, config_bytes("normalize_quantize", **GOOD)).status == Status.OK
    assert run(e, "normalize_quantize", IMAGE, config_bytes("normalize_quantize", **GOOD), room=11).status == Status.NOMEM
    assert run(e, "normalize_quantize", IMAGE[..., :1], config_bytes("normalize_quantize", **GOOD), room=64).status == Status.INVAL
    assert run(e, "normalize_quantize", IMAGE, None).status == Status.INVAL
    for bad in (dict(channels=0), dict(std=[1, 0, 1]), dict(scale=0.0), dict(scale=float("nan"))):
        assert run(e, "normalize_quantize", IMAGE, config_bytes("normalize_quantize", **{**GOOD, **bad})).status == Status.INVAL
