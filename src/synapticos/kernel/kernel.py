"""Kernel: all state of one core in one struct, passed by reference.

Everything before `board` has equal bytes on every engine. `kernel_boot` sets every field, so the struct may lie in
memory that holds anything.
"""

from synapticos.lang import *
from synapticos.kernel import hal
from synapticos.kernel.arena import Arena
from synapticos.kernel.backend import Npu
from synapticos.kernel.capacity import GUARD, MAX_JOBS, RELEASES
from synapticos.kernel.clock import Clock
from synapticos.kernel.dsp.contract import Dsp
from synapticos.kernel.job import CLASSES, NEVER, Job
from synapticos.kernel.log import Log
from synapticos.kernel.model import Models
from synapticos.kernel.note import Note
from synapticos.kernel.pipeline import Pipelines
from synapticos.kernel.order import FRAMES, Orders, Slots
from synapticos.kernel.profile import Profile
from synapticos.kernel.region import Regions
from synapticos.kernel.release import Releases


class Inside(u8, Enum):
    """What the kernel is doing, for calls that must not wait for it."""

    NOTHING = 0
    STEP = 1
    CALLBACK = 2


@struct
class Frame:
    """Where a job's tensors lie from its first step to its last."""

    at: u32  # in the arena; of FREE_FRAME 0: its blocks are the arena's ephemeral ones
    bytes: u32
    used: u32  # largest use since boot
    owner: u32  # job slot + 1; 0: nobody


@struct
class Stats:
    """Jobs since boot."""

    submitted: u32
    done: u32
    errors: u32
    cancelled: u32
    preemptions: u32
    reclaimed: u32  # unread ones whose slot was given away
    expired: u32  # of the errors: ended by their late policy
    misses: Shaped[Array[u32], CLASSES]  # jobs that missed their deadline, whatever became of them


@struct
class Guards:
    """Stages and layers that did not return since boot; in a build with GUARD."""

    faults: u32  # that a processor or a check stopped
    watchdogs: u32  # that took longer than they may


@struct
class Kernel:
    clock: Clock
    late_at: u64  # ticks: no deadline that passes unseen is earlier; NEVER: none at all
    jobs: Shaped[Array[Job], MAX_JOBS]  # near the start, which makes for short instructions
    arena: Arena
    frames: Shaped[Array[Frame], FRAMES]
    stats: Stats
    guards: Shaped[Array[Guards], GUARD]
    note: Note
    posted: Slots  # what poll is to look at: a new job, a changed deadline, the host has run a stage
    free: Slots  # those whose job is FREE
    queues: Orders  # of jobs that have not begun
    unfinished: u32  # jobs that count against the cap
    next_id: u32
    next_sequence: u32
    cap: u32  # unfinished jobs at once
    current: u32  # slot + 1 of the job that took the last step; 0: none is half done
    results_at: u32  # in the arena: a buffer for each job slot
    result_bytes: u32  # of one; 0: results stay in their frame
    up: bool  # between init and shutdown
    hold: bool  # no job begins
    inside: Inside
    draining: bool  # somebody is in `sched_drain`, or has the hold that it gave
    pipelines: Pipelines
    models: Models
    npu: Npu
    profile: Profile
    log: Log
    dsp: Dsp
    releases: Releases
    board: u32  # the board's number, from here on engines may differ
    reserved_end: u32
    regions: Regions  # last


@fn
def kernel_boot(kernel: Kernel, board: u32) -> None:
    """Set every field: no memory, nothing registered, not up."""
    fill(view(u8, kernel), 0, sizeof(Kernel))
    kernel.board = board
    kernel.late_at = NEVER
    kernel.next_id = 1
    kernel.cap = MAX_JOBS
    for i in range(MAX_JOBS):
        kernel.free.add(i)
    if RELEASES != 0:
        kernel.releases.due_us = NEVER
        kernel.releases.due_ticks = NEVER
        kernel.releases.end_us = NEVER
    now = hal.ticks(board)
    rate = hal.tick_rate(board)
    kernel.clock.start(now, rate)


@fn
def kernel_time(kernel: Kernel) -> u64:
    """Microseconds since boot, if the last poll was less than a whole turn of the board's counter ago. Changes nothing.

    By the thread that polls, in its stages and callbacks too, or while nobody polls: anybody else may read the clock in the
    middle of its update.
    """
    last = kernel.clock.last
    now = hal.ticks(kernel.board)
    return kernel.clock.time(kernel.clock.ticks + wrap(u32, now - last))
