"""The runtime: jobs as futures, NumPy in and out, and what goes wrong in one line."""

import asyncio
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import synapticos as syn
from synapticos.errors import KernelError, UserError
from synapticos.host.firmware import build_firmware
from synapticos.kernel.status import Status

SINE = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"


def make(*after):
    """An app: a byte in, its sine out, and stages of the caller's behind that."""
    app = syn.App("test")
    source = app.frames("angle", (1, 1), "int8")
    pipeline = app.pipeline("wave", source).model(app.model(SINE, outputs=("y",)))
    for step in after:
        step(pipeline)
    app.job(pipeline)
    return app


def byte(q):
    return np.array([[q]], np.int8)


@pytest.fixture
def runtime():
    with syn.Runtime(make(lambda p: p.dequantize())) as rt:
        yield rt


def test_a_result_is_the_networks(runtime):
    for q in range(-128, 128, 16):
        angle = (q + 128) * 0.0246399
        assert abs(runtime.run("wave", byte(q))[0, 0] - np.sin(angle)) < 0.06


def test_results_stay_as_they_were_when_other_jobs_run(runtime):
    results = [runtime.run("wave", byte(q)) for q in (-128, -64, 0, 64)]
    again = [runtime.run("wave", byte(q)) for q in (-128, -64, 0, 64)]
    assert [r.tobytes() for r in results] == [r.tobytes() for r in again]
    assert len({r.tobytes() for r in results}) > 1


def test_jobs_are_futures_in_any_order(runtime):
    jobs = [runtime.submit("wave", byte(q)) for q in (-128, -64, 0)]
    late = jobs[2].result(timeout=5)
    assert jobs[0].result() is jobs[0].result()
    assert jobs[1].done and late.shape == (1, 1)


def test_a_full_table_is_said_and_passes(runtime):
    jobs = [runtime.submit("wave", byte(0)) for _ in range(4)]
    with pytest.raises(KernelError, match="all job slots are taken") as caught:
        runtime.submit("wave", byte(0))
    assert caught.value.status == Status.BUSY
    for job in jobs:
        job.result()
    assert runtime.run("wave", byte(0)).shape == (1, 1)


def test_a_cancelled_job_says_so(runtime):
    job = runtime.submit("wave", byte(0))
    assert job.cancel() and not job.cancel()
    with pytest.raises(KernelError, match="was cancelled"):
        job.result()


def test_a_job_can_be_awaited(runtime):
    async def both():
        jobs = [runtime.submit("wave", byte(q)) for q in (-128, -64)]
        return await asyncio.gather(*(_result(job) for job in jobs))

    async def _result(job):
        return await job

    first, second = asyncio.run(both())
    assert second[0, 0] > first[0, 0]


def test_many_threads_get_their_own_results(runtime):
    expected = {q: runtime.run("wave", byte(q)).tobytes() for q in range(-128, 128, 32)}
    wrong = []

    def work(q):
        for _ in range(25):
            while True:
                try:
                    got = runtime.run("wave", byte(q)).tobytes()
                    break
                except KernelError as error:  # a full table: others are at it
                    if error.status != Status.BUSY:
                        raise
            if got != expected[q]:
                wrong.append(q)

    threads = [threading.Thread(target=work, args=(q,)) for q in list(expected)[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_runtimes_in_one_process_share_nothing(runtime):
    with syn.Runtime(make(lambda p: p.dequantize()), engine="checked") as other:
        mine = runtime.submit("wave", byte(-64))
        assert other.run("wave", byte(-64)).tobytes() == mine.result().tobytes()


def test_an_aligned_array_goes_in_without_a_copy(runtime):
    raw = np.zeros(32, np.int8)
    at = -raw.ctypes.data % 16
    data = raw[at : at + 1].reshape(1, 1)
    job = runtime.submit("wave", data, priority=syn.NORMAL)  # what is small and as urgent as ever is copied: that is faster
    assert job._held[0] is data
    data[0, 0] = -64  # before it runs: the kernel reads it where it lies
    assert job.result().tobytes() == runtime.run("wave", byte(-64)).tobytes()


def test_a_result_can_be_written_where_the_caller_wants(runtime):
    raw = np.zeros(16, np.float32)
    at = (-raw.ctypes.data % 16) // 4
    out = raw[at : at + 1].reshape(1, 1)
    assert runtime.run("wave", byte(-64), out=out) is out
    assert out[0, 0] > 0.9


def test_what_does_not_fit_is_said_with_both_shapes(runtime):
    with pytest.raises(UserError, match="takes i8 1 x 1, the array is float64 3"):
        runtime.run("wave", np.zeros(3))
    with pytest.raises(UserError, match='no pipeline "waves"; there is wave'):
        runtime.run("waves", byte(0))


def test_a_class_without_a_frame_for_the_pipeline_is_named(runtime):
    with pytest.raises(UserError, match="no frame in class REALTIME: declare"):
        runtime.submit("wave", byte(0), priority=syn.REALTIME)


def test_a_closed_runtime_refuses(runtime):
    runtime.close()
    with pytest.raises(UserError, match="is closed"):
        runtime.submit("wave", byte(0))


@syn.host_stage
def twice(values):
    return values * 2


def test_a_host_stage_runs_numpy_in_the_pipeline():
    with syn.Runtime(make(lambda p: p.dequantize())) as plain, syn.Runtime(make(lambda p: p.dequantize(), lambda p: p.stage(twice))) as rt:
        assert rt.run("wave", byte(-64))[0, 0] == 2 * plain.run("wave", byte(-64))[0, 0]


def test_an_exception_in_a_host_stage_reaches_the_caller_and_the_kernel_goes_on():
    @syn.host_stage
    def fails_on_zero(values):
        if values[0, 0] <= 0.5:
            raise ValueError("too small")
        return values

    with syn.Runtime(make(lambda p: p.dequantize(), lambda p: p.stage(fails_on_zero))) as rt:
        with pytest.raises(ValueError, match="too small"):
            rt.run("wave", byte(-128))
        assert rt.run("wave", byte(-64))[0, 0] > 0.5


def test_a_host_stage_is_refused_by_name_for_a_board():
    with pytest.raises(UserError, match=r"twice is a stage of the host \(NumPy\) and cannot run on mps2-an521"):
        build_firmware(make(lambda p: p.dequantize(), lambda p: p.stage(twice)), "mps2-an521")


def test_an_arena_that_is_too_small_names_what_is_missing_and_where():
    app = make()
    app.ram = 16
    with pytest.raises(UserError, match=r"needs \d+ bytes, 16 are available, \d+ are missing; .* model sine, layer FULLY_CONNECTED"):
        syn.Runtime(app)


def test_an_outcome_is_taken_once_however_many_look(runtime):
    wrong, taken = [], []

    def work(seed):
        for k in range(150):
            try:
                job = runtime.submit("wave", byte(seed))
            except KernelError:
                continue
            taken.append(job.id)
            threads = [threading.Thread(target=look, args=(job,)) for look in (syn.Job.cancel, lambda j: j.done)]
            for thread in threads:
                thread.start()
            try:
                job.result(timeout=20)
            except KernelError as error:
                if error.status != Status.CANCELED:
                    wrong.append(error)
            for thread in threads:
                thread.join()

    _in_threads(work, 4, wrong)
    assert not wrong and not list(runtime.jobs()) and len(taken) > 100


def test_closing_waits_for_the_thread_that_runs_the_kernel():
    wrong = []
    for _ in range(10):
        rt = syn.Runtime(make(lambda p: p.dequantize()))

        def work(_, rt=rt):
            try:
                while True:
                    rt.run("wave", byte(3), timeout=20)
            except UserError:
                pass

        closer = threading.Timer(0.01, rt.close)
        closer.start()
        _in_threads(work, 3, wrong)
        closer.join()
        assert not list(rt.jobs())
    assert not wrong


def _in_threads(work, n, wrong):
    """Run `work(k)` in n threads; what they raise is added to `wrong`."""

    def each(k):
        try:
            work(k)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=each, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_closed_runtime_says_so_to_all():
    rt = syn.Runtime(make())
    rt.close()
    rt.close()
    for call in (rt.poll, lambda: rt.run("wave", byte(0))):
        with pytest.raises(UserError, match="the runtime is closed"):
            call()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"priority": 99}, "priority is syn.REALTIME"),
        ({"priority": -1}, "priority is syn.REALTIME"),
        ({"priority": "high"}, "priority is syn.REALTIME"),
        ({"deadline": -1}, "deadline is whole microseconds"),
        ({"deadline": 1 << 32}, "deadline is whole microseconds"),
        ({"deadline": 1.5}, "deadline is whole microseconds"),
        ({"out": [0]}, "out must be a NumPy array"),
        ({"out": np.frombuffer(bytes(64), np.int8)}, "out must be a NumPy array that can be written"),
        ({"pipeline": None}, "no pipeline"),
        ({"pipeline": b"wave"}, "no pipeline"),
    ],
)  # fmt: skip
def test_what_a_job_cannot_be_given_is_said(runtime, given, says):
    with pytest.raises(UserError, match=says):
        runtime.submit(**{"pipeline": "wave", "data": byte(0)} | given)


@pytest.mark.parametrize("call", [lambda rt, x: rt.run("wave", x), lambda rt, x: rt.poll(), lambda rt, x: rt.close()])
def test_a_host_stage_that_waits_for_its_own_kernel_is_refused(call):
    @syn.host_stage
    def again(x):
        call(rt, byte(1))
        return x

    with syn.Runtime(make(lambda p: p.stage(again))) as rt:
        with pytest.raises(UserError, match="a stage of the host cannot wait for the kernel that runs it"):
            rt.run("wave", byte(0), timeout=20)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking with threads, which is the point
def test_a_forked_process_goes_on_or_is_told():
    def child(rt):
        """0: a result, 1: told that it is closed, 2: anything else."""
        pid = os.fork()
        if pid == 0:
            try:
                rt.run("wave", byte(5), timeout=20)
                os._exit(0)
            except TimeoutError:
                os._exit(2)
            except UserError as error:
                os._exit(1 if "closed" in str(error) else 2)
            finally:
                os._exit(2)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    inside, go = threading.Event(), threading.Event()

    @syn.host_stage
    def slow(x):
        inside.set()
        go.wait(20)
        return x

    rt = syn.Runtime(make(lambda p: p.stage(slow)))
    thread = threading.Thread(target=rt.run, args=("wave", byte(0)))
    thread.start()
    inside.wait(20)
    assert child(rt) == 1
    go.set()
    thread.join(20)
    assert child(rt) == 0
    assert rt.run("wave", byte(5)).shape == (1, 1)


def test_small_inputs_may_change_once_they_are_submitted(runtime):
    data = byte(-128)
    wanted = runtime.run("wave", data)
    job = runtime.submit("wave", data)
    data[...] = 64
    assert job.result().tobytes() == wanted.tobytes()


def test_buffers_of_ended_jobs_are_used_again_and_results_are_not(runtime):
    lane = runtime._lanes["wave"]
    results = [runtime.run("wave", byte(q)) for q in range(-50, 50)]
    assert len(lane.free) == 1 and len({r.ctypes.data for r in results}) == 100
    jobs = [runtime.submit("wave", byte(0)) for _ in range(3)]
    for job in jobs:
        job.result()
    assert len(lane.free) == 3
    runtime.submit("wave", byte(0)).cancel()
    assert len(lane.free) == 3 and not list(runtime.jobs())


def test_two_hundred_runtimes_one_after_the_other():
    """Each closed one gives its board back, of which there are 64; so does one that does not start."""
    app = make()
    for _ in range(200):
        with syn.Runtime(app) as rt:
            assert not rt.poll()
    for _ in range(80):
        syn.Runtime(app).run("wave", byte(0))  # and one that is dropped without closing
    app.models[0].compiled.__dict__["container"] = b"damaged" + bytes(121)
    for _ in range(80):
        with pytest.raises(KernelError):
            syn.Runtime(app)


def test_a_callback_is_told_and_what_it_raises_is_its_jobs(runtime):
    told = []
    job = runtime.submit("wave", byte(0), then=told.append)
    assert not told and job.result() is job.result() and told == [job]

    def bad(job):
        raise ZeroDivisionError("of the callback")

    first = runtime.submit("wave", byte(0), then=bad)
    second = runtime.submit("wave", byte(0))
    assert second.result().shape == (1, 1)
    with pytest.raises(ZeroDivisionError, match="of the callback"):
        first.result()
    again = runtime.submit("wave", byte(0), then=lambda job: runtime.submit("wave", byte(1)))
    again.result()
    assert len(list(runtime.jobs())) == 1  # the one that the callback has submitted


@pytest.mark.parametrize("way", [{}, {"priority": syn.NORMAL}])
def test_an_interrupted_submission_leaves_no_job(runtime, way, monkeypatch):
    """Ctrl-C between the kernel's taking a job and our knowing of it."""

    class Interrupted(dict):
        def __setitem__(self, key, value):
            raise KeyboardInterrupt

    for _ in range(10):  # more than there are slots
        monkeypatch.setattr(runtime, "_jobs", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            runtime.submit("wave", byte(0), **way)
        monkeypatch.undo()
    assert runtime.run("wave", byte(0)).shape == (1, 1)


def test_a_thread_is_told_when_another_ran_its_job():
    """One runs a long queue, another's urgent job is done after a step and heard of at once, not when the first is."""
    app = make()
    urgent = app.pipeline("urgent", app.frames("other", (1, 1), "int8")).model(app.models[0])
    app.job(urgent, priority=syn.REALTIME)
    with syn.Runtime(app) as rt:
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                rt.run("wave", byte(0))

        thread = threading.Thread(target=busy)
        thread.start()
        try:
            for q in range(-100, 100):
                assert rt.submit("urgent", byte(q)).result(timeout=5).shape == (1, 1)
        finally:
            stop.set()
            thread.join()


def test_a_runtime_on_checked_keeps_nothing_of_its_jobs():
    with syn.Runtime(make(lambda p: p.dequantize()), engine="checked") as rt:
        rt.run("wave", byte(0))
        kept = len(rt._engine._kept)
        for q in range(30):
            rt.run("wave", byte(q))
        assert len(rt._engine._kept) == kept


def test_what_firmware_says_is_put_in_words():
    from synapticos.app.image import compile_app
    from synapticos.host.execute import in_words

    app = make()
    told = in_words(compile_app(app), "job 0 frame 0: 0\njob 0 frame 12: -12\nanything else: 3\n")
    assert told == "wave, frame 0: done\nwave, frame 12: has too little memory\nanything else: 3\n"
