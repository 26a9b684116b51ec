"""Compiles a graph: steps, memory plan, and the container that firmware executes.

    compiled = compile_model(graph, ram=65_536)
    Path("person.synm").write_bytes(compiled.container)

Writes the records of `kernel.container` with the layouts that the kernel reads them by.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from synapticos.errors import UserError
from synapticos.kernel import container as c
from synapticos.kernel.layers.variants import Const, LayerPlan
from synapticos.kernel.stages.features import FeatureConfig, digest
from synapticos.kernel.stages.micro import micro_number
from synapticos.lang import pack, sizeof
from synapticos.model.form import Cannot, plan_step
from synapticos.model.graph import DTYPES, Graph, Op, Tensor
from synapticos.model.info import ModelInfo, describe
from synapticos.model.optimise import lower
from synapticos.model.plan import ArenaTooSmall, MemoryPlan, plan_memory
from synapticos.model.unsupported import Problem, UnsupportedModel

Optimize = Literal["default", "none"]
NUMBER_OF = {name: number for number, name in enumerate(DTYPES)}  # as kernel.tensor.DType


@dataclass
class Compiled:
    """A model ready for a board."""

    graph: Graph
    plan: MemoryPlan
    layers: list[LayerPlan] = field(repr=False)  # one for each of plan.steps
    container: bytes = field(repr=False)
    info: ModelInfo = field(repr=False)
    max_step: int | None = None

    @property
    def frame_bytes(self) -> int:
        return self.plan.peak

    @property
    def scratch_bytes(self) -> int:
        return self.plan.scratch

    @property
    def persistent_bytes(self) -> int:
        return self.plan.persistent


@dataclass(frozen=True)
class Answer:
    """A known answer: what the inputs were, and what the outputs must be."""

    inputs: Sequence[np.ndarray]
    outputs: Sequence[np.ndarray]


def compile_model(
    graph: Graph,
    *,
    name: str | None = None,
    optimize: Optimize = "default",
    ram: int | None = None,
    max_step: int | None = None,
    answers: Sequence[Answer] = (),
    features: dict[str, Any] | None = None,
) -> Compiled:
    """Compile a graph.

    `optimize="none"` keeps the result of every operator in bytes of its own, for comparison. `ram` is what the arena
    has for the model's frame and scratch: ArenaTooSmall if that is not enough. `max_step` is the most
    multiply-accumulates (or elements) that a layer may work on before the kernel looks for more urgent work. `features`
    describes the sound that it was trained on: its number goes into the container, for a device to compare.
    """
    if optimize not in ("default", "none"):
        raise UserError(f"optimize is {optimize!r}; give default or none")
    if optimize == "none":
        plan = plan_memory(graph, lower(graph, fuse=False, join=False), share=False)
    else:
        plans = [plan_memory(graph, lower(graph, join=join)) for join in (True, False)]
        plan = min(plans, key=lambda p: p.peak)  # of equals the first, which has fewer steps
    layers = _plan_layers(graph, plan.steps)
    plan.scratch = max(_align(layer.scratch) for layer in layers)
    if ram is not None and plan.ram > ram:
        raise ArenaTooSmall(graph.where, plan, ram)
    data = _write(graph, name or graph.name, plan, layers, max_step, answers, features)
    return Compiled(graph, plan, layers, data, describe(graph, plan, layers, len(data), name or graph.name), max_step)


def _plan_layers(graph: Graph, steps: Sequence[Op]) -> list[LayerPlan]:
    layers, problems = [], []
    for op in steps:
        try:
            layers.append(plan_step(op))
        except Cannot as cannot:
            operands = [t for t in [*op.inputs, *op.outputs] if t is not None]
            types = ", ".join(t.dtype for t in operands)
            names = tuple(t.name for t in operands)
            problems.append(Problem(op.index, op.kind, op.version, types, names, cannot.fact, cannot.nearest))
    if problems:
        raise UnsupportedModel(graph.where, problems)
    return layers


def _align(n: int) -> int:
    return -(-n // c.ALIGN) * c.ALIGN


class _Section:
    """Bytes that grow; each addition begins at a multiple of `align`."""

    def __init__(self, align: int):
        self.align = align
        self.data = bytearray()

    def add(self, data: bytes) -> int:
        self.data += bytes(-len(self.data) % self.align)
        at = len(self.data)
        self.data += data
        return at


class _Records:
    """The tensor records, numbered as they are first asked for, and the constants behind them."""

    def __init__(self, graph: Graph, plan: MemoryPlan):
        self.plan = plan
        self.consts = _Section(c.ALIGN)
        self.stored: dict[bytes, int] = {}  # constant's bytes: where
        self.numbers: dict[int, int] = {}
        self.records: list[bytes] = []
        self.constants: dict[bytes, int] = {}  # record: its number, so that equal ones are stored once
        self.input_at: dict[Tensor, int] = {}
        at = 0
        for tensor in graph.inputs:
            self.input_at[tensor] = at
            at = _align(at + tensor.bytes)

    def number(self, operand: Tensor | Const | None) -> int:
        if operand is None:
            return int(c.NO_TENSOR)
        key = id(operand)  # graph and layers hold them all; a Const cannot be hashed
        if key not in self.numbers:
            record = self._constant(operand) if isinstance(operand, Const) else self._tensor(operand)
            if isinstance(operand, Const) and record in self.constants:
                self.numbers[key] = self.constants[record]
            else:
                self.numbers[key] = len(self.records)
                if isinstance(operand, Const):
                    self.constants[record] = len(self.records)
                self.records.append(record)
        return self.numbers[key]

    def _tensor(self, tensor: Tensor) -> bytes:
        if tensor.data is not None:
            return self._stored(tensor.data, tensor.scale, tensor.zero)
        space, at = c.SPACE_FRAME, 0
        root, inside = self.plan.program.root(tensor)
        if tensor in self.plan.places:
            at = self.plan.places[tensor]
        elif root.state:
            space, at = c.SPACE_PERSISTENT, self.plan.states[root] + inside
        else:
            space, at = c.SPACE_INPUT, self._input(tensor)
        return _record(tensor.dtype, tensor.shape, int(space), at, tensor.bytes, tensor.scale, tensor.zero)

    def _input(self, tensor: Tensor) -> int:
        """Where an input, or a reshaped one, lies among the job's inputs."""
        return self.input_at[self.plan.root(tensor)]

    def _constant(self, const: Const) -> bytes:
        none = np.zeros(0, np.float32)
        return self._stored(np.asarray(const.array), none, none)

    def _stored(self, array: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> bytes:
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        if data not in self.stored:
            self.stored[data] = self.consts.add(data)
        name = array.dtype.newbyteorder("=").name
        return _record(name, array.shape, int(c.SPACE_CONSTS), self.stored[data], len(data), scale, zero)


def _record(
    dtype: str, shape: Sequence[int], space: int, at: int, size: int, scale: np.ndarray, zero: np.ndarray
) -> bytes:
    if len(shape) > c.MAX_RANK:  # inside a network: to a step it is elements in a row
        spare = len(shape) - int(c.MAX_RANK) + 1
        shape = [math.prod(shape[:spare]), *shape[spare:]]
    return pack(
        c.TensorRecord,
        dtype=NUMBER_OF[dtype],
        rank=len(shape),
        space=space,
        zero=int(zero[0]) if len(zero) else 0,
        scale=float(scale[0]) if len(scale) else 0.0,
        offset=at,
        bytes=size,
        shape=[*shape, *[0] * (c.MAX_RANK - len(shape))],
    )


def _write(
    graph: Graph,
    name: str,
    plan: MemoryPlan,
    layers: Sequence[LayerPlan],
    max_step: int | None,
    answers: Sequence[Answer],
    features: dict[str, Any] | None,
) -> bytes:
    records = _Records(graph, plan)
    params = _Section(4)
    lists = [records.number(t) for t in [*graph.inputs, *graph.outputs]]
    steps = []
    for op, layer in zip(plan.steps, layers, strict=True):
        first = len(lists)
        if first > 0xFFFF:
            raise UserError(f"{graph.where}: more than {0xFFFF} operands are more than a container holds; split the model")
        lists += [records.number(operand) for operand in [*layer.inputs, *layer.outputs]]
        tile = 0
        if max_step is not None and layer.cost > max_step and layer.rows > 1:
            tile = max(1, layer.rows * max_step // layer.cost)
        steps.append(
            pack(
                c.StepRecord,
                variant=layer.variant,
                flags=int(c.STEP_DOWN) if op in plan.downwards else 0,
                first=first,
                inputs=len(layer.inputs),
                outputs=len(layer.outputs),
                params=params.add(layer.params),
                scratch=layer.scratch,
                row=0,
                row_end=layer.rows,
                source=op.index,
                tile_rows=tile,
                cost=min(layer.cost, 0xFFFFFFFF),
            )
        )
    for what, count, limit in (
        ("tensors", len(records.records), int(c.MAX_TENSORS)),
        ("steps", len(steps), 0xFFFF),
    ):
        if count > limit:
            raise UserError(f"{graph.where}: {count} {what} are more than a container holds ({limit}); split the model")

    file = _Section(c.ALIGN)
    file.add(bytes(sizeof(c.Header)))
    at = {
        "tensors": file.add(b"".join(records.records)),
        "steps": file.add(b"".join(steps)),
        "lists": file.add(np.array(lists, "<u2").tobytes()),
        "params": file.add(bytes(params.data)),
        "consts": file.add(bytes(records.consts.data)),
        "answers": file.add(_answers(graph, answers)) if answers else 0,
    }
    file.data += bytes(-len(file.data) % c.ALIGN)
    sizes = {"container": len(file.data), "frame": plan.peak, "scratch": plan.scratch, "state": plan.persistent}
    for what, size in sizes.items():
        if size > c.MAX_BYTES:
            raise UserError(f"{graph.where}: a {what} of {size} bytes is more than {int(c.MAX_BYTES)}; split the model")
    payload = bytes(file.data[sizeof(c.Header) :])
    fields: dict[str, Any] = dict(
        magic=int(c.MAGIC),
        version=int(c.VERSION),
        name=list(_name(name)),
        payload_bytes=len(payload),
        payload_crc=zlib.crc32(payload),
        input_shape=_shape16(graph.inputs[0]),
        output_shape=_shape16(graph.outputs[0]),
        tensors_at=at["tensors"],
        tensors=len(records.records),
        steps=len(steps),
        steps_at=at["steps"],
        lists_at=at["lists"],
        list_entries=len(lists),
        params_at=at["params"],
        params_bytes=len(params.data),
        consts_at=at["consts"],
        consts_bytes=len(records.consts.data),
        frame_bytes=plan.peak,
        scratch_bytes=plan.scratch,
        inputs=len(graph.inputs),
        outputs=len(graph.outputs),
        answers_at=at["answers"],
        persistent_bytes=plan.persistent,
        features=_features(graph, features),
    )
    header = pack(c.Header, **fields)
    return pack(c.Header, **fields | {"header_crc": zlib.crc32(header)}) + payload


def _features(graph: Graph, features: dict[str, Any] | None) -> int:
    if features is None:
        return 0
    try:
        return micro_number(features) if "kind" in features else digest(pack(FeatureConfig, **features))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{graph.where}: {features!r} is no description of features, like syn.librosa(...): {error}") from None


def _name(name: str) -> bytes:
    """At most 31 bytes, whole characters, padded with 0."""
    data = name.encode("utf-8", "replace")[:31].decode("utf-8", "ignore").encode("utf-8")
    return data.ljust(32, b"\0")


def _shape16(tensor: Tensor) -> list[int]:
    """For version 1 readers, who show it and compute nothing from it."""
    shape = [min(n, 0xFFFF) for n in tensor.shape]
    return [*shape, *[0] * (4 - len(shape))]


def _answers(graph: Graph, answers: Sequence[Answer]) -> bytes:
    """As `kernel.container` has them: their count, the outputs' checksums, then the inputs as they lie in memory."""
    if len(answers) > int(c.MAX_ANSWERS):
        raise UserError(f"{graph.where}: {len(answers)} answers; a container holds at most {int(c.MAX_ANSWERS)}")
    sums, inputs = [], _Section(c.ALIGN)
    for answer in answers:
        for tensors, arrays in ((graph.inputs, answer.inputs), (graph.outputs, answer.outputs)):
            sizes = [t.bytes for t in tensors]
            if [np.asarray(a).nbytes for a in arrays] != sizes:
                raise UserError(f"{graph.where}: an answer must have arrays of {sizes} bytes; give the model's own")
        for array in answer.inputs:
            inputs.add(np.ascontiguousarray(array).tobytes())
        sums.append(zlib.crc32(b"".join(np.ascontiguousarray(a).tobytes() for a in answer.outputs)))
    file = _Section(c.ALIGN)
    file.add(np.array([len(answers), *sums], "<u4").tobytes())
    file.add(bytes(inputs.data))
    file.data += bytes(-len(file.data) % c.ALIGN)
    return bytes(file.data)
