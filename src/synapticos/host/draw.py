"""Boxes on a picture."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.host.files import write_files

ZOOM = 4


def draw_boxes(report: Any, path: Path) -> None:
    """Write the first frame, four times as large, with the boxes of its result: rows of x1 y1 x2 y2 score, in parts of
    the picture's sides."""
    from PIL import Image, ImageDraw

    for result in report.results:
        frame, boxes = result.input, result.arrays[0]
        if frame.ndim != 4 or frame.shape[3] not in (1, 3) or boxes.ndim != 2 or boxes.shape[1] < 5:
            continue
        pixels = np.asarray(frame[0], np.uint8)
        picture = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0]).convert("RGB")
        wide, high = picture.width * ZOOM, picture.height * ZOOM
        picture = picture.resize((wide, high), Image.Resampling.BICUBIC)
        pen = ImageDraw.Draw(picture)
        for x1, y1, x2, y2, score, *_ in boxes:
            pen.rectangle((x1 * wide, y1 * high, x2 * wide, y2 * high), outline=(255, 220, 0), width=3)
            pen.text((x1 * wide + 4, y1 * high - 14), f"{score:.2f}", fill=(255, 220, 0))
        kind = Image.registered_extensions().get(path.suffix.lower(), "")
        if kind not in Image.SAVE:
            raise UserError(f"{path}: is no name of a picture; end it with .png")
        encoded = BytesIO()
        picture.save(encoded, kind)
        write_files(path.parent, {path.name: encoded.getvalue()})
        return
    raise UserError("--draw: no job takes a picture and gives boxes (rows of x1 y1 x2 y2 score ...)")
