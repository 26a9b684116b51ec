"""Colours, against Pillow and against the formulas in double precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from stage_calls import config_bytes, run

from synapticos.kernel.stages.colour import BGR, GREY, RGB, RGB565, RGB565_SWAPPED, RGBA, UYVY, YUYV
from synapticos.kernel.stages.scale import Rect
from synapticos.kernel.status import Status
from synapticos.lang import pack

COLOURS = np.random.default_rng(1).integers(0, 256, (1, 12, 16, 3), np.uint8)


def to(source, target, video=0, roi=(0, 0, 0, 0)):
    return config_bytes("colour", source=source, target=target, video=video, roi=pack(Rect, **dict(zip("xywh", roi))))


def colour(e, image, *rule, **options):
    return run(e, "colour", image, to(*rule, **options)).array


def test_order_and_alpha(e):
    rgba = np.concatenate([COLOURS, COLOURS[..., :1]], axis=3)
    assert colour(e, COLOURS, RGB, BGR).tolist() == COLOURS[..., ::-1].tolist()
    assert colour(e, COLOURS, BGR, RGB).tolist() == COLOURS[..., ::-1].tolist()
    assert colour(e, rgba, RGBA, BGR).tolist() == COLOURS[..., ::-1].tolist()
    for same in (RGB, BGR):
        assert colour(e, COLOURS, same, same).tolist() == COLOURS.tolist()
    grey = COLOURS[..., :1]
    assert colour(e, grey, GREY, GREY).tolist() == grey.tolist()
    assert colour(e, grey, GREY, RGB).tolist() == np.repeat(grey, 3, axis=3).tolist()


def test_grey_is_pillows(e):
    want = np.asarray(Image.fromarray(COLOURS[0]).convert("L"))
    assert colour(e, COLOURS, RGB, GREY)[0, :, :, 0].tolist() == want.tolist()
    assert colour(e, COLOURS[..., ::-1], BGR, GREY)[0, :, :, 0].tolist() == want.tolist()


def test_565_of_every_word(e):
    words = np.arange(65536, dtype=np.uint32).reshape(1, 256, 256)
    red, green, blue = words >> 11, words >> 5 & 63, words & 31
    want = np.stack([red * 8 + red // 4, green * 4 + green // 16, blue * 8 + blue // 4], axis=3)
    assert abs(want - np.stack([red * 255 / 31, green * 255 / 63, blue * 255 / 31], axis=3)).max() < 1
    low_first = np.stack([words & 255, words >> 8], axis=3).astype(np.uint8)
    assert (colour(e, low_first, RGB565, RGB) == want).all()
    assert (colour(e, low_first[..., ::-1], RGB565_SWAPPED, BGR) == want[..., ::-1]).all()


def yuv(y, u, v, video):
    """BT.601 in double precision."""
    y, u, v = y.astype(float), u.astype(float) - 128, v.astype(float) - 128
    if video:
        y, u, v = (y - 16) * 255 / 219, u * 255 / 224, v * 255 / 224
    return np.stack([y + 1.402 * v, y - 0.344136286 * u - 0.714136286 * v, y + 1.772 * u], axis=-1).clip(0, 255)


def interleaved(pixels, order):
    """4:2:2 of [H, W, (Y, U, V)], U and V of the left pixel of a pair."""
    h, w = pixels.shape[:2]
    out = np.empty((1, h, w, 2), np.uint8)
    bright, colours = (0, 1) if order == YUYV else (1, 0)
    out[0, :, :, bright] = pixels[:, :, 0]
    out[0, :, 0::2, colours], out[0, :, 1::2, colours] = pixels[:, 0::2, 1], pixels[:, 0::2, 2]
    shared = pixels.copy()
    shared[:, 1::2, 1:] = pixels[:, 0::2, 1:]
    return out, shared


@pytest.mark.parametrize("order", [YUYV, UYVY])
@pytest.mark.parametrize("video", [0, 1])
def test_yuv_is_within_one_step_of_the_formula(e, order, video):
    picture, pixels = interleaved(np.random.default_rng(2).integers(0, 256, (60, 60, 3), np.uint8), order)
    want = yuv(*np.moveaxis(pixels, 2, 0), video)
    rgb = colour(e, picture, order, RGB, video=video)[0]
    assert abs(rgb - want).max() < 0.51
    assert (colour(e, picture, order, BGR, video=video)[0] == rgb[..., ::-1]).all()
    bright = pixels[:, :, 0].astype(float)
    bright = ((bright - 16) * 255 / 219).clip(0, 255) if video else bright
    assert abs(colour(e, picture, order, GREY, video=video)[0, :, :, 0] - bright).max() < 0.51
    if not video:
        pillow = np.asarray(Image.fromarray(pixels, "YCbCr").convert("RGB")).astype(int)
        assert abs(rgb - pillow).max() <= 1


@given(data=arrays.arrays(np.uint8, (1, 5, 8, 4)), x=st.integers(0, 7), y=st.integers(0, 4), data2=st.data())
def test_a_part_is_cut_out_of_the_whole(e, data, x, y, data2):
    w, h = data2.draw(st.integers(1, 8 - x)), data2.draw(st.integers(1, 5 - y))
    for source, channels in ((GREY, 1), (RGB, 3), (RGBA, 4), (RGB565, 2), (YUYV, 2), (UYVY, 2)):
        picture = data[..., :channels]
        part = colour(e, picture, source, RGB, roi=(x, y, w, h))
        assert part.tolist() == colour(e, picture, source, RGB)[:, y : y + h, x : x + w].tolist()


def test_what_it_refuses(e):
    def status(image, *rule, room=4096, **options):
        return run(e, "colour", image, to(*rule, **options), room=room).status

    assert status(COLOURS, RGB, BGR) == Status.OK
    assert status(COLOURS, RGB, BGR, room=575) == Status.NOMEM
    assert status(COLOURS, RGBA, BGR) == Status.INVAL
    assert status(COLOURS, RGB, RGBA) == Status.INVAL
    assert status(COLOURS, 8, RGB) == Status.INVAL
    assert status(COLOURS.view(np.int8), RGB, BGR) == Status.INVAL
    assert status(COLOURS[..., :2], YUYV, RGB) == Status.OK
    assert status(COLOURS[:, :, :15, :2], YUYV, RGB) == Status.INVAL  # pairs of pixels
    assert status(COLOURS, RGB, RGB, video=1) == Status.INVAL
    for roi in ((0, 0, 17, 1), (16, 0, 1, 1), (0, 12, 1, 1), (0, 0, 1, 13), (1, 0, 0, 0), (0, 0, 1, 0)):
        assert status(COLOURS, RGB, RGB, roi=roi) == Status.INVAL
