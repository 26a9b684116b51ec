"""The arena: spec 32, lines 1 to 18; the defects of 33.1; random sequences against a model of it in Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import ARENA, EPHEMERAL, FLOAT32, INT8, PERSISTENT, SCRATCH, SHARED
from synapticos.kernel.arena import Arena
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Lifetime, Tensor
from synapticos.lang import u8, u32

U32 = (1 << 32) - 1


def up(n: int) -> int:
    return -(-n // 16) * 16


# Spec 32, 1 to 14


def test_init_adopts_the_memory(world):
    w = world(up=False)
    assert w("mem_init", w.memory, ARENA) == Status.OK
    stats = w.stats()
    assert (stats.arena_total, stats.arena_used, stats.alloc_count) == (ARENA - SCRATCH, 0, 0)


def test_init_without_memory_is_refused(world):
    w = world(up=False)
    assert w("mem_init", None, ARENA) == Status.INVAL
    assert w("mem_init", w.memory, 0) == Status.INVAL
    assert w("mem_init", w.memory, SCRATCH) == Status.INVAL


def test_a_tensor_is_described(w):
    t = w.tensor([1, 10, 10, 3])
    assert (t.ndim, t.shape[1], t.size, int(t.lifetime)) == (4, 10, 300, EPHEMERAL)


def test_a_reset_empties_the_ephemeral_region(w):
    w.tensor([1, 8, 8, 1])
    assert w.stats().arena_used > 0
    w("mem_reset_ephemeral")
    assert (w.stats().arena_used, w.stats().reset_count) == (0, 1)


def test_a_tensor_that_does_not_fit_is_none_and_changes_nothing(w):
    before = bytes(w.kernel.arena)
    assert w.tensor([1, 256, 256, 3]) is None
    assert bytes(w.kernel.arena) == before


def test_the_whole_pool_can_be_acquired_and_given_back(w):
    assert w("mem_scratch_acquire", SCRATCH) is not None
    assert w.stats().scratch_used > 0 and w.stats().scratch_total == SCRATCH
    assert w("mem_scratch_acquire", 1) is None
    w("mem_scratch_release")
    assert w.stats().scratch_used == 0
    w("mem_scratch_release")


@pytest.mark.parametrize("shape, dtype", [([1, 7, 7, 3], INT8), ([1, 3, 3, 1], FLOAT32)])
def test_data_and_descriptor_are_aligned(w, shape, dtype):
    w.tensor([1])
    t = w.tensor(shape, dtype)
    assert t.offset % 16 == 0 and t._address % 16 == 0


def test_a_reset_keeps_persistent_tensors(w):
    kept = w.tensor([1, 4, 4, 1], INT8, PERSISTENT, b"\xab" * 16)
    used = w.stats().arena_used
    w.tensor([1, 8, 8, 1], INT8, EPHEMERAL, b"\x55" * 64)
    assert w.stats().arena_used > used
    w("mem_reset_ephemeral")
    assert w.stats().arena_used == used and w.data(kept) == b"\xab" * 16
    assert w.tensor([64]) is not None  # line 17
    assert w.data(kept) == b"\xab" * 16


def test_tensors_and_scratch_do_not_overlap(w):
    t = w.tensor([1, 4, 4, 1])
    status, at = w.e(Arena.scratch, w.kernel.arena, 512)
    assert status == Status.OK and at >= t.offset + t.size
    assert w.stats().arena_used > 0 and w.stats().scratch_used > 0


def test_bad_shapes_are_none(w):
    assert w("mem_tensor_alloc", w.e.array(u32, [1]), 0, INT8, EPHEMERAL) is None
    assert w("mem_tensor_alloc", w.e.array(u32, [1] * 5), 5, INT8, EPHEMERAL) is None
    assert w("mem_tensor_alloc", None, 1, INT8, EPHEMERAL) is None


def test_after_a_reset_the_same_requests_get_the_same_places(w):
    first = [w.tensor([1, 4]).offset for _ in range(5)]
    w("mem_reset_ephemeral")
    assert w.stats().arena_used == 0
    assert [w.tensor([1, 4]).offset for _ in range(5)] == first


def test_a_dimension_of_0_gives_a_tensor_of_size_0(w):
    assert w.tensor([0, 0, 0, 0]).size == 0


def test_counts(w):
    for _ in range(20):  # line 15
        assert w.tensor([1, 4, 4, 1]) is not None
    assert w.stats().alloc_count == 20
    w("mem_reset_ephemeral")
    for shape in ([1, 2, 2, 1], [1, 4, 4, 1], [1, 4, 4, 2], [1, 8, 8, 1]):  # line 16
        for _ in range(5):
            assert w.tensor(shape) is not None


def test_accounting_is_exact(w):
    for n in (9, 7, 16, 50, 100):
        w.tensor([n])
    stats = w.stats()
    assert (stats.alloc_count, stats.arena_used, stats.arena_peak) == (5, 372, 372)


def test_the_face_pipelines_buffers_take_2784_bytes(w):
    for n in (432, 1728, 432, 64):
        w.tensor([n])
    assert w.stats().arena_used == 2784


def test_scratch_goes_with_the_reset_and_the_peak_stays(w):
    w.tensor([100])
    w("mem_scratch_acquire", 100)
    w("mem_reset_ephemeral")
    stats = w.stats()
    assert (stats.arena_used, stats.scratch_used, stats.arena_peak) == (0, 0, 132)


def test_tensor_init_leaves_data_and_lifetime_alone(w):
    t = w.e.new(Tensor, offset=77, region=3, lifetime=2)
    assert w.e(w.names["mem_tensor_init"], t, w.e.array(u32, [2, 3]), 2, FLOAT32) == Status.OK
    assert (t.size, t.ndim, list(t.shape), t.offset, t.region) == (24, 2, [2, 3, 0, 0], 77, 3)
    assert w.e(w.names["mem_tensor_init"], None, w.e.array(u32, [2, 3]), 2, FLOAT32) == Status.INVAL
    assert w.e(w.names["mem_tensor_init"], t, None, 2, FLOAT32) == Status.INVAL


def test_without_an_arena_everything_is_refused(world):
    w = world(up=False)
    assert w.tensor([4]) is None
    assert w("mem_scratch_acquire", 4) is None
    w("mem_reset_ephemeral")
    from synapticos.kernel.memory import MemStats

    assert w("mem_get_stats", w.e.new(MemStats)) == Status.INVAL
    w("mem_print_stats")


def test_stats_are_printed_in_kilobytes(w):
    w.tensor([2000])
    w.e.board.take_console()
    w("mem_print_stats")
    text = w.e.board.take_console()
    assert text == b"arena 7 KB: used 1 (persistent 0, ephemeral 1), peak 1; scratch 0/1\n"


# Spec 33.1


def test_defect_1_a_persistent_tensor_never_lies_among_ephemeral_ones(w):
    temporary = w.tensor([64], data=b"\x55" * 64)
    assert w.tensor([64], INT8, PERSISTENT) is None
    assert w.data(temporary) == b"\x55" * 64
    w("mem_reset_ephemeral")
    assert w.tensor([64], INT8, PERSISTENT) is not None


@pytest.mark.parametrize("shape", [[65536, 65536], [1, 1 << 30, 4], [U32 - 15], [U32], [1 << 16, 1 << 15, 2, U32]])
def test_defect_2_sizes_do_not_wrap(w, shape):
    before = bytes(w.kernel.arena)
    assert w.tensor(shape) is None
    assert w.tensor(shape, FLOAT32) is None
    assert bytes(w.kernel.arena) == before


@pytest.mark.parametrize("off", [1, 4, 8])
def test_defect_5_a_base_that_is_not_aligned_is_refused(world, off):
    w = world(up=False)
    assert w("mem_init", w.memory.part(off, ARENA - 16), ARENA - 64) == Status.INVAL


def test_defect_5_an_odd_size_leaves_all_aligned(world):
    w = world(up=False)
    assert w("mem_init", w.memory, 5003) == Status.OK
    status, at = w.e(Arena.scratch, w.kernel.arena, 1024)
    assert status == Status.OK and at % 16 == 0 and at + 1024 <= 5003
    assert w.tensor([100]).offset % 16 == 0


def test_defect_6_scratch_is_given_back_in_the_order_of_a_stack(w):
    for _ in range(5):
        status, at = w.e(Arena.scratch, w.kernel.arena, 1000)
        assert status == Status.OK
        assert w.e(Arena.scratch_release, w.kernel.arena, at) == Status.OK
    _, a = w.e(Arena.scratch, w.kernel.arena, 100)
    _, b = w.e(Arena.scratch, w.kernel.arena, 100)
    assert w.e(Arena.scratch_release, w.kernel.arena, a) == Status.INVAL
    assert w.e(Arena.scratch_release, w.kernel.arena, b) == Status.OK
    assert w.e(Arena.scratch_release, w.kernel.arena, a) == Status.OK


@pytest.mark.parametrize("dtype, lifetime", [(7, EPHEMERAL), (6, EPHEMERAL), (255, 0), (1 << 31, 0), (INT8, 3)])
def test_defect_8_unknown_types_are_refused(w, dtype, lifetime):
    assert w.tensor([100], dtype, lifetime) is None


def test_shared_tensors_go_with_the_ephemeral_ones(w):
    assert w.tensor([16], INT8, SHARED) is not None
    w("mem_reset_ephemeral")
    assert w.stats().arena_used == 0


def test_memory_is_not_exchanged_under_a_job(w):
    pipe = w.simple()
    job = w.submit(pipe, bytes(48))
    other = w.e.array(u8, 4096)
    assert w("mem_init", other, 4096) == Status.BUSY
    w.run()
    w.result(job)
    assert w("mem_init", other, 4096) == Status.OK


# Random sequences


class Model:
    """The arena in Python, as the specification words it."""

    def __init__(self, size: int, scratch: int) -> None:
        self.room = (size - scratch) // 16 * 16
        self.pool, self.persistent, self.end, self.scratch, self.blocks, self.allocs, self.resets, self.peak = scratch, 0, 0, [], [], 0, 0, 0

    def tensor(self, n: int, persistent: bool) -> int | None:
        at = up(self.end)
        if persistent and self.end != self.persistent or at + 32 + n > self.room:
            return None
        self.end = at + 32 + n
        if persistent:
            self.persistent = self.end
        self.blocks.append((at, self.end, persistent))
        self.peak = max(self.peak, self.end)
        self.allocs += 1
        return at

    def reset(self) -> None:
        self.end = self.persistent
        self.blocks = [b for b in self.blocks if b[2]]
        self.scratch = []
        self.resets += 1

    def take(self, n: int) -> int | None:
        start = up(self.scratch[-1][1]) if self.scratch else 0
        if n == 0 or start + n > self.pool:
            return None
        self.scratch.append((start, start + n))
        self.allocs += 1
        return self.room + start

    def give(self) -> None:
        if self.scratch:
            self.scratch.pop()


sizes = st.one_of(st.integers(0, 400), st.sampled_from([0, 15, 16, 17, 4096, U32, U32 - 31, U32 - 32, U32 - 47]))
steps = st.one_of(
    st.tuples(st.just("tensor"), sizes, st.booleans()), st.tuples(st.just("reset")), st.tuples(st.just("take"), sizes), st.tuples(st.just("give"))
)


@given(st.integers(64, 5000), st.integers(0, 600), st.lists(steps, max_size=40), st.sampled_from([0xA5, 0x5A]))
def test_any_sequence_does_what_the_model_does(engines, size, pool, ops, fill):
    e = engines(*Arena.__kernel_methods__.values())
    for each in e.each:
        each.fill = fill
    arena = e.new(Arena)
    started = e(Arena.init, arena, size, pool)
    assert started == (Status.OK if size - pool >= 16 and size > pool else Status.INVAL)
    if started != Status.OK:
        return
    model = Model(size, pool)
    for op, *rest in ops:
        if op == "tensor":
            kind = Lifetime.PERSISTENT if rest[1] else Lifetime.EPHEMERAL
            status, at = e(Arena.tensor, arena, rest[0], kind)
            want = model.tensor(*rest)
            assert (at if status == Status.OK else None) == want
        elif op == "take":
            status, at = e(Arena.scratch, arena, rest[0])
            want = model.take(rest[0])
            assert (at if status == Status.OK else None) == want
        elif op == "reset":
            e(Arena.reset, arena, 0)
            model.reset()
        elif len(model.scratch) <= 8:
            e(Arena.scratch_pop, arena)
            model.give()
        got = (arena.end, arena.persistent, arena.peak, arena.allocs, arena.resets)
        assert got == (model.end, model.persistent, model.peak, model.allocs, model.resets)
    live = sorted(b[:2] for b in model.blocks)
    assert all(a[1] <= b[0] for a, b in zip(live, live[1:], strict=False))
