"""What is known of a tensor before anything runs: its type, its shape, and how its integers become reals."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

DTYPES: dict[str, np.dtype] = {
    "int8": np.dtype("int8"),
    "uint8": np.dtype("uint8"),
    "int16": np.dtype("<i2"),
    "int32": np.dtype("<i4"),
    "float32": np.dtype("<f4"),
    # What argmax and top_k give: a number and what stood there.
    "score": np.dtype([("index", "<u4"), ("score", "<f4")]),
}
WIDTHS = {"i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "f32": "float32"}
ELEMENTS = {**WIDTHS, "Ranked": "score"}  # of a stage's arrays, by the words of a parameter's type
LETTERS = {name: width for width, name in WIDTHS.items()}


@dataclass(frozen=True)
class Spec:
    """One tensor between two steps. The first dimension of `rows` tensors is the most there can be."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None  # real = scale * (q - zero); None where there is no such rule, or one per channel
    zero: int = 0
    rows: bool = False

    @property
    def bytes(self) -> int:
        return prod(self.shape) * DTYPES[self.dtype].itemsize

    @property
    def squeezed(self) -> tuple[int, ...]:
        """The shape without its ones, which is how shapes are compared: networks carry a batch of 1 about."""
        return tuple(n for n in self.shape if n != 1) or (1,)

    def like(self, **changes: object) -> "Spec":
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "1"
        return f"{LETTERS.get(self.dtype, self.dtype)} {'up to ' if self.rows else ''}{size}"
