"""Many jobs of all kinds: every accepted one ends once, in the bytes of running it alone, and nothing leaks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import BEST_EFFORT, FAIL, NORMAL, OPTIONS, PASS, PERSISTENT, REALTIME, ROOTS, World, stub_output
from synapticos.kernel import hal
from synapticos.kernel.job import JobParams, JobState, Late
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.memory import mem_reset_ephemeral
from synapticos.kernel.models import model_load, model_unload
from synapticos.kernel.sched import Poll, infer_abort, infer_cancel, infer_get_result, infer_read, infer_submit, kernel_poll, outcome
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.lang import Ptr, copy, fn, ignore, local, u8, u32, wrap

pytestmark = pytest.mark.slow  # all together
BUILD = {**OPTIONS, "MAX_JOBS": 16, "MAX_PIPELINES": 8, "LOG_RECORDS": 8}
ENDED = (JobState.DONE, JobState.ERROR, JobState.CANCELLED)
KINDS = ((), (PASS,), (PASS, PASS, PASS), (PASS, FAIL))
FINE = {Status.OK, Status.IO, Status.CANCELED, Status.TIMEDOUT}


def a_world(engine):
    """Pipelines in planned frames of their own class, and one (the last) that takes its buffers from the arena."""
    w = World(engine)
    w.hand_model()
    w.pipes = [w.pipeline(w.model(f"m{i}"), stages) for i, stages in enumerate(KINDS[:3])]
    w.pipes.append(w.pipeline(w.kernel.pipelines.items[0].stages[0].number, KINDS[3]))
    for pipe in w.pipes[:3]:
        w.frames_for(pipe)
    w.kernel.results_at, w.kernel.result_bytes = 6144, 16
    return w


def half_done(w):
    return [j for j in w.kernel.jobs if j.state in (JobState.RUNNING, JobState.SUSPENDED, JobState.WAITING)]


def check_frames(w):
    """Never more half-done jobs than frames, each the owner of its own; at most one runs."""
    jobs = half_done(w)
    owners = [f.owner for f in w.kernel.frames if f.owner]
    assert len(jobs) == len(owners) <= len(w.kernel.frames)
    assert sum(j.state == JobState.RUNNING for j in jobs) <= 1
    assert {int(j.frame) for j in jobs} == {i for i, f in enumerate(w.kernel.frames) if f.owner}


class Client:
    """Submits, stops and reads jobs, and knows what each should give."""

    def __init__(self, w):
        self.w, self.open, self.ended, self.accepted, self.refused = w, {}, {}, 0, 0

    def submit(self, kind, priority, deadline, late, preemptible, byte):
        w = self.w
        before = len(w.kept)
        id = w.submit(w.pipes[kind], bytes([byte] * 48), priority, deadline=deadline, late=late, preemptible=preemptible)
        if id == 0:
            self.refused += 1
            del w.kept[before:]
            return
        self.accepted += 1
        assert id not in self.open
        self.open[id] = (kind, byte, w.kept.pop())

    def collect(self, id):
        """Read a job that has ended: once, with the status and the bytes that it should have."""
        w, (kind, byte, _) = self.w, self.open[id]
        status = Status(int(w("infer_wait", id, 0)))
        assert status in FINE, status
        if status == Status.OK:
            assert kind != 3 and w.result(id) == stub_output(bytes([byte] * 48))
        else:
            assert w("infer_get_result", id, w.descriptor(0)) == status
        assert w("infer_get_result", id, w.descriptor(0)) == Status.NOENT
        self.ended[status] = self.ended.get(status, 0) + 1
        del self.open[id]

    def collect_all(self):
        for id in [j for j in self.open if JobState(int(self.w("infer_state", j))) in ENDED]:
            self.collect(id)

    def add_up(self):
        stats, e = self.w.kernel.stats, self.ended
        assert not self.open and self.w.kernel.unfinished == 0
        assert stats.submitted == self.accepted == sum(e.values())
        assert (stats.done, stats.cancelled) == (e.get(Status.OK, 0), e.get(Status.CANCELED, 0))
        assert stats.errors == e.get(Status.IO, 0) + e.get(Status.TIMEDOUT, 0) and stats.expired == e.get(Status.TIMEDOUT, 0)
        assert sum(stats.misses) == sum(p.misses for p in self.w.kernel.pipelines.items) >= stats.expired
        assert all(p.jobs == 0 for p in self.w.kernel.pipelines.items) and not any(f.owner for f in self.w.kernel.frames)
        assert all(j.state == JobState.FREE for j in self.w.kernel.jobs)


@fn
def soak(kernel: Kernel, pipes: Ptr[u32], spare: u32, input: Tensor, jobs: u32, found: Ptr[u32]) -> u32:
    """Keep 12 jobs of all kinds going until `jobs` were accepted and have ended; the arena's peak after the first 1 %.

    `found`: jobs that ended well, failed, were cancelled, ended late; wrong results; jobs that ended twice.
    """
    ids = local(u32, 12)
    byte = local(u8, 16)
    x = local(Tensor)
    params = local(JobParams)
    result = local(Tensor)
    copy(x, input)
    accepted: u32 = 0
    left: u32 = 0
    peak: u32 = 0
    r: u32 = 12345
    while accepted < jobs or left != 0:
        r = wrap(u32, r * 1664525 + 1013904223)
        at = (r >> 24) % 12
        id = ids[at]
        if id == 0 and accepted < jobs:
            params.priority = u8((r >> 8) % 3)
            params.preemptible = (r >> 11) & 3 != 0
            params.late = u8((r >> 13) % 3)
            params.deadline_us = 0
            if (r >> 16) & 3 == 0:
                params.deadline_us = 1 + ((r >> 18) & 63)
            which = (r >> 20) & 3
            if which == 3:
                params.late = 0  # the poll that ended such a one would begin the next on top of its blocks
            id = infer_submit(kernel, pipes[which], x, params)
            if id != 0:
                ids[at] = id
                accepted += 1
                left += 1
        elif id != 0:
            if (r >> 8) & 15 == 0:
                ignore(infer_abort(kernel, id))
            elif (r >> 8) & 15 == 1:
                ignore(infer_cancel(kernel, id))
            over, status = outcome(kernel, id)
            if over:
                if status == Status.OK:
                    read, n = infer_read(kernel, id, 0, byte, 16)
                    if read != Status.OK or n != 10 or byte[0] != 127:
                        found[4] += 1
                    found[0] += 1
                elif status == Status.IO:
                    found[1] += 1
                elif status == Status.CANCELED:
                    found[2] += 1
                elif status == Status.TIMEDOUT:
                    found[3] += 1
                ignore(infer_get_result(kernel, id, result))
                again = infer_get_result(kernel, id, result)
                if again != Status.NOENT:
                    found[5] += 1
                ids[at] = 0
                left -= 1
        if (r >> 4) & 1023 == 0:
            loaded = model_load(kernel, spare)
            assert loaded == Status.OK, "half-done jobs run to their ends"
            unloaded = model_unload(kernel, spare)
            assert unloaded == Status.OK, "it is loaded"
        mem_reset_ephemeral(kernel)
        answer, job = kernel_poll(kernel)
        if answer == Poll.RAN:
            hal.spend(0, (r >> 26) & 15)
        if accepted > jobs // 100 and peak == 0:
            peak = kernel.arena.peak
    return peak


ROUNDS = {"native": 100_000, "checked": 600, "cortex-m": 2000}


def test_soak(make):
    """Cancellations, aborts, misses, failures and models swapped: the arena's peak stays where the first jobs left it."""
    w = a_world(make(*ROOTS, soak, **BUILD))
    jobs, found = ROUNDS[make.engine], w.e.array(u32, 8)
    peak = w.e(soak, w.kernel, w.e.array(u32, w.pipes), w.model("spare"), w.tensor([48], data=bytes(48), lifetime=PERSISTENT), jobs, found)
    done, failed, cancelled, late, wrong, twice = list(found)[:6]
    stats = w.kernel.stats
    assert wrong == twice == 0 and min(done, failed, cancelled, late) > 0
    assert done + failed + cancelled + late == jobs == stats.submitted
    assert (stats.done, stats.errors, stats.cancelled, stats.expired) == (done, failed + late, cancelled, late)
    assert stats.preemptions > 0 and sum(stats.misses) == sum(p.misses for p in w.kernel.pipelines.items) >= late
    assert w.stats().arena_peak == peak < 2048
    w("mem_reset_ephemeral")
    assert w.kernel.arena.end == w.kernel.arena.persistent
    assert w.kernel.unfinished == 0 and all(j.state == JobState.FREE for j in w.kernel.jobs)
    assert all(p.jobs == 0 for p in w.kernel.pipelines.items) and not any(f.owner for f in w.kernel.frames)


mixes = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 3), st.sampled_from([BEST_EFFORT, NORMAL, REALTIME]), st.sampled_from([0, 0, 30, 100]),
                  st.sampled_from(list(Late)), st.booleans(), st.integers(0, 255)),
        st.tuples(st.just("poll"), st.integers(1, 4)), st.tuples(st.just("pass"), st.integers(1, 60)),
        st.tuples(st.just("infer_cancel"), st.integers(0, 20)), st.tuples(st.just("infer_abort"), st.integers(0, 20)),
        st.tuples(st.just("infer_set_deadline"), st.integers(0, 20), st.sampled_from([0, 1, 50, 500])),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=8)
@given(mixes)
def test_any_schedule_of_any_mix_gives_the_bytes_of_each_alone(engines, acts):
    """On all engines; and half-done jobs never exceed frames, at any step."""
    seen = []
    for e in engines(*ROOTS, **BUILD).each:
        w = a_world(e)
        c, order = Client(w), []
        for op, *rest in acts:
            if op == "submit":
                c.submit(*rest)
            elif op == "poll":
                for _ in range(rest[0]):
                    order.append(w("kernel_poll"))
                    check_frames(w)
            elif op == "pass":
                w.e.board.advance(rest[0])
            elif c.open:
                w(op, sorted(c.open)[rest[0] % len(c.open)], *rest[1:])
        answer = Poll.RAN
        while answer == Poll.RAN:
            answer, id = w("kernel_poll")
            order.append((answer, id))
            check_frames(w)
        c.collect_all()
        c.add_up()
        seen.append(order)
    assert all(order == seen[0] for order in seen)
