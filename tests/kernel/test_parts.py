"""Pipelines of several inputs, from app tables: what boot accepts, and that jobs of them do not disturb each other."""

import pytest
from apps import PipelineOf, StageOf, app_stage, model, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import OPTIONS, ROOTS, TIMED, World
from synapticos.engine import Build
from synapticos.kernel.parts import Part
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.status import Status
from synapticos.kernel.tables import ROW_PART
from synapticos.lang import pack, u8

from synapticos import importers
from synapticos.model import compile_model
from tflite_writer import Writer

CPU = 1


@pytest.fixture(scope="module")
def container():
    """Two inputs, of 5 and of 3 bytes, one after the other."""
    w = Writer()
    a, b, y = w.tensor("a", (1, 5), 1.0), w.tensor("b", (1, 3), 1.0), w.tensor("y", (1, 8), 1.0)
    w.op("CONCATENATION", [a, b], [y], 2, "ConcatenationOptions", Axis=1)
    return compile_model(importers.read(w.finish([a, b], [y]), "parts")).container


def part(at, size, place, wanted, **fields):
    shape = fields.pop("shape", [size, 0, 0, 0])
    return StageOf(ROW_PART, 0, 0, pack(Part, **{**dict(at=at, size=size, shape=shape, dtype=0, ndim=1, place=place, bytes=wanted), **fields}))


def boot(w, container, stages):
    app = tables([(container, CPU)], [PipelineOf(stages, result=16)])
    for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
        w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, data)), len(data))
    return w("app_boot")


GOOD = [part(0, 5, 0, 5), part(16, 3, 16, 3), model(0)]


@pytest.fixture
def world(make):
    return lambda: World(make(*ROOTS, **OPTIONS))


def test_parts_reach_their_place_and_jobs_keep_theirs(world, container):
    w = world()
    # The second input comes first in the job's.
    assert boot(w, container, [part(16, 5, 0, 5), part(0, 3, 16, 3), model(0)]) == Status.OK
    pipe = w("app_pipeline", 0)
    data = [bytes(range(10 * k, 10 * k + 3)) + bytes(13) + bytes(range(10 * k + 50, 10 * k + 55)) for k in range(2)]
    jobs = [w.submit(pipe, d) for d in data]
    w.run()
    for job, d in zip(jobs, data):
        assert bytes(w.result(job)) == d[16:] + d[:3]


@pytest.mark.parametrize(
    "stages",
    [
        [part(0, 5, 0, 4), part(16, 3, 16, 3), model(0)],  # not what the model takes there
        [part(0, 5, 0, 5), part(16, 3, 8, 3), model(0)],  # not at a multiple of 16
        [part(0, 5, 0, 5), part(16, 3, 32, 3), model(0)],  # behind the block
        [part(0, 5, 0, 5), part(0, 40, 16, 40), model(0)],  # longer than the block
        [part(0, 5, 0xFFFFFFF0, 5), model(0)],
        [part(0, 5, 0, 5, dtype=9), part(16, 3, 16, 3), model(0)],
        [part(0, 5, 0, 5, ndim=0), part(16, 3, 16, 3), model(0)],
        [part(0, 5, 0, 5, ndim=5), part(16, 3, 16, 3), model(0)],
        [part(0, 5, 0, 5, shape=[0x10000, 0x10000, 0, 0], ndim=2), part(16, 3, 16, 3), model(0)],
        [part(0, 5, 0, 5), app_stage(0, 8), part(16, 3, 16, 3), model(0)],  # the stage's room is not the model's
        [app_stage(0, 8), part(16, 3, 16, 3), model(0)],  # a part must begin
        [model(0), part(16, 3, 16, 3)],
        [StageOf(ROW_PART, 0, 0, b"\0" * 8), model(0)],
    ],
)
def test_damaged_parts_are_refused_at_boot(world_checked, container, stages):
    w = world_checked()
    assert boot(w, container, stages) == Status.INVAL


@pytest.mark.parametrize("stages", [[part(0, 48, 0, 48)], [part(0, 5, 0, 5), app_stage(0, 64)], [part(0, 5, 0, 5)] * 8])
def test_parts_without_a_model_are_refused_at_boot(make, stages):
    w = World(make(*ROOTS, **TIMED))
    source = dict(bytes=48, hop=48, ndim=1, shape=[48, 0, 0, 0], dtype=0, keep=2)
    pipeline = PipelineOf(stages, source=1, feed=2)
    for region, data in zip((REGION_TABLES, REGION_CONTAINERS), tables([(b"any bytes", 0)], [pipeline], sources=[source] * 2), strict=True):
        w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, data)), len(data))
    assert w("app_boot") == Status.INVAL


def test_a_part_outside_the_jobs_input_ends_the_job(world, container):
    w = world()
    assert boot(w, container, GOOD) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(18))
    w.run()
    assert w("infer_wait", job, 0) == Status.MSGSIZE
    w("infer_detach", job)
    job = w.submit(w("app_pipeline", 0), bytes(range(19)))
    w.run()
    assert bytes(w.result(job)) == bytes([0, 1, 2, 3, 4, 16, 17, 18])


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=40, max_size=40), st.integers(0, 39), st.integers(0, 255))
def test_any_byte_of_a_part_may_be_wrong(world_checked, container, noise, at, value):
    raw = bytearray(GOOD[1].config)
    raw[at % len(raw)] = value
    w = world_checked()
    status = boot(w, container, [GOOD[0], StageOf(ROW_PART, 0, 0, bytes(raw)), model(0)])
    assert status in (Status.OK, Status.INVAL)
    if status == Status.OK:
        job = w.submit(w("app_pipeline", 0), noise)
        w.run()
        assert w("infer_wait", job, 0) in (Status.OK, Status.MSGSIZE)


@pytest.fixture(scope="module")
def world_checked():
    engine = Build(list(ROOTS), **OPTIONS).engine("checked")
    return lambda: World(engine)
