"""An app compiled: tables, containers and the functions of its stages, with all sizes known.

`compile_app` plans the arena as the kernel's boot will lay it out, and boot compares:
models' persistent bytes, sources' entries, stages' states, cascades' boxes, a result buffer for each job slot, a frame for each class, scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from synapticos import lang
from synapticos.app import calls, program
from synapticos.app.declare import LATE, NORMAL, QUEUE, App, JobDecl, Pipeline
from synapticos.app.sources import Feed, Source, Together
from synapticos.app.spec import DTYPES, Spec
from synapticos.app.stage import Binding, HostStage, write_adapter
from synapticos.app.steps import Step
from synapticos.errors import UserError
from synapticos.kernel import due, feed, sched
from synapticos.kernel import tables as rows
from synapticos.kernel.advance import CALLBACKS
from synapticos.kernel.cpu_backend import CPU_BACKEND
from synapticos.kernel.handler import JOB_INFO_BYTES, handle_result
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.layers import tables as layer_tables
from synapticos.kernel.npu import BACKEND_CPU
from synapticos.kernel.parts import Part
from synapticos.kernel.release import BOX_STRIDE
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.sim import BACKEND_SIM, SIM_BACKEND
from synapticos.kernel.stages.tables import KINDS, ROWS, scratch_size, stage_tables, state_size
from synapticos.kernel.tensor import MAX_STAGE_INPUTS, DType, Tensor
from synapticos.model.graph import short

HANDLE_RESULT = 1  # its number among an app's callbacks, which are no others
MIN_SLOTS = 4  # of jobs, in a build for this machine
CLASSES = 3
FRONT_ENDS = ("features", "stream_features", "micro_features")  # the built-ins that make features of sound
MAX_ENTRIES = 64  # of one source, as `kernel/capacity` has it
BACKENDS: dict[Any, list[Any]] = dict(CPU_BACKEND)  # type: ignore[arg-type]
BACKENDS_NPU: dict[Any, list[Any]] = dict(SIM_BACKEND)  # type: ignore[arg-type]
DTYPE = {"int8": DType.INT8, "uint8": DType.UINT8, "int16": DType.INT16, "int32": DType.INT32, "float32": DType.FLOAT32}
HOST_ROOTS: list[Any] = [
    program.app_start,
    sched.infer_post,
    sched.infer_detach,
    sched.infer_output,
    sched.infer_error_at,
    sched.infer_fault,
    sched.kernel_poll,
    sched.stage_take,
    sched.stage_done,
    rows.app_pipeline,
    *(calls.job_run, calls.job_await, calls.job_look, calls.job_stop),
]


CLOCK_ROOTS: list[Any] = [
    *(due.releases_start, due.kernel_due, calls.take_turn, calls.ended_take, due.job_enable, due.job_counts, due.source_counts),
    feed.source_push,
]


@dataclass
class PipelineImage:
    """A pipeline as the kernel has it."""

    name: str
    number: int
    source: Spec
    steps: list[Step]
    outputs: tuple[Spec, ...]
    result_bytes: int
    plan: int  # bytes of its frame
    priority: int
    deadline: int  # us, 0: none
    worst: str  # which two neighbours make the plan
    together: Together | None = None  # its sources, where there are several
    watchdogs: list[int] = field(default_factory=list)  # us that each step may take; 0: any time
    handler: Binding | None = None  # what gets its results, compiled


@dataclass
class FeedImage:
    """A source that keeps what arrives, as the kernel has it."""

    source: Source
    number: int
    keep: int

    @property
    def bytes(self) -> int:
        """Of all entries."""
        return _up(self.source.spec.bytes) * self.keep


@dataclass
class Image:
    """All that an engine or firmware needs of an app."""

    app: App
    tables: bytes
    containers: bytes
    pipelines: list[PipelineImage]
    stages: list[Any]  # functions of APP_STAGES
    host_stages: list[tuple[HostStage, Spec]]
    variants: set[int]
    slots: int
    result_bytes: int
    frames: list[int]
    persistent: int
    states: int  # bytes that stages keep, each rounded up
    scratch: int
    layers: int
    jobs: list[JobDecl] = field(default_factory=list)
    feeds: list[FeedImage] = field(default_factory=list)  # sources that keep what arrives

    @property
    def clocked(self) -> bool:
        """Whether the kernel itself begins jobs of this app."""
        return any(job.released for job in self.jobs)

    @property
    def waiting(self) -> int:
        """Releases of one job that may wait, at most."""
        return max((job.depth for job in self.jobs if job.released), default=1)

    @property
    def before_frames(self) -> int:
        """What lies in the arena below the frames: persistent bytes, entries, states, boxes, results."""
        entries = sum(feed.bytes for feed in self.feeds)
        boxes = sum(BOX_STRIDE * (self.waiting + 1) for job in self.jobs if job.cascade is not None)
        joined = sum(_up(together.spec.bytes) * (self.waiting + 1) for together in self.joined)
        return _up(self.persistent) + entries + self.states + boxes + joined + self.result_bytes * self.slots

    @property
    def joined(self) -> list[Together]:
        """The sources of each job that the kernel begins, of those that read several."""
        return [job.pipeline.source for job in self.jobs if job.released and isinstance(job.pipeline.source, Together)]

    @property
    def arena_bytes(self) -> int:
        """All of it, with frames and scratch."""
        return self.before_frames + sum(self.frames) + self.scratch

    @property
    def guarded(self) -> bool:
        """Whether firmware contains faults in the job that makes them: where there is code of the user's own, or a watchdog."""
        return bool(self.stages) or any(limit != 0 for pipeline in self.pipelines for limit in pipeline.watchdogs)

    @property
    def own_watchdogs(self) -> bool:
        """Whether one of its steps may take another time than the app says for all."""
        return any(limit != self.app.watchdog for pipeline in self.pipelines for limit in pipeline.watchdogs)

    @property
    def guards(self) -> dict[str, int]:
        """Parameters of a build that contains faults."""
        own = self.own_watchdogs  # then the tables say all of them
        return {"GUARD": 1, "WATCHDOG_US": 0 if own else self.app.watchdog, "WATCHDOGS": int(own)}

    def shortages(self) -> list[str]:
        """What of the app's own budget for the arena is not enough: needed, available, missing, and what is alive at the peak."""
        need, room = self.arena_bytes, self.app.ram
        if room is None or need <= room:
            return []
        worst = max(self.pipelines, key=lambda p: p.plan)
        return [
            f"the arena needs {need:,} bytes, {room:,} are available, {need - room:,} are missing; "
            f"most is alive in pipeline {worst.name}, {worst.worst}"
        ]

    @property
    def source_bytes(self) -> int:
        """One frame of each job, where firmware keeps them."""
        return run_rows(self)[1]

    @property
    def parameters(self) -> dict[str, int]:
        """Capacities of a build that carries this app and no more."""
        most = max((len(p.steps) + (p.handler is not None) for p in self.pipelines), default=1)
        return {
            "MAX_MODELS": max(len(self.app.models), 1),
            "MAX_PIPELINES": max(len(self.pipelines), 1),
            "MAX_PIPELINE_STAGES": max(most, 1),
            "MAX_JOBS": self.slots,
            "PIPELINE_CONFIG_BYTES": 4,
            "STAGE_INPUTS": max([1 + bool(self.app.cascades), *(len(step.outputs) for p in self.pipelines for step in p.steps)]),
            "HANDLERS": int(self.handles),
            "SCRATCH_DEPTH": 1,
            "PARTS": int(any(step.kind == "part" for p in self.pipelines for step in p.steps)),
            "FRONT_ENDS": int(any(step.name in FRONT_ENDS for p in self.pipelines for step in p.steps if step.kind == "builtin")),
            "NPU_INPUT_BYTES": 4,  # nobody drives the accelerator by hand
            "NPU_OUTPUT_BYTES": 4,
            "LAYER_TIMES": max(self.layers, 1),
            "RELEASES": len(self.jobs) if self.clocked else 0,
            "FEEDS": len(self.feeds),
            "FEED_ENTRIES": max((feed.keep for feed in self.feeds), default=1),
            "MAX_WAITING": self.waiting,
            "JOINS": max((len(together.sources) for together in self.joined), default=0),
            "OFFLOAD": int(self.offloads),
        }

    @property
    def handles(self) -> bool:
        """Does compiled code of the app get results?"""
        return any(p.handler is not None for p in self.pipelines)

    @property
    def callbacks(self) -> list[Any]:
        return [handle_result] if self.handles else []

    @property
    def offloads(self) -> bool:
        """Does the accelerator run a model of it?"""
        return any(model.on == "npu" for model in self.app.models)

    @property
    def backends(self) -> dict[Any, list[Any]]:
        return BACKENDS_NPU if self.offloads else BACKENDS

    @property
    def lean_tables(self) -> dict[Any, list[Any]]:
        """Rows of the kernel's open tables without the layers, built-ins and the stub that this app does not use; every
        number keeps its place, and a table ends with the last that is used."""
        used = {step.name for p in self.pipelines for step in p.steps if step.kind == "builtin"}
        layers = 1 + max(self.variants, default=0)
        stages = 1 + max((KINDS[name] for name in used), default=0)
        return {
            **{table: [entries[BACKEND_CPU], *entries[BACKEND_CPU:]] for table, entries in self.backends.items()},
            APP_STAGES: self.stages,
            CALLBACKS: self.callbacks,
            layer_tables.VALIDATE: layer_tables.validate_functions(self.variants)[:layers],
            layer_tables.RUN: layer_tables.run_functions(self.variants)[:layers],
            **{table: rows[:stages] for table, rows in stage_tables(used).items()},
        }

    def build(self) -> Any:
        """For this machine: what a Runtime calls."""
        from synapticos.engine import Build

        roots = HOST_ROOTS + (CLOCK_ROOTS if self.clocked else [])
        return Build(roots, tables=self.lean_tables, **self.parameters | self.guards)  # type: ignore[arg-type]

    def boot(self, e: Any, kernel: Any, memory: Any, tables: Any, containers: Any) -> Any:
        """Start the app on an engine: the kernel's Status."""
        return e(
            program.app_start,
            *(kernel, 0, memory, self.arena_bytes, self.scratch),
            *(tables, len(self.tables), containers, len(self.containers)),
        )


def compile_app(app: App, *, slots: int | None = None, enforce: bool = True, handlers: bool = True) -> Image:
    """Compile an app, with its handlers or without. Raises UserError for all that cannot be: no job, a model that does not
    compile, too little RAM.

    Without `enforce` the caller asks for `shortages` itself, to report them with others.
    """
    if not app.pipelines:
        raise UserError(f'app "{app.name}": has no pipeline; app.pipeline(name, source) begins one')
    for pipeline in app.pipelines.values():
        if not pipeline.has_model and pipeline.ends_in_feed is None:
            raise UserError(f'pipeline "{pipeline.name}": has no model; add .model(...)')
        if pipeline.crops and pipeline.job is None:
            raise UserError(f'pipeline "{pipeline.name}": looks at boxes, and no cascade runs it; app.cascade(name, detector, each={pipeline.name})')
    for cascade in app.cascades.values():
        if cascade.detector.job is None or not cascade.detector.job.released:
            raise UserError(
                f'cascade "{cascade.name}": "{cascade.detector.name}" -> "{cascade.each.name}": nothing releases the detector; app.job({cascade.detector.name}, every= or on=)'
            )
    slots = slots or max(MIN_SLOTS, len(app.jobs))
    writer = _Writer(app, handlers)
    images = [writer.pipeline(i, p) for i, p in enumerate(app.pipelines.values())]
    frames = [0] * CLASSES
    for image in images:
        frames[image.priority] = max(frames[image.priority], image.plan)
    compiled = [m.compiled for m in app.models]
    persistent = 0
    for made in compiled:
        if _persistent(made):
            persistent = _up(persistent) + _persistent(made)
    results = _up(max(image.result_bytes for image in images))
    out = Image(
        app,
        b"",
        b"".join(_pad(made.container) for made in compiled),
        images,
        writer.stages,
        writer.host_stages,
        {variant for made in compiled for variant in _variants(made)},
        slots,
        results,
        frames,
        persistent,
        sum(_up(row.get("state_bytes", 0)) for row in writer.stage_rows),
        _up(max([writer.scratch, *(made.scratch_bytes for made in compiled)])),
        max((len(made.info.layers) for made in compiled), default=1),
        list(app.jobs),
        writer.feeds,
    )
    out.tables = writer.tables(out)
    if enforce and out.shortages():
        raise UserError(f'app "{app.name}": {out.shortages()[0]}')
    return out


class _Writer:
    """Collects the rows of an app's tables."""

    def __init__(self, app: App, handlers: bool) -> None:
        self.app, self.handlers = app, handlers
        self.stages: list[Any] = []
        self.host_stages: list[tuple[HostStage, Spec]] = []
        self.stage_rows: list[dict[str, Any]] = []
        self.scratch = 0  # the most that a built-in needs
        self.pipeline_rows: list[dict[str, Any]] = []
        self.configs: list[bytes] = []
        self.binds: list[int] = []
        self.feeds = fed_sources(app)

    def feed(self, source: Any) -> int:
        """The number of a source that keeps what arrives, + 1; 0: it does not."""
        return next((feed.number + 1 for feed in self.feeds if feed.source is source), 0)

    def pipeline(self, number: int, pipeline: Pipeline) -> PipelineImage:
        first = len(self.stage_rows)
        sizes, labels = [], []
        for step in pipeline.steps:
            row, size = self.step(step)
            self.stage_rows.append(row)
            sizes.append(size)
            labels.append(step)
        result = 0
        into = pipeline.ends_in_feed
        for spec in pipeline.specs if into is None else ():
            result = _up(result) + spec.bytes
        job = pipeline.job
        row = {"first_stage": first, "stages": len(pipeline.steps), "source": 0, "sink": 0, "result": result, "feed": self.feed(into)}
        if job is not None and job.released:
            row["source"] = self.feed(job.on or pipeline.source)  # of several the one that releases it, or none
        handler = pipeline.handler if self.handlers else None
        if handler is not None:
            row |= {"sink": HANDLE_RESULT, "handlers": 1}
            told = JOB_INFO_BYTES if handler.told else 1  # what it is told of its job
            self.stage_rows.append({**self.own(handler), "capacity": told})
        self.pipeline_rows.append(row)
        needs = frame_needs(pipeline.steps, sizes)
        at = max(range(len(sizes)), key=lambda i: needs[i])
        step = labels[at]
        worst = f"at {step.kind} {step.name}"
        if step.model is not None:
            info = step.model.compiled.info
            alive = ", ".join(f"{short(name)} {size:,}" for name, size in info.alive)
            worst += f", layer {info.worst_layer}, where {alive} bytes are alive"
        return PipelineImage(
            pipeline.name,
            number,
            pipeline.source.spec,
            list(pipeline.steps),
            pipeline.specs,
            result,
            needs[at],
            job.priority if job else NORMAL,
            job.deadline if job else 0,
            worst,
            pipeline.source if isinstance(pipeline.source, Together) else None,
            [self.app.watchdog if limit is None else limit for limit in self.watchdogs(pipeline)],
            handler,
        )

    def watchdogs(self, pipeline: Pipeline) -> list[int | None]:
        """What each step, or else its job, says of how long it may take; the handler is as the job says."""
        job = None if pipeline.job is None else pipeline.job.watchdog
        steps = [job if step.watchdog is None else step.watchdog for step in pipeline.steps]
        return steps if pipeline.handler is None else [*steps, job]

    def step(self, step: Step) -> tuple[dict[str, Any], int]:
        """A stage's row, and the bytes that its result gets."""
        if step.kind == "part":
            source, place, size = step.place
            spec = step.outputs[0]
            fields = {name: value for name, value in tensor_fields(spec).items() if name != "size"}
            part = lang.pack(Part, at=source, **fields | {"size": spec.bytes, "dtype": int(fields["dtype"])}, place=place, bytes=size)
            return {"kind": rows.ROW_PART, **self.config(part)}, 0
        row: dict[str, Any] = {"capacity": step.result_bytes}
        if step.model is not None:
            if len(step.model.outputs) > MAX_STAGE_INPUTS:
                raise UserError(f'model "{step.name}": has {len(step.model.outputs)} outputs; at most {MAX_STAGE_INPUTS} can be handed on')
            size = max(step.model.compiled.frame_bytes, 16)
            return {"kind": rows.ROW_MODEL, "number": self.app.models.index(step.model), "capacity": 0}, size
        if step.kind == "builtin":
            number = KINDS[step.name]
            row |= {"kind": rows.ROW_BUILTIN, "number": number}
            if step.config is not None:
                config: Any = step.config if isinstance(step.config, bytes) else lang.pack(ROWS[number].config, **step.config)
                row |= self.config(config)
                row["state_bytes"] = state_size(number, config, len(config))
                self.scratch = max(self.scratch, scratch_size(number, config, len(config)))
        elif step.binding is not None:
            row |= self.own(step.binding)
        elif step.host is not None:
            row |= {"kind": rows.ROW_HOST, "number": len(self.host_stages)}
            self.host_stages.append((step.host, step.outputs[0]))
        if step.outputs[0].rows:
            row["rows"] = step.outputs[0].shape[0]
        return row, step.result_bytes

    def own(self, binding: Binding) -> dict[str, Any]:
        """The row of a function of the app's, but for its result."""
        row: dict[str, Any] = {"kind": rows.ROW_APP, "number": len(self.stages)}
        self.stages.append(write_adapter(binding, len(self.stages)))
        config = binding.pack()
        if config:
            row |= self.config(config)
        row |= {"first_bind": len(self.binds), "binds": len(binding.arrays), "state_bytes": binding.state_bytes}
        self.binds += [i for _, i in binding.arrays]
        return row

    def config(self, data: bytes) -> dict[str, Any]:
        at = sum(map(len, self.configs))
        self.configs.append(data + bytes(-len(data) % 4))
        return {"config_at": at, "config_bytes": len(data)}  # from where the configurations begin, until that is known

    def tables(self, image: Image) -> bytes:
        """The region: header, rows, binds, configurations."""
        app = self.app
        models, container_at = [], 0
        for model in app.models:
            size = len(model.compiled.container)
            models.append({"container_at": container_at, "container_bytes": size, "backend": BACKEND_SIM if model.on == "npu" else BACKEND_CPU})
            container_at += _up(size)
        jobs: list[dict[str, Any]] = [
            {
                "pipeline": list(app.pipelines.values()).index(job.pipeline),
                "priority": job.priority,
                "flags": job_flags(job),
                "late": LATE[job.late],
                "policy": QUEUE[job.queue],
                "depth": job.depth,
                "most": job.cascade.most if job.cascade else 0,
                "deadline_us": job.deadline,
                "period_us": job.every,
                "phase_us": job.phase,
                "jitter_us": job.jitter,
                "parent": list(app.pipelines.values()).index(job.cascade.detector) + 1 if job.cascade else 0,
            }
            for job in app.jobs
        ]
        for job, job_row in zip(app.jobs, jobs, strict=True):
            if job.released and isinstance(job.pipeline.source, Together):
                sources = job.pipeline.source.sources
                self.binds += [len(sources), *(self.feed(source) - 1 for source in sources)]
                job_row["join"] = len(self.binds) - len(sources)
        at = lang.sizeof(rows.AppHeader)
        places: dict[str, int] = {}
        sections: list[bytes] = []

        def section(name: str, data: bytes, align: int) -> None:
            nonlocal at
            gap = -at % align
            sections.append(bytes(gap) + data)
            places[name] = at + gap
            at += gap + len(data)

        configs_at = at  # first, so that stage rows can say where
        section("configs", b"".join(self.configs), 4)
        for row in self.stage_rows:
            if row.get("config_bytes"):
                row["config_at"] += configs_at
        section("jobs_at", _rows(rows.JobRow, jobs), 8)
        section("models_at", _rows(rows.ModelRow, models), 4)
        section("pipelines_at", _rows(rows.PipelineRow, self.pipeline_rows), 4)
        section("stages_at", _rows(rows.StageRow, self.stage_rows), 4)
        section("binds_at", b"".join(b.to_bytes(2, "little") for b in self.binds), 4)
        section("sources_at", b"".join(feed_row(feed) for feed in self.feeds), 4)
        if image.own_watchdogs:
            limits = [limit for p in image.pipelines for limit in p.watchdogs]
            section("watchdogs_at", b"".join(limit.to_bytes(4, "little") for limit in limits), 4)
        del places["configs"]
        frames, place = [], image.before_frames
        for size in image.frames:
            frames.append({"at": place if size else 0, "bytes": size})
            place += size
        header = _pack(
            rows.AppHeader,
            magic=rows.APP_MAGIC,
            version=rows.APP_VERSION,
            models=len(models),
            pipelines=len(self.pipeline_rows),
            stages=len(self.stage_rows),
            jobs=len(jobs),
            binds=len(self.binds),
            sources=len(self.feeds),
            result_bytes=image.result_bytes,
            frames=_rows(rows.FrameRow, frames),
            persistent_bytes=image.persistent,
            arena_bytes=image.arena_bytes,
            scratch_bytes=image.scratch,
            **places,
        )
        return header + b"".join(sections)


def frame_needs(steps: list[Step], sizes: list[int]) -> list[int]:
    """Bytes of the frame while each step runs: what it reads there and what it leaves, and the block of a model's several
    inputs while it grows. As boot has them, in `plan_pipeline`."""
    model = next((i for i, step in enumerate(steps) if step.kind == "model"), None)
    if model is None:
        rooms = [0, *map(_up, sizes)]
        return [a + b for a, b in zip(rooms, rooms[1:])]
    network = steps[model].model
    assert network is not None
    block = _up(network.input_bytes) if steps[0].kind == "part" else 0
    needs, before = [], 0
    for i, (step, size) in enumerate(zip(steps, sizes)):
        room = _up(size)
        if block and i < model:
            before = 0 if step.kind == "part" else before
            room = 0 if steps[i + 1].kind in ("part", "model") else room
            needs.append(block + before + room)
        else:
            before = block if block and i == model else before
            needs.append(before + room)
        before = room
    return needs


def job_flags(job: JobDecl) -> int:
    """The flags of a job's row."""
    flags = int(rows.JOB_PREEMPTIBLE) if job.preemptible else 0
    if job.on is not None:
        flags |= int(rows.JOB_BY_SOURCE)
    return flags if job.enabled else flags | int(rows.JOB_DISABLED)


def fed_sources(app: App) -> list[FeedImage]:
    """The sources that keep what arrives: those of the jobs that the kernel begins, each before what is made of it.

    Where the app does not say how many entries one keeps, they are as many as can be in use at once: one that is filled
    (two, if entries overlap), for each job that it releases one that is read and those that wait, and for each by the clock
    one that is read, beside the newest. Jobs of several sources read copies: of the one that releases them an entry waits for poll."""
    found: list[FeedImage] = []
    for source in app.sources.values():
        jobs = [job for job in app.jobs if job.released and job.pipeline.source is source]
        joined = [job for job in app.jobs if job.released and job.pipeline.source is not source and source in job.pipeline.source.members]
        if not jobs and not joined and not isinstance(source, Feed):
            continue
        keep = source.keep
        if keep is None:
            keep = 1 + (source.hop_bytes < source.spec.bytes) + (any(job.every for job in jobs) or any(job.on is not source for job in joined))
            keep += any(job.on is source for job in joined)
            keep += sum(1 if job.every else job.depth + 1 for job in jobs if job.cascade is None)
            keep += sum(min(job.depth, 2) for job in jobs if job.cascade is not None)
        if keep > MAX_ENTRIES:
            raise UserError(f'source "{source.name}": its jobs may hold {keep} entries, {MAX_ENTRIES} is the most; say keep=, or depth= of the jobs')
        found.append(FeedImage(source, len(found), keep))
    return found


def feed_row(feed: FeedImage) -> bytes:
    source = feed.source
    tensor = tensor_fields(source.spec)
    return _pack(
        rows.SourceRow, bytes=source.spec.bytes, hop=source.hop_bytes, period_us=min(source.period_us, 0xFFFFFFFF), shape=tensor["shape"],
        dtype=tensor["dtype"], ndim=tensor["ndim"], keep=feed.keep,
    )  # fmt: skip


def run_rows(image: Image) -> tuple[bytes, int]:
    """The rows by which firmware feeds each job, and the bytes of input memory they need."""
    out, at = [], 0
    if image.clocked:  # one buffer, for a piece of any source
        return b"", _up(max((one.source.hop_bytes for one in image.feeds), default=16))
    for job in image.jobs:
        spec = job.pipeline.source.spec
        number = [p.name for p in image.pipelines].index(job.pipeline.name)
        out.append(lang.pack(program.RunRow, pipeline=number, input_at=at, tensor=tensor_fields(spec)))
        at = _up(at + spec.bytes)
    return b"".join(out), max(at, 16)


def tensor_fields(spec: Spec) -> dict[str, Any]:
    """A tensor's descriptor, without its place."""
    shape = tuple(spec.shape)[-4:]
    return {
        "size": spec.bytes,
        "dtype": DTYPE.get(spec.dtype, DType.FLOAT32),  # records of argmax and top_k, as these describe them
        "ndim": len(shape),
        "shape": [*shape, *[0] * (4 - len(shape))],
    }


def _pack(struct: Any, /, **fields: Any) -> bytes:
    return lang.pack(struct, **fields)


def _rows(kind: Any, items: list[dict[str, Any]]) -> bytes:
    return b"".join(_pack(kind, **item) for item in items)


def _up(n: int) -> int:
    return -(-n // 16) * 16


def _pad(data: bytes) -> bytes:
    return data + bytes(_up(len(data)) - len(data))


def _persistent(compiled: Any) -> int:
    return int(getattr(compiled, "persistent_bytes", 0))


def _variants(compiled: Any) -> list[int]:
    from synapticos.kernel.layers.variants import VARIANTS

    names = {name: number for number, name in VARIANTS.items()} if isinstance(VARIANTS, dict) else {n: i for i, n in enumerate(VARIANTS)}
    return [names[layer.variant] for layer in compiled.info.layers]


__all__ = ["DTYPES", "Image", "Kernel", "PipelineImage", "Tensor", "compile_app", "run_rows", "tensor_fields"]
