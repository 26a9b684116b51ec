"""The one list of layer variants, for the packer and for the kernel's tables.

A number stands in containers for good: it is never given to another variant. Plain Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

# name, number, file in this folder
VARIANTS: Sequence[tuple[str, int, str]] = (
    ("NONE", 0, ""),
    ("DENSE_I8", 1, "dense"),
    ("CONV_I8", 2, "conv"),
    ("CONV_1X1_I8", 3, "conv_1x1"),
    ("DEPTHWISE_I8", 4, "depthwise"),
    ("DEPTHWISE_3X3_I8", 5, "depthwise_3x3"),
    ("ADD_I8", 6, "add"),
    ("PAD_I8", 7, "pad"),
    ("MAX_POOL_I8", 8, "max_pool"),
    ("AVERAGE_POOL_I8", 9, "average_pool"),
    ("CONCAT_I8", 10, "concat"),
    ("SOFTMAX_I8", 11, "softmax"),
    ("REQUANTIZE_I8", 12, "requantize"),
    ("COPY", 13, "copy_bytes"),
)
NUMBER = {name: number for name, number, _ in VARIANTS}
NAME = {number: name for name, number, _ in VARIANTS}

# operator of the source model: the file whose `plan` takes it
OPERATORS = {
    "FULLY_CONNECTED": "dense",
    "CONV_2D": "conv",
    "DEPTHWISE_CONV_2D": "depthwise",
    "ADD": "add",
    "PAD": "pad",
    "MAX_POOL_2D": "max_pool",
    "AVERAGE_POOL_2D": "average_pool",
    "CONCATENATION": "concat",
    "SOFTMAX": "softmax",
    "QUANTIZE": "requantize",
    "RESHAPE": "copy_bytes",
}


class Unsupported(Exception):
    """An operator that no layer here can run. The text says why, for the report that names model and operator."""


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
    rows: int  # how many rows `run` can be given, 1..65535


def plan(op: Any) -> LayerPlan:
    """The step for an operator. Raises Unsupported, with the reason, where no layer can run it."""
    if op.kind not in OPERATORS:
        raise Unsupported(f"{op.kind} is not supported")
    module = import_module(f"synapticos.kernel.layers.{OPERATORS[op.kind]}")
    result: LayerPlan = module.plan(op)
    return result
