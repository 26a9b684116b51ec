"""An interrupt at every point at which one may strike: every job ends once, with the right bytes, and nothing is lost."""

import os
import random
import threading
import time

import pytest
from apps import PREEMPTIBLE, PipelineOf, app_stage, model, tables
from interleavings import CANCELLED, DONE, ERROR, Player, Run, Watcher, ended_once
from kernels import NOTE_DONE, OPTIONS, REALTIME, ROOTS, World, stub_output
from synapticos.kernel.job import JobParams
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.region import REGION_CONTAINERS, REGION_TABLES, Regions
from synapticos.kernel.sched import infer_abort, infer_cancel, infer_set_deadline
from synapticos.kernel.status import Status
from synapticos.kernel.submit import infer_post
from synapticos.lang import u8

pytestmark = pytest.mark.slow  # all together
ALL = os.environ.get("SYNAPTICOS_INTERLEAVINGS") == "all"  # no point is left out
PASS = 0
CALLS = {"infer_cancel": infer_cancel, "infer_abort": infer_abort, "infer_set_deadline": infer_set_deadline}


def stride(w, usual: int) -> int:
    """Every point if all are asked for; else every so manieth, fewer on the engine that takes longest."""
    return 1 if ALL else usual * 3 + 2 if w.e.name == "checked" else usual


@pytest.fixture(params=[4, 8], ids=["few slots", "queues"])
def app(make, request):
    """A kernel with a pre-emptible pipeline of three steps in each class, with as few slots as make do without queues, or more."""
    assert make.engine != "native", "its instructions are not counted; the emulated core's are"
    return boot(make, request.param)


def boot(make, slots):
    w = World(make(*ROOTS, **OPTIONS | {"MAX_JOBS": slots}))
    job = lambda p: dict(priority=p, flags=PREEMPTIBLE)
    pipelines = [PipelineOf([app_stage(PASS, 64), app_stage(PASS, 64), model(0)], result=16, sink=NOTE_DONE, job=job(p)) for p in (0, 1, 2)]
    for region, part in zip((REGION_TABLES, REGION_CONTAINERS), tables([(b"any bytes will do", 0)], pipelines), strict=True):
        w.e(Regions.set, w.kernel.regions, int(region), w.keep(w.e.array(u8, part)), len(part))
    assert w("app_boot") == Status.OK
    w.pipes = [w("app_pipeline", i) for i in range(3)]
    return w


def content(id: int) -> bytes:
    return bytes([17 * id % 256] * 48)


def submit(w, priority, deadline=0):
    """A job of a class, its input made of its id."""
    id = w.kernel.next_id
    assert w.submit(w.pipes[priority], content(id), priority, callback=NOTE_DONE, preemptible=True, deadline=deadline) == id
    return id


def posting(w, priority, deadline=0, preemptible=True):
    """The interrupt that submits one."""
    params = w.keep(w.e.new(JobParams, priority=priority, callback=NOTE_DONE, preemptible=preemptible, deadline_us=deadline))
    buffer = w.keep(w.e.array(u8, content(w.kernel.next_id)))
    return [infer_post, w.kernel, w.pipes[priority], w.keep(w.descriptor(48)), buffer, None, 0, params]


def right_bytes(w, id):
    assert w.result(id) == stub_output(content(id)), id


@pytest.mark.parametrize("deadline", [0, 1000])
@pytest.mark.only("checked", "cortex-m")
def test_an_urgent_job_comes_at_any_point(app, deadline):
    """It goes next, whatever step it came in, ends once, and so does the one that it interrupts, with its own bytes."""
    low = submit(app, 0)
    interrupt = posting(app, REALTIME, deadline)
    player = Player(app)
    points = 0
    for run in player.runs(interrupt, stride(app, 7)):
        points += 1
        status, high = run.answer
        assert status == Status.OK
        player.watcher.check_idle(app)
        assert [ended_once(app, i) for i in (low, high)] == [DONE, DONE]
        order = [i for i in run.ran if i == high]
        first = run.ran.index(high)
        assert len(order) == 3 and first <= run.poll + 1, run
        assert run.ran[first : first + 3] == [high] * 3, run
        right_bytes(app, low), right_bytes(app, high)
    assert points > 40


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("how", [infer_cancel, infer_abort])
@pytest.mark.only("checked", "cortex-m")
def test_a_job_is_ended_from_outside_at_any_point(app, how, target):
    """One half done and suspended, one running, one queued: what the answer says of the target is what becomes of it."""
    jobs = [submit(app, 0)]
    app("kernel_poll")
    jobs.append(submit(app, 1))
    app("kernel_poll")
    jobs.append(submit(app, 1))
    player = Player(app)
    seen = set()
    for run in player.runs([how, app.kernel, jobs[target]], stride(app, 11)):
        player.watcher.check_idle(app)
        states = [ended_once(app, i) for i in jobs]
        seen.add(run.answer)
        if run.answer == Status.OK:
            assert states[target] == CANCELLED, run
        else:
            assert run.answer == Status.ALREADY or (run.answer == Status.BUSY and how is infer_cancel), run
            assert states[target] == DONE, run
        assert all(s == DONE for i, s in enumerate(states) if i != target), run
        for id, state in zip(jobs, states, strict=True):
            if state == DONE:
                right_bytes(app, id)
    assert Status.ALREADY in seen and len(seen) > 1


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.only("checked", "cortex-m")
def test_a_deadline_changes_at_any_point(app, target):
    """Three jobs of a class, and one of them becomes the most urgent: at the latest from the next poll on it goes before
    the others that have not begun."""
    jobs = [submit(app, 1, deadline=1000 * (i + 2)) for i in range(3)]
    player = Player(app)
    orders = set()
    for run in player.runs([infer_set_deadline, app.kernel, jobs[target], 500], stride(app, 29)):
        assert run.answer in (Status.OK, Status.ALREADY), run
        player.watcher.check_idle(app)
        assert all(ended_once(app, i) == DONE for i in jobs)
        begins = list(dict.fromkeys(run.ran))
        orders.add(tuple(begins))
        wanted = []
        for poll in (run.poll, run.poll + 1):  # each takes three: who has begun before that one
            begun = jobs[: -(-poll // 3)]
            wanted.append([*begun, *(i for i in [jobs[target], *jobs] if i not in begun)])
        assert begins in [list(dict.fromkeys(order)) for order in wanted], run
        for id in jobs:
            right_bytes(app, id)
    assert target == 0 or len(orders) == target + 1, orders


@pytest.mark.only("checked", "cortex-m")
def test_an_interrupt_that_does_nothing_leaves_no_trace(app):
    """Wherever it strikes the kernel's bytes are those of a run without it: what is seen elsewhere is not the player's doing."""
    submit(app, 0)
    app("kernel_poll")
    submit(app, 2, deadline=50)
    player = Player(app)
    player.drain(Run(None, 0, None))
    upto = next(f.offset for f in app.e.type(Kernel).fields if f.name == "board")
    undisturbed = bytes(app.kernel)[:upto]
    player.restore()
    for run in player.runs([infer_cancel, app.kernel, 99], stride(app, 7)):
        assert run.answer == Status.NOENT
        assert bytes(app.kernel)[:upto] == undisturbed, run


@pytest.mark.only("checked", "cortex-m")
def test_slots_run_out_at_any_point(app):
    """All slots but one are taken: the job from the interrupt gets the last, and nobody else's."""
    jobs = [submit(app, p) for p in (0, 1, 0)]
    player = Player(app)
    for run in player.runs(posting(app, 1), stride(app, 13)):
        status, more = run.answer
        assert status == Status.OK and more not in jobs
        player.watcher.check_idle(app)
        assert all(ended_once(app, i) == DONE for i in [*jobs, more])
        for id in [*jobs, more]:
            right_bytes(app, id)


@pytest.mark.parametrize("slots", [4, 8])
@pytest.mark.only("native")
def test_threads_submit_and_end_jobs_while_another_runs_them(make, slots):
    """What an abort or a cancel answers is what becomes of the job, on two cores as between two instructions."""
    w = boot(make, slots)
    running, wrong, ended = [True], [], []

    def kernel():
        while running:
            w("kernel_poll")

    def client(seed):
        rng = random.Random(seed)
        for _ in range(150):
            data = bytes([rng.randrange(256)] * 48)
            id = w.submit(w.pipes[rng.randrange(3)], data, rng.randrange(3), deadline=rng.choice([0, 50, 5000]), preemptible=True)
            if id == 0:
                time.sleep(0.0005)
                continue
            act = rng.choice([None, "infer_cancel", "infer_abort", "infer_set_deadline"])
            arguments = (id, 100) if act == "infer_set_deadline" else (id,)
            answer = w.e(CALLS[act], w.kernel, *arguments) if act else None
            while w("infer_state", id) not in (DONE, ERROR, CANCELLED):
                time.sleep(0.0002)
            state = w("infer_state", id)
            right = state == (CANCELLED if act in ("infer_cancel", "infer_abort") and answer == Status.OK else DONE)
            if not right or (state == DONE and w.result(id) != stub_output(data)):
                wrong.append((id, act, answer, state))
            if state != DONE:
                w("infer_get_result", id, w.descriptor(0))
            ended.append(id)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(2)]
    runner = threading.Thread(target=kernel)
    for thread in (runner, *threads):
        thread.start()
    for thread in threads:
        thread.join(60)
    running.clear()
    runner.join(60)
    w.run()
    assert wrong == [] and len(ended) == len(set(ended)) == w.kernel.stats.submitted
    Watcher(w).check_idle(w)
