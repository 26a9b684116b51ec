"""Reader of .tflite files.

First the flatbuffer becomes plain records: its accessors trust every offset, so whatever they raise means a damaged
file. Then the records are checked and become a graph. What a whole, undamaged file uses and the compiler cannot
do is collected, and refused in one report; `tflite_forms` has the table of what it can.

Known traps: an operator's code is the larger of two fields; scales are float32; some files give biases a
`quantized_dimension` that they do not have; options with SAME padding have no numbers in them; a resource variable has
no type or shape of its own, and its first value is assigned in a graph that runs once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.importers.damage import MAX_BYTES, Damaged, need
from synapticos.importers.tflite_forms import NEAREST, OPERATORS, Raw, supported
from synapticos.model import Graph, Op, Problem, Tensor, UnsupportedModel
from synapticos.model.form import Cannot, find_problem
from synapticos.model.graph import DTYPES, MAX_RANK

__all__ = ["OPERATORS", "read", "supported"]

MAX_COUNT = 65_535  # tensors, operators: what a container can number
MAX_JOINED = 7  # inputs of a concatenation
MAX_GRAPHS = 64  # of a file: the network, and what it runs once
MAX_NAME = 80  # characters of a name that messages repeat
NUMPY = {name: np.dtype(name).newbyteorder("<") for name in DTYPES}
NO_STEP = ("CALL_ONCE", "VAR_HANDLE")  # say where a state is and how it begins; nothing runs


# ---- the file as plain records ----


@dataclass
class _RawTensor:
    name: str
    shape: tuple[int, ...]
    type: str
    data: memoryview | None
    scale: np.ndarray
    zero: np.ndarray
    axis: int
    quantized_otherwise: bool
    sparse: bool
    variable: bool


@dataclass
class _RawGraph:
    tensors: list[_RawTensor]
    ops: list[Raw]
    inputs: list[int]
    outputs: list[int]


def _numbers(schema: Any) -> dict[int, str]:
    """Number -> name of an enumeration of the schema."""
    return {value: name for name, value in vars(schema).items() if isinstance(value, int)}


def _vector(table: Any, name: str, limit: int = MAX_COUNT) -> np.ndarray:
    length = getattr(table, f"{name}Length")()
    if length == 0:
        return np.zeros(0, np.int32)
    if length > limit:
        raise Damaged(f"a list of {length} {name}")
    return getattr(table, f"{name}AsNumpy")()


def _text(raw: bytes | None) -> str:
    text = (raw or b"").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)[:MAX_NAME]


def _parse(data: bytes) -> list[_RawGraph]:
    import flatbuffers.number_types as types
    import tflite
    from flatbuffers.table import Table

    def slot(table: Table, at: int, flags: Any) -> int:
        offset = table.Offset(at)
        return table.Get(flags, offset + table.Pos) if offset else 0

    def count(n: int, what: str) -> int:
        if n > MAX_COUNT:
            raise Damaged(f"{n} {what}")
        return n

    kinds = _numbers(tflite.BuiltinOperator)
    type_names = {number: name.lower() for number, name in _numbers(tflite.TensorType).items()}
    model = tflite.Model.GetRootAs(data)
    if model.SubgraphsLength() == 0:
        raise Damaged("no graph")
    buffers = count(model.BuffersLength(), "buffers")

    codes = []
    for i in range(count(model.OperatorCodesLength(), "operator codes")):
        code = model.OperatorCodes(i)
        # The accessor prefers the old field whenever the new one is below 127; files fill either, so take the larger.
        number = max(slot(code._tab, 10, types.Int32Flags), slot(code._tab, 4, types.Int8Flags))
        kind = kinds.get(number, f"operator {number}")
        if kind == "CUSTOM":
            name = _text(code.CustomCode())
            form = OPERATORS.get(name)
            kind = name if form and form.options == "flexbuffer" else f"custom operator {name}"
        codes.append((kind, code.Version()))

    return [
        _parse_graph(model, model.Subgraphs(i), codes, type_names, buffers, count)
        for i in range(min(model.SubgraphsLength(), MAX_GRAPHS))
    ]


def _parse_graph(
    model: Any, graph: Any, codes: list[tuple[str, int]], type_names: dict[int, str], buffers: int, count: Any
) -> _RawGraph:
    import tflite

    unions = vars(tflite.BuiltinOptions)
    tensors = []
    for i in range(count(graph.TensorsLength(), "tensors")):
        t = graph.Tensors(i)
        q = t.Quantization()
        values = None
        if not 0 <= t.Buffer() < max(buffers, 1):
            raise Damaged(f"tensor {i} names buffer {t.Buffer()} of {buffers}")
        if buffers:
            buffer = model.Buffers(t.Buffer())
            if buffer.Offset() > 1:
                raise Damaged("weights outside the flatbuffer")
            if buffer.DataLength():
                values = memoryview(buffer.DataAsNumpy())
        tensors.append(
            _RawTensor(
                name=_text(t.Name()),
                shape=tuple(int(n) for n in _vector(t, "Shape", 64)),
                type=type_names.get(t.Type(), f"type {t.Type()}"),
                data=values,
                scale=_vector(q, "Scale") if q else np.zeros(0),
                zero=_vector(q, "ZeroPoint") if q else np.zeros(0),
                axis=q.QuantizedDimension() if q else 0,
                quantized_otherwise=bool(q and q.DetailsType()),
                sparse=t.Sparsity() is not None,
                variable=bool(t.IsVariable()),
            )
        )

    ops = []
    for i in range(count(graph.OperatorsLength(), "operators")):
        o = graph.Operators(i)
        if not 0 <= o.OpcodeIndex() < len(codes):
            raise Damaged(f"node {i} has operator code {o.OpcodeIndex()} of {len(codes)}")
        kind, version = codes[o.OpcodeIndex()]
        options: dict[str, Any] = {}
        form = OPERATORS.get(kind)
        if form and form.options == "flexbuffer":
            options = _flexbuffer(o, form.fields)
        elif form and form.options:
            table = o.BuiltinOptions()
            if table is None or o.BuiltinOptionsType() != unions[form.options]:
                raise Damaged(f"node {i} {kind} has no {form.options}")
            reader = getattr(tflite, form.options)()
            reader.Init(table.Bytes, table.Pos)
            options = {field: getattr(reader, field)() for field in form.fields}
        ops.append(
            Raw(
                kind, version, [int(n) for n in _vector(o, "Inputs")], [int(n) for n in _vector(o, "Outputs")], options
            )
        )
    inputs, outputs = ([int(n) for n in _vector(graph, side)] for side in ("Inputs", "Outputs"))
    return _RawGraph(tensors, ops, inputs, outputs)


def _flexbuffer(op: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    """The options of a custom operator that are wanted; a missing one is 0."""
    from flatbuffers import flexbuffers

    if op.CustomOptionsLength() == 0:
        return dict.fromkeys(fields, 0)
    loaded = flexbuffers.Loads(op.CustomOptionsAsNumpy().tobytes())
    if not isinstance(loaded, dict):
        raise Damaged("a custom operator's options are no map")
    options = {field: loaded.get(field, 0) for field in fields}
    for field, value in options.items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise Damaged(f'option "{field}" of a custom operator is no number')
    return options


# ---- the records as a graph ----


def _handles(graph: _RawGraph) -> dict[int, str]:
    """Tensors that stand for resource variables: number -> the variable's name."""
    names = {}
    for raw in graph.ops:
        if raw.kind == "VAR_HANDLE" and len(raw.outputs) == 1:
            container, name = (_text(raw.options[field]) for field in ("Container", "SharedName"))
            names[raw.outputs[0]] = f"{container}/{name}" if container else name
    return names

MOST_SIDES = 6  # of a tensor between operators of MANY_SIDED
# Whose steps do not depend on how many dimensions there are.
MANY_SIDED = {
    "ADD", "CAST", "CONCATENATION", "DEQUANTIZE", "DIV", "ELU", "EXPAND_DIMS", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "MAXIMUM", "MINIMUM",
    "MUL", "PACK", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "RESHAPE", "SLICE", "SPLIT", "SQUEEZE", "STRIDED_SLICE", "SUB", "TANH",
    "TRANSPOSE", "UNPACK",
}  # fmt: skip


class _Builder:
    def __init__(self, graphs: list[_RawGraph], where: str):
        self.graphs = graphs
        self.file = graphs[0]
        self.where = where
        self.made: dict[int, Tensor] = {}
        self.handles = _handles(self.file)
        self.states: dict[str, Tensor] = {}  # by their variable's name

    def raw(self, number: int) -> _RawTensor:
        need(0 <= number < len(self.file.tensors), f"tensor {number} of {len(self.file.tensors)}")
        return self.file.tensors[number]

    def tensor(self, number: int) -> Tensor:
        """The tensor, checked by itself."""
        if number in self.made:
            return self.made[number]
        if number in self.handles:
            return self.variable(self.handles[number])
        raw = self.raw(number)
        name = f'tensor {number} "{raw.name}"'
        if raw.type not in DTYPES:
            raise Cannot(f"{name} is {raw.type}", "int8")
        if raw.sparse:
            raise Cannot(f"{name} is sparse", "dense weights")
        if raw.quantized_otherwise:
            raise Cannot(f"{name} has its own kind of quantization", "scale and zero point")
        if len(raw.shape) > MOST_SIDES:
            raise Cannot(f"{name} has {len(raw.shape)} dimensions", f"{MOST_SIDES} dimensions")
        if any(n < 1 for n in raw.shape):
            raise Cannot(f"{name} has shape {list(raw.shape)}", "a fixed shape without empty dimensions")
        size = math.prod(raw.shape) * DTYPES[raw.type]
        need(size < MAX_BYTES, f"{name} would have {size} bytes")
        need(
            len(raw.zero) in (0, len(raw.scale)), f"{name} has {len(raw.scale)} scales and {len(raw.zero)} zero points"
        )
        scale = raw.scale.astype(np.float32)
        zero = raw.zero.astype(np.int64) if len(raw.zero) else np.zeros(len(scale), np.int64)
        need(bool(np.all(np.isfinite(scale)) and np.all(scale > 0)), f"{name} has a scale that is no positive number")
        if raw.type.startswith(("int", "uint")):
            range_ = np.iinfo(raw.type)
            need(
                bool(np.all((zero >= range_.min) & (zero <= range_.max))), f"{name} has a zero point outside its type"
            )
        axis = raw.axis
        if len(scale) > 1:
            if len(raw.shape) == 1:
                axis = 0  # converters wrote the axis of the weights here
            need(0 <= axis < len(raw.shape), f"{name} has scales along dimension {axis}")
            need(raw.shape[axis] == len(scale), f"{name} has {len(scale)} scales for {raw.shape[axis]} channels")
        else:
            axis = 0
        data = None
        if raw.data is not None:
            need(len(raw.data) == size, f"{name} has {len(raw.data)} bytes where its shape needs {size}")
            data = np.frombuffer(raw.data, NUMPY[raw.type]).reshape(raw.shape)
        if raw.variable:
            data = None
        made = Tensor(raw.name, raw.shape, raw.type, scale, zero.astype(np.int32), axis, data, number, raw.variable)
        self.made[number] = made
        return made

    def variable(self, name: str) -> Tensor:
        """The state that resource variables of this name stand for; its type is that of what is read or assigned."""
        if name not in self.states:
            values = [
                raw.outputs[0] if raw.kind == "READ_VARIABLE" else raw.inputs[1]
                for raw in self.file.ops
                if raw.kind in ("READ_VARIABLE", "ASSIGN_VARIABLE") and self.handles.get(raw.inputs[0]) == name
            ]
            need(bool(values), f'variable "{name}" is never used')
            like = self.tensor(values[0])
            self.states[name] = Tensor(name, like.shape, like.dtype, like.scale, like.zero, state=True)
        return self.states[name]

    def check_first_values(self, number: int) -> None:
        """A graph that is run once may only put variables to real 0, which is how a state begins here."""
        need(0 < number < len(self.graphs), f"graph {number} of {len(self.graphs)}")
        graph = self.graphs[number]
        handles = _handles(graph)
        for raw in graph.ops:
            if raw.kind == "VAR_HANDLE":
                continue
            if raw.kind != "ASSIGN_VARIABLE" or len(raw.inputs) != 2:
                raise Cannot(f"{raw.kind} in a graph that is run once", "assignments of zeros")
            need(all(0 <= n < len(graph.tensors) for n in raw.inputs), "a tensor that is not there")
            value = graph.tensors[raw.inputs[1]]
            need(raw.inputs[0] in handles, "an assignment to no variable")
            name = handles[raw.inputs[0]]
            if name not in self.handles.values():
                continue
            state = self.variable(name)
            if value.data is None or value.type != state.dtype or value.shape != state.shape:
                raise Cannot(f'variable "{name}" begins with something computed', "zeros")
            need(len(value.data) == state.bytes, f'variable "{name}" begins with {len(value.data)} bytes')
            zero = int(state.zero[0]) if len(state.zero) else 0
            if np.any(np.frombuffer(value.data, NUMPY[state.dtype]) != zero):
                raise Cannot(f'variable "{name}" begins with other values than 0', "zeros")

    def op(self, index: int, raw: Raw) -> list[Op] | Problem:
        """The operator, or one for each of its results, or why it cannot be compiled; none if nothing runs for it."""

        def types(numbers: list[int]) -> list[str]:
            return ["none" if n == -1 else self.raw(n).type for n in numbers]

        inputs, outputs = types(raw.inputs), types(raw.outputs)
        names = tuple(self.raw(n).name for n in [*raw.inputs, *raw.outputs] if n != -1)
        form = OPERATORS.get(raw.kind)
        shown = f"{', '.join(inputs)} -> {', '.join(outputs)}"

        def problem(fact: str, nearest: str) -> Problem:
            return Problem(index, raw.kind, raw.version, shown, names, fact, nearest)

        if form is None:
            return problem("unknown operator", NEAREST.get(raw.kind, "none"))
        nearest = f"{raw.kind} {form.words}"
        if not 1 <= raw.version <= form.version:
            return problem(f"version {raw.version} is newer than {form.version}", nearest)
        fact = form.mismatch(inputs, outputs)
        if "int4" in inputs:
            return problem("weights of 4 bits", f"{nearest}: convert with weights of 8 bits")
        if fact:
            return problem(fact, nearest)
        if raw.kind in NO_STEP:
            try:
                if raw.kind == "CALL_ONCE":
                    self.check_first_values(raw.options["InitSubgraphIndex"])
            except Cannot as cannot:
                return problem(cannot.fact, cannot.nearest)
            return []
        try:
            op = Op(
                raw.kind,
                index,
                [None if n == -1 else self.tensor(n) for n in raw.inputs],
                [self.tensor(n) for n in raw.outputs],
                version=raw.version,
            )
            for tensor in [*op.activations, *op.outputs]:
                if len(tensor.shape) > MAX_RANK and raw.kind not in MANY_SIDED:
                    raise Cannot(
                        f"{tensor} has {len(tensor.shape)} dimensions", f"{MAX_RANK} dimensions: RESHAPE around it, where two of them are one"
                    )
                if tensor.dtype == "int8" and form.scaled:
                    need(
                        len(tensor.scale) == 1, f"{tensor} needs one scale and zero point, and has {len(tensor.scale)}"
                    )
            form.read(raw, op)
        except Cannot as cannot:
            return problem(cannot.fact, cannot.nearest)
        except Damaged as damaged:
            raise Damaged(f"node {index} {raw.kind}: {damaged}") from None
        ops = [part for one in _one_result_each(op) for part in _few_inputs(one)]
        for part in ops:
            unfit = find_problem(part)
            if unfit:
                return problem(unfit.fact, unfit.nearest)
        return ops


def _one_result_each(op: Op) -> list[Op]:
    """An operator that only cuts its input, as one for each part; any other as it is."""
    if "parts" not in op.options:
        return [op]
    return [
        Op(op.kind, op.index, op.inputs, [y], {"slices": slices}, op.version)
        for y, slices in zip(op.outputs, op.options["parts"], strict=True)
    ]


def _few_inputs(op: Op) -> list[Op]:
    """A concatenation of more inputs than a step takes, as several with the joined ones in between."""
    ops: list[Op] = []
    inputs = op.inputs
    while op.kind == "CONCATENATION" and len(inputs) > MAX_JOINED:
        some, y = [t for t in inputs[:MAX_JOINED] if t is not None], op.outputs[0]
        axis = op.options["axis"]
        length = sum(t.shape[axis] for t in some)
        shape = (*y.shape[:axis], length, *y.shape[axis + 1 :])
        joined = Tensor(f"{y.name}/{len(ops)}", shape, y.dtype, y.scale, y.zero)
        ops.append(Op(op.kind, op.index, list(some), [joined], dict(op.options), op.version))
        inputs = [joined, *inputs[MAX_JOINED:]]
    return [*ops, Op(op.kind, op.index, inputs, op.outputs, op.options, op.version)] if ops else [op]


def read(data: bytes, name: str, source: str) -> Graph:
    """The graph in a .tflite's bytes. A damaged file, or one with operators we do not have, is a UserError."""
    try:
        graphs = _parse(data)
    except Damaged as damaged:
        raise UserError(f"{source}: damaged: {damaged}; export the model again") from None
    except Exception as error:  # the generated accessors raise whatever a wild offset leads to
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{source}: damaged: not a readable flatbuffer ({detail}); export the model again") from None
    file = graphs[0]
    try:
        builder = _Builder(graphs, source)
        made = [builder.op(i, raw) for i, raw in enumerate(file.ops)]
        problems = [entry for entry in made if isinstance(entry, Problem)]
        if problems:
            raise UnsupportedModel(source, problems)
        for number in [*file.inputs, *file.outputs]:
            shape = builder.tensor(number).shape
            if len(shape) > MAX_RANK:
                fact = f'"{builder.tensor(number).name}", which the network takes or gives, has {len(shape)} dimensions'
                raise Cannot(fact, f"{MAX_RANK} dimensions: a RESHAPE beside it")
        graph = Graph(
            name,
            [builder.tensor(n) for n in file.inputs],
            [builder.tensor(n) for n in file.outputs],
            [op for entry in made if not isinstance(entry, Problem) for op in entry],
            source,
        )
    except Damaged as damaged:
        raise UserError(f"{source}: damaged: {damaged}; export the model again") from None
    except Cannot as cannot:
        raise UserError(f"{source}: {cannot.fact}; nearest supported: {cannot.nearest}") from None
    graph.check()
    return graph
