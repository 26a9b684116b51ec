"""The operators that a quantised .onnx may have, and what they become.

`OPERATORS` is the one table: the reader, its messages and the list in the documentation all come from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from synapticos.importers.damage import need
from synapticos.importers.onnx_file import Node, text
from synapticos.importers.onnx_graph import IN_FILE, STORED, Reader, Scale, Value, same_order, stored
from synapticos.model import Tensor
from synapticos.model.form import Cannot

MAX_SIDE = 65_535  # of what is padded or resized


@dataclass(frozen=True)
class Form:
    """What of an operator is read."""

    read: Callable[[Reader, Node], None]
    becomes: str  # operators of the graph
    words: str = ""  # what it must be like
    attributes: dict[str, Any] = field(default_factory=dict)  # and what they are where the file says nothing
    many: bool = False  # results


def options_of(node: Node, form: Form) -> dict[str, Any]:
    """A node's attributes, with all that its form has. Raises Cannot for one that it has not."""
    for name, value in node.attributes.items():
        if name not in form.attributes:
            raise Cannot(f"attribute {name}", f"{node.kind} without it")
        wanted = type(form.attributes[name])
        need(isinstance(value, wanted), f"{node}: attribute {name} is no {wanted.__name__}")
        need(not isinstance(value, list) or len(value) <= 16, f"{node}: attribute {name} has more than 16 numbers")
    return form.attributes | node.attributes


# ---- windows ----


def _picture(r: Reader, node: Node) -> Value:
    v = r.value(node, 0)
    if len(v.shape) != 4:
        raise Cannot(f"an input of {len(v.shape)} dimensions", "[batch, channels, height, width]")
    return r.channels_last(node, v)


def _picture_or_line(r: Reader, node: Node) -> tuple[Value, bool]:
    """The input as a picture, and whether it is one of a single line, [batch, channels, length] in the file."""
    v = r.value(node, 0)
    if len(v.shape) != 3:
        return _picture(r, node), False
    v, o = r.channels_last(node, v), dict(node.options)
    for name, other in (("strides", 1), ("dilations", 1), ("kernel_shape", 1), ("output_padding", 0)):
        if o.get(name):
            need(len(o[name]) == 1, f"{node}: {name} does not have one number")
            o[name] = [other, *o[name]]
    if o.get("pads"):
        need(len(o["pads"]) == 2, f"{node}: pads does not have two numbers")
        o["pads"] = [0, o["pads"][0], 0, o["pads"][1]]
    node.options = o
    n, c, length = v.shape
    return Value(r.emit(node, "RESHAPE", [v.tensor], (n, 1, length, c), v.scale), (n, c, 1, length), True), True


def _filters_of(r: Reader, node: Node, line: bool) -> np.ndarray:
    array = r.weight(node, 1).array
    if line and array.ndim == 3:
        array = array[:, :, None, :]
    need(array.ndim == 4 and array.size > 0, f"{node}: its weights do not have the dimensions of its input")
    kernel = node.options["kernel_shape"]
    need(not kernel or list(array.shape[2:]) == kernel, f"{node}: its weights are not of kernel_shape {kernel}")
    return array


def _pairs(node: Node, name: str, count: int = 2, default: int = 1) -> list[int]:
    values = node.options.get(name) or [default] * count
    need(len(values) == count, f"{node}: {name} does not have {count} numbers")
    return values


def _window(node: Node, x: Value, size: list[int]) -> tuple[list[int], dict[str, int]]:
    """Height and width of the result; strides, dilation and padding of the operator."""
    o = node.options
    need(len(size) == 2, f"{node}: its window does not have two sides")
    strides, dilations, pads = _pairs(node, "strides"), _pairs(node, "dilations"), _pairs(node, "pads", 4, 0)
    need(o["auto_pad"] in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"{node}: auto_pad {o['auto_pad']}")
    sides: list[int] = []
    options: dict[str, int] = {}
    for i, (side, begin, end) in enumerate((("h", "pad_top", "pad_bottom"), ("w", "pad_left", "pad_right"))):
        n, k, stride, dilation = x.shape[2 + i], size[i], strides[i], dilations[i]
        need(all(1 <= a < 1 << 15 for a in (k, stride, dilation)), f"{node}: a window of {k}, stride {stride}, dilation {dilation}")
        extent = (k - 1) * dilation + 1
        before, after = pads[i], pads[2 + i]
        if min(before, after) < 0:
            raise Cannot(f"padding of {before} and {after}", "0 or more")
        need(max(before, after) <= MAX_SIDE, f"{node}: padding of {before} and {after}")
        if o["auto_pad"].startswith("SAME"):
            total = max(0, (-(-n // stride) - 1) * stride + extent - n)
            before = total // 2 if o["auto_pad"] == "SAME_UPPER" else total - total // 2
            after = total - before
        elif o["auto_pad"] == "VALID":
            before = after = 0
        room = n + before + after - extent
        need(room >= 0, f"{node}: a window of {extent} does not fit into {n} with its padding")
        out = room // stride + 1
        if o.get("ceil_mode") and room % stride and out * stride < n + before:
            out, after = out + 1, out * stride + extent - n - before
        sides.append(out)
        options |= {f"stride_{side}": stride, f"dilation_{side}": dilation, begin: before, end: after}
    return sides, options


def _scaled_weights(node: Node, r: Reader, at: int, axis: int, array: np.ndarray, new_axis: int) -> Tensor:
    """Weights as a tensor, with the scales of the output channels along `new_axis`."""
    w = r.weight(node, at)
    count = array.shape[new_axis]
    if w.scale.size > 1:
        need(-w.array.ndim <= w.axis < w.array.ndim, f"{node}: scales along dimension {w.axis}")
        if w.axis % w.array.ndim != axis:
            raise Cannot(f"scales along dimension {w.axis} of its weights", "one scale, or one an output channel")
        need(w.scale.size == count, f"{node}: {w.scale.size} scales for {count} channels")
    return Tensor(text(w.name), array.shape, "int8", w.scale, w.zero.astype(np.int32), new_axis, array)


def _conv(r: Reader, node: Node) -> None:
    (x, line), w = _picture_or_line(r, node), r.weight(node, 1)
    filters = _filters_of(r, node, line)
    out, part, k_h, k_w = filters.shape
    groups = node.options["group"]
    need(groups >= 1 and out % groups == 0 and x.shape[1] == part * groups, f"{node}: {x.shape[1]} channels in {groups} groups of {part}")
    sides, options = _window(node, x, [k_h, k_w])
    bias = r.bias(node, 2, x, w, out)
    if groups > 1 and part == 1:
        array = np.ascontiguousarray(filters.transpose(1, 2, 3, 0))
        weights, kind = _scaled_weights(node, r, 1, 0, array, 3), "DEPTHWISE_CONV_2D"
        options["depth_multiplier"] = out // groups
    else:
        array = np.ascontiguousarray(filters.transpose(0, 2, 3, 1))
        weights, kind = _scaled_weights(node, r, 1, 0, array, 0), "CONV_2D"
    r.result(
        node, kind, [x.tensor, weights, bias], (x.shape[0], out, *sides), first=True, options=options, activates=True,
        line=line,
    )  # fmt: skip


def _conv_transpose(r: Reader, node: Node) -> None:
    (x, line), w, o = _picture_or_line(r, node), r.weight(node, 1), node.options
    filters = _filters_of(r, node, line)
    depth, out, k_h, k_w = filters.shape
    if o["group"] != 1 or _pairs(node, "dilations") != [1, 1]:
        raise Cannot("groups or dilation", "one group and no dilation")
    if o["auto_pad"] != "NOTSET" or o["output_shape"]:
        raise Cannot("padding that follows from the output", "pads in numbers")
    need(x.shape[1] == depth, f"{node}: {x.shape[1]} channels, {depth} a filter")
    strides, pads, more = _pairs(node, "strides"), _pairs(node, "pads", 4, 0), _pairs(node, "output_padding", 2, 0)
    need(all(0 <= n <= MAX_SIDE for n in [*strides, *pads, *more]), f"{node}: strides {strides}, pads {pads}")
    sides = [
        (x.shape[2 + i] - 1) * strides[i] + more[i] + (k_h, k_w)[i] - pads[i] - pads[2 + i] for i in range(2)
    ]
    need(min(sides) > 0, f"{node}: more padding than there is")
    array = np.ascontiguousarray(filters.transpose(1, 2, 3, 0))
    weights = _scaled_weights(node, r, 1, 1, array, 0)
    options = {"stride_h": strides[0], "stride_w": strides[1], "pad_top": pads[0], "pad_left": pads[1]}
    r.result(
        node, "TRANSPOSE_CONV", [x.tensor, weights, r.bias(node, 2, x, w, out)], (x.shape[0], out, *sides), first=True,
        options=options, line=line,
    )  # fmt: skip


def _pool(kind: str) -> Callable[[Reader, Node], None]:
    def read(r: Reader, node: Node) -> None:
        (x, line), size = _picture_or_line(r, node), node.options["kernel_shape"]
        sides, options = _window(node, x, size)
        if (options.pop("dilation_h"), options.pop("dilation_w")) != (1, 1):
            raise Cannot("dilation", "none")
        starts = (options["pad_top"], options["pad_left"])
        ends = (options["pad_bottom"], options["pad_right"])
        shape, tensor, step = (*x.shape[:2], *sides), x.tensor, [options["stride_h"], options["stride_w"]]
        reach = [max((sides[i] - 1) * step[i] - starts[i] - x.shape[2 + i] + 1, starts[i] - size[i] + 1) for i in range(2)]
        counted = bool(node.options.get("count_include_pad"))
        if counted and max(*starts, *ends) > 0:
            if node.options["ceil_mode"]:
                raise Cannot("ceil_mode with counted padding", "one of them")
            sides_of = [[0, 0], [starts[0], ends[0]], [starts[1], ends[1]], [0, 0]]
            padded = [n + sum(pair) for n, pair in zip(tensor.shape, sides_of)]
            tensor = r.emit(node, "PAD", [tensor], padded, x.scale, {"pads": sides_of})
            options |= {"pad_top": 0, "pad_bottom": 0, "pad_left": 0, "pad_right": 0}
        elif max(reach) > 0:
            raise Cannot("windows that lie in the padding only", "less padding")
        options |= {"filter_h": size[0], "filter_w": size[1]}
        r.result(node, kind, [tensor], shape, first=True, options=options, at=x.scale, activates=True, line=line)

    return read


def _global(kind: str) -> Callable[[Reader, Node], None]:
    def read(r: Reader, node: Node) -> None:
        x, line = _picture_or_line(r, node)
        at = x.scale if kind == "REDUCE_MAX" else None
        r.result(node, kind, [x.tensor], (*x.shape[:2], 1, 1), first=True, options={"axes": [1, 2]}, at=at, line=line)

    return read


def _reduction(kind: str) -> Callable[[Reader, Node], None]:
    def read(r: Reader, node: Node) -> None:
        x, o = r.value(node, 0), node.options
        axes = o["axes"] if o["axes"] else r.integers(node, 1, "axes") if r.has(node, 1) else []
        if not axes and o["noop_with_empty_axes"]:
            raise Cannot("no axes", "axes")
        rank = len(x.shape)
        need(all(-rank <= a < rank for a in axes), f"{node}: axes {axes} of {rank} dimensions")
        gone = sorted({a % rank for a in axes}) or list(range(rank))
        keeps = bool(o["keepdims"])
        if x.first and not keeps and [a for a in STORED[rank] if a not in gone] != [a for a in range(rank) if a not in gone]:
            x = r.as_in_file(node, x)
        shape = [1 if d in gone else n for d, n in enumerate(x.shape) if keeps or d not in gone]
        if not shape:
            raise Cannot("a result without dimensions", "keepdims 1")
        r.result(
            node, kind, [x.tensor], shape, first=x.first and keeps, options={"axes": sorted(r.axis(x, a) for a in gone)},
            at=x.scale if kind == "REDUCE_MAX" else None,
        )  # fmt: skip

    return read


# ---- dense layers ----


def _gemm(r: Reader, node: Node) -> None:
    o, x = node.options, r.value(node, 0)
    if o["transA"] or o["alpha"] != 1.0 or (o["beta"] != 1.0 and r.has(node, 2)):
        raise Cannot("transA, alpha or beta", "transA 0, alpha and beta 1")
    _dense(r, node, x, bool(o["transB"]))


def _matmul(r: Reader, node: Node) -> None:
    _dense(r, node, r.value(node, 0), False)


def _dense(r: Reader, node: Node, x: Value, turned: bool) -> None:
    x, w = r.as_in_file(node, x), r.weight(node, 1)
    need(w.array.ndim == 2 and w.array.size > 0, f"{node}: its weights are not two-dimensional")
    array = w.array if turned else w.array.T
    out, depth = array.shape
    need(bool(x.shape) and x.shape[-1] == depth, f"{node}: {list(x.shape)} times weights of {depth}")
    if x.rows is not None:  # the rows are pictures with their channels last
        array = array.reshape(out, *x.rows).transpose(STORED[len(x.rows) + 1]).reshape(out, depth)
    weights = _scaled_weights(node, r, 1, 0 if turned else 1, np.ascontiguousarray(array), 0)
    r.result(
        node, "FULLY_CONNECTED", [x.tensor, weights, r.bias(node, 2, x, w, out)], (*x.shape[:-1], out),
        options={"keep_num_dims": True}, activates=True,
    )  # fmt: skip


# ---- element by element ----


def _scalar(r: Reader, node: Node, at: int) -> float | None:
    """The one number that an operand is, if it is a constant that is not quantised."""
    name = r.name(node, at)
    array = r.constants.get(name)
    if array is None or array.size != 1 or array.dtype.kind != "f" or array.ndim > 1:
        return None
    return float(array.reshape(-1)[0])


def _flipped(function: Callable[[Any, Any], Any], b: Any, a: Any) -> Any:
    return function(a, b)


def _elements(kind: str | None, function: Callable[[Any, Any], Any]) -> Callable[[Reader, Node], None]:
    def read(r: Reader, node: Node) -> None:
        need(len(node.inputs) > 0, f"{node}: no inputs")
        if len(node.inputs) != 2:
            raise Cannot(f"{len(node.inputs)} inputs", "two")
        for at in (0, 1):
            number = _scalar(r, node, at)
            if number is not None:
                v = r.value(node, 1 - at)
                r.function(node, v, partial(function, number) if at == 0 else partial(_flipped, function, number))
                return
        if kind is None:
            raise Cannot("two computed operands", "a constant that is one number")
        a, b = _alike(r, node, r.value(node, 0), r.value(node, 1))
        shape = np.broadcast_shapes(a.shape, b.shape)
        at_scale = None
        if kind in ("MAXIMUM", "MINIMUM"):
            if a.scale != b.scale:
                raise Cannot("operands of other scales", "equal scales")
            at_scale = a.scale
        activates = kind not in ("MAXIMUM", "MINIMUM", "PRELU")
        r.result(node, kind, [a.tensor, b.tensor], shape, first=a.first, at=at_scale, activates=activates)

    return read


def _alike(r: Reader, node: Node, *values: Value) -> list[Value]:
    """Operands with as many dimensions, stored in one order."""
    try:
        rank = len(np.broadcast_shapes(*(v.shape for v in values)))
    except ValueError:
        need(False, f"{node}: shapes {', '.join(str(list(v.shape)) for v in values)} do not match")
    widened = []
    for v in values:
        shape = (1,) * (rank - len(v.shape)) + v.shape
        if shape == v.shape:
            widened.append(v)
        elif v.tensor.data is not None:
            data = v.tensor.data.reshape(shape)
            t = Tensor(v.tensor.name, shape, "int8", v.tensor.scale, v.tensor.zero, data=data)
            widened.append(Value(t, shape))
        else:
            widened.append(Value(r.emit(node, "RESHAPE", [v.tensor], shape, v.scale), shape))
    if any(v.first for v in widened):
        return [r.channels_last(node, v) for v in widened]
    return widened


def _function(function: Callable[..., Any], *names: str) -> Callable[[Reader, Node], None]:
    """A function of each element and of the named attributes."""

    def read(r: Reader, node: Node) -> None:
        r.function(node, r.value(node, 0), lambda x: function(x, *(node.options[name] for name in names)))

    return read


def _clip(r: Reader, node: Node) -> None:
    low, high = r.clip_ends(node)
    r.function(node, r.value(node, 0), lambda x: np.clip(x, low, high))


def _erf(x: Any) -> Any:
    return np.array([math.erf(v) for v in np.asarray(x).reshape(-1)])


def _gelu(x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _softmax(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    axis = node.options["axis"]
    need(-len(x.shape) <= axis < len(x.shape), f"{node}: axis {axis} of {len(x.shape)} dimensions")
    if r.axis(x, axis) != len(x.shape) - 1:
        x = r.as_in_file(node, x) if x.first else r.channels_last(node, x) if len(x.shape) in STORED else x
    if r.axis(x, axis) != len(x.shape) - 1:
        raise Cannot(f"axis {axis} of {list(x.shape)}", "the last dimension, or the channels of a picture")
    r.result(node, "SOFTMAX", [x.tensor], x.shape, first=x.first, options={"beta": 1.0}, at=Scale(1 / 256, -128))


# ---- shapes ----


def _new_shape(r: Reader, node: Node, shape: tuple[int, ...]) -> None:
    """The result is the input's elements, in the file's order, under another shape."""
    x = r.value(node, 0)
    need(math.prod(shape) == math.prod(x.shape), f"{node}: {list(x.shape)} becomes {list(shape)}")
    rows = None
    if shape == x.shape:
        r.same(node, x)
        return
    if x.first and not same_order(x.shape) and len(shape) == 2 and shape[0] == x.shape[0] and _only_dense(r, node):
        rows = x.shape[1:]  # the weights are put in order instead
    elif x.first:
        x = r.as_in_file(node, x)
    r.result(node, "RESHAPE", [x.tensor], shape, at=x.scale, rows=rows)


def _only_dense(r: Reader, node: Node) -> bool:
    """Whether all that read the result are dense layers with constant weights."""
    users = r.users(node.outputs[0])
    return bool(users) and all(
        n is not None and n.kind in ("Gemm", "MatMul") and at == 0 and len(n.inputs) > 1 and n.inputs[1] in r.weights
        for n, at in users
    )


def _reshape(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    shape = r.integers(node, 1, "shape")
    if not node.options["allowzero"]:
        need(all(n != 0 or i < len(x.shape) for i, n in enumerate(shape)), f"{node}: shape {shape} of {list(x.shape)}")
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    rest = math.prod(n for n in shape if n != -1)
    need(shape.count(-1) <= 1 and min([1, *shape]) >= -1 and rest > 0, f"{node}: shape {shape}")
    _new_shape(r, node, tuple(math.prod(x.shape) // rest if n == -1 else n for n in shape))


def _flatten(r: Reader, node: Node) -> None:
    x, axis = r.value(node, 0), node.options["axis"]
    need(-len(x.shape) <= axis <= len(x.shape), f"{node}: axis {axis} of {len(x.shape)} dimensions")
    axis = axis + len(x.shape) if axis < 0 else axis
    _new_shape(r, node, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    rank = len(x.shape)
    axes = r.integers(node, 1, "axes") if r.has(node, 1) else [d for d, n in enumerate(x.shape) if n == 1]
    need(all(-rank <= a < rank and x.shape[a] == 1 for a in axes), f"{node}: axes {axes} of {list(x.shape)}")
    gone = {a % rank for a in axes}
    _new_shape(r, node, tuple(n for d, n in enumerate(x.shape) if d not in gone))


def _unsqueeze(r: Reader, node: Node) -> None:
    x, axes = r.value(node, 0), r.integers(node, 1, "axes")
    rank = len(x.shape) + len(axes)
    need(all(-rank <= a < rank for a in axes), f"{node}: axes {axes}")
    new = {a % rank for a in axes}
    need(len(new) == len(axes), f"{node}: axes {axes}")
    old = iter(x.shape)
    _new_shape(r, node, tuple(1 if d in new else next(old) for d in range(rank)))


def _dropout(r: Reader, node: Node) -> None:
    if r.has(node, 2) and r.constant(node, 2, "mode").any():
        raise Cannot("training", "training_mode 0")
    r.same(node, r.value(node, 0))


def _identity(r: Reader, node: Node) -> None:
    r.same(node, r.value(node, 0))


def _transpose(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    rank = len(x.shape)
    order = node.options["perm"] or list(range(rank))[::-1]
    need(sorted(order) == list(range(rank)), f"{node}: perm {order} of {rank} dimensions")
    shape = tuple(x.shape[d] for d in order)
    if order == list(range(rank)):
        r.same(node, x)
    elif x.first and order == list(STORED[rank]):  # it is stored so already
        r.same(node, Value(x.tensor, shape))
    elif not x.first and rank in IN_FILE and order == list(IN_FILE[rank]):
        r.same(node, Value(x.tensor, shape, True))
    else:
        where = list(STORED[rank]) if x.first else list(range(rank))
        turned = [where.index(order[d]) for d in where]
        r.result(node, "TRANSPOSE", [x.tensor], shape, first=x.first, options={"order": turned}, at=x.scale)


def _concat(r: Reader, node: Node) -> None:
    values = [r.value(node, at) for at in range(len(node.inputs))]
    need(bool(values), f"{node}: no inputs")
    axis, rank = node.options["axis"], len(values[0].shape)
    need(-rank <= axis < rank, f"{node}: axis {axis} of {rank} dimensions")
    axis %= rank
    others = {v.shape[:axis] + v.shape[axis + 1 :] for v in values}
    need(len(others) == 1 and all(len(v.shape) == rank for v in values), f"{node}: its shapes do not match")
    if any(v.first for v in values):
        values = [r.channels_last(node, v) for v in values]
    first = values[0].first
    target = r.target(node)
    tensors = []
    for v in values:
        if v.scale == target.scale:
            tensors.append(v.tensor)
        elif v.tensor.data is not None:
            reals = (v.tensor.data.astype(np.float64) - v.scale.zero) * v.scale.scale
            made = r.tensor(v.tensor.name, v.tensor.shape, target.scale)
            made.number, made.data = -1, target.scale.quantized(reals)
            tensors.append(made)
        else:
            tensors.append(r.emit(node, "QUANTIZE", [v.tensor], v.tensor.shape, target.scale))
    shape = list(values[0].shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    options = {"axis": r.axis(values[0], axis), "activation": "NONE"}
    r.result(node, "CONCATENATION", tensors, shape, first=first, options=options, at=target.scale)


def _cut(r: Reader, node: Node, x: Value, slices: list[tuple[int, int, int]], output: int = 0) -> None:
    shape = tuple(count for _, _, count in slices)
    if x.first:
        slices = list(stored(slices))
    r.result(node, "STRIDED_SLICE", [x.tensor], shape, first=x.first, options={"slices": slices}, at=x.scale, output=output)


def _slice(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    starts, ends = r.integers(node, 1, "starts"), r.integers(node, 2, "ends")
    axes = r.integers(node, 3, "axes") if r.has(node, 3) else list(range(len(starts)))
    steps = r.integers(node, 4, "steps") if r.has(node, 4) else [1] * len(starts)
    rank = len(x.shape)
    need(len(starts) == len(ends) == len(axes) == len(steps) and 0 not in steps, f"{node}: starts, ends and steps do not match")
    need(all(-rank <= a < rank for a in axes), f"{node}: axes {axes} of {rank} dimensions")
    slices = [(0, 1, n) for n in x.shape]
    for first, last, axis, step in zip(starts, ends, axes, steps):
        n = x.shape[axis]
        # Python's own slices, but that -1 as an end below 0 has to be None there.
        places = range(n)[slice(first, None if step < 0 and last < -n else last, step)]
        need(len(places) > 0, f"{node}: takes nothing of {n}")
        slices[axis % rank] = (places.start, step, len(places))
    _cut(r, node, x, slices)


def _split(r: Reader, node: Node) -> None:
    x = r.value(node, 0)
    rank, axis = len(x.shape), node.options["axis"]
    need(-rank <= axis < rank, f"{node}: axis {axis} of {rank} dimensions")
    n, count = x.shape[axis], len(node.outputs)
    need(0 < count <= n, f"{node}: {count} parts of {n}")
    each = -(-n // count)
    sizes = r.integers(node, 1, "sizes") if r.has(node, 1) else [each] * (count - 1) + [n - each * (count - 1)]
    need(len(sizes) == count and sum(sizes) == n and min(sizes) > 0, f"{node}: parts of {sizes} of {n}")
    first = 0
    for output, size in enumerate(sizes):
        slices = [(first, 1, size) if d == axis % rank else (0, 1, n) for d, n in enumerate(x.shape)]
        if r.users(node.outputs[output]):
            _cut(r, node, x, slices, output)
        first += size


def _gather(r: Reader, node: Node) -> None:
    x, indices = r.value(node, 0), r.constant(node, 1, "indices")
    need(indices.dtype.kind in "iu" and 0 < indices.size <= MAX_SIDE, f"{node}: its indices are no integers")
    rank, axis = len(x.shape), node.options["axis"]
    need(-rank <= axis < rank, f"{node}: axis {axis} of {rank} dimensions")
    n = x.shape[axis]
    need(bool(((indices >= -n) & (indices < n)).all()), f"{node}: an index outside {n}")
    if indices.ndim != 1:
        x = r.as_in_file(node, x)
    axis %= rank
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    options = {"axis": r.axis(x, axis), "indices": [int(i) % n for i in indices.reshape(-1)]}
    r.result(node, "GATHER", [x.tensor], shape, first=x.first, options=options, at=x.scale)


def _pad(r: Reader, node: Node) -> None:
    x, amounts = r.value(node, 0), r.integers(node, 1, "amounts")
    rank = len(x.shape)
    axes = r.integers(node, 3, "axes") if r.has(node, 3) else list(range(rank))
    need(len(amounts) == 2 * len(axes) and all(-rank <= a < rank for a in axes), f"{node}: amounts {amounts} of {rank} dimensions")
    if min([0, *amounts]) < 0:
        raise Cannot("a negative amount of padding", "Slice")
    need(max([0, *amounts]) <= MAX_SIDE, f"{node}: amounts {amounts}")
    pads = [[0, 0] for _ in x.shape]
    for i, axis in enumerate(axes):
        pads[axis] = [amounts[i], amounts[len(axes) + i]]
    shape = [n + sum(pair) for n, pair in zip(x.shape, pads)]
    options: dict[str, Any] = {"pads": list(stored(pads)) if x.first else pads}
    mode, kind = node.options["mode"], "PAD"
    if mode == "reflect":
        need(all(max(pair) < n for n, pair in zip(x.shape, pads)), f"{node}: more mirrored than there is")
        kind, options["skip"] = "MIRROR_PAD", 1
    elif mode != "constant":
        raise Cannot(f"mode {mode}", "constant or reflect")
    elif r.has(node, 2):
        value = r.constant(node, 2, "value")
        need(value.size == 1, f"{node}: its value is no single number")
        q = int(x.scale.quantized(value.reshape(-1))[0])
        if q != x.scale.zero:
            kind, options["value"] = "PADV2", q
        away = abs((q - x.scale.zero) * x.scale.scale - float(value.reshape(-1)[0]))
        if not away <= 0.51 * x.scale.scale and r.target(node).scale != x.scale:
            raise Cannot(f"a value of {value.reshape(-1)[0]:g} that its input cannot hold", "a value inside the input's range")
    r.result(node, kind, [x.tensor], shape, first=x.first, options=options, at=x.scale)


def _places(node: Node, n: int, out: int, scale: float) -> np.ndarray:
    """Where in the input each element of the output lies, along one side."""
    i, mode = np.arange(out, dtype=np.float64), node.options["coordinate_transformation_mode"]
    if mode == "align_corners":
        return i * (n - 1) / (out - 1) if out > 1 else i * 0
    if mode == "asymmetric":
        return i / scale
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and out > 1):
        return (i + 0.5) / scale - 0.5
    raise Cannot(f"coordinate_transformation_mode {mode}", "asymmetric, half_pixel or align_corners")


def _resize(r: Reader, node: Node) -> None:
    x, o = _picture(r, node), node.options
    if o["antialias"] or o["exclude_outside"] or o["axes"] or o["keep_aspect_ratio_policy"] != "stretch":
        raise Cannot("antialias, axes or a policy", "none of them")
    if r.has(node, 3):
        sizes = r.integers(node, 3, "sizes")
        need(len(sizes) == 4 and min(sizes) > 0, f"{node}: sizes {sizes}")
        scales = [m / n for m, n in zip(sizes, x.shape)]
    else:
        array = r.constant(node, 2, "scales").reshape(-1)
        need(array.size == 4 and bool(np.all(np.isfinite(array)) and np.all(array > 0)), f"{node}: its scales")
        scales = [float(s) for s in array]
        sizes = [min(math.floor(n * s), MAX_SIDE + 1) for n, s in zip(x.shape, scales)]
    need(min(sizes) > 0 and max(sizes[2:]) <= MAX_SIDE and max(x.shape[2:]) <= MAX_SIDE, f"{node}: sizes {sizes}")
    if sizes[:2] != list(x.shape[:2]):
        raise Cannot("batch or channels resized", "height and width")
    places = [_places(node, x.shape[2 + i], sizes[2 + i], scales[2 + i]) for i in range(2)]
    if o["mode"] == "linear":
        options = {"places": [np.clip(p, 0, n - 1).tolist() for p, n in zip(places, x.shape[2:])]}
        r.result(node, "RESIZE_BILINEAR", [x.tensor], sizes, first=True, options=options, at=x.scale)
        return
    roundings: dict[str, Callable[[Any], Any]] = {
        "floor": np.floor, "ceil": np.ceil, "round_prefer_ceil": lambda p: np.floor(p + 0.5),
        "round_prefer_floor": lambda p: np.ceil(p - 0.5),
    }  # fmt: skip
    rounding = roundings.get(o["nearest_mode"])
    if o["mode"] != "nearest" or rounding is None:
        raise Cannot(f"mode {o['mode']} {o['nearest_mode']}", "nearest or linear")
    lines, columns = (
        [int(i) for i in np.clip(rounding(p), 0, n - 1)] for p, n in zip(places, x.shape[2:])
    )
    options = {"places": [lines, columns]}
    r.result(node, "RESIZE_NEAREST_NEIGHBOR", [x.tensor], sizes, first=True, options=options, at=x.scale)


def _depth_to_space(r: Reader, node: Node) -> None:
    x, block = _picture(r, node), node.options["blocksize"]
    n, c, h, w = x.shape
    need(block > 0 and c % (block * block) == 0, f"{node}: blocks of {block} in {c} channels")
    need(node.options["mode"] in ("DCR", "CRD"), f"{node}: mode {node.options['mode']}")
    deep, tensor = c // (block * block), x.tensor
    if node.options["mode"] == "CRD":
        order = np.arange(c).reshape(deep, block * block).T.reshape(-1)
        tensor = r.emit(node, "GATHER", [tensor], tensor.shape, x.scale, {"axis": 3, "indices": [int(i) for i in order]})
    shape = (n, deep, h * block, w * block)
    r.result(node, "DEPTH_TO_SPACE", [tensor], shape, first=True, options={"block": block}, at=x.scale)


def _space_to_depth(r: Reader, node: Node) -> None:
    x, block = _picture(r, node), node.options["blocksize"]
    n, c, h, w = x.shape
    need(block > 0 and h % block == 0 and w % block == 0, f"{node}: blocks of {block} in {h} by {w}")
    shape = (n, c * block * block, h // block, w // block)
    r.result(node, "SPACE_TO_DEPTH", [x.tensor], shape, first=True, options={"block": block}, at=x.scale)


# ---- the table ----

_SIDES: dict[str, Any] = {"auto_pad": "NOTSET", "dilations": [], "kernel_shape": [], "pads": [], "strides": []}
_REDUCED: dict[str, Any] = {"axes": [], "keepdims": 1, "noop_with_empty_axes": 0}
_PICTURES = "of [batch, channels, height, width]"
_LINES = "of [batch, channels, height, width] or [batch, channels, length]"
_WEIGHTS = "constant int8 weights, zero point 0, one scale or one an output channel"
_TABLE = "LOOKUP"
OPERATORS = {
    "Abs": Form(_function(np.abs), _TABLE),
    "Add": Form(_elements("ADD", np.add), "ADD", "shapes that match"),
    "AveragePool": Form(
        _pool("AVERAGE_POOL_2D"), "AVERAGE_POOL_2D", f"{_LINES}, no dilation",
        _SIDES | {"ceil_mode": 0, "count_include_pad": 0},
    ),
    "Clip": Form(_clip, _TABLE, "constant ends; part of the layer before where that is not quantised"),
    "Concat": Form(_concat, "CONCATENATION", "up to 7 inputs", {"axis": 1}),
    "Conv": Form(_conv, "CONV_2D, DEPTHWISE_CONV_2D", f"{_LINES}; {_WEIGHTS}", _SIDES | {"group": 1}),
    "ConvTranspose": Form(
        _conv_transpose, "TRANSPOSE_CONV", f"{_LINES}; {_WEIGHTS}; one group, no dilation, pads in numbers",
        _SIDES | {"group": 1, "output_padding": [], "output_shape": []},
    ),
    "DepthToSpace": Form(_depth_to_space, "DEPTH_TO_SPACE", _PICTURES, {"blocksize": 0, "mode": "DCR"}),
    "Div": Form(_elements(None, np.divide), _TABLE, "one operand a constant number"),
    "Dropout": Form(_dropout, "nothing", "not in training", {"seed": 0}),
    "Elu": Form(_function(lambda x, a: np.where(x < 0, a * np.expm1(x), x), "alpha"), _TABLE, "", {"alpha": 1.0}),
    "Erf": Form(_function(_erf), _TABLE),
    "Exp": Form(_function(np.exp), _TABLE),
    "Flatten": Form(_flatten, "RESHAPE", "", {"axis": 1}),
    "Gather": Form(_gather, "GATHER", "constant indices", {"axis": 0}),
    "Gelu": Form(_function(_gelu, "approximate"), _TABLE, "", {"approximate": "none"}),
    "Gemm": Form(
        _gemm, "FULLY_CONNECTED", f"{_WEIGHTS}; transA 0, alpha and beta 1",
        {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    ),
    "GlobalAveragePool": Form(_global("MEAN"), "MEAN", _LINES),
    "GlobalMaxPool": Form(_global("REDUCE_MAX"), "REDUCE_MAX", _LINES),
    "HardSigmoid": Form(
        _function(lambda x, a, b: np.clip(a * x + b, 0, 1), "alpha", "beta"), _TABLE, "", {"alpha": 0.2, "beta": 0.5}
    ),
    "HardSwish": Form(_function(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), _TABLE),
    "Identity": Form(_identity, "nothing"),
    "LeakyRelu": Form(_function(lambda x, a: np.where(x < 0, a * x, x), "alpha"), _TABLE, "", {"alpha": 0.01}),
    "Log": Form(_function(np.log), _TABLE),
    "MatMul": Form(_matmul, "FULLY_CONNECTED", f"{_WEIGHTS}, two-dimensional"),
    "Max": Form(_elements("MAXIMUM", np.maximum), "MAXIMUM", "two inputs of one scale"),
    "MaxPool": Form(
        _pool("MAX_POOL_2D"), "MAX_POOL_2D", f"{_LINES}, no dilation, no indices",
        _SIDES | {"ceil_mode": 0, "storage_order": 0},
    ),
    "Min": Form(_elements("MINIMUM", np.minimum), "MINIMUM", "two inputs of one scale"),
    "Mish": Form(_function(lambda x: x * np.tanh(np.log1p(np.exp(x)))), _TABLE),
    "Mul": Form(_elements("MUL", np.multiply), "MUL", "shapes that match"),
    "Neg": Form(_function(np.negative), _TABLE),
    "PRelu": Form(_elements("PRELU", lambda x, a: np.where(x < 0, a * x, x)), "PRELU", "shapes that match"),
    "Pad": Form(_pad, "PAD, PADV2, MIRROR_PAD", "constant amounts of 0 or more; constant or reflect", {"mode": "constant"}),
    "Reciprocal": Form(_function(lambda x: 1 / x), _TABLE),
    "ReduceMax": Form(_reduction("REDUCE_MAX"), "REDUCE_MAX", "constant axes", _REDUCED),
    "ReduceMean": Form(_reduction("MEAN"), "MEAN", "constant axes", _REDUCED),
    "ReduceSum": Form(_reduction("SUM"), "SUM", "constant axes", _REDUCED),
    "Relu": Form(_function(lambda x: np.maximum(x, 0)), _TABLE, "part of the layer before where that is not quantised"),
    "Reshape": Form(_reshape, "RESHAPE", "a constant shape", {"allowzero": 0}),
    "Resize": Form(
        _resize, "RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR",
        f"{_PICTURES}; height and width, nearest or linear; asymmetric, half_pixel or align_corners",
        {
            "antialias": 0, "axes": [], "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75,
            "exclude_outside": 0, "extrapolation_value": 0.0, "keep_aspect_ratio_policy": "stretch", "mode": "nearest",
            "nearest_mode": "round_prefer_floor",
        },
    ),
    "Sigmoid": Form(_function(lambda x: 1 / (1 + np.exp(-x))), _TABLE),
    "Slice": Form(_slice, "STRIDED_SLICE", "constant starts, ends, axes and steps"),
    "Softmax": Form(_softmax, "SOFTMAX", "along the last dimension, or the channels of a picture", {"axis": -1}),
    "Softplus": Form(_function(lambda x: np.logaddexp(x, 0)), _TABLE),
    "Softsign": Form(_function(lambda x: x / (1 + np.abs(x))), _TABLE),
    "SpaceToDepth": Form(_space_to_depth, "SPACE_TO_DEPTH", _PICTURES, {"blocksize": 0}),
    "Split": Form(_split, "STRIDED_SLICE", "constant sizes", {"axis": 0, "num_outputs": 0}, many=True),
    "Sqrt": Form(_function(np.sqrt), _TABLE),
    "Squeeze": Form(_squeeze, "RESHAPE", "constant axes"),
    "Sub": Form(_elements("SUB", np.subtract), "SUB", "shapes that match"),
    "Tanh": Form(_function(np.tanh), _TABLE),
    "Transpose": Form(_transpose, "TRANSPOSE, or nothing", "", {"perm": []}),
    "Unsqueeze": Form(_unsqueeze, "RESHAPE", "constant axes"),
}  # fmt: skip
_FOLD = "none: fold constants with onnxruntime.quantization.quant_pre_process before quantizing"
_QDQ = "the same model quantized with quant_format=QuantFormat.QDQ"
NEAREST = {  # for operators we do not have: what does the same, or nearly
    "BatchNormalization": "Conv: onnxruntime.quantization.quant_pre_process folds it into the one before",
    "ConvInteger": _QDQ,
    "DynamicQuantizeLinear": "QuantizeLinear: quantize with quantize_static and calibration data",
    "MatMulInteger": _QDQ,
    "Shape": _FOLD,
    "Sum": "Add",
    "Upsample": "Resize",
}


def nearest(kind: str) -> str:
    """What would do instead of an operator that there is not."""
    if "QLinear" in kind:
        return _QDQ
    return NEAREST.get(kind, "none")


def supported() -> list[tuple[str, str, str]]:
    """Each operator that can be read, what it becomes, and what it must be like."""
    return [(kind, form.becomes, form.words) for kind, form in sorted(OPERATORS.items())]
