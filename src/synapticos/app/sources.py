"""Where a pipeline's input comes from: raw frames of a file, pictures, sound, or what another pipeline leaves.

A source is data; `read` gives its frames on the host, and what it gives is what an emulated board is fed.
"""

import warnings
import wave
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from synapticos.app.spec import DTYPES, WIDTHS, Spec
from synapticos.errors import UserError

CAMERA_PIXELS = {"rgb": 3, "grey": 1, "gray": 1, "bgr": 3, "rgb565": 2, "rgb565_swapped": 2, "yuyv": 2, "uyvy": 2}  # bytes

MAX_PIXELS = 64_000_000  # of a picture file
MAX_BYTES = 1 << 30  # of one frame: the kernel counts in u32


@dataclass(eq=False)
class Source:
    name: str
    spec: Spec
    file: Path | None
    every: int = field(default=0, kw_only=True)  # us from one frame to the next; 0: nobody says
    keep: int | None = field(default=None, kw_only=True)  # frames that wait or are read; None: as many as its jobs may hold

    @property
    def members(self) -> tuple["Source", ...]:
        """What gives its frames: itself, or several."""
        return (self,)

    @property
    def hop_bytes(self) -> int:
        """Bytes from the beginning of one frame to that of the next in what the source gives."""
        return self.spec.bytes

    @property
    def period_us(self) -> int:
        """From one frame to the next, rounded down; 0: nobody says."""
        return self.every

    def stream(self, files: Mapping[str, Path], *, crop: bool = False) -> bytes:
        """All that it gives, one after the other; a frame is cut from it each `hop_bytes`."""
        return b"".join(np.ascontiguousarray(frame).tobytes() for frame in self.read_from(files, crop=crop))

    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        raise NotImplementedError

    def read_from(self, files: Mapping[str, Path], *, crop: bool = False) -> Iterator[np.ndarray]:
        """Its frames, from the file of its name."""
        return self.read(files.get(self.name), crop=crop)

    def _file(self, file: Path | None) -> Path:
        file = file or self.file
        if file is None:
            raise UserError(f'source "{self.name}": no file; say --{self.name} FILE, or file= in the app')
        if file.exists() and not file.is_file():
            raise UserError(f'source "{self.name}": {file}: is no regular file; say --{self.name} FILE')
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


@dataclass(eq=False)
class Camera(Source):
    pixels: str = "rgb"

    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        yield as_pixels(load_picture(self._file(file), self.spec, self.name, crop), self.pixels)


@dataclass(eq=False)
class Microphone(Source):
    """Windows of sound, i16, one channel. On the host and in an emulator: .wav files."""

    rate: int = 16_000
    hop: int = 0  # samples

    @property
    def hop_bytes(self) -> int:
        return 2 * self.hop

    @property
    def period_us(self) -> int:
        return self.hop * 1_000_000 // self.rate

    def samples(self, file: Path | None) -> np.ndarray:
        path = self._file(file)
        what = f'source "{self.name}": {path}'
        way = f"make it so: ffmpeg -i {path.name} -ac 1 -ar {self.rate} -sample_fmt s16 out.wav"
        try:
            with wave.open(str(path), "rb") as sound:
                channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
                data = sound.readframes(sound.getnframes())
        except (wave.Error, EOFError, OSError) as error:
            raise UserError(f"{what}: is no .wav that can be read ({str(error) or 'it is empty or cut short'}); {way}") from None
        if (channels, width, rate) != (1, 2, self.rate):
            raise UserError(f"{what}: has {channels} channels of {8 * width} bits at {rate} Hz, the microphone gives one of 16 at {self.rate}; {way}")
        return np.frombuffer(data[: len(data) // 2 * 2], "<i2")

    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        samples, window = self.samples(file), self.spec.shape[-1]
        for at in range(0, len(samples) - window + 1, self.hop):
            yield samples[at : at + window].reshape(self.spec.shape)

    def stream(self, files: Mapping[str, Path], *, crop: bool = False) -> bytes:
        return self.samples(files.get(self.name)).tobytes()


@dataclass(eq=False)
class Feed(Source):
    """What a pipeline without a model leaves, for others to read: computed once, kept in a ring of `keep` entries."""

    pipeline: Any = None
    hop: int = 1  # results from one entry to the next
    result_bytes: int = 0  # of one result

    @property
    def hop_bytes(self) -> int:
        return self.hop * self.result_bytes

    @property
    def period_us(self) -> int:
        return int(self.pipeline.period_us) * self.hop

    def read(self, file: Path | None = None, *, crop: bool = False) -> Iterator[np.ndarray]:
        raise UserError(f'source "{self.name}": is what pipeline "{self.pipeline.name}" leaves; no file gives it')


@dataclass(eq=False)
class Together(Source):
    """Several sources that feed one pipeline: a frame is one of each, in this order, each from a multiple of 16 on."""

    sources: tuple[Source, ...] = ()

    @staticmethod
    def of(name: str, sources: tuple[Source, ...]) -> "Together":
        size = _places(sources)[-1]
        return Together(name, Spec(name, (size,), "uint8"), None, sources=sources)

    @property
    def members(self) -> tuple[Source, ...]:
        return self.sources

    @property
    def places(self) -> dict[str, int]:
        """Of each source: where it begins in a frame, bytes."""
        return {s.name: at for s, at in zip(self.sources, _places(self.sources))}

    def join(self, frames: Mapping[str, np.ndarray], out: np.ndarray) -> np.ndarray:
        """One frame of each source, by name, into the bytes `out`, which begin as zeros."""
        for source, at in zip(self.sources, _places(self.sources)):
            part = out[at : at + source.spec.bytes].view(DTYPES[source.spec.dtype])
            part[...] = frames[source.name].reshape(-1)
        return out

    def read_from(self, files: Mapping[str, Path], *, crop: bool = False) -> Iterator[np.ndarray]:
        each = [list(s.read(files.get(s.name), crop=crop)) for s in self.sources]
        if len({len(frames) for frames in each}) != 1:
            counts = ", ".join(f'"{s.name}" {len(frames)}' for s, frames in zip(self.sources, each))
            raise UserError(f'pipeline "{self.name}": takes a frame of each source at a time, and their files have {counts}')
        for frames in zip(*each):
            yield self.join({s.name: f for s, f in zip(self.sources, frames)}, np.zeros(self.spec.bytes, np.uint8))


def _places(sources: tuple[Source, ...]) -> list[int]:
    """Where each begins, and where the last one ends."""
    places, at = [], 0
    for source in sources:
        at = -(-at // 16) * 16
        places.append(at)
        at += source.spec.bytes
    return [*places, at]


def load_picture(path: Path, spec: Spec, name: str, crop: bool) -> np.ndarray:
    """The picture at `path` as the camera would give it; `crop` cuts and scales one of another size."""
    from PIL import Image, UnidentifiedImageError

    _, height, width, channels = spec.shape
    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning), Image.open(path) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ValueError(f"{opened.width} x {opened.height} are more than {MAX_PIXELS:,} pixels")
            picture = opened.convert("L" if channels == 1 else "RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
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
    return np.ascontiguousarray(np.asarray(picture, np.uint8).reshape(1, height, width, -1))


def as_pixels(picture: np.ndarray, pixels: str) -> np.ndarray:
    """A picture in RGB (or grey) as a camera with such pixels gives it."""
    if pixels == "bgr":
        return np.ascontiguousarray(picture[..., ::-1])
    if pixels.startswith("rgb565"):
        r, g, b = (picture[..., i].astype(np.uint16) for i in range(3))
        words = (r >> 3) << 11 | (g >> 2) << 5 | b >> 3
        pair = np.stack([words & 255, words >> 8], axis=3).astype(np.uint8)
        return np.ascontiguousarray(pair[..., ::-1] if pixels.endswith("swapped") else pair)
    if pixels in ("yuyv", "uyvy"):
        from PIL import Image

        yuv = np.asarray(Image.fromarray(picture[0]).convert("YCbCr"), np.uint16)
        shared = (yuv[:, 0::2, 1:] + yuv[:, 1::2, 1:] + 1) // 2  # two pixels have one U and one V
        colours = np.stack([shared[..., 0], shared[..., 1]], axis=2).reshape(yuv.shape[:2])
        both = [yuv[..., 0], colours] if pixels == "yuyv" else [colours, yuv[..., 0]]
        return np.ascontiguousarray(np.stack(both, axis=2).astype(np.uint8)[None])
    return picture


def spec(name: str, shape: tuple[int, ...], dtype: Any) -> Spec:
    """`dtype` by any of its names: int8, i8, syn.i8, np.int8."""
    word = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    word = WIDTHS.get(word, word)
    if word not in DTYPES or word == "score":
        raise UserError(f'source "{name}": there are no frames of {word}; there are {", ".join(WIDTHS)}')
    if not isinstance(shape, tuple | list) or not 1 <= len(shape) <= 4 or any(type(n) is not int or n < 1 for n in shape):
        raise UserError(f'source "{name}": shape {shape!r}: one to four whole numbers from 1 on, like (1, 8)')
    made = Spec(name, tuple(shape), word)
    if made.bytes > MAX_BYTES:
        raise UserError(f'source "{name}": shape {shape!r}: {made.bytes:,} bytes are more than a frame may have ({MAX_BYTES:,})')
    return made


def camera_spec(name: str, width: int, height: int, pixels: str) -> Spec:
    channels = CAMERA_PIXELS.get(pixels) if isinstance(pixels, str) else None
    if channels is None:
        raise UserError(f'camera "{name}": pixels are {", ".join(CAMERA_PIXELS)}, not "{pixels}"')
    made = spec(name, (1, height, width, channels), "uint8")
    if pixels in ("yuyv", "uyvy") and width % 2:
        raise UserError(f'camera "{name}": {pixels} has pixels in pairs; {width} is odd')
    return made
