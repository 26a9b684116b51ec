"""Runtime: an app in this process, its jobs as futures.

    with syn.Runtime(app) as rt:
        boxes = rt.run("faces", picture)
        job = rt.submit("faces", picture)
        boxes = job.result(timeout=1.0)        # or: await job

No thread belongs to the kernel until `start`: whoever waits for a job runs it, and all that is more urgent, unless another
thread already does. Submitting and cancelling never wait for a step. Who waits while another thread runs the native kernel
sleeps in compiled code, and takes the outcome itself: the end of its job wakes it, without a word of Python between.

A process that is forked off may go on with a runtime that nobody was running or waiting for; any other is closed there.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import operator
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from threading import get_ident
from typing import Any, NoReturn

import numpy as np

from synapticos import lang
from synapticos.app import calls
from synapticos.app.declare import NORMAL, PRIORITIES, App, JobDecl, Pipeline
from synapticos.app.image import DTYPE, Image, PipelineImage, compile_app, tensor_fields
from synapticos.app.sources import Together
from synapticos.app.spec import DTYPES, Spec
from synapticos.errors import KernelError, UserError
from synapticos.host.blame import Failure, blame, words_of
from synapticos.host.live import Done, Live
from synapticos.host.report import HandlerReport
from synapticos.kernel import sched
from synapticos.kernel import tables as rows
from synapticos.kernel.job import Fault, JobParams
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall, Tensor

WORD, WORDS, SIGNED, LONG = struct.Struct("<I"), struct.Struct("<II"), struct.Struct("<i"), struct.Struct("<Q")
LONGS = struct.Struct("<QQ")

MAX_DEADLINE = 0xFFFFFFFF  # us: a u32 of the kernel
FAULT_FIELDS = ("kind", "pc", "caller", "causes", "address", "file", "line")
SLICE_MS = 20  # how long the kernel runs between two looks for Ctrl-C and time limits
COPIED = 16384  # bytes up to which inputs and results go through buffers that are there already



class Job:
    """A submitted job. Its result can be asked for as often as one likes."""

    __slots__ = ("_runtime", "_pipeline", "_lane", "_held", "_out", "_status", "_error", "_then", "_told", "id", "failure", "times", "__weakref__")

    def __init__(self, runtime: Runtime, lane: Lane, held: Any, out: list[np.ndarray] | None, then: Callable[[Job], Any] | None) -> None:
        self._runtime, self._pipeline, self._lane = runtime, lane.pipeline, lane
        self.id = 0
        self._held = held  # the input and where the result goes: memory of the kernel's until the job has ended
        self._out = out
        self._status: Status | None = None
        self._error: BaseException | None = None
        self._then = then
        self._told: Done | None = None  # what the app's handlers hear of it
        self.failure: Failure | None = None  # how it failed, if the kernel ended it with an error
        self.times: dict[str, Any] | None = None  # when profiling: ticks in all, by stage, bytes of its frame

    @property
    def done(self) -> bool:
        """Has it ended?"""
        return self._status is not None or self._runtime._look(self)

    def result(self, timeout: float | None = None) -> Any:
        """The result: an array, or a list of them where the pipeline ends in several tensors.

        Raises TimeoutError after `timeout` seconds, KernelError if the job failed or was cancelled, and what its `then`
        raised.
        """
        if self._status is None:
            self._runtime._wait(self, timeout)
        if self._error is not None:
            raise self._error
        out = self._out
        assert out is not None
        return out[0] if len(out) == 1 else list(out)

    def cancel(self) -> bool:
        """End it, if it has not ended: before its next step if it runs. False if it had ended already."""
        return self._runtime._cancel(self)

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.get_running_loop().run_in_executor(None, self.result).__await__()


class Lane:
    """What is the same for every job of a pipeline, made once: descriptors, and for the native engine the call itself.

    `free` are buffers of jobs that have ended: input, result, and where they lie.
    """

    def __init__(self, runtime: Runtime, pipeline: PipelineImage) -> None:
        e, spec = runtime._engine, pipeline.source
        self.pipeline, self.spec = pipeline, spec
        self.shape, self.dtype = spec.shape, DTYPES[spec.dtype]
        self.handle = e(rows.app_pipeline, runtime.kernel, pipeline.number)
        self.tensor = e.new(Tensor, **tensor_fields(spec))
        self.params = runtime._params(pipeline.priority, pipeline.deadline)
        self.what = f'{runtime.app.name}: pipeline "{pipeline.name}"'
        self.room = runtime.image.frames[pipeline.priority] >= pipeline.plan
        self.callbacks = runtime.app.pipelines[pipeline.name].callbacks
        # Its slot is looked at before it is freed.
        self.keep = runtime.profile or bool(self.callbacks) or any(spec.rows for spec in pipeline.outputs)
        sizes = (spec.bytes, *(s.bytes for s in pipeline.outputs))
        self.quick = runtime.engine == "native" and pipeline.together is None and max(sizes) <= COPIED and self.room
        self.free: list[Buffers] = []
        self.post: Any = None
        if self.quick:
            _, memory = _results(pipeline.outputs, None, pipeline.name)
            none = e.share(np.zeros(16, np.uint8))
            arguments = (runtime.kernel, self.handle, self.tensor, none, none, memory.nbytes, self.params)
            self.post, self.block, made = e.raw(sched.infer_post, *arguments)
            self.data_at, out_at = (made.parameters[i][1] for i in (3, 4))
            assert out_at == self.data_at + 8  # one call writes both
            self.status_at, self.id_at = (at for _, at in made.results)


class Buffers:
    """Memory for one small job of a lane: where its input is copied to, and its result from."""

    __slots__ = ("input", "results", "data", "out")

    def __init__(self, lane: Lane) -> None:
        raw = _aligned(max(lane.spec.bytes, 1))
        self.input = raw[: lane.spec.bytes].view(lane.dtype).reshape(lane.shape)
        self.results, memory = _results(lane.pipeline.outputs, None, lane.pipeline.name)
        self.data, self.out = int(raw.ctypes.data), int(memory.ctypes.data)


class Sleeper:
    """The call in which a thread sleeps until its job has ended: `job_await`, with arguments of its own."""

    __slots__ = ("_call", "_block", "_left_at", "_id_at", "_span_at", "_told_at")

    def __init__(self, runtime: Runtime) -> None:
        self._call, self._block, made = runtime._engine.raw(calls.job_await, runtime.kernel, runtime._turns, 0, 0, 0)
        self._left_at, self._id_at, self._span_at = (at for _, at in made.parameters[2:])
        self._told_at = made.results[0][1]

    def sleep(self, left: int, number: int, span: int) -> int:
        block = self._block
        WORD.pack_into(block, self._left_at, left)
        WORD.pack_into(block, self._id_at, number)
        WORD.pack_into(block, self._span_at, span)
        self._call()
        return int(LONG.unpack_from(block, self._told_at)[0])


class Runtime:
    """An app, compiled for this machine and booted. A process may have several; they share nothing."""

    def __init__(
        self, app: App, *, engine: str = "native", profile: bool = False, checks: bool = False, virtual: bool = False
    ) -> None:
        """With `checks` compiled code traps where checked Python would, which costs time; a trap ends its job. With `virtual`
        time stands until somebody moves it: `host/clock` does, to run an app by its clock."""
        self.image: Image = compile_app(app)
        self.app = app
        self._engine = start_engine(self.image, engine, checks=checks, virtual=virtual)
        self.engine = engine
        self.profile = profile
        # By a clock that goes, the native kernel can sleep, and be slept for.
        self._native = engine == "native"
        self._sleeps = self._native and not virtual
        self._locks()
        # The native kernel takes calls from any thread; an interpreted one is called by one at a time.
        self._calls: Any = contextlib.nullcontext() if engine == "native" else self._taking
        self._lending: Any = contextlib.nullcontext if engine == "native" else self._engine.lending
        self._jobs: dict[int, Job] = {}
        self._closed = False
        self._live: Live | None = None
        try:
            self._boot(profile)
        except BaseException:
            self._engine.close()
            raise
        _RUNTIMES.add(self)
        weakref.finalize(self, self._engine.close)  # of one that nobody closes

    def _boot(self, profile: bool) -> None:
        e = self._engine
        self.kernel = e.new(Kernel)
        self._memory = e.array(lang.u8, self.image.arena_bytes)
        self._tables = e.array(lang.u8, self.image.tables)
        self._containers = e.array(lang.u8, self.image.containers)
        self._check(self.image.boot(e, self.kernel, self._memory, self._tables, self._containers), self.app.name)
        self._lanes: dict[Any, Lane] = {p.name: Lane(self, p) for p in self.image.pipelines}
        self._turns = e.new(calls.Turn)
        self._prepare()
        self.kernel.profile.enabled = profile
        self.kernel.profile.trace = profile

    def _params(self, priority: int, deadline: int) -> Any:
        return self._engine.new(JobParams, priority=priority, deadline_us=deadline, preemptible=True)

    def _prepare(self) -> None:
        """The calls that run, look and let go of a job, with their arguments in place where the engine allows it."""
        e, kernel, turns = self._engine, self.kernel, self._turns
        self._rate = int(kernel.clock.rate)
        self._slice = self._ticks(SLICE_MS / 1000)
        if self.engine != "native":
            self._go = lambda number, keep, span: int(e(calls.job_run, kernel, turns, number, span, keep))
            self._peek = lambda number: int(e(calls.job_look, kernel, number))
            self._free = lambda number: e(sched.infer_detach, kernel, number)
            return
        run, run_block, made = e.raw(calls.job_run, kernel, turns, 0, self._slice, False)
        (_, id_at), (_, span_at), (_, keep_at) = made.parameters[2:]
        assert span_at == id_at + 4  # one call writes both
        told_at = made.results[0][1]
        look, look_block, made = e.raw(calls.job_look, kernel, 0)
        look_id_at, look_told_at = made.parameters[1][1], made.results[0][1]
        free, free_block, made = e.raw(sched.infer_detach, kernel, 0)
        free_id_at = made.parameters[1][1]
        put, put_two, get = WORD.pack_into, WORDS.pack_into, LONG.unpack_from

        def go(number: int, keep: bool, span: int) -> int:
            put_two(run_block, id_at, number, span)
            run_block[keep_at] = keep
            run()
            return int(get(run_block, told_at)[0])

        def peek(number: int) -> int:
            put(look_block, look_id_at, number)
            look()
            return int(get(look_block, look_told_at)[0])

        def let_go(number: int) -> None:
            put(free_block, free_id_at, number)
            free()

        self._go = go  # by the thread that runs the kernel
        self._peek, self._free = peek, let_go  # by who holds `_taking`

    def _ticks(self, seconds: float) -> int:
        """A span of the kernel's clock, rounded up."""
        return math.ceil(seconds * self._rate)

    def _locks(self) -> None:
        self._running = threading.Lock()  # held by the thread that runs the kernel
        self._runner = 0  # which thread that is
        self._gate = threading.Lock()  # held by a thread that wants to run the kernel whoever does now, until it does no more
        self._server = 0  # the thread of `start` while it runs the kernel or is about to; nobody comes before it
        self._taking = threading.RLock()  # held while a job is entered in `_jobs`, or its outcome is taken
        self._telling = threading.RLock()  # of `_news`, taken by its own name: Ctrl-C may strike as a condition is entered
        self._news = threading.Condition(self._telling)
        self._waiting = 0  # threads that wait for news
        self._sleepers: list[Sleeper] = []  # threads that sleep in compiled code until their job has ended
        self._beds: list[Sleeper] = []  # for others that will
        self._left = 0  # `left` of `_turns`

    def _forked(self) -> None:
        """In a new process: its one thread holds no lock, and whoever did is not here to finish."""
        # One that slept in compiled code may have been in a critical section of the kernel just then.
        if self._running.locked() or self._sleepers or not self._taking.acquire(blocking=False):
            self._closed = True
        self._locks()
        self._turns.left = self._turns.wanted = 0
        for i in range(len(self._turns.awaited)):
            self._turns.awaited[i] = 0
        if self.engine != "native":
            self._calls = self._taking

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel what is not done and let go of the kernel's memory. A thread that runs the kernel ends its step first."""
        if self._closed:
            return
        if self._live is not None:
            self._live.stop()
        for job in list(self._jobs.values()):
            job.cancel()
        with self._turn():
            while not self._closed:
                with self._taking:
                    left = next(iter(self._jobs.values()), None)
                    self._closed = left is None
                if left is not None:
                    left.cancel()
                    self._step(left, self._slice)
            self._engine.close()
        self._tell()

    # What a program asks for ------------------------------------------------------------------------------------------

    def run(self, pipeline: str | Pipeline, data: Any, *, out: Any = None, timeout: float | None = None) -> Any:
        """Submit and wait for the result."""
        return self.submit(pipeline, data, out=out).result(timeout)

    def submit(
        self,
        pipeline: str | Pipeline,
        data: Any,
        *,
        priority: int | None = None,
        deadline: int | None = None,
        out: np.ndarray | None = None,
        then: Callable[[Job], Any] | None = None,
    ) -> Job:
        """Queue a job. `data` is used where it lies if it is contiguous, aligned and more than 16 KB, and must not change
        until the job ends.

        A pipeline of several sources takes a dict of arrays, by source.
        Priority and deadline (microseconds) are those of the app's job unless given. `out` takes the result if the pipeline
        ends in one tensor. `then` is called with the job once it has ended, by the thread that saw it end; what it raises,
        `result` raises. Raises KernelError with Status.BUSY if no slot is free.
        """
        lane = self._lanes.get(pipeline if type(pipeline) is str else getattr(pipeline, "name", pipeline))
        if lane is None:
            self._unknown(pipeline)
        if not lane.quick or priority is not None or deadline is not None or out is not None:
            return self._submit(lane, data, priority, deadline, out, then)
        with self._taking:
            if self._closed:
                self._over()
            buffers = lane.free.pop() if lane.free else Buffers(lane)
            if type(data) is np.ndarray and data.shape == lane.shape and data.dtype == lane.dtype:
                buffers.input[...] = data
            else:
                buffers.input[...] = _input(data, lane.spec, lane.pipeline.name).reshape(lane.shape)
            job = Job(self, lane, buffers, None, then)
            block = lane.block
            LONGS.pack_into(block, lane.data_at, buffers.data, buffers.out)
            WORD.pack_into(block, lane.id_at, 0)
            try:
                lane.post()
                job.id = WORD.unpack_from(block, lane.id_at)[0]
                if job.id:
                    self._jobs[job.id] = job
            except BaseException:
                self._unpost(WORD.unpack_from(block, lane.id_at)[0])
                raise
            if not job.id:
                lane.free.append(buffers)
                self._check(SIGNED.unpack_from(block, lane.status_at)[0], lane.what)
        return job

    def _submit(
        self, lane: Lane, data: Any, priority: int | None, deadline: int | None, out: np.ndarray | None, then: Callable[[Job], Any] | None
    ) -> Job:
        """`submit` of what has no buffers of its own, or is more or less urgent than its pipeline's other jobs."""
        found = lane.pipeline
        if self._closed:
            self._over()
        if priority is not None and priority not in range(len(self.image.frames)):
            raise UserError(f"{self.app.name}: priority is syn.REALTIME, syn.NORMAL or syn.BEST_EFFORT, not {priority!r}")
        if deadline is not None and not _is_word(deadline):
            raise UserError(f"{self.app.name}: deadline is whole microseconds from 0 to {MAX_DEADLINE}, not {deadline!r}")
        urgency = found.priority if priority is None else int(priority)
        if self.image.frames[urgency] < found.plan:
            name = PRIORITIES[urgency]
            raise UserError(
                f'{self.app.name}: pipeline "{found.name}" has no frame in class {name}: declare app.job(..., priority=syn.{name})'
            )
        array = _input(data, lane.spec, found.name) if found.together is None else _inputs(data, found.together, found.name)
        results, memory = _results(found.outputs, out, found.name)
        e = self._engine
        with self._taking, self._lending():
            if self._closed:
                self._over()
            params = lane.params
            if priority is not None or deadline is not None:
                params = self._params(urgency, found.deadline if deadline is None else int(deadline))
            held = e.share(array.reshape(-1).view(np.uint8))
            target = e.share(memory)
            job = Job(self, lane, (array, held, target, memory), results, then)
            number = 0
            try:
                status, number = e(sched.infer_post, self.kernel, lane.handle, lane.tensor, held, target, memory.nbytes, params)
                job.id = number
                if number:
                    self._jobs[number] = job
            except BaseException:
                self._unpost(number)
                raise
            self._check(status, lane.what)
        return job

    def _unpost(self, number: int) -> None:
        """Whoever submitted was interrupted and will never hear of this job: end it and let go of its slot."""
        if number and self._jobs.pop(number, None) is None:
            self._engine(calls.job_stop, self.kernel, number)
            self._engine(sched.infer_detach, self.kernel, number)

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """Not closed, and not until the block's end."""
        with self._taking:
            if self._closed:
                self._over()
            yield

    def _over(self) -> NoReturn:
        raise UserError(f"{self.app.name}: the runtime is closed")

    def _unknown(self, wanted: Any) -> NoReturn:
        name = wanted.name if isinstance(wanted, Pipeline) else wanted
        raise UserError(f'{self.app.name}: no pipeline "{name}"; there is {", ".join(p.name for p in self.image.pipelines)}')

    def poll(self) -> bool:
        """Run one step of whatever is most urgent. False if there was nothing to do."""
        if self._closed:
            self._over()
        with self._turn():
            if self._closed:
                self._over()
            try:
                with self._calls:
                    answer, number = self._engine(sched.kernel_poll, self.kernel)
                    if answer == sched.Poll.HOST:
                        self._host_stage(number)
            except BaseException:
                self._closed = True
                raise
        self._collect()
        self._tell()
        return answer in (sched.Poll.RAN, sched.Poll.HOST)

    # Jobs that the kernel begins --------------------------------------------------------------------------------------

    @property
    def live(self) -> Live:
        """Its releases: sources to push, callbacks, counters."""
        if self._live is None:
            self._live = Live(self)
        return self._live

    def start(self) -> None:
        """From now on a thread runs the kernel by its clock, until the runtime is closed."""
        self.live.run_thread()

    def push(self, source: str, data: Any) -> bool:
        """Hand in what a source gives, in pieces of any size; from any thread. False if some of it was lost, which is counted."""
        return self.live.push(source, data)

    def on(self, pipeline: str | Pipeline, callback: Callable[[Done], Any]) -> None:
        """Call `callback(done)` for each job of `pipeline` that the kernel began, as it ends. Its errors are that job's."""
        self.live.on(pipeline, callback)

    def enable(self, pipeline: str | Pipeline, on: bool = True) -> None:
        """Let the jobs of `pipeline` be released, or no more."""
        self.live.enable(pipeline, on)

    def counters(self) -> dict[str, dict[str, dict[str, int]]]:
        """Of each job and each source, what became of what it was given: released, dropped, lost..."""
        return self.live.counters()

    # How it goes on ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """This thread runs the kernel, once no other does; the one that does is asked to leave."""
        self._not_inside()
        try:
            with self._gate:
                self._ask(1)
                try:
                    with self._running:
                        self._ask(0)
                        self._runner = get_ident()
                        try:
                            yield
                        finally:
                            self._runner = 0
                finally:
                    self._ask(0)
        finally:
            self._tell()

    def _ask(self, wanted: int) -> None:
        """Somebody else wants to run the kernel, or no more."""
        if self._sleeps:
            self._turns.wanted = wanted
            if wanted:
                self._engine.board.wake_up()

    @contextlib.contextmanager
    def _serving(self) -> Iterator[None]:
        """This thread runs the kernel for as long as nobody else wants to; by the thread of `start`, which no Ctrl-C interrupts."""
        self._server = get_ident()
        with self._gate:
            if not self._running.acquire(blocking=False):
                self._ask(1)
                self._running.acquire()
                self._ask(0)
        self._runner = self._server
        try:
            yield
        finally:
            # From here on it is busy with what has ended, for as long as that takes: whoever waits may run the kernel.
            self._server = self._runner = 0
            self._running.release()

    def _not_inside(self) -> None:
        if self._runner == get_ident():
            raise UserError(f"{self.app.name}: a stage of the host cannot wait for the kernel that runs it; hand on what it needs as its input")

    def _wait(self, job: Job, timeout: float | None) -> None:
        """Until the job has ended: run the kernel, or wait for the thread that does."""
        if self._runner:
            self._not_inside()
        end = None if timeout is None else time.monotonic() + timeout
        left, span = SLICE_MS / 1000, self._slice
        running = self._running
        while job._status is None:
            if self._closed:
                self._over()
            if end is not None:
                left = max(0.0, min(SLICE_MS / 1000, end - time.monotonic()))
                span = self._ticks(left)
            try:
                mine = not ((self._server or self._gate.locked()) and self._taken()) and running.acquire(blocking=False)
            except BaseException:  # Ctrl-C, when it may have been acquired already
                self._closed = True
                raise
            if mine:
                try:
                    self._runner = get_ident()
                    if job._status is None and not self._closed:
                        self._step(job, span)
                finally:
                    self._runner = 0
                    running.release()
                    if self._sleepers or self._waiting:
                        self._tell()
            elif self._sleeps:
                self._sleep(job, left, span)
            else:
                self._await_news(job, left)
            if job._status is None and end is not None and time.monotonic() >= end:
                raise TimeoutError(f'{self.app.name}: job {job.id} of "{job._pipeline.name}" is not done after {timeout:g} s')

    def _taken(self) -> bool:
        """Is the kernel another thread's, which does not run it perhaps but is about to?"""
        return self._gate.locked() or (self._server != 0 and self._server != get_ident())

    def _sleep(self, job: Job, left: float, span: int) -> None:
        """In compiled code until the job has ended, and take its outcome; until nobody runs the kernel; `left` seconds at
        most, which are `span` ticks."""
        try:
            sleeper = self._beds.pop()
        except IndexError:
            sleeper = Sleeper(self)
        told = 0
        self._sleepers.append(sleeper)
        try:
            since = self._left
            # Whoever lets go of the kernel after this look finds a sleeper, and counts `_left` on.
            if job._status is None and (self._running.locked() or self._taken()):
                told = sleeper.sleep(since, job.id, span)
        finally:
            self._sleepers.remove(sleeper)
        self._beds.append(sleeper)
        if not told:
            return
        if told >> 8 & 0xFF != -Status.NOENT:
            self._end(job, told, freed=False)
            return
        with self._taking:
            pass  # somebody takes it just now
        self._await_news(job, left)  # or it is in the hands of the thread that runs the kernel, which will say

    def _await_news(self, job: Job, left: float) -> None:
        """Until something has ended or nobody runs the kernel; `left` seconds at most."""
        with self._telling:
            self._waiting += 1
            try:
                if job._status is None and (self._running.locked() or self._taken()):
                    self._news.wait(left)
            finally:
                self._waiting -= 1

    def _tell(self) -> None:
        """Nobody runs the kernel any more, and something has ended perhaps."""
        self._tell_news()
        if self._sleepers:
            with self._telling:
                self._left = (self._left + 1) & 0xFFFFFFFF
                self._turns.left = self._left
                self._engine.board.wake_up()

    def _tell_news(self) -> None:
        """Something has ended."""
        if self._waiting:
            with self._telling:
                self._news.notify_all()

    def _step(self, job: Job, span: int) -> None:
        """Run the kernel: until `job` has ended, or another that nobody else takes; `span` ticks are over; or the host has run
        a stage.

        A kernel that a trap or Ctrl-C has left in the middle of a step is not used again.
        """
        keep = job._lane.keep
        try:
            if self._native:
                told = self._go(job.id, keep, span)
            else:
                with self._calls:
                    told = self._go(job.id, keep, span)
            if told & calls.HOST:
                with self._calls:
                    self._host_stage(told >> 32)
                told = 0
            if told and not keep:
                self._end(job, told, freed=not told >> 8)
        except BaseException:
            self._closed = True
            raise
        if self._jobs:
            self._collect()

    def _collect(self) -> None:
        """Take the outcome of every job that has ended, and free its slot."""
        for job in list(self._jobs.values()):
            self._look(job)

    def _look(self, job: Job) -> bool:
        with self._taking:
            if job._status is not None:
                return True
            if self._closed:
                return False  # what it has left is not looked at
            told = self._peek(job.id)
            if not told or told >> 8 & 0xFF == -Status.NOENT:  # the thread that runs it has taken it, and will say
                return False
            self._take(job, told, freed=False)
        self._call_then(job)
        return True

    def _end(self, job: Job, told: int, freed: bool) -> None:
        """A job has ended, as `job_told` says: take its outcome, unless somebody has, and tell who wants to hear of it."""
        with self._taking:
            if job._status is not None:
                return
            self._take(job, told, freed)
        if job._then is not None or job._lane.callbacks:
            self._call_then(job)

    def _call_then(self, job: Job) -> None:
        """By the thread that took its outcome; others go on meanwhile."""
        if job._then is None and not job._lane.callbacks:
            return
        for then, what in [*((callback, job._told) for callback in job._lane.callbacks), *([(job._then, job)] if job._then is not None else [])]:
            try:
                then(what)
            except Exception as error:
                job._error = job._error or error

    def _take(self, job: Job, told: int, freed: bool) -> None:
        """By who holds `_taking`: the outcome of a job that has ended."""
        if self._native:
            self._conclude(job, told, freed)
        else:
            with self._engine.lending():
                self._conclude(job, told, freed)

    def _conclude(self, job: Job, told: int, freed: bool) -> None:
        """Its results or error, and its slot unless that is free."""
        code = told >> 8 & 0xFF
        status = Status(-code) if code else Status.OK
        lane, held = job._lane, job._held
        if self.profile:
            job.times = self._times(job.id)
        if code:
            self._fail(job, status)
        elif type(held) is Buffers:
            results = held.results
            job._out = [results[0].copy()] if len(results) == 1 else [r.copy() for r in results]
        elif self.engine == "cortex-m":  # its memory is its own: what lies there is copied out
            held[3][:] = np.frombuffer(bytes(held[2]), np.uint8)
        if lane.keep and not code:
            self._cut(job)
        if lane.callbacks:
            job._told = self._done(job, status)
        if not freed:
            self._free(job.id)
        self._jobs.pop(job.id, None)
        if type(held) is Buffers:
            lane.free.append(held)
        job._held = None
        job._status = status

    def _done(self, job: Job, status: Status) -> Done:
        """What the app's handlers in plain Python are told of a submitted job, whose slot is still its own."""
        pipeline = self.app.pipelines[job._pipeline.name]
        slot = next(one for one in self.kernel.jobs if int(one.id) == job.id)
        clock, origin = self.kernel.clock, int(self.kernel.releases.origin_us)
        release, finish = (max(0, int(t) * 1_000_000 // int(clock.rate) - origin) for t in (slot.release, clock.ticks))
        return Done(
            pipeline.job or JobDecl(pipeline, NORMAL), status, list(job._out or []) if status == Status.OK else [], release, finish, 0, bool(slot.missed),
            job._error if isinstance(job._error, Exception) else None, job.failure,
        )  # fmt: skip

    def said(self) -> str:
        """What the app's compiled code has printed since the last time."""
        with self._calls:
            return "" if self._closed else str(self._engine.board.take_console().decode("utf-8", "replace"))

    def handled(self) -> dict[str, HandlerReport]:
        """Of each pipeline with a handler in typed Python: how often that ran, and failed."""
        out = {}
        for i, pipeline in enumerate(self.image.pipelines):
            if pipeline.handler is not None and not self._closed:
                one = self.kernel.pipelines.items[i].handled[0]
                failure = None
                if one.errors:
                    fault = {name: getattr(one.fault, name) for name in FAULT_FIELDS} if one.fault.kind else None
                    failure = self._failure(pipeline, Status(int(one.status)), len(pipeline.steps), 0, fault)
                out[pipeline.name] = HandlerReport(pipeline.handler.name, int(one.runs), int(one.errors), failure)
        return out

    def _cut(self, job: Job) -> None:
        """Results of any number of rows are as long as they came out."""
        assert job._out is not None
        for i, spec in enumerate(job._pipeline.outputs):
            if spec.rows:
                tensor = self._engine.new(Tensor)
                self._engine(sched.infer_output, self.kernel, job.id, i, tensor)
                job._out[i] = job._out[i][: tensor.shape[0]]

    def _fail(self, job: Job, status: Status) -> None:
        if job._error is not None:
            return  # its stage of the host has raised it
        name = job._lane.what
        if status == Status.CANCELED:
            job._error = KernelError(f"{name}: job {job.id} was cancelled", int(status))
        else:
            job.failure = self._blame(job._pipeline, job.id, status)
            job._error = KernelError(f"{name}: {job.failure}", int(status))

    def _blame(self, pipeline: PipelineImage, number: int, status: Status) -> Failure:
        """How a job failed that has ended with an error."""
        e = self._engine
        stage, layer = e(sched.infer_error_at, self.kernel, number)
        made = e.new(Fault)
        fault = None
        if e(sched.infer_fault, self.kernel, number, made) == Status.OK:
            fault = {name: getattr(made, name) for name in FAULT_FIELDS}
        return self._failure(pipeline, status, stage, layer, fault)

    def _failure(self, pipeline: PipelineImage, status: Status, stage: int, layer: int, fault: dict[str, Any] | None) -> Failure:
        e = self._engine
        said = getattr(e, "said", {}).get((fault["file"], fault["line"]), "") if fault is not None else ""
        core = getattr(e, "core", None)  # of an emulated one
        return blame(pipeline, 0, status, stage, layer, fault, e.file, elf=core and core.image, said=said)

    def _times(self, number: int) -> dict[str, Any]:
        for i in range(len(self.kernel.jobs)):
            slot = self.kernel.jobs[i]
            if slot.id == number:
                times, layers = slot.times, self.kernel.profile
                count = layers.layers if layers.layer_job == number else 0
                return {
                    "total": times.total,
                    "stages": [times.stage[k] for k in range(times.stages)],
                    "layers": [layers.layer[k] for k in range(count)],
                    "frame": times.frame,
                }
        return {}

    def _cancel(self, job: Job) -> bool:
        with self._calls:
            if job._status is not None or self._closed:
                return False
            status = Status(int(self._engine(calls.job_stop, self.kernel, job.id)))
        self._look(job)
        return status == Status.OK

    def _host_stage(self, number: int) -> None:
        """Run the NumPy stage that job `number` wants, and post what it made."""
        with self._lending():
            self._run_host_stage(self._engine, number)

    def _run_host_stage(self, e: Any, number: int) -> None:
        call = e.new(StageCall)
        status, which = e(sched.stage_take, self.kernel, number, call)
        if Status(int(status)) != Status.OK:
            return
        stage, spec = self.image.host_stages[which]
        inputs = [_tensor(e, call.x[i], call.x_data[i]) for i in range(call.inputs)]
        y = e.new(Tensor)
        try:
            result = np.ascontiguousarray(stage.python(*inputs), DTYPES[spec.dtype])
            if result.nbytes > call.y.size or (result.nbytes != spec.bytes and not spec.rows):
                raise UserError(f"stage {stage.__name__} gave {result.nbytes} bytes, its shape is {spec}")
            e.write(call.y_data, result.tobytes())
            for name, value in tensor_fields(spec.like(shape=result.shape)).items():
                setattr(y, name, value)
        except Exception as error:
            # It belongs to whoever asks for this job's result, who need not be who runs the kernel now.
            with self._taking:
                if number in self._jobs:
                    self._jobs[number]._error = error
            e(sched.stage_done, self.kernel, number, Status.IO, y)
            return
        e(sched.stage_done, self.kernel, number, Status.OK, y)

    def _check(self, status: Any, what: str) -> None:
        status = Status(int(status))
        if status == Status.OK:
            return
        if status == Status.BUSY:
            raise KernelError(f"{what}: all job slots are taken; wait for a result first", int(status))
        raise KernelError(f"{what}: {words_of(status)}", int(status))

    def _serve(self, call: Callable[[], Any]) -> None:
        """A turn of the thread that runs the kernel for good: `call` is of `take_turn`."""
        with self._serving(), self._calls:
            if self._closed:
                return
            try:
                told = int(call())
                if told & calls.HOST:
                    self._host_stage(told >> 32)
            except BaseException:
                self._closed = True  # in the middle of a step: it is not used again
                raise

    def jobs(self) -> Iterator[Job]:
        """Those that have not ended, or whose end nobody has seen."""
        return iter(list(self._jobs.values()))


def start_engine(image: Image, name: str, *, checks: bool = False, virtual: bool = False) -> Any:
    """An engine for an app on this machine, whose clock is the machine's, or moves when it is moved."""
    build = image.build()
    if name == "native":
        return build.engine(name, real_clock=not virtual, checks=checks)
    if name == "checked":
        from synapticos.boards.host import HostBoard

        return build.engine(name, board=HostBoard(real_clock=not virtual))
    return build.engine(name, checks=checks)


def _tensor(e: Any, tensor: Any, address: int) -> np.ndarray:
    """A tensor that a stage of the host is given, as an array of its own."""
    dtype = {member: DTYPES[name] for name, member in DTYPE.items()}[tensor.dtype]
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    return np.frombuffer(e.read(address, tensor.size), dtype).reshape(shape).copy()


def _input(data: Any, spec: Spec, name: str) -> np.ndarray:
    """`data` as the pipeline takes it: itself where it may be used as it lies, else an aligned copy."""
    array = np.asarray(data)
    wanted = DTYPES[spec.dtype]
    same = tuple(n for n in array.shape if n != 1) == tuple(n for n in spec.shape if n != 1)
    if array.dtype != wanted or not same:
        shape = " x ".join(map(str, array.shape)) or "a single value"
        raise UserError(f'pipeline "{name}": takes {spec}, the array is {array.dtype} {shape}')
    if array.flags.c_contiguous and array.ctypes.data % 16 == 0:
        return array
    copied = _aligned(array.nbytes).view(wanted).reshape(array.shape)
    copied[...] = array
    return copied


def _inputs(data: Any, together: Together, name: str) -> np.ndarray:
    """A frame of each source, by name, as the pipeline takes them: one behind the other."""
    if isinstance(data, np.ndarray) and data.dtype == np.uint8:
        return _input(data, together.spec, name)  # joined already
    there = ", ".join(f"{s.name} ({s.spec})" for s in together.sources)
    if not isinstance(data, Mapping) or set(data) != {s.name for s in together.sources}:
        got = f"keys {', '.join(map(repr, data))}" if isinstance(data, Mapping) else type(data).__name__
        raise UserError(f'pipeline "{name}": takes a dict of arrays by source, {there}; got {got}')
    frames = {s.name: _input(data[s.name], s.spec, f"{name}: {s.name}") for s in together.sources}
    return together.join(frames, _aligned(together.spec.bytes))


def _results(specs: tuple[Spec, ...], out: np.ndarray | None, name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The arrays that a job's results will be, and the memory they lie in, each from a multiple of 16 on."""
    if out is not None:
        spec = specs[0]
        if not isinstance(out, np.ndarray) or not out.flags.writeable:
            raise UserError(f'pipeline "{name}": out must be a NumPy array that can be written')
        if len(specs) != 1 or out.dtype != DTYPES[spec.dtype] or out.nbytes != spec.bytes or not out.flags.c_contiguous:
            raise UserError(f'pipeline "{name}": out must be one contiguous array of {spec}')
        if out.ctypes.data % 16 != 0:
            raise UserError(f'pipeline "{name}": out must begin at a multiple of 16 bytes')
        return [out], out.reshape(-1).view(np.uint8)
    offsets, at = [], 0
    for spec in specs:
        at = (at + 15) & -16
        offsets.append(at)
        at += spec.bytes
    memory = _aligned(max(at, 16))
    parts = [memory[o : o + s.bytes].view(DTYPES[s.dtype]).reshape(s.shape) for o, s in zip(offsets, specs)]
    return parts, memory


def _is_word(value: Any) -> bool:
    try:
        return 0 <= operator.index(value) <= MAX_DEADLINE
    except TypeError:
        return False


def _aligned(n: int) -> np.ndarray:
    raw = np.zeros(n + 16, np.uint8)
    at = -raw.ctypes.data % 16
    return raw[at : at + n]


_RUNTIMES: weakref.WeakSet[Runtime] = weakref.WeakSet()


def _after_fork() -> None:
    for runtime in list(_RUNTIMES):
        runtime._forked()


os.register_at_fork(after_in_child=_after_fork)
