"""Who waits while another thread runs the kernel: nobody is forgotten, however waits, ends and time limits fall."""

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
import synapticos as syn
from synapticos.errors import KernelError, UserError
from synapticos.kernel.status import Status
from tests.host.test_runtime import _in_threads, byte, make

SECONDS = 1.2  # of each storm
PROMPT = 5.0  # seconds in which anything has happened that does; a thread that was forgotten waits longer


class Door:
    """What the stage of pipeline "slow" does: it sleeps, or waits until it is let on."""

    inside, go = threading.Event(), threading.Event()
    shut = False


@syn.host_stage
def door(x):
    if Door.shut:
        Door.inside.set()
        Door.go.wait(PROMPT)
    time.sleep(0.002)
    return x


@pytest.fixture
def shut_door():
    Door.inside.clear()
    Door.go.clear()
    Door.shut = True
    yield Door
    Door.shut = False
    Door.go.set()


def three(**options):
    """Pipelines "wave", "slow" (with a stage of the host) and "urgent", all with the same network."""
    app = make()
    for name, steps, priority in (("slow", [door], syn.BEST_EFFORT), ("urgent", [], syn.REALTIME)):
        pipeline = app.pipeline(name, app.frames(f"{name}_in", (1, 1), "int8")).model(app.models[0])
        for step in steps:
            pipeline.stage(step)
        app.job(pipeline, priority=priority, **options)
    return app


def beating():
    """`three`, and "beat", a job for each byte that is pushed to "pulse"."""
    app = three()
    pulse = app.frames("pulse", (1, 1), "int8", every=1 * syn.ms)
    app.job(app.pipeline("beat", pulse).model(app.models[0]), on=pulse)
    return app


def comes(what):
    """Does `what()` become true, if not at once?"""
    deadline = time.monotonic() + PROMPT
    while not what() and time.monotonic() < deadline:
        time.sleep(0.001)
    return what()


def idle(rt):
    """No job is left, and no slot is anybody's."""
    return not list(rt.jobs()) and not any(int(job.state) for job in rt.kernel.jobs) and rt.kernel.unfinished == 0


def storm(rt, seconds=SECONDS, threads=6):
    """Threads that submit, wait with time limits and without, cancel, look and poll, all at random."""
    wanted = {q: rt.run("wave", byte(q)) for q in range(-8, 8)}
    wrong, ended, stop = [], [], time.monotonic() + seconds

    def work(seed):
        dice = random.Random(seed)
        while time.monotonic() < stop:
            q = dice.randrange(-8, 8)
            try:
                job = rt.submit(dice.choice(("wave", "wave", "urgent", "slow")), byte(q), then=ended.append)
            except KernelError as error:
                assert error.status == Status.BUSY
                time.sleep(0.0002)
                continue
            way = dice.randrange(6)
            if way == 0:
                job.cancel()
            elif way == 1:
                canceller = threading.Timer(dice.random() * 0.002, job.cancel)
                canceller.start()
            elif way == 2:
                rt.poll()
            elif way == 3:
                other = threading.Thread(target=lambda job=job: job.done or job._runtime._wait(job, PROMPT))
                other.start()
            for limit in (dice.choice((0, 0.0005, 0.003)), PROMPT):
                start = time.monotonic()
                try:
                    np.testing.assert_array_equal(job.result(timeout=limit), wanted[q])
                except KernelError as error:
                    assert way < 2 and error.status == Status.CANCELED
                except TimeoutError:
                    assert limit < PROMPT, "a thread was forgotten"
                    assert time.monotonic() - start < limit + PROMPT / 2
                    continue
                break
            if way == 3:
                other.join(PROMPT)
                assert not other.is_alive()

    _in_threads(work, threads, wrong)
    assert not wrong
    assert comes(lambda: not list(rt.jobs()))  # a canceller may be at it yet
    assert len(ended) == len({job.id for job in ended}), "a job's end is told once"
    return len(ended)


def test_nobody_is_forgotten_in_a_storm():
    with syn.Runtime(three()) as rt:
        assert storm(rt) > 50 and comes(lambda: idle(rt))


def test_nobody_is_forgotten_while_a_thread_runs_the_kernel_by_its_clock():
    with syn.Runtime(beating()) as rt:
        beats = []
        rt.on("beat", beats.append)
        rt.start()
        pushing = threading.Event()

        def push():
            while not pushing.wait(0.001):
                rt.push("pulse", byte(1))

        thread = threading.Thread(target=push)
        thread.start()
        try:
            storm(rt)
        finally:
            pushing.set()
            thread.join()
        before = len(beats)
        assert rt.push("pulse", byte(2))
        assert comes(lambda: len(beats) > before and idle(rt))
        counts = rt.counters()["jobs"]["beat"]
        assert all(done.status == Status.OK for done in beats) and len(beats) == counts["started"]


def test_a_callback_that_waits_for_another_threads_job_does_not_stop_the_kernel():
    with syn.Runtime(beating()) as rt:
        found = []

        def called(done):
            thread = threading.Thread(target=lambda: found.append(rt.run("wave", byte(3), timeout=PROMPT)))
            thread.start()
            thread.join(PROMPT)
            found.append(rt.run("wave", byte(3), timeout=PROMPT))

        rt.on("beat", called)
        rt.start()
        rt.push("pulse", byte(1))
        assert comes(lambda: len(found) == 2) and (found[0] == found[1]).all()
        assert rt.counters()["jobs"]["beat"]["callback_errors"] == 0


def test_what_is_called_at_a_jobs_end_may_wait_for_another_thread():
    """Whoever saw the end: the thread that ran the job, or one that asked for it."""
    with syn.Runtime(three()) as rt:
        for ask in (lambda job: job.result(timeout=PROMPT), lambda job: job.done or job.result(timeout=PROMPT)):
            found = []

            def then(job, found=found):
                thread = threading.Thread(target=lambda: found.append(rt.submit("urgent", byte(0)).id))
                thread.start()
                thread.join(PROMPT)

            job = rt.submit("wave", byte(1), then=then)
            while rt.poll():
                pass
            ask(job)
            assert len(found) == 1


def test_a_thread_that_waits_runs_the_kernel_once_the_one_that_did_has_gone(shut_door):
    with syn.Runtime(three()) as rt:
        first = threading.Thread(target=rt.run, args=("slow", byte(0)))
        first.start()
        assert shut_door.inside.wait(PROMPT)
        second = rt.submit("wave", byte(1))
        took = []
        for _ in range(5):
            start = time.monotonic()
            with pytest.raises(TimeoutError):
                second.result(timeout=0.004)
            took.append(time.monotonic() - start)
        assert min(took) < 0.012
        threading.Timer(0.05, shut_door.go.set).start()
        assert second.result(timeout=PROMPT).shape == (1, 1)
        first.join(PROMPT)
        assert not first.is_alive()


def test_closing_does_not_wait_for_a_slice_of_the_thread_that_sleeps():
    app = beating()
    took = []
    for _ in range(5):
        rt = syn.Runtime(app)
        rt.start()
        time.sleep(0.005)
        start = time.monotonic()
        rt.close()
        took.append(time.monotonic() - start)
    assert min(took) < 0.015


def test_whoever_comes_as_it_is_closed_is_told():
    for _ in range(6):
        rt, told = syn.Runtime(beating()), []

        def busy(ask, rt=rt, told=told):
            try:
                while True:
                    ask(rt)
            except Exception as error:
                told.append(str(error))

        asks = [lambda rt: rt.poll(), lambda rt: rt.push("pulse", byte(1)), lambda rt: rt.enable("beat"), lambda rt: rt.run("wave", byte(0))]
        threads = [threading.Thread(target=busy, args=(ask,)) for ask in asks]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        rt.close()
        for thread in threads:
            thread.join(PROMPT)
            assert not thread.is_alive()
        assert len(told) == len(asks) and all("the runtime is closed" in words or "was cancelled" in words for words in told), told


@pytest.mark.parametrize("serving", [False, True])
def test_ctrl_c_ends_a_wait_and_nobody_hangs(serving):
    """Wherever it strikes. A kernel that it leaves in the middle of a step is closed, and says so to all."""
    app = beating()
    dice, struck = random.Random(5), 0
    me = threading.get_ident()
    for _ in range(15):
        rt = syn.Runtime(app)
        if serving:
            rt.start()
        told, stop = [], threading.Event()

        def busy(rt=rt, told=told, stop=stop):
            try:
                while not stop.is_set():
                    rt.run("wave", byte(0), timeout=PROMPT)
            except UserError as error:
                told.append(str(error))
            except BaseException as error:
                told.append(repr(error))

        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        killer = threading.Timer(dice.random() * 0.01, signal.pthread_kill, (me, signal.SIGINT))
        start = time.monotonic()
        try:
            killer.start()
            while time.monotonic() < start + 2 * PROMPT:
                rt.run("urgent", byte(1), timeout=PROMPT)
        except KeyboardInterrupt:
            struck += 1
            assert time.monotonic() - start < PROMPT
        stop.set()
        for thread in threads:
            thread.join(PROMPT)
            assert not thread.is_alive()
        assert all("the runtime is closed" in words for words in told), told
        rt.close()
    assert struck == 15


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking with threads, which is the point
def test_a_process_forked_off_while_threads_sleep_goes_on_or_is_told():
    with syn.Runtime(three()) as rt:
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                rt.run("wave", byte(0), timeout=PROMPT)

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                pid = os.fork()
                if pid == 0:
                    try:
                        rt.run("urgent", byte(5), timeout=PROMPT)
                        os._exit(0)
                    except TimeoutError:
                        os._exit(2)
                    except UserError as error:
                        os._exit(0 if "closed" in str(error) else 2)
                    finally:
                        os._exit(3)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        finally:
            stop.set()
            for thread in threads:
                thread.join(PROMPT)


def test_a_fork_finds_nobody_in_a_critical_section():
    """Who sleeps in compiled code takes the kernel's sections, also as nobody runs it any more."""
    with syn.Runtime(three()) as rt:
        rt._sleepers.append(object())  # as one that is about to
        pid = os.fork()
        if pid == 0:
            try:
                rt.run("urgent", byte(5), timeout=PROMPT)
                os._exit(2)
            except UserError:
                os._exit(0)
            finally:
                os._exit(3)
        rt._sleepers.clear()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        rt.run("urgent", byte(5), timeout=PROMPT)


def test_a_checked_kernel_is_waited_for_as_well():
    with syn.Runtime(make(lambda p: p.dequantize()), engine="checked") as rt:
        wanted, wrong = rt.run("wave", byte(3)), []

        def work(k):
            for _ in range(3):
                assert (rt.run("wave", byte(3), timeout=60) == wanted).all()

        _in_threads(work, 3, wrong)
        assert not wrong and not list(rt.jobs())
