"""Where a pipeline's input comes from: raw frames of a file, pictures.

A source is data; `read` gives its frames on the host, and what it gives is what an emulated board is fed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synapticos.app.spec import DTYPES, WIDTHS, Spec
from synapticos.errors import UserError


@dataclass(eq=False)
class Source:
    name: str
    spec: Spec
    file: Path | None

    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        raise NotImplementedError

    def _file(self, file: Path | None) -> Path:
        file = file or self.file
        if file is None:
            raise UserError(f'source "{self.name}": no file; say --{self.name} FILE, or file= in the app')
        if not file.is_file():
            raise UserError(f'source "{self.name}": {file}: no such file')
        return file


class Frames(Source):
    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        path = self._file(file)
        data = path.read_bytes()
        size = self.spec.bytes
        if not data or len(data) % size:
            raise UserError(
                f'source "{self.name}": {path}: {len(data)} bytes are no whole number of frames ({self.spec}, {size} bytes each)'
            )
        whole = np.frombuffer(data, DTYPES[self.spec.dtype]).reshape(-1, *self.spec.shape)
        yield from whole


class Camera(Source):
    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        yield load_picture(self._file(file), self.spec, self.name, crop)


def load_picture(path: Path, spec: Spec, name: str, crop: bool) -> np.ndarray:
    """The picture at `path` as the camera would give it; `crop` cuts and scales one of another size."""
    from PIL import Image, UnidentifiedImageError

    _, height, width, channels = spec.shape
    try:
        with Image.open(path) as opened:
            picture = opened.convert("RGB" if channels == 3 else "L")
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise UserError(f'source "{name}": {path}: no picture that can be read ({error})'.replace("\n", " ")) from None
    if picture.size != (width, height):
        if not crop:
            raise UserError(
                f'source "{name}": {path} is {picture.width} x {picture.height}, the camera gives {width} x {height}; '
                "say --crop to cut and scale it"
            )
        scale = max(width / picture.width, height / picture.height)
        wide, high = width / scale, height / scale
        left, top = (picture.width - wide) / 2, (picture.height - high) / 2
        picture = picture.resize((width, height), Image.Resampling.BILINEAR, box=(left, top, left + wide, top + high))
    return np.ascontiguousarray(np.asarray(picture, np.uint8).reshape(spec.shape))


def spec(name: str, shape: tuple[int, ...], dtype: Any) -> Spec:
    """`dtype` by any of its names: int8, i8, syn.i8, np.int8."""
    word = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    word = WIDTHS.get(word, word)
    if word not in DTYPES or word == "score":
        raise UserError(f'source "{name}": there are no frames of {word}; there are {", ".join(WIDTHS)}')
    if not 1 <= len(shape) <= 4 or any(not isinstance(n, int) or n < 1 for n in shape):
        raise UserError(f'source "{name}": shape {shape}: one to four whole numbers from 1 on')
    return Spec(name, tuple(shape), word)


def camera_spec(name: str, width: int, height: int, pixels: str) -> Spec:
    channels = {"rgb": 3, "grey": 1, "gray": 1}.get(pixels)
    if channels is None:
        raise UserError(f'camera "{name}": pixels are "rgb" or "grey", not "{pixels}"')
    return spec(name, (1, height, width, channels), "uint8")
