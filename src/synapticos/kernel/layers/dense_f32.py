"""FULLY_CONNECTED, float32.

    y[b, o] = clamp(sum_k x[b, k] * w[o, k] + bias[o])

    x     f32 [batch, depth]
    w     f32 [channels, depth]
    bias  f32 [channels]
    y     f32 [batch, channels]

The sum begins at 0 and takes its terms in the order of k; each product and each sum is rounded. Rows are channels.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_FLOAT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, apart, product, takes
from synapticos.kernel.layers.elements_f32 import clamp_f32
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.status import Status


@struct
class DenseF32Params:
    depth: u32
    channels: u32
    batch: u32
    low: f32
    high: f32


DENSE_F32_PARAMS_BYTES: Final[u32] = sizeof(DenseF32Params)


@fn
def dense_f32_validate(check: LayerCheck) -> Status:
    if not takes(check, 3, DENSE_F32_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(DenseF32Params, check.params)
    if p.channels > MAX_SIDE or check.rows > p.channels or isnan(p.low) or isnan(p.high):
        return Status.INVAL
    if not holds(check, 0, DTYPE_FLOAT32, product(p.batch, p.depth)):
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_FLOAT32, product(p.channels, p.depth)):
        return Status.INVAL
    if not holds_const(check, 2, DTYPE_FLOAT32, p.channels) or not apart(check, False):
        return Status.INVAL
    if not holds(check, 3, DTYPE_FLOAT32, product(p.batch, p.channels)):
        return Status.INVAL
    return Status.OK


@fn(nan=True)
def dense_f32_run(call: LayerCall) -> Status:
    p = view(DenseF32Params, call.params)
    bias = view(f32, call.data[2])
    y = view(f32, call.data[3])
    for b in range(p.batch):
        x = view(f32, call.data[0])[b * p.depth :]
        for o in range(call.row, call.row_end):
            w = view(f32, call.data[1])[o * p.depth :]
            total: f32 = 0.0
            for k in range(p.depth):
                total += x[k] * w[k]
            y[b * p.channels + o] = clamp_f32(total + bias[o], p.low, p.high)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for a FULLY_CONNECTED of float32. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers.elements_f32 import limits_f32
    from synapticos.kernel.layers.operands import require
    from synapticos.kernel.layers.variants import DENSE_F32, Const, LayerPlan

    x, w, bias = (list(op.inputs) + [None])[:3]
    y = op.outputs[0]
    require("float32", x, w, y)
    channels, depth = (int(n) for n in w.shape)
    batch = prod(int(n) for n in x.shape) // depth
    low, high = limits_f32(op.options.get("activation", "NONE"))
    values = np.zeros(channels, np.float32) if bias is None else bias.data.reshape(-1)
    params = pack(DenseF32Params, depth=depth, channels=channels, batch=batch, low=low, high=high)
    inputs = [x, w, Const(f"{w.name}/bias", values)]
    return LayerPlan(DENSE_F32, inputs, [y], params, scratch=0, cost=batch * channels * depth, rows=channels)
