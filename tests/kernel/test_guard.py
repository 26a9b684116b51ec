"""What a stage or layer does wrong ends its own job, is told with its place and counted; the next job is not touched."""

import inspect

import pytest
from kernels import FAIL, OPTIONS, PASS, ROOTS, TABLES, World, stub_output

from synapticos.kernel.guard import APP_STAGES
from synapticos.kernel.job import Fault, FaultKind
from synapticos.kernel.pipeline import APP_STAGE
from synapticos.kernel.sched import infer_fault
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall
from synapticos.lang import *


@fn
def out_of_bounds(call: StageCall) -> Status:
    table = local(u8, 4)
    at = call.x[0].size
    table[at] = 1  # an index that the array does not have
    call.y.size = u32(table[0])
    return Status.OK


@fn
def overflowing(call: StageCall) -> Status:
    big = call.x[0].size * 0x1000000
    call.y.size = big * 16  # leaves 32 bits
    return Status.OK


@fn
def dividing(call: StageCall) -> Status:
    call.y.size = call.y.size // call.x[0].shape[3]  # by 0
    return Status.OK


@struct
class Answer:
    status: Status


@fn
def overrun(call: StageCall) -> Status:
    words = local(u32, 1)
    words[0] = 0x10000018 + call.inputs
    return view(Answer, view(u8, words)).status


WILD = {"out_of_bounds": out_of_bounds, "overflowing": overflowing, "dividing": dividing}
STAGES = {APP_STAGE + len(TABLES[APP_STAGES]) + i: (name, f) for i, (name, f) in enumerate(WILD.items())}
NUMBER = {name: number for number, (name, _) in STAGES.items()}
@fn
def talking(call: StageCall) -> Status:
    """Says what its first byte asks for."""
    match call.x_data[0][0]:
        case 0:
            return Status.NOENT
        case 1:
            return Status.CANCELED
        case 2:
            return Status.TIMEDOUT
        case 3:
            return Status.INPROGRESS
        case _:
            return Status.NODEV


@fn
def halfway(call: StageCall) -> Status:
    """Counts in its state, and is stopped between two writes of it if its first byte says so."""
    state = call.state
    if state is None:
        return Status.INVAL
    state[0] = state[0] + 1
    table = local(u8, 4)
    table[u32(call.x_data[0][0])] = 1
    state[1] = state[0]
    call.y.size = 1
    call.y.ndim = 1
    call.y.shape[0] = 1
    call.y.dtype = call.x[0].dtype
    call.y_data[0] = state[1]
    return Status.OK


OVERRUN = APP_STAGE + len(TABLES[APP_STAGES]) + len(WILD)
TALKING = OVERRUN + 1
HALFWAY = OVERRUN + 2
GUARDED = {**OPTIONS, "GUARD": 1, "tables": {**TABLES, APP_STAGES: [*TABLES[APP_STAGES], *WILD.values(), overrun, talking, halfway]}}
DATA = bytes(range(48))


@pytest.fixture
def guarded(make):
    """A kernel with GUARD and checks, on each engine in turn."""
    return World(make(*ROOTS, infer_fault, **GUARDED, **({} if make.engine == "checked" else {"checks": True})))


def line_of(function):
    """The file's line that is commented upon: the last of the function that has a comment."""
    lines, first = inspect.getsourcelines(function.python)
    return next(first + i for i, line in reversed(list(enumerate(lines))) if "  # " in line)


def fault_of(w, job):
    out = w.e.new(Fault)
    assert w.e(infer_fault, w.kernel, job, out) == Status.OK
    return out


@pytest.mark.parametrize("name", WILD)
def test_a_failed_check_ends_its_job_and_names_its_line(guarded, name):
    w = guarded
    good, bad = w.simple(), w.pipeline(w.model("other"), (NUMBER[name],))
    victim, next_ = w.submit(bad, DATA), w.submit(good, DATA)
    w.run()
    assert w("infer_wait", victim, 0) == Status.ACCES
    assert w("infer_error_at", victim) == (0, 0)
    fault = fault_of(w, victim)
    assert fault.kind == FaultKind.CHECK and fault.line == line_of(WILD[name])
    assert w.e.file(fault.file).endswith("test_guard.py")
    assert w.result(next_) == stub_output(DATA)
    assert (w.kernel.guards[0].faults, w.kernel.guards[0].watchdogs) == (1, 0)
    assert (w.kernel.stats.errors, w.kernel.stats.done, w.kernel.unfinished, w.kernel.current) == (1, 1, 0, 0)


def test_a_hundred_faults_leave_nothing_behind(guarded):
    w = guarded
    good, bad = w.simple(), w.pipeline(w.model("other"), (PASS, NUMBER["out_of_bounds"]))
    before = None
    for i in range(100):
        job = w.submit(bad, DATA)
        w.run()
        assert w("infer_wait", job, 0) == Status.ACCES
        assert w("infer_error_at", job) == (1, 0)
        w("infer_detach", job)
        w("mem_reset_ephemeral")
        now = (w.kernel.free.words[0], w.kernel.unfinished, w.kernel.arena.end, [f.owner for f in w.kernel.frames], w.kernel.inside)
        assert before in (None, now)
        before = now
        assert w.kernel.guards[0].faults == i + 1
    job = w.submit(good, DATA)
    w.run()
    assert w.result(job) == stub_output(DATA)


def test_a_stage_that_only_says_no_is_no_fault(guarded):
    w = guarded
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (FAIL,)), DATA)
    w.run()
    assert w("infer_wait", job, 0) == Status.IO
    out = w.e.new(Fault)
    assert w.e(infer_fault, w.kernel, job, out) == Status.NODATA
    assert w.e(infer_fault, w.kernel, job + 1, out) == Status.NOENT
    assert w.kernel.guards[0].faults == 0


def test_a_slot_that_held_a_faulted_job_is_as_good_as_any(guarded):
    w = guarded
    good, bad = w.simple(), w.pipeline(w.model("other"), (NUMBER["dividing"],))
    for _ in range(5):
        job = w.submit(bad, DATA)
        w.run()
        w("infer_detach", job)
        job = w.submit(good, DATA)
        w.run()
        out = w.e.new(Fault)
        assert w.e(infer_fault, w.kernel, job, out) == Status.NODATA
        assert w.result(job) == stub_output(DATA)


@pytest.mark.only("native", "cortex-m")
def test_a_number_that_is_no_status_is_an_error_like_others(guarded):
    """As a stage leaves that has overrun what it answers."""
    w = guarded
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (OVERRUN,)), DATA)
    w.run()
    assert w("infer_wait", job, 0) == Status.IO


@pytest.mark.parametrize("guard", [0, 1])
def test_a_stage_says_no_more_of_its_job_than_that_it_failed(make, guard):
    """A job that seems to be gone, cancelled, late or not over would be waited for, or taken for another's work."""
    w = World(make(*ROOTS, infer_fault, **{**GUARDED, "GUARD": guard}))
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, TALKING))
    for first in range(5):
        job = w.submit(pipe, bytes([first, *range(47)]))
        w.run()
        assert w("infer_wait", job, 0) == (Status.IO if first < 4 else Status.NODEV)
        assert w("infer_error_at", job) == (1, 0)
        w("infer_detach", job)
        w("mem_reset_ephemeral")
    assert w.kernel.stats.errors == 5


def test_a_stage_that_was_stopped_forgets_what_it_keeps(guarded):
    w = guarded
    w.hand_model()
    pipe = w.pipeline(w.model(), (HALFWAY,))
    stage = w.kernel.pipelines.items[(pipe & 0xFF) - 1].stages[0]
    stage.state_at, stage.state_bytes = w.kernel.arena.size - 64, 16
    states = []
    for first in (0, 0, 9, 0):
        job = w.submit(pipe, bytes([first, *range(47)]))
        w.run()
        assert w("infer_wait", job, 0) == (Status.ACCES if first else Status.OK)
        states.append(tuple(bytes(w.memory)[stage.state_at : stage.state_at + 2]))
        w("infer_detach", job)
        w("mem_reset_ephemeral")
    assert states == [(1, 1), (2, 2), (0, 0), (1, 1)]
