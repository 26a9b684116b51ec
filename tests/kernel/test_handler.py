"""Handlers: the callback that gives an app's own function the result of a job, on each engine."""

import pytest
from apps import PipelineOf, StageOf, app_stage, model, tables
from kernels import FAIL, NORMAL, OPTIONS, PASS, ROOTS, TABLES, World, stub_output
from synapticos.kernel.handler import JOB_INFO_BYTES, JobInfo, handle_result
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.sched import CALLBACKS
from synapticos.kernel.status import Status
from synapticos.kernel.tables import ROW_APP, ROW_MODEL
from synapticos.kernel.tensor import StageCall
from synapticos.lang import *


@fn
def keep(call: StageCall) -> Status:
    """Into its state: how often it ran, how many inputs it got, and what it was told of the job."""
    kept = call.state
    if kept is None or call.state_bytes != 24:
        return Status.INVAL
    state = view(u32, kept)
    told = view(JobInfo, call.y_data)
    state[0] += 1
    state[1] = call.inputs
    state[2] = told.job
    state[3] = wrap(u32, i32(told.status))
    state[4] = wrap(u32, told.finish_us)
    state[5] = 0
    if call.inputs != 0:
        state[5] = u32(call.x_data[0][3])
    return Status.OK


KEEP = len(TABLES[APP_STAGES])
OPTIONS = {**OPTIONS, "HANDLERS": 1, "tables": {**TABLES, APP_STAGES: [*TABLES[APP_STAGES], keep], CALLBACKS: [handle_result]}}
NUMBER = {PASS: 0, FAIL: 1}


def handler(binds=(), number=KEEP, kind=int(ROW_APP), capacity=JOB_INFO_BYTES, state=24) -> StageOf:
    return StageOf(kind, number, capacity, b"", list(binds), state)


class Handling(World):
    def boot(self, **pipeline):
        stages = [model(0), *(app_stage(NUMBER[s], 64) for s in pipeline.pop("after", []))]
        one = PipelineOf(stages, **{"result": 64, "sink": 1, "job": dict(priority=NORMAL), **pipeline})
        app = tables([(b"any bytes will do for the stub", 0)], [one])
        for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
            self.e(Regions.set, self.kernel.regions, int(region), self.keep(self.e.array(u8, data)), len(data))
        return self("app_boot")

    def state(self):
        one = self.kernel.pipelines.items[0]
        at = one.stages[one.count].state_at
        data = self.read(at, 24)
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, 24, 4)]

    def counts(self):
        one = self.kernel.pipelines.items[0].handled[0]
        return int(one.runs), int(one.errors), int(one.status)


@pytest.fixture
def w(make):
    return Handling(make(*ROOTS, **OPTIONS))


def test_it_is_told_of_each_job_and_its_state_is_its_own(w):
    assert w.boot(handler=handler(binds=[0])) == Status.OK and w.kernel.pipelines.items[0].count == 1
    for k in range(3):
        job = w.submit(w("app_pipeline", 0), bytes([k]) * 48)
        w.advance_us(100)
        w.run()
        assert w.state() == [k + 1, 1, job, 0, 100 * (k + 1), stub_output(bytes([k]) * 48)[3]]
        assert w.result(job) == stub_output(bytes([k]) * 48)
    assert w.counts() == (3, 0, 0)


@pytest.mark.parametrize("binds, heard", [([], 1), ([0], 0)])
def test_of_a_failed_job_only_one_hears_that_takes_nothing(w, binds, heard):
    assert w.boot(after=[FAIL], handler=handler(binds)) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    w.run()
    assert w("infer_wait", job, 0) == Status.IO and w("infer_error_at", job) == (1, 0)
    assert w.counts() == (heard, 0, 0) and w.state()[:4] == [heard, 0, job * heard, (1 << 32) + int(Status.IO) if heard else 0]


@pytest.mark.parametrize("change, status", [(dict(number=NUMBER[FAIL]), Status.IO), (dict(binds=[1]), Status.INVAL)])
def test_its_own_errors_are_counted_and_are_not_the_jobs(w, change, status):
    assert w.boot(handler=handler(**change)) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    w.run()
    assert w("infer_wait", job, 0) == Status.OK and w.counts() == (1, 1, int(status)) and w.kernel.stats.errors == 0


def test_a_cancelled_job_has_no_result_to_handle(w):
    assert w.boot(handler=handler()) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    assert w("infer_cancel", job) == Status.OK
    w.run()
    assert w.counts() == (0, 0, 0)


@pytest.mark.parametrize(
    "change",
    [dict(sink=0), dict(sink=2), dict(handler=handler(kind=int(ROW_MODEL))), dict(handler=handler(number=KEEP + 1)), dict(handler=handler(binds=[4]))],
)
def test_a_damaged_row_is_refused(w, change):
    assert w.boot(**{"handler": handler(), **change}) == Status.INVAL


def test_a_pipeline_of_that_callback_without_a_handler_is_left_alone(w):
    assert w.boot() == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    w.run()
    assert w("infer_wait", job, 0) == Status.OK and w.counts() == (0, 0, 0)
