"""The layers that a build carries, by variant number: one table to check a step, one to run it.

All are there by default. A build for a board gives its own lists, from `validate_functions` and `run_functions`, with
`absent` where its models need no layer.
"""

from collections.abc import Iterable
from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCall, LayerCheck
from synapticos.kernel.layers.add import add_run, add_validate
from synapticos.kernel.layers.average_pool import average_pool_run, average_pool_validate
from synapticos.kernel.layers.concat import concat_run, concat_validate
from synapticos.kernel.layers.conv import conv_run, conv_validate
from synapticos.kernel.layers.conv_1x1 import conv_1x1_run, conv_1x1_validate
from synapticos.kernel.layers.conv_groups import conv_groups_run, conv_groups_validate
from synapticos.kernel.layers.convert import (
    cast_run, cast_validate, dequantize_run, dequantize_validate, quantize_run, quantize_validate, rescale_run,
    rescale_validate,
)  # fmt: skip
from synapticos.kernel.layers.copy_bytes import copy_run, copy_validate
from synapticos.kernel.layers.dense import dense_run, dense_validate
from synapticos.kernel.layers.dense_f32 import dense_f32_run, dense_f32_validate
from synapticos.kernel.layers.dense_i16 import dense_i16_run, dense_i16_validate
from synapticos.kernel.layers.depthwise import depthwise_run, depthwise_validate
from synapticos.kernel.layers.depthwise_3x3 import depthwise_3x3_run, depthwise_3x3_validate
from synapticos.kernel.layers.elements_f32 import elements_f32_run, elements_f32_validate
from synapticos.kernel.layers.elements_i8 import elements_i8_run, elements_i8_validate
from synapticos.kernel.layers.elements_i16 import elements_i16_run, elements_i16_validate
from synapticos.kernel.layers.elements_i32 import elements_i32_run, elements_i32_validate
from synapticos.kernel.layers.filter_bank import (
    bank_log_run, bank_log_validate, bank_pcan_run, bank_pcan_validate, bank_root_run, bank_root_validate, bank_run,
    bank_subtract_run, bank_subtract_validate, bank_validate,
)  # fmt: skip
from synapticos.kernel.layers.gather import gather_run, gather_validate
from synapticos.kernel.layers.join import join_run, join_validate
from synapticos.kernel.layers.lookup import lookup_run, lookup_validate
from synapticos.kernel.layers.lstm import lstm_run, lstm_validate
from synapticos.kernel.layers.lstm_f32 import lstm_f32_run, lstm_f32_validate
from synapticos.kernel.layers.max_pool import max_pool_run, max_pool_validate
from synapticos.kernel.layers.pad import pad_run, pad_validate
from synapticos.kernel.layers.pick import pick_run, pick_validate
from synapticos.kernel.layers.reduce import (
    reduce_f32_run, reduce_f32_validate, reduce_i8_run, reduce_i8_validate, reduce_i16_run, reduce_i16_validate,
)  # fmt: skip
from synapticos.kernel.layers.requantize import requantize_run, requantize_validate
from synapticos.kernel.layers.resize import resize_f32_run, resize_f32_validate, resize_i8_run, resize_i8_validate
from synapticos.kernel.layers.rfft import rfft_run, rfft_validate
from synapticos.kernel.layers.rows_f32 import rows_f32_run, rows_f32_validate
from synapticos.kernel.layers.rows_i8 import l2_i8_run, l2_i8_validate, log_softmax_i8_run, log_softmax_i8_validate
from synapticos.kernel.layers.scatter import (
    scatter_f32_run, scatter_f32_validate, scatter_i8_run, scatter_i8_validate, scatter_i16_run, scatter_i16_validate,
)  # fmt: skip
from synapticos.kernel.layers.signal import (
    signal_energy_run, signal_energy_validate, signal_scale_run, signal_scale_validate, signal_window_run,
    signal_window_validate,
)  # fmt: skip
from synapticos.kernel.layers.softmax import softmax_run, softmax_validate
from synapticos.kernel.layers.softmax_i16 import softmax_i16_run, softmax_i16_validate
from synapticos.kernel.layers.softmax_wide import softmax_wide_run, softmax_wide_validate
from synapticos.kernel.layers.squash import squash_run, squash_validate
from synapticos.kernel.layers.svdf import svdf_run, svdf_validate
from synapticos.kernel.layers.svdf_f32 import svdf_f32_run, svdf_f32_validate
from synapticos.kernel.layers.unary_f32 import unary_f32_run, unary_f32_validate
from synapticos.kernel.layers.window_f32 import (
    average_pool_f32_run, average_pool_f32_validate, conv_f32_run, conv_f32_validate, depthwise_f32_run,
    depthwise_f32_validate, max_pool_f32_run, max_pool_f32_validate,
)  # fmt: skip
from synapticos.kernel.layers.window_i16 import (
    average_pool_i16_run, average_pool_i16_validate, conv_i16_run, conv_i16_validate, depthwise_i16_run,
    depthwise_i16_validate, max_pool_i16_run, max_pool_i16_validate,
)  # fmt: skip
from synapticos.kernel.status import Status

LayerValidate = Fn[[LayerCheck], Status]
LayerRun = Fn[[LayerCall], Status]


@fn
def absent_validate(check: LayerCheck) -> Status:
    """A variant that this build does not carry."""
    return Status.NOTSUP


@fn
def absent_run(call: LayerCall) -> Status:
    """Never reached: `absent_validate` refuses the container."""
    return Status.NOTSUP


VALIDATES = [
    absent_validate, dense_validate, conv_validate, conv_1x1_validate, depthwise_validate, depthwise_3x3_validate,
    add_validate, pad_validate, max_pool_validate, average_pool_validate, concat_validate, softmax_validate,
    requantize_validate, copy_validate, pick_validate, lookup_validate, quantize_validate, dequantize_validate,
    rescale_validate, cast_validate, svdf_validate, softmax_wide_validate, elements_f32_validate, conv_f32_validate,
    depthwise_f32_validate, average_pool_f32_validate, max_pool_f32_validate, dense_f32_validate, join_validate,
    lstm_validate, squash_validate, elements_i32_validate, signal_window_validate, signal_scale_validate,
    signal_energy_validate, rfft_validate, bank_validate, bank_root_validate, bank_subtract_validate, bank_pcan_validate,
    bank_log_validate, elements_i8_validate, reduce_i8_validate, reduce_f32_validate, unary_f32_validate,
    rows_f32_validate, resize_i8_validate, resize_f32_validate, scatter_i8_validate, scatter_f32_validate,
    conv_groups_validate, l2_i8_validate, log_softmax_i8_validate, conv_i16_validate,
    depthwise_i16_validate, average_pool_i16_validate, max_pool_i16_validate, dense_i16_validate,
    elements_i16_validate, softmax_i16_validate, gather_validate, reduce_i16_validate, scatter_i16_validate,
    svdf_f32_validate, lstm_f32_validate,
]  # fmt: skip
RUNS = [
    absent_run, dense_run, conv_run, conv_1x1_run, depthwise_run, depthwise_3x3_run, add_run, pad_run, max_pool_run,
    average_pool_run, concat_run, softmax_run, requantize_run, copy_run, pick_run,
    lookup_run, quantize_run, dequantize_run, rescale_run, cast_run, svdf_run,
    softmax_wide_run, elements_f32_run, conv_f32_run, depthwise_f32_run, average_pool_f32_run, max_pool_f32_run,
    dense_f32_run, join_run, lstm_run, squash_run, elements_i32_run, signal_window_run, signal_scale_run,
    signal_energy_run, rfft_run, bank_run, bank_root_run, bank_subtract_run, bank_pcan_run, bank_log_run,
    elements_i8_run, reduce_i8_run, reduce_f32_run, unary_f32_run, rows_f32_run, resize_i8_run, resize_f32_run,
    scatter_i8_run, scatter_f32_run, conv_groups_run, l2_i8_run, log_softmax_i8_run,
    conv_i16_run, depthwise_i16_run, average_pool_i16_run, max_pool_i16_run, dense_i16_run, elements_i16_run,
    softmax_i16_run, gather_run, reduce_i16_run, scatter_i16_run, svdf_f32_run, lstm_f32_run,
]  # fmt: skip

VALIDATE = table(LayerValidate, VALIDATES, open=True)
RUN = table(LayerRun, RUNS, open=True)


def validate_functions(numbers: Iterable[int]) -> list[Any]:
    """VALIDATE for a build that needs only these variants. Plain Python."""
    needed = set(numbers)
    return [f if number in needed else absent_validate for number, f in enumerate(VALIDATES)]


def run_functions(numbers: Iterable[int]) -> list[Any]:
    """RUN for a build that needs only these variants. Plain Python."""
    needed = set(numbers)
    return [f if number in needed else absent_run for number, f in enumerate(RUNS)]
