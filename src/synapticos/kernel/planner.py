"""Planner: offsets for the outputs of a graph's layers, so that outputs that are never alive together share bytes.

A buffer is alive from its layer to its last consumer, both included; one that nobody consumes outlives the last layer.
First fit: in the layers' order, each at the lowest offset at which it meets no buffer alive at that time. So a
layer's inputs never share bytes with its output, and the same graph always gets the same offsets: a job that was set
aside may plan again when it goes on.

`model.plan` on the host packs tighter; this is for graphs that are put together on the device.
No allocation: the work is done in the caller's records, in at most n * n steps for n layers.
"""

from synapticos.lang import *
from synapticos.kernel.arena import ALIGN, align_up
from synapticos.kernel.note import Note
from synapticos.kernel.status import Status

PLAN_LAYERS: Final[u32] = 0xFFFE  # at most
NOBODY: Final[u32] = 0xFFFFFFFF


@struct
class PlanLayer:
    """A layer. The planner reads the first three fields and sets the others."""

    size: u32  # of its output, bytes
    first: u32  # its consumers are entries first..first+count-1 of the list
    count: u32  # 0: its output is the graph's
    last: u32  # the last layer at which its output is alive
    offset: u32  # of its output in the plan area, a multiple of ALIGN
    above: u32  # while planning: the buffer alive that begins next above it, or NOBODY


@struct
class BufferPlan:
    peak: u32  # bytes of the plan area
    baseline: u32  # bytes if every output had its own, each rounded up to ALIGN
    worst: u32  # the layer whose output ends highest; of several the first

    @fn(pure=True)
    def saving(self) -> u32:
        """Hundredths of a percent of the baseline that sharing saves, rounded down; 0 if there is nothing to save."""
        if self.baseline == 0:
            return 0
        return u32(div_u64(u64(self.baseline - self.peak) * 10000, self.baseline))


@fn(pure=True)
def layers_status(layers: Ptr[PlanLayer], n: u32, consumers: Ptr[u16], entries: u32) -> Status:
    """Whether every consumer is a later layer and all sizes together fit 32 bits."""
    if n == 0 or n > PLAN_LAYERS:
        return Status.INVAL
    total: u32 = 0
    for i in range(n):
        layer = layers[i]
        if layer.size > 0xFFFFFFFF - (ALIGN - 1) or align_up(layer.size) > 0xFFFFFFFF - total:
            return Status.INVAL
        total += align_up(layer.size)
        if layer.first > entries or layer.count > entries - layer.first:
            return Status.INVAL
        for k in range(layer.first, layer.first + layer.count):
            if consumers[k] <= i or consumers[k] >= n:
                return Status.INVAL
    return Status.OK


@fn
def plan_buffers(note: Note, layers: Ptr[PlanLayer], n: u32, consumers: Ptr[u16], entries: u32, area: u32, plan: BufferPlan) -> Status:
    """Place the outputs of `n` layers, which are in an order that can be executed, in an area of `area` bytes.

    Returns OK; INVAL for no layers, too many, a consumer that is no later layer, or sizes that do not fit 32 bits:
    then nothing has changed; NOMEM if the area is too small: `plan.peak` bytes would do.
    """
    check(layers_status(layers, n, consumers, entries))
    plan.peak = 0
    plan.baseline = 0
    plan.worst = 0
    bottom: u32 = NOBODY  # the buffers alive are a chain in the order of their offsets
    for i in range(n):
        layer = layers[i]
        layer.last = n
        if layer.count != 0:
            layer.last = 0
            for k in range(layer.first, layer.first + layer.count):
                layer.last = max(layer.last, consumers[k])
        size = align_up(layer.size)
        at: u32 = 0  # below it, nothing is free
        found = False
        below: u32 = NOBODY  # the buffer after which this one comes in the chain
        previous: u32 = NOBODY
        j = bottom
        while j != NOBODY:
            other = layers[j]
            if other.last < i:  # dead for this layer, so for all that follow
                if previous == NOBODY:
                    bottom = other.above
                else:
                    layers[previous].above = other.above
            else:
                if not found and other.offset >= at and other.offset - at >= size:
                    found = True
                if not found:
                    at = max(at, other.offset + align_up(other.size))
                    below = j
                previous = j
            j = other.above
        layer.offset = at
        if below == NOBODY:
            layer.above = bottom
            bottom = i
        else:
            layer.above = layers[below].above
            layers[below].above = i
        if at + size > plan.peak:
            plan.peak = at + size
            plan.worst = i
        plan.baseline += size
    if plan.peak > area:
        return refuse(note, Status.NOMEM, f"plan: {plan.peak} bytes needed, {area} available, {plan.peak - area} missing, at layer {plan.worst}")
    return Status.OK
