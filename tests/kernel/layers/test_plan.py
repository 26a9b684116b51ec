"""What the host side of a layer refuses, and the numbers of the variants."""

from types import SimpleNamespace

import numpy as np
import pytest

from synapticos.kernel.layers import IN_PLACE, LAYERS, TRAILING, VARIANTS, Unsupported
from synapticos.kernel.layers.quantize import activation_range, folded_bias
from synapticos.kernel.layers.tables import RUNS, VALIDATES, absent_run, run_functions, validate_functions


def tensor(shape, dtype="int8", scale=0.5, zero=0, data=None):
    scales = np.atleast_1d(np.array(scale, np.float32))
    return SimpleNamespace(
        name="t", shape=shape, dtype=dtype, scale=scales, zero=np.full(len(scales), zero, np.int32), axis=0, data=data
    )


def op(kind, inputs, outputs, **options):
    return SimpleNamespace(kind=kind, inputs=inputs, outputs=outputs, options=options)


def weights(*shape, **fields):
    return tensor(shape, data=np.ones(shape, np.int8), **fields)


def test_each_variant_has_its_validate_and_run():
    assert sorted(VARIANTS) == list(range(len(VARIANTS)))
    assert len(VALIDATES) == len(RUNS) == len(VARIANTS)
    for validate, run in zip(VALIDATES, RUNS, strict=True):
        assert validate.__name__.removesuffix("_validate") == run.__name__.removesuffix("_run")


def test_a_build_carries_only_the_layers_it_needs():
    assert [f is not absent_run for f in run_functions({1, 3})] == [n in (1, 3) for n in VARIANTS]
    assert len(validate_functions({1})) == len(VARIANTS)


def test_operators_that_may_share_bytes_exist():
    assert set(LAYERS) >= IN_PLACE | TRAILING
    assert not IN_PLACE & TRAILING


SHAPE = (1, 4, 4, 2)
REFUSED = {
    "that are not constant": op("CONV_2D", [tensor(SHAPE), tensor((3, 1, 1, 2)), None], [tensor((1, 4, 4, 3))]),
    "with a zero point": op("CONV_2D", [tensor(SHAPE), weights(3, 1, 1, 2, zero=3), None], [tensor((1, 4, 4, 3))]),
    "2 scales": op("FULLY_CONNECTED", [tensor((1, 2)), weights(3, 2, scale=[1, 2]), None], [tensor((1, 3))]),
    "stride_h 256": op("MAX_POOL_2D", [tensor(SHAPE)], [tensor((1, 1, 1, 2))], filter_h=2, filter_w=2, stride_h=256),
    "output scale other than": op("PAD", [tensor(SHAPE)], [tensor(SHAPE, scale=0.25)], pads=[(0, 0)] * 4),
    "8 inputs": op("CONCATENATION", [tensor((1, 2))] * 8, [tensor((1, 16))], axis=1),
    "1/256": op("SOFTMAX", [tensor((1, 4))], [tensor((1, 4))], beta=1.0),
    "70000 rows": op("CONCATENATION", [tensor((70000, 1))] * 2, [tensor((70000, 2))], axis=1),
    "a fused TANH": op("ADD", [tensor(SHAPE)] * 2, [tensor(SHAPE)], activation="TANH"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_form_without_a_layer_is_refused_with_its_reason(reason):
    refused = REFUSED[reason]
    with pytest.raises(Unsupported) as told:
        LAYERS[refused.kind].plan(refused)
    assert reason in str(told.value)
    assert told.value.fact


def test_a_folded_bias_is_taken_modulo_two_to_the_32():
    rows = np.full((1, 4), -128, np.int8)
    bias = tensor((1,), "int32", data=np.array([2**31 - 1], np.int32))
    assert folded_bias(bias, rows, 127).tolist() == [(2**31 - 1 + 127 * 512 + 2**31) % 2**32 - 2**31]


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("NONE", (-128, 127)), ("RELU", (-10, 127)), ("RELU6", (-10, 50)), ("RELU_N1_TO_1", (-20, 0))],
)
def test_a_fused_activation_is_a_range_of_the_output(activation, expected):
    assert activation_range(activation, tensor((1,), scale=0.1, zero=-10)) == expected
