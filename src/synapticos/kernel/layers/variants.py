"""The one list of layer variants, and what a layer's `plan` takes and gives. Plain Python, for the host.

A number stands in containers for good: it is never given to another variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

NONE = 0
DENSE_I8 = 1
CONV_I8 = 2
CONV_1X1_I8 = 3
DEPTHWISE_I8 = 4
DEPTHWISE_3X3_I8 = 5
ADD_I8 = 6
PAD_I8 = 7
MAX_POOL_I8 = 8
AVERAGE_POOL_I8 = 9
CONCAT_I8 = 10
SOFTMAX_I8 = 11
REQUANTIZE_I8 = 12
COPY = 13
PICK = 14
LOOKUP = 15
QUANTIZE_F32 = 16
DEQUANTIZE = 17
RESCALE = 18
CAST = 19
SVDF = 20
SOFTMAX_WIDE = 21
ELEMENTS_F32 = 22
CONV_F32 = 23
DEPTHWISE_F32 = 24
AVERAGE_POOL_F32 = 25
MAX_POOL_F32 = 26
DENSE_F32 = 27
JOIN = 28
LSTM_I8 = 29
SQUASH_I16 = 30
ELEMENTS_I32 = 31
SIGNAL_WINDOW = 32
SIGNAL_SCALE = 33
SIGNAL_ENERGY = 34
RFFT_I16 = 35
BANK = 36
BANK_ROOT = 37
BANK_SUBTRACT = 38
BANK_PCAN = 39
BANK_LOG = 40
ELEMENTS_I8 = 41
REDUCE_I8 = 42
REDUCE_F32 = 43
UNARY_F32 = 44
ROWS_F32 = 45
RESIZE_I8 = 46
RESIZE_F32 = 47
SCATTER_I8 = 48
SCATTER_F32 = 49
CONV_GROUPS_I8 = 50
L2_I8 = 51
LOG_SOFTMAX_I8 = 52
CONV_I16 = 53
DEPTHWISE_I16 = 54
AVERAGE_POOL_I16 = 55
MAX_POOL_I16 = 56
DENSE_I16 = 57
ELEMENTS_I16 = 58
SOFTMAX_I16 = 59
GATHER = 60
REDUCE_I16 = 61
SCATTER_I16 = 62
SVDF_F32 = 63
LSTM_F32 = 64

VARIANTS = {
    number: name.lower() for name, number in list(globals().items()) if name.isupper() and isinstance(number, int)
}

MAX_ROWS = 0xFFFF  # of one step


class Unsupported(ValueError):
    """A form of an operator that no layer here can run: what it is, and the nearest form that there is."""

    def __init__(self, fact: str, nearest: str = "") -> None:
        super().__init__(fact, nearest)
        self.fact = fact
        self.nearest = nearest

    def __str__(self) -> str:
        return f"{self.fact}; {self.nearest}" if self.nearest else self.fact


@dataclass(frozen=True)
class Const:
    """A constant that a plan makes: repacked weights, multipliers of the channels."""

    name: str
    array: Any  # NumPy array; its dtype and shape become the tensor record's


@dataclass(frozen=True)
class LayerPlan:
    """One operator as a step: what the packer writes into the container."""

    variant: int
    inputs: Sequence[Any]  # tensors of the graph, Const, or None for one that is not there
    outputs: Sequence[Any]
    params: bytes = field(repr=False)
    scratch: int  # bytes
    cost: int  # multiply-accumulates, or elements
    rows: int  # how many rows `run` can be given, 1..MAX_ROWS

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MAX_ROWS:
            raise Unsupported(f"an output of {self.rows} rows", f"up to {MAX_ROWS}")


def as_rows(shape: Sequence[int]) -> tuple[int, int]:
    """A tensor as (rows, elements a row), for layers that take elements one by one: the most rows that a step may have."""
    sides = [int(n) for n in shape]
    rows, n = 1, 1
    for at, side in enumerate(sides[:-1]):
        if rows * side > MAX_ROWS:
            n = prod(sides[at:-1])
            break
        rows *= side
    return rows, n * (sides[-1] if sides else 1)
