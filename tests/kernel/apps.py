"""App tables for tests: what the app side of the product writes, in a few lines."""

from __future__ import annotations

from dataclasses import dataclass, field

from synapticos.kernel.tables import (
    APP_MAGIC, APP_VERSION, JOB_PREEMPTIBLE, ROW_APP, ROW_BUILTIN, ROW_HOST, ROW_MODEL, AppHeader, JobRow, ModelRow, PipelineRow, SourceRow, StageRow,
)  # fmt: skip
from synapticos.lang import pack, sizeof


@dataclass
class StageOf:
    kind: int
    number: int
    capacity: int = 0
    config: bytes = b""
    binds: list[int] = field(default_factory=list)
    state: int = 0


@dataclass
class PipelineOf:
    stages: list[StageOf]
    result: int = 0
    sink: int = 0
    job: dict | None = None  # priority, flags, deadline_us
    source: int = 0  # + 1
    feed: int = 0  # + 1
    handler: StageOf | None = None
    joins: list[int] = field(default_factory=list)  # sources of its job, if there are several


def app_stage(number: int, capacity: int, binds=()) -> StageOf:
    return StageOf(ROW_APP, number, capacity, b"", list(binds))


def builtin(number: int, capacity: int, config: bytes = b"") -> StageOf:
    return StageOf(ROW_BUILTIN, number, capacity, config)


def host_stage(number: int, capacity: int) -> StageOf:
    return StageOf(ROW_HOST, number, capacity)


def model(number: int) -> StageOf:
    return StageOf(ROW_MODEL, number)


PREEMPTIBLE = int(JOB_PREEMPTIBLE)


def tables(models: list[tuple[bytes, int]], pipelines: list[PipelineOf], result_bytes: int | None = None, sources: list[dict] | None = None, change: dict | None = None, **header) -> tuple[bytes, bytes]:
    """(tables, containers) for models (bytes, backend) and pipelines."""
    containers, rows = b"", []
    for data, backend in models:
        rows.append(pack(ModelRow, container_at=len(containers), container_bytes=len(data), backend=backend))
        containers += data.ljust(-(-len(data) // 16) * 16, b"\0")
    configs, stage_rows, pipeline_rows, job_rows, binds = b"", [], [], [], []
    for i, p in enumerate(pipelines):
        pipeline_rows.append(pack(PipelineRow, first_stage=len(stage_rows), stages=len(p.stages), sink=p.sink, result=p.result, source=p.source, feed=p.feed, handlers=int(p.handler is not None)))
        for s in [*p.stages, *([p.handler] if p.handler is not None else [])]:
            stage_rows.append((s, len(configs), len(binds)))
            configs += s.config.ljust(-(-len(s.config) // 4) * 4, b"\0")
            binds += s.binds
        if p.job is not None:
            job_rows.append(pack(JobRow, pipeline=i, **{"join": len(binds) + 1 if p.joins else 0, **p.job}))
            binds += [len(p.joins), *p.joins] if p.joins else []
    at = sizeof(AppHeader)
    layout = {}
    sections = [("jobs", b"".join(job_rows)), ("models", b"".join(rows)), ("pipelines", b"".join(pipeline_rows)), ("stages", b"\0" * sizeof(StageRow) * len(stage_rows)), ("binds", b"".join(b.to_bytes(2, "little") for b in binds)), ("sources", b"".join(pack(SourceRow, **s) for s in sources or []))]
    for name, data in sections:
        layout[f"{name}_at"] = at
        at += -(-len(data) // 8) * 8
    config_at = at
    sections[3] = ("stages", b"".join(
        pack(StageRow, kind=s.kind, number=s.number, capacity=s.capacity, first_bind=first, binds=len(s.binds), config_at=config_at + c, config_bytes=len(s.config), state_bytes=s.state)
        for s, c, first in stage_rows
    ))  # fmt: skip
    results = max((p.result for p in pipelines), default=0) if result_bytes is None else result_bytes
    head = dict(magic=APP_MAGIC, version=APP_VERSION, models=len(rows), pipelines=len(pipelines), stages=len(stage_rows), jobs=len(job_rows), binds=len(binds), sources=len(sources or []), result_bytes=results, **layout)
    out = pack(AppHeader, **{**head, **header, **(change or {})})
    for _, data in sections:
        out += data.ljust(-(-len(data) // 8) * 8, b"\0")
    return out + configs, containers
