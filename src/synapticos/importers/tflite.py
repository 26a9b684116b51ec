"""Reader of .tflite files.

First the flatbuffer becomes plain records: its accessors trust every offset, so whatever they raise means a damaged
file. Then the records are checked and become a graph. What a whole, undamaged file uses and the compiler cannot
do is collected, and refused in one report; `OPERATORS` is the table of what it can.

Known traps: an operator's code is the larger of two fields; scales are float32; some files give biases a
`quantized_dimension` that they do not have; options with SAME padding have no numbers in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.model import Graph, Op, Problem, Tensor, UnsupportedModel
from synapticos.model.form import Cannot, find_problem
from synapticos.model.graph import DTYPES, MAX_RANK

MAX_COUNT = 65_535  # tensors, operators: what a container can number
MAX_BYTES = 1 << 31  # a tensor, so that offsets and sizes fit 32 bits with room
MAX_NAME = 80  # characters of a name that messages repeat
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")  # by their number in the format
NUMPY = {name: np.dtype(name).newbyteorder("<") for name in DTYPES}


# ---- what an operator may be ----


@dataclass(frozen=True)
class Form:
    """The forms of an operator that the reader accepts; the layer itself may refuse more."""

    version: int  # the newest whose meaning is known
    inputs: tuple[str, ...]  # types, in order; "?" after one: it may be missing; "...": any number of the one before
    read: Callable[[_Raw, Op], None]  # fills the options, checks the shapes
    options: str | None = None  # class of the options in the schema, None: it needs none
    fields: tuple[str, ...] = ()  # of them

    @property
    def words(self) -> str:
        versions = "version 1" if self.version == 1 else f"version 1 to {self.version}"
        return f"{versions}, {self.types}"

    @property
    def types(self) -> str:
        """ "?": may be missing; "...": any number more."""
        return f"{', '.join(self.inputs)} -> int8"


class Damaged(Exception):
    """A fact about the file that no undamaged one has."""


def _need(condition: bool, fact: str) -> None:
    if not condition:
        raise Damaged(fact)


def _activation(number: int) -> str:
    if not 0 <= number < len(ACTIVATIONS):
        raise Cannot(f"activation number {number} cannot be fused", "activation " + ", ".join(ACTIVATIONS))
    return ACTIVATIONS[number]


def _window(
    options: dict[str, Any], op: Op, filter_h: int, filter_w: int, dilation_h: int = 1, dilation_w: int = 1
) -> None:
    """Strides, padding in numbers, and the result's height and width that follow."""
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    _need(len(x.shape) == 4 and len(y.shape) == 4, "its input and output are not four-dimensional")
    _need(x.shape[0] == y.shape[0], "input and output differ in batch")
    padding = options["Padding"]
    _need(padding in (0, 1), f"padding number {padding} is neither SAME nor VALID")
    for side, axis, stride, size, dilation, before, after in (
        ("h", 1, options["StrideH"], filter_h, dilation_h, "pad_top", "pad_bottom"),
        ("w", 2, options["StrideW"], filter_w, dilation_w, "pad_left", "pad_right"),
    ):
        n = x.shape[axis]
        _need(1 <= stride < 1 << 15, f"stride {stride}")
        _need(1 <= dilation < 1 << 15, f"dilation {dilation}")
        _need(1 <= size < 1 << 15, f"a window of {size}")
        extent = (size - 1) * dilation + 1
        out = -(-n // stride) if padding == 0 else -(-(n - extent + 1) // stride)
        total = max(0, (out - 1) * stride + extent - n) if padding == 0 else 0
        _need(out >= 1, f"a window of {extent} does not fit into {n}")
        _need(y.shape[axis] == out, f"its output has {y.shape[axis]} rows or columns where {out} follow")
        op.options |= {f"stride_{side}": stride, f"dilation_{side}": dilation}
        op.options |= {before: total // 2, after: total - total // 2}


def _operands(op: Op, count: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Input, weights, bias and output of a layer with weights, whose constants are there and match."""
    x, w, *rest = op.inputs
    bias = rest[0] if rest else None
    _need(x is not None and w is not None, "input or weights are missing")
    assert x is not None and w is not None
    if w.data is None or (bias is not None and bias.data is None):
        raise Cannot("its weights or bias are computed", "constant weights and bias")
    _need(bias is None or bias.elements == count, f"the bias does not have {count} values")
    _need(len(w.scale) in (1, count), f"the weights have {len(w.scale)} scales for {count} channels")
    op.inputs = [x, w, bias]
    return x, w, bias, op.outputs[0]


def _conv(raw: _Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    _need(weights is not None and len(weights.shape) == 4, "its weights are not four-dimensional")
    assert weights is not None
    channels = weights.shape[0]
    x, w, _, y = _operands(op, channels)
    _window(options, op, w.shape[1], w.shape[2], options["DilationHFactor"], options["DilationWFactor"])
    if x.shape[3] != w.shape[3]:
        raise Cannot(f"grouped: {x.shape[3]} channels in, {w.shape[3]} a filter", "one group, or DEPTHWISE_CONV_2D")
    _need(y.shape[3] == channels, "output channels differ from the filters")
    _need(len(w.scale) == 1 or w.axis == 0, "the scales of the weights are not by output channel")
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _depthwise(raw: _Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    _need(weights is not None and len(weights.shape) == 4, "its weights are not four-dimensional")
    assert weights is not None
    channels = weights.shape[3]
    x, w, _, y = _operands(op, channels)
    _window(options, op, w.shape[1], w.shape[2], options["DilationHFactor"], options["DilationWFactor"])
    multiplier = options["DepthMultiplier"]
    _need(w.shape[0] == 1, "the weights of a depthwise layer start with 1")
    _need(x.shape[3] * multiplier == channels, f"{x.shape[3]} channels times {multiplier} are not {channels}")
    _need(y.shape[3] == channels, "output channels differ from the filters")
    _need(len(w.scale) == 1 or w.axis == 3, "the scales of the weights are not by output channel")
    op.options |= {"depth_multiplier": multiplier, "activation": _activation(options["FusedActivationFunction"])}


def _pool(raw: _Raw, op: Op) -> None:
    options = raw.options
    filter_h, filter_w = options["FilterHeight"], options["FilterWidth"]
    _window(options, op, filter_h, filter_w)
    del op.options["dilation_h"], op.options["dilation_w"]
    _need(op.activations[0].shape[3] == op.outputs[0].shape[3], "input and output differ in channels")
    op.options |= {"filter_h": filter_h, "filter_w": filter_w}
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _dense(raw: _Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    _need(weights is not None and len(weights.shape) == 2, "its weights are not two-dimensional")
    assert weights is not None
    n_out, n_in = weights.shape
    x, w, _, y = _operands(op, n_out)
    if options["WeightsFormat"] != 0:
        raise Cannot("shuffled weights", "weights in the default format")
    _need(x.elements % n_in == 0, f"{x.elements} inputs are not rows of {n_in}")
    _need(y.elements == x.elements // n_in * n_out, f"its output has not {x.elements // n_in} rows of {n_out}")
    _need(len(w.scale) == 1 or w.axis == 0, "the scales of the weights are not by output")
    op.options["keep_num_dims"] = bool(options["KeepNumDims"])
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _add(raw: _Raw, op: Op) -> None:
    a, b = op.inputs
    assert a is not None and b is not None
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise Damaged(f"shapes {a.shape} and {b.shape} cannot be added") from None
    _need(shape == op.outputs[0].shape, f"the output's shape is not {shape}")
    op.options["activation"] = _activation(raw.options["FusedActivationFunction"])


def _concatenation(raw: _Raw, op: Op) -> None:
    y = op.outputs[0]
    rank = len(y.shape)
    axis = raw.options["Axis"]
    _need(-rank <= axis < rank, f"axis {axis} of {rank} dimensions")
    axis %= rank
    total = 0
    for x in op.inputs:
        assert x is not None
        _need(len(x.shape) == rank, "its inputs differ in rank")
        _need(x.shape[:axis] + x.shape[axis + 1 :] == y.shape[:axis] + y.shape[axis + 1 :], "its shapes do not match")
        total += x.shape[axis]
    _need(total == y.shape[axis], f"its inputs make {total} along axis {axis}, its output has {y.shape[axis]}")
    op.options |= {"axis": axis, "activation": _activation(raw.options["FusedActivationFunction"])}


def _pad(raw: _Raw, op: Op) -> None:
    x, amounts = op.inputs
    y = op.outputs[0]
    assert x is not None and amounts is not None
    if amounts.data is None:
        raise Cannot("its amounts are computed", "constant amounts")
    _need(amounts.shape == (len(x.shape), 2), "its amounts are not two for each dimension")
    pads = [[int(before), int(after)] for before, after in amounts.data]
    _need(all(0 <= n < MAX_BYTES for pair in pads for n in pair), "a negative amount of padding")
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pads, strict=True))
    _need(shape == y.shape, f"the output's shape is not {shape}")
    op.options["pads"] = pads


def _reshape(raw: _Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    _need(x.elements == y.elements, f"{x.elements} elements become {y.elements}")
    op.inputs = [x]  # the new shape is the output's own; a second input that repeats it is ignored


def _same_shape(raw: _Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    _need(x.shape == y.shape, "input and output differ in shape")


def _softmax(raw: _Raw, op: Op) -> None:
    _same_shape(raw, op)
    beta = raw.options["Beta"]
    _need(math.isfinite(beta) and beta > 0, f"beta {beta}")
    op.options["beta"] = float(beta)


_ACTIVATION = ("FusedActivationFunction",)
_WINDOW = ("Padding", "StrideH", "StrideW", *_ACTIVATION)
_CONV = (*_WINDOW, "DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth"))
OPERATORS = {
    "ADD": Form(2, ("int8", "int8"), _add, "AddOptions", _ACTIVATION),
    "AVERAGE_POOL_2D": Form(2, ("int8",), _pool, *_POOL),
    "CONCATENATION": Form(2, ("int8", "..."), _concatenation, "ConcatenationOptions", ("Axis", *_ACTIVATION)),
    "CONV_2D": Form(3, ("int8", "int8", "int32?"), _conv, "Conv2DOptions", _CONV),
    "DEPTHWISE_CONV_2D": Form(
        3, ("int8", "int8", "int32?"), _depthwise, "DepthwiseConv2DOptions", (*_CONV, "DepthMultiplier")
    ),
    "FULLY_CONNECTED": Form(
        6,
        ("int8", "int8", "int32?"),
        _dense,
        "FullyConnectedOptions",
        ("WeightsFormat", "KeepNumDims", *_ACTIVATION),
    ),
    "MAX_POOL_2D": Form(2, ("int8",), _pool, *_POOL),
    "PAD": Form(2, ("int8", "int32"), _pad),
    "QUANTIZE": Form(2, ("int8",), _same_shape),
    "RESHAPE": Form(1, ("int8", "int32?"), _reshape),
    "SOFTMAX": Form(2, ("int8",), _softmax, "SoftmaxOptions", ("Beta",)),
}
NEAREST = {  # for operators we do not have: what does the same, or nearly
    "DEQUANTIZE": "no operator: convert with inference_input_type and inference_output_type int8",
    "EXPAND_DIMS": "RESHAPE",
    "FAKE_QUANT": "no operator: convert with full integer quantization",
    "LEAKY_RELU": "RELU fused into the layer before",
    "LOGISTIC": "SOFTMAX over two outputs, or a stage of the app",
    "MEAN": "AVERAGE_POOL_2D over the whole picture",
    "PADV2": "PAD",
    "RELU": "RELU fused into the layer before",
    "RELU6": "RELU6 fused into the layer before",
    "RELU_N1_TO_1": "RELU_N1_TO_1 fused into the layer before",
    "SQUEEZE": "RESHAPE",
}


def supported() -> list[tuple[str, int, str]]:
    """Each operator that can be compiled, the newest version of it that is understood, and its operands' types."""
    return [(kind, form.version, form.types) for kind, form in sorted(OPERATORS.items())]


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
class _Raw:
    """An operator as it stands in the file."""

    kind: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]  # by their names in the schema


@dataclass
class _File:
    tensors: list[_RawTensor]
    ops: list[_Raw]
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


def _parse(data: bytes) -> _File:
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
    unions = vars(tflite.BuiltinOptions)
    model = tflite.Model.GetRootAs(data)
    if model.SubgraphsLength() == 0:
        raise Damaged("no graph")
    graph = model.Subgraphs(0)
    buffers = count(model.BuffersLength(), "buffers")

    codes = []
    for i in range(count(model.OperatorCodesLength(), "operator codes")):
        code = model.OperatorCodes(i)
        # The accessor prefers the old field whenever the new one is below 127; files fill either, so take the larger.
        number = max(slot(code._tab, 10, types.Int32Flags), slot(code._tab, 4, types.Int8Flags))
        kind = kinds.get(number, f"operator {number}")
        if kind == "CUSTOM":
            kind = f"custom operator {_text(code.CustomCode())}"
        codes.append((kind, code.Version()))

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
        if form and form.options:
            table = o.BuiltinOptions()
            if table is None or o.BuiltinOptionsType() != unions[form.options]:
                raise Damaged(f"node {i} {kind} has no {form.options}")
            reader = getattr(tflite, form.options)()
            reader.Init(table.Bytes, table.Pos)
            options = {field: getattr(reader, field)() for field in form.fields}
        ops.append(
            _Raw(
                kind, version, [int(n) for n in _vector(o, "Inputs")], [int(n) for n in _vector(o, "Outputs")], options
            )
        )
    inputs, outputs = ([int(n) for n in _vector(graph, side)] for side in ("Inputs", "Outputs"))
    return _File(tensors, ops, inputs, outputs)


# ---- the records as a graph ----


def _mismatch(form: Form, types: list[str], outputs: list[str]) -> str | None:
    """Why the operands' types are not the form's, or None."""
    wanted = list(form.inputs)
    if wanted[-1] == "...":
        wanted = [wanted[0]] * len(types)
    if len(types) > len(wanted) or len(types) < sum(not w.endswith("?") for w in wanted):
        return f"{len(types)} inputs"
    for got, want in zip(types, wanted, strict=False):
        if got != want.rstrip("?") and not (got == "none" and want.endswith("?")):
            return f"input type {got} where {want.rstrip('?')} is needed"
    if len(outputs) != 1:
        return f"{len(outputs)} outputs"
    return f"output type {outputs[0]}" if outputs != ["int8"] else None


class _Builder:
    def __init__(self, file: _File, where: str):
        self.file = file
        self.where = where
        self.made: dict[int, Tensor] = {}

    def raw(self, number: int) -> _RawTensor:
        _need(0 <= number < len(self.file.tensors), f"tensor {number} of {len(self.file.tensors)}")
        return self.file.tensors[number]

    def tensor(self, number: int) -> Tensor:
        """The tensor, checked by itself."""
        if number in self.made:
            return self.made[number]
        raw = self.raw(number)
        name = f'tensor {number} "{raw.name}"'
        if raw.type not in DTYPES:
            raise Cannot(f"{name} is {raw.type}", "int8")
        if raw.sparse:
            raise Cannot(f"{name} is sparse", "dense weights")
        if raw.variable:
            raise Cannot(f"{name} keeps a state", "a network without state")
        if raw.quantized_otherwise:
            raise Cannot(f"{name} has its own kind of quantization", "scale and zero point")
        if len(raw.shape) > MAX_RANK:
            raise Cannot(f"{name} has {len(raw.shape)} dimensions", f"{MAX_RANK} dimensions")
        if any(n < 1 for n in raw.shape):
            raise Cannot(f"{name} has shape {list(raw.shape)}", "a fixed shape without empty dimensions")
        size = math.prod(raw.shape) * DTYPES[raw.type]
        _need(size < MAX_BYTES, f"{name} would have {size} bytes")
        _need(
            len(raw.zero) in (0, len(raw.scale)), f"{name} has {len(raw.scale)} scales and {len(raw.zero)} zero points"
        )
        scale = raw.scale.astype(np.float32)
        zero = raw.zero.astype(np.int64) if len(raw.zero) else np.zeros(len(scale), np.int64)
        _need(bool(np.all(np.isfinite(scale)) and np.all(scale > 0)), f"{name} has a scale that is no positive number")
        if raw.type.startswith(("int", "uint")):
            range_ = np.iinfo(raw.type)
            _need(
                bool(np.all((zero >= range_.min) & (zero <= range_.max))), f"{name} has a zero point outside its type"
            )
        axis = raw.axis
        if len(scale) > 1:
            if len(raw.shape) == 1:
                axis = 0  # converters wrote the axis of the weights here
            _need(0 <= axis < len(raw.shape), f"{name} has scales along dimension {axis}")
            _need(raw.shape[axis] == len(scale), f"{name} has {len(scale)} scales for {raw.shape[axis]} channels")
        else:
            axis = 0
        data = None
        if raw.data is not None:
            _need(len(raw.data) == size, f"{name} has {len(raw.data)} bytes where its shape needs {size}")
            data = np.frombuffer(raw.data, NUMPY[raw.type]).reshape(raw.shape)
        made = Tensor(raw.name, raw.shape, raw.type, scale, zero.astype(np.int32), axis, data, number)
        self.made[number] = made
        return made

    def op(self, index: int, raw: _Raw) -> Op | Problem:
        """The operator, or why it cannot be compiled."""

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
        fact = _mismatch(form, inputs, outputs)
        if fact:
            return problem(fact, nearest)
        try:
            op = Op(
                raw.kind,
                index,
                [None if n == -1 else self.tensor(n) for n in raw.inputs],
                [self.tensor(n) for n in raw.outputs],
                version=raw.version,
            )
            for tensor in [*op.activations, *op.outputs]:
                if tensor.dtype == "int8":
                    _need(
                        len(tensor.scale) == 1, f"{tensor} needs one scale and zero point, and has {len(tensor.scale)}"
                    )
            form.read(raw, op)
        except Cannot as cannot:
            return problem(cannot.fact, cannot.nearest)
        except Damaged as damaged:
            raise Damaged(f"node {index} {raw.kind}: {damaged}") from None
        unfit = find_problem(op)
        return problem(unfit.fact, unfit.nearest) if unfit else op


def read(data: bytes, name: str, source: str) -> Graph:
    """The graph in a .tflite's bytes. A damaged file, or one with operators we do not have, is a UserError."""
    try:
        file = _parse(data)
    except Damaged as damaged:
        raise UserError(f"{source}: damaged: {damaged}; export the model again") from None
    except Exception as error:  # the generated accessors raise whatever a wild offset leads to
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{source}: damaged: not a readable flatbuffer ({detail}); export the model again") from None
    builder = _Builder(file, source)
    try:
        made = [builder.op(i, raw) for i, raw in enumerate(file.ops)]
        problems = [entry for entry in made if isinstance(entry, Problem)]
        if problems:
            raise UnsupportedModel(source, problems)
        graph = Graph(
            name,
            [builder.tensor(n) for n in file.inputs],
            [builder.tensor(n) for n in file.outputs],
            [entry for entry in made if isinstance(entry, Op)],
            source,
        )
    except Damaged as damaged:
        raise UserError(f"{source}: damaged: {damaged}; export the model again") from None
    except Cannot as cannot:
        raise UserError(f"{source}: {cannot.fact}; nearest supported: {cannot.nearest}") from None
    graph.check()
    return graph
