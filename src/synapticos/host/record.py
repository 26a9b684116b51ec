"""What firmware writes of a job: its FrameRecord, its outputs or its Fault, the ticks of its stages and layers; and of handlers."""

from __future__ import annotations

from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app.program import FrameRecord
from synapticos.app.spec import DTYPES, Spec
from synapticos.boards import faults
from synapticos.host.blame import Failure, blame, status_of
from synapticos.host.firmware import Firmware
from synapticos.host.report import HandlerReport
from synapticos.kernel.job import Fault
from synapticos.kernel.pipeline import Handled
from synapticos.kernel.status import Status


def read_record(
    built: Firmware, elf: faults.Image, pipeline: str, specs: tuple[Spec, ...], frame: int, data: bytes, at: int
) -> tuple[list[np.ndarray] | Failure, dict[str, Any], int]:
    """The record at byte `at`: outputs or a failure, times, and where it ends."""
    record = lang.unpack(FrameRecord, data, at)
    at += lang.sizeof(FrameRecord)
    status = status_of(record["status"])
    arrays: list[np.ndarray] = []
    failure: Failure | None = None
    if status != Status.OK:
        size, error_at = record["size"][0], record["error_at"]
        fault = lang.unpack(Fault, data, at) if size else None
        at += size
        image = next(p for p in built.image.pipelines if p.name == pipeline)
        failure = blame(
            image, frame, status, error_at >> 16, error_at & 0xFFFF, fault, lambda n: built.files.get(n, f"file {n}"), elf=elf
        )
    else:
        for spec, size in zip(specs, record["size"]):
            flat = np.frombuffer(data[at : at + size], DTYPES[spec.dtype])
            arrays.append(flat.reshape(-1, *spec.shape[1:]) if spec.rows else flat.reshape(spec.shape))
            at += size
    ticks = np.frombuffer(data[at : at + 4 * (record["stages"] + record["layers"])], "<u4").tolist()
    at += 4 * len(ticks)
    times = {"total": record["total"], "stages": ticks[: record["stages"]], "layers": ticks[record["stages"] :], "frame": record["frame"]}
    return arrays if failure is None else failure, times, at


def read_handled(built: Firmware, elf: faults.Image, data: bytes) -> dict[str, HandlerReport]:
    """What became of each pipeline's handler, of those that have one."""
    out, size = {}, lang.sizeof(Handled)
    for i, pipeline in enumerate(built.image.pipelines):
        if pipeline.handler is not None and (i + 1) * size <= len(data):
            row = lang.unpack(Handled, data, i * size)
            status = status_of(row["status"])
            fault = row["fault"] if row["errors"] and int(row["fault"]["kind"]) else None
            failure = None
            if row["errors"]:
                failure = blame(
                    pipeline, 0, status, len(pipeline.steps), 0, fault, lambda n: built.files.get(n, f"file {n}"), elf=elf
                )
            out[pipeline.name] = HandlerReport(pipeline.handler.name, row["runs"], row["errors"], failure)
    return out
