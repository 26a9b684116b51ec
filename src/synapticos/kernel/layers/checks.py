"""What the layers' `validate` functions share.

Numbers come from a container that nobody vouches for: products stop at TOO_MUCH instead of wrapping, and a layer ties
the size of every operand to its parameters, so that `run` needs no checks.
"""

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT8, DTYPE_INT32, DTYPE_UINT8, MAX_BYTES, LayerCheck, TensorRecord
from synapticos.kernel.layers.requant import scale_is_sound

TOO_MUCH: Final[u32] = 0xFFFFFFFF  # a product above MAX_BYTES
MAX_SIDE: Final[u32] = 65535  # of a picture, in elements
MAX_WINDOW: Final[u32] = 255  # of a filter, a stride or a dilation: 65535 * 255 + 65535 fits an i32


@fn(pure=True)
def product(a: u32, b: u32) -> u32:
    """a * b, or TOO_MUCH if that is above MAX_BYTES. TOO_MUCH times anything but 0 is TOO_MUCH."""
    if a == 0 or b == 0:
        return 0
    if a > MAX_BYTES // b:
        return TOO_MUCH
    return a * b


@fn(pure=True)
def holds_i8(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is there and is exactly `n` int8 elements, `n` not 0."""
    record = check.tensor(operand)
    return record is not None and record.dtype == DTYPE_INT8 and record.bytes == n and n != 0


@fn(pure=True)
def holds_bytes(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is there and is exactly `n` elements of one byte, `n` not 0."""
    record = check.tensor(operand)
    if record is None or record.bytes != n or n == 0:
        return False
    return record.dtype == DTYPE_INT8 or record.dtype == DTYPE_UINT8


@fn(pure=True)
def holds_i32(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is a constant of exactly `n` int32 elements, `n` not 0."""
    record = check.tensor(operand)
    if record is None or record.dtype != DTYPE_INT32 or record.space != 0:
        return False
    return n != 0 and product(n, 4) == record.bytes


@fn
def has_scratch(check: LayerCheck, n: u32) -> bool:
    """Whether the step gives the layer the `n` bytes of scratch that it takes. `n` is kept for the message if not."""
    check.wanted = max(check.wanted, n)
    return check.scratch >= n


@fn(pure=True)
def takes(check: LayerCheck, inputs: u32, params_bytes: u32, scratch: u32) -> bool:
    """Whether the step has so many inputs, one output, parameters and scratch."""
    if check.inputs != inputs or check.outputs != 1:
        return False
    return check.params_bytes >= params_bytes and check.scratch >= scratch


@fn(pure=True)
def scales_are_sound(check: LayerCheck, operand: u32, n: u32) -> bool:
    """Whether the operand is a constant i32 [n, 2] of multipliers and shifts that `requantize` may be given."""
    if not holds_i32(check, operand, product(n, 2)):
        return False
    record = check.tensor(operand)
    if record is None:
        return False
    scales = view(i32, check.consts[record.offset :])
    for i in range(n):
        if not scale_is_sound(scales[2 * i], scales[2 * i + 1]):
            return False
    return True


@fn(pure=True)
def overlap(a: TensorRecord, b: TensorRecord) -> bool:
    """Whether two tensors share a byte. Both lie inside their space, so no end can wrap."""
    return a.space == b.space and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


@fn(pure=True)
def same_place(a: TensorRecord, b: TensorRecord) -> bool:
    """Whether two tensors are the same bytes."""
    return a.space == b.space and a.offset == b.offset and a.bytes == b.bytes


@fn(pure=True)
def apart(check: LayerCheck, in_place: bool) -> bool:
    """Whether no output shares a byte with an input; with `in_place` one may also be exactly an input."""
    for i in range(check.inputs):
        x = check.tensor(i)
        if x is None:
            continue
        for j in range(check.inputs, check.inputs + check.outputs):
            y = check.tensor(j)
            if y is None or not overlap(x, y):
                continue
            if not (in_place and same_place(x, y)):
                return False
    return True


@fn(pure=True)
def trails(check: LayerCheck) -> bool:
    """As `apart`, but the first input may overlap the output from above, or from below where rows run downwards: what
    one row writes no later row reads, if the model's planner has left it room enough. If not, results are wrong and
    memory is safe."""
    for i in range(check.inputs):
        x = check.tensor(i)
        y = check.tensor(check.inputs)
        if x is None or y is None or not overlap(x, y):
            continue
        if i != 0 or (x.offset > y.offset if check.down else x.offset < y.offset):
            return False
    return True
