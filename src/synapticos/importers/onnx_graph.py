"""The graph of an .onnx as it is built: values and their layout, scales, and what is fused.

Between a DequantizeLinear and the QuantizeLinear behind it a file computes with reals; here that is one operator of
int8. A *value* is an int8 tensor with its shape in the file. Where the file has [batch, channels, height, width] or
[batch, channels, length] the tensor is stored with its channels last (`first`: they come first in the file); a transpose
is only made where an operator needs the other order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synapticos.importers.damage import need
from synapticos.importers.onnx_file import File, Node, text
from synapticos.kernel.layers.quantize import activation_range
from synapticos.model import Op, Tensor
from synapticos.model.form import Cannot, find_problem
from synapticos.model.graph import MAX_RANK

MAX_BIAS = 1 << 30  # so that no sum with it passes an int32
MAX_ELEMENTS = 1 << 24  # of a tensor: far more than a board's memory
STORED = {3: (0, 2, 1), 4: (0, 2, 3, 1)}  # of so many dimensions: which one of the file each stored one is
IN_FILE = {3: (0, 2, 1), 4: (0, 3, 1, 2)}  # and back
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
OUTPUT_TYPES = {0: "uint8", 2: "uint8", 3: "int8"}  # by their number in the format; 0 is not said
# only put elements elsewhere, so that a scale before them is one behind them: they may stay between reals
MOVES = ("Flatten", "Identity", "Dropout", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
# give rounded numbers at a scale of their own: with a much finer one behind them the roundings would add up
ROUNDED = ("AVERAGE_POOL_2D", "RESIZE_BILINEAR", "SOFTMAX")
QUANTIZED = "a QuantizeLinear to int8 behind it: quantize the whole network"


class Unknown(Exception):
    """An operand that an operator before could not make: that one is reported, this one needs no report."""


@dataclass(frozen=True)
class Scale:
    """real = scale * (q - zero), q int8."""

    scale: float
    zero: int

    def quantized(self, reals: Any) -> np.ndarray:
        """The nearest int8, halves to even."""
        with np.errstate(all="ignore"):
            steps = np.nan_to_num(np.rint(np.asarray(reals, np.float64) / self.scale), nan=0.0, posinf=1e9, neginf=-1e9)
        return np.clip(steps + self.zero, -128, 127).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor, and its shape in the file."""

    tensor: Tensor
    shape: tuple[int, ...]
    first: bool = False  # stored with the channels last, though the file has them first
    rows: tuple[int, ...] | None = None  # each row is such a picture [c, h, w] or [c, length], stored with c last

    @property
    def scale(self) -> Scale:
        return Scale(float(self.tensor.scale[0]), int(self.tensor.zero[0]))


@dataclass(frozen=True, eq=False)
class Weights:
    """Constants with scales, in the file's order."""

    name: str
    array: np.ndarray  # int8 or int32
    scale: np.ndarray  # float32, one or more
    zero: np.ndarray
    axis: int

    @property
    def reals(self) -> np.ndarray:
        shape = [-1 if d == self.axis else 1 for d in range(self.array.ndim)] if self.scale.size > 1 else []
        scale, zero = (a.astype(np.float64).reshape(shape) for a in (self.scale, self.zero))
        return (self.array - zero) * scale

    def is_bias(self, scales: np.ndarray) -> bool:
        """Whether these are int32 of such scales."""
        if self.array.dtype != np.int32 or self.array.size != scales.size or self.zero.any():
            return False
        return self.scale.size in (1, scales.size) and np.allclose(self.scale, scales, rtol=1e-5, atol=0)


@dataclass(frozen=True)
class Target:
    """Where the real result of a node goes."""

    names: tuple[str, ...]  # the QuantizeLinear's results; none: on as reals
    real: str  # what is quantised
    scale: Scale
    low: float  # of activations in between
    high: float


def stored(shape: Sequence[Any]) -> tuple[Any, ...]:
    """What is said of each dimension, in the order of storage with the channels last."""
    return tuple(shape[d] for d in STORED[len(shape)])


def same_order(shape: Sequence[int]) -> bool:
    """Whether the elements are in the same order with the channels last."""
    return shape[1] == 1 or math.prod(shape[2:]) == 1


class Reader:
    """What the operators of `onnx_forms` work with."""

    def __init__(self, file: File):
        self.file = file
        self.ops: list[Op] = []
        self.inputs: dict[str, Value] = {}
        self.constants: dict[str, np.ndarray] = dict(file.constants)
        self.weights: dict[str, Weights] = {}  # by the name of their reals
        self.quantized: dict[str, Value] = {}  # by the name of the int8
        self.reals: dict[str, Value] = {}
        self.fused: set[int] = set()  # nodes
        names = [*file.inputs, *file.constants, *(name for node in file.nodes for name in node.outputs)]
        self.numbers = {name: number for number, name in enumerate(names)}
        self.writers = {name: node for node in file.nodes for name in node.outputs}
        self.readers: dict[str, list[tuple[Node, int]]] = {}
        for node in file.nodes:
            for at, name in enumerate(node.inputs):
                self.readers.setdefault(name, []).append((node, at))

    # ---- operands ----

    def name(self, node: Node, at: int) -> str:
        name = node.inputs[at] if at < len(node.inputs) else ""
        need(bool(name), f"{node}: input {at} is missing")
        return name

    def has(self, node: Node, at: int) -> bool:
        return at < len(node.inputs) and bool(node.inputs[at])

    def value(self, node: Node, at: int) -> Value:
        """An operand that is computed, or a quantised constant with one scale."""
        name = self.name(node, at)
        if name in self.reals:
            return self.reals[name]
        if name in self.weights:
            w = self.weights[name]
            if w.array.dtype != np.int8 or w.scale.size != 1:
                raise Cannot(f'constant "{text(w.name)}" has {w.scale.size} scales, {w.array.dtype}', "int8 and one scale")
            made = self.tensor(w.name, w.array.shape, Scale(float(w.scale[0]), int(w.zero[0])))
            return Value(replace(made, data=w.array), w.array.shape)
        if name in self.constants:
            raise Cannot(f'constant "{text(name)}" is not quantized', "a constant behind a DequantizeLinear")
        if name in self.file.inputs and node.kind in MOVES:
            return self.moved_input(node, name)
        if name in self.file.inputs:
            kind, _ = self.file.inputs[name]
            raise Cannot(f'its input "{text(name)}" is {kind}', "int8 behind a DequantizeLinear")
        raise Unknown

    def constant(self, node: Node, at: int, what: str) -> np.ndarray:
        """An operand that the file has as plain numbers or quantised, as reals or integers."""
        name = self.name(node, at)
        if name in self.weights:
            return self.weights[name].reals
        if name not in self.constants:
            raise Cannot(f"its {what} is computed", f"a constant {what}: fold constants before quantizing")
        return self.constants[name]

    def integers(self, node: Node, at: int, what: str) -> list[int]:
        array = self.constant(node, at, what)
        need(array.dtype.kind in "iu" and array.size <= 64, f"{node}: its {what} is no short list of integers")
        return [int(n) for n in array.reshape(-1)]

    def weight(self, node: Node, at: int) -> Weights:
        name = self.name(node, at)
        if name in self.weights:
            w = self.weights[name]
            if w.array.dtype != np.int8:
                raise Cannot(f'weights "{text(w.name)}" are {w.array.dtype}', "int8")
            return w
        if name in self.reals:
            raise Cannot("its weights are computed", "constant weights")
        if name in self.constants:
            raise Cannot(f'weights "{text(name)}" are not quantized', "int8 behind a DequantizeLinear")
        raise Unknown

    def bias(self, node: Node, at: int, x: Value, w: Weights, channels: int) -> Tensor | None:
        """The bias in units of x's scale times the weights'."""
        if not self.has(node, at):
            return None
        scales = np.broadcast_to(w.scale, channels).astype(np.float64) * x.scale.scale
        name = self.name(node, at)
        kept = self.weights.get(name)
        # The file's integers as they are, if their scale is the product, rounded however.
        if kept is not None and kept.is_bias(scales):
            numbers = kept.array.reshape(-1).astype(np.int64)
        else:
            reals = self.constant(node, at, "bias")
            need(reals.size in (1, channels) and reals.dtype.kind == "f", f"{node}: the bias does not have {channels} reals")
            with np.errstate(all="ignore"):
                steps = np.nan_to_num(np.rint(np.broadcast_to(reals.reshape(-1), channels) / scales), nan=MAX_BIAS)
            numbers = np.clip(steps, -MAX_BIAS, MAX_BIAS).astype(np.int64)
        if np.abs(numbers).max() >= MAX_BIAS:
            raise Cannot(f'bias "{text(name)}" is 2**30 units of {scales.min():g} or more', "a smaller bias, or a larger scale of the weights")
        return Tensor(text(name), (channels,), "int32", scales.astype(np.float32), data=numbers.astype(np.int32))

    def tensor(self, name: str, shape: Iterable[int], scale: Scale) -> Tensor:
        shape = tuple(int(n) for n in shape)
        shown = text(name)
        if len(shape) > MAX_RANK:
            raise Cannot(f'"{shown}" has {len(shape)} dimensions', f"{MAX_RANK} dimensions")
        if any(n < 1 for n in shape) or math.prod(shape) > MAX_ELEMENTS:
            raise Cannot(f'"{shown}" has shape {list(shape)}', f"sides of 1 or more, {MAX_ELEMENTS} elements")
        numbers = np.array([scale.scale], np.float32), np.array([scale.zero], np.int32)
        return Tensor(shown, shape, "int8", *numbers, number=self.numbers.get(name, -1))

    # ---- layout ----

    def channels_last(self, node: Node, v: Value) -> Value:
        """A value of three or four dimensions, stored with the channels last."""
        return v if v.first else self._turned(node, v, STORED[len(v.shape)], True)

    def as_in_file(self, node: Node, v: Value) -> Value:
        return self._turned(node, v, IN_FILE[len(v.shape)], False) if v.first else v

    def _turned(self, node: Node, v: Value, order: tuple[int, ...], first: bool) -> Value:
        t = v.tensor
        shape = tuple(t.shape[d] for d in order)
        if t.data is not None:
            return Value(replace(t, shape=shape, data=np.ascontiguousarray(t.data.transpose(order))), v.shape, first)
        if same_order(v.shape):
            return Value(self.emit(node, "RESHAPE", [t], shape, v.scale), v.shape, first)
        return Value(self.emit(node, "TRANSPOSE", [t], shape, v.scale, {"order": list(order)}), v.shape, first)

    def axis(self, v: Value, axis: int) -> int:
        """Where a dimension of the file is stored."""
        need(-len(v.shape) <= axis < len(v.shape), f"axis {axis} of {len(v.shape)} dimensions")
        axis %= len(v.shape)
        return STORED[len(v.shape)].index(axis) if v.first else axis

    # ---- results ----

    def users(self, name: str) -> list[tuple[Node | None, int]]:
        """Who reads a real value, behind the quantization; None: it is a result of the network."""
        found: list[tuple[Node | None, int]] = []
        todo, seen = [name], {name}
        while todo:
            at = todo.pop()
            if at in self.file.outputs:
                found.append((None, 0))
            for node, place in self.readers.get(at, []):
                if node.kind in (QUANTIZE, DEQUANTIZE) and place == 0:
                    todo += [y for y in node.outputs[:1] if y not in seen]
                    seen.update(node.outputs[:1])
                else:
                    found.append((node, place))
        return found

    def moved_input(self, node: Node, name: str) -> Value:
        """An input of the network that is moved before it is quantized."""
        raise NotImplementedError

    def target(self, node: Node, output: int = 0, fuse: bool = True, at: Scale | None = None) -> Target:
        """Where a result goes: through activations, if they may be fused, to the QuantizeLinear. `at`: the scale of what
        a node moves, which needs no QuantizeLinear."""
        name = node.outputs[output]
        low, high = -math.inf, math.inf
        kinds = {n.kind for n, _ in self.readers.get(name, [])}
        if at is not None and node.kind in MOVES and (name in self.file.outputs or kinds - {QUANTIZE}):
            return Target((), name, at, low, high)
        while True:
            readers = self.readers.get(name, [])
            others = [n for n, at in readers if n.kind != QUANTIZE or at != 0]
            if name in self.file.outputs or not readers:
                raise Cannot(f'its result "{text(name)}" stays float', QUANTIZED)
            if not others:
                break
            clamp = self._clamp(others[0]) if fuse and len(readers) == 1 else None
            if clamp is None:
                raise Cannot(f'its result "{text(name)}" goes to {others[0].kind} as float', QUANTIZED)
            low, high = (min(max(end, clamp[0]), clamp[1]) for end in (low, high))
            self.fused.add(others[0].index)
            name = others[0].outputs[0]
        scales = [self.scale(n) for n, _ in readers]
        if len(set(scales)) > 1:
            raise Cannot(f'its result "{text(name)}" is quantized in {len(scales)} ways', "one scale")
        return Target(tuple(n.outputs[0] for n, _ in readers), name, scales[0], low, high)

    def _clamp(self, node: Node) -> tuple[float, float] | None:
        """The ends between which an activation holds its input, or None."""
        if node.kind == "Relu" and len(node.inputs) == len(node.outputs) == 1:
            return 0.0, math.inf
        if node.kind == "Clip" and len(node.outputs) == 1 and not node.attributes:
            return self.clip_ends(node)
        return None

    def clip_ends(self, node: Node) -> tuple[float, float]:
        ends = [-math.inf, math.inf]
        for i in (1, 2):
            if self.has(node, i):
                array = self.constant(node, i, "end")
                need(array.size == 1, f"{node}: an end that is no single number")
                ends[i - 1] = float(array.reshape(-1)[0])
        need(ends[0] <= ends[1], f"{node}: clips between {ends[0]} and {ends[1]}")
        return ends[0], ends[1]

    def scale(self, node: Node) -> Scale:
        """The one scale of a QuantizeLinear or DequantizeLinear, in int8."""
        scale, zero, kind = self.scales(node)
        if kind not in ("int8", "uint8"):
            raise Cannot(f"{node.kind} with {kind}", "int8: activation_type=QuantType.QInt8")
        if scale.size != 1:
            raise Cannot(f"{scale.size} scales for one activation", "one scale")
        return Scale(float(scale[0]), int(zero[0]))

    def scales(self, node: Node) -> tuple[np.ndarray, np.ndarray, str]:
        """Scales and zero points; those of uint8 as if the numbers were int8, 128 lower."""
        scale = self.constant(node, 1, "scale")
        if scale.dtype != np.float32:
            raise Cannot(f"a scale of {scale.dtype}", "float32")
        if node.attributes.get("block_size"):
            raise Cannot("scales by blocks", "one scale, or one a channel")
        kind = self.kind_of(node)
        zero = self.constant(node, 2, "zero point") if self.has(node, 2) else np.zeros(scale.shape, np.int64)
        if zero.dtype.kind not in "iu":
            raise Cannot(f"a zero point of {kind}", "int8")
        need(scale.ndim < 2 and zero.ndim < 2 and scale.size == zero.size > 0, f"{node}: its scales and zero points do not match")
        need(bool(np.all(np.isfinite(scale)) and np.all(scale > 0)), f"{node}: a scale that is no positive number")
        lowered = zero.astype(np.int64) - (128 if kind == "uint8" else 0)
        return scale.reshape(-1), lowered.reshape(-1), kind

    def kind_of(self, node: Node) -> str:
        """The type of the integers of a QuantizeLinear or DequantizeLinear: its zero point's, or what it reads or says."""
        if self.has(node, 2):
            return self.constant(node, 2, "zero point").dtype.name
        if node.kind == QUANTIZE:
            return OUTPUT_TYPES.get(node.attributes.get("output_dtype", 0), "another type")
        name = self.name(node, 0)
        if name in self.constants:
            return self.constants[name].dtype.name
        if name in self.file.inputs:
            return self.file.inputs[name][0]
        writer = self.writers[name]
        return self.kind_of(writer) if writer.kind == QUANTIZE else "unknown"

    def emit(
        self, node: Node, kind: str, inputs: Sequence[Tensor | None], shape: Sequence[int], scale: Scale,
        options: dict[str, Any] | None = None, name: str = "",
    ) -> Tensor:  # fmt: skip
        """One more operator, and its result."""
        y = self.tensor(name or f"{node.outputs[0]}/{kind.lower()}", shape, scale)
        op = Op(kind, node.index, list(inputs), [y], options or {}, self.file.opset)
        problem = find_problem(op)
        if problem is not None:
            raise problem
        self.ops.append(op)
        return y

    def result(
        self, node: Node, kind: str, inputs: Sequence[Tensor | None], shape: Sequence[int], *, first: bool = False,
        options: dict[str, Any] | None = None, at: Scale | None = None, activates: bool = False, output: int = 0,
        rows: tuple[int, ...] | None = None, line: bool = False,
    ) -> None:  # fmt: skip
        """One more operator, whose result is that of the node. `shape`: in the file; `at`: the scale the operator can
        give, if not any; `activates`: it can clamp by itself; `line`: the picture of one line is [batch, channels, length]."""
        target = self.target(node, output, at=at)
        made = self.tensor(target.real, stored(shape) if first else shape, at or target.scale)
        if kind in ROUNDED and made_at(made).scale >= 2 * target.scale.scale:
            raise Cannot(f"a scale of {target.scale.scale:g} behind {made_at(made).scale:g}", "more than half of it: one scale on both sides")
        options = dict(options or {})
        clamps = not _is_open(target)
        if activates:
            word = _activation(target, made) if made_at(made) == target.scale else None
            options["activation"] = word or "NONE"
            clamps = clamps and word is None
        again = clamps or made_at(made) != target.scale
        name = "" if again else target.real
        y = self.emit(node, kind, inputs, made.shape, made_at(made), options, name)
        if clamps:
            table = self.table(made_at(made), target.scale, lambda reals: np.clip(reals, target.low, target.high))
            y = self.emit(node, "LOOKUP", [y], y.shape, target.scale, {"table": table}, target.real)
        elif again:
            y = self.emit(node, "QUANTIZE", [y], y.shape, target.scale, name=target.real)
        if line:
            shape = (*shape[:2], shape[3])
            y = self.emit(node, "RESHAPE", [y], stored(shape), target.scale, name=target.real)
        self.give(target, Value(y, tuple(shape), first, rows))

    def function(self, node: Node, v: Value, function: Callable[[np.ndarray], Any]) -> None:
        """The result of the node is a function of each element: a table."""
        target = self.target(node)
        table = self.table(v.scale, target.scale, lambda reals: np.clip(function(reals), target.low, target.high))
        y = self.emit(node, "LOOKUP", [v.tensor], v.tensor.shape, target.scale, {"table": table}, target.real)
        self.give(target, Value(y, v.shape, v.first))

    def table(self, x: Scale, y: Scale, function: Callable[[np.ndarray], Any]) -> list[int]:
        """The int8 that follows from each, -128 first."""
        with np.errstate(all="ignore"):
            reals = function((np.arange(-128, 128) - x.zero) * np.float64(x.scale))
        return [int(q) for q in y.quantized(reals)]

    def same(self, node: Node, v: Value) -> None:
        """The result of the node is a value that is there already."""
        target = self.target(node, at=v.scale)
        if target.scale == v.scale and _is_open(target):
            self.give(target, v)
            return
        table = self.table(v.scale, target.scale, lambda reals: np.clip(reals, target.low, target.high))
        y = self.emit(node, "LOOKUP", [v.tensor], v.tensor.shape, target.scale, {"table": table}, target.real)
        self.give(target, replace(v, tensor=y))

    def give(self, target: Target, v: Value) -> None:
        for name in target.names:
            self.quantized[name] = v
        if not target.names:
            self.reals[target.real] = v


def made_at(tensor: Tensor) -> Scale:
    return Scale(float(tensor.scale[0]), int(tensor.zero[0]))


def _is_open(target: Target) -> bool:
    """Whether the ends let through all that the int8 can hold."""
    low, high = (int(q) for q in target.scale.quantized([target.low, target.high]))
    return (low, high) == (-128, 127)


def _activation(target: Target, y: Tensor) -> str | None:
    """The fused activation with the same ends, or None."""
    ends = tuple(int(q) for q in target.scale.quantized([target.low, target.high]))
    for word in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
        if activation_range(word, y) == ends:
            return word
    return None
