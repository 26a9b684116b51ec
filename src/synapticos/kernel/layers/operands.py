"""Checks of operands of any element type, beside those of `checks`."""

from synapticos.lang import *
from synapticos.kernel.container import (
    DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_UINT8, DTYPE_UINT32, DTYPE_UINT64,
    SPACE_CONSTS, LayerCheck,
)  # fmt: skip
from synapticos.kernel.layers.checks import product


@fn(pure=True)
def element_bytes(dtype: u8) -> u32:
    """Bytes an element, 0 for a type that there is not."""
    if dtype == DTYPE_INT8 or dtype == DTYPE_UINT8:
        return 1
    if dtype == DTYPE_INT16 or dtype == DTYPE_FLOAT16:
        return 2
    if dtype == DTYPE_FLOAT32 or dtype == DTYPE_INT32 or dtype == DTYPE_UINT32:
        return 4
    if dtype == DTYPE_UINT64:
        return 8
    return 0


@fn(pure=True)
def holds(check: LayerCheck, operand: u32, dtype: u8, n: u32) -> bool:
    """Whether the operand is there and is exactly `n` elements of a type, `n` not 0."""
    record = check.tensor(operand)
    if record is None or record.dtype != dtype or n == 0:
        return False
    return product(n, element_bytes(dtype)) == record.bytes


@fn(pure=True)
def holds_const(check: LayerCheck, operand: u32, dtype: u8, n: u32) -> bool:
    """As `holds`, and the operand is a constant."""
    record = check.tensor(operand)
    return record is not None and record.space == SPACE_CONSTS and holds(check, operand, dtype, n)


def require(dtypes: str, *tensors: object) -> None:
    """All tensors have one of the types, or Unsupported says which has not. Plain Python."""
    from synapticos.kernel.layers.variants import Unsupported

    for t in tensors:
        if t.dtype not in dtypes.split():  # type: ignore[attr-defined]
            raise Unsupported(f'{t.dtype} in "{t.name}"', " or ".join(dtypes.split()))  # type: ignore[attr-defined]


def number_of(dtype: str) -> int:
    """A type's number in a container. Plain Python."""
    names = ("int8", "uint8", "int16", "float16", "float32", "int32", "uint32", "uint64")
    return names.index(dtype)


def integer_range(dtype: str) -> tuple[int, int]:
    """Lowest and highest value of an integer type. Plain Python."""
    import numpy as np

    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
