import numpy as np
import pytest
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType

SQUARE = np.array([10, 30, 50, 70], np.uint8).reshape(1, 2, 2, 1)


def to(w, h):
    return config_bytes("resize", w=w, h=h)


def test_two_by_two_becomes_the_published_four_by_four(e):
    result = run(e, "resize", SQUARE, to(4, 4))
    assert result.tensor["size"] == 16 and result.tensor["dtype"] == DType.UINT8
    want = [[10, 17, 23, 30], [23, 30, 37, 43], [37, 43, 50, 57], [50, 57, 63, 70]]
    assert result.array.tolist() == [[[[v] for v in row] for row in want]]


def test_signed_pixels_blend_as_signed_numbers_and_round_half_up(e):
    assert run(e, "resize", np.array([-2, 2], np.int8).reshape(1, 1, 2, 1), to(3, 1)).array.ravel().tolist() == [-2, 0, 2]
    assert run(e, "resize", np.array([-2, -1], np.int8).reshape(1, 1, 2, 1), to(3, 1)).array.ravel().tolist() == [-2, -1, -1]
    assert run(e, "resize", np.array([-128, 127], np.int8).reshape(1, 2, 1, 1), to(1, 3)).array.ravel().tolist() == [-128, 0, 127]


def test_what_it_refuses(e):
    assert run(e, "resize", SQUARE, None, room=16).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(4, 4), room=8).status == Status.NOMEM
    assert run(e, "resize", SQUARE, to(4, 4), room=15).status == Status.NOMEM
    assert run(e, "resize", SQUARE[0, :, :, 0], to(4, 4), room=16).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(0, 4), room=16).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(4, 0), room=16).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(4, 4)[:3], room=16).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(4, 4), room=16, inputs=2).status == Status.INVAL
    assert run(e, "resize", SQUARE, to(4, 4), room=16, inputs=0).status == Status.INVAL
    assert run(e, "resize", SQUARE.astype(np.float32), to(4, 4), room=64).status == Status.INVAL
    assert run(e, "resize", np.zeros((2, 2, 2, 1), np.uint8), to(4, 4), room=64).status == Status.INVAL
    assert run(e, "resize", np.zeros((1, 2, 2, 5), np.uint8), to(4, 4), room=80).status == Status.INVAL


@pytest.mark.parametrize(
    "shape, size",
    [((1, 100, 100, 3), 4), ((1, 2, 2, 1), 3), ((1, 2, 2, 1), 5), ((1, 0, 2, 1), 0), ((1, 2, 0, 1), 4), ((1, 2, 2, 0), 0),
     ((1, 65536, 65536, 1), 0), ((1, 65536, 16384, 4), 0), ((1, 0x80000000, 2, 1), 0), ((1, 0xFFFFFFFF, 0xFFFFFFFF, 4), 4)],
)  # fmt: skip
def test_a_shape_that_does_not_account_for_the_size_is_refused(e, shape, size):
    assert run(e, "resize", SQUARE, to(4, 4), room=64, shape=shape, size=size).status == Status.INVAL


def test_a_result_past_four_gigabytes_does_not_fit(e):
    pixel = np.zeros((1, 1, 1, 4), np.uint8)
    assert run(e, "resize", pixel, to(65535, 65535), room=64).status == Status.NOMEM
    assert run(e, "resize", pixel, to(32768, 32768), room=64).status == Status.NOMEM  # 2**32 bytes


def test_one_pixel_fills_everything_and_everything_gives_its_first_pixel(e):
    assert (run(e, "resize", np.full((1, 1, 1, 3), 200, np.uint8), to(3, 2)).array == 200).all()
    assert run(e, "resize", SQUARE, to(1, 1)).array.tolist() == [[[[10]]]]


@given(
    image=st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4), st.sampled_from([np.uint8, np.int8])).flatmap(
        lambda s: arrays.arrays(s[3], (1, *s[:3]))
    ),
    w=st.integers(1, 9),
    h=st.integers(1, 9),
)
def test_resize_equals_numpy(e, image, w, h):
    result = run(e, "resize", image, to(w, h))
    assert result.array.dtype == image.dtype
    np.testing.assert_array_equal(result.array, reference.resize(image, w, h))


def test_corners_go_to_corners_from_any_width_to_any(e):
    for source in (2, 3, 11, 41):
        line = np.full((1, 1, source, 1), 100, np.uint8)
        line[0, 0, 0], line[0, 0, -1] = 0, 255
        for w in range(2, 60, 3):
            out = run(e, "resize", line, to(w, 1)).array.ravel()
            assert (out[0], out[-1]) == (0, 255)


def test_columns_beyond_one_block_equal_numpy(e):
    image = np.random.default_rng(5).integers(0, 256, (1, 6, 50, 3), dtype=np.uint8)
    for w, h in ((70, 3), (32, 9), (33, 6), (64, 1)):
        np.testing.assert_array_equal(run(e, "resize", image, to(w, h)).array, reference.resize(image, w, h))
        signed = image.view(np.int8)
        np.testing.assert_array_equal(run(e, "resize", signed, to(w, h)).array, reference.resize(signed, w, h))
