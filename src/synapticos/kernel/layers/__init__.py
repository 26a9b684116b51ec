"""Layer kernels, one family a file: each has `plan` (host), `validate` and `run` (kernel).

Numbers of the variants are in `variants`, the tables that the kernel calls through in `tables`, the requantizer that
all share in `requant`.
"""

from synapticos.kernel.layers import (
    add, average_pool, concat, conv, convert, copy_bytes, dense, depthwise, lookup, max_pool, moves, pad, softmax,
)  # fmt: skip
from synapticos.kernel.layers.variants import VARIANTS, Const, LayerPlan, Unsupported

# operator of the source model: the file whose `plan` takes it
LAYERS = {
    "FULLY_CONNECTED": dense,
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "ADD": add,
    "PAD": pad,
    "MAX_POOL_2D": max_pool,
    "AVERAGE_POOL_2D": average_pool,
    "CONCATENATION": concat,
    "SOFTMAX": softmax,
    "QUANTIZE": convert,
    "DEQUANTIZE": convert,
    "CAST": convert,
    "LOGISTIC": lookup,
    "TANH": lookup,
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
    "ADD", "CAST", "LOGISTIC", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE", "SOFTMAX", "TANH",
}  # fmt: skip

# operators whose output may lie below their first input and overlap it, as rows go upwards: row r reads no input row
# before r * stride - pad_top, and within one row input and output must not touch
TRAILING = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD"}

__all__ = ["IN_PLACE", "LAYERS", "TRAILING", "VARIANTS", "Const", "LayerPlan", "Unsupported"]
