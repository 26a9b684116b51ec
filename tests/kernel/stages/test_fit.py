import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stage_calls import config_bytes, run

from synapticos.kernel.stages.fit import full_range
from synapticos.kernel.status import Status

IMAGE = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
GOOD = dict(w=3, h=2, channels=3, mean=[1, 2, 3], std=[1, 1, 2], scale=0.5, zero_point=3)
reals = st.floats(-1e5, 1e5, width=32)


def apart(e, image, w, h, mean, std, scale, zero_point):
    image = run(e, "resize", image, config_bytes("resize", w=w, h=h)).array
    image = run(e, "normalize", image, config_bytes("normalize", mean=mean, std=std, channels=image.shape[3])).array
    return run(e, "quantize", image, config_bytes("quantize", scale=scale, zero_point=zero_point))


@given(
    image=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.sampled_from([np.uint8, np.int8])).flatmap(
        lambda s: arrays.arrays(s[3], (1, *s[:3]))
    ),
    w=st.integers(1, 6),
    h=st.integers(1, 6),
    mean=st.lists(reals | st.just(127.5), min_size=4, max_size=4),
    std=st.lists(reals.filter(lambda v: v != 0) | st.just(127.5), min_size=4, max_size=4),
    scale=st.floats(-100, 100, width=32).filter(lambda s: s != 0) | st.just(0.0078125),
    zero_point=st.integers(-(2**31), 2**31 - 1) | st.integers(-128, 127),
)
def test_fit_equals_resize_normalize_and_quantize(e, image, w, h, mean, std, scale, zero_point):
    config = config_bytes("fit", w=w, h=h, channels=image.shape[3], mean=mean, std=std, scale=scale, zero_point=zero_point)
    whole, parts = run(e, "fit", image, config), apart(e, image, w, h, mean, std, scale, zero_point)
    assert whole.array.tobytes() == parts.array.tobytes()
    assert {**whole.tensor, "offset": 0} == {**parts.tensor, "offset": 0}


@given(scale=st.floats(1e-6, 10), zero_point=st.integers(-128, 127))
def test_the_default_sends_the_pixels_to_all_of_the_tensors_range(e, scale, zero_point):
    mean, std = full_range(scale, zero_point)
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    config = config_bytes("fit", w=16, h=16, channels=1, mean=[mean], std=[std], scale=scale, zero_point=zero_point)
    assert run(e, "fit", pixels, config).array.ravel().tolist() == list(range(-128, 128))


def test_what_it_refuses(e):
    assert run(e, "fit", IMAGE, config_bytes("fit", **GOOD)).status == Status.OK
    assert run(e, "fit", IMAGE, config_bytes("fit", **GOOD), room=17).status == Status.NOMEM
    assert run(e, "fit", IMAGE, None).status == Status.INVAL
    assert run(e, "fit", IMAGE[..., :1], config_bytes("fit", **GOOD), room=64).status == Status.INVAL
    assert run(e, "fit", IMAGE, config_bytes("fit", **GOOD), size=11, room=64).status == Status.INVAL
    for bad in (dict(w=0), dict(h=0), dict(channels=0), dict(channels=5), dict(std=[1, 0, 1]), dict(mean=[float("nan")] * 3),
                dict(scale=0.0), dict(scale=float("inf")), dict(scale=float("nan"))):  # fmt: skip
        assert run(e, "fit", IMAGE, config_bytes("fit", **{**GOOD, **bad}), room=64).status == Status.INVAL


def frame(n):
    """Frame n of the published face sample: a gradient, and a bright block in one of ten cells."""
    y, x, c = np.mgrid[0:24, 0:24, 0:3]
    image = ((x + y + c) % 64).astype(np.uint8)
    left, top = 4 * (n % 5), 12 * (n // 5)
    image[top : top + 8, left : left + 8] = 100
    return image[None]


def test_the_face_sample_gives_the_published_sums(e):
    config = config_bytes("fit", w=12, h=12, channels=3, mean=[127.5] * 3, std=[127.5] * 3, scale=1 / 127, zero_point=0)
    sums = [int(run(e, "fit", frame(n), config).array.view(np.uint8).sum()) for n in range(10)]
    assert sums == [70557, 70350, 70137, 69936, 69744, 69936, 69744, 69552, 69351, 69138]
    parts = apart(e, frame(0), 12, 12, [127.5] * 3, [127.5] * 3, 1 / 127, 0)
    assert int(parts.array.view(np.uint8).sum()) == sums[0]
