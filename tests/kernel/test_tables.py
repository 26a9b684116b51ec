"""Apps as tables: boot, frames, pre-emption between frames, a real network on the cpu backend, damaged tables."""

from pathlib import Path

import numpy as np
import pytest
from apps import PREEMPTIBLE, PipelineOf, app_stage, builtin, host_stage, model, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import BEST_EFFORT, NORMAL, NOTE_DONE, REALTIME, ROOTS, OPTIONS, World, stub_output
from synapticos import importers
from synapticos.kernel.job import JobState
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.sched import Poll
from synapticos.kernel.stages.tables import KIND_QUANTIZE
from synapticos.kernel.status import Status
from synapticos.kernel.tables import AppHeader, frame_bytes
from synapticos.kernel.tensor import StageCall, Tensor
from synapticos.lang import u8
from synapticos.model import compile_model

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"
STUB, CPU = 0, 1
PASS, HALVE = 0, 4  # rows of kernels.TABLES[APP_STAGES]


def give(w, app):
    for region, data in ((REGION_TABLES, app[0]), (REGION_CONTAINERS, app[1])):
        buffer = w.keep(w.e.array(u8, data or b"\0"))
        w.e(Regions.set, w.kernel.regions, int(region), buffer, len(data))


def boot(w, models, pipelines, **header):
    give(w, tables(models, pipelines, **header))
    return w("app_boot")


def three(preemptible=True, steps=3):
    """The same pipeline in each class: passes of 48 bytes before the stub."""
    flags = PREEMPTIBLE if preemptible else 0
    return [PipelineOf([app_stage(PASS, 64)] * (steps - 1) + [model(0)], result=16, sink=NOTE_DONE, job=dict(priority=p, flags=flags)) for p in (0, 1, 2)]


MODEL = [(b"any bytes will do for the stub", STUB)]


def test_an_app_boots_and_runs(w):
    assert boot(w, MODEL, three()) == Status.OK
    pipe = w("app_pipeline", 1)
    assert pipe == 2 and w("app_pipeline", 3) == w("app_pipeline", 99) == 0
    job = w.submit(pipe, b"\x11" * 48)
    w.run()
    assert w.events() == [(job, 0, 0, 1)]
    assert w.result(job) == stub_output(b"\x11" * 48)


def test_frames_are_what_the_planner_says_and_use_equals_plan(w):
    """Buffers of 64, 64 and a model's 64 bytes: two neighbours, 128; results 16 a slot, before the frames."""
    frames = [dict(at=64 + 128 * i, bytes=128) for i in range(3)]
    assert frame_bytes([64, 64, 64]) == 128
    assert boot(w, MODEL, three(), frames=frames) == Status.OK
    assert [(f.at, f.bytes) for f in w.kernel.frames][:3] == [(64 + 128 * i, 128) for i in range(3)]
    for i in range(3):
        w.submit(w("app_pipeline", i), bytes(48))
    w.run()
    assert [f.used for f in w.kernel.frames] == [128, 128, 128, 0]
    assert w.stats().arena_used == w.stats().arena_peak == 64 + 3 * 128


@pytest.mark.parametrize("change", [dict(at=64, bytes=112), dict(at=80, bytes=128)])
def test_a_plan_that_is_wrong_is_refused(w, change):
    frames = [dict(at=64 + 128 * i, bytes=128) for i in range(3)]
    frames[0] = change
    assert boot(w, MODEL, three(), frames=frames) == Status.INVAL
    assert w.kernel.note.code == Status.INVAL and w.kernel.note.count == 4


def test_an_app_that_does_not_fit_is_refused_with_figures(world):
    w = world(arena=1024 + 320, scratch=1024)
    assert boot(w, MODEL, three()) == Status.NOMEM
    assert list(w.kernel.note.args)[:3] == [2, 128, 0]


def test_a_more_urgent_job_goes_between_two_steps(w):
    assert boot(w, MODEL, three()) == Status.OK
    low = w.submit(w("app_pipeline", 0), b"\1" * 48)
    w("kernel_poll")
    middle = w.submit(w("app_pipeline", 1), b"\2" * 48)
    w("kernel_poll")
    high = w.submit(w("app_pipeline", 2), b"\3" * 48)
    assert w("kernel_poll") == (Poll.RAN, high)
    assert [JobState(int(j.state)) for j in w.kernel.jobs][:3] == [JobState.SUSPENDED, JobState.SUSPENDED, JobState.RUNNING]
    w.run()
    assert [e[0] for e in w.events()] == [high, middle, low]
    assert [w.result(j) for j in (low, middle, high)] == [stub_output(bytes([i]) * 48) for i in (1, 2, 3)]
    assert w.kernel.stats.preemptions == 2


def test_a_job_that_is_not_preemptible_runs_to_its_end(w):
    assert boot(w, MODEL, three(preemptible=False)) == Status.OK
    low = w.submit(w("app_pipeline", 0), bytes(48))
    w("kernel_poll")
    high = w.submit(w("app_pipeline", 2), bytes(48))
    w.run()
    assert [e[0] for e in w.events()] == [low, high]


def test_a_suspended_job_can_be_cancelled_and_its_frame_is_free(w):
    assert boot(w, MODEL, three()) == Status.OK
    low = w.submit(w("app_pipeline", 0), bytes(48))
    w("kernel_poll")
    w.submit(w("app_pipeline", 2), bytes(48))
    w("kernel_poll")
    assert w("infer_cancel", low) == Status.OK
    again = w.submit(w("app_pipeline", 0), b"\7" * 48)
    w.run()
    assert w.result(again) == stub_output(b"\7" * 48)


def test_a_half_done_job_goes_before_the_queued_ones_of_its_class(w):
    assert boot(w, MODEL, three()) == Status.OK
    first = w.submit(w("app_pipeline", 0), bytes(48))
    w("kernel_poll")
    nearer = w.submit(w("app_pipeline", 0), bytes(48), BEST_EFFORT, NOTE_DONE, deadline=1, preemptible=True)
    w.run()
    assert [e[0] for e in w.events()] == [first, nearer]


def test_a_class_whose_frame_is_too_small_is_refused(w):
    one = three()
    one[2].stages = [model(0)]
    assert boot(w, MODEL, one) == Status.OK
    assert w.submit(w("app_pipeline", 0), bytes(48), REALTIME) == 0 and w.status == Status.NOMEM
    assert w.submit(w("app_pipeline", 2), bytes(48), NORMAL) != 0


def test_a_host_stage_waits_while_other_classes_run(w):
    pipelines = three()
    pipelines[2].stages[0] = host_stage(5, 64)
    assert boot(w, MODEL, pipelines) == Status.OK
    high = w.submit(w("app_pipeline", 2), b"\1" * 48)
    assert w("kernel_poll") == (Poll.HOST, high)
    low = w.submit(w("app_pipeline", 0), b"\2" * 48)
    call = w.e.new(StageCall)
    assert w("stage_take", high, call) == (Status.OK, 5)
    w.run()
    assert w.result(low) == stub_output(b"\2" * 48)
    w.write(call.y.offset, b"\3" * 48)
    assert w("stage_done", high, Status.OK, w.descriptor(48)) == Status.OK
    w.run()
    assert w.result(high) == stub_output(b"\3" * 48)


def test_results_live_in_their_slot_until_read(w):
    assert boot(w, MODEL, three()) == Status.OK
    pipe = w("app_pipeline", 1)
    jobs = [w.submit(pipe, bytes([i]) * 48) for i in range(4)]
    w.run()
    w("mem_reset_ephemeral")
    assert [w.result(j) for j in jobs] == [stub_output(bytes([i]) * 48) for i in range(4)]


def test_a_real_network_runs_layer_by_layer(w):
    """The sine model of the repository: f(x) = sin(x), int8 to int8, on the cpu backend, its scales handed on."""
    compiled = compile_model(importers.load(SINE))
    graph = compiled.graph
    pipelines = [PipelineOf([model(0)], result=16)]
    assert boot(w, [(compiled.container, CPU)], pipelines) == Status.OK
    x, y = graph.inputs[0], graph.outputs[0]
    for value in (0.5, 2.0, 4.0):
        q = int(np.round(value / float(x.scale[0])) + int(x.zero[0]))
        w("prof_enable_layer_trace")
        job = w.submit(w("app_pipeline", 0), np.int8(q).tobytes())
        assert w.kernel.jobs[0].quant[0].scale == 0.0  # nothing is known of what the caller hands in
        polls = w.run()
        assert len(polls) == len(compiled.layers)
        t = w.e.new(Tensor)
        assert w("infer_output", job, 0, t) == Status.OK and w.kernel.jobs[0].quant[0].scale == float(y.scale[0])
        got = (np.frombuffer(w.result(job), np.int8).astype(float) - int(y.zero[0])) * float(y.scale[0])
        assert abs(got[0] - np.sin(value)) < 0.1
        assert w("prof_get_layer_ticks", len(polls) - 1)[0] == Status.OK


def test_a_damaged_model_is_refused_at_boot(w):
    data = bytearray(compile_model(importers.load(SINE)).container)
    data[200] ^= 1
    assert boot(w, [(bytes(data), CPU)], [PipelineOf([model(0)], result=16)]) == Status.ILSEQ


@pytest.mark.parametrize("change, status", [
    (dict(magic=1), Status.INVAL), (dict(version=9), Status.NOTSUP), (dict(pipelines=5), Status.NOMEM), (dict(models=5), Status.INVAL),
    (dict(stages_at=2), Status.INVAL), (dict(jobs_at=0xFFFFFFF8), Status.INVAL), (dict(pipelines_at=1 << 20), Status.INVAL), (dict(stages=2), Status.INVAL),
])  # fmt: skip
def test_damaged_headers_are_refused(w, change, status):
    assert boot(w, MODEL, three(), change=change) == status


def test_rows_that_name_what_is_not_there_are_refused(world):
    for stages in ([app_stage(99, 64), model(0)], [app_stage(PASS, 0), model(0)], [model(1)], [model(0), model(0)], [builtin(KIND_QUANTIZE, 64), model(0)], [builtin(77, 64), model(0)], [app_stage(PASS, 64)], []):
        w = world()
        assert boot(w, MODEL, [PipelineOf(stages)]) != Status.OK
    assert boot(world(), MODEL, [PipelineOf([model(0)], sink=3)]) == Status.INVAL
    assert boot(world(), MODEL, [PipelineOf([model(0)], result=16)], result_bytes=8) == Status.INVAL
    assert boot(world(), MODEL, [PipelineOf([model(0)], job=dict(priority=3))]) == Status.INVAL


def test_a_stages_state_lives_from_run_to_run_and_can_be_cleared(w):
    stage = app_stage(6, 48)
    stage.state = 4
    w.write(0, b"\xa5" * 64)
    assert boot(w, MODEL, [PipelineOf([stage, model(0)], result=16)]) == Status.OK
    pipe = w("app_pipeline", 0)

    def counts(n):
        seen = []
        for _ in range(n):
            job = w.submit(pipe, bytes(48))
            w.run()
            seen.append(w.result(job).index(127))
        return seen

    assert counts(3) == [48 * n % 10 for n in (1, 2, 3)]
    assert w("app_clear_state", pipe) == Status.OK and w("app_clear_state", 99) == Status.INVAL
    assert counts(1) == [8]


def test_binds_choose_among_the_outputs_of_the_step_before(w):
    assert boot(w, MODEL, [PipelineOf([model(0), app_stage(HALVE, 64, binds=[0])], result=16)]) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    w.run()
    assert w.result(job) == bytes([127, 0, 0, 0, 0])
    from kernels import World

    w = World(w.e)
    assert boot(w, MODEL, [PipelineOf([model(0), app_stage(HALVE, 64, binds=[1])], result=16)]) == Status.OK
    job = w.submit(w("app_pipeline", 0), bytes(48))
    w.run()
    assert w("infer_wait", job, 0) == Status.INVAL


@settings(max_examples=60)
@given(st.integers(0, 399), st.integers(0, 255))
def test_no_damaged_byte_of_the_tables_traps(engines, at, byte):
    """Boot and run with one byte changed: any status, but no bad access and the same on all engines."""
    app = tables(MODEL, three(), frames=[dict(at=64 + 128 * i, bytes=128) for i in range(3)])
    data = bytearray(app[0])
    data[at % len(data)] = byte
    outcomes = []
    for engine in engines(*ROOTS, **OPTIONS).each:
        w = World(engine)
        give(w, (bytes(data), app[1]))
        status = w("app_boot")
        seen = [status]
        if status == Status.OK:
            for i in range(3):
                seen.append(w.submit(w("app_pipeline", i), bytes(48)))
            seen += [*w.run(), w.events()]
        outcomes.append(seen)
    assert all(o == outcomes[0] for o in outcomes)



@settings(max_examples=25)
@given(st.lists(st.one_of(st.tuples(st.just("submit"), st.integers(0, 2), st.booleans()), st.just(("poll",)), st.just(("poll",))), max_size=40), st.sampled_from([0xA5, 0x5A]))
def test_suspended_jobs_keep_their_bytes(engines, ops, fill):
    for engine in engines(*ROOTS, **OPTIONS).each[1:]:
        engine.fill = fill
        w = World(engine)
        engine.fill = 0
        assert boot(w, MODEL, three(steps=4)) == Status.OK
        pipes = [w("app_pipeline", i) for i in range(3)]
        jobs = {}
        for op, *rest in ops:
            if op == "submit":
                data = bytes([len(jobs) * 7 % 256] * 48)
                job = w.submit(pipes[rest[0]], data, rest[0], preemptible=rest[1])
                if job:
                    jobs[job] = data
            else:
                w("kernel_poll")
            begun = [j.priority for j in w.kernel.jobs if JobState(int(j.state)) in (JobState.RUNNING, JobState.SUSPENDED)]
            assert len(begun) == len(set(begun))  # at most one half done in a class
            for job, data in list(jobs.items()):
                if w("infer_state", job) == JobState.DONE:
                    assert w.result(job) == stub_output(data)
                    del jobs[job]
        w.run()
        for job, data in jobs.items():
            assert w.result(job) == stub_output(data)


@pytest.mark.only("native")
def test_every_byte_of_the_tables_damaged_three_ways(make):
    """Boot, run and read, in C that traps: any status, but no bad access."""
    engine = make(*ROOTS, **OPTIONS, checks=True)
    app = tables(MODEL, three(), frames=[dict(at=64 + 128 * i, bytes=128) for i in range(3)])
    w, booted = World(engine), 0
    for at in range(len(app[0])):
        for change in (0x01, 0x80, 0xFF):
            data = bytearray(app[0])
            data[at] ^= change
            w("kernel_boot", w.kernel.board)
            assert w("kernel_init", w.memory, 8192, 1024) == Status.OK
            give(w, (bytes(data), app[1]))
            if w("app_boot") == Status.OK:
                booted += 1
                for i in range(3):
                    w.submit(w("app_pipeline", i), bytes(48))
                w.run()
    assert booted > 0


@pytest.mark.only("checked")
def test_a_slot_that_is_taken_again_while_poll_picks_it_waits_its_turn(w):
    """An interrupt just before dispatch cancels the picked job and submits one of a class whose frame is in use."""
    assert boot(w, MODEL, three()) == Status.OK
    low = w.submit(w("app_pipeline", 0), b"\x11" * 48)
    w("kernel_poll")  # half done, in the frame of class 0
    urgent, mine = w.submit(w("app_pipeline", 2), b"\x22" * 48), []
    enter, sections = w.e.board.critical_enter, []

    def interrupted(board):
        sections.append(0)
        if len(sections) == 2:  # the first is where poll looks for what was posted
            assert w("infer_cancel", urgent) == Status.OK and w("infer_detach", urgent) == Status.OK
            mine.append(w.submit(w("app_pipeline", 0), b"\x33" * 48))
        return enter(board)

    w.e.board.critical_enter = interrupted
    w("kernel_poll")
    w.e.board.critical_enter = enter
    assert mine and w.kernel.frames[0].owner == 1 and JobState(int(w.kernel.jobs[0].state)) in (JobState.RUNNING, JobState.SUSPENDED)
    w.run()
    assert w.result(low) == stub_output(b"\x11" * 48) and w.result(mine[0]) == stub_output(b"\x33" * 48)


def limited(make, limits=None, at=None):
    """A kernel booted with an app of two pipelines, whose five stages may take `limits`; its status."""
    w = World(make(*ROOTS, **OPTIONS, WATCHDOGS=1, WATCHDOG_US=7))
    data, containers = tables(MODEL, three()[:1] + [PipelineOf([app_stage(PASS, 64), model(0)], result=16)])
    if limits is not None:
        at = len(data) if at is None else at
        field = next(offset for name, offset, _ in AppHeader.layout() if name == "watchdogs_at")
        data = data[:field] + at.to_bytes(4, "little") + data[field + 4 :] + b"".join(n.to_bytes(4, "little") for n in limits)
    give(w, (data, containers))
    return w, w("app_boot")


def test_each_stage_may_have_a_watchdog_of_its_own(make):
    for limits, got in ((None, [7] * 5), ([5, 0, 0xFFFFFFFF, 1, 2], [5, 0, 0xFFFFFFFF, 1, 2])):
        w, status = limited(make, limits)
        assert status == Status.OK
        items = w.kernel.pipelines.items
        assert [items[p].stages[k].watchdog_us[0] for p, n in ((0, 3), (1, 2)) for k in range(n)] == got


@pytest.mark.parametrize("limits, at", [([1] * 4, None), ([1] * 5, 6), ([1] * 5, 0xFFFFFFF0)])
def test_watchdogs_outside_of_the_tables_are_refused(make, limits, at):
    assert limited(make, limits, at)[1] == Status.INVAL
