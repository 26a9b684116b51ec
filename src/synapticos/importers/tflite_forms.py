"""The operators of a .tflite that can be compiled: versions, types, and how their options become plain numbers.

`OPERATORS` is the one table: the reader, its messages and the list in the documentation all come from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synapticos.importers.damage import MAX_BYTES, Damaged, need
from synapticos.model import Op, Tensor
from synapticos.model.form import Cannot

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")  # by their number in the format


@dataclass
class Raw:
    """An operator as it stands in the file."""

    kind: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]  # by their names in the schema


@dataclass(frozen=True)
class Form:
    """The forms of an operator that the reader accepts; the layer itself may refuse more."""

    version: int  # the newest whose meaning is known
    types: tuple[str, ...]  # "int8, int32? -> int8"; "?": it may be missing; "...": any number more of the one before
    read: Callable[[Raw, Op], None]  # fills the options, checks the shapes
    options: str | None = None  # class of the options in the schema, "flexbuffer" of a custom operator; None: none
    fields: tuple[str, ...] = ()  # of them
    scaled: bool = True  # int8 has a scale

    @property
    def words(self) -> str:
        versions = "version 1" if self.version == 1 else f"version 1 to {self.version}"
        return f"{versions}, {' or '.join(self.types)}"

    def mismatch(self, inputs: Sequence[str], outputs: Sequence[str]) -> str | None:
        """Why the operands' types are none of these forms', or None."""
        facts = [_mismatch(types, inputs, outputs) for types in self.types]
        return None if None in facts else facts[0]


def _side(wanted: str, got: Sequence[str], side: str) -> str | None:
    names = [w for w in wanted.split(", ") if w]
    if names and names[-1] == "...":
        names = names[:-1] + [names[-2]] * (len(got) - len(names) + 1)
    if len(got) > len(names) or len(got) < sum(not w.endswith("?") for w in names):
        return f"{len(got)} {side}s"
    for name, want in zip(got, names, strict=False):
        if name != want.rstrip("?") and not (name == "none" and want.endswith("?")):
            return f"{side} type {name}" + (f" where {want.rstrip('?')} is needed" if side == "input" else "")
    return None


def _mismatch(types: str, inputs: Sequence[str], outputs: Sequence[str]) -> str | None:
    left, _, right = types.partition("->")
    return _side(left.strip(), inputs, "input") or _side(right.strip(), outputs, "output")


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
    need(len(x.shape) == 4 and len(y.shape) == 4, "its input and output are not four-dimensional")
    need(x.shape[0] == y.shape[0], "input and output differ in batch")
    padding = options["Padding"]
    need(padding in (0, 1), f"padding number {padding} is neither SAME nor VALID")
    for side, axis, stride, size, dilation, before, after in (
        ("h", 1, options["StrideH"], filter_h, dilation_h, "pad_top", "pad_bottom"),
        ("w", 2, options["StrideW"], filter_w, dilation_w, "pad_left", "pad_right"),
    ):
        n = x.shape[axis]
        need(1 <= stride < 1 << 15, f"stride {stride}")
        need(1 <= dilation < 1 << 15, f"dilation {dilation}")
        need(1 <= size < 1 << 15, f"a window of {size}")
        extent = (size - 1) * dilation + 1
        out = -(-n // stride) if padding == 0 else -(-(n - extent + 1) // stride)
        total = max(0, (out - 1) * stride + extent - n) if padding == 0 else 0
        need(out >= 1, f"a window of {extent} does not fit into {n}")
        need(y.shape[axis] == out, f"its output has {y.shape[axis]} rows or columns where {out} follow")
        op.options |= {f"stride_{side}": stride, f"dilation_{side}": dilation}
        op.options |= {before: total // 2, after: total - total // 2}


def _operands(op: Op, count: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Input, weights, bias and output of a layer with weights, whose constants are there and match."""
    x, w, *rest = op.inputs
    bias = rest[0] if rest else None
    need(x is not None and w is not None, "input or weights are missing")
    assert x is not None and w is not None
    if w.data is None or (bias is not None and bias.data is None):
        raise Cannot("its weights or bias are computed", "constant weights and bias")
    need(bias is None or bias.elements == count, f"the bias does not have {count} values")
    need(w.dtype == "float32" or len(w.scale) in (1, count), f"the weights have {len(w.scale)} scales for {count} channels")
    op.inputs = [x, w, bias]
    return x, w, bias, op.outputs[0]


def _conv(raw: Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    need(weights is not None and len(weights.shape) == 4, "its weights are not four-dimensional")
    assert weights is not None
    channels = weights.shape[0]
    x, w, _, y = _operands(op, channels)
    _window(options, op, w.shape[1], w.shape[2], options["DilationHFactor"], options["DilationWFactor"])
    need(x.shape[3] % w.shape[3] == 0, f"{x.shape[3]} channels in, {w.shape[3]} a filter")
    need(y.shape[3] == channels, "output channels differ from the filters")
    need(len(w.scale) < 2 or w.axis == 0, "the scales of the weights are not by output channel")
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _depthwise(raw: Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    need(weights is not None and len(weights.shape) == 4, "its weights are not four-dimensional")
    assert weights is not None
    channels = weights.shape[3]
    x, w, _, y = _operands(op, channels)
    _window(options, op, w.shape[1], w.shape[2], options["DilationHFactor"], options["DilationWFactor"])
    multiplier = options["DepthMultiplier"]
    need(w.shape[0] == 1, "the weights of a depthwise layer start with 1")
    need(x.shape[3] * multiplier == channels, f"{x.shape[3]} channels times {multiplier} are not {channels}")
    need(y.shape[3] == channels, "output channels differ from the filters")
    need(len(w.scale) < 2 or w.axis == 3, "the scales of the weights are not by output channel")
    op.options |= {"depth_multiplier": multiplier, "activation": _activation(options["FusedActivationFunction"])}


def _pool(raw: Raw, op: Op) -> None:
    options = raw.options
    filter_h, filter_w = options["FilterHeight"], options["FilterWidth"]
    _window(options, op, filter_h, filter_w)
    del op.options["dilation_h"], op.options["dilation_w"]
    need(op.activations[0].shape[3] == op.outputs[0].shape[3], "input and output differ in channels")
    op.options |= {"filter_h": filter_h, "filter_w": filter_w}
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _dense(raw: Raw, op: Op) -> None:
    options, weights = raw.options, op.inputs[1]
    need(weights is not None and len(weights.shape) == 2, "its weights are not two-dimensional")
    assert weights is not None
    n_out, n_in = weights.shape
    x, w, _, y = _operands(op, n_out)
    if options["WeightsFormat"] != 0:
        raise Cannot("shuffled weights", "weights in the default format")
    need(x.elements % n_in == 0, f"{x.elements} inputs are not rows of {n_in}")
    need(y.elements == x.elements // n_in * n_out, f"its output has not {x.elements // n_in} rows of {n_out}")
    need(len(w.scale) < 2 or w.axis == 0, "the scales of the weights are not by output")
    op.options["keep_num_dims"] = bool(options["KeepNumDims"])
    op.options["activation"] = _activation(options["FusedActivationFunction"])


def _add(raw: Raw, op: Op) -> None:
    a, b = op.inputs
    assert a is not None and b is not None
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise Damaged(f"shapes {a.shape} and {b.shape} cannot be added") from None
    need(shape == op.outputs[0].shape, f"the output's shape is not {shape}")
    op.options["activation"] = _activation(raw.options.get("FusedActivationFunction", 0))


def _concatenation(raw: Raw, op: Op) -> None:
    y = op.outputs[0]
    rank = len(y.shape)
    axis = raw.options["Axis"]
    need(-rank <= axis < rank, f"axis {axis} of {rank} dimensions")
    axis %= rank
    total = 0
    for x in op.inputs:
        assert x is not None
        need(len(x.shape) == rank, "its inputs differ in rank")
        need(x.shape[:axis] + x.shape[axis + 1 :] == y.shape[:axis] + y.shape[axis + 1 :], "its shapes do not match")
        total += x.shape[axis]
    need(total == y.shape[axis], f"its inputs make {total} along axis {axis}, its output has {y.shape[axis]}")
    op.options |= {"axis": axis, "activation": _activation(raw.options["FusedActivationFunction"])}


def _pad(raw: Raw, op: Op) -> None:
    x, amounts = op.inputs
    y = op.outputs[0]
    assert x is not None and amounts is not None
    if amounts.data is None:
        raise Cannot("its amounts are computed", "constant amounts")
    need(amounts.shape == (len(x.shape), 2), "its amounts are not two for each dimension")
    pads = [[int(before), int(after)] for before, after in amounts.data]
    need(all(0 <= n < MAX_BYTES for pair in pads for n in pair), "a negative amount of padding")
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, pads, strict=True))
    need(shape == y.shape, f"the output's shape is not {shape}")
    op.options["pads"] = pads


def _reshape(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    need(x.elements == y.elements, f"{x.elements} elements become {y.elements}")
    op.inputs = [x]  # the new shape is the output's own; a second input that repeats it is ignored


def _same_shape(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    need(x.shape == y.shape, "input and output differ in shape")
    op.options |= {name: int(value) for name, value in raw.options.items() if isinstance(value, int)}


def _softmax(raw: Raw, op: Op) -> None:
    _same_shape(raw, op)
    beta = raw.options["Beta"]
    need(math.isfinite(beta) and beta > 0, f"beta {beta}")
    op.options["beta"] = float(beta)


def _nothing(raw: Raw, op: Op) -> None:
    pass


def _read(raw: Raw, op: Op) -> None:
    state, y = op.inputs[0], op.outputs[0]
    assert state is not None
    need(state.shape == y.shape and state.dtype == y.dtype, "the variable has another shape or type elsewhere")


def _assign(raw: Raw, op: Op) -> None:
    state, x = op.inputs
    assert state is not None and x is not None
    need(state.shape == x.shape and state.dtype == x.dtype, "the variable has another shape or type elsewhere")
    op.inputs, op.outputs = [x], [state]


def _constants(op: Op, *names: str) -> list[np.ndarray]:
    """The values of the inputs after the first, which must be constants; they leave the operator."""
    values = []
    for tensor, name in zip(op.inputs[1:], names, strict=True):
        assert tensor is not None
        if tensor.data is None:
            raise Cannot(f"its {name} is computed", f"a constant {name}")
        values.append(tensor.data.reshape(-1))
    op.inputs = op.inputs[:1]
    return values


def _strided_slice(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    begin, end, strides = _constants(op, "begin", "end", "stride")
    o = raw.options
    if o["EllipsisMask"] or o["NewAxisMask"] or o["Offset"]:
        raise Cannot("an ellipsis, a new axis or ends as offsets", "begin, end and strides of each dimension")
    rank = len(x.shape)
    need(len(begin) == len(end) == len(strides) == rank, f"its begin, end and strides are not {rank} numbers each")
    slices, shape = [], []
    for d, n in enumerate(x.shape):
        step = int(strides[d])
        need(step != 0, "a stride of 0")
        first, last = int(begin[d]), int(end[d])
        if o["ShrinkAxisMask"] >> d & 1:
            first += n if first < 0 else 0
            need(0 <= first < n, f"index {first} of {n}")
            slices.append((first, 1, 1))
            continue
        picked = range(n)[
            slice(None if o["BeginMask"] >> d & 1 else first, None if o["EndMask"] >> d & 1 else last, step)
        ]
        slices.append((picked.start if len(picked) else 0, step, len(picked)))
        shape.append(len(picked))
    need(tuple(shape) == y.shape, f"the output's shape is not {tuple(shape)}")
    op.options["slices"] = slices


def _svdf(raw: Raw, op: Op) -> None:
    x, w, t, bias, state = op.inputs
    y = op.outputs[0]
    assert x is not None and w is not None and t is not None and state is not None
    if w.data is None or t.data is None or (bias is not None and bias.data is None):
        raise Cannot("its weights or bias are computed", "constant weights and bias")
    need(len(x.shape) == len(w.shape) == len(t.shape) == len(y.shape) == 2, "its operands are not two-dimensional")
    rank = raw.options["Rank"]
    need(rank > 0 and w.shape[0] % rank == 0, f"{w.shape[0]} filters of rank {rank}")
    need(t.shape[0] == w.shape[0] and x.shape[1] == w.shape[1], "its weights do not match")
    need(bias is None or bias.elements == w.shape[0] // rank, "its bias does not match")
    need(y.shape == (x.shape[0], w.shape[0] // rank), "its output does not match")
    need(state.state, "its state is no variable")
    need(state.elements == x.shape[0] * t.elements, "its state does not match")
    op.inputs, op.outputs = [x, w, t, bias], [y, state]
    op.options |= {"rank": rank, "activation": _activation(raw.options["FusedActivationFunction"])}


def _lstm(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    weights, biases, states = op.inputs[1:9], op.inputs[12:16], op.inputs[18:20]
    need(len(x.shape) == len(y.shape) == 3 and x.shape[:2] == y.shape[:2], "input and output do not match")
    units, depth = y.shape[2], x.shape[2]
    batch = x.shape[1] if raw.options["TimeMajor"] else x.shape[0]
    for i, w in enumerate(weights):
        assert w is not None
        if w.data is None:
            raise Cannot("its weights are computed", "constant weights")
        need(w.shape == (units, depth if i < 4 else units), "its weights do not match")
    for b in biases:
        assert b is not None
        if b.data is None:
            raise Cannot("its bias is computed", "a constant bias")
        need(b.elements == units, "its bias does not match")
    for s in states:
        assert s is not None
        need(s.state and s.elements == batch * units, "its states do not match")
    if raw.options["FusedActivationFunction"] != 4 or raw.options["ProjClip"] != 0:
        raise Cannot("a cell activation other than TANH, or a projection", "TANH, and no projection")
    clip = float(raw.options["CellClip"])
    need(math.isfinite(clip) and clip >= 0, f"clips at {clip}")
    op.options |= {"cell_clip": clip, "time_major": bool(raw.options["TimeMajor"])}
    op.inputs = [x, *weights, *biases]
    op.outputs = [y, *(s for s in states if s is not None)]


def _signal_window(raw: Raw, op: Op) -> None:
    x, w = op.inputs
    y = op.outputs[0]
    assert x is not None and w is not None
    if w.data is None:
        raise Cannot("its window is computed", "a constant window")
    need(x.elements == w.elements == y.elements, "its window does not match")
    need(0 <= raw.options["shift"] <= 31, f"shift {raw.options['shift']}")
    op.options["shift"] = int(raw.options["shift"])


def _rfft(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    n = int(raw.options["fft_length"])
    need(bool(x.shape) and 4 <= n <= 1 << 20, f"a length of {n}")
    need(x.elements <= n and y.elements == n + 2, f"{x.elements} samples and {y.elements} results of a length of {n}")
    op.options["fft_length"] = n


def _energy(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    first, end = int(raw.options["start_index"]), int(raw.options["end_index"])
    need(x.elements == 2 * y.elements, "its output does not match")
    need(0 <= first <= end <= y.elements, f"from {first} to {end} of {y.elements}")
    op.options |= {"start_index": first, "end_index": end}


def _filter_bank(raw: Raw, op: Op) -> None:
    x, weights, unweights, *tables = op.inputs
    y = op.outputs[0]
    assert x is not None and weights is not None and unweights is not None
    channels = int(raw.options["num_channels"])
    need(y.elements == channels and weights.elements == unweights.elements, "its output or weights do not match")
    need(all(t is not None and t.elements == channels + 1 for t in tables), "its tables do not match")
    for t in (weights, unweights, *tables):
        if t is None or t.data is None:
            raise Cannot("its weights are computed", "constant weights")
    starts, weight_starts, widths = (t.data.reshape(-1).astype(int) for t in tables if t is not None and t.data is not None)
    need(min(starts.min(), weight_starts.min(), widths.min()) >= 0, "a negative place in its tables")
    need((starts + widths).max() <= x.elements, "a band ends outside the spectrum")
    need((weight_starts + widths).max() <= weights.elements, "a band ends outside the weights")


def _subtraction(raw: Raw, op: Op) -> None:
    x, (y, noise) = op.inputs[0], op.outputs
    assert x is not None
    need(x.elements == y.elements == noise.elements == raw.options["num_channels"], "its channels do not match")
    need(all(0 <= int(v) < 1 << 32 for v in raw.options.values()), "an option that is negative")
    need(raw.options["smoothing_bits"] <= 31 and raw.options["spectral_subtraction_bits"] <= 31, "more than 31 bits")
    op.options |= {name: int(value) for name, value in raw.options.items()}
    op.outputs = [y, noise, Tensor(f"{noise.name}/kept", noise.shape, noise.dtype, state=True)]


def _pcan(raw: Raw, op: Op) -> None:
    x, noise, table = op.inputs
    assert x is not None and noise is not None and table is not None
    if table.data is None:
        raise Cannot("its table is computed", "a constant table")
    need(x.elements == noise.elements == op.outputs[0].elements, "its channels do not match")
    need(table.elements == 125, f"a gain table of {table.elements} numbers")
    need(0 <= raw.options["snr_shift"] <= 31, f"shift {raw.options['snr_shift']}")
    op.options["snr_shift"] = int(raw.options["snr_shift"])


def _slice(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    begin, size = _constants(op, "begin", "size")
    need(len(begin) == len(size) == len(x.shape), "its begin and size do not match the input")
    slices = []
    for n, first, count in zip(x.shape, begin.tolist(), size.tolist(), strict=True):
        count = n - first if count == -1 else count
        need(first >= 0 and 0 < count <= n - first, f"{count} from {first} of {n}")
        slices.append((first, 1, count))
    need(tuple(s[2] for s in slices) == y.shape, "its output does not match")
    op.options["slices"] = slices


def _parts(x: Tensor, axis: int, sizes: Sequence[int]) -> list[list[tuple[int, int, int]]]:
    """The slices of a tensor cut along an axis."""
    parts, first = [], 0
    for size in sizes:
        parts.append([(first, 1, size) if d == axis else (0, 1, n) for d, n in enumerate(x.shape)])
        first += size
    need(first == x.shape[axis], f"its parts make {first} of {x.shape[axis]}")
    return parts


def _axis(axis: int, rank: int) -> int:
    need(-rank <= axis < rank, f"axis {axis} of {rank} dimensions")
    return axis % rank


def _split(raw: Raw, op: Op) -> None:
    at, x = op.inputs
    assert at is not None and x is not None
    if at.data is None:
        raise Cannot("its axis is computed", "a constant axis")
    _cut(op, x, _axis(int(at.data.reshape(-1)[0]), len(x.shape)))


def _split_v(raw: Raw, op: Op) -> None:
    x, _, at = op.inputs
    assert at is not None and x is not None
    if at.data is None:
        raise Cannot("its axis is computed", "a constant axis")
    _cut(op, x, _axis(int(at.data.reshape(-1)[0]), len(x.shape)))


def _cut(op: Op, x: Tensor, axis: int) -> None:
    for y in op.outputs:
        need(len(y.shape) == len(x.shape), "an output has another rank")
        need(y.shape[:axis] + y.shape[axis + 1 :] == x.shape[:axis] + x.shape[axis + 1 :], "its outputs do not match")
    op.inputs = [x]
    op.options["parts"] = _parts(x, axis, [y.shape[axis] for y in op.outputs])


def _unpack(raw: Raw, op: Op) -> None:
    x = op.inputs[0]
    assert x is not None
    axis = _axis(raw.options["Axis"], len(x.shape))
    need(len(op.outputs) == x.shape[axis] == raw.options["Num"], "its outputs do not match")
    need(all(y.shape == x.shape[:axis] + x.shape[axis + 1 :] for y in op.outputs), "its outputs do not match")
    op.options["parts"] = _parts(x, axis, [1] * len(op.outputs))


def _pack(raw: Raw, op: Op) -> None:
    y = op.outputs[0]
    axis = _axis(raw.options["Axis"], len(y.shape))
    need(len(op.inputs) == y.shape[axis] == raw.options["ValuesCount"], "its inputs do not match")
    need(all(x is not None and x.shape == y.shape[:axis] + y.shape[axis + 1 :] for x in op.inputs), "its inputs do not match")
    op.options["axis"] = axis


def _transpose(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    (values,) = _constants(op, "order")
    order = [_axis(int(d), len(x.shape)) for d in values]
    need(sorted(order) == list(range(len(x.shape))), "its order is none of all dimensions")
    need(y.shape == tuple(x.shape[d] for d in order), "its output does not match")
    op.options["order"] = order


def _gather(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    indices = op.inputs[1]
    assert x is not None and indices is not None
    shape = indices.shape
    axis = _axis(raw.options["Axis"], len(x.shape))
    if raw.options["BatchDims"]:
        raise Cannot("batches of indices", "one set of indices")
    need(y.shape == x.shape[:axis] + shape + x.shape[axis + 1 :], "its output does not match")
    op.options["axis"] = axis
    if indices.data is not None:
        (values,) = _constants(op, "indices")
        need(bool(((values >= 0) & (values < x.shape[axis])).all()), f"an index outside 0 to {x.shape[axis] - 1}")
        op.options["indices"] = [int(i) for i in values]


def _pads(x: Tensor, values: np.ndarray) -> list[list[int]]:
    need(len(values) == 2 * len(x.shape), "its amounts are not two for each dimension")
    pads = [[int(a), int(b)] for a, b in values.reshape(-1, 2)]
    need(all(0 <= n < MAX_BYTES for pair in pads for n in pair), "a negative amount of padding")
    return pads


def _mirror_pad(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    (values,) = _constants(op, "amounts")
    mode = raw.options["Mode"]
    need(mode in (0, 1), f"mode {mode}")
    pads = _pads(x, values)
    skip = 1 - mode
    need(all(max(pair) <= n - skip for n, pair in zip(x.shape, pads, strict=True)), "more mirrored than there is")
    need(y.shape == tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)), "its output does not match")
    op.options |= {"pads": pads, "skip": skip}


def _pad_with(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    value = op.inputs[2]
    need(value is None or value.elements == 1, "its value is no single number")
    op.inputs = [t for t in op.inputs if t is not None]
    names = ("amounts", "value")[: len(op.inputs) - 1]
    constants = _constants(op, *names)
    pads = _pads(x, constants[0])
    need(y.shape == tuple(n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)), "its output does not match")
    zero = int(y.zero[0]) if len(y.zero) else 0
    op.options |= {"pads": pads, "value": constants[1][0].item() if len(constants) > 1 else zero}


def _space(raw: Raw, op: Op) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    block = raw.options["BlockSize"]
    need(len(x.shape) == len(y.shape) == 4 and block > 0, f"blocks of {block}")
    wide, deep = (y, x) if raw.kind == "DEPTH_TO_SPACE" else (x, y)
    fits = (deep.shape[0], deep.shape[1] * block, deep.shape[2] * block, deep.shape[3])
    need(fits == (*wide.shape[:3], wide.shape[3] * block * block), "its output does not match")
    op.options["block"] = block


def _blocks(raw: Raw, op: Op) -> None:
    """BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND."""
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    blocks, edges = _constants(op, "blocks", "amounts")
    if len(x.shape) != 4 or len(blocks) != 2:
        raise Cannot(f"blocks along {len(blocks)} of {len(x.shape)} dimensions", "height and width of a picture")
    need(len(edges) == 4 and min(blocks.tolist()) > 0 and min(edges.tolist()) >= 0, "its blocks or amounts do not match")
    (top, bottom), (left, right) = edges.reshape(2, 2).tolist()
    block_h, block_w = blocks.tolist()
    if raw.kind == "BATCH_TO_SPACE_ND":
        need(x.shape[0] % (block_h * block_w) == 0, "its batches are not blocks")
        shape = (x.shape[0] // (block_h * block_w), x.shape[1] * block_h - top - bottom, x.shape[2] * block_w - left - right)
        op.options["crops"] = (top, left)
    else:
        h, w = x.shape[1] + top + bottom, x.shape[2] + left + right
        need(h % block_h == 0 and w % block_w == 0, "its sides are not blocks")
        shape = (x.shape[0] * block_h * block_w, h // block_h, w // block_w)
        op.options["pads"] = (top, left)
    need(y.shape == (*shape, x.shape[3]), "its output does not match")
    op.options["blocks"] = (block_h, block_w)


def _resize(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    (size,) = _constants(op, "size")
    need(len(x.shape) == len(y.shape) == 4 and size.tolist() == list(y.shape[1:3]), "its output does not match")
    need((x.shape[0], x.shape[3]) == (y.shape[0], y.shape[3]), "its output does not match")
    corners, centres = bool(raw.options["AlignCorners"]), bool(raw.options["HalfPixelCenters"])
    need(not (corners and centres and raw.kind == "RESIZE_BILINEAR"), "corners and centres both aligned")
    op.options |= {"align_corners": corners, "half_pixel_centers": centres}


def _reduction(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    (values,) = _constants(op, "axes")
    axes = sorted({_axis(int(d), len(x.shape)) for d in values})
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    bare = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    need(y.shape == (kept if raw.options["KeepDims"] else bare), "its output does not match")
    op.options["axes"] = axes


def _arg(raw: Raw, op: Op) -> None:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    (values,) = _constants(op, "axis")
    need(len(values) == 1, f"{len(values)} axes")
    axis = _axis(int(values[0]), len(x.shape))
    need(y.shape == x.shape[:axis] + x.shape[axis + 1 :], "its output does not match")
    op.options["axes"] = [axis]


def _prelu(raw: Raw, op: Op) -> None:
    a, b = op.inputs
    assert a is not None and b is not None
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        shape = ()
    need(shape == a.shape == op.outputs[0].shape, "its slopes do not match")


def _leaky(raw: Raw, op: Op) -> None:
    _same_shape(raw, op)
    alpha = float(raw.options["Alpha"])
    need(math.isfinite(alpha), f"a slope of {alpha}")
    op.options["alpha"] = alpha


def _rows(raw: Raw, op: Op) -> None:
    _same_shape(raw, op)
    need(bool(op.outputs[0].shape), "a scalar")
    if raw.options.get("FusedActivationFunction", 0):
        raise Cannot("a fused activation", "none")


def _transpose_conv(raw: Raw, op: Op) -> None:
    options = raw.options
    size, w, x, *rest = op.inputs
    y = op.outputs[0]
    need(size is not None and w is not None and x is not None, "an operand is missing")
    assert size is not None and w is not None and x is not None
    need(len(w.shape) == len(x.shape) == len(y.shape) == 4, "its operands are not four-dimensional")
    op.inputs = [x, w, *rest]
    _operands(op, w.shape[0])
    need(len(w.scale) < 2 or w.axis == 0, "the scales of the weights are not by output channel")
    if size.data is None or size.data.reshape(-1).tolist() != list(y.shape):
        raise Cannot("its output's shape is computed", "a constant shape")
    need(x.shape[0] == y.shape[0] and x.shape[3] == w.shape[3] and y.shape[3] == w.shape[0], "its operands do not match")
    if options["FusedActivationFunction"]:
        raise Cannot("a fused activation", "none")
    need(options["Padding"] in (0, 1), f"padding number {options['Padding']}")
    for side, axis, stride, before in (("h", 1, options["StrideH"], "pad_top"), ("w", 2, options["StrideW"], "pad_left")):
        need(1 <= stride < 1 << 15, f"stride {stride}")
        n, k = y.shape[axis], w.shape[axis]
        count = -(-n // stride) if options["Padding"] == 0 else -(-(n - k + 1) // stride)
        need(count == x.shape[axis], f"its output has {n} rows or columns, which {x.shape[axis]} do not make")
        total = max(0, (count - 1) * stride + k - n) if options["Padding"] == 0 else 0
        op.options |= {f"stride_{side}": stride, before: total // 2}


_ACTIVATION = ("FusedActivationFunction",)
_WINDOW = ("Padding", "StrideH", "StrideW", *_ACTIVATION)
_CONV = (*_WINDOW, "DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_WINDOW, "FilterHeight", "FilterWidth"))
_DENSE = ("FullyConnectedOptions", ("WeightsFormat", "KeepNumDims", *_ACTIVATION))
_PIXELS = ("AlignCorners", "HalfPixelCenters")
_SLICE = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset")
BYTE = ("int8 -> int8",)
REDUCED = ("int8, int32 -> int8", "float32, int32 -> float32")
SUMMED = (*REDUCED, "int16, int32 -> int16")
NUMBERS = ("int8", "uint8", "int16", "int32", "uint32", "float32")
WEIGHTS = ("int8, int8, int32? -> int8", "float32, float32, float32? -> float32", "int16, int8, int64 -> int16")
WINDOWED = ("int8 -> int8", "float32 -> float32", "int16 -> int16")
BYTES = ("int8, int8 -> int8",)
INTEGERS = (*BYTES, "int16, int16 -> int16")
PAIRS = ("float32, float32 -> float32", "int32, int32 -> int32")
BYTE_OR_REAL = ("int8 -> int8", "float32 -> float32")
MOVED = ("int8", "uint8", "int16", "int32", "float32", "uint32")  # types that are only copied


def _moved(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.format(t=t) for t in MOVED)


OPERATORS = {
    "ADD": Form(5, (*INTEGERS, *PAIRS), _add, "AddOptions", _ACTIVATION),
    "ARG_MAX": Form(2, ("int8, int32 -> int32", "float32, int32 -> int32"), _arg),
    "ARG_MIN": Form(2, ("int8, int32 -> int32", "float32, int32 -> int32"), _arg),
    "ASSIGN_VARIABLE": Form(1, _moved("resource, {t} ->"), _assign, scaled=False),
    "AVERAGE_POOL_2D": Form(3, WINDOWED, _pool, *_POOL),
    "BATCH_TO_SPACE_ND": Form(3, _moved("{t}, int32, int32 -> {t}"), _blocks),
    "CAST": Form(7, tuple(f"{a} -> {b}" for a in NUMBERS for b in NUMBERS if a != b), _same_shape, scaled=False),
    "CALL_ONCE": Form(1, ("->",), _nothing, "CallOnceOptions", ("InitSubgraphIndex",)),
    "CONCATENATION": Form(
        2, _moved("{t}, ... -> {t}"), _concatenation, "ConcatenationOptions", ("Axis", *_ACTIVATION)
    ),
    "CONV_2D": Form(6, WEIGHTS, _conv, "Conv2DOptions", _CONV),
    "DEPTHWISE_CONV_2D": Form(6, WEIGHTS, _depthwise, "DepthwiseConv2DOptions", (*_CONV, "DepthMultiplier")),
    "DEPTH_TO_SPACE": Form(2, _moved("{t} -> {t}"), _space, "DepthToSpaceOptions", ("BlockSize",)),
    "DEQUANTIZE": Form(2, tuple(f"{t} -> float32" for t in ("int8", "uint8", "int16", "int32")), _same_shape),
    "DIV": Form(2, PAIRS, _add, "DivOptions", _ACTIVATION),
    "ELU": Form(1, BYTE_OR_REAL, _same_shape),
    "EXPAND_DIMS": Form(1, _moved("{t}, int32 -> {t}"), _reshape, scaled=False),
    "FULLY_CONNECTED": Form(12, WEIGHTS, _dense, *_DENSE),
    "GATHER": Form(5, _moved("{t}, int32 -> {t}"), _gather, "GatherOptions", ("Axis", "BatchDims")),
    "HARD_SWISH": Form(1, BYTE_OR_REAL, _same_shape),
    "L2_NORMALIZATION": Form(2, BYTE_OR_REAL, _rows, "L2NormOptions", _ACTIVATION),
    "LEAKY_RELU": Form(2, WINDOWED, _leaky, "LeakyReluOptions", ("Alpha",)),
    "LOGISTIC": Form(3, (*BYTE_OR_REAL, "int16 -> int16"), _same_shape),
    "LOG_SOFTMAX": Form(2, BYTE_OR_REAL, _rows),
    "MAXIMUM": Form(4, (*INTEGERS, *PAIRS), _add),
    "MAX_POOL_2D": Form(3, WINDOWED, _pool, *_POOL),
    "MEAN": Form(2, SUMMED, _reduction, "ReducerOptions", ("KeepDims",)),
    "MINIMUM": Form(4, (*INTEGERS, *PAIRS), _add),
    "MIRROR_PAD": Form(2, _moved("{t}, int32 -> {t}"), _mirror_pad, "MirrorPadOptions", ("Mode",)),
    "MUL": Form(7, (*INTEGERS, *PAIRS), _add, "MulOptions", _ACTIVATION),
    "PACK": Form(2, _moved("{t}, ... -> {t}"), _pack, "PackOptions", ("Axis", "ValuesCount")),
    "PAD": Form(2, ("int8, int32 -> int8", "float32, int32 -> float32", "int16, int32 -> int16"), _pad),
    "PADV2": Form(2, _moved("{t}, int32, {t} -> {t}"), _pad_with),
    "PRELU": Form(1, (*BYTES, "float32, float32 -> float32"), _prelu),
    "QUANTIZE": Form(
        2,
        (
            "int8 -> int8", "int8 -> uint8", "uint8 -> int8", "float32 -> int8", "float32 -> uint8", "float32 -> int16",
            "int8 -> int16", "int8 -> int32", "int16 -> int8", "int16 -> int16", "int16 -> int32",
        ),
        _same_shape,
    ),
    "READ_VARIABLE": Form(1, _moved("resource -> {t}"), _read, scaled=False),
    "REDUCE_MAX": Form(2, REDUCED, _reduction, "ReducerOptions", ("KeepDims",)),
    "RELU": Form(3, BYTE_OR_REAL, _same_shape),
    "RELU6": Form(3, BYTE_OR_REAL, _same_shape),
    "RELU_N1_TO_1": Form(2, ("float32 -> float32", *BYTE), _same_shape),
    "RESHAPE": Form(1, _moved("{t}, int32? -> {t}"), _reshape, scaled=False),
    "RESIZE_BILINEAR": Form(
        4, ("int8, int32 -> int8", "float32, int32 -> float32"), _resize, "ResizeBilinearOptions", _PIXELS
    ),
    "RESIZE_NEAREST_NEIGHBOR": Form(4, _moved("{t}, int32 -> {t}"), _resize, "ResizeNearestNeighborOptions", _PIXELS),
    "SLICE": Form(4, _moved("{t}, int32, int32 -> {t}"), _slice, scaled=False),
    "SOFTMAX": Form(2, ("int8 -> int8", "int8 -> int16", "float32 -> float32", "int16 -> int16"), _softmax, "SoftmaxOptions", ("Beta",)),
    "SPACE_TO_BATCH_ND": Form(3, _moved("{t}, int32, int32 -> {t}"), _blocks),
    "SPACE_TO_DEPTH": Form(2, _moved("{t} -> {t}"), _space, "SpaceToDepthOptions", ("BlockSize",)),
    "SPLIT": Form(4, _moved("int32, {t} -> {t}, ..."), _split, "SplitOptions", ("NumSplits",)),
    "SPLIT_V": Form(2, _moved("{t}, int32, int32 -> {t}, ..."), _split_v, "SplitVOptions", ("NumSplits",)),
    "SQUEEZE": Form(2, _moved("{t} -> {t}"), _reshape, scaled=False),
    "STRIDED_SLICE": Form(
        4, _moved("{t}, int32, int32, int32 -> {t}"), _strided_slice, "StridedSliceOptions", _SLICE, scaled=False
    ),
    "SUB": Form(5, (*INTEGERS, *PAIRS), _add, "SubOptions", _ACTIVATION),
    "SUM": Form(2, SUMMED, _reduction, "ReducerOptions", ("KeepDims",)),
    "SVDF": Form(
        3,
        (
            "int8, int8, int16, int32?, int16 -> int8", "int8, int8, int8, int32?, int8 -> int8",
            "float32, float32, float32, float32?, float32 -> float32",
        ),
        _svdf, "SVDFOptions", ("Rank", *_ACTIVATION),
    ),
    "SignalEnergy": Form(1, ("int16 -> uint32",), _energy, "flexbuffer", ("start_index", "end_index")),
    "SignalFftAutoScale": Form(1, ("int16 -> int16, int32",), _same_shape, "flexbuffer"),
    "SignalFilterBank": Form(
        1, ("uint32, int16, int16, int16, int16, int16 -> uint64",), _filter_bank, "flexbuffer", ("num_channels",)
    ),
    "SignalFilterBankLog": Form(
        1, ("uint32 -> int16",), _same_shape, "flexbuffer", ("input_correction_bits", "output_scale")
    ),
    "SignalFilterBankSpectralSubtraction": Form(
        1, ("uint32 -> uint32, uint32",), _subtraction, "flexbuffer",
        (
            "alternate_one_minus_smoothing", "alternate_smoothing", "clamping", "min_signal_remaining", "num_channels",
            "one_minus_smoothing", "smoothing", "smoothing_bits", "spectral_subtraction_bits",
        ),
    ),
    "SignalFilterBankSquareRoot": Form(1, ("uint64, int32 -> uint32",), _same_shape, "flexbuffer"),
    "SignalPCAN": Form(1, ("uint32, uint32, int16 -> uint32",), _pcan, "flexbuffer", ("snr_shift",)),
    "SignalRfft": Form(1, ("int16 -> int16",), _rfft, "flexbuffer", ("fft_length",)),
    "SignalWindow": Form(1, ("int16, int16 -> int16",), _signal_window, "flexbuffer", ("shift",)),
    "TANH": Form(3, (*BYTE_OR_REAL, "int16 -> int16"), _same_shape),
    "TRANSPOSE": Form(5, _moved("{t}, int32 -> {t}"), _transpose),
    "TRANSPOSE_CONV": Form(
        3,
        (
            "int32, int8, int8, int32? -> int8", "int32, float32, float32, float32? -> float32", "int32, int8, int16, int64? -> int16",
        ),
        _transpose_conv, "TransposeConvOptions", _WINDOW,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Form(
        1,
        (
            f"int8, {'int8, ' * 8}none, none, none, {'int32, ' * 4}none, none, int8, int16, none, none, none, none -> int8",
            f"float32, {'float32, ' * 8}none, none, none, {'float32, ' * 4}none, none, float32, float32, none, none, none, none -> float32",
        ),
        _lstm, "UnidirectionalSequenceLSTMOptions", ("CellClip", "ProjClip", "TimeMajor", *_ACTIVATION),
    ),
    "UNPACK": Form(4, _moved("{t} -> {t}, ..."), _unpack, "UnpackOptions", ("Axis", "Num")),
    "VAR_HANDLE": Form(1, ("-> resource",), _nothing, "VarHandleOptions", ("Container", "SharedName")),
}  # fmt: skip
NEAREST = {  # for operators we do not have: what does the same, or nearly
    "FAKE_QUANT": "no operator: convert with full integer quantization",
    "FILL": "a constant",
    "POW": "MUL with itself",
    "SQUARED_DIFFERENCE": "SUB, and MUL with itself",
    "SQUARE": "MUL with itself",
}


def supported() -> list[tuple[str, int, str]]:
    """Each operator that can be compiled, the newest version of it that is understood, and its operands' types."""
    return [(kind, form.version, types) for kind, form in sorted(OPERATORS.items()) for types in form.types]


