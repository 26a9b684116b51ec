"""What a job's Fault says, in words: what happened, and at which Python line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from synapticos.app.image import PipelineImage
from synapticos.boards import faults
from synapticos.kernel.job import FaultKind
from synapticos.kernel.status import Status

WORDS = {
    Status.CANCELED: "was cancelled",
    Status.NOMEM: "has too little memory",
    Status.ACCES: "hears other features than its model was trained on",
    Status.MSGSIZE: "was given a tensor of another size than it takes",
    Status.FBIG: "says that it wrote more than it had room for",
    Status.INVAL: "returned INVAL: was given a wrong tensor, or left one whose shape its size does not hold",
}

_AROUND = ("kernel/guard.py", "kernel/handler.py", "cortex_m/guard.c")  # call stages, layers and handlers


def status_of(number: Any) -> Status:
    """A number that firmware wrote down as a status; IO if it is none, as an overrun stage may leave."""
    try:
        return Status(int(number))
    except ValueError:
        return Status.IO


def words_of(status: Status) -> str:
    """A status as the rest of a sentence."""
    return WORDS.get(status, f"ended with {status.name}")


@dataclass(frozen=True)
class Failure:
    """A job that ended with an error. `file` and `line` are of the Python source; "" and 0 where nobody knows."""

    pipeline: str
    frame: int
    status: Status
    stage: int
    layer: int | None  # of a model
    step: str  # "stage decode", 'model "person", layer 7'
    text: str  # what happened, as the rest of a sentence
    file: str = ""
    line: int = 0
    faulted: bool = False  # it did not return

    def __str__(self) -> str:
        return f"{self.step} {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "pipeline": self.pipeline, "frame": self.frame, "status": self.status.name, "stage": self.stage, "layer": self.layer,
            "step": self.step, "text": self.text, "file": self.file, "line": self.line,
        }  # fmt: skip


def blame(
    pipeline: PipelineImage, frame: int, status: Status, stage: int, layer: int, fault: dict[str, Any] | None,
    files: Callable[[int], str], *, elf: faults.Image | None = None, said: str = "",
) -> Failure:  # fmt: skip
    """The failure of a job at `stage` and `layer`. `files` names the file of a number, `elf` is the firmware that ran."""
    step = pipeline.steps[stage] if stage < len(pipeline.steps) else None
    binding = step.binding if step is not None else pipeline.handler
    model = step is not None and step.kind == "model"
    if step is None and binding is None:
        return Failure(pipeline.name, frame, status, stage, None, "its job", words_of(status))
    if step is None:
        name = f"handler {binding.name if binding else ''}"
    else:
        name = f'model "{step.name}", layer {layer},' if model else f'source "{step.name}"' if step.kind == "part" else f"stage {step.name}"
    text, file, line = words_of(status), "", 0
    if fault is not None:
        kind = FaultKind(int(fault["kind"]))
        text = {
            FaultKind.PROCESSOR: faults.cause(3, int(fault["causes"]), int(fault["address"]), int(fault["address"])),
            FaultKind.CHECK: said or "a check failed",
            FaultKind.LATE: f"took longer than the {pipeline.watchdogs[stage] / 1000:g} ms that it may",
        }[kind]
        text = text if kind == FaultKind.LATE else f"did what it may not: {text}"
        place = None
        if kind != FaultKind.PROCESSOR and fault["line"]:
            file, line = files(int(fault["file"])), int(fault["line"])
            text += f", at {file}:{line}"
        elif elf is not None and fault["pc"]:
            place = elf.place(int(fault["pc"]))
            # What a compiler's own routine (memset) did is its caller's.
            if not place.file.endswith(".py") and fault["caller"]:
                place = elf.place((int(fault["caller"]) & ~1) - 2)
        if place is not None and binding is not None and place.file.endswith(_AROUND):
            place = None  # what the stage has left of the stack around it
        if place is not None and (place.file or place.function):
            file, line = place.file, place.line
            text += f", in {place}"
        elif not line and binding is not None:
            function = binding.stage.function
            file, line = function.file, function.line
            text += f", in {function.__name__} ({file}:{line})"
    return Failure(pipeline.name, frame, status, stage, layer if model else None, name, text, file, line, fault is not None)
