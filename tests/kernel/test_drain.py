"""Stopping and going on, and results that nobody reads."""

import threading

import pytest
from interleavings import BEGUN as HALF_DONE
from interleavings import Player, Run
from kernels import NORMAL, NOTE_DONE, ON_HOST, OPTIONS, PASS, REALTIME, ROOTS, World, stub_output
from synapticos.kernel.job import JobState
from synapticos.kernel.model import ModelState
from synapticos.kernel.sched import Drain, Poll
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall
from synapticos.lang import u8

BEGUN, ALL, ABORT = Drain.BEGUN, Drain.ALL, Drain.ABORT
RECLAIMABLE = 2


@pytest.fixture
def busy(w):
    """Jobs running, suspended and queued in frames of their own: (low, high, queued)."""
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, PASS))
    w.frames_for(pipe)
    low = w.submit(pipe, b"\1" * 48, NORMAL, NOTE_DONE, preemptible=True)
    w("kernel_poll")
    high, queued = w.submit(pipe, b"\2" * 48, REALTIME, NOTE_DONE), w.submit(pipe, b"\3" * 48, REALTIME, NOTE_DONE)
    w("kernel_poll")
    assert [w("infer_state", j) for j in (low, high, queued)] == [JobState.SUSPENDED, JobState.RUNNING, JobState.QUEUED]
    return low, high, queued


@pytest.mark.parametrize("timeout", [0, 100])
@pytest.mark.parametrize("what, ended", [(BEGUN, 2), (ALL, 3), (ABORT, 0)])
def test_what_is_drained(w, busy, what, ended, timeout):
    assert w("sched_drain", what, timeout) == Status.OK and w.kernel.hold
    low, high, queued = busy
    assert len(w.events()) == ended and {e[2] for e in w.events()} <= {0}
    assert w("infer_state", queued) == (JobState.DONE if what == ALL else JobState.QUEUED)
    if what == ABORT:
        assert [w("infer_wait", j, 0) for j in (low, high)] == [Status.CANCELED] * 2
    w.run()
    assert len(w.events()) == ended  # nothing begins
    assert w("sched_drain", what, timeout) == Status.BUSY and w.kernel.hold  # somebody holds already
    w("sched_release")
    w.run()
    assert w.result(queued) == stub_output(b"\3" * 48) and w.kernel.unfinished == 0


def test_there_are_three_drains(w):
    assert w("sched_drain", 3, 5) == Status.INVAL and not w.kernel.hold


@pytest.mark.parametrize("timeout, status", [(0, Status.BUSY), (5, Status.AGAIN)])
@pytest.mark.parametrize("what", [BEGUN, ALL, ABORT])
def test_a_timeout_leaves_all_as_it_was(w, what, timeout, status):
    """A stage of the host does not end: nothing is held, and what was queued begins."""
    w.hand_model()
    model = w.model()
    stuck = w.submit(w.pipeline(model, (ON_HOST,)), bytes(48), NORMAL)
    w("kernel_poll")
    call = w.e.new(StageCall)
    w("stage_take", stuck, call)
    pipe = w.pipeline(model)
    queued = w.submit(pipe, bytes(48), REALTIME)
    assert w("sched_drain", what, timeout) == status and not w.kernel.hold
    assert w("infer_state", queued) == JobState.QUEUED and w("infer_state", stuck) == JobState.WAITING
    assert w("stage_done", stuck, Status.OK, w.descriptor(48)) == Status.OK
    w.run()
    assert w("infer_wait", queued, 0) == Status.OK
    assert w("infer_wait", stuck, 0) == (Status.CANCELED if what == ABORT else Status.OK)


@pytest.mark.only("checked")
def test_a_drain_of_a_live_clock_ends_with_its_time(w, busy):
    """Each poll takes 3 ms here; three of the eight steps are done."""
    poll = w.e.board.critical_exit

    def later(number, state):
        poll(number, state)
        w.e.board.now += 1000

    w.e.board.critical_exit = later
    try:
        assert w("sched_drain", ALL, 5) == Status.AGAIN
    finally:
        w.e.board.critical_exit = poll
    assert not w.kernel.hold and w.kernel.unfinished > 0
    assert w("sched_drain", ALL, 5) == Status.OK


@pytest.mark.parametrize("inside, what, status", [(1, BEGUN, Status.BUSY), (2, BEGUN, Status.OK), (2, ALL, Status.BUSY), (2, ABORT, Status.OK)])
def test_from_a_stage_or_a_callback(w, inside, what, status):
    """A queued job is there: from a callback only what asks for nothing but half-done jobs can be answered."""
    w.submit(w.simple(), bytes(48))
    w.kernel.inside = inside
    assert w("sched_drain", what, 100) == status and w.kernel.hold == (status == Status.OK)


# Results that nobody reads


def test_results_are_given_up_by_age(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48)) for _ in range(3)]
    w.run()
    w.advance_us(2000)
    later = w.submit(pipe, bytes(48))
    w.run()
    assert w("infer_reclaim", 2) == 0  # ended 2 ms ago, and not longer
    w.advance_us(1)
    assert w("infer_reclaim", 2) == 3 and w.kernel.stats.reclaimed == 3
    assert [w("infer_wait", j, 0) for j in jobs] == [Status.NOENT] * 3
    assert w.result(later) == stub_output(bytes(48))
    assert w("infer_reclaim", 0) == 0


def test_queued_and_running_jobs_are_no_results(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,))
    jobs = [w.submit(pipe, bytes(48)) for _ in range(2)]
    w("kernel_poll")
    w.advance_us(5000)
    assert w("infer_reclaim", 0) == 0
    assert w("infer_cancel", jobs[1]) == Status.OK
    w.run()
    w.advance_us(5000)
    assert w("infer_reclaim", 0) == 2


def test_the_oldest_result_that_may_go_makes_room(w):
    """Only if no slot is free, and never one that says nothing of it."""
    pipe = w.simple()
    flags = [0, RECLAIMABLE, RECLAIMABLE, 0]
    jobs = []
    for i, f in enumerate(flags):
        jobs.append(w.submit(pipe, bytes([i] * 48), NORMAL, flags=f))
        w.run()
        w.advance_us(10)
    assert w.kernel.stats.reclaimed == 0
    for gone in (1, 2):
        new = w.submit(pipe, bytes(48), NORMAL)
        assert new != 0 and w("infer_state", jobs[gone]) == JobState.FREE and w.kernel.stats.reclaimed == gone
        w.run()
    assert w.submit(pipe, bytes(48), NORMAL) == 0 and w.status == Status.BUSY
    for i in (0, 3):
        assert w.result(jobs[i]) == stub_output(bytes([i] * 48))


def test_a_result_whose_callback_has_not_returned_stays(w):
    pipe = w.simple()
    job = w.submit(pipe, bytes(48), NORMAL, flags=RECLAIMABLE)
    w.run()
    w.kernel.jobs[0].announced = False  # as within its callback
    w.advance_us(100)
    assert w("infer_reclaim", 0) == 0
    jobs = [w.submit(pipe, bytes(48), NORMAL) for _ in range(3)]
    assert 0 not in jobs and w.submit(pipe, bytes(48), NORMAL) == 0
    assert w("infer_state", job) == JobState.DONE


# What else is checked before it is taken


@pytest.mark.parametrize("at, out_at, status", [(0, 0, Status.OK), (16, 32, Status.OK), (4, 0, Status.INVAL), (0, 8, Status.INVAL)])
def test_memory_that_is_not_aligned_is_refused(w, at, out_at, status):
    buffers = [w.keep(w.e.array(u8, 96)) for _ in range(2)]
    assert w("post_at", w.simple(), w.descriptor(48), buffers[0], at, buffers[1], out_at) == status
    assert w.kernel.stats.submitted == (status == Status.OK)


def test_memory_that_a_model_or_a_stage_keeps_its_state_in_is_not_taken_away(w):
    """Unloaded, a model has none any more, and gets new memory when it is loaded again."""
    w.hand_model()
    pipe = w.simple()
    assert w("mem_init_pool", w.memory, 8192, 1024) == Status.OK
    model = w.kernel.models.items[0]
    model.persistent_bytes, model.state = 64, ModelState.LOADED
    assert w("mem_init_pool", w.memory, 8192, 1024) == Status.BUSY
    model.state = ModelState.REGISTERED
    stage = w.kernel.pipelines.items[(pipe & 0xFF) - 1].stages[0]
    stage.state_bytes = 16
    assert w("mem_init_pool", w.memory, 8192, 1024) == Status.BUSY and model.persistent_bytes == 64
    stage.state_bytes = 0
    assert w("mem_init_pool", w.memory, 8192, 1024) == Status.OK and model.persistent_bytes == 0


def test_nobody_waits_for_a_poll_that_another_thread_is_in(w):
    w.submit(w.simple(), bytes(48))
    w.kernel.inside = 1
    assert w("kernel_poll") == (Poll.BUSY, 0)
    assert w("sched_drain", ALL, 5) == Status.BUSY


def test_a_half_done_job_that_ends_since_it_is_late_is_drained(w):
    """The poll that sees the miss has nothing to run besides."""
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (PASS,)), bytes(48), NORMAL, deadline=10, late=1)
    w("kernel_poll")
    w.advance_us(11)
    assert w("sched_quiesce") == Status.OK and w("infer_wait", job, 0) == Status.TIMEDOUT


# Two that stop it at once


@pytest.mark.parametrize("other", [BEGUN, ALL, ABORT])
@pytest.mark.parametrize("what", [BEGUN, ALL, ABORT])
@pytest.mark.only("checked")
def test_of_two_that_drain_at_once_one_holds(w, what, other):
    """The other comes before any line of the first, outside of critical sections."""
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,))
    jobs = [w.submit(pipe, bytes([i]) * 48) for i in range(2)]
    w("kernel_poll")
    player, holders = Player(w), []
    for point in range(10_000):
        left, answers = [point], []

        def strike(place, left=left, answers=answers):
            left[0] -= 1
            if left[0] == -1:
                answers.append(w("sched_drain", other, 0))

        player.restore()
        with player._traced(False, strike):
            first = w("sched_drain", what, 0)
        if not answers:
            break
        assert (first, answers[0]).count(Status.OK) == 1, (point, first, answers)
        holders.append(first == Status.OK)
        assert w.kernel.hold and not any(int(w("infer_state", job)) in HALF_DONE for job in jobs)
        assert w("kernel_poll") == (Poll.IDLE, 0)
        w("sched_release")
        player.drain(Run(None, 0, None))
        player.watcher.check_idle(w)
    assert point > 20 and True in holders and False in holders


@pytest.mark.parametrize("what", [BEGUN, ALL])
@pytest.mark.only("native")
def test_only_one_thread_holds(make, what):
    w = World(make(*ROOTS, **OPTIONS))
    inside, most, had = [0], [0], [0, 0, 0]

    def stop(number):
        while had[number] < 300:
            if w("sched_drain", what, 0) == Status.OK:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                had[number] += 1
                inside[0] -= 1
                w("sched_release")

    threads = [threading.Thread(target=stop, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] and had == [300] * 3 and not w.kernel.hold and not w.kernel.draining
