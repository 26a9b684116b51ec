"""Feeds: windows cut from pieces of any size, entries shared by jobs, losses counted, on each engine."""

import pytest
from apps import PREEMPTIBLE, PipelineOf, app_stage, model, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, ROOTS, TIMED, World, stub_output
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.release import FeedCounts, Queue
from synapticos.kernel.status import Status
from synapticos.kernel.tables import JOB_BY_SOURCE, JOB_DISABLED
from synapticos.lang import u8

PASS = 0  # row of kernels.TABLES[APP_STAGES]
MODEL = [(b"any bytes will do for the stub", 0)]
WINDOW = dict(bytes=48, hop=48, ndim=1, shape=[48, 0, 0, 0], dtype=0, keep=3)
ON = dict(priority=NORMAL, flags=int(JOB_BY_SOURCE), depth=1, policy=int(Queue.OLDEST))


class Fed(World):
    def boot(self, pipelines: list[PipelineOf], sources: list[dict], **header):
        app = tables(MODEL, pipelines, sources=sources, **header)
        for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
            self.e(Regions.set, self.kernel.regions, int(region), self.keep(self.e.array(u8, data)), len(data))
        return self("app_boot")

    def push(self, data: bytes, source: int = 0) -> Status:
        return Status(int(self("source_push", source, self.e.array(u8, data or b"\0"), len(data))))

    def results(self, i: int = 0) -> bytes | None:
        """The result of the last job of release i, which is read and let go."""
        job = self.kernel.releases.items[i].last
        out = self.result(job)
        return out

    def counts(self, i: int = 0) -> tuple[int, ...]:
        r = self.kernel.releases.items[i]
        assert r.released == r.started + r.dropped + r.coalesced + r.starved + r.waiting
        return r.released, r.started, r.dropped, r.coalesced

    def users(self, i: int = 0) -> list[int]:
        return [int(n) for n in self.kernel.releases.feeds[i].users]


@pytest.fixture
def w(make):
    return Fed(make(*ROOTS, **TIMED))


def listener(stages: int = 0, **job) -> PipelineOf:
    return PipelineOf([app_stage(PASS, 64)] * stages + [model(0)], result=16, sink=NOTE_DONE, job={**ON, **job}, source=1)


def test_a_whole_window_releases_its_jobs_and_is_their_input(w):
    assert w.boot([listener(), listener()], [WINDOW]) == Status.OK
    for r in w.kernel.releases.items:
        r.collect = True
    data = bytes(range(96))
    for at in range(0, 40, 10):
        assert w.push(data[at : at + 10]) == Status.OK
        assert w.run() == []
    assert w.push(data[40:60]) == Status.OK
    assert w.run() != [] and w.counts(0) == w.counts(1) == (1, 1, 0, 0)
    assert [w.results(i) for i in (0, 1)] == [stub_output(data[:48])] * 2
    assert w.users() == [0, 1, 0, 0]  # the next one is being filled
    assert w.push(data[60:]) == Status.OK
    w.run()
    assert [w.results(i) for i in (0, 1)] == [stub_output(data[48:])] * 2
    assert w.users() == [0, 0, 0, 0] and w.kernel.releases.feeds[0].entries == 2


@given(
    st.lists(st.integers(1, 70), max_size=30), st.integers(1, 60), st.integers(2, 4), st.lists(st.booleans(), min_size=30, max_size=30)
)
@settings(max_examples=25)
def test_windows_are_whole_and_every_byte_is_in_one_or_counted(engines, pieces, hop, keep, runs):
    """Against windows cut from the bytes that were not lost; a window never spans a gap, and all engines agree."""
    made = engines(*ROOTS, **TIMED).each
    each = [Fed(engine) for engine in made]
    for w in each:
        assert w.boot([listener(depth=4, policy=int(Queue.NEWEST))], [{**WINDOW, "hop": hop, "keep": keep}]) == Status.OK
    upto = next(f.offset for f in made[0].type(Kernel).fields if f.name == "board")
    w, sent = each[0], 0
    for piece, run in zip(pieces, runs, strict=False):
        data = bytes((sent + i) % 251 for i in range(piece))
        lost = w.kernel.releases.feeds[0].lost
        status = {one.push(data) for one in each}
        assert len(status) == 1
        feed = w.kernel.releases.feeds[0]
        assert (feed.lost != lost) == (status == {Status.NOMEM})
        sent += piece
        for one in each:
            if run:
                one.run()
            assert bytes(one.kernel)[:upto] == bytes(w.kernel)[:upto]
        assert sum(w.users()) <= keep + 8
    feed = w.kernel.releases.feeds[0]
    for k in range(keep):  # what lies in an entry that is whole or was: consecutive bytes of what was sent
        entry = w.read(feed.at + feed.stride * k, 48)
        if feed.filling != k + 1 and any(entry):
            assert all((b - a) % 251 == 1 for a, b in zip(entry, entry[1:], strict=False))
    assert feed.lost <= sent
    if feed.lost == 0:
        want = 0 if sent < 48 else 1 + (sent - 48) // hop
        assert feed.entries == want
    for one in each:
        one.run()
    assert w.counts()[0] == feed.entries
    assert sum(w.users()) <= 2  # at most the one being filled and the one that the next overlaps


def test_after_an_overflow_the_first_whole_window_is_right_and_losses_are_counted(w):
    """Two of three entries wait while the job is held; the third fills; then bytes are lost until one is free."""
    assert w.boot([listener(3, depth=2, policy=int(Queue.NEWEST))], [WINDOW]) == Status.OK
    w.kernel.releases.items[0].collect = True
    stream = bytes(i % 251 for i in range(1000))
    assert w.push(stream[:48]) == Status.OK
    w("kernel_poll")  # the job has begun and is held
    for at in (48, 96):
        assert w.push(stream[at : at + 48]) == Status.OK
        w("kernel_poll") if at == 48 else None
    assert w.push(stream[144:200]) == Status.NOMEM
    assert w.push(stream[200:231]) == Status.NOMEM
    feed = w.kernel.releases.feeds[0]
    assert (feed.lost, feed.gaps, feed.entries) == (231 - 144, 1, 3)
    job = w.kernel.releases.items[0].last
    w("infer_wait", job, 0)
    while w("infer_wait", job, 0) == Status.AGAIN:
        pass
    assert w.result(job) == stub_output(stream[:48])
    w.run()
    assert w.results() == stub_output(stream[96:144]) and w.counts() == (3, 3, 0, 0)
    assert w.push(stream[231:279]) == Status.OK
    w.run()
    assert w.results() == stub_output(stream[231:279])
    assert (feed.lost, feed.gaps) == (87, 1)


def test_a_job_by_the_clock_reads_the_newest(w):
    clock = dict(ON, flags=0, period_us=100)
    assert w.boot([listener(**clock)], [WINDOW]) == Status.OK
    r = w.kernel.releases.items[0]
    r.collect = True
    w.e.board.now = w.kernel.releases.origin_us
    w.run()
    assert (r.released, r.starved) == (1, 1)
    for i in range(5):
        assert w.push(bytes([i]) * 48) == Status.OK
        w.run()
        assert r.started == i
        w.e.board.now += 100
        w.run()
        assert w.results() == stub_output(bytes([i]) * 48)
    w.e.board.now += 100
    w.run()
    assert w.results() == stub_output(bytes([4]) * 48) and sum(w.users()) == 1


def test_what_was_due_before_anything_came_starved_however_much_it_was(w):
    """Also the releases that are counted at once, since there are more of them than fit the queue twice."""
    assert w.boot([listener(**dict(ON, flags=0, period_us=100, depth=2))], [WINDOW]) == Status.OK
    w.e.board.now = w.kernel.releases.origin_us + 5000
    w.run()
    assert (w.kernel.releases.items[0].starved, w.counts()) == (51, (51, 0, 0, 0))


def test_an_entry_has_more_users_than_a_byte_counts(make):
    """Each release by the clock holds the newest entry once for each of its releases that waits."""
    w = Fed(make(*ROOTS, **TIMED | dict(RELEASES=5, MAX_WAITING=64, MAX_PIPELINES=5)))
    assert w.boot([listener(**dict(ON, flags=0, period_us=100, depth=64)) for _ in range(5)], [WINDOW]) == Status.OK
    assert w.push(bytes(48)) == Status.OK
    w.kernel.hold = True
    for _ in range(64):
        w("kernel_poll")
        w.e.board.now += 100
    w("kernel_poll")
    assert max(w.users()) > 256 and sum(r.waiting for r in w.kernel.releases.items) > 256
    assert w.push(bytes(48)) == Status.OK
    w.kernel.hold = False
    while w.run():
        pass
    assert sum(w.users()) == 1 and all(r.waiting == 0 for r in w.kernel.releases.items)


def test_a_front_end_runs_once_and_feeds_two(w):
    """A pipeline without a model ends in a source that two others read."""
    front = PipelineOf([app_stage(PASS, 64)], job=dict(ON), source=1, feed=2)
    pipelines = [front, *(PipelineOf([model(0)], result=16, sink=NOTE_DONE, job=dict(ON), source=2) for _ in range(2))]
    assert w.boot(pipelines, [WINDOW, WINDOW]) == Status.OK
    for r in [w.kernel.releases.items[i] for i in (1, 2)]:
        r.collect = True
    for i in range(4):
        assert w.push(bytes([i]) * 48) == Status.OK
        w.run()
        assert [w.results(k) for k in (1, 2)] == [stub_output(bytes([i]) * 48)] * 2
    assert [w.counts(i)[:2] for i in range(3)] == [(4, 4)] * 3
    assert w.users(0) == w.users(1) == [0] * 4


@pytest.mark.only("checked")
def test_an_aborted_front_end_pushes_nothing(w):
    """Wherever the abort comes: either it is told that it is too late, or nobody ever sees the result."""
    front = PipelineOf([app_stage(PASS, 64)], job=dict(ON), source=1, feed=2)
    assert w.boot([front, PipelineOf([model(0)], result=16, job=dict(ON), source=2)], [WINDOW, WINDOW]) == Status.OK
    told, written = set(), w.kernel.log.written
    for at in range(24):
        sections, answers = [], []
        before = (w.kernel.stats.cancelled, w.kernel.releases.feeds[1].entries)

        def strike(at=at, sections=sections, answers=answers):
            sections.append(0)
            if len(sections) == at + 1:
                answers.append(Status(int(w("infer_abort", w.kernel.releases.items[0].last))))

        w.push(bytes(48))
        with w.interrupted(strike):
            w.run()
        w.run()
        cancelled, pushed = w.kernel.stats.cancelled - before[0], w.kernel.releases.feeds[1].entries - before[1]
        assert (cancelled, pushed) == ((1, 0) if Status.OK in answers else (0, 1))
        told.update(answers)
    assert told == {Status.OK, Status.ALREADY, Status.NOENT}
    assert w.kernel.log.written == written  # it was no error
    assert w.users(0) == w.users(1) == [0] * 4


@pytest.mark.only("checked")
def test_what_is_pushed_after_poll_has_read_the_counter_is_new(w):
    assert w.boot([listener(deadline_us=500_000)], [WINDOW]) == Status.OK
    w.advance_us(1_000_000)
    w("kernel_poll")
    with w.counter_read(lambda: w.push(bytes(48))):
        w("kernel_poll")
    assert w.kernel.jobs[0].release == 1_000_001
    w.run()
    assert sum(w.kernel.stats.misses) == 0 and w.kernel.stats.done == 1


@pytest.mark.parametrize("how", ["infer_get_result", "infer_detach", "infer_reclaim", "infer_set_max_concurrent"])
@pytest.mark.only("checked")
def test_a_free_slot_wakes_who_sleeps_until_a_release_may_begin(make, how):
    w = Fed(make(*ROOTS, **TIMED | {"MAX_JOBS": 1}))
    assert w.boot([listener(), PipelineOf([model(0)], result=16)], [WINDOW]) == Status.OK
    job = w.submit(w("app_pipeline", 1), bytes(48))
    w.run()
    w.push(bytes(48))
    assert w.run() == [] and w.counts()[1] == 0
    w.advance_us(1000)
    before = w.e.board.wakes
    w(how, *{"infer_reclaim": [0], "infer_set_max_concurrent": [1]}.get(how, [job, w.descriptor(0)][: 1 + (how == "infer_get_result")]))
    assert w.e.board.wakes > before


def test_what_became_of_a_source_can_be_asked_for(w):
    assert w.boot([listener()], [WINDOW]) == Status.OK
    assert w.push(bytes(48 * 4 + 10)) == Status.NOMEM
    out = w.e.new(FeedCounts)
    assert w("source_counts", 0, out) == Status.OK and (out.entries, out.lost, out.gaps) == (3, 58, 1)
    assert w("source_counts", 1, out) == Status.NOENT and w("source_counts", 0, None) == Status.INVAL and out.lost == 58


def test_two_pushes_at_once_are_refused(w):
    assert w.boot([listener()], [WINDOW]) == Status.OK
    w.kernel.releases.feeds[0].pushing = True
    assert w.push(bytes(48)) == Status.BUSY
    w.kernel.releases.feeds[0].pushing = False
    assert w.push(bytes(48), source=1) == Status.INVAL and w("source_push", 0, None, 1) == Status.INVAL


BAD = [
    dict(keep=0), dict(keep=1, hop=10), dict(hop=0), dict(bytes=47), dict(ndim=0), dict(ndim=5), dict(dtype=9), dict(shape=[1 << 31, 8, 8, 1], ndim=4),
]  # fmt: skip


@pytest.mark.parametrize("change", BAD)
def test_a_damaged_source_is_refused(w, change):
    assert w.boot([listener()], [{**WINDOW, **change}]) == Status.INVAL


BAD_JOBS = [
    dict(depth=0), dict(policy=3), dict(period_us=5), dict(period_us=1 << 32, flags=0), dict(late=3), dict(parent=9), dict(parent=1, most=1),
]  # fmt: skip


@pytest.mark.parametrize("change", BAD_JOBS)
def test_a_damaged_job_is_refused(w, change):
    assert w.boot([listener(**change)], [WINDOW]) == Status.INVAL


def test_what_does_not_fit_the_build_is_refused_in_figures(w):
    assert w.boot([listener(depth=5)], [WINDOW]) == Status.NOMEM
    w("kernel_boot", 0)
    assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
    assert w.boot([listener()], [{**WINDOW, "keep": 5}]) == Status.NOMEM
    w("kernel_boot", 0)
    assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
    assert w.boot([listener()], [WINDOW] * 3) == Status.NOMEM
    w("kernel_boot", 0)
    assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
    assert w.boot([PipelineOf([model(0)], result=16, job=dict(ON), source=2)], [WINDOW]) == Status.INVAL


def test_a_disabled_job_gets_nothing(w):
    assert w.boot([listener(flags=int(JOB_BY_SOURCE | JOB_DISABLED | PREEMPTIBLE))], [WINDOW]) == Status.OK
    w.push(bytes(48))
    w.run()
    assert w.counts() == (0, 0, 0, 0) and w.users() == [0] * 4
    assert w("job_enable", 0, True) == Status.OK
    w.push(bytes(48))
    w.run()
    assert w.counts() == (1, 1, 0, 0)


# Jobs of several sources


SMALL = dict(bytes=20, hop=20, ndim=1, shape=[20, 0, 0, 0], dtype=0, keep=2)
LARGE = dict(bytes=16, hop=16, ndim=1, shape=[16, 0, 0, 0], dtype=0, keep=2)


@pytest.fixture
def joined(make):
    return Fed(make(*ROOTS, **TIMED | {"JOINS": 2}))


def pair(joins=(0, 1), **job) -> PipelineOf:
    """A job of two sources, 48 bytes: 20, 12 that are nobody's, 16."""
    return PipelineOf([model(0)], result=16, sink=NOTE_DONE, job={**ON, **job}, source=2 if job.get("flags", 1) else 0, joins=list(joins))


def test_one_source_releases_and_the_other_gives_its_newest(joined):
    w = joined
    assert w.boot([pair()], [SMALL, LARGE]) == Status.OK
    release = w.kernel.releases.items[0]
    release.collect = True
    w.push(b"b" * 16, 1)
    assert w.run() == [] and (release.released, release.starved) == (1, 1)
    for k in range(3):
        w.push(bytes([2 * k]) * 20)
        w.push(bytes([2 * k + 1]) * 20)
        assert w.run() == []  # nobody asked for them alone
        w.push(bytes([100 + k]) * 16, 1)
        w.run()
        assert w.results() == stub_output(bytes([2 * k + 1]) * 20 + bytes(12) + bytes([100 + k]) * 16)
    assert w.counts()[:2] == (4, 3) and sum(w.users(0)) == 1 and sum(w.users(1)) == 0


def test_what_comes_together_is_read_together_and_waits_as_it_was(joined):
    """Also while a job runs: what waits is a copy, and newer entries do not change it."""
    w = joined
    assert w.boot([pair(depth=2)], [SMALL, LARGE]) == Status.OK
    w.kernel.releases.items[0].collect = True
    w.kernel.hold = True
    for k in range(3):
        w.push(bytes([10 + k]) * 16, 1)
        w.push(bytes([k]) * 20)
        w("kernel_poll")
    w.kernel.hold = False
    for k in range(3):
        while w.kernel.stats.done == k:
            w("kernel_poll")
        assert w.results() == stub_output(bytes([k]) * 20 + bytes(12) + bytes([10 + k]) * 16)
    assert w.counts() == (3, 3, 0, 0)


def test_a_clock_takes_the_newest_of_both(joined):
    w = joined
    assert w.boot([pair(flags=0, period_us=100, policy=int(Queue.COALESCE))], [SMALL, LARGE]) == Status.OK
    w.kernel.releases.items[0].collect = True
    w.e.board.now = origin = w.kernel.releases.origin_us
    w.run()
    assert w.kernel.releases.items[0].starved == 1
    for k in range(1, 4):
        w.push(bytes([k]) * 20)
        w.push(bytes([50 + k]) * 16, 1)
        w.e.board.now = origin + 100 * k
        w.run()
        assert w.results() == stub_output(bytes([k]) * 20 + bytes(12) + bytes([50 + k]) * 16)


@pytest.mark.parametrize("change", [dict(joins=[0, 1, 0]), dict(joins=[1, 2]), dict(joins=[0]), dict(join=9), dict(join=3)])
def test_a_damaged_join_is_refused(joined, change):
    assert joined.boot([pair(**change)], [SMALL, LARGE]) == Status.INVAL


def test_a_build_without_joins_refuses_them(w):
    assert w.boot([pair()], [SMALL, LARGE]) == Status.INVAL
