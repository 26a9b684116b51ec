"""The scheduler and one-call inference: spec 32, lines 59 to 63; the defects of 33.4; host stages; pre-emption."""

import pytest
from kernels import (
    BEST_EFFORT, EPHEMERAL, FAIL, INT8, NORMAL, NOTE_DONE, ON_HOST, PASS, REALTIME, RESUBMIT, stub_output,
)  # fmt: skip
from synapticos.kernel.job import HostWork, JobParams, JobState
from synapticos.kernel.region import REGION_SHARED, Regions
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall, Tensor
from synapticos.lang import u8, u32


def state(w, job):
    return JobState(w("infer_state", job))


def waits(w, jobs):
    return [w("infer_wait", j, 0) for j in jobs]


# Spec 32


def run_sync(w, model, data, out=None, priority=NORMAL):
    x = w.tensor([len(data)], INT8, EPHEMERAL, data)
    t = w.e.new(Tensor) if out is None else out
    return w("infer_run_sync", model, x, t, priority), t


def test_one_call(w):
    w.hand_model()
    status, t = run_sync(w, w.model(), b"\x11" * 48)
    assert status == Status.OK and t.size == 10 and w.data(t) == stub_output(b"\x11" * 48)
    assert w.data(t)[6] == 127


def test_jobs_end_in_the_order_of_their_classes(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes([0x20 + p] * 48), p, NOTE_DONE, user=p) for p in (BEST_EFFORT, NORMAL, REALTIME)]
    w.run()
    assert [e[1] for e in w.events()] == [REALTIME, NORMAL, BEST_EFFORT]
    for i, job in enumerate(jobs):
        assert w.result(job) == stub_output(bytes([0x20 + i] * 48))


def test_unknown_jobs(w):
    for job in (0xDEAD, 0):
        assert w("infer_wait", job, 100) == w("infer_cancel", job) == w("infer_get_result", job, w.descriptor(0)) == Status.NOENT
        assert w("infer_abort", job) == w("infer_detach", job) == Status.NOENT
    assert w("infer_get_result", 0xDEAD, None) == Status.INVAL


def test_what_cannot_be_submitted_is_refused(w):
    w.hand_model()
    pipe = w("pipeline_create", None)
    w("pipeline_add_model", pipe, w.model())
    x = w.tensor([48])
    assert w("infer_submit", pipe, x, None) == 0  # not built
    w("pipeline_build", pipe)
    assert w("infer_submit", pipe, None, None) == 0
    assert w("infer_submit", pipe, w.descriptor(48), None) == 0  # no data
    assert w("infer_submit", pipe, w.descriptor(48, region=1, at=8192 - 40), None) == 0  # outside the arena
    assert w("infer_submit", pipe, w.descriptor(48, region=200), None) == 0
    assert w("infer_submit", pipe, x, None) != 0


def test_the_cap_on_unfinished_jobs(w):
    pipe = w.simple()
    assert w("infer_set_max_concurrent", 0) == w("infer_set_max_concurrent", 5) == Status.INVAL
    assert w("infer_set_max_concurrent", 1) == Status.OK
    first = w.submit(pipe, bytes(48))
    assert w.submit(pipe, bytes(48)) == 0 and w.status == Status.BUSY
    w.run()
    w.result(first)
    assert w("infer_set_max_concurrent", 4) == Status.OK
    assert w.submit(pipe, bytes(48)) != 0


# Life of a job


def test_finished_jobs_keep_their_slot_until_they_are_read(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48)) for _ in range(4)]
    w.run()
    assert w.submit(pipe, bytes(48)) == 0
    w.result(jobs[2])
    assert w.submit(pipe, bytes(48)) != 0


def test_a_queued_job_can_be_cancelled(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE) for _ in range(2)]
    assert w("infer_cancel", jobs[1]) == Status.OK
    assert w("infer_cancel", jobs[1]) == Status.ALREADY
    assert w("infer_wait", jobs[1], 10) == Status.CANCELED
    assert w("infer_get_result", jobs[1], w.descriptor(0)) == Status.CANCELED
    assert w("infer_cancel", jobs[1]) == Status.NOENT
    w.run()
    assert [e[0] for e in w.events()] == [jobs[0]]  # a cancelled job's callback is not called
    assert w("infer_cancel", jobs[0]) == Status.ALREADY


def test_a_running_job_cannot_be_cancelled_but_aborted(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, PASS))
    job, other = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE), w.submit(pipe, b"\1" * 48)
    w("kernel_poll")
    assert state(w, job) == JobState.RUNNING
    assert w("infer_cancel", job) == w("infer_get_result", job, w.descriptor(0)) == Status.BUSY
    assert w("infer_abort", job) == Status.OK
    w.run()
    assert waits(w, [job, other]) == [Status.CANCELED, Status.OK]
    assert w.events() == [] and w.kernel.stats.cancelled == 1


@pytest.mark.parametrize("detached, want", [(False, Status.ALREADY), (True, Status.NOENT)])
@pytest.mark.only("checked")
def test_an_abort_that_comes_too_late_says_so(w, detached, want):
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (PASS,)), bytes(48))
    w("kernel_poll")
    if detached:
        w("infer_detach", job)
    sections = []

    def ends_between():
        sections.append(0)
        if len(sections) == 2:  # after the look that found it running
            w.run()

    with w.interrupted(ends_between):
        assert w("infer_abort", job) == want


@pytest.mark.only("checked")
def test_a_job_aborted_as_its_stage_fails_was_cancelled_and_no_stage_is_to_blame(w):
    """Wherever the abort comes; if it comes too late, the stage is."""
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, FAIL))
    told = set()
    for at in range(10):
        job, sections, answers = w.submit(pipe, bytes(48)), [], []
        w("kernel_poll")

        def abort(job=job, at=at, sections=sections, answers=answers):
            sections.append(0)
            if len(sections) == at + 1:
                answers.append(Status(int(w("infer_abort", job))))

        with w.interrupted(abort):
            w("kernel_poll")
        wanted = (Status.CANCELED, (0, 0)) if Status.OK in answers else (Status.IO, (1, 0))
        assert (w("infer_wait", job, 0), w("infer_error_at", job)) == wanted
        w("infer_detach", job)
        told.update(answers)
    assert told == {Status.OK, Status.ALREADY}


@pytest.mark.only("checked")
def test_a_job_aborted_in_its_last_step_is_counted_once(w):
    """As cancelled, with no profile, wherever between the step and the end the abort comes."""
    for at in range(4):
        w("kernel_boot", 0)
        assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
        pipe, sections, aborted = w.simple(), [], []
        job = w.submit(pipe, bytes(48), NORMAL, deadline=1)
        w.e.board.advance(10)

        def abort():
            if w.kernel.jobs[0].stage == 1:
                sections.append(0)
                if len(sections) == at + 1:
                    aborted.append(w("infer_abort", job) == Status.OK)

        with w.interrupted(abort):
            w.run()
        stats = w.kernel.stats
        assert stats.cancelled == sum(aborted) and stats.done == 1 - sum(aborted)
        assert stats.misses[NORMAL] == 1  # which the poll had seen before
        assert w("prof_get_stage", 0)[0] == (Status.NOENT if sum(aborted) else Status.OK)


@pytest.mark.only("checked")
def test_a_job_that_is_freed_while_it_is_read_is_no_longer_there(w):
    pipe, reads = w.simple(), []
    job = w.submit(pipe, bytes(48))
    w.run()

    def freed():
        reads.append(0)
        if len(reads) == 2:  # after the look that found it
            w("infer_detach", job)

    with w.interrupted(freed):
        assert w("infer_read", job, 0, w.e.array(u8, 16), 16)[0] == Status.NOENT


@pytest.mark.only("checked")
def test_a_wait_while_another_thread_polls_leaves_the_kernels_clock_alone(w):
    job = w.submit(w.simple(), bytes(48))
    held, sections = [], []

    def the_other_thread():
        sections.append(0)
        if len(sections) == 3:  # the wait has begun, and has not polled
            w.kernel.inside = 1
            w.e.board.advance(5000)
            held.append(int(w.kernel.clock.ticks))

    with w.interrupted(the_other_thread):
        assert w("infer_wait", job, 1) == Status.AGAIN
    assert held == [int(w.kernel.clock.ticks)]
    w.kernel.inside = 0


@pytest.mark.only("checked")
def test_poll_is_left_inside_a_critical_section(w):
    pipe, inside = w.simple(), []
    for _ in range(2):  # with a step, and with nothing to do
        with w.interrupted(lambda: inside.append(int(w.kernel.inside))):
            w("kernel_poll")
        assert inside[-2:] == [1, 0]
        w.submit(pipe, bytes(48))


def test_wait_may_be_repeated_and_times_out(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,))
    job = w.submit(pipe, bytes(48))
    assert w("infer_wait", job, 0) == Status.AGAIN  # one step of two
    assert w("infer_wait", job, 10) == Status.OK
    assert w("infer_wait", job, 10) == Status.OK


def test_a_result_can_be_read_piece_by_piece_and_goes_where_the_caller_wants(w):
    pipe = w.simple()
    out = w.keep(w.e.array(u8, 16))
    job = w.submit(pipe, b"\5" * 48, out=out)
    small = w.submit(pipe, b"\5" * 48, out=w.keep(w.e.array(u8, 9)))
    w.run()
    assert bytes(out)[:10] == stub_output(b"\5" * 48)
    t, data = w.e.new(Tensor), w.e.array(u8, 16)
    assert w("infer_output", job, 1, t) == Status.NOENT
    assert w("infer_read", job, 0, data, 9) == (Status.MSGSIZE, 10)
    assert w("infer_read", job, 0, data, 16) == (Status.OK, 10) and bytes(data)[:10] == bytes(out)[:10]
    assert w("infer_wait", small, 0) == Status.MSGSIZE


def test_a_result_that_does_not_fit_is_the_fault_of_the_stage_that_left_it(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,), (PASS,))
    job = w.submit(pipe, b"\5" * 48, out=w.keep(w.e.array(u8, 9)))
    w.run()
    assert w("infer_wait", job, 0) == Status.MSGSIZE and w("infer_error_at", job) == (2, 0)


def test_a_job_that_nobody_will_read_frees_its_slot(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48)) for _ in range(4)]
    assert w("infer_detach", jobs[0]) == Status.OK
    assert w("infer_cancel", jobs[1]) == w("infer_detach", jobs[1]) == Status.OK
    w.run()
    assert w("infer_detach", jobs[2]) == Status.OK
    assert [state(w, j) for j in jobs] == [JobState.FREE] * 3 + [JobState.DONE]


def test_a_reset_takes_nothing_from_jobs(w):
    """Defect 4: tensors of queued, running and unread jobs stay; a read one's go with the next reset."""
    w.hand_model()
    model = w.model()
    pipe = w.pipeline(model, (PASS,))
    x = w.tensor([48], INT8, EPHEMERAL, b"\7" * 48)
    job = w("infer_submit", pipe, x, None)
    w("mem_reset_ephemeral")
    w.tensor([300], INT8, EPHEMERAL, b"\xff" * 300)
    w("kernel_poll")
    w("mem_reset_ephemeral")
    w.tensor([300], INT8, EPHEMERAL, b"\xff" * 300)
    w.run()
    w("mem_reset_ephemeral")
    w.tensor([300], INT8, EPHEMERAL, b"\xff" * 300)
    assert w.result(job) == stub_output(b"\7" * 48)
    w("mem_reset_ephemeral")
    assert w.stats().arena_used == 0


# Order


def test_first_come_first_served_inside_a_class(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE) for _ in range(4)]
    w.run()
    assert [e[0] for e in w.events()] == jobs


def test_the_sequence_number_may_wrap(w):
    pipe = w.simple()
    w.kernel.next_sequence = 0xFFFFFFFE
    w.kernel.next_id = 0xFFFFFFFE
    jobs = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE) for _ in range(4)]
    assert jobs == [0xFFFFFFFE, 0xFFFFFFFF, 1, 2]  # ids skip 0
    w.run()
    assert [e[0] for e in w.events()] == jobs


def test_the_nearest_deadline_goes_first_and_none_last(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=d) for d in (0, 5000, 900, 0)]
    w.run()
    assert [e[0] for e in w.events()] == [jobs[2], jobs[1], jobs[0], jobs[3]]


def test_a_missed_deadline_is_counted_once_in_its_class(w):
    pipe = w.simple()
    late, timely = w.submit(pipe, bytes(48), REALTIME, deadline=50), w.submit(pipe, bytes(48), REALTIME, deadline=10**9)
    w.e.board.advance(int(w.kernel.clock.rate) // 1000)  # 1 ms
    w.run()
    assert waits(w, [late, timely]) == [Status.OK] * 2
    assert list(w.kernel.stats.misses) == [0, 0, 1]


# Defects of 33.4


def test_defect_33_a_callback_may_read_its_result_and_resubmit_into_the_slot(w):
    """Even in a one-slot table: nobody who waits for the new job is woken by the old one."""
    pipe = w.simple()
    w.write(0, bytes(48))
    w("infer_set_max_concurrent", 1)
    first = w.submit(pipe, bytes(48), NORMAL, RESUBMIT, user=3)
    assert w("infer_wait", first, 10) == Status.NOENT  # its callback has read it
    second = first + 1
    assert state(w, second) == JobState.QUEUED
    assert w("infer_wait", second, 0) == Status.NOENT  # ran, and was read by its callback
    w.run()
    log = w.kernel.log
    assert [log.records[i].text for i in range(log.written) if log.records[i].level == 1] == [first, first + 1, first + 2, first + 3]
    assert w.kernel.stats.done == 0 or w.kernel.stats.done == 4


def test_defect_34_a_waiter_is_told_of_its_own_job_only(w):
    pipe = w.simple()
    first = w.submit(pipe, bytes(48))
    w.run()
    w.result(first)
    second = w.submit(pipe, bytes(48))
    assert w("infer_wait", first, 0) == Status.NOENT
    assert w("infer_wait", second, 10) == Status.OK


def test_defect_35_a_run_sync_that_times_out_leaves_no_trace(w):
    """A stage of the host never answers: the slot and the pipeline are free once it does."""
    w.hand_model()
    pipe = w.pipeline(w.model("slow"), (ON_HOST,))
    slow = w.submit(pipe, bytes(48), REALTIME)
    assert w("kernel_poll")[0] == Poll.HOST
    status, _ = run_sync(w, w.model("quick"), bytes(48))
    assert status == Status.AGAIN
    call = w.e.new(StageCall)
    assert w("stage_take", slow, call)[0] == Status.OK
    assert w("stage_done", slow, Status.IO, call.y) == Status.OK
    w.run()
    assert w("infer_wait", slow, 0) == Status.IO
    assert [j.state for j in w.kernel.jobs] == [JobState.ERROR] + [JobState.FREE] * 3
    assert [int(p.state) for p in w.kernel.pipelines.items] == [2, 0, 0, 0]


@pytest.mark.parametrize("inside", [1, 2])
def test_defect_36_nobody_waits_inside_a_stage_or_callback(w, inside):
    pipe = w.simple()
    job = w.submit(pipe, bytes(48))
    w("kernel_poll") if inside == 0 else None
    w.kernel.inside = inside
    assert w("infer_wait", job, 100) == Status.BUSY
    assert run_sync(w, 1, bytes(48))[0] == Status.BUSY
    assert w("kernel_poll") == (Poll.BUSY, 0)
    assert w("kernel_shutdown") == Status.BUSY
    w.kernel.inside = 0
    w.run()
    w.kernel.inside = inside
    assert w("infer_wait", job, 100) == Status.OK  # no need to wait


def test_defect_37_a_buffer_that_is_too_small_stays_the_callers(w):
    w.hand_model()
    model = w.model()
    buffer = w.keep(w.e.array(u8, 16))
    w.e(Regions.set, w.kernel.regions, int(REGION_SHARED), buffer, 16)
    out = w.descriptor(9, region=int(REGION_SHARED), at=4)
    assert run_sync(w, model, b"\1" * 48, out)[0] == Status.MSGSIZE
    assert (out.region, out.offset, out.size) == (int(REGION_SHARED), 4, 9) and bytes(buffer) == bytes(16)
    out.size = 10
    assert run_sync(w, model, b"\1" * 48, out)[0] == Status.OK
    assert bytes(buffer)[4:14] == stub_output(b"\1" * 48)
    assert [j.state for j in w.kernel.jobs] == [JobState.FREE] * 4


def test_defect_39_the_descriptor_is_copied(w):
    pipe = w.simple()
    x = w.tensor([48], INT8, EPHEMERAL, b"\2" * 48)
    mine = w.e.new(Tensor, offset=x.offset, size=48, ndim=1, shape=[48], region=x.region)
    job = w("infer_submit", pipe, mine, None)
    mine.size, mine.offset = 4, 0
    w.run()
    assert w.result(job) == stub_output(b"\2" * 48)


def test_defect_42_there_are_three_classes(w):
    pipe = w.simple()
    assert w.submit(pipe, bytes(48), 3) == 0 and w.status == Status.INVAL
    assert w.submit(pipe, bytes(48), NORMAL, callback=3) == 0 and w.status == Status.INVAL
    assert run_sync(w, 1, bytes(48), priority=7)[0] == Status.INVAL


def test_run_sync_refuses_in_order(w):
    x, t = w.tensor([48]), w.e.new(Tensor)
    assert w("infer_run_sync", 1, None, t, 1) == w("infer_run_sync", 1, x, None, 1) == Status.INVAL
    assert w("infer_run_sync", 0, x, t, 1) == Status.INVAL
    assert w("infer_run_sync", 99, x, t, 1) == Status.NOENT
    w.hand_model()
    model = w.model()
    pipe = w.pipeline(model)
    jobs = [w.submit(pipe, bytes(48)) for _ in range(4)]
    assert w("infer_run_sync", model, x, t, 1) == Status.BUSY
    w.run()
    for job in jobs:
        w.result(job)
    for _ in range(3):
        w("pipeline_create", None)
    assert w("infer_run_sync", model, x, t, 1) == Status.NOMEM
    assert w.kernel.pipelines.items[0].jobs == 0


def test_run_sync_frees_what_it_took_when_the_job_fails(w):
    w.hand_model()
    model = w.model()
    assert run_sync(w, model, bytes(40))[0] == Status.MSGSIZE
    assert [j.state for j in w.kernel.jobs] == [JobState.FREE] * 4
    assert all(int(p.state) == 0 for p in w.kernel.pipelines.items)


def test_defect_43_quiesce_does_not_wait_for_ever(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (ON_HOST,))
    w.submit(pipe, bytes(48))
    assert w("kernel_poll")[0] == Poll.HOST
    assert w("sched_quiesce") == Status.BUSY and not w.kernel.hold


def test_quiesce_drains_what_runs_and_holds_what_is_queued(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS, PASS))
    jobs = [w.submit(pipe, bytes(48)) for _ in range(2)]
    w("kernel_poll")
    assert w("sched_quiesce") == Status.OK
    assert [state(w, j) for j in jobs] == [JobState.DONE, JobState.QUEUED]
    assert w("kernel_poll") == (Poll.IDLE, 0)
    later = w.submit(pipe, bytes(48))
    w("sched_release")
    w.run()
    assert waits(w, [*jobs, later]) == [Status.OK] * 3


# Stages of the host


def test_a_stage_of_the_host(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (ON_HOST,), (PASS,))
    job = w.submit(pipe, b"\3" * 48)
    assert w("kernel_poll") == (Poll.HOST, job) == w("kernel_poll")
    assert state(w, job) == JobState.WAITING
    call = w.e.new(StageCall)
    assert w("stage_done", job, Status.OK, call.y) == Status.INVAL  # not taken
    assert w("stage_take", job, call) == (Status.OK, 7)
    assert w("stage_take", job, call)[0] == Status.INVAL
    assert w("kernel_poll") == (Poll.IDLE, 0)  # somebody is at it
    assert w("infer_cancel", job) == Status.BUSY
    assert (call.inputs, call.x[0].size, call.y.size) == (1, 48, 192)
    w.write(call.y.offset, b"\4" * 48)
    y = w.descriptor(48)
    assert w("stage_done", job, Status.OK, y) == Status.OK
    assert w("stage_done", job, Status.OK, y) == Status.INVAL
    w.run()
    assert w.result(job) == stub_output(b"\4" * 48)
    assert w("stage_take", job, call)[0] == w("stage_done", job, Status.OK, y) == Status.NOENT


def test_the_last_stage_may_be_the_hosts(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (), (ON_HOST,))
    out = w.keep(w.e.array(u8, 16))
    job = w.submit(pipe, bytes(48), out=out)
    w.run()
    call = w.e.new(StageCall)
    assert w("stage_take", job, call) == (Status.OK, 7)
    w.write(call.y.offset, b"from the host")
    w("stage_done", job, Status.OK, w.descriptor(13))
    w.run()
    assert w("infer_wait", job, 0) == Status.OK and bytes(out)[:13] == b"from the host"


@pytest.mark.parametrize("size, status, want", [(193, Status.OK, Status.FBIG), (48, Status.IO, Status.IO)])
def test_what_the_host_posts_is_checked(w, size, status, want):
    w.hand_model()
    pipe = w.pipeline(w.model(), (ON_HOST,))
    job = w.submit(pipe, bytes(48))
    w("kernel_poll")
    w("stage_take", job, w.e.new(StageCall))
    w("stage_done", job, status, w.descriptor(size))
    w.run()
    assert w("infer_wait", job, 0) == want


def test_an_aborted_host_stage_ends_when_the_host_is_done(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (ON_HOST,))
    taken, wanted = w.submit(pipe, bytes(48)), w.submit(pipe, bytes(48))
    w("kernel_poll")
    w("stage_take", taken, w.e.new(StageCall))
    assert w("infer_abort", taken) == Status.OK
    w.run()
    assert state(w, taken) == JobState.WAITING  # the host writes into its frame
    w("stage_done", taken, Status.OK, w.descriptor(48))
    w("kernel_poll")
    assert w("infer_wait", taken, 0) == Status.CANCELED
    assert w("kernel_poll")[0] == Poll.HOST
    assert w("infer_abort", wanted) == Status.OK  # nobody has taken it
    w.run()
    assert w("infer_wait", wanted, 0) == Status.CANCELED


@pytest.mark.only("checked")
def test_a_job_aborted_as_it_reaches_a_stage_of_the_host_never_asks_for_it(w):
    w.hand_model()
    job = w.submit(w.pipeline(w.model(), (ON_HOST,)), bytes(48))
    answers = []

    def abort():
        if not answers and w.kernel.jobs[0].host == HostWork.WANTED:
            answers.append(w("infer_abort", job))

    with w.interrupted(abort):
        assert w("kernel_poll") == (Poll.RAN, job)
    assert answers == [Status.OK]
    assert w("kernel_poll") == (Poll.RAN, job) and w("kernel_poll") == (Poll.IDLE, 0)
    assert w("infer_wait", job, 0) == Status.CANCELED


@pytest.mark.parametrize("call", ["infer_cancel", "infer_abort"])
@pytest.mark.only("checked")
def test_a_job_whose_host_stage_is_done_ends_once_whenever_it_is_cancelled(w, call):
    w.hand_model()
    pipe = w.pipeline(w.model(), (), (ON_HOST,))
    job = w.submit(pipe, bytes(48))
    w.run()
    w("stage_take", job, w.e.new(StageCall))
    w("stage_done", job, Status.OK, w.descriptor(13))
    with w.interrupted(lambda: w(call, job)):
        w.run()
    assert w("infer_wait", job, 0) == (Status.OK if call == "infer_cancel" else Status.CANCELED)
    assert w.kernel.unfinished == 0


def test_an_error_is_told_to_the_callback_without_an_output(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (FAIL,))
    job = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, user=9)
    w.run()
    assert w.events() == [(job, 9, -5, 0)]


def test_an_idle_kernel_says_so(w):
    assert w("kernel_poll") == (Poll.IDLE, 0)
    before = bytes(w.kernel)
    assert w("kernel_poll") == (Poll.IDLE, 0)
    changed = [i for i, (a, b) in enumerate(zip(before, bytes(w.kernel), strict=True)) if a != b]
    assert all(i < 40 for i in changed)  # at most the clock


def test_parameters_are_copied_and_default_to_normal(w):
    pipe = w.simple()
    job = w.submit(pipe, bytes(48))
    assert w.kernel.jobs[0].priority == NORMAL and job
    params = w.e.new(JobParams, priority=REALTIME, user=4)
    x = w.tensor([48])
    other = w("infer_submit", pipe, x, params)
    params.priority = 0
    w("kernel_poll")
    assert state(w, other) == JobState.DONE
    assert w.e.array(u32, 1)[0] == 0
