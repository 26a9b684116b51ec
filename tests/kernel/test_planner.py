"""The planner: its worked example, what it refuses, and random graphs, on every engine with equal bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapticos.kernel.note import Note
from synapticos.kernel.planner import BufferPlan, PlanLayer, plan_buffers
from synapticos.kernel.status import Status
from synapticos.lang import u16

ENOUGH = 0xFFFFFFFF
SIZES = [1024, 2048, 1024, 1024, 256, 1024, 768, 16]
CONSUMERS = [[1, 3], [2], [3], [4, 6], [5], [6], [7], []]
OFFSETS = [0, 1024, 3072, 1024, 0, 2048, 0, 768]


class Planned:
    """A graph put before the planner; `e` is an engine or all of them."""

    def __init__(self, e, sizes, consumers, area=ENOUGH):
        self.e, self.n = e, len(sizes)
        flat = [c for each in consumers for c in each]
        records, first = b"", 0
        for size, each in zip(sizes, consumers, strict=True):
            # What the planner sets is full of rubbish before.
            records += struct.pack("<6I", size, first, len(each), 0xA5A5A5A5, 0x5A5A5A5A, 0x12345678)
            first += len(each)
        self.layers = e.array(PlanLayer, records or bytes(24))
        self.list = e.array(u16, flat or 1)
        self.entries = len(flat)
        self.note, self.plan = e.new(Note), e.new(BufferPlan)
        self.status = self.again(area)

    def again(self, area=ENOUGH):
        return self.e(plan_buffers, self.note, self.layers, self.n, self.list, self.entries, area, self.plan)

    @property
    def rows(self):
        return list(struct.iter_unpack("<6I", bytes(self.layers)))

    @property
    def offsets(self):
        return [row[4] for row in self.rows]


@pytest.fixture(scope="session")
def e(engines):
    return engines(plan_buffers, BufferPlan.saving)


def up(n):
    return -(-n // 16) * 16


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 24))
    sizes = draw(st.lists(st.one_of(st.integers(0, 4096), st.sampled_from([1, 15, 16, 17, 1 << 20])), min_size=n, max_size=n))
    consumers = []
    for i in range(n):
        later = st.integers(i + 1, n - 1) if i + 1 < n else st.nothing()
        consumers.append(draw(st.lists(later, max_size=4)) if i + 1 < n else [])
    return sizes, consumers


def test_the_worked_example(e):
    p = Planned(e, SIZES, CONSUMERS)
    assert p.status == Status.OK
    assert p.offsets == OFFSETS
    assert (p.plan.peak, p.plan.baseline) == (4096, 7184)
    assert e(BufferPlan.saving, p.plan) == 4298  # 42.98 %
    assert p.plan.worst == 2


@given(graphs())
def test_buffers_alive_together_share_no_byte(e, graph):
    sizes, consumers = graph
    p = Planned(e, sizes, consumers)
    assert p.status == Status.OK
    last = [max(each, default=len(sizes)) for each in consumers]
    spans = [(at, at + up(size)) for at, size in zip(p.offsets, sizes, strict=True)]
    for i in range(len(sizes)):
        assert p.rows[i][3] == last[i] and spans[i][0] % 16 == 0
        for j in range(i + 1, len(sizes)):
            if last[i] >= j:
                assert spans[i][1] <= spans[j][0] or spans[j][1] <= spans[i][0] or not (sizes[i] and sizes[j])
    live = [sum(up(sizes[i]) for i in range(len(sizes)) if i <= at <= last[i]) for at in range(len(sizes))]
    assert p.plan.peak >= max(live)
    assert p.plan.peak == max(end for _, end in spans)
    assert p.plan.baseline == sum(map(up, sizes))


@given(graphs())
def test_each_buffer_has_the_lowest_offset_that_is_free(e, graph):
    sizes, consumers = graph
    last = [max(each, default=len(sizes)) for each in consumers]
    placed: list[tuple[int, int, int]] = []
    for i, size in enumerate(sizes):
        taken = [(a, b) for a, b, end in placed if end >= i and a != b]
        edges = sorted({0, *(b for _, b in taken)})
        at = next(x for x in edges if all(x + up(size) <= a or b <= x for a, b in taken))
        placed.append((at, at + up(size), last[i]))
    assert Planned(e, sizes, consumers).offsets == [a for a, _, _ in placed]


@given(graphs())
def test_planning_again_gives_the_same_bytes(e, graph):
    p = Planned(e, *graph)
    before = bytes(p.layers), bytes(p.plan)
    assert p.again() == Status.OK
    assert (bytes(p.layers), bytes(p.plan)) == before
    assert bytes(Planned(e, *graph).layers) == before[0]


@pytest.mark.parametrize(
    ("sizes", "consumers"),
    [
        ([], []),  # no layers
        ([16], [[0]]),  # its own consumer
        ([16, 16], [[1], [0]]),  # an earlier one
        ([16, 16], [[2], []]),  # no layer
        ([0xFFFFFFF1, 16], [[1], []]),  # rounding up wraps
        ([0x80000000, 0x80000000], [[1], []]),  # the sum wraps
    ],
)
def test_a_wrong_graph_is_refused_and_nothing_changes(e, sizes, consumers):
    p = Planned(e, sizes, consumers)
    assert p.status == Status.INVAL
    assert (p.plan.peak, p.plan.baseline) == (0, 0)
    assert all(row[3:] == (0xA5A5A5A5, 0x5A5A5A5A, 0x12345678) for row in p.rows[: len(sizes)])


def test_consumers_outside_the_list_are_refused(e):
    p = Planned(e, SIZES, CONSUMERS)
    for entries in (0, 8):
        p.entries = entries
        assert p.again() == Status.INVAL


def test_an_area_that_is_a_byte_too_small_is_refused_with_the_figures(e):
    assert Planned(e, SIZES, CONSUMERS, 4096).status == Status.OK
    p = Planned(e, SIZES, CONSUMERS, 4095)
    assert p.status == Status.NOMEM
    assert [p.note.args[i] for i in range(4)] == [4096, 4095, 1, 2]  # needed, available, missing, layer
    assert p.plan.peak == 4096


def test_a_long_chain_needs_two_buffers(e):
    n = 300
    p = Planned(e, [64] * n, [[i + 1] for i in range(n - 1)] + [[]])
    assert p.plan.peak == 128 and p.plan.baseline == 64 * n


@pytest.mark.only("cortex-m")
def test_the_worked_example_is_planned_in_few_instructions(make):
    one = make(plan_buffers, BufferPlan.saving)
    assert Planned(one, SIZES, CONSUMERS).status == Status.OK
    assert one.instructions < 1500
