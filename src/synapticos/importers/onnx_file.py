"""An .onnx file as plain records, whatever its bytes.

The `onnx` package only parses the protobuf. Names are those of the file; values are NumPy arrays of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.importers.damage import Damaged, need

MAX_COUNT = 65_535  # nodes, constants
MAX_RANK = 8  # of any array that is still read
OPSETS = (13, 26)  # of ONNX, whose meaning is known; per-channel scales came with 13
MISSING = "the onnx package is not installed: pip install synapticos[onnx]"


@dataclass(eq=False)
class Node:
    kind: str
    index: int
    inputs: list[str]  # "" is one that is not there
    outputs: list[str]
    attributes: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)  # the attributes that its form has, all of them

    def __str__(self) -> str:
        return f"node {self.index} {self.kind}"


@dataclass
class File:
    opset: int
    nodes: list[Node]
    constants: dict[str, np.ndarray]
    inputs: dict[str, tuple[str, list[int]]]  # name: type and shape; 0 is a side that is not said
    outputs: list[str]
    shapes: dict[str, list[int]]  # what the file says of tensors between


def text(raw: str | bytes) -> str:
    if isinstance(raw, bytes):
        raw = raw.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in raw)[:80]


def parse(data: bytes, source: str) -> File:
    """The records. Raises UserError where there is no onnx package, Damaged for bytes that are no model."""
    try:
        import onnx
    except ImportError:
        raise UserError(f"{source}: {MISSING}") from None
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # the parser's own kinds of errors differ from version to version
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Damaged(f"not a readable protobuf ({detail})") from None
    graph = model.graph
    need(len(graph.node) > 0, "a model without nodes")
    for count, what in ((len(graph.node), "nodes"), (len(graph.initializer), "constants")):
        need(count <= MAX_COUNT, f"{count} {what}")
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    opset = max(versions, default=0)
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise UserError(
            f"{source}: opset {opset} is not among {OPSETS[0]} to {OPSETS[1]}; "
            "export it with one of them, or convert it with onnx.version_converter"
        )
    if len(graph.sparse_initializer):
        raise UserError(f"{source}: has sparse weights; save them dense")
    types = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    constants = {tensor.name: _array(tensor, source) for tensor in graph.initializer}
    nodes = []
    for index, entry in enumerate(graph.node):
        kind = text(entry.op_type)
        if entry.domain not in ("", "ai.onnx") and kind not in ("QuantizeLinear", "DequantizeLinear"):
            kind = f"{text(entry.domain)}.{kind}"
        attributes = {text(a.name): _attribute(a, onnx.AttributeProto, source) for a in entry.attribute}
        nodes.append(Node(kind, index, list(entry.input), list(entry.output), attributes))
    inputs = {}
    for value in graph.input:
        if value.name not in constants:
            need(value.name not in inputs, f'input "{text(value.name)}" is there twice')
            tensor = value.type.tensor_type
            inputs[value.name] = (types.get(tensor.elem_type, f"type {tensor.elem_type}"), _shape(tensor))
    shapes = {value.name: _shape(value.type.tensor_type) for value in [*graph.value_info, *graph.output]}
    _check_order(nodes, {*inputs, *constants})
    return File(opset, nodes, constants, inputs, [value.name for value in graph.output], shapes)


def _check_order(nodes: list[Node], known: set[str]) -> None:
    for node in nodes:
        for name in node.inputs:
            need(not name or name in known, f'{node} reads "{text(name)}" before anything writes it')
        for name in node.outputs:
            need(not name or name not in known, f'{node} writes "{text(name)}", which is there already')
            known.add(name)


def _shape(tensor: Any) -> list[int]:
    return [side.dim_value if 0 < side.dim_value < 1 << 31 else 0 for side in tensor.shape.dim]


def _attribute(attribute: Any, kinds: Any, source: str) -> Any:
    """An int, float, string, list of ints or floats, or array; other kinds are None."""
    match attribute.type:
        case kinds.INT:
            return attribute.i
        case kinds.FLOAT:
            return attribute.f
        case kinds.STRING:
            return text(attribute.s)
        case kinds.INTS:
            return list(attribute.ints)
        case kinds.FLOATS:
            return list(attribute.floats)
        case kinds.TENSOR:
            return _array(attribute.t, source)
    return None


def _array(tensor: Any, source: str) -> np.ndarray:
    from onnx import TensorProto, numpy_helper

    name = text(tensor.name)
    if tensor.data_location == TensorProto.EXTERNAL:
        raise UserError(f'{source}: constant "{name}" is in another file; save the model as one file')
    shape = list(tensor.dims)
    need(len(shape) <= MAX_RANK and all(0 <= n < 1 << 31 for n in shape), f'constant "{name}" has shape {shape[:MAX_RANK]}')
    try:
        array = np.array(numpy_helper.to_array(tensor))
    except Exception as error:  # wrong lengths, unknown types: whatever the bytes lead to
        raise Damaged(f'constant "{name}" cannot be read ({str(error).splitlines()[0] if str(error) else "no values"})') from None
    need(list(array.shape) == shape and array.size == math.prod(shape), f'constant "{name}" has not the shape {shape}')
    return array
