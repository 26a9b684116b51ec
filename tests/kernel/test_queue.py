"""Many job slots: the order in which jobs begin, whatever is submitted, cancelled and changed in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, OPTIONS, REALTIME, ROOTS, World
from synapticos.kernel.job import JobState
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

pytestmark = pytest.mark.slow  # all together
MANY = {**OPTIONS, "MAX_JOBS": 64}
NEVER = float("inf")


def check_queues(w):
    """Each queue is linked both ways, in order, and has all that are QUEUED and no other."""
    k, seen = w.kernel, []
    for f in range(len(k.queues.items)):
        queue, before, keys = k.queues.items[f], 0, []
        at = queue.first
        while at:
            job = k.jobs[at - 1]
            assert job.state == JobState.QUEUED and job.frame == f and job.before == before
            keys.append((-job.priority, int(job.deadline), int(job.sequence)))
            seen.append(at - 1)
            before, at = at, job.behind
        assert queue.last == before and keys == sorted(keys)
    assert sorted(seen) == [i for i in range(len(k.jobs)) if k.jobs[i].state == JobState.QUEUED]
    for i in range(len(k.jobs)):
        assert i in seen or (k.jobs[i].before, k.jobs[i].behind) == (0, 0)


def test_sixty_four_jobs(make):
    w = World(make(*ROOTS, **MANY))
    pipe = w.simple()
    spans = [(i * 37) % 64 * 100 + 1000 for i in range(64)]
    jobs = [w.submit(pipe, bytes(48), (i * 7) % 3, NOTE_DONE, deadline=spans[i] if i % 4 else 0) for i in range(64)]
    assert 0 not in jobs and w.submit(pipe, bytes(48)) == 0 and w.status == Status.BUSY
    w.kernel.hold = True
    w("kernel_poll")
    check_queues(w)
    w.kernel.hold = False
    w.run()
    key = [(-((i * 7) % 3), spans[i] if i % 4 else NEVER, i) for i in range(64)]
    assert [e[0] for e in w.events()] == [jobs[i] for i in sorted(range(64), key=key.__getitem__)]
    for job in jobs:
        w.result(job)
    assert list(w.kernel.free.words) == [0xFFFFFFFF] * 2


@pytest.mark.parametrize("slots", [5, 32, 33])
def test_every_number_of_slots(make, slots):
    w = World(make(*ROOTS, **{**OPTIONS, "MAX_JOBS": slots}))
    pipe = w.simple()
    for _ in range(2):
        jobs = [w.submit(pipe, bytes(48)) for _ in range(slots)]
        assert 0 not in jobs and w.submit(pipe, bytes(48)) == 0
        w.run()
        for job in jobs:
            w.result(job)


act = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 2), st.sampled_from([0, 50, 100, 100, 5000])),
    st.tuples(st.just("submit"), st.integers(0, 2), st.integers(0, 300)),
    st.tuples(st.just("cancel"), st.integers(0, 40)),
    st.tuples(st.just("deadline"), st.integers(0, 40), st.integers(0, 300)),
    st.tuples(st.just("poll"), st.integers(1, 3)),
)


@settings(max_examples=6)
@given(st.lists(act, max_size=40), st.booleans())
def test_any_order(engines, acts, planned):
    """With queues and with few slots, planned frames or one for all: jobs begin as a list that is sorted each time says."""
    for slots in (64, 4):
        for e in engines(*ROOTS, **{**MANY, "MAX_JOBS": slots}).each:
            w = World(e)
            pipe = w.simple()
            if planned:
                w.frames_for(pipe)
            waiting, want, ids = {}, [], []
            for op, *rest in acts:
                if op == "submit":
                    priority, span = rest
                    id = w.submit(pipe, bytes(48), priority, NOTE_DONE, deadline=span)
                    if id:
                        ids.append(id)
                        waiting[id] = (-priority, w.e.board.now + span if span else NEVER, id)
                elif op == "poll":
                    for _ in range(rest[0]):
                        expected = min(waiting, key=waiting.get) if waiting else 0
                        answer, id = w("kernel_poll")
                        assert (answer, id) == ((Poll.RAN, expected) if expected else (Poll.IDLE, 0))
                        if expected:
                            want.append(expected)
                            del waiting[expected]
                            w("infer_detach", expected)
                    if slots > 4:
                        check_queues(w)
                elif ids:
                    id = ids[rest[0] % len(ids)]
                    if op == "cancel":
                        assert (w("infer_cancel", id) == Status.OK) == (id in waiting)
                        if waiting.pop(id, None):
                            w("infer_detach", id)
                    else:
                        status = w("infer_set_deadline", id, rest[1])
                        assert (status == Status.OK) == (id in waiting)
                        if id in waiting:
                            waiting[id] = (waiting[id][0], w.e.board.now + rest[1] if rest[1] else NEVER, id)
            w.run()
            assert [e[0] for e in w.events()] == want + sorted(waiting, key=waiting.get)


@pytest.mark.parametrize("cancelled", range(5))
@pytest.mark.only("checked")
def test_a_job_is_cancelled_while_another_looks_for_its_place(make, cancelled):
    """Wherever it stands, also the one that looks itself, and at each point at which an interrupt may come."""
    w = World(make(*ROOTS, **{**OPTIONS, "MAX_JOBS": 6}))
    for at in range(14):
        w("kernel_boot", 0)
        assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
        pipe, sections = w.simple(), []
        jobs = [w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=d) for d in (100, 200, 300, 400)]
        w.kernel.hold = True
        w("kernel_poll")
        jobs.append(w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=250))

        def strike(at=at, sections=sections, jobs=jobs, pipe=pipe):
            sections.append(0)
            if len(sections) == at + 1:
                w("infer_cancel", jobs[cancelled])
                w("infer_detach", jobs[cancelled])
                jobs.append(w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=150))  # into the slot

        with w.interrupted(strike):
            w("kernel_poll")
        w("kernel_poll")
        check_queues(w)
        w.kernel.hold = False
        w.run()
        struck = len(jobs) == 6
        order = [jobs[i] for i in (0, 5, 1, 4, 2, 3) if i < len(jobs) and not (struck and i == cancelled)]
        assert [e[0] for e in w.events()] == order


def test_a_queued_job_of_a_class_whose_frame_is_taken_waits_for_it(make):
    """In another class something goes on; a frame of all goes to the most urgent."""
    w = World(make(*ROOTS, **MANY))
    w.hand_model()
    model = w.model()
    planned, free = w.pipeline(model, (0x2000, 0x2000)), w.pipeline(model)
    w.frames_for(planned)
    low = w.submit(planned, bytes(48), NORMAL, preemptible=True)
    w("kernel_poll")
    behind = w.submit(planned, bytes(48), NORMAL)
    high = [w.submit(free, bytes(48), REALTIME), w.submit(planned, bytes(48), REALTIME)]
    order = [id for _, id in w.run()]
    assert order == [high[0], high[1], high[1], high[1], low, low, behind, behind, behind]
    assert w.kernel.stats.preemptions == 1
    assert [f.owner for f in w.kernel.frames] == [0] * 4
