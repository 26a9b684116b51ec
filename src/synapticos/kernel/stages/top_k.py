"""top_k: the k largest elements, as records in descending score.

x  i8 or f32, any shape, not empty      y  k times Ranked, described as FLOAT32 [k] of 8k bytes
k is cut to the element count. Of equal scores the lower index comes first. NaNs are left out, so fewer than k records
may come back; if all are NaN there is no answer (INVAL).
"""

from synapticos.lang import *
from synapticos.kernel.stages.argmax import RANKED_BYTES
from synapticos.kernel.stages.operands import describe, is_numbers
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor

MAX_K: Final[u32] = 16


@struct
class TopKConfig:
    k: u8  # records, 1..MAX_K


TOP_K_CONFIG_BYTES = sizeof(TopKConfig)


@fn
def rank(index: Ptr[u32], score: Ptr[f32], count: u32, k: u32, candidate: u32, value: f32) -> u32:
    """Put a candidate in its place among `count` records in order, of which k are kept. The new count.

    Record i is index[2i] and score[2i]: both point into the same records, four bytes apart.
    """
    at = count
    if count == k:
        if value <= score[2 * k - 2]:
            return count
        at = k - 1
    while at > 0 and value > score[2 * at - 2]:
        index[2 * at] = index[2 * at - 2]
        score[2 * at] = score[2 * at - 2]
        at -= 1
    index[2 * at] = candidate
    score[2 * at] = value
    return min(count + 1, k)


@fn
def top_k(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: TopKConfig) -> Status:
    """Returns OK; INVAL if k is not 1 to 16, or x is neither i8 nor f32 of its size, empty or all NaN;
    NOMEM if y has not 8 bytes for each of the k."""
    if config.k == 0 or config.k > MAX_K or not is_numbers(x):
        return Status.INVAL
    n = x.size
    if x.dtype == DType.FLOAT32:
        n = x.size // 4
    k = min(u32(config.k), n)
    if y.size // RANKED_BYTES < k:
        return Status.NOMEM
    index = view(u32, y_data)
    score = view(f32, y_data[4:])
    count: u32 = 0
    if x.dtype == DType.INT8:
        values = view(i8, x_data)
        for i in range(n):
            count = rank(index, score, count, k, i, f32(values[i]))
    else:
        reals = view(f32, x_data)
        for i in range(n):
            if not isnan(reals[i]):
                count = rank(index, score, count, k, i, reals[i])
        if count == 0:
            return Status.INVAL
    describe(y, DType.FLOAT32, count * RANKED_BYTES, 1, count, 0, 0, 0)
    return Status.OK


@fn
def top_k_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, or k is not 1 to 16."""
    if config is None or config_bytes != TOP_K_CONFIG_BYTES:
        return Status.INVAL
    c = view(TopKConfig, config)
    if c.k == 0 or c.k > MAX_K:
        return Status.INVAL
    return Status.OK


@fn
def top_k_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """8k."""
    if config is None or config_bytes != TOP_K_CONFIG_BYTES:
        return 0
    return u32(view(TopKConfig, config).k) * RANKED_BYTES


@fn
def top_k_stage(call: StageCall) -> Status:
    config = call.config
    if call.inputs != 1 or config is None or call.config_bytes != TOP_K_CONFIG_BYTES:
        return Status.INVAL
    return top_k(call.x[0], call.x_data[0], call.y, call.y_data, view(TopKConfig, config))
