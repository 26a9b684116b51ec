"""What changed between two models: layers that came, went or differ, and what that costs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from synapticos.kernel.layers.variants import Const
from synapticos.model.info import LayerInfo, ModelInfo, TensorInfo
from synapticos.model.load import Description
from synapticos.model.pack import Compiled


@dataclass(frozen=True)
class Side:
    """A model, and a checksum of each layer's constants."""

    name: str
    info: ModelInfo
    constants: tuple[int, ...]

    @classmethod
    def of(cls, compiled: Compiled, name: str) -> Side:
        sums = []
        for layer in compiled.layers:
            crc = zlib.crc32(layer.params)
            for x in layer.inputs:
                data = x.array if isinstance(x, Const) else None if x is None else x.data
                crc = crc if data is None else zlib.crc32(np.ascontiguousarray(data).tobytes(), crc)
            sums.append(crc)
        return cls(name, compiled.info, tuple(sums))

    @classmethod
    def of_container(cls, container: bytes, found: Description, name: str) -> Side:
        at = found.header["consts_at"]
        sums = []
        for step in found.steps:
            crc = 0
            for n in step["operands"]:
                if n < len(found.tensors) and found.tensors[n]["space"] == 0:
                    t = found.tensors[n]
                    crc = zlib.crc32(container[at + t["offset"] :][: t["bytes"]], crc)
            sums.append(crc)
        return cls(name, found.info, tuple(sums))


FIGURES = {
    "MACs": "macs", "weights, bytes": "weights", "container, bytes": "container", "arena, bytes": "ram",
    "frame, bytes": "frame", "scratch, bytes": "scratch",
}  # fmt: skip


@dataclass(frozen=True)
class ModelDiff:
    """`changes`: a line for each layer or tensor that is not the same; `figures`: name, before, after."""

    before: str
    after: str
    changes: tuple[str, ...]
    figures: tuple[tuple[str, int, int], ...]

    @property
    def same(self) -> bool:
        return not self.changes

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"same": self.same}

    def to_text(self) -> str:
        lines = [f"{self.before} -> {self.after}: " + ("no difference" if self.same else f"{len(self.changes)} differences")]
        lines += [f"  {change}" for change in self.changes]
        for name, a, b in self.figures:
            grown = f"{b - a:+,}" + (f" ({(b - a) / a:+.1%})" if a else "") if a != b else "same"
            lines.append(f"  {name:<17} {a:>12,} {b:>12,}  {grown}")
        return "\n".join(lines)


def diff_models(a: Side, b: Side) -> ModelDiff:
    """Compare two models, layer by layer in the order in which they run."""
    changes: list[str] = []
    for what in ("inputs", "outputs"):
        for i, (x, y) in enumerate(_pairs(getattr(a.info, what), getattr(b.info, what))):
            if x is None or y is None:
                changes.append(f"{what[:-1]} {i}: only in {a.name if y is None else b.name}: {_tensor(x or y)}")
            elif _tensor(x) != _tensor(y):
                changes.append(f"{what[:-1]} {i}: {_tensor(x)} -> {_tensor(y)}")
    left, right = a.info.layers, b.info.layers
    matcher = SequenceMatcher(None, [_form(x) for x in left], [_form(x) for x in right], autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            for x, y in zip(range(i, i_end), range(j, j_end), strict=True):
                changes += _same_form(left[x], right[y], a.constants[x] == b.constants[y])
            continue
        changes += [f"- step {x}: {_layer(left[x])}" for x in range(i, i_end)]
        changes += [f"+ step {y}: {_layer(right[y])}" for y in range(j, j_end)]
    figures = tuple((name, getattr(a.info, field), getattr(b.info, field)) for name, field in FIGURES.items())
    return ModelDiff(a.name, b.name, tuple(changes), figures)


def _pairs(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(a[i] if i < len(a) else None, b[i] if i < len(b) else None) for i in range(max(len(a), len(b)))]


def _shape(t: TensorInfo) -> str:
    return "x".join(map(str, t.shape)) or "scalar"


def _tensor(t: TensorInfo) -> str:
    return f"{_shape(t)} {t.dtype}" + ("" if t.scale is None else f" scale {t.scale:.6g} zero {t.zero}")


def _form(layer: LayerInfo) -> tuple[Any, ...]:
    """What makes two layers the same layer with other numbers in it."""
    return (
        layer.variant,
        tuple((t.shape, t.dtype) for t in (*layer.inputs, *layer.outputs)),
        tuple(sorted((k, str(v)) for k, v in layer.options.items())),
    )


def _layer(layer: LayerInfo) -> str:
    return f"{layer.operator} (node {layer.node}) {' '.join(map(_shape, layer.inputs))} -> {' '.join(map(_shape, layer.outputs))}"


def _same_form(x: LayerInfo, y: LayerInfo, constants: bool) -> list[str]:
    facts = [f"{_tensor(s)} -> {_tensor(t)}" for s, t in zip(x.outputs, y.outputs, strict=True) if _tensor(s) != _tensor(t)]
    if not constants:
        facts.append("other weights or parameters")
    return [f"~ step {x.step}: {_layer(x)}: {'; '.join(facts)}"] if facts else []
