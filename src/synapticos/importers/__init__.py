"""Readers of model files, one file a format, each giving a `model.Graph`.

A file is untrusted: whatever its bytes, a reader returns a graph that holds together or raises a UserError.
Imports `model` only.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from synapticos.errors import UserError
from synapticos.model import Graph

MAX_FILE = 256 << 20  # bytes; a model for this system's boards is a hundredth of it

__all__ = ["load", "read"]


def load(path: str | PathLike[str]) -> Graph:
    """The graph of a model file."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise UserError(f"{path}: {size} bytes are more than a model may have ({MAX_FILE}); give a smaller model")
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}); give the path of a .tflite or .onnx") from None
    return read(data, path.stem, str(path))


def read(data: bytes, name: str, source: str = "") -> Graph:
    """The graph in a model file's bytes; `source` is what messages call it."""
    source = source or name
    if data[4:8] == b"TFL3":
        from synapticos.importers import tflite

        return tflite.read(data, name, source)
    if not data:
        raise UserError(f"{source}: the file is empty; give a .tflite or .onnx")
    if data[:4] == b"SYNM":
        raise UserError(f"{source}: this is a compiled container already; give the .tflite or .onnx it came from")
    if is_onnx(data, source):
        from synapticos.importers import onnx

        return onnx.read(data, name, source)
    raise UserError(
        f"{source}: not a .tflite (its bytes 4 to 7 are not TFL3) and not a .onnx; convert the model to one of them"
    )


def is_onnx(data: bytes, source: str = "") -> bool:
    """Whether a file is to be read as ONNX: by its name, or as it begins with the number that such files begin with."""
    if source.lower().endswith(".tflite"):
        return False
    return source.lower().endswith(".onnx") or (data[:1] == b"\x08" and data[2:3] in (b"\x12", b":", b"B"))
