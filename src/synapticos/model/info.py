"""What there is to know about a compiled model: for `syn model info`, and for scripts as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from synapticos.kernel.layers.variants import VARIANTS, Const, LayerPlan
from synapticos.model.graph import Graph, Tensor, short
from synapticos.model.plan import MemoryPlan

MULTIPLIES = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"})  # whose cost is multiply-accumulates


@dataclass(frozen=True)
class TensorInfo:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None  # the first, where there are several
    zero: int | None
    bytes: int
    number: int  # in the source model
    offset: int | None  # in the frame; None: with the caller


@dataclass(frozen=True)
class LayerInfo:
    """A step."""

    step: int
    operator: str
    node: int  # in the source model
    variant: str
    inputs: tuple[TensorInfo, ...]  # without the constants
    outputs: tuple[TensorInfo, ...]
    options: dict[str, Any]
    macs: int
    cost: int  # multiply-accumulates, or elements
    weights: int  # bytes of constants, as repacked
    scratch: int
    live: int  # bytes of the frame in use


@dataclass(frozen=True)
class BufferInfo:
    name: str
    offset: int
    size: int
    first: int  # steps between which it is alive
    last: int


@dataclass(frozen=True)
class ModelInfo:
    name: str
    container: int  # bytes
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    layers: tuple[LayerInfo, ...]
    macs: int
    weights: int
    frame: int  # bytes: the plan's peak
    scratch: int
    ram: int  # frame and scratch
    lower_bound: int  # bytes alive at the worst step: no plan can be smaller
    total: int  # bytes of all results, as if none shared memory
    worst_step: int
    worst_layer: str
    alive: tuple[tuple[str, int], ...]  # name and bytes at the worst step
    buffers: tuple[BufferInfo, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain lists, dicts and numbers."""
        return asdict(self)

    def to_text(self) -> str:
        """A table of the layers and the sums."""

        def shape(tensors: Sequence[TensorInfo]) -> str:
            return " ".join("x".join(map(str, t.shape)) or "scalar" for t in tensors)

        def ends(tensors: Sequence[TensorInfo]) -> str:
            return "; ".join(
                f"{shape([t])} {t.dtype}" + ("" if t.scale is None else f" scale {t.scale:.6g} zero {t.zero}") for t in tensors
            )

        rows = [("step", "operator", "node", "in", "out", "MACs", "weights", "live")]
        for layer in self.layers:
            rows.append(
                (
                    str(layer.step),
                    layer.operator,
                    str(layer.node),
                    shape(layer.inputs),
                    shape(layer.outputs),
                    f"{layer.macs:,}" if layer.macs else "",
                    f"{layer.weights:,}" if layer.weights else "",
                    f"{layer.live:,}",
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        left = {1, 3, 4}
        lines = [
            "  ".join(
                cell.ljust(w) if i in left else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        alive = ", ".join(f"{short(name)} {size:,}" for name, size in self.alive)
        return "\n".join(
            [
                f"{self.name}: {len(self.layers)} steps, {self.macs:,} MACs, container {self.container:,} bytes",
                f"in:  {ends(self.inputs)}",
                f"out: {ends(self.outputs)}",
                "",
                *lines,
                "",
                f"arena {self.ram:,} bytes: frame {self.frame:,}, scratch {self.scratch:,}",
                f"all results {self.total:,} bytes; needed at once {self.lower_bound:,}, at {self.worst_layer}: {alive}",
            ]
        )


def describe(graph: Graph, plan: MemoryPlan, layers: Sequence[LayerPlan], container: int, name: str) -> ModelInfo:
    def tensor(t: Tensor) -> TensorInfo:
        return TensorInfo(
            t.name,
            t.shape,
            t.dtype,
            float(t.scale[0]) if len(t.scale) else None,
            int(t.zero[0]) if len(t.zero) else None,
            t.bytes,
            t.number,
            plan.places.get(t),
        )

    infos = []
    for step, (op, layer) in enumerate(zip(plan.steps, layers, strict=True)):
        weights = sum(
            t.array.nbytes if isinstance(t, Const) else t.bytes
            for t in layer.inputs
            if isinstance(t, Const) or (t is not None and t.data is not None)
        )
        infos.append(
            LayerInfo(
                step,
                op.kind,
                op.index,
                VARIANTS[layer.variant],
                tuple(map(tensor, op.activations)),
                tuple(map(tensor, op.outputs)),
                dict(op.options),
                layer.cost if op.kind in MULTIPLIES else 0,
                layer.cost,
                weights,
                layer.scratch,
                plan.live[step],
            )
        )
    return ModelInfo(
        name,
        container,
        tuple(map(tensor, graph.inputs)),
        tuple(map(tensor, graph.outputs)),
        tuple(infos),
        sum(i.macs for i in infos),
        sum(i.weights for i in infos),
        plan.peak,
        plan.scratch,
        plan.ram,
        plan.lower_bound,
        plan.total,
        plan.worst_step,
        plan.layer(plan.worst_step),
        tuple((b.name, b.size) for b in plan.alive(plan.worst_step)),
        tuple(BufferInfo(b.name, b.offset, b.size, b.first, b.last) for b in plan.buffers),
    )
