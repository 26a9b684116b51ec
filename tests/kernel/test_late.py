"""Deadlines and late policies: when a miss is counted, who is told, and what becomes of the job."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, ON_HOST, OPTIONS, PASS, REALTIME, ROOTS, World, stub_output
from synapticos.kernel.clock import Clock
from synapticos.kernel.deadline import begin_deadline
from synapticos.kernel.job import JobState, Late
from synapticos.kernel.profile import ProfileResult
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall

FINISH, ABORT, SKIP = Late.FINISH, Late.ABORT, Late.SKIP
TELL = 1
OK, TIMEDOUT, INPROGRESS = Status.OK, Status.TIMEDOUT, Status.INPROGRESS


def us(w, n):
    """Let `n` microseconds pass."""
    w.advance_us(n)


def misses(w):
    return list(w.kernel.stats.misses), [int(p.misses) for p in w.kernel.pipelines.items]


@pytest.fixture
def three(w):
    """A pipeline of three steps."""
    w.hand_model()
    return w.pipeline(w.model(), (PASS, PASS))


@pytest.mark.parametrize("late, steps, status", [(FINISH, 3, OK), (ABORT, 1, TIMEDOUT), (SKIP, 3, OK)])
def test_a_running_job_that_misses(w, three, late, steps, status):
    """It is counted by the first poll after the deadline, not when it ends; with ABORT that poll ends it."""
    job = w.submit(three, b"\3" * 48, REALTIME, NOTE_DONE, deadline=100, late=late)
    w("kernel_poll")
    us(w, 100)
    assert misses(w)[0] == [0, 0, 0]
    us(w, 1)
    w("kernel_poll")
    assert misses(w) == ([0, 0, 1], [1, 0, 0, 0])
    us(w, 1000)
    w.run()
    assert misses(w) == ([0, 0, 1], [1, 0, 0, 0])
    assert w("infer_wait", job, 0) == status
    assert w.events() == [(job, 0, int(status), int(status == OK))]
    assert w("infer_error_at", job) == ((1, 0) if late == ABORT else (0, 0))  # the step that it did not begin
    assert (w.kernel.stats.expired, w.kernel.stats.errors) == ((1, 1) if late == ABORT else (0, 0))


@pytest.mark.parametrize("late, status", [(FINISH, OK), (ABORT, TIMEDOUT), (SKIP, TIMEDOUT)])
def test_a_queued_job_that_misses(w, three, late, status):
    job = w.submit(three, bytes(48), NORMAL, NOTE_DONE, deadline=100, late=late)
    us(w, 101)
    w("kernel_poll")
    assert misses(w) == ([0, 1, 0], [1, 0, 0, 0])
    assert JobState(w("infer_state", job)) == (JobState.RUNNING if late == FINISH else JobState.ERROR)
    w.run()
    assert w("infer_wait", job, 0) == status and misses(w)[0] == [0, 1, 0]
    assert w.events() == [(job, 0, int(status), int(status == OK))]
    assert w("infer_error_at", job) == (0, 0)
    assert w("prof_get_job", job, w.e.new(ProfileResult)) == Status.OK
    assert w("infer_get_result", job, w.descriptor(0)) == status and w.kernel.unfinished == 0


@pytest.mark.parametrize("late", [FINISH, ABORT, SKIP])
def test_a_job_that_ends_on_its_deadline_has_met_it(w, three, late):
    job = w.submit(three, bytes(48), deadline=100, priority=NORMAL, late=late)
    us(w, 100)
    w.run()
    assert w("infer_wait", job, 0) == OK and misses(w)[0] == [0, 0, 0]


@pytest.mark.parametrize("cost, begins", [(0, True), (50, True), (51, False), (0xFFFFFFFF, False)])
def test_a_job_that_could_not_make_it_is_not_begun(w, three, cost, begins):
    """By what its pipeline says that a job takes; its place is free at once, and the others run."""
    w.kernel.pipelines.items[0].cost_us = cost
    job = w.submit(three, bytes(48), REALTIME, deadline=100, late=SKIP)
    other = w.submit(three, bytes(48), NORMAL)
    us(w, 50)
    w("kernel_poll")
    assert JobState(w("infer_state", job)) == (JobState.RUNNING if begins else JobState.ERROR)
    assert misses(w)[0] == [0, 0, int(not begins)] and w.kernel.stats.preemptions == 0
    w.run()
    assert w("infer_wait", job, 0) == (OK if begins else TIMEDOUT) and w("infer_wait", other, 0) == OK


def test_a_miss_is_told_once(w, three):
    job = w.submit(three, bytes(48), NORMAL, NOTE_DONE, user=5, deadline=100, flags=TELL)
    aborted = w.submit(three, bytes(48), NORMAL, NOTE_DONE, user=6, deadline=100, flags=TELL, late=ABORT)
    w("kernel_poll")
    us(w, 101)
    w.run()
    assert w.events() == [(job, 5, int(INPROGRESS), 0), (aborted, 6, int(TIMEDOUT), 0), (job, 5, 0, 1)]


def test_a_suspended_job_is_ended_by_the_poll_after_its_deadline(w):
    """It waits for a more urgent one, and its frame is free at once."""
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, PASS))
    w.frames_for(pipe)
    low = w.submit(pipe, bytes(48), NORMAL, deadline=100, late=ABORT, preemptible=True)
    w("kernel_poll")
    high = w.submit(pipe, b"\1" * 48, REALTIME)
    w("kernel_poll")
    assert JobState(w("infer_state", low)) == JobState.SUSPENDED
    us(w, 101)
    w("kernel_poll")
    assert w("infer_wait", low, 0) == TIMEDOUT and w.kernel.frames[1].owner == 0
    w.run()
    assert w.result(high) == stub_output(b"\1" * 48)


@pytest.mark.only("checked")
def test_a_job_that_is_submitted_after_poll_has_read_the_counter_is_new(w, three):
    """Its stamp is ahead of the kernel's clock, not a whole range of the counter behind."""
    us(w, 1_000_000)
    w("kernel_poll")
    with w.counter_read(lambda: w.submit(three, bytes(48), NORMAL, deadline=500_000, late=ABORT)):
        w("kernel_poll")
    assert (w.kernel.jobs[0].release, w.kernel.jobs[0].deadline) == (1_000_001, 1_500_001)
    w.run()
    assert misses(w)[0] == [0, 0, 0] and w.kernel.stats.done == 1


@pytest.mark.only("checked")
def test_a_poll_beside_others_leaves_the_clock_right(w, three):
    """Who sleeps, or reclaims, has read the counter before a poll of another thread does."""
    us(w, 1_000_000)
    job = w.submit(three, bytes(48))
    w.run()
    with w.counter_read(lambda: w("kernel_poll")):
        w("kernel_rest")
    with w.counter_read(lambda: w("kernel_poll")):
        assert w("infer_reclaim", 1000) == 0
    assert w.kernel.clock.ticks == 1_000_002 and w("infer_wait", job, 0) == OK


def test_what_was_aborted_has_not_expired(w):
    """Whatever its deadline says of a job that somebody aborts, it is none of the errors."""
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (ON_HOST,)), bytes(48), NORMAL, deadline=100, late=ABORT)
    w("kernel_poll")
    w("stage_take", job, w.e.new(StageCall))
    us(w, 101)
    w("kernel_poll")
    assert w("infer_abort", job) == OK and w("stage_done", job, OK, w.descriptor(48)) == OK
    w.run()
    stats = w.kernel.stats
    assert (stats.expired, stats.errors, stats.cancelled) == (0, 0, 1)


def test_a_job_does_not_end_with_going_on(w):
    """A stage may answer anything; of an ended job nobody is told that it goes on."""
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (ON_HOST,)), bytes(48), NORMAL, NOTE_DONE)
    w("kernel_poll")
    w("stage_take", job, w.e.new(StageCall))
    assert w("stage_done", job, INPROGRESS, w.descriptor(48)) == OK
    w.run()
    assert w("infer_wait", job, 0) == Status.IO and w.events() == [(job, 0, int(Status.IO), 0)]


@pytest.mark.only("checked")
def test_a_deadline_is_worked_out_for_the_job_that_was_posted(w, three):
    """Not for the next one in its slot, which somebody is about to fill."""
    job = w.submit(three, bytes(48), NORMAL, deadline=100)
    us(w, 1000)
    w.kernel.jobs[0].id = 77  # as if another had been claimed since
    before = bytes(w.kernel.jobs[0])
    w.e(begin_deadline, w.kernel, 0, job)
    assert bytes(w.kernel.jobs[0]) == before


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("late", [FINISH, ABORT])
def test_a_stage_of_the_host_is_not_interrupted(w, taken, late):
    w.hand_model()
    pipe = w.pipeline(w.model(), (ON_HOST,))
    job = w.submit(pipe, bytes(48), NORMAL, deadline=100, late=late)
    w("kernel_poll")
    if taken:
        w("stage_take", job, w.e.new(StageCall))
    us(w, 101)
    w("kernel_poll")
    assert misses(w)[0] == [0, 1, 0]
    over = late == ABORT and not taken
    assert JobState(w("infer_state", job)) == (JobState.ERROR if over else JobState.WAITING)
    if not over:
        if not taken:
            w("stage_take", job, w.e.new(StageCall))
        assert w("stage_done", job, OK, w.descriptor(48)) == OK
        w.run()
    assert w("infer_wait", job, 0) == (TIMEDOUT if late == ABORT else OK)
    assert w.kernel.stats.expired == (late == ABORT)


def test_a_deadline_counts_from_the_release(w, three):
    """Of jobs released in the past or to be released, not from their submission."""
    us(w, 1000)
    past = w.submit(three, bytes(48), NORMAL, NOTE_DONE, deadline=300, release=900)  # due at 1200
    now = w.submit(three, bytes(48), NORMAL, NOTE_DONE, deadline=250)  # 1250
    long_ago = w.submit(three, bytes(48), NORMAL, NOTE_DONE, deadline=100, release=1, late=ABORT)
    none = w.submit(three, bytes(48), NORMAL, NOTE_DONE, release=1)
    w.run()
    assert [e[0] for e in w.events()] == [long_ago, past, now, none]
    assert misses(w)[0] == [0, 1, 0]


def test_a_release_beyond_all_time_is_no_trap(w, three):
    job = w.submit(three, bytes(48), NORMAL, deadline=0xFFFFFFFF, release=(1 << 64) - 1)
    w.run()
    assert w("infer_wait", job, 0) == OK and misses(w)[0] == [0, 0, 0]


def test_unknown_policies_and_flags_are_refused(w, three):
    assert w.submit(three, bytes(48), NORMAL, late=3) == 0 and w.status == Status.INVAL
    assert w.submit(three, bytes(48), NORMAL, flags=4) == 0 and w.status == Status.INVAL


def test_a_pipelines_own_policy_serves_jobs_without_parameters(w, three):
    p = w.kernel.pipelines.items[0]
    p.late, p.deadline_us, p.sink, p.flags = ABORT, 100, NOTE_DONE, TELL
    job = w.submit(three, bytes(48))
    w("kernel_poll")
    us(w, 101)
    w.run()
    assert w.events() == [(job, 0, int(TIMEDOUT), 0)]


def test_a_deadline_is_withdrawn_or_given(w, three):
    first, second = (w.submit(three, bytes(48), NORMAL, NOTE_DONE, deadline=d) for d in (100, 0))
    assert w("infer_set_deadline", first, 0) == w("infer_set_deadline", second, 50) == OK
    w("kernel_poll")
    assert JobState(w("infer_state", second)) == JobState.RUNNING
    us(w, 60)
    w.run()
    assert [e[0] for e in w.events()] == [second, first] and misses(w)[0] == [0, 1, 0]
    assert w("infer_set_deadline", first, 5) == Status.ALREADY
    w.result(first)
    assert w("infer_set_deadline", first, 5) == w("infer_set_deadline", 0, 5) == w("infer_set_deadline", 99, 5) == Status.NOENT


def test_a_miss_that_was_counted_stays_the_only_one(w, three):
    job = w.submit(three, bytes(48), NORMAL, deadline=100)
    w("kernel_poll")
    us(w, 101)
    w("kernel_poll")
    w("infer_set_deadline", job, 200)
    us(w, 1000)
    w.run()
    assert misses(w) == ([0, 1, 0], [1, 0, 0, 0])


def test_a_build_without_deadlines_or_policies_refuses_them(make):
    w = World(make(*ROOTS, **OPTIONS, DEADLINES=0, LATE_POLICIES=0))
    pipe = w.simple()
    assert w.submit(pipe, bytes(48), NORMAL, deadline=1) == 0 and w.status == Status.INVAL
    assert w.submit(pipe, bytes(48), NORMAL, late=ABORT) == 0 and w.status == Status.INVAL
    assert w.submit(pipe, bytes(48), NORMAL, flags=TELL) == 0 and w.status == Status.INVAL
    job = w.submit(pipe, bytes(48), NORMAL)
    assert w("infer_set_deadline", job, 1) == Status.NOTSUP
    w.run()
    assert w("infer_wait", job, 0) == OK


def test_without_policies_misses_are_still_counted(make):
    w = World(make(*ROOTS, **OPTIONS, LATE_POLICIES=0))
    pipe = w.simple()
    job = w.submit(pipe, bytes(48), NORMAL, deadline=100)
    us(w, 101)
    w.run()
    assert w("infer_wait", job, 0) == OK and misses(w)[0] == [0, 1, 0]


@pytest.mark.parametrize("call", ["infer_cancel", "infer_abort", "infer_set_deadline"])
@pytest.mark.parametrize("late", [ABORT, SKIP])
@pytest.mark.only("checked")
def test_whatever_comes_between_a_miss_and_its_end_the_job_ends_once(w, call, late):
    """At each point where an interrupt can come."""
    for at in range(8):
        w("kernel_boot", 0)
        assert w("kernel_init", w.memory, 8192, 1024) == OK
        pipe, sections, answers = w.simple(), [], []
        job = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=1, late=late)
        us(w, 10)

        def act(at=at, sections=sections, answers=answers, job=job):
            sections.append(0)
            if len(sections) == at + 1:
                answers.append(w(call, job, *([10**6] if call == "infer_set_deadline" else [])))

        with w.interrupted(act):
            assert w("kernel_poll")[0] in (Poll.RAN, Poll.IDLE)
        w.run()
        stats = w.kernel.stats
        assert stats.done + stats.errors + stats.cancelled == 1 and w.kernel.unfinished == 0, (at, answers)
        assert len(w.events()) == 1 - stats.cancelled
        assert int(w.kernel.free.words[0]) == 0b1110  # nobody has read it


rates = st.one_of(st.sampled_from([1, 32768, 10**6, 25 * 10**6, 150 * 10**6, 10**9, 0xFFFFFFFF]), st.integers(1, 0xFFFFFFFF))


@settings(max_examples=100)
@given(rates, st.one_of(st.integers(0, 1 << 33), st.integers(0, (1 << 51) - 1)))
def test_spans_in_ticks(engines, rate, span):
    e = engines(Clock.start, Clock.of_us)
    clock = e.new(Clock)
    e(Clock.start, clock, 0, rate)
    assert e(Clock.of_us, clock, span) == -(-span * rate // 10**6)
    assert e(Clock.of_us, clock, span | 1 << 51) == (1 << 64) - 1
