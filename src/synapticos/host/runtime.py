"""Runtime: an app in this process, its jobs as futures.

    with syn.Runtime(app) as rt:
        boxes = rt.run("faces", picture)
        job = rt.submit("faces", picture)
        boxes = job.result(timeout=1.0)        # or: await job

No thread belongs to the kernel: whoever waits for a job runs it, and all that is more urgent, unless another thread
already does. Submitting and cancelling never wait for a step.

A process that is forked off may go on with a runtime that nobody was running; any other is closed there.
"""

from __future__ import annotations

import asyncio
import contextlib
import operator
import os
import threading
import time
import weakref
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app.declare import PRIORITIES, App, Pipeline
from synapticos.app.image import DTYPE, Image, PipelineImage, compile_app, tensor_fields
from synapticos.app.sources import Together
from synapticos.app.spec import DTYPES, Spec
from synapticos.errors import KernelError, UserError
from synapticos.host.blame import Failure, blame, words_of
from synapticos.kernel import sched
from synapticos.kernel import tables as rows
from synapticos.kernel.job import Fault, JobParams
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import StageCall, Tensor

MAX_DEADLINE = 0xFFFFFFFF  # us: a u32 of the kernel
SLICE_MS = 20  # how long the kernel runs between two looks for Ctrl-C and time limits

class Job:
    """A submitted job. Its result can be asked for as often as one likes."""

    def __init__(self, runtime: Runtime, pipeline: PipelineImage, number: int, held: Any, out: list[np.ndarray]) -> None:
        self._runtime, self._pipeline, self.id = runtime, pipeline, number
        self._held = held  # the input: memory that the kernel reads until the job has ended
        self._out = out
        self._status: Status | None = None
        self._error: Exception | None = None
        self.failure: Failure | None = None  # how it failed, if the kernel ended it with an error
        self.times: dict[str, Any] | None = None  # when profiling: ticks in all, by stage, bytes of its frame

    @property
    def done(self) -> bool:
        """Has it ended?"""
        return self._status is not None or self._runtime._look(self)

    def result(self, timeout: float | None = None) -> Any:
        """The result: an array, or a list of them where the pipeline ends in several tensors.

        Raises TimeoutError after `timeout` seconds, KernelError if the job failed or was cancelled.
        """
        self._runtime._wait(self, timeout)
        if self._error is not None:
            raise self._error
        return self._out[0] if len(self._out) == 1 else list(self._out)

    def cancel(self) -> bool:
        """End it, if it has not ended: before its next step if it runs. False if it had ended already."""
        return self._runtime._cancel(self)

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.get_running_loop().run_in_executor(None, self.result).__await__()


class Runtime:
    """An app, compiled for this machine and booted. A process may have several; they share nothing."""

    def __init__(self, app: App, *, engine: str = "native", profile: bool = False, checks: bool = False) -> None:
        """With `checks` compiled code traps where checked Python would, which costs time; a trap ends its job."""
        self.image: Image = compile_app(app)
        self.app = app
        self._engine = start_engine(self.image, engine, checks=checks)
        self.engine = engine
        self.profile = profile
        self._locks()
        # The native kernel takes calls from any thread; an interpreted one is called by one at a time.
        self._calls: Any = contextlib.nullcontext() if engine == "native" else self._taking
        self._jobs: dict[int, Job] = {}
        self._closed = False
        e = self._engine
        self.kernel = e.new(Kernel)
        self._memory = e.array(lang.u8, self.image.arena_bytes)
        self._tables = e.array(lang.u8, self.image.tables)
        self._containers = e.array(lang.u8, self.image.containers)
        self._check(self.image.boot(e, self.kernel, self._memory, self._tables, self._containers), self.app.name)
        self._handles = {p.name: e(rows.app_pipeline, self.kernel, p.number) for p in self.image.pipelines}
        self.kernel.profile.enabled = profile
        self.kernel.profile.trace = profile
        _RUNTIMES.add(self)

    def _locks(self) -> None:
        self._running = threading.Lock()  # held by the thread that runs the kernel
        self._runner = 0  # which thread that is
        self._taking = threading.RLock()  # held while a job is entered in `_jobs`, or its outcome is taken
        self._news = threading.Condition()

    def _forked(self) -> None:
        """In a new process: its one thread holds no lock, and whoever did is not here to finish."""
        if self._running.locked() or not self._taking.acquire(blocking=False):
            self._closed = True
        self._locks()
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
        for job in list(self._jobs.values()):
            job.cancel()
        with self._turn():
            while not self._closed:
                with self._taking:
                    left = next(iter(self._jobs.values()), None)
                    self._closed = left is None
                if left is not None:
                    left.cancel()
                    self._step(left)
        with self._news:
            self._news.notify_all()

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
    ) -> Job:
        """Queue a job. `data` is used where it lies if it is contiguous and aligned, and must not change until the job ends.

        A pipeline of several sources takes a dict of arrays, by source.
        Priority and deadline (microseconds) are those of the app's job unless given. `out` takes the result if the pipeline
        ends in one tensor. Raises KernelError with Status.BUSY if no slot is free.
        """
        if self._closed:
            raise UserError(f"{self.app.name}: the runtime is closed")
        found = self._pipeline(pipeline)
        spec = found.source
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
        array = _input(data, spec, found.name) if found.together is None else _inputs(data, found.together, found.name)
        results, memory = _results(found.outputs, out, found.name)
        e = self._engine
        with self._taking:
            if self._closed:
                raise UserError(f"{self.app.name}: the runtime is closed")
            params = e.new(
                JobParams,
                priority=urgency,
                deadline_us=found.deadline if deadline is None else int(deadline),
                preemptible=True,
            )
            tensor = e.new(Tensor, **tensor_fields(spec))
            held = e.share(array.reshape(-1).view(np.uint8))
            target = e.share(memory)
            pipe = self._handles[found.name]
            status, number = e(sched.infer_post, self.kernel, pipe, tensor, held, target, memory.nbytes, params)
            self._check(status, f'{self.app.name}: pipeline "{found.name}"')
            job = Job(self, found, number, (array, held, target, memory), results)
            self._jobs[number] = job
        return job

    def poll(self) -> bool:
        """Run one step of whatever is most urgent. False if there was nothing to do."""
        if self._closed:
            raise UserError(f"{self.app.name}: the runtime is closed")
        with self._turn(), self._calls, self._whole():
            answer, number = self._engine(sched.kernel_poll, self.kernel)
            if answer == sched.Poll.HOST:
                self._host_stage(number)
        self._collect()
        return answer in (sched.Poll.RAN, sched.Poll.HOST)

    # How it goes on ---------------------------------------------------------------------------------------------------

    def _pipeline(self, wanted: str | Pipeline) -> PipelineImage:
        name = wanted.name if isinstance(wanted, Pipeline) else wanted
        for found in self.image.pipelines:
            if found.name == name:
                return found
        raise UserError(f'{self.app.name}: no pipeline "{name}"; there is {", ".join(p.name for p in self.image.pipelines)}')

    @contextlib.contextmanager
    def _turn(self, wait: bool = True) -> Iterator[bool]:
        """This thread runs the kernel, once no other does; without `wait` the value says whether it may."""
        if self._runner == threading.get_ident():
            raise UserError(f"{self.app.name}: a stage of the host cannot wait for the kernel that runs it; hand on what it needs as its input")
        running = self._running
        mine = running.acquire(blocking=wait)
        try:
            if mine:
                self._runner = threading.get_ident()
            yield mine
        finally:
            if mine:
                self._runner = 0
                running.release()

    def _wait(self, job: Job, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        while job._status is None:
            if self._closed:
                raise UserError(f"{self.app.name}: the runtime is closed")
            left = SLICE_MS / 1000 if end is None else min(SLICE_MS / 1000, end - time.monotonic())
            with self._turn(wait=False) as mine:
                if mine and job._status is None and not self._closed:
                    self._step(job)
            if mine:
                with self._news:
                    self._news.notify_all()
            else:
                with self._news:
                    if job._status is None:
                        self._news.wait(max(left, 0))
            if job._status is None and end is not None and time.monotonic() >= end:
                raise TimeoutError(f'{self.app.name}: job {job.id} of "{job._pipeline.name}" is not done after {timeout:g} s')

    def _step(self, job: Job) -> None:
        """Run the kernel for a while: until `job` has ended, a slice of time is over, or the host has a stage to run."""
        e = self._engine
        with self._calls, self._whole():
            if self.image.host_stages:
                answer, number = e(sched.kernel_poll, self.kernel)
                if answer == sched.Poll.HOST:
                    self._host_stage(number)
            else:
                e(sched.infer_wait, self.kernel, job.id, SLICE_MS)
        self._collect()

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """A kernel that a trap or Ctrl-C has left in the middle of a step is not used again."""
        try:
            yield
        except BaseException:
            self._closed = True
            raise

    def _collect(self) -> None:
        """Take the outcome of every job that has ended, and free its slot."""
        for job in list(self._jobs.values()):
            self._look(job)

    def _look(self, job: Job) -> bool:
        e = self._engine
        with self._taking:
            if job._status is not None:
                return True
            if self._closed:
                return False  # what it has left is not looked at
            over, status = e(sched.outcome, self.kernel, job.id)
            if not over:
                return False
            status = Status(int(status))
            self._finish(job, status)
            if self._jobs.pop(job.id, None) is not None:
                e(sched.infer_detach, self.kernel, job.id)
            job._status = status
        return True

    def _finish(self, job: Job, status: Status) -> None:
        e, name = self._engine, f'{self.app.name}: pipeline "{job._pipeline.name}"'
        array, held, target, memory = job._held
        if self.profile:
            job.times = self._times(job.id)
        if status == Status.OK:
            if self.engine == "cortex-m":  # its memory is its own: what lies there is copied out
                memory[:] = np.frombuffer(bytes(target), np.uint8)
            for i, spec in enumerate(job._pipeline.outputs):
                if spec.rows:
                    tensor = e.new(Tensor)
                    e(sched.infer_output, self.kernel, job.id, i, tensor)
                    job._out[i] = job._out[i][: tensor.shape[0]]
        elif job._error is not None:
            pass  # its stage of the host has raised it
        elif status == Status.CANCELED:
            job._error = KernelError(f"{name}: job {job.id} was cancelled", int(status))
        else:
            job.failure = self._blame(job, status)
            job._error = KernelError(f"{name}: {job.failure}", int(status))
        job._held = None

    def _blame(self, job: Job, status: Status) -> Failure:
        """How a job failed that has ended with an error."""
        e = self._engine
        stage, layer = e(sched.infer_error_at, self.kernel, job.id)
        made = e.new(Fault)
        fault, said = None, ""
        if e(sched.infer_fault, self.kernel, job.id, made) == Status.OK:
            fault = {name: getattr(made, name) for name in ("kind", "pc", "caller", "causes", "address", "file", "line")}
            said = getattr(e, "said", {}).get((made.file, made.line), "")
        core = getattr(e, "core", None)  # of an emulated one
        return blame(
            job._pipeline, 0, status, stage, layer, fault, e.file, elf=core and core.image, said=said, limit_us=self.app.watchdog
        )

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
            status = Status(int(self._engine(sched.infer_abort, self.kernel, job.id)))
        self._look(job)
        return status == Status.OK

    def _host_stage(self, number: int) -> None:
        """Run the NumPy stage that job `number` wants, and post what it made."""
        e = self._engine
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

    def jobs(self) -> Iterator[Job]:
        """Those that have not ended, or whose end nobody has seen."""
        return iter(list(self._jobs.values()))


def start_engine(image: Image, name: str, *, checks: bool = False) -> Any:
    """An engine for an app on this machine, whose clock is the machine's."""
    build = image.build()
    if name == "native":
        return build.engine(name, real_clock=True, checks=checks)
    if name == "checked":
        from synapticos.boards.host import HostBoard

        return build.engine(name, board=HostBoard(real_clock=True))
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
