"""Layer kernels, one family a file: each has `plan` (host), `validate` and `run` (kernel).

Numbers of the variants are in `variants`, the tables that the kernel calls through in `tables`, the requantizer that
all share in `requant`.
"""

from synapticos.kernel.layers import (
    add, average_pool, concat, conv, copy_bytes, dense, depthwise, max_pool, pad, requantize, softmax,
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
    "QUANTIZE": requantize,
    "RESHAPE": copy_bytes,
}

# operators whose output may be the bytes of an input
IN_PLACE = {"ADD", "QUANTIZE", "RESHAPE", "SOFTMAX"}

# operators whose output may lie below their first input and overlap it, as rows go upwards: row r reads no input row
# before r * stride - pad_top, and within one row input and output must not touch
TRAILING = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD"}

__all__ = ["IN_PLACE", "LAYERS", "TRAILING", "VARIANTS", "Const", "LayerPlan", "Unsupported"]
