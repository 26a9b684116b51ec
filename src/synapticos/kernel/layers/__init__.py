"""Layer kernels, one family a file: each has `plan` (host), `validate` and `run` (kernel).

Numbers of the variants are in `variants`, the tables that the kernel calls through in `tables`, the requantizer that
all share in `requant`.
"""

from typing import Any

from synapticos.kernel.layers import (
    add, average_pool, concat, conv_groups, convert, copy_bytes, dense, dense_f32, dense_i16, depthwise, elements_f32, elements_i8, elements_i16,
    elements_i32, filter_bank, gather, join, lookup, lstm, lstm_f32, max_pool, moves, pad, reduce, resize, rfft, rows_f32, rows_i8, scatter, signal,
    softmax, softmax_i16, squash, svdf, svdf_f32, unary_f32, window_f32,
    window_i16,
)  # fmt: skip
from synapticos.kernel.layers.by_type import ByType, FirstThatCan
from synapticos.kernel.layers.variants import VARIANTS, Const, LayerPlan, Unsupported

# operator of the source model: the file whose `plan` takes it
LAYERS: dict[str, Any] = {
    "FULLY_CONNECTED": ByType(int8=dense, float32=dense_f32, int16=dense_i16),
    "CONV_2D": ByType(int8=conv_groups, float32=window_f32, int16=window_i16),
    "DEPTHWISE_CONV_2D": ByType(int8=depthwise, float32=window_f32, int16=window_i16),
    "ADD": ByType(int8=FirstThatCan(add, elements_i8), int16=elements_i16, float32=elements_f32, int32=elements_i32),
    "PAD": ByType(moves, int8=pad),
    "MAX_POOL_2D": ByType(int8=max_pool, float32=window_f32, int16=window_i16),
    "AVERAGE_POOL_2D": ByType(int8=average_pool, float32=window_f32, int16=window_i16),
    "CONCATENATION": ByType(join, int8=concat),
    "SOFTMAX": ByType(int8=softmax, int16=softmax_i16, float32=rows_f32),
    "SVDF": ByType(int8=svdf, float32=svdf_f32),
    "QUANTIZE": convert,
    "DEQUANTIZE": convert,
    "CAST": convert,
    "LOGISTIC": ByType(int8=lookup, int16=squash, float32=unary_f32),
    "TANH": ByType(int8=lookup, int16=squash, float32=unary_f32),
    "ELU": ByType(int8=lookup, float32=unary_f32),
    "LEAKY_RELU": ByType(int8=lookup, int16=elements_i16, float32=unary_f32),
    "HARD_SWISH": ByType(int8=lookup, float32=unary_f32),
    "PRELU": ByType(int8=elements_i8, float32=elements_f32),
    "MEAN": reduce,
    "SUM": reduce,
    "REDUCE_MAX": reduce,
    "ARG_MAX": reduce,
    "ARG_MIN": reduce,
    "LOG_SOFTMAX": ByType(int8=rows_i8, float32=rows_f32),
    "L2_NORMALIZATION": ByType(int8=rows_i8, float32=rows_f32),
    "RESIZE_BILINEAR": resize,
    "TRANSPOSE_CONV": scatter,
    "PACK": join,
    "GATHER": gather,
    "SUB": ByType(int8=elements_i8, int16=elements_i16, float32=elements_f32, int32=elements_i32),
    "MUL": ByType(int8=elements_i8, int16=elements_i16, float32=elements_f32, int32=elements_i32),
    "DIV": ByType(float32=elements_f32, int32=elements_i32),
    "MAXIMUM": ByType(int8=elements_i8, int16=elements_i16, float32=elements_f32, int32=elements_i32),
    "MINIMUM": ByType(int8=elements_i8, int16=elements_i16, float32=elements_f32, int32=elements_i32),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ByType(int8=lstm, float32=lstm_f32),
    "SignalWindow": signal,
    "SignalFftAutoScale": signal,
    "SignalEnergy": signal,
    "SignalRfft": rfft,
    "SignalFilterBank": filter_bank,
    "SignalFilterBankSquareRoot": filter_bank,
    "SignalFilterBankSpectralSubtraction": filter_bank,
    "SignalPCAN": filter_bank,
    "SignalFilterBankLog": filter_bank,
    "RELU": ByType(int8=lookup, float32=unary_f32),
    "RELU6": ByType(int8=lookup, float32=unary_f32),
    "RELU_N1_TO_1": ByType(int8=lookup, float32=unary_f32),
    "LOOKUP": ByType(int8=lookup),
    "RESHAPE": copy_bytes,
    "READ_VARIABLE": copy_bytes,
    "ASSIGN_VARIABLE": copy_bytes,
    **{kind: moves for kind in moves.MOVES if kind not in ("GATHER", "PAD")},
}

# operators whose output may be the bytes of an input
IN_PLACE = {
    "ADD", "CAST", "DIV", "ELU", "HARD_SWISH", "L2_NORMALIZATION", "LEAKY_RELU", "LOGISTIC", "LOOKUP", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE", "SOFTMAX", "SUB",
    "TANH",
}  # fmt: skip

# operators whose output may lie below their first input and overlap it, as rows go upwards: row r reads no input row
# before r * stride - pad_top, and within one row input and output must not touch. Or above it, where rows go downwards
TRAILING = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD"}

__all__ = ["IN_PLACE", "LAYERS", "TRAILING", "VARIANTS", "Const", "LayerPlan", "Unsupported"]
