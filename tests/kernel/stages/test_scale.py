"""Scaling, against whole-number and fractional arithmetic that shares nothing with it."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from stage_calls import ROOTS, config_bytes, run

from synapticos.kernel.stages.boxes import BoxMap, box_map
from synapticos.kernel.stages.scale import (
    ALIGN_CORNERS,
    AREA,
    ASYMMETRIC,
    BILINEAR,
    CROP,
    HALF_PIXEL,
    LETTERBOX,
    NEAREST,
    STRETCH,
    Placement,
    Rect,
    ScaleConfig,
    placement,
)
from synapticos.kernel.status import Status
from synapticos.lang import pack, unpack

FIELD = np.array([[7, 250, 31, 96, 180], [64, 3, 201, 119, 45], [222, 88, 150, 12, 240], [55, 170, 99, 233, 20]], np.uint8).reshape(1, 4, 5, 1)
RULES = [(NEAREST, ALIGN_CORNERS), (NEAREST, HALF_PIXEL), (NEAREST, ASYMMETRIC), (BILINEAR, ALIGN_CORNERS), (BILINEAR, HALF_PIXEL), (BILINEAR, ASYMMETRIC), (AREA, HALF_PIXEL)]  # fmt: skip


@pytest.fixture
def e(engines):
    return engines(placement, box_map, *ROOTS)


def to(w, h, method=BILINEAR, coordinates=HALF_PIXEL, fit=STRETCH, fill=(0, 0, 0, 0), roi=(0, 0, 0, 0)):
    rect = pack(Rect, **dict(zip("xywh", roi)))
    return config_bytes("scale", w=w, h=h, method=method, coordinates=coordinates, fit=fit, fill=list(fill), roi=rect)


def half_up(value):
    return floor(value + Fraction(1, 2))


def at(i, source, target, coordinates):
    """Where target pixel i lies, exactly."""
    if coordinates == ALIGN_CORNERS:
        return Fraction(i * (source - 1), target - 1) if target > 1 else Fraction(0)
    if coordinates == HALF_PIXEL:
        return (i + Fraction(1, 2)) * Fraction(source, target) - Fraction(1, 2)
    return Fraction(i * source, target)


def weights(source, target, method, coordinates):
    """The matrix [target, source] by which one direction is scaled, in fractions."""
    matrix = np.full((target, source), Fraction(0), object)
    for i in range(target):
        place = at(i, source, target, coordinates)
        if method == NEAREST:
            whole = floor(place) if coordinates == ASYMMETRIC else half_up(place)
            matrix[i, min(max(whole, 0), source - 1)] += 1
        elif method == BILINEAR:
            place = min(max(place, Fraction(0)), Fraction(source - 1))
            whole = floor(place)
            matrix[i, whole] += 1 - (place - whole)
            matrix[i, min(whole + 1, source - 1)] += place - whole
        else:
            low, high = Fraction(i * source, target), Fraction((i + 1) * source, target)
            for j in range(floor(low), ceil(high)):
                matrix[i, j] += (min(high, j + 1) - max(low, j)) / (high - low)
    return matrix


def exact(image, w, h, method, coordinates):
    """[h, w, C] of fractions, not rounded."""
    rows, columns = weights(image.shape[1], h, method, coordinates), weights(image.shape[2], w, method, coordinates)
    planes = [rows @ image[0, :, :, c].astype(int).astype(object) @ columns.T for c in range(image.shape[3])]
    return np.stack(planes, axis=2)


def rounded(values):
    return np.vectorize(half_up, otypes=[int])(values)


@pytest.mark.parametrize("method, coordinates", RULES)
@pytest.mark.parametrize("w, h", [(10, 8), (3, 2)])
def test_every_rule_equals_exact_arithmetic(e, method, coordinates, w, h):
    if method == AREA and w > 5:
        assert run(e, "scale", FIELD, to(w, h, method, coordinates), room=400).status == Status.INVAL
        return
    got = run(e, "scale", FIELD, to(w, h, method, coordinates)).array[0].astype(int)
    assert got.tolist() == rounded(exact(FIELD, w, h, method, coordinates)).tolist()


@pytest.mark.parametrize(
    "method, coordinates, row",
    [
        (NEAREST, ALIGN_CORNERS, [7, 7, 250, 250, 31, 31, 96, 96, 180, 180]),
        (NEAREST, HALF_PIXEL, [7, 7, 250, 250, 31, 31, 96, 96, 180, 180]),
        (NEAREST, ASYMMETRIC, [7, 7, 250, 250, 31, 31, 96, 96, 180, 180]),
        (BILINEAR, ALIGN_CORNERS, [7, 115, 223, 177, 80, 45, 74, 105, 143, 180]),
        (BILINEAR, HALF_PIXEL, [7, 68, 189, 195, 86, 47, 80, 117, 159, 180]),
        (BILINEAR, ASYMMETRIC, [7, 129, 250, 141, 31, 64, 96, 138, 180, 180]),
    ],
)
def test_one_row_twice_as_wide(e, method, coordinates, row):
    """Worked out by hand: 7 + (250 - 7) / 4 = 67.75, and so on."""
    assert run(e, "scale", FIELD[:, :1], to(10, 1, method, coordinates)).array.ravel().tolist() == row


def test_halving_tells_the_rules_apart(e):
    line = np.arange(8, dtype=np.uint8).reshape(1, 1, 8, 1) * 10
    rows = {rule: run(e, "scale", line, to(4, 1, *rule)).array.ravel().tolist() for rule in RULES}
    assert rows[NEAREST, ALIGN_CORNERS] == [0, 20, 50, 70] and rows[NEAREST, HALF_PIXEL] == [10, 30, 50, 70]
    assert rows[NEAREST, ASYMMETRIC] == rows[BILINEAR, ASYMMETRIC] == [0, 20, 40, 60]
    assert rows[BILINEAR, ALIGN_CORNERS] == [0, 23, 47, 70]
    assert rows[BILINEAR, HALF_PIXEL] == rows[AREA, HALF_PIXEL] == [5, 25, 45, 65]


images = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.sampled_from([np.uint8, np.int8])).flatmap(
    lambda s: arrays.arrays(s[3], (1, *s[:3]))
)


@given(image=images, w=st.integers(1, 12), h=st.integers(1, 12), rule=st.sampled_from(RULES))
def test_any_size_equals_exact_arithmetic(e, image, w, h, rule):
    """Nearest and area always; bilinear, whose fractions are floats, but for values within 2**-12 of a tie."""
    if rule[0] == AREA:
        w, h = min(w, image.shape[2]), min(h, image.shape[1])
    got = run(e, "scale", image, to(w, h, *rule)).array[0].astype(int)
    want = exact(image, w, h, *rule)
    off = got != rounded(want)
    if rule[0] == BILINEAR:
        tie = np.vectorize(lambda v: abs((v % 1) - Fraction(1, 2)) < Fraction(1, 4096), otypes=[bool])(want)
        assert (abs(got - rounded(want))[off & tie] == 1).all()
        off &= ~tie
    assert not off.any()


@given(image=images, w=st.integers(1, 12), h=st.integers(1, 12))
def test_the_published_processor_is_one_of_the_modes(e, image, w, h):
    published = run(e, "resize", image, config_bytes("resize", w=w, h=h))
    assert run(e, "scale", image, to(w, h, BILINEAR, ALIGN_CORNERS)).bytes == published.bytes


@pytest.mark.parametrize("method, coordinates", RULES)
def test_wide_pictures_take_several_blocks_of_columns(e, method, coordinates):
    image = np.random.default_rng(3).integers(0, 256, (1, 3, 90, 2), np.uint8)
    got = run(e, "scale", image, to(70, 2, method, coordinates)).array[0].astype(int)
    assert (abs(got - rounded(exact(image, 70, 2, method, coordinates))) <= (method == BILINEAR)).all()


def placed(e, config, width, height):
    place = e.new(Placement)
    status = Status(e(placement, e.new(ScaleConfig, **unpack(ScaleConfig, config)), width, height, place))
    if status != Status.OK:
        return status
    got = unpack(Placement, bytes(place))
    return tuple(tuple(got[r][k] for k in "xywh") for r in ("source", "target"))


@pytest.mark.parametrize(
    "size, config, source, target",
    [
        ((5, 4), dict(fit=STRETCH), (0, 0, 5, 4), (0, 0, 10, 10)),
        ((5, 4), dict(fit=LETTERBOX), (0, 0, 5, 4), (0, 1, 10, 8)),
        ((4, 5), dict(fit=LETTERBOX), (0, 0, 4, 5), (1, 0, 8, 10)),
        ((5, 4), dict(fit=CROP), (0, 0, 4, 4), (0, 0, 10, 10)),
        ((640, 480), dict(fit=CROP), (80, 0, 480, 480), (0, 0, 10, 10)),
        ((480, 640), dict(fit=CROP), (0, 80, 480, 480), (0, 0, 10, 10)),
        ((640, 480), dict(fit=LETTERBOX), (0, 0, 640, 480), (0, 1, 10, 8)),  # 7.5 rows, half up
        ((640, 480), dict(fit=CROP, roi=(100, 50, 200, 100)), (150, 50, 100, 100), (0, 0, 10, 10)),
        ((16384, 1), dict(fit=LETTERBOX), (0, 0, 16384, 1), (0, 4, 10, 1)),
        ((16384, 1), dict(fit=CROP), (8191, 0, 1, 1), (0, 0, 10, 10)),
    ],
)
def test_where_a_picture_goes(e, size, config, source, target):
    assert placed(e, to(10, 10, **config), *size) == (source, target)


@pytest.mark.parametrize("method, coordinates", RULES)
@pytest.mark.parametrize("w, h", [(10, 8), (3, 2), (2, 3)])
def test_crop_and_letterbox_scale_their_rectangle_and_touch_nothing_else(e, method, coordinates, w, h):
    image = np.concatenate([FIELD, FIELD[:, ::-1], 255 - FIELD], axis=3)
    for fit in (CROP, LETTERBOX):
        config = to(w, h, method, coordinates, fit, fill=(9, 8, 7, 6))
        result = run(e, "scale", image, config, room=w * h * 3)
        if method == AREA and w > 5:
            assert result.status == Status.INVAL
            continue
        (sx, sy, sw, sh), (tx, ty, tw, th) = placed(e, config, 5, 4)
        part = image[:, sy : sy + sh, sx : sx + sw]
        want = np.empty((h, w, 3), np.uint8)
        want[:] = (9, 8, 7)
        want[ty : ty + th, tx : tx + tw] = run(e, "scale", part, to(tw, th, method, coordinates)).array[0]
        assert result.array[0].tolist() == want.tolist()


def test_a_part_is_scaled_as_if_it_were_the_picture(e):
    for rule in RULES:
        whole = run(e, "scale", FIELD, to(2, 2, *rule, roi=(1, 1, 3, 2))).array
        assert whole.tolist() == run(e, "scale", FIELD[:, 1:3, 1:4], to(2, 2, *rule)).array.tolist()


@pytest.mark.parametrize("roi", [(0, 0, 6, 1), (5, 0, 1, 1), (0, 4, 1, 1), (4, 0, 2, 1), (0, 0, 1, 5), (1, 0, 0, 0), (65535, 65535, 65535, 65535)])
def test_a_part_outside_the_picture_is_refused(e, roi):
    assert run(e, "scale", FIELD, to(2, 2, roi=roi)).status == Status.INVAL


def test_what_it_refuses(e):
    assert run(e, "scale", FIELD, to(10, 8), room=79).status == Status.NOMEM
    assert run(e, "scale", FIELD, None).status == Status.INVAL
    assert run(e, "scale", FIELD.astype(np.float32), to(2, 2)).status == Status.INVAL
    assert run(e, "scale", FIELD, to(2, 2, AREA, ALIGN_CORNERS)).status == Status.INVAL
    assert placed(e, to(4000, 4000, AREA), 4097, 4096) == Status.INVAL  # its sums would leave u32
    assert placed(e, to(2, 2), 16385, 1) == Status.INVAL
    assert placed(e, to(2, 2), 0, 1) == Status.INVAL


def box_maps(e, config, width, height, units=(1.0, 1.0)):
    place = e.new(Placement)
    assert e(placement, e.new(ScaleConfig, **unpack(ScaleConfig, config)), width, height, place) == Status.OK
    made = e.new(BoxMap)
    assert e(box_map, place, *units, width, height, made) == Status.OK
    return bytes(made)


@pytest.mark.parametrize("fit", [STRETCH, CROP, LETTERBOX])
@pytest.mark.parametrize("width, height", [(640, 480), (480, 640), (96, 96)])
def test_boxes_go_back_through_the_rectangle(e, fit, width, height):
    """A box that covers the target's part covers the source's; its middle is the middle."""
    config = to(160, 128, fit=fit)
    (sx, sy, sw, sh), (tx, ty, tw, th) = placed(e, config, width, height)
    boxes = np.array([[tx, ty, tx + tw, ty + th, 0.5, 3], [tx + tw / 4, ty + th / 2, tx + tw / 2, ty + th, 0.25, 1]], np.float32)
    got = run(e, "map_boxes", boxes, box_maps(e, config, width, height)).array
    want = [[sx, sy, sx + sw, sy + sh, 0.5, 3], [sx + sw / 4, sy + sh / 2, sx + sw / 2, sy + sh, 0.25, 1]]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)
    parts = boxes / np.array([160, 128, 160, 128, 1, 1], np.float32)
    got = run(e, "map_boxes", parts, box_maps(e, config, width, height, (160.0, 128.0))).array
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)


def test_boxes_stay_in_the_picture_and_numbers(e):
    config = box_maps(e, to(10, 10, fit=LETTERBOX), 20, 10)
    inf, nan = float("inf"), float("nan")
    boxes = np.array([[-3, 0, 99, 9, 1, 0], [-inf, nan, inf, inf, nan, inf]], np.float32)
    assert run(e, "map_boxes", boxes, config).array[:, :4].tolist() == [[0, 0, 20, 10], [0, 0, 20, 10]]
    assert run(e, "map_boxes", boxes, config).array[:, 4:].tobytes() == boxes[:, 4:].tobytes()
    assert run(e, "map_boxes", boxes.ravel()[:7], config).status == Status.INVAL
    assert run(e, "map_boxes", boxes, config, room=47).status == Status.NOMEM
    assert run(e, "map_boxes", boxes.view(np.int8), config).status == Status.INVAL
    empty = e.new(Placement)
    assert e(box_map, empty, 1.0, 1.0, 4, 4, e.new(BoxMap)) == Status.INVAL


@pytest.mark.parametrize(
    "method, filter, steps, w, h",
    [(NEAREST, "NEAREST", 0, 28, 40), (NEAREST, "NEAREST", 0, 40, 48), (NEAREST, "NEAREST", 0, 8, 8), (NEAREST, "NEAREST", 0, 12, 16),
     (BILINEAR, "BILINEAR", 1, 31, 24), (BILINEAR, "BILINEAR", 1, 40, 47), (AREA, "BOX", 1, 10, 12), (AREA, "BOX", 1, 5, 8)],
)  # fmt: skip
def test_pillow_gives_the_same(e, method, filter, steps, w, h):
    """To the pixel for nearest (where no place is a whole number: it adds up steps in doubles and falls short of 12 for
    24 to 47), within one step where it rounds on the way. (Reducing, its bilinear is another filter,
    and its box takes whole pixels only.)"""
    image = np.random.default_rng(7).integers(0, 256, (1, 24, 20, 3), np.uint8)
    pillow = np.asarray(Image.fromarray(image[0]).resize((w, h), getattr(Image.Resampling, filter))).astype(int)
    assert abs(run(e, "scale", image, to(w, h, method)).array[0].astype(int) - pillow).max() <= steps
