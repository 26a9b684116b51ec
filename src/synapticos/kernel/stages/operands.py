"""What the built-in processors ask of their operands, and how they describe their results.

A tensor's shape must account for its size to the byte: no processor reads past the size, whatever the shape says.
f32 data is 4-aligned, as the arena gives it. Input and output do not overlap unless a processor says they may.
"""

from synapticos.lang import *
from synapticos.kernel.fmath import is_finite
from synapticos.kernel.tensor import MAX_DIMS, DType, Tensor, element_size

MAX_CHANNELS: Final[u32] = 4


@struct
class Quantization:
    """real = (q - zero_point) * scale. The configuration of quantize, dequantize and softmax."""

    scale: f32
    zero_point: i32


QUANTIZATION_BYTES = sizeof(Quantization)


@fn(pure=True)
def is_whole(x: Tensor) -> bool:
    """The shape has 1 to 4 dimensions and accounts for the size."""
    if x.ndim == 0 or x.ndim > MAX_DIMS:
        return False
    size = u64(element_size(x.dtype))
    for i in range(x.ndim):
        size *= x.shape[i]
        if size > 0xFFFFFFFF:
            return False
    return size == x.size


@fn(pure=True)
def is_byte_image(x: Tensor) -> bool:
    """[1, height, width, channels] of UINT8 or INT8, none of them 0 and at most 4 channels."""
    if x.dtype != DType.UINT8 and x.dtype != DType.INT8:
        return False
    if x.ndim != 4 or x.shape[0] != 1 or x.shape[3] > MAX_CHANNELS:
        return False
    return x.size != 0 and is_whole(x)


@fn(pure=True)
def is_numbers(x: Tensor) -> bool:
    """INT8 or FLOAT32, and not empty: what can be scored."""
    if x.dtype != DType.INT8 and x.dtype != DType.FLOAT32:
        return False
    return x.size != 0 and is_whole(x)


@fn(pure=True)
def is_finite_scale(config: Quantization) -> bool:
    """The scale is neither infinite nor a NaN."""
    return is_finite(config.scale)


@fn
def describe_like(y: Tensor, x: Tensor, dtype: DType, size: u32) -> None:
    """y gets x's shape, a type of its own and its size in bytes."""
    y.size = size
    y.dtype = dtype
    y.ndim = x.ndim
    for i in range(MAX_DIMS):
        if i < x.ndim:
            y.shape[i] = x.shape[i]
        else:
            y.shape[i] = 0


@fn
def describe(y: Tensor, dtype: DType, size: u32, ndim: u8, a: u32, b: u32, c: u32, d: u32) -> None:
    """y gets a shape (unused entries 0), a type and a size in bytes."""
    y.size = size
    y.dtype = dtype
    y.ndim = ndim
    y.shape[0] = a
    y.shape[1] = b
    y.shape[2] = c
    y.shape[3] = d


@fn(pure=True)
def saturated(n: u64) -> u32:
    """A capacity in bytes. What does not fit u32 is more than any arena has, so the allocation fails there."""
    return sat(u32, n)
