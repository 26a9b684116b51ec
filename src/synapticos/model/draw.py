"""The memory plan as a picture: time to the right, addresses upwards, a box for each buffer.

`draw_text` for a terminal, `draw_png` for a file.
"""

from __future__ import annotations

import colorsys
from os import PathLike

from synapticos.errors import UserError
from synapticos.model.graph import short
from synapticos.model.info import BufferInfo, ModelInfo

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def draw_text(info: ModelInfo, width: int = 100, height: int = 20) -> str:
    """A character for each band of addresses and (where they fit) each step: the buffer that lies there."""
    steps = len(info.layers)
    columns = min(steps, max(8, width - 12))
    height = max(1, min(height, info.frame // 16))
    letter = {b: LETTERS[i % len(LETTERS)] for i, b in enumerate(info.buffers)}
    lines = []
    for row in reversed(range(height)):
        low, high = info.frame * row // height, info.frame * (row + 1) // height
        cells = []
        for column in range(columns):
            first, last = steps * column // columns, steps * (column + 1) // columns - 1
            found = [b for b in info.buffers if b.first <= last and first <= b.last and _inside(b, low, high)]
            best = max(found, key=lambda b: (min(b.offset + b.size, high) - max(b.offset, low), b.last), default=None)
            cells.append(letter[best] if best else "·")
        lines.append(f"{high:>10,} {''.join(cells)}")
    marker = " " * (11 + info.worst_step * columns // max(steps, 1)) + "^"
    alive = [b for b in info.buffers if b.first <= info.worst_step <= b.last]
    lines += [
        marker,
        f"step {info.worst_step}, {info.worst_layer}: the peak, {info.lower_bound:,} bytes alive",
        *(f"  {letter[b]}  {b.size:>9,} at {b.offset:>9,}  {short(b.name)}" for b in alive),
    ]
    return "\n".join(lines)


def _inside(buffer: BufferInfo, low: int, high: int) -> bool:
    return buffer.offset < high and low < buffer.offset + buffer.size


def draw_png(info: ModelInfo, path: str | PathLike[str], width: int = 1200, height: int = 700) -> None:
    """The same as a picture in a file."""
    from PIL import Image, ImageDraw

    left, top, bottom = 90, 40, 60
    steps = max(len(info.layers), 1)
    frame = max(info.frame, 1)
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)

    def x(step: int) -> int:
        return left + (width - left - 20) * step // steps

    def y(address: int) -> int:
        return height - bottom - (height - top - bottom) * address // frame

    for i, buffer in enumerate(info.buffers):
        hue = i * 0.381966 % 1  # the golden angle: neighbours differ
        red, green, blue = (int(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.35, 0.95))
        box = (x(buffer.first), y(buffer.offset + buffer.size), x(buffer.last + 1) - 1, y(buffer.offset) - 1)
        if box[2] < box[0] or box[3] < box[1]:
            continue  # thinner than a pixel
        draw.rectangle(box, fill=(red, green, blue), outline="black")
        text = f"{short(buffer.name)} {buffer.size:,}"
        if draw.textlength(text) < box[2] - box[0] - 6 and box[3] - box[1] > 14:
            draw.text((box[0] + 3, box[1] + 1), text, fill="black")
    draw.rectangle((x(0), y(frame), x(steps), y(0)), outline="black")
    for part in range(5):
        address = frame * part // 4
        draw.text((8, y(address) - 6), f"{address:>10,}", fill="black")
    for step in range(0, steps, max(1, steps // 12)):
        draw.text((x(step), height - bottom + 6), f"{step}", fill="black")
    worst = x(info.worst_step)
    draw.line((worst, y(frame) - 6, worst, y(0) + 4), fill="red")
    title = f"{info.name}: frame {info.frame:,} bytes, at the worst step {info.lower_bound:,} alive"
    draw.text((left, 12), title, fill="black")
    draw.text((left, height - 30), f"steps; red: {info.worst_layer}", fill="black")
    try:
        image.save(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the picture cannot be written ({error}); give a .png that can be") from None
