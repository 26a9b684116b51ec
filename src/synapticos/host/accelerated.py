"""Steps of a job whose model runs on the accelerator: polls of the processor that begin and take up, and what goes on between.

A model of n layers is n + 1 polls: one that begins the first layer, n - 1 that take one up and begin the next, one that
takes up the last. Where the model may have been put out, a load comes before a layer: the poll that would have begun the
layer begins the load, and one more poll begins the layer. A load is counted

- before the first layer, always: another job's model may be there, and after boot none is;
- before each other layer, if the job gives the accelerator back in between, and other classes have as many models of their
  own as there are places: the model used longest ago leaves, and in its own class nobody begins.

Between the polls is the device's own time, of which no instruction knows: it is what the device was told it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synapticos.app.declare import JobDecl
from synapticos.app.image import Image
from synapticos.kernel.capacity import RESIDENT_MODELS

NOTHING, LOAD, STEP = 0, 1, 2  # kernel.backend.NpuWork
Polled = dict[tuple[int, bool, int], int]  # (layer before, taken up, begun): the longest of such polls, in cycles


@dataclass(frozen=True)
class Piece:
    """One step: cycles of the processor, or ns of the accelerator."""

    name: str
    layer: int | None
    cycles: int = 0
    ns: int = 0


@dataclass
class Device:
    """What the accelerator was told: ns of each layer of a model and, as layer None, of its load."""

    times: dict[tuple[str, int | None], int] = field(default_factory=dict)

    def tell(self, model: str, layer: int | None, ns: int) -> None:
        self.times[model, layer] = max(ns, self.times.get((model, layer), 0))


def places(parameters: Mapping[str, int]) -> int:
    """Models that the accelerator holds at once."""
    return int(RESIDENT_MODELS.value(dict(parameters)))  # type: ignore[attr-defined]


def on_npu(job: JobDecl) -> tuple[int, str] | None:
    """The stage of a job's model that runs on the accelerator, and the model's name."""
    for number, step in enumerate(job.pipeline.steps):
        if step.model is not None and step.model.on == "npu":
            return number, step.model.name
    return None


def reloads(image: Image, job: JobDecl) -> bool:
    """May the job's model have been put out between two of its layers?"""
    mine = on_npu(job)
    if mine is None or not job.preemptible:
        return False
    users = [(other.priority, found[1]) for other in image.jobs if (found := on_npu(other)) is not None]
    others = {name for priority, name in users if priority != job.priority} - {mine[1]}
    return len(others) >= places(image.parameters)


def offloaded(image: Image, job: JobDecl, polled: Polled, device: Device, bring: int) -> list[Piece]:
    """The steps of the job's model. `bring` are the cycles of a poll that begins a load, if this job never had to."""
    found = on_npu(job)
    assert found is not None
    stage, model = found
    compiled = job.pipeline.steps[stage].model
    assert compiled is not None
    layers = compiled.compiled.info.layers
    bring = max((cycles for (_, taken, begun), cycles in polled.items() if not taken and begun == LOAD), default=bring)
    start = max(cycles for (_, taken, begun), cycles in polled.items() if not taken and begun == STEP)
    again = reloads(image, job)
    out = []
    for k, info in enumerate(layers):
        loads = k == 0 or again
        name = f"{model} layer {k} {info.operator}"
        taken = polled[k - 1, True, STEP] if k else 0  # it begins this layer too, which is no less than looking in vain
        if loads:
            out.append(Piece(f"{name}: begin load", k, taken + bring))
            out.append(Piece(f"{model} load", k, ns=device.times[model, None]))
        out.append(Piece(f"{name}: begin", k, start if loads else taken))
        out.append(Piece(name, k, ns=device.times[model, k]))
    out.append(Piece(f"{model}: take up", len(layers) - 1, polled[len(layers) - 1, True, NOTHING]))
    return out
