"""Regions: the memory that the kernel's state may name.

State holds a region's number and an offset, never a pointer; here is the one place where they become one, and where
they are checked. The table is the last field of `Kernel`, so that all before it has equal bytes on every engine.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import MAX_JOBS, MAX_MODELS


REGION_NONE: Final[u32] = 0  # a tensor without data
REGION_ARENA: Final[u32] = 1
REGION_CONTAINERS: Final[u32] = 2  # compiled models, read only
REGION_TABLES: Final[u32] = 3  # an app's tables, read only
REGION_SHARED: Final[u32] = 4
REGION_NPU: Final[u32] = 5  # the model that was loaded by hand
REGION_MODEL: Final[u32] = 6  # + model slot: a payload attached to it
REGION_INPUT = MAX_MODELS + 6  # + job slot: what its caller handed in
REGION_OUTPUT = MAX_MODELS + MAX_JOBS + 6  # + job slot: where its caller wants the result
REGIONS = MAX_MODELS + MAX_JOBS + MAX_JOBS + 6


@struct
class Region:
    base: Ptr[u8] | None
    size: u32  # bytes; 0: nothing is there


@struct
class Regions:
    items: Shaped[Array[Region], REGIONS]

    @fn
    def set(self, number: u32, base: Ptr[u8] | None, size: u32) -> None:
        """From now on `number` names the `size` bytes at `base` (None: nothing)."""
        region = self.items[number]
        region.base = base
        region.size = size
        if base is None:
            region.size = 0

    @fn
    def get(self, number: u32, at: u32, n: u32) -> Ptr[u8] | None:
        """The `n` bytes from byte `at` of a region, or None if they do not lie inside it."""
        if number >= REGIONS:
            return None
        region = self.items[number]
        base = region.base
        if base is None:
            return None
        if at > region.size or n > region.size - at:
            return None
        return base[at : at + n]
