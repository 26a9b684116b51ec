"""argmax: the first largest element, as one record.

x  i8 or f32, any shape, not empty      y  one Ranked, described as FLOAT32 [1] of 8 bytes
The score is the element's own value. A NaN is never the largest; if all are NaN there is no answer (INVAL).
"""

from synapticos.lang import *
from synapticos.kernel.stages.operands import describe, is_numbers
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class Ranked:
    """An element and its place. The result of argmax is one, of top_k several."""

    index: u32  # of the element, counted over the whole tensor
    score: f32


RANKED_BYTES = sizeof(Ranked)


@fn
def argmax(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8]) -> Status:
    """Returns OK; INVAL if x is neither i8 nor f32 of its size, empty or all NaN; NOMEM if y has less than 8 bytes."""
    if not is_numbers(x):
        return Status.INVAL
    if y.size < RANKED_BYTES:
        return Status.NOMEM
    best: u32 = 0
    score: f32 = 0.0
    if x.dtype == DType.INT8:
        values = view(i8, x_data)
        top = values[0]
        for i in range(x.size):
            if values[i] > top:
                top = values[i]
                best = i
        score = f32(top)
    else:
        reals = view(f32, x_data)
        found = False
        for i in range(x.size // 4):
            if not isnan(reals[i]):
                if not found or reals[i] > score:
                    score = reals[i]
                    best = i
                    found = True
        if not found:
            return Status.INVAL
    record = view(Ranked, y_data)
    record.index = best
    record.score = score
    describe(y, DType.FLOAT32, RANKED_BYTES, 1, 1, 0, 0, 0)
    return Status.OK


@fn
def argmax_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """OK: there is no configuration, and one that is given is not looked at."""
    return Status.OK


@fn
def argmax_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """8."""
    return RANKED_BYTES


@fn
def argmax_stage(call: StageCall) -> Status:
    if call.inputs != 1:
        return Status.INVAL
    return argmax(call.x[0], call.x_data[0], call.y, call.y_data)
