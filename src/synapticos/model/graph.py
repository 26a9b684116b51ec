"""A network as importers give it: operators in an order that can be executed, and the tensors between them.

Operators have the names and the meaning of the .tflite format, whose reference arithmetic is ours; every
option is a plain number or word, with SAME and VALID already turned into rows and columns of padding. LOOKUP, which that
format has not, maps each int8 by a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synapticos.errors import UserError

MAX_RANK = 4
DTYPES = {  # name -> bytes an element; a type's number in a container is its place in the kernel's DType
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "float16": 2,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "uint64": 8,
    "int64": 8,  # of biases only
}


def short(name: str) -> str:
    """The end of the first of the names that converters string together: `net/block_1/Relu;net/...` is block_1/Relu."""
    return "/".join(name.split(";")[0].split("/")[-2:])[-40:] or "?"


@dataclass(eq=False)
class Tensor:
    """A tensor; compared by identity. Real value = scale * (q - zero)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # one, or one a channel; empty: none
    zero: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    axis: int = 0  # the dimension whose channels the scales belong to
    data: np.ndarray | None = None  # a constant's values
    number: int = -1  # in the file it came from; -1: it is no tensor there
    state: bool = False  # kept from run to run, and real 0 before the first

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * DTYPES[self.dtype]

    def __str__(self) -> str:
        return f'tensor {self.number} "{self.name}"'


@dataclass(eq=False)
class Op:
    """An operator; a missing optional input is None."""

    kind: str
    index: int  # in the file it came from
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: dict[str, Any] = field(default_factory=dict)
    version: int = 1

    @property
    def activations(self) -> list[Tensor]:
        """The inputs that are computed, handed in or kept, not stored."""
        return [t for t in self.inputs if t is not None and t.data is None]

    def __str__(self) -> str:
        return f"{self.kind} (node {self.index})"


@dataclass(eq=False)
class Graph:
    """A whole network."""

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    ops: list[Op]
    source: str = ""  # the file it came from, for messages

    @property
    def where(self) -> str:
        return self.source or self.name

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor once: inputs, then each operator's constants and results."""
        seen: set[Tensor] = set()
        groups = [self.inputs, *(group for op in self.ops for group in (op.inputs, op.outputs))]
        for group in groups:
            for tensor in group:
                if tensor is not None and tensor not in seen:
                    seen.add(tensor)
                    yield tensor

    def check(self) -> None:
        """Refuse a graph that cannot be executed in its order: what follows here relies on it."""
        if not self.inputs or not self.outputs:
            raise UserError(f"{self.where}: the model has no input or no output; export it with both")
        if not self.ops:
            raise UserError(f"{self.where}: the model has no operators; export a network")
        known: set[Tensor] = set()
        for tensor in self.inputs:
            if tensor.data is not None or tensor in known:
                fact = "is a constant" if tensor.data is not None else "is listed twice"
                raise UserError(f"{self.where}: input {tensor} {fact}; export the model again")
            known.add(tensor)
        for op in self.ops:
            for tensor in op.activations:
                if tensor not in known and not tensor.state:
                    raise UserError(
                        f"{self.where}: {op} reads {tensor} before anything writes it; export the model again"
                    )
            for tensor in op.outputs:
                if tensor.state:
                    continue
                if tensor.data is not None or tensor in known:
                    fact = "a constant" if tensor.data is not None else "already written or an input"
                    raise UserError(f"{self.where}: {op} writes {tensor}, which is {fact}; export the model again")
                known.add(tensor)
        for tensor in self.outputs:
            if tensor not in known:
                raise UserError(f"{self.where}: nothing computes output {tensor}; export the model again")
