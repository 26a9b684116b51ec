"""Pictures on their way into a network, and boxes on their way back: scaling by a rule, colours, one-pass encoding.

Rules that the kernel does not define are refused here, where they are written.
"""

from typing import Any

from synapticos.app.model import ModelFile
from synapticos.app.spec import Spec
from synapticos.errors import UserError
from synapticos.kernel.stages import colour as colours
from synapticos.kernel.stages.scale import Placement, Rect, ScaleConfig, placement
from synapticos.kernel.status import Status
from synapticos.lang import pack, unpack

METHODS = {"nearest": 0, "bilinear": 1, "area": 2}
COORDINATES = {"align_corners": 0, "half_pixel": 1, "asymmetric": 2}
MODES = {"stretch": 0, "crop": 1, "letterbox": 2}
PIXELS = {
    "grey": colours.GREY, "rgb": colours.RGB, "bgr": colours.BGR, "rgba": colours.RGBA, "rgb565": colours.RGB565,
    "rgb565_swapped": colours.RGB565_SWAPPED, "yuyv": colours.YUYV, "uyvy": colours.UYVY,
}  # fmt: skip
PIXEL_BYTES = dict(zip(PIXELS, (1, 3, 3, 4, 2, 2, 2, 2)))


def _choice(where: str, name: str, value: Any, choices: dict[str, int]) -> int:
    if not isinstance(value, str) or value not in choices:
        raise UserError(f"{where}: {name} is {', '.join(choices)}, not {value!r}")
    return choices[value]


def _roi(where: str, x: Spec, roi: Any) -> bytes:
    if roi is None:
        return pack(Rect)
    if not isinstance(roi, tuple) or len(roi) != 4 or not all(isinstance(n, int) and n >= 0 for n in roi):
        raise UserError(f"{where}: roi is (x, y, width, height) in pixels, not {roi!r}")
    left, top, w, h = roi
    if w == 0 or h == 0 or left + w > x.shape[2] or top + h > x.shape[1]:
        raise UserError(f"{where}: roi {roi} is not all within the picture ({x.shape[2]} x {x.shape[1]})")
    return pack(Rect, x=left, y=top, w=w, h=h)


def scale_config(where: str, x: Spec, w: int, h: int, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of ScaleConfig for a picture of x to w x h, checked against the kernel's own rule."""
    method = given.get("method") or "bilinear"
    rule = given.get("coordinates") or ("align_corners" if method == "bilinear" else "half_pixel")
    number, coordinates = _choice(where, "method", method, METHODS), _choice(where, "coordinates", rule, COORDINATES)
    mode = _choice(where, "mode", given.get("mode") or "stretch", MODES)
    if method == "area" and rule != "half_pixel":
        raise UserError(f"{where}: area takes the mean of what a pixel covers, edges on edges; it has no {rule}")
    fill = given.get("fill", 0)
    fill = list(fill) if isinstance(fill, tuple) else [fill] * x.shape[3]
    if len(fill) != x.shape[3] or not all(isinstance(n, int) and -128 <= n <= 255 for n in fill):
        raise UserError(f"{where}: fill is a byte, or one for each of {x.shape[3]} channels, not {given['fill']!r}")
    config: dict[str, Any] = {"w": w, "h": h, "method": number, "coordinates": coordinates, "fit": mode}
    config |= {"fill": [n & 255 for n in fill] + [0] * (4 - len(fill)), "roi": _roi(where, x, given.get("roi"))}
    if placed(config, x) is None:
        limit = "area only makes smaller" if method == "area" else "a side is 1 to 16384 pixels"
        raise UserError(f"{where}: {x.shape[2]} x {x.shape[1]} to {w} x {h}: {limit}")
    return config


def placed(config: dict[str, Any], x: Spec) -> tuple[dict[str, int], dict[str, int]] | None:
    """The rectangle of x that is used, and the one of the result that it becomes; None if the kernel would refuse."""
    from synapticos.engine import default_engine

    e: Any = default_engine()
    place = e.new(Placement)
    if e(placement, e.new(ScaleConfig, **unpack(ScaleConfig, pack(ScaleConfig, **config))), x.shape[2], x.shape[1], place) != Status.OK:
        return None
    got = unpack(Placement, bytes(place))
    return got["source"], got["target"]


def scale(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    w, h = given["width"], given["height"]
    return x.like(shape=(1, h, w, x.shape[3])), scale_config(where, x, w, h, given)


def colour(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    source, target = _choice(where, "from", given["source"], PIXELS), _choice(where, "to", given["target"], PIXELS)
    wanted = PIXEL_BYTES[given["source"]]
    if x.dtype != "uint8" or len(x.shape) != 4 or x.shape[0] != 1 or x.shape[3] != wanted:
        raise UserError(f"{where}: {given['source']} is u8 1 x height x width x {wanted}, the step before gives {x}")
    if target > colours.BGR:
        raise UserError(f"{where}: to is grey, rgb or bgr, not {given['target']!r}")
    yuv = given["source"] in ("yuyv", "uyvy")
    if given["video"] and not yuv:
        raise UserError(f"{where}: video is a range of yuyv and uyvy")
    if yuv and x.shape[2] % 2:
        raise UserError(f"{where}: {given['source']} has pixels in pairs; the picture is {x.shape[2]} wide")
    roi = _roi(where, x, given["roi"])
    part = unpack(Rect, roi)
    h, w = (part["h"], part["w"]) if part["w"] else x.shape[1:3]
    config = {"source": source, "target": target, "video": int(given["video"]), "roi": roi}
    return x.like(shape=(1, h, w, 1 if target == colours.GREY else 3)), config


def encode(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    model: ModelFile = given["model"]
    y = model.input
    if y.dtype != "int8" or y.scale is None or x.shape[-1] != y.shape[-1]:
        raise UserError(f'{where}: model "{model.name}" takes {y}, the step before gives {x}')
    mean, std = model.pixels()
    config = {"channels": x.shape[3], "mean": list(mean), "std": list(std), "scale": y.scale, "zero_point": y.zero}
    return x.like(dtype="int8", scale=y.scale, zero=y.zero), config


def map_boxes(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Through all that moved pixels on the way here, last step first."""
    if x.dtype != "float32" or x.shape[-1] != 6:
        raise UserError(f"{where}: takes boxes of 6 (x1, y1, x2, y2, score, class), the step before gives {x}")
    units = _choice(where, "units", given["units"], {"pixels": 0, "fraction": 1})
    factor, offset, picture = [1.0, 1.0], [0.0, 0.0], None
    for step in reversed(given["steps"]):
        seen = step.inputs[0]
        if step.name in ("scale", "resize", "fit"):
            h, w = step.outputs[0].shape[1:3]
            if picture is None and units:
                factor = [float(w), float(h)]
            source, target = {"x": 0, "y": 0, "w": seen.shape[2], "h": seen.shape[1]}, {"x": 0, "y": 0, "w": w, "h": h}
            if step.name == "scale":
                found = placed(step.config, seen)
                assert found is not None, "the step was accepted"
                source, target = found
            for i, (at, size) in enumerate((("x", "w"), ("y", "h"))):
                ratio = source[size] / target[size]
                factor[i] *= ratio
                offset[i] = (offset[i] - target[at]) * ratio + source[at]
            picture = seen
        elif step.name == "colour" and picture is not None:
            roi = unpack(Rect, step.config["roi"])
            offset = [offset[0] + roi["x"], offset[1] + roi["y"]]
            picture = seen
    if picture is None:
        raise UserError(f"{where}: nothing before it scales a picture; boxes are in its pixels already")
    config = dict(zip(("scale_x", "scale_y", "offset_x", "offset_y"), factor + offset))
    return x, config | {"width": float(picture.shape[2]), "height": float(picture.shape[1])}
