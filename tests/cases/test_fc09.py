"""FC-09: resizing follows the declared rule. 4 x 5 pixels, all different, to 8 x 10 and to 3 x 2."""

from fractions import Fraction

import numpy as np
import pytest
import synapticos as syn
from synapticos.app import pictures
from synapticos.errors import UserError
from synapticos.kernel.stages.scale import ScaleConfig, scale
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Tensor
from synapticos.lang import pack, u8, unpack

PICTURE = np.array([[3, 17, 29, 44, 58], [61, 75, 90, 104, 119], [131, 146, 160, 173, 188], [201, 214, 226, 241, 255]], np.uint8)
# Pixel i of a row of 5 comes from these of the source, for rows of 10 and of 3; and of a column of 4, for 8 and for 2.
NEAREST = {
    ("align_corners", 10): [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], ("half_pixel", 10): [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], ("asymmetric", 10): [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    ("align_corners", 3): [0, 2, 4], ("half_pixel", 3): [0, 2, 4], ("asymmetric", 3): [0, 1, 3],
    ("align_corners", 8): [0, 0, 1, 1, 2, 2, 3, 3], ("half_pixel", 8): [0, 0, 1, 1, 2, 2, 3, 3], ("asymmetric", 8): [0, 0, 1, 1, 2, 2, 3, 3],
    ("align_corners", 2): [0, 3], ("half_pixel", 2): [1, 3], ("asymmetric", 2): [0, 2],
}  # fmt: skip
# Where pixel i lies between the source's, by hand.
BILINEAR = {
    ("align_corners", 10): "0 4/9 8/9 4/3 16/9 20/9 8/3 28/9 32/9 4", ("half_pixel", 10): "0 1/4 3/4 5/4 7/4 9/4 11/4 13/4 15/4 4",
    ("asymmetric", 10): "0 1/2 1 3/2 2 5/2 3 7/2 4 4", ("align_corners", 3): "0 2 4", ("half_pixel", 3): "1/3 2 11/3", ("asymmetric", 3): "0 5/3 10/3",
    ("align_corners", 8): "0 3/7 6/7 9/7 12/7 15/7 18/7 3", ("half_pixel", 8): "0 1/4 3/4 5/4 7/4 9/4 11/4 3",
    ("asymmetric", 8): "0 1/2 1 3/2 2 5/2 3 3", ("align_corners", 2): "0 3", ("half_pixel", 2): "1/2 5/2", ("asymmetric", 2): "0 2",
}  # fmt: skip


def table(rule, method, w, h):
    """The right answer, in fractions."""
    if method == "nearest":
        return PICTURE[NEAREST[rule, h]][:, NEAREST[rule, w]]
    out = np.zeros((h, w), int)
    for i, y in enumerate(map(Fraction, BILINEAR[rule, h].split())):
        for j, x in enumerate(map(Fraction, BILINEAR[rule, w].split())):
            r, c = min(int(y), 2), min(int(x), 3)
            a, b, d, e = (Fraction(int(PICTURE[r + m, c + n])) for m in (0, 1) for n in (0, 1))
            upper, lower = a + (x - c) * (b - a), d + (x - c) * (e - d)
            out[i, j] = int(upper + (y - r) * (lower - upper) + Fraction(1, 2))
    return out


@pytest.fixture
def e(engines):
    return engines(scale)


def scaled(e, picture, **rule):
    app = syn.App("case")
    step = app.pipeline("p", app.frames("picture", (1, *picture.shape, 1), "uint8"))
    spec = step.source.spec
    w, h = rule.pop("w"), rule.pop("h")
    config = pictures.scale_config("case", spec, w, h, rule)
    x = e.new(Tensor, size=picture.size, ndim=4, shape=[1, *picture.shape, 1], dtype=DType.UINT8)
    y, out = e.new(Tensor, size=w * h), e.array(u8, w * h)
    assert e(scale, x, e.array(u8, picture.tobytes()), y, out, e.new(ScaleConfig, **fields(config))) == Status.OK
    return np.frombuffer(bytes(out), np.uint8).reshape(h, w), pictures.placed(config, spec)


def fields(config):
    return unpack(ScaleConfig, pack(ScaleConfig, **config))


@pytest.mark.parametrize("w, h", [(10, 8), (3, 2)], ids=["enlarged", "reduced"])
@pytest.mark.parametrize("rule", ["align_corners", "half_pixel", "asymmetric"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_every_rule_equals_its_table(e, method, rule, w, h):
    got, _ = scaled(e, PICTURE, w=w, h=h, method=method, coordinates=rule)
    assert got.tolist() == table(rule, method, w, h).tolist()


@pytest.mark.parametrize("rule", ["align_corners", "half_pixel", "asymmetric"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
@pytest.mark.parametrize(
    "mode, w, h, source, target",
    [("stretch", 3, 2, (0, 0, 5, 4), (0, 0, 3, 2)), ("crop", 3, 2, (0, 0, 5, 3), (0, 0, 3, 2)), ("letterbox", 3, 2, (0, 0, 5, 4), (0, 0, 3, 2)),
     ("crop", 8, 8, (0, 0, 4, 4), (0, 0, 8, 8)), ("letterbox", 10, 10, (0, 0, 5, 4), (0, 1, 10, 8))],
)  # fmt: skip
def test_crop_and_letterbox_report_their_rectangle(e, method, rule, mode, w, h, source, target):
    got, placed = scaled(e, PICTURE, w=w, h=h, method=method, coordinates=rule, mode=mode, fill=7)
    assert [tuple(p[k] for k in "xywh") for p in placed] == [source, target]
    left, top, sw, sh = source
    tx, ty, tw, th = target
    part, _ = scaled(e, np.ascontiguousarray(PICTURE[top : top + sh, left : left + sw]), w=tw, h=th, method=method, coordinates=rule)
    want = np.full((h, w), 7)
    want[ty : ty + th, tx : tx + tw] = part
    assert got.tolist() == want.tolist()


def test_align_corners_and_half_pixel_at_once_cannot_be_said_and_area_has_no_corners():
    app = syn.App("case")
    camera = app.frames("camera", (1, 4, 5, 1), "uint8")
    with pytest.raises(UserError, match="coordinates is align_corners, half_pixel, asymmetric, not"):
        app.pipeline("a", camera).resize(10, 8, coordinates=("align_corners", "half_pixel"))
    with pytest.raises(UserError, match="area takes the mean of what a pixel covers, edges on edges; it has no align_corners"):
        app.pipeline("b", camera).resize(3, 2, method="area", coordinates="align_corners")
