"""Arena: all tensors of a core, in one piece of memory.

    0             persistent           end           size = scratch_at
    | persistent | fixed frames of an app | ephemeral |  free  | scratch |

Persistent blocks stay. Ephemeral ones follow them and go together, by a reset. Scratch blocks lie at the top and are
given back in the order of a stack, or by the same reset. No free list, so nothing to fragment: after a reset the same
requests get the same offsets.

A tensor's block is its descriptor (HEADER bytes) and its data, and begins on a multiple of ALIGN; `end` is the last
block's end, not rounded up. Deals in offsets and touches no memory but its own fields.
Invariants: persistent <= end <= size; end <= peak; size and scratch_at are multiples of ALIGN.
"""

from synapticos.lang import *
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Lifetime, element_size

SCRATCH_POOL_SIZE = param(u32, 16384, max=65536)  # bytes, for `mem_init`
ALIGN: Final[u32] = 16  # bytes: what DMA and accelerators need
HEADER: Final[u32] = 32  # bytes of a tensor's descriptor
SCRATCH_DEPTH = param(u32, 8, min=1, max=64)  # scratch blocks that can be given back one by one; more go with a reset


@struct
class Arena:
    size: u32  # bytes for tensors; 0: not initialised
    persistent: u32  # end of the persistent blocks
    end: u32  # end of the last block of all: what is in use
    peak: u32  # largest `end` since init
    allocs: u32  # tensor and scratch blocks handed out since init; wraps
    resets: u32  # since init; wraps
    scratch_at: u32  # where the scratch pool begins
    scratch_size: u32
    scratch_used: u32
    scratch_blocks: u32  # blocks in the pool
    scratch_start: Shaped[Array[u32], SCRATCH_DEPTH]  # where the first blocks begin, from scratch_at

    @fn
    def init(self, size: u32, scratch: u32) -> Status:
        """Take `size` bytes, the last `scratch` of them as pool; all counters 0.

        Returns OK; INVAL if `size` is 0 or leaves nothing beside the pool.
        """
        if size == 0 or size <= scratch:
            return Status.INVAL
        room = (size - scratch) & ~u32(ALIGN - 1)
        if room == 0:
            return Status.INVAL
        self.size = room
        self.persistent = 0
        self.end = 0
        self.peak = 0
        self.allocs = 0
        self.resets = 0
        self.scratch_at = room
        self.scratch_size = scratch
        self.scratch_used = 0
        self.scratch_blocks = 0
        for i in range(SCRATCH_DEPTH):
            self.scratch_start[i] = 0
        return Status.OK

    @fn
    def block(self, n: u32, lifetime: Lifetime) -> tuple[Status, u32]:
        """Hand out `n` bytes: the second result is their offset, a multiple of ALIGN.

        Returns OK; PERM before init; BUSY for a persistent block while ephemeral ones are there; NOMEM.
        On an error the arena has not changed.
        """
        if self.size == 0:
            return Status.PERM, 0
        if lifetime == Lifetime.PERSISTENT and self.end != self.persistent:
            return Status.BUSY, 0  # it would lie among what the next reset drops
        at = align_up(self.end)
        if n > self.size - at:
            return Status.NOMEM, 0
        self.end = at + n
        if lifetime == Lifetime.PERSISTENT:
            self.persistent = self.end
        self.peak = max(self.peak, self.end)
        return Status.OK, at

    @fn
    def tensor(self, bytes: u32, lifetime: Lifetime) -> tuple[Status, u32]:
        """Hand out a descriptor with `bytes` of data after it: the second result is the descriptor's offset.

        Returns and keeps what `block` does.
        """
        if bytes > 0xFFFFFFFF - HEADER:
            return Status.NOMEM, 0
        status, at = self.block(HEADER + bytes, lifetime)
        if status != Status.OK:
            return status, 0
        self.allocs = wrap(u32, self.allocs + 1)
        return Status.OK, at

    @fn
    def reset(self, keep: u32) -> None:
        """Drop the ephemeral blocks that begin at `keep` or later, and all scratch. `keep` is a block's end, or 0 for none."""
        self.end = min(self.end, max(self.persistent, keep))
        self.scratch_used = 0
        self.scratch_blocks = 0
        self.resets = wrap(u32, self.resets + 1)

    @fn
    def scratch(self, n: u32) -> tuple[Status, u32]:
        """Hand out `n` bytes of the pool: the second result is their offset in the arena's region, a multiple of ALIGN.

        Returns OK; PERM before init; INVAL if `n` is 0; NOMEM.
        """
        if self.size == 0:
            return Status.PERM, 0
        if n == 0:
            return Status.INVAL, 0
        start = align_up(self.scratch_used)
        if start > self.scratch_size or n > self.scratch_size - start:
            return Status.NOMEM, 0
        if self.scratch_blocks < SCRATCH_DEPTH:
            self.scratch_start[self.scratch_blocks] = start
        self.scratch_blocks += 1
        self.scratch_used = start + n
        self.allocs = wrap(u32, self.allocs + 1)
        return Status.OK, self.scratch_at + start

    @fn
    def scratch_release(self, at: u32) -> Status:
        """Give back the block at offset `at` if it is the one handed out last.

        Returns OK; INVAL otherwise, and nothing changes.
        """
        if self.scratch_blocks == 0 or self.scratch_blocks > SCRATCH_DEPTH:
            return Status.INVAL
        top = self.scratch_start[self.scratch_blocks - 1]
        if at != self.scratch_at + top:
            return Status.INVAL
        self.scratch_used = top
        self.scratch_blocks -= 1
        return Status.OK

    @fn
    def scratch_pop(self) -> None:
        """Give back the block handed out last, if there is one whose start is known."""
        if self.scratch_blocks == 0 or self.scratch_blocks > SCRATCH_DEPTH:
            return
        self.scratch_blocks -= 1
        self.scratch_used = self.scratch_start[self.scratch_blocks]


@fn(pure=True)
def align_up(n: u32) -> u32:
    """`n`, or the next multiple of ALIGN. `n` is at most 2^32 - ALIGN."""
    return (n + (ALIGN - 1)) & ~u32(ALIGN - 1)


@fn(pure=True)
def shape_bytes(shape: Ptr[u32], ndim: u32, dtype: DType) -> tuple[Status, u32]:
    """Bytes of a tensor: product of its `ndim` dimensions times the element's size.

    Returns OK; FBIG if a product on the way does not fit 32 bits.
    """
    n: u64 = element_size(dtype)
    for i in range(ndim):
        n = n * shape[i]
        if n > 0xFFFFFFFF:
            return Status.FBIG, 0
    return Status.OK, u32(n)
