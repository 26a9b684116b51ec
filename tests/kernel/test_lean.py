"""A build with all left out that an app of one model does not need: it still runs, and refuses what it cannot do."""

from pathlib import Path

import numpy as np
import pytest
from apps import PipelineOf, app_stage, host_stage, model, tables
from kernels import OPTIONS, ROOTS, World
from synapticos import importers
from synapticos.kernel.job import JobParams
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.status import Status
from synapticos.lang import u8
from synapticos.model import compile_model

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"
CPU = 1
LEAN = dict(
    MAX_JOBS=1, MAX_MODELS=1, MAX_PIPELINES=1, MAX_PIPELINE_STAGES=2, STAGE_INPUTS=1, COMPOSING=0, PLAIN_STAGES=0, HOST_STAGES=0, DSP=0, DEADLINES=0,
    MODEL_STATE=0, ACCELERATOR=0, PROFILING=0, NOTES=0, NOTE_ARGS=1, LOG_LEVEL=0, LOG_RECORDS=1, LOG_ARGS=1, PIPELINE_NAME=8, LAYER_TIMES=1,
)  # fmt: skip


@pytest.fixture
def lean(make):
    return lambda: World(make(*ROOTS, **{**OPTIONS, **LEAN}))


@pytest.fixture(scope="module")
def sine():
    return compile_model(importers.load(SINE))


def boot(w, sine, stages, **job):
    app = tables([(sine.container, CPU)], [PipelineOf(stages, result=16, job=job or None)])
    for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
        w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, data)), len(data))
    return w("app_boot")


def test_an_app_of_one_model_runs(lean, sine):
    w = lean()
    assert boot(w, sine, [model(0)], priority=2) == Status.OK
    x, y = sine.graph.inputs[0], sine.graph.outputs[0]
    for value in (0.5, 2.0, 4.0):
        q = int(np.round(value / float(x.scale[0])) + int(x.zero[0]))
        job = w.submit(w("app_pipeline", 0), np.int8(q).tobytes())
        assert w("infer_submit", w("app_pipeline", 0), w.descriptor(1, region=1, at=0), None) == 0  # one slot
        assert len(w.run()) == len(sine.layers)
        got = (np.frombuffer(w.result(job), np.int8).astype(float) - int(y.zero[0])) * float(y.scale[0])
        assert abs(got[0] - np.sin(value)) < 0.1
    assert w.kernel.stats.submitted == w.kernel.stats.done == 3 and w.kernel.unfinished == 0 and w.kernel.free.words[0] == 1


def test_a_queued_job_is_cancelled_and_its_slot_is_good(lean, sine):
    w = lean()
    assert boot(w, sine, [model(0)]) == Status.OK
    job = w.submit(w("app_pipeline", 0), b"\0")
    assert w("infer_cancel", job) == Status.OK and w("infer_wait", job, 0) == Status.CANCELED
    w("infer_detach", job)
    job = w.submit(w("app_pipeline", 0), b"\0")
    w.run()
    assert len(w.result(job)) == 1


def test_what_was_left_out_is_refused(lean, sine):
    for stages, job in (([app_stage(0, 64), model(0)], {}), ([model(0), host_stage(0, 64)], {}), ([model(0)], dict(deadline_us=5))):
        w = lean()
        assert boot(w, sine, stages, **job) == Status.INVAL
    w = lean()
    assert boot(w, sine, [model(0)]) == Status.OK
    params = w.e.new(JobParams, priority=1, deadline_us=5)
    assert w("infer_submit", w("app_pipeline", 0), w.descriptor(1, region=1, at=0), params) == 0
    assert w("infer_submit", w("app_pipeline", 0), w.descriptor(1, region=1, at=0), None) != 0
