"""Layer kernels, one family a file: each has `plan` (host), `validate` and `run` (kernel).

Numbers of the variants are in `variants`, the tables that the kernel calls through in `tables`, the requantizer that
all share in `requant`.
"""

from synapticos.kernel.layers import (
    add, average_pool, concat, conv, convert, copy_bytes, dense, dense_f32, depthwise, elements_f32, elements_i32,
    filter_bank, join, lookup, lstm, max_pool, moves, pad, rfft, signal, softmax, softmax_wide, squash, svdf, window_f32,
)  # fmt: skip
from synapticos.kernel.layers.by_type import ByType
from synapticos.kernel.layers.variants import VARIANTS, Const, LayerPlan, Unsupported

# operator of the source model: the file whose `plan` takes it
LAYERS = {
    "FULLY_CONNECTED": ByType(int8=dense, float32=dense_f32),
    "CONV_2D": ByType(int8=conv, float32=window_f32),
    "DEPTHWISE_CONV_2D": ByType(int8=depthwise, float32=window_f32),
    "ADD": ByType(int8=add, float32=elements_f32, int32=elements_i32),
    "PAD": ByType(moves, int8=pad),
    "MAX_POOL_2D": ByType(int8=max_pool, float32=window_f32),
    "AVERAGE_POOL_2D": ByType(int8=average_pool, float32=window_f32),
    "CONCATENATION": ByType(join, int8=concat),
    "SOFTMAX": ByType(int8=softmax, int16=softmax_wide),
    "SVDF": svdf,
    "QUANTIZE": convert,
    "DEQUANTIZE": convert,
    "CAST": convert,
    "LOGISTIC": ByType(int8=lookup, int16=squash),
    "TANH": ByType(int8=lookup, int16=squash),
    "SUB": ByType(float32=elements_f32, int32=elements_i32),
    "MUL": ByType(float32=elements_f32, int32=elements_i32),
    "DIV": ByType(float32=elements_f32, int32=elements_i32),
    "MAXIMUM": ByType(float32=elements_f32, int32=elements_i32),
    "MINIMUM": ByType(float32=elements_f32, int32=elements_i32),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "SignalWindow": signal,
    "SignalFftAutoScale": signal,
    "SignalEnergy": signal,
    "SignalRfft": rfft,
    "SignalFilterBank": filter_bank,
    "SignalFilterBankSquareRoot": filter_bank,
    "SignalFilterBankSpectralSubtraction": filter_bank,
    "SignalPCAN": filter_bank,
    "SignalFilterBankLog": filter_bank,
    "RELU": lookup,
    "RELU6": lookup,
    "RELU_N1_TO_1": lookup,
    "RESHAPE": copy_bytes,
    "READ_VARIABLE": copy_bytes,
    "ASSIGN_VARIABLE": copy_bytes,
    "STRIDED_SLICE": moves,
}

# operators whose output may be the bytes of an input
IN_PLACE = {
    "ADD", "CAST", "DIV", "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE", "SOFTMAX", "SUB",
    "TANH",
}  # fmt: skip

# operators whose output may lie below their first input and overlap it, as rows go upwards: row r reads no input row
# before r * stride - pad_top, and within one row input and output must not touch
TRAILING = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD"}

__all__ = ["IN_PLACE", "LAYERS", "TRAILING", "VARIANTS", "Const", "LayerPlan", "Unsupported"]
