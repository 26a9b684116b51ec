"""Reader of .onnx files that onnxruntime's static quantiser wrote: int8, with QuantizeLinear and DequantizeLinear
around every operator (QDQ).

`onnx_file` makes plain records of the file, `onnx_graph` builds the graph, `onnx_forms` has the table of operators.
What a whole, undamaged file uses and the compiler cannot do is collected, and refused in one report.

The graph's inputs and outputs are the int8 behind the first and before the last DequantizeLinear, pictures with their
channels last; numbers that the file has as uint8 are 128 lower. A batch that the file leaves open is 1.
"""

from __future__ import annotations

import numpy as np

from synapticos.errors import UserError
from synapticos.importers.damage import Damaged, need
from synapticos.importers.onnx_file import File, Node, parse, text
from synapticos.importers.onnx_forms import OPERATORS, nearest, options_of, supported
from synapticos.importers.onnx_graph import DEQUANTIZE, MOVES, QUANTIZE, Reader, Unknown, Value, Weights, stored
from synapticos.model import Graph, Problem, UnsupportedModel
from synapticos.model.form import Cannot

__all__ = ["OPERATORS", "build", "read", "supported"]

LINES = ("AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")  # have channels first
HOW = (
    "onnxruntime.quantization.quantize_static(..., quant_format=QuantFormat.QDQ, per_channel=True, "
    "activation_type=QuantType.QInt8, weight_type=QuantType.QInt8)"
)


class _Builder(Reader):
    def __init__(self, file: File):
        super().__init__(file)
        self.fixed = set(file.constants)  # names of constants, and of what is made of them

    def step(self, node: Node) -> None:
        """Take one node into the graph."""
        need(bool(node.outputs) and bool(node.outputs[0] or len(node.outputs) > 1), f"{node}: no result")
        if node.kind == "Constant":
            self._constant(node)
        elif node.kind == QUANTIZE:
            self._quantize(node)
        elif node.kind == DEQUANTIZE:
            self._dequantize(node)
        else:
            form = OPERATORS.get(node.kind)
            if form is None:
                raise Cannot("unknown operator", nearest(node.kind))
            try:
                node.options = options_of(node, form)
                if not form.many:
                    for name in node.outputs[1:]:
                        if name in self.readers or name in self.file.outputs:
                            raise Cannot(f'its further result "{text(name)}" is used', "its first result alone")
                if node.outputs[0] in self.readers or node.outputs[0] in self.file.outputs or form.many:
                    form.read(self, node)
            except Cannot as cannot:
                words = f"; {form.words}" if form.words and form.words not in cannot.nearest else ""
                raise Cannot(cannot.fact, f"{node.kind}: {cannot.nearest}{words}") from None

    def is_computed(self, node: Node) -> bool:
        """Whether a node depends on the network's inputs; asked of all in their order."""
        fixed = node.kind == "Constant"
        if node.kind in (QUANTIZE, DEQUANTIZE):
            fixed = bool(node.inputs) and all(not name or name in self.fixed for name in node.inputs)
        if fixed:
            self.fixed.update(node.outputs)
        return not fixed

    def _constant(self, node: Node) -> None:
        values = list(node.attributes.values())
        if len(values) != 1 or values[0] is None or isinstance(values[0], str):
            raise Cannot("a constant that is no array", "an array")
        array = np.asarray(values[0])
        self.constants[node.outputs[0]] = array.astype(np.float32) if array.dtype == np.float64 else array

    def _dequantize(self, node: Node) -> None:
        name = self.name(node, 0)
        y = node.outputs[0]
        if name in self.constants:
            self._weights(node, self.constants[name], name)
            return
        if name in self.file.inputs and name not in self.quantized:
            self.quantized[name] = self._input(node, name)
        if name not in self.quantized:
            raise Unknown
        v = self.quantized[name]
        if self.scale(node) != v.scale:
            raise Cannot("another scale than that of its QuantizeLinear", "the same scale")
        self.reals[y] = v

    def _weights(self, node: Node, array: np.ndarray, name: str) -> None:
        scale, zero, kind = self.scales(node)
        if array.dtype.name != kind:
            need(False, f"{node}: {array.dtype} with a zero point of {kind}")
        if kind not in ("int8", "uint8", "int32"):
            raise Cannot(f'constant "{text(name)}" is {kind}', "int8: weight_type=QuantType.QInt8")
        need(array.size > 0, f'{node}: constant "{text(name)}" is empty')
        axis = node.attributes.get("axis", 1)
        need(isinstance(axis, int), f"{node}: axis is no integer")
        if scale.size > 1:
            need(-array.ndim <= axis < array.ndim, f"{node}: axis {axis} of {array.ndim} dimensions")
            axis %= array.ndim
            need(array.shape[axis] == scale.size, f"{node}: {scale.size} scales for {array.shape[axis]} channels")
        if kind == "uint8":
            array = (array.astype(np.int16) - 128).astype(np.int8)
        self.weights[node.outputs[0]] = Weights(name, array, scale, zero, axis)

    def _quantize(self, node: Node) -> None:
        name = self.name(node, 0)
        y = node.outputs[0]
        if y in self.quantized:
            return  # by what it quantizes
        if name in self.constants:
            self.constants[y] = self._fold(node, self.constants[name])
        elif name in self.file.inputs:
            if name not in self.inputs:
                self.inputs[name] = self._input(node, name)
            if self.inputs[name].scale != self.scale(node):
                raise Cannot(f'input "{text(name)}" is quantized in several ways', "one scale")
            self.quantized[y] = self.inputs[name]
        elif name in self.reals:
            v, scale = self.reals[name], self.scale(node)
            if v.scale == scale:
                self.quantized[y] = v
            else:
                made = self.emit(node, "QUANTIZE", [v.tensor], v.tensor.shape, scale, name=name)
                self.quantized[y] = Value(made, v.shape, v.first, v.rows)
        else:
            raise Unknown

    def moved_input(self, node: Node, name: str) -> Value:
        """An input with the scale that it gets behind the moves."""
        if name not in self.inputs:
            at = node
            while at.kind in MOVES:
                readers = self.readers.get(at.outputs[0], [])
                if not readers:
                    raise Unknown
                at = readers[0][0]
            if at.kind != QUANTIZE:
                raise Cannot(f'input "{text(name)}" is not quantized', "a QuantizeLinear behind it")
            self.inputs[name] = self._input(at, name)
        return self.inputs[name]

    def _fold(self, node: Node, array: np.ndarray) -> np.ndarray:
        """A constant that the file quantizes when it runs."""
        scale, zero, kind = self.scales(node)
        if array.dtype != np.float32 or kind not in ("int8", "uint8"):
            raise Cannot(f"a constant of {array.dtype} to {kind}", "float32 to int8")
        shape: tuple[int, ...] = ()
        if scale.size > 1:
            axis = node.attributes.get("axis", 1)
            need(isinstance(axis, int) and -array.ndim <= axis < array.ndim, f"{node}: axis {axis}")
            need(array.shape[axis] == scale.size, f"{node}: {scale.size} scales for {array.shape[axis]} channels")
            shape = tuple(-1 if d == axis % array.ndim else 1 for d in range(array.ndim))
        with np.errstate(all="ignore"):
            steps = np.nan_to_num(np.rint(array / scale.reshape(shape)))
        lowered = np.clip(steps + zero.reshape(shape), -128, 127)
        return lowered.astype(np.int8) if kind == "int8" else (lowered + 128).astype(np.uint8)

    def _input(self, node: Node, name: str) -> Value:
        """An input of the network, which this node quantizes or dequantizes."""
        kind, sides = self.file.inputs[name]
        wanted = "float" if node.kind == QUANTIZE else "int8"
        if kind != wanted:
            raise Cannot(f'input "{text(name)}" is {kind}', "a float32 input that is quantized to int8")
        shape = [1 if i == 0 and n == 0 else n for i, n in enumerate(sides)]
        if 0 in shape:
            raise Cannot(
                f'input "{text(name)}" has an open shape {sides}',
                "a fixed one: python -m onnxruntime.tools.make_dynamic_shape_fixed",
            )
        turned = self.users(name)
        last = bool(turned) and all(n is not None and n.attributes.get("perm") == [0, 3, 1, 2] for n, _ in turned)
        first = len(shape) == 4 and not last
        if len(shape) == 3:  # of sound or a sensor, if that is what reads it
            first = bool(turned) and all(n is not None and n.kind in LINES for n, _ in turned)
        tensor = self.tensor(name, stored(shape) if first else shape, self.scale(node))
        self.inputs[name] = Value(tensor, tuple(shape), first)
        return self.inputs[name]

    def recover(self, node: Node) -> None:
        """What the file says of the results of a node that cannot be read, so that what follows can be looked at."""
        for output in range(len(node.outputs)):
            try:
                target = self.target(node, output)
                shape = [1 if i == 0 and n == 0 else n for i, n in enumerate(self.file.shapes.get(target.real, [0, 0]))]
                first = len(shape) == 4
                tensor = self.tensor(target.real, stored(shape) if first else shape, target.scale)
                self.give(target, Value(tensor, tuple(shape), first))
            except (Cannot, Unknown):
                continue

    def problem(self, node: Node, cannot: Cannot) -> Problem:
        def kind(name: str) -> str:
            if name in self.reals or name in self.quantized:
                return "int8"
            if name in self.weights:
                return self.weights[name].array.dtype.name
            if name in self.constants:
                return self.constants[name].dtype.name
            readers = self.readers.get(name, [])
            if readers and all(n.kind == QUANTIZE for n, _ in readers) and self.has(readers[0][0], 2):
                zero = self.constants.get(readers[0][0].inputs[2])
                return "uint8" if zero is None else zero.dtype.name
            return "none" if not name else "real"

        types = f"{', '.join(map(kind, node.inputs))} -> {', '.join(map(kind, node.outputs))}"
        names = tuple(text(name) for name in [*node.inputs, *node.outputs] if name)
        return Problem(node.index, node.kind, self.file.opset, types, names, cannot.fact, cannot.nearest)

    def outputs(self) -> list[Value]:
        values = []
        for name in self.file.outputs:
            need(name in self.numbers, f'output "{text(name)}" that nothing computes')
            if name not in self.reals and name not in self.quantized:
                raise Cannot(f'output "{text(name)}" is not quantized', "outputs behind a DequantizeLinear")
            v = self.reals[name] if name in self.reals else self.quantized[name]
            if v.tensor not in [u.tensor for u in self.inputs.values()]:
                v.tensor.name = text(name)
            values.append(v)
        return values


def build(data: bytes, source: str) -> tuple[_Builder, list[Value], list[Value]]:
    """What was read, with the values that are inputs and outputs; raises UserError."""
    try:
        file = parse(data, source)
        kinds = {node.kind for node in file.nodes}
        if not kinds & {QUANTIZE, DEQUANTIZE} and not any("Integer" in k or "QLinear" in k for k in kinds):
            raise UserError(f"{source}: computes with reals; quantize it: {HOW}")
        builder = _Builder(file)
        problems = []
        # Constants first: what comes before a layer asks for its weights.
        for node in sorted(file.nodes, key=builder.is_computed):
            if node.index in builder.fused:
                continue
            try:
                builder.step(node)
            except Unknown:
                builder.recover(node)
            except Cannot as cannot:
                problems.append(builder.problem(node, cannot))
                builder.recover(node)
        if problems:
            raise UnsupportedModel(source, problems)
        outputs = builder.outputs()
        need(all(name in builder.inputs for name in file.inputs), "an input that nothing reads")
        return builder, [builder.inputs[name] for name in file.inputs], outputs
    except Damaged as damaged:
        raise UserError(f"{source}: damaged: {damaged}; export the model again") from None
    except Cannot as cannot:
        raise UserError(f"{source}: {cannot.fact}; nearest supported: {cannot.nearest}") from None
    except Unknown:
        raise UserError(f"{source}: damaged: an operand that nothing makes; export the model again") from None


def read(data: bytes, name: str, source: str) -> Graph:
    """The graph in an .onnx's bytes. A damaged file, or one with operators we do not have, is a UserError."""
    builder, inputs, outputs = build(data, source)
    graph = Graph(name, [v.tensor for v in inputs], [v.tensor for v in outputs], builder.ops, source)
    graph.check()
    return graph
