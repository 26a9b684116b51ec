"""Releases by the clock: nominal times, what waits and what is dropped, and what switching does, on each engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, PASS, ROOTS, TIMED, World
from synapticos.engine import Build
from synapticos.engine.words import program_files
from synapticos.kernel.api import EXPORTS
from synapticos.kernel.job import NEVER
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.release import FeedCounts, JobCounts, Queue
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status
from synapticos.lang import layout

OLDEST, NEWEST, COALESCE = Queue.OLDEST, Queue.NEWEST, Queue.COALESCE
NONE = int(NEVER)


class Clocked(World):
    """A kernel whose pipelines are released by the clock; their input is memory of the arena."""

    def released(self, *rows: dict) -> None:
        """A release for each row: period, and what else differs from the usual."""
        self.hand_model()
        model = self.model()
        data = self.tensor([48], data=bytes(48), lifetime=0)
        releases = self.kernel.releases
        releases.count = len(rows)
        for i, row in enumerate(rows):
            pipe = self.pipeline(model, pre=row.pop("pre", ()))
            pipeline = self.kernel.pipelines.items[(pipe & 0xFF) - 1]
            pipeline.sink = NOTE_DONE
            pipeline.deadline_us = row.pop("deadline_us", 0)
            r = releases.items[i]
            r.x.size, r.x.ndim, r.x.shape[0] = 48, 1, 48
            r.x.region, r.x.offset = data.region, data.offset
            r.pipeline = (pipe & 0xFF) - 1
            for name, value in {"depth": 1, "policy": OLDEST, "enabled": True, **row}.items():
                setattr(r, name, value)
            if r.enabled:
                releases.wanted |= 1 << i
        self("releases_start", 0)
        self.origin = releases.origin_us

    def at(self, us: int) -> None:
        """It is `us` after the start of releases. A tick is a microsecond."""
        for one in getattr(self.e, "each", [self.e]):
            one.board.now = self.origin + us

    def due(self) -> int:
        """The next time by the clock, from the start of releases."""
        return self("kernel_due") - self.origin

    def counts(self, i: int = 0) -> tuple[int, ...]:
        r = self.kernel.releases.items[i]
        assert r.released == r.started + r.dropped + r.coalesced + r.starved + r.waiting
        return r.released, r.started, r.dropped, r.coalesced


@pytest.fixture
def w(make):
    return Clocked(make(*ROOTS, **TIMED))


def test_a_job_is_released_by_the_clock(w):
    w.released(dict(period_us=1000, phase_us=250))
    assert w.due() == 250
    w.at(249)
    assert w("kernel_poll") == (Poll.IDLE, 0)
    for k in range(3):
        w.at(250 + 1000 * k)
        assert w("kernel_poll")[0] == Poll.RAN
        w.run()
        assert w.due() == 250 + 1000 * (k + 1)
    assert w.counts() == (3, 3, 0, 0) and len(w.events()) == 3
    assert w.kernel.stats.done == 3 and w.kernel.free.words[0] == (1 << len(w.kernel.jobs)) - 1


def test_nominal_times_do_not_drift(w):
    """However late poll comes, the next time is a whole number of periods from the first."""
    w.released(dict(period_us=333))
    for us in (0, 350, 1000, 1200, 5000):
        w.at(us)
        w.run()
        assert w.due() % 333 == 0 and us < w.due() <= us + 333
    assert w.kernel.releases.items[0].delay_us == 5000 - 4 * 333


@pytest.mark.parametrize("policy, want", [(OLDEST, (11, 3, 8, 0)), (NEWEST, (11, 3, 8, 0)), (COALESCE, (11, 2, 0, 9))])
def test_a_kernel_that_was_away_does_as_the_policy_says(w, policy, want):
    w.released(dict(period_us=100, policy=policy, depth=2))
    w.at(0)
    w.run()
    w.at(1000)
    w.run()
    assert w.counts() == want
    assert w.due() == 1100 and w.kernel.releases.items[0].late == 9


def test_a_job_that_runs_lets_one_wait(w):
    w.released(dict(period_us=100, pre=(PASS,) * 5))
    w.at(0)
    w("kernel_poll")
    for us, want in ((100, (2, 1, 0, 0)), (200, (3, 1, 1, 0)), (300, (4, 1, 2, 0))):
        w.at(us)
        w("kernel_poll")
        assert w.counts() == want
    w.run()
    assert w.counts() == (4, 2, 2, 0)


def test_switched_off_and_on_it_keeps_its_grid(w):
    w.released(dict(period_us=1000, phase_us=10), dict(period_us=700, enabled=False))
    assert w.due() == 10
    assert w("job_enable", 0, False) == Status.OK and w("job_enable", 1, True) == Status.OK
    w.at(5)
    w.run()
    assert w.due() == 700
    w.at(2500)
    w.run()
    assert w("job_enable", 1, False) == Status.OK
    w.run()
    assert w("kernel_due") == NONE
    assert w("job_enable", 0, True) == Status.OK
    w.run()
    assert w.due() == 3010
    assert w("job_enable", 2, True) == Status.NOENT


def test_nobody_starts_releases_beside_a_poll(w):
    w.released(dict(period_us=100))
    w.at(250)
    before = bytes(w.kernel)
    w.kernel.inside = 1
    assert w("releases_start", 0) == Status.BUSY
    w.kernel.inside = 0
    assert bytes(w.kernel) == before and w.due() == 0
    assert w("releases_start", 0) == Status.OK and w.due() == 250


def test_what_waits_is_dropped_when_it_is_switched_off(w):
    w.released(dict(period_us=100, pre=(PASS,) * 3))
    w.at(0)
    w("kernel_poll")
    w.at(100)
    w("kernel_poll")
    assert w.counts() == (2, 1, 0, 0)
    w("job_enable", 0, False)
    w.run()
    assert w.counts() == (2, 1, 1, 0) and len(w.events()) == 1


def test_without_a_free_slot_a_release_waits(w):
    w.released(dict(period_us=100, depth=4))
    pipe = w.pipeline(w.model("other"))
    jobs = [w.submit(pipe, bytes(48)) for _ in range(4)]
    w.at(100)
    w.run()
    assert all(jobs) and w.counts() == (2, 0, 0, 0)
    w.result(jobs[0])
    w.run()
    assert w.counts() == (2, 2, 0, 0)


def test_a_cancelled_job_does_not_hold_up_its_release(w):
    w.released(dict(period_us=100))
    pipe = w.pipeline(w.model("other"), pre=(PASS, PASS))
    w.submit(pipe, bytes(48), priority=NORMAL)
    w("kernel_poll")
    w.at(0)
    w("kernel_poll")
    job = w.kernel.releases.items[0].job
    assert job != 0 and w("infer_cancel", job) == Status.OK
    assert w.kernel.releases.items[0].job == 0
    w.at(100)
    w.run()
    assert w.counts()[:2] == (2, 2)


@pytest.mark.parametrize("collect", [False, True])
@pytest.mark.only("checked")
def test_a_job_that_is_cancelled_as_it_is_submitted_leaves_no_slot_taken(w, collect):
    """At each point at which an interrupt may come; who collects results reads that of a cancelled one too."""
    w.released(dict(period_us=100, collect=collect))
    slots = (1 << len(w.kernel.jobs)) - 1
    points = 0
    for at in range(16):
        sections = []

        def strike(at=at, sections=sections):
            sections.append(0)
            if len(sections) == at + 1:
                w("infer_cancel", w.kernel.next_id - 1)

        w.at(100 * at)
        with w.interrupted(strike):
            w.run()
        w.run()
        last = w.kernel.releases.items[0].last
        points += w("infer_wait", last, 0) == Status.CANCELED
        if collect:
            w("infer_get_result", last, w.descriptor(0))
        assert w.kernel.free.words[0] == slots and w.counts() == (at + 1, at + 1, 0, 0)
    assert points or not collect


@given(st.lists(st.integers(0, 900), max_size=25), st.sampled_from([OLDEST, NEWEST, COALESCE]), st.integers(1, 4), st.integers(50, 400))
def test_every_release_is_counted_once_and_is_where_a_loop_would_have_put_it(engines, gaps, policy, depth, period):
    """Against a model that looks at every nominal time by itself, while polls run one step of the job each."""
    made = engines(*ROOTS, **TIMED).each
    each = [Clocked(engine) for engine in made]
    for w in each:
        w.released(dict(period_us=period, policy=policy, depth=depth, pre=(PASS, PASS)))
    upto = next(f.offset for f in made[0].type(Kernel).fields if f.name == "board")
    now, next_us, waiting, left = 0, 0, [], 0
    released = started = dropped = coalesced = 0
    for gap in gaps:
        now += gap
        for w in each:
            w.at(now)
            w("kernel_poll")
        while next_us <= now:
            released += 1
            if policy == COALESCE and waiting:
                coalesced += 1
            elif len(waiting) < depth:
                waiting.append(next_us)
            else:
                dropped += 1
                if policy == OLDEST:
                    waiting = [*waiting[1:], next_us]
            next_us += period
        if left == 0 and waiting:
            waiting.pop(0)
            started, left = started + 1, 3
        left = max(left - 1, 0)
        for w in each:
            assert w.counts() == (released, started, dropped, coalesced)
            r = w.kernel.releases.items[0]
            queue = [r.queue[(r.first + i) % 4].release_us - w.origin for i in range(r.waiting)]
            assert queue == waiting and w.due() == next_us
            assert bytes(w.kernel)[:upto] == bytes(each[0].kernel)[:upto]


def test_what_became_of_releases_can_be_asked_for(w):
    w.released(dict(period_us=100, policy=NEWEST, depth=2), dict(period_us=1000, deadline_us=5))
    w.at(990)
    w("kernel_poll")
    w.at(1020)
    w.run()
    out = w.e.new(JobCounts)
    for number in (0, 1):
        assert w("job_counts", number, out) == Status.OK
        release = w.kernel.releases.items[number]
        assert all(getattr(out, name) == getattr(release, name) for name, _, _ in layout(JobCounts) if name != "misses")
        assert out.released == out.started + out.dropped + out.coalesced + out.starved + out.waiting > 0
        assert out.misses == w.kernel.pipelines.items[release.pipeline].misses == number * 2
    before = bytes(out)
    assert w("job_counts", 2, out) == Status.NOENT and w("job_counts", 0, None) == Status.INVAL and bytes(out) == before
    assert w("source_counts", 0, w.e.new(FeedCounts)) == Status.NOENT  # this build keeps nothing


def test_a_program_in_c_can_ask():
    """By the header that is generated with it."""
    build = Build([EXPORTS[name] for name in ("syn_job_counts", "syn_source_counts")], tables=TIMED["tables"], RELEASES=3, FEEDS=2)
    header = program_files(build.program(), build.roots).files["program.h"].decode()
    assert "Status job_counts(Kernel *kernel, uint32_t number, JobCounts *out);" in header
    assert "Status source_counts(Kernel *kernel, uint32_t source, FeedCounts *out);" in header
    for kind in (JobCounts, FeedCounts):
        for name, _, _ in layout(kind):
            assert f"uint32_t {name};" in header
