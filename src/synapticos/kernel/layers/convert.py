"""QUANTIZE, DEQUANTIZE and CAST: numbers as another type, with or without a scale.

    real to integer     y = clamp(round(x / scale) + zero)             halves away from 0; NaN is taken as 0
    integer to real     y = scale * (x - zero)                         rounded once
    integer to integer  y = clamp(requantize(x - x_zero) + zero)       QUANTIZE
    cast                y = x, modulo the width of y                   CAST between integers

    x  [rows, n] of type `from_type`
    y  [rows, n] of type `to_type`

Bounds: x / scale beyond an i32 stops at its ends; the reference leaves that open.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import (
    DTYPE_FLOAT32, DTYPE_INT8, DTYPE_INT16, DTYPE_INT32, DTYPE_UINT8, DTYPE_UINT32, LayerCall, LayerCheck,
)  # fmt: skip
from synapticos.kernel.fmath import round_half_away
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.layers.operands import holds
from synapticos.kernel.layers.requant import requantize, scale_is_sound
from synapticos.kernel.status import Status


@struct
class ConvertParams:
    rows: u32
    n: u32  # elements in a row
    x_zero: i32
    zero: i32  # of the output
    low: i32  # of the output's type
    high: i32
    scale: f32
    multiplier: i32
    shift: i32
    from_type: u8
    to_type: u8
    reserved: u16


CONVERT_PARAMS_BYTES: Final[u32] = sizeof(ConvertParams)


@fn(pure=True)
def convert_integer(dtype: u8) -> bool:
    """Whether a type is an integer of at most 32 bits."""
    if dtype == DTYPE_INT8 or dtype == DTYPE_UINT8 or dtype == DTYPE_INT16:
        return True
    return dtype == DTYPE_INT32 or dtype == DTYPE_UINT32


@fn
def convert_operands_fit(check: LayerCheck) -> bool:
    """Whether both operands have the size and the types that the parameters say."""
    if not takes(check, 1, CONVERT_PARAMS_BYTES, 0):
        return False
    p = view(ConvertParams, check.params)
    size = product(p.rows, p.n)
    if not holds(check, 0, p.from_type, size) or not holds(check, 1, p.to_type, size) or check.rows > p.rows:
        return False
    return apart(check, p.from_type == p.to_type)


@fn(pure=True)
def zero_is_sound(dtype: u8, zero: i32) -> bool:
    """Whether a zero point is so small that a difference with it stays an i32."""
    if dtype == DTYPE_INT32 or dtype == DTYPE_UINT32:
        return zero == 0
    return zero >= -32768 and zero <= 32767


@fn(pure=True)
def limits_are_sound(dtype: u8, low: i32, high: i32) -> bool:
    """Whether what lies between them is of the type."""
    if low > high:
        return False
    if dtype == DTYPE_INT8:
        return low >= -128 and high <= 127
    if dtype == DTYPE_UINT8:
        return low >= 0 and high <= 255
    if dtype == DTYPE_INT16:
        return low >= -32768 and high <= 32767
    return dtype == DTYPE_INT32


@fn(pure=True)
def load_integer(x: Ptr[u8], i: u32, dtype: u8) -> i32:
    """Element `i`; a u32 above 2**31 - 1 comes as the i32 of the same bits."""
    if dtype == DTYPE_INT8:
        return i32(view(i8, x)[i])
    if dtype == DTYPE_UINT8:
        return i32(x[i])
    if dtype == DTYPE_INT16:
        return i32(view(i16, x)[i])
    return view(i32, x)[i]


@fn
def store_integer(y: Ptr[u8], i: u32, dtype: u8, value: i32) -> None:
    """Element `i`, modulo the type's width."""
    if dtype == DTYPE_INT8 or dtype == DTYPE_UINT8:
        y[i] = u8(value & 255)
    elif dtype == DTYPE_INT16:
        view(i16, y)[i] = wrap(i16, value)
    else:
        view(i32, y)[i] = value


@fn
def quantize_validate(check: LayerCheck) -> Status:
    if not convert_operands_fit(check):
        return Status.INVAL
    p = view(ConvertParams, check.params)
    if p.from_type != DTYPE_FLOAT32 or not convert_integer(p.to_type) or p.to_type == DTYPE_UINT32:
        return Status.INVAL
    if not zero_is_sound(p.to_type, p.zero) or not limits_are_sound(p.to_type, p.low, p.high):
        return Status.INVAL
    # A positive normal number: dividing by it makes no NaN.
    if bits(p.scale) < 0x00800000 or bits(p.scale) >= 0x7F800000:
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def quantize_run(call: LayerCall) -> Status:
    p = view(ConvertParams, call.params)
    first = call.row * p.n
    x = view(f32, call.data[0])[first:]
    y = call.data[1]
    low = p.low
    high = p.high
    zero = p.zero
    for i in range((call.row_end - call.row) * p.n):
        value: i32 = 0
        if not isnan(x[i]):
            value = sat(i32, round_half_away(x[i] / p.scale))
        # Clamped before the zero point is added, so that the sum cannot wrap.
        if value > high - zero:
            value = high
        elif value < low - zero:
            value = low
        else:
            value += zero
        store_integer(y, first + i, p.to_type, value)
    return Status.OK


@fn
def dequantize_validate(check: LayerCheck) -> Status:
    if not convert_operands_fit(check):
        return Status.INVAL
    p = view(ConvertParams, check.params)
    if p.to_type != DTYPE_FLOAT32 or not convert_integer(p.from_type) or p.from_type == DTYPE_UINT32:
        return Status.INVAL
    if not zero_is_sound(p.from_type, p.x_zero) or bits(p.scale) >= 0x7F800000:
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def dequantize_run(call: LayerCall) -> Status:
    p = view(ConvertParams, call.params)
    first = call.row * p.n
    x = call.data[0]
    y = view(f32, call.data[1])[first:]
    for i in range((call.row_end - call.row) * p.n):
        y[i] = p.scale * f32(load_integer(x, first + i, p.from_type) - p.x_zero)
    return Status.OK


@fn
def rescale_validate(check: LayerCheck) -> Status:
    if not convert_operands_fit(check):
        return Status.INVAL
    p = view(ConvertParams, check.params)
    if (
        not convert_integer(p.from_type)
        or p.from_type == DTYPE_UINT32
        or not limits_are_sound(p.to_type, p.low, p.high)
    ):
        return Status.INVAL
    if not zero_is_sound(p.from_type, p.x_zero) or not zero_is_sound(p.to_type, p.zero):
        return Status.INVAL
    if not scale_is_sound(p.multiplier, p.shift):
        return Status.INVAL
    return Status.OK


@fn
def rescale_run(call: LayerCall) -> Status:
    p = view(ConvertParams, call.params)
    first = call.row * p.n
    end = call.row_end * p.n
    x = call.data[0]
    y = call.data[1]
    low = p.low
    high = p.high
    for i in range(first, end):
        value = requantize(load_integer(x, i, p.from_type) - p.x_zero, p.multiplier, p.shift)
        store_integer(y, i, p.to_type, min(max(wrap(i32, value + p.zero), low), high))
    return Status.OK


@fn
def cast_validate(check: LayerCheck) -> Status:
    if not convert_operands_fit(check):
        return Status.INVAL
    p = view(ConvertParams, check.params)
    if p.from_type == DTYPE_FLOAT32 or p.to_type == DTYPE_FLOAT32:
        if p.from_type == p.to_type or p.from_type == DTYPE_UINT32 or p.to_type == DTYPE_UINT32:
            return Status.INVAL
    if not convert_integer(p.from_type) and p.from_type != DTYPE_FLOAT32:
        return Status.INVAL
    if not convert_integer(p.to_type) and p.to_type != DTYPE_FLOAT32:
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def cast_run(call: LayerCall) -> Status:
    p = view(ConvertParams, call.params)
    x = call.data[0]
    y = call.data[1]
    for i in range(call.row * p.n, call.row_end * p.n):
        if p.from_type == DTYPE_FLOAT32:
            store_integer(y, i, p.to_type, sat(i32, view(f32, x)[i]))
        elif p.to_type == DTYPE_FLOAT32:
            view(f32, y)[i] = f32(load_integer(x, i, p.from_type))
        else:
            store_integer(y, i, p.to_type, load_integer(x, i, p.from_type))
    return Status.OK


TINY = 2.0**-126  # the smallest float that is not subnormal


def plan(op: Any) -> Any:
    """The step for a QUANTIZE, DEQUANTIZE or CAST. Plain Python."""
    from synapticos.kernel.layers import lookup, requantize as bytes_only
    from synapticos.kernel.layers.functions import one_scale
    from synapticos.kernel.layers.operands import integer_range, number_of, require
    from synapticos.kernel.layers.quantize import multiplier_of
    from synapticos.kernel.layers.variants import CAST, DEQUANTIZE, QUANTIZE_F32, RESCALE, LayerPlan, Unsupported, as_rows

    x, y = op.inputs[0], op.outputs[0]
    rows, n = as_rows(y.shape)
    fields: dict[str, Any] = dict(rows=rows, n=n)
    variant = CAST
    if op.kind == "CAST":
        require("int8 uint8 int16 int32 uint32 float32", x, y)
    elif op.kind == "DEQUANTIZE":
        require("int8 uint8 int16 int32", x)
        require("float32", y)
        variant = DEQUANTIZE
        scale, zero = one_scale(x)
        fields |= dict(scale=scale, x_zero=zero)
    elif x.dtype == "float32":
        require("int8 uint8 int16 int32", y)
        variant = QUANTIZE_F32
        scale, zero = one_scale(y)
        if scale < TINY:
            raise Unsupported(f"a scale of {scale:g}, which division does not bear", f"one of at least {TINY:g}")
        low, high = integer_range(y.dtype)
        fields |= dict(scale=scale, zero=zero, low=low, high=high)
    else:
        require("int8 uint8 int16 int32", x, y)
        if (x.dtype, y.dtype) == ("int8", "int8"):
            return bytes_only.plan(op)
        if x.dtype in ("int8", "uint8") and y.dtype in ("int8", "uint8"):
            return lookup.plan(op)
        variant = RESCALE
        (x_scale, x_zero), (y_scale, y_zero) = one_scale(x), one_scale(y)
        multiplier, shift = multiplier_of(x_scale / y_scale)
        low, high = integer_range(y.dtype)
        fields |= dict(multiplier=multiplier, shift=shift, x_zero=x_zero, zero=y_zero, low=low, high=high)
    params = pack(ConvertParams, from_type=number_of(x.dtype), to_type=number_of(y.dtype), **fields)
    return LayerPlan(variant, [x], [y], params, scratch=0, cost=rows * n, rows=rows)
