"""Reads a container back, for people: what `syn model info` shows of a compiled file.

The kernel's own check before a model runs is `kernel.cpu`; this one makes sure that a damaged file is one clear
error here too.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

from synapticos.errors import UserError
from synapticos.kernel import container as c
from synapticos.kernel.layers.variants import VARIANTS
from synapticos.lang import layout, sizeof, unpack
from synapticos.model.graph import DTYPES
from synapticos.model.info import BufferInfo, LayerInfo, ModelInfo, TensorInfo

MULTIPLIES = ("conv", "dense", "depthwise")  # how the variants begin whose cost is multiply-accumulates
NAMES = list(DTYPES)
HEADER_CRC = next(offset for name, offset, *_ in layout(c.Header) if name == "header_crc")


@dataclass
class Description:
    """A container's records, as dicts of their fields."""

    header: dict[str, Any]
    tensors: list[dict[str, Any]]
    steps: list[dict[str, Any]]  # with "operands": numbers of the tensors, inputs first
    inputs: list[int]
    outputs: list[int]
    name: str

    @property
    def info(self) -> ModelInfo:
        return _describe(self)


def load_container(data: bytes, source: str) -> Description:
    """The records of a container; `source` is what messages call it."""

    def refuse(fact: str) -> UserError:
        return UserError(f"{source}: {fact}; compile the model again")

    if len(data) < 64 or data[:4] != b"SYNM":
        raise UserError(f"{source}: not a compiled model (it does not begin with SYNM); give a .synm or a .tflite")
    version = int.from_bytes(data[4:8], "little")
    if version != int(c.VERSION):
        raise refuse(f"container version {version} where {int(c.VERSION)} is understood")
    if len(data) < sizeof(c.Header):
        raise refuse(f"cut off: {len(data)} bytes")
    header = unpack(c.Header, data[: sizeof(c.Header)])
    payload = data[sizeof(c.Header) :]
    if len(payload) != header["payload_bytes"]:
        raise refuse(f"{len(payload)} bytes after the header where {header['payload_bytes']} belong")
    if zlib.crc32(payload) != header["payload_crc"]:
        raise refuse("damaged: the checksum of its payload is wrong")
    if zlib.crc32(data[:HEADER_CRC] + bytes(4) + data[HEADER_CRC + 4 : sizeof(c.Header)]) != header["header_crc"]:
        raise refuse("damaged: the checksum of its header is wrong")

    def section(start: int, size: int, what: str) -> bytes:
        if start < sizeof(c.Header) or start > len(data) or size > len(data) - start:
            raise refuse(f"damaged: its {what} lie outside the file")
        return data[start : start + size]

    def records(struct: Any, start: int, count: int, what: str) -> list[dict[str, Any]]:
        size = sizeof(struct)
        rows = section(start, count * size, what)
        return [unpack(struct, rows[i * size : (i + 1) * size]) for i in range(count)]

    tensors = records(c.TensorRecord, header["tensors_at"], header["tensors"], "tensors")
    steps = records(c.StepRecord, header["steps_at"], header["steps"], "steps")
    raw = section(header["lists_at"], 2 * header["list_entries"], "lists")
    lists = [int.from_bytes(raw[i : i + 2], "little") for i in range(0, len(raw), 2)]
    inputs, outputs = header["inputs"], header["outputs"]
    if any(t["rank"] > int(c.MAX_RANK) or t["dtype"] >= len(NAMES) for t in tensors):
        raise refuse("damaged: a tensor has an unknown type or too many dimensions")
    if inputs + outputs > len(lists) or not tensors:
        raise refuse("damaged: its lists are too short")
    for step in steps:
        end = step["first"] + step["inputs"] + step["outputs"]
        if end > len(lists):
            raise refuse("damaged: a step's operands lie outside the lists")
        step["operands"] = lists[step["first"] : end]
    for number in [*lists[: inputs + outputs], *(n for s in steps for n in s["operands"])]:
        if number >= len(tensors) and number != int(c.NO_TENSOR):
            raise refuse(f"damaged: it names tensor {number} of {len(tensors)}")
    name = bytes(header["name"]).split(b"\0")[0].decode("utf-8", "replace")
    name = "".join(ch if ch.isprintable() else "?" for ch in name)
    return Description(header, tensors, steps, lists[:inputs], lists[inputs : inputs + outputs], name)


def _describe(d: Description) -> ModelInfo:
    frame_space, const_space = int(c.SPACE_FRAME), int(c.SPACE_CONSTS)

    def tensor(number: int) -> TensorInfo:
        t = d.tensors[number]
        return TensorInfo(
            f"tensor {number}",
            tuple(t["shape"][: t["rank"]]),
            NAMES[t["dtype"]],
            t["scale"] if math.isfinite(t["scale"]) else None,
            t["zero"],
            t["bytes"],
            number,
            t["offset"] if t["space"] == frame_space else None,
        )

    spans: dict[int, list[int]] = {}
    for at, step in enumerate(d.steps):
        for number in step["operands"]:
            if number < len(d.tensors) and d.tensors[number]["space"] == frame_space:
                spans.setdefault(number, [at, at])[1] = at
    for number in d.outputs:
        if number in spans:
            spans[number][1] = max(len(d.steps) - 1, 0)
    buffers = tuple(
        BufferInfo(f"tensor {n}", d.tensors[n]["offset"], _align(d.tensors[n]["bytes"]), first, last)
        for n, (first, last) in spans.items()
    )
    live = [
        _union([(b.offset, b.offset + b.size) for b in buffers if b.first <= i <= b.last]) for i in range(len(d.steps))
    ]
    layers = []
    for at, step in enumerate(d.steps):
        operands = [n for n in step["operands"][: step["inputs"]] if n != int(c.NO_TENSOR)]
        results = [n for n in step["operands"][step["inputs"] :] if n != int(c.NO_TENSOR)]
        variant = VARIANTS.get(step["variant"], f"variant {step['variant']}")
        layers.append(
            LayerInfo(
                step=at,
                operator=variant,
                node=step["source"],
                variant=variant,
                inputs=tuple(tensor(n) for n in operands if d.tensors[n]["space"] != const_space),
                outputs=tuple(map(tensor, results)),
                options={},
                macs=step["cost"] if variant.startswith(MULTIPLIES) else 0,
                cost=step["cost"],
                weights=sum(d.tensors[n]["bytes"] for n in operands if d.tensors[n]["space"] == const_space),
                scratch=step["scratch"],
                live=live[at],
            )
        )
    worst = max(range(len(live)), key=lambda i: (live[i], -i), default=0)
    alive = tuple((b.name, b.size) for b in buffers if b.first <= worst <= b.last)
    return ModelInfo(
        name=d.name,
        container=d.header["payload_bytes"] + sizeof(c.Header),
        inputs=tuple(map(tensor, d.inputs)),
        outputs=tuple(map(tensor, d.outputs)),
        layers=tuple(layers),
        macs=sum(layer.macs for layer in layers),
        weights=sum(layer.weights for layer in layers),
        frame=d.header["frame_bytes"],
        scratch=d.header["scratch_bytes"],
        ram=d.header["frame_bytes"] + d.header["scratch_bytes"],
        lower_bound=live[worst] if live else 0,
        total=sum(t.bytes for layer in layers for t in layer.outputs),
        worst_step=worst,
        worst_layer=f"{layers[worst].operator} (node {layers[worst].node})" if layers else "none",
        alive=alive,
        buffers=buffers,
    )


def _align(n: int) -> int:
    return -(-n // int(c.ALIGN)) * int(c.ALIGN)


def _union(ranges: list[tuple[int, int]]) -> int:
    """Bytes that at least one of the ranges covers."""
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
