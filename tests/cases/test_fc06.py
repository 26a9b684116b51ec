"""FC-06: deadlines survive the wrap of the cycle counter; the board's counter counts microseconds here."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import NORMAL, NOTE_DONE, OPTIONS, ROOTS, World
from synapticos.kernel.kernel import kernel_time

WRAP = 1 << 32


class Wrapping(World):
    """Its time is not the counter's: that of a chip has 32 bits."""

    time = 0

    def pass_time(self, us: int) -> None:
        self.time += us
        self.e.board.advance(us)


@pytest.fixture
def w(make):
    return Wrapping(make(*ROOTS, **OPTIONS))


def ended(w, submitted):
    """In which order these end, by their names; all are read."""
    before = len(w.events())
    w.run()
    order = [next(name for name, id in submitted.items() if id == e[0]) for e in w.events()[before:]]
    for id in submitted.values():
        w.result(id)
    return order


def keep_up(w, until):
    """Time goes on to `until`, and somebody polls at least once a wrap."""
    while w.time < until:
        w.pass_time(min(until - w.time, WRAP // 2))
        w("kernel_poll")


def test_three_wraps(w):
    pipe = w.simple()
    assert w.kernel.clock.rate == 10**6
    for wrap in (1, 2, 3):
        keep_up(w, wrap * WRAP - 1000)
        jobs = {n: w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=d) for n, d in (("R", 0), ("P", 3000), ("Q", 500))}
        assert ended(w, jobs) == ["Q", "P", "R"]
    assert list(w.kernel.stats.misses) == [0, 0, 0]
    assert w.e(kernel_time, w.kernel) == 3 * WRAP - 1000


def test_the_wrap_comes_between_submission_and_poll(w):
    pipe = w.simple()
    keep_up(w, WRAP - 1000)
    jobs = {"P": w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=3000)}
    w.pass_time(1500)  # over the wrap, unseen
    jobs["Q"] = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=1000)  # due 500 before P's 2,000
    jobs["O"] = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=1600)  # and 100 after P
    assert ended(w, jobs) == ["Q", "P", "O"]


@pytest.mark.parametrize("far", [WRAP // 2 - 1, WRAP // 2, WRAP // 2 + 1, WRAP - 1])
def test_a_far_deadline_is_never_past(w, far):
    """Also those from half the counter's range on: they come after all nearer ones and before those without."""
    pipe = w.simple()
    keep_up(w, WRAP - 1000)
    jobs = {n: w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=d) for n, d in (("none", 0), ("far", far), ("near", 2000))}
    assert ended(w, jobs) == ["near", "far", "none"] and list(w.kernel.stats.misses) == [0, 0, 0]


def test_a_far_deadline_is_missed_when_it_is(w):
    pipe = w.simple()
    w.submit(pipe, bytes(48), NORMAL, deadline=WRAP - 1)
    w("kernel_poll")
    waits = w.submit(pipe, bytes(48), NORMAL, deadline=WRAP - 1)
    w.kernel.hold = True  # nothing begins
    keep_up(w, WRAP - 1)
    assert list(w.kernel.stats.misses) == [0, 0, 0]
    keep_up(w, WRAP)
    assert list(w.kernel.stats.misses) == [0, 1, 0]
    w.kernel.hold = False
    w.run()
    assert w("infer_wait", waits, 0) == 0


spans = st.one_of(st.just(0), st.integers(1, 5000), st.integers(WRAP // 2 - 2000, WRAP // 2 + 2000), st.integers(WRAP - 5000, WRAP - 1))


@settings(max_examples=30)
@given(st.integers(0, 3000), st.lists(st.tuples(spans, st.integers(0, 700)), min_size=1, max_size=4))
def test_any_deadlines_around_a_wrap(engines, before, jobs):
    for e in engines(*ROOTS, **OPTIONS).each:
        w = Wrapping(e)
        pipe = w.simple()
        keep_up(w, WRAP - before)
        submitted, due = {}, []
        for i, (span, later) in enumerate(jobs):
            submitted[i] = w.submit(pipe, bytes(48), NORMAL, NOTE_DONE, deadline=span)
            due.append((w.time + span if span else float("inf"), i))
            w.pass_time(later)
        now = w.time
        assert ended(w, submitted) == [i for _, i in sorted(due)]
        assert w.kernel.stats.misses[NORMAL] == sum(d < now for d, _ in due)
