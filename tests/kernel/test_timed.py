"""Virtual time: the timed backend and stage spend what their tables say, and interrupts come in the middle of a step."""

import pytest
from apps import PREEMPTIBLE, PipelineOf, StageOf, model, tables
from kernels import BEST_EFFORT, REALTIME, ROOTS, World
from synapticos.kernel import hal
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_ARENA, REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.sched import infer_submit
from synapticos.kernel.status import Status
from synapticos.kernel.tables import ROW_APP
from synapticos.kernel.tensor import Tensor
from synapticos.kernel.timed import TIMED_BACKEND, TimedStage, timed_load, timed_model, timed_stage
from synapticos.lang import fn, local, pack, u8, u32

TIMED = 1  # the row of the timed backend


@fn
def arrive(kernel: Kernel, pipe: u32, again: u32) -> None:
    """An interrupt: submit a job of 16 bytes and, unless `again` is 0, come back so many ticks later."""
    x = local(Tensor)
    x.region = u8(REGION_ARENA)
    x.size = 16
    x.ndim = 1
    x.shape[0] = 16
    id = infer_submit(kernel, pipe, x, None)
    assert id != 0, "there is a slot"
    if again != 0:
        now = hal.ticks(kernel.board)
        hal.interrupt_at(kernel.board, 0, now + again)


@fn
def tax(ticks: u32) -> None:
    """An interrupt that takes its time."""
    hal.spend(0, ticks)


OPTIONS = dict(MAX_JOBS=8, SCRATCH_POOL_SIZE=1024, LOG_RECORDS=64, tables={**TIMED_BACKEND, APP_STAGES: [timed_stage]})
TENSOR = dict(size=16, ndim=1, shape=[16, 0, 0, 0])


def stage(ticks: int, capacity: int = 16, **y) -> StageOf:
    return StageOf(ROW_APP, 0, capacity, pack(TimedStage, ticks=ticks, y=pack(Tensor, **{**TENSOR, **y})))


@pytest.fixture
def timed(make):
    """`w = timed(models, pipelines)`: an app of timed models, booted, the clock at 0."""

    def boot(models, pipelines):
        w = World(make(*ROOTS, arrive, tax, hal.spend, hal.interrupt_at, **OPTIONS))
        data = tables([(m, TIMED) for m in models], pipelines)
        for region, part in ((REGION_TABLES, data[0]), (REGION_CONTAINERS, data[1])):
            w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, part)), len(part))
        assert w("app_boot") == Status.OK
        w.now = lambda: w.e.board.now
        return w

    return boot


def one(steps, priority=BEST_EFFORT, before=(), after=(), number=0, deadline=0):
    job = dict(priority=priority, flags=PREEMPTIBLE, deadline_us=deadline)
    return PipelineOf([*before, model(number), *after], result=16, job=job)


def test_each_poll_takes_what_the_table_says(timed):
    """A stage, a step in one call, one in tiles of 4, 4 and 2 rows, a stage."""
    w = timed([timed_model([(1, 0, [100]), (10, 4, [7, 8, 3])], input_bytes=16)], [one(None, before=[stage(5)], after=[stage(9)])])
    job = w.submit(w("app_pipeline", 0), bytes(16))
    times = []
    for _ in range(6):
        assert w("kernel_poll")[1] == job
        times.append(w.now())
    assert times == [5, 105, 112, 120, 123, 132]
    assert w("infer_wait", job, 0) == Status.OK
    assert len(w.result(job)) == 16


def test_an_interrupt_comes_at_its_time_in_the_middle_of_a_step(timed):
    """The REALTIME job that arrives at 30 in a step of 100 has its deadline from 30 on, and goes before the next step."""
    w = timed(
        [timed_model([(1, 0, [100]), (1, 0, [100])]), timed_model([(1, 0, [10])])],
        [one(None), one(None, REALTIME, number=1, deadline=75)],
    )  # fmt: skip
    low, high = w("app_pipeline", 0), w("app_pipeline", 1)
    w.e.interrupt(0, arrive, w.kernel, high, 0)
    w.e(hal.interrupt_at, 0, 0, 30)
    first = w.submit(low, bytes(16))
    assert w("kernel_poll")[1] == first and w.now() == 100
    assert w("kernel_poll")[1] == first + 1 and w.now() == 110
    assert w.kernel.jobs[1].deadline == 105 and w.kernel.stats.misses[2] == 1
    assert w("kernel_poll")[1] == first and w.now() == 210
    assert w.kernel.stats.preemptions == 1


def test_what_an_interrupt_spends_is_on_top(timed):
    w = timed([timed_model([(1, 0, [100])])], [one(None)])
    w.e.interrupt(0, arrive, w.kernel, w("app_pipeline", 0), 40)
    w.e.interrupt(1, tax, 25)
    w.e(hal.interrupt_at, 0, 0, 10)
    w.e(hal.interrupt_at, 0, 1, 20)
    w.submit(w("app_pipeline", 0), bytes(16))
    w("kernel_poll")
    # 20 of the step, 25 of the tax, in which nothing is due, and at 50 and 90 the next arrivals.
    assert w.now() == 125
    assert [int(j.state) for j in w.kernel.jobs] == [int(s) for s in (JobState.DONE, *[JobState.QUEUED] * 3, *[JobState.FREE] * 4)]


def test_time_passes_the_end_of_the_counter(timed):
    w = timed([timed_model([(1, 0, [100])])], [one(None)])
    w.e.board.now = 0xFFFFFFFF - 49
    w.e.interrupt(0, arrive, w.kernel, w("app_pipeline", 0), 0)
    w.e(hal.interrupt_at, 0, 0, 20)
    w.submit(w("app_pipeline", 0), bytes(16))
    w("kernel_poll")
    assert w.now() & 0xFFFFFFFF == 50 and w.kernel.stats.submitted == 2


@pytest.mark.parametrize("at", [0, 4, *range(40, 80, 4)])
def test_a_damaged_table_of_costs_is_refused(make, at):
    """Any of its words made too large: nothing outside it is read."""
    e = make(timed_load, **OPTIONS)
    data = bytearray(timed_model([(1, 0, [100]), (10, 4, [7, 8, 3])], input_bytes=16))
    used = at in (0, 4, 56, 60, 64, 68, 72)  # magic, version, steps, costs, places, outputs

    def load(content):
        m = e.new(ModelMemory, container_bytes=len(content))
        m.container = e.array(u8, bytes(content))
        return e(timed_load, m)

    assert load(data) == Status.OK
    assert load(data[:-1]) == Status.INVAL
    data[at : at + 4] = (0xFFFFFFF0).to_bytes(4, "little")
    assert load(data) == (Status.INVAL if used else Status.OK)
