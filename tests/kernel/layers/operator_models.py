"""One-operator .tflite models of every operator but the first few (`layer_models` has those), from a seed."""

from collections.abc import Callable
from typing import Any

import numpy as np
from layer_models import Model, Writer, fill

Random = np.random.Generator
OPERATORS: dict[str, Callable[[Random], Model]] = {}
LUMPS = ["noise", "ends", "low", "high"]


class Maker:
    """A model of one operator, its operands added one by one."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.w = Writer()
        self.inputs: list[int] = []
        self.given: list[np.ndarray] = []

    def scale(self, type: str, low: float = 0.004, high: float = 0.2) -> dict[str, Any]:
        """A scale and a zero point; of int16 it is 0, other types have neither."""
        if type == "int16":
            return {"scale": float(np.float32(self.random.uniform(0.001, 0.1))), "zero": 0}
        if type != "int8":
            return {}
        zero = int(self.random.choice([-128, -1, 0, 3, 127, int(self.random.integers(-128, 128))]))
        return {"scale": float(np.float32(self.random.uniform(low, high))), "zero": zero}

    def x(self, shape: tuple[int, ...], type: str = "int8", **quant: Any) -> int:
        """An input of the model."""
        if type == "int8":
            data = fill(self.random, str(self.random.choice(LUMPS, p=[0.7, 0.1, 0.1, 0.1])), shape)
        elif type == "float32":
            data = (self.random.normal(0, float(self.random.choice([0.1, 2, 20])), shape)).astype(np.float32)
        else:
            limits = np.iinfo(type)
            data = self.random.integers(limits.min, int(limits.max) + 1, shape).astype(type)
        number = self.w.tensor(f"x{len(self.inputs)}", shape, quant.get("scale", ()), quant.get("zero", ()), type=type)
        self.inputs.append(number)
        self.given.append(data)
        return number

    def y(self, shape: tuple[int, ...], type: str = "int8", **quant: Any) -> int:
        return self.w.tensor("y", shape, quant.get("scale", ()), quant.get("zero", ()), type=type)

    def c(self, *values: Any, shape: tuple[int, ...] | None = None) -> int:
        """A constant of int32."""
        array = np.array(values, np.int32)
        return self.w.constant("c", array if shape is None else array.reshape(shape))

    def done(self, *outputs: int) -> Model:
        return Model(self.w.finish(self.inputs, outputs), self.given)


def operator(function: Callable[..., Model]) -> None:
    OPERATORS[function.__name__] = function


def sides(random: Random, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
    return tuple(int(n) for n in random.integers(low, high + 1, rank))


def moved(random: Random) -> str:
    return str(random.choice(["int8", "float32", "int32", "int16"]))


def cut(array_shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return array_shape[:axis] + (n,) + array_shape[axis + 1 :]


def elementwise(kind: str, options: str | None, version: int, types: list[str], activation: bool = True) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(types))
        shape = sides(random, int(random.integers(1, 5)))
        other = tuple(1 if random.integers(3) == 0 else n for n in shape)[int(random.integers(len(shape))) :]
        shapes = [shape, other] if random.integers(2) else [other, shape]
        quant = m.scale(type)
        if kind in ("MAXIMUM", "MINIMUM"):
            a, b, q = quant, quant, quant
        else:
            a, b, q = quant, m.scale(type), m.scale(type)
        x = m.x(shapes[0], type, **a)
        if kind == "DIV" and type == "int32":
            z = m.w.constant("b", random.integers(1, 1000, shapes[1]).astype(np.int32))
        else:
            z = m.x(shapes[1], type, **b)
        y = m.y(np.broadcast_shapes(*shapes), type, **q)
        fused = {"FusedActivationFunction": int(random.integers(4)) if type != "int32" else 0} if activation else {}
        m.w.op(kind, [x, z], [y], version, options, **fused)
        return m.done(y)

    OPERATORS[kind.lower()] = model


elementwise("ADD", "AddOptions", 2, ["int8", "float32", "int32", "int16"])
elementwise("SUB", "SubOptions", 2, ["int8", "float32", "int16"])
elementwise("MUL", "MulOptions", 2, ["int8", "float32", "int32", "int16"])
elementwise("DIV", "DivOptions", 1, ["float32", "int32"])
elementwise("MAXIMUM", "MaximumMinimumOptions", 2, ["int8", "float32", "int32", "int16"], activation=False)
elementwise("MINIMUM", "MaximumMinimumOptions", 2, ["int8", "float32", "int32", "int16"], activation=False)


def unary(
    kind: str, version: int, types: list[str], options: str | None = None, out: Any = None, **fields: Any
) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(types))
        shape = (1, 256) if type == "int8" else (2, 33)
        q = m.scale(type) if type == "int8" else {}
        if type == "int16":
            q = {"scale": float(random.choice([2.0**-12, 0.001, 2.0**-11])), "zero": 0}
        x = m.x(shape, type, **q)
        if type == "int8":
            m.given[-1] = np.arange(-128, 128).astype(np.int8).reshape(shape)
        r = m.scale(type, 0.01, 0.2)
        if type == "int8" and out is not None:
            r = q if isinstance(out, str) else out
        if type == "int16":
            r = {"scale": 2.0**-15, "zero": 0}
        y = m.y(shape, type, **r)
        m.w.op(kind, [x], [y], version, options, **{k: v(random) if callable(v) else v for k, v in fields.items()})
        return m.done(y)

    OPERATORS[kind.lower()] = model


unary("LOGISTIC", 3, ["int8", "int16", "float32"], out={"scale": 1 / 256, "zero": -128})
unary("TANH", 3, ["int8", "int16", "float32"], out={"scale": 1 / 128, "zero": 0})
unary("RELU", 2, ["int8", "float32"])
unary("RELU6", 2, ["int8", "float32"], out="as the input")
unary("ELU", 1, ["int8", "float32"])
unary("HARD_SWISH", 1, ["int8", "float32"], "HardSwishOptions")
unary("LEAKY_RELU", 2, ["int8", "int16", "float32"], "LeakyReluOptions", Alpha=lambda random: float(random.uniform(0, 0.9)))


@operator
def prelu(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    shape = sides(random, 4)
    x = m.x(shape, type, **m.scale(type))
    slopes = (
        fill(random, "noise", (1, 1, shape[3]))
        if type == "int8"
        else random.normal(0, 1, (1, 1, shape[3])).astype(np.float32)
    )
    q = m.scale(type)
    b = m.w.tensor("slope", slopes.shape, q.get("scale", ()), q.get("zero", ()), type=type, data=slopes.tobytes())
    y = m.y(shape, type, **m.scale(type))
    m.w.op("PRELU", [x, b], [y])
    return m.done(y)


def reduction(kind: str) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(["int8", "float32"] + (["int16"] if kind != "REDUCE_MAX" else [])))
        shape = sides(random, 4)
        axes = sorted(random.choice(4, int(random.integers(1, 3)), replace=False).tolist())
        keep = bool(random.integers(2))
        q = m.scale(type)
        x = m.x(shape, type, **q)
        out = tuple(1 if d in axes else n for d, n in enumerate(shape) if keep or d not in axes)
        y = m.y(out, type, **(q if kind == "REDUCE_MAX" or random.integers(2) else m.scale(type)))
        m.w.op(kind, [x, m.c(*axes)], [y], 2, "ReducerOptions", KeepDims=keep)
        return m.done(y)

    OPERATORS[kind.lower()] = model


for each in ("MEAN", "SUM", "REDUCE_MAX"):
    reduction(each)


def argument(kind: str) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(["int8", "float32"]))
        shape = sides(random, int(random.integers(2, 5)))
        axis = int(random.integers(len(shape)))
        x = m.x(shape, type, **m.scale(type))
        y = m.y(shape[:axis] + shape[axis + 1 :], "int32")
        m.w.op(kind, [x, m.c(axis)], [y], 1, "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions", OutputType=2)
        return m.done(y)

    OPERATORS[kind.lower()] = model


argument("ARG_MAX")
argument("ARG_MIN")


@operator
def strided_slice(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int32"]))
    shape = sides(random, int(random.integers(1, 5)), 2)
    q = m.scale(type)
    x = m.x(shape, type, **q)
    begin, end, step, out, shrink = [], [], [], [], 0
    for d, n in enumerate(shape):
        s = int(random.choice([1, 1, 2, -1]))
        a = int(random.integers(n))
        b = int(random.integers(a + 1, n + 1)) if s > 0 else int(random.integers(-1, a))
        if random.integers(5) == 0 and len(shape) > 1 and d < len(shape) - 1:
            shrink |= 1 << d
            a, b, s = int(random.integers(n)), 0, 1
            b = a + 1
        else:
            out.append(len(range(a, b, s)))
        begin.append(a)
        end.append(b if b >= 0 else -n - 1)
        step.append(s)
    y = m.y(tuple(out), type, **q)
    m.w.op(
        "STRIDED_SLICE", [x, m.c(*begin), m.c(*end), m.c(*step)], [y], 2, "StridedSliceOptions", ShrinkAxisMask=shrink
    )
    return m.done(y)


@operator
def slice_(random: Random) -> Model:
    m = Maker(random)
    type = moved(random)
    shape = sides(random, int(random.integers(1, 5)))
    begin = [int(random.integers(n)) for n in shape]
    size = [int(random.integers(1, n - b + 1)) for n, b in zip(shape, begin, strict=True)]
    q = m.scale(type)
    x = m.x(shape, type, **q)
    y = m.y(tuple(size), type, **q)
    m.w.op("SLICE", [x, m.c(*begin), m.c(*size)], [y], 2, "SliceOptions")
    return m.done(y)


@operator
def shuffled(random: Random) -> Model:
    """Five dimensions inside: a channel shuffle, or any other order of five sides."""
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    shape = sides(random, 5, 1, 4)
    order = [0, 1, 2, 4, 3] if random.integers(3) == 0 else random.permutation(5).tolist()
    q = m.scale(type)
    x = m.x((shape[0], shape[1], shape[2], shape[3] * shape[4]), type, **q)
    wide = m.w.tensor("wide", shape, q.get("scale", ()), q.get("zero", ()), type=type)
    moved_to = tuple(shape[d] for d in order)
    there = m.w.tensor("there", moved_to, q.get("scale", ()), q.get("zero", ()), type=type)
    flat = (moved_to[0], int(np.prod(moved_to[1:])))
    y = m.y(flat, type, **q)
    m.w.op("RESHAPE", [x, m.c(*shape)], [wide], 1, "ReshapeOptions")
    m.w.op("TRANSPOSE", [wide, m.c(*order)], [there], 2, "TransposeOptions")
    m.w.op("RESHAPE", [there, m.c(*flat)], [y], 1, "ReshapeOptions")
    return m.done(y)


def many_sided(kind: str) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(["int8", "float32", "int16"]))
        rank = int(random.integers(5, 7))
        shape = sides(random, rank, 1, 3)
        # Two dimensions of one kind in a row are one: at most four groups, as in grouped normalisation.
        first = int(random.integers(1, rank))
        other = tuple(n if d < first else 1 for d, n in enumerate(shape))
        a, b = m.scale(type), m.scale(type)
        x = m.x((shape[0], int(np.prod(shape[1:]))), type, **a)
        z = m.x((int(np.prod(other)),), type, **b)
        wide_x = m.w.tensor("wide_x", shape, a.get("scale", ()), a.get("zero", ()), type=type)
        wide_z = m.w.tensor("wide_z", other, b.get("scale", ()), b.get("zero", ()), type=type)
        q = m.scale(type)
        wide_y = m.w.tensor("wide_y", shape, q.get("scale", ()), q.get("zero", ()), type=type)
        y = m.y((int(np.prod(shape)),), type, **q)
        m.w.op("RESHAPE", [x, m.c(*shape)], [wide_x], 1, "ReshapeOptions")
        m.w.op("RESHAPE", [z, m.c(*other)], [wide_z], 1, "ReshapeOptions")
        m.w.op(kind, [wide_x, wide_z], [wide_y], 2, f"{kind.title()}Options", FusedActivationFunction=0)
        m.w.op("RESHAPE", [wide_y, m.c(int(np.prod(shape)))], [y], 1, "ReshapeOptions")
        return m.done(y)

    OPERATORS[f"{kind.lower()}_many_sided"] = model


for each in ("ADD", "MUL", "SUB"):
    many_sided(each)


@operator
def transpose(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    shape = sides(random, int(random.integers(2, 5)))
    order = random.permutation(len(shape)).tolist()
    q = m.scale(type)
    x = m.x(shape, type, **q)
    y = m.y(tuple(shape[d] for d in order), type, **q)
    m.w.op("TRANSPOSE", [x, m.c(*order)], [y], 2, "TransposeOptions")
    return m.done(y)


@operator
def split(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int32", "int16"]))
    parts = int(random.integers(1, 4))
    shape = sides(random, int(random.integers(1, 5)))
    axis = int(random.integers(len(shape)))
    shape = cut(shape, axis, parts * shape[axis])
    q = m.scale(type)
    x = m.x(shape, type, **q)
    ys = [m.y(cut(shape, axis, shape[axis] // parts), type, **q) for _ in range(parts)]
    m.w.op("SPLIT", [m.w.constant("axis", np.array(axis, np.int32)), x], ys, 2, "SplitOptions", NumSplits=parts)
    return m.done(*ys)


@operator
def split_v(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int32", "int16"]))
    sizes = [int(n) for n in random.integers(1, 5, int(random.integers(1, 4)))]
    shape = sides(random, int(random.integers(1, 5)))
    axis = int(random.integers(len(shape)))
    shape = cut(shape, axis, sum(sizes))
    q = m.scale(type)
    x = m.x(shape, type, **q)
    ys = [m.y(cut(shape, axis, n), type, **q) for n in sizes]
    at = m.w.constant("axis", np.array(axis, np.int32))
    m.w.op("SPLIT_V", [x, m.c(*sizes), at], ys, 2, "SplitVOptions", NumSplits=len(sizes))
    return m.done(*ys)


@operator
def unpack(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int32"]))
    shape = sides(random, int(random.integers(2, 5)), 1, 4)
    axis = int(random.integers(len(shape)))
    q = m.scale(type)
    x = m.x(shape, type, **q)
    ys = [m.y(shape[:axis] + shape[axis + 1 :], type, **q) for _ in range(shape[axis])]
    m.w.op("UNPACK", [x], ys, 2, "UnpackOptions", Axis=axis, Num=shape[axis])
    return m.done(*ys)


@operator
def pack(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int32"]))
    shape = sides(random, int(random.integers(1, 4)))
    axis = int(random.integers(len(shape) + 1))
    n = int(random.integers(1, 5))
    q = m.scale(type)
    xs = [m.x(shape, type, **q) for _ in range(n)]
    y = m.y((*shape[:axis], n, *shape[axis:]), type, **q)
    m.w.op("PACK", xs, [y], 2, "PackOptions", Axis=axis, ValuesCount=n)
    return m.done(y)


@operator
def concatenation(random: Random) -> Model:
    m = Maker(random)
    type = moved(random)
    shape = sides(random, int(random.integers(1, 5)))
    axis = int(random.integers(len(shape)))
    q = m.scale(type)
    sizes = [int(n) for n in random.integers(1, 5, int(random.integers(2, 5)))]
    xs = [m.x(cut(shape, axis, n), type, **q) for n in sizes]
    y = m.y(cut(shape, axis, sum(sizes)), type, **q)
    m.w.op("CONCATENATION", xs, [y], 2, "ConcatenationOptions", Axis=axis, FusedActivationFunction=0)
    return m.done(y)


@operator
def concatenation_of_many(random: Random) -> Model:
    m = Maker(random)
    shape = sides(random, 3)
    axis = int(random.integers(3))
    q = m.scale("int8")
    sizes = [int(n) for n in random.integers(1, 4, int(random.integers(8, 11)))]  # the reference takes 10
    xs = [m.x(cut(shape, axis, n), **q) for n in sizes]
    y = m.y(cut(shape, axis, sum(sizes)), **q)
    m.w.op("CONCATENATION", xs, [y], 2, "ConcatenationOptions", Axis=axis, FusedActivationFunction=0)
    return m.done(y)


@operator
def other_shapes(random: Random) -> Model:
    """EXPAND_DIMS, SQUEEZE and RESHAPE, which are no steps, around one that is."""
    m = Maker(random)
    q = m.scale("int8")
    x = m.x((2, 3, 4), **q)
    wider = m.y((2, 1, 3, 4), **q)
    moved_to = m.y((3, 1, 2, 4), **q)
    bare = m.y((3, 2, 4), **q)
    flat = m.y((24,), **q)
    y = m.y((24,), **m.scale("int8"))
    m.w.op("EXPAND_DIMS", [x, m.w.constant("axis", np.array(1, np.int32))], [wider], 1, "ExpandDimsOptions")
    m.w.op("TRANSPOSE", [wider, m.c(2, 1, 0, 3)], [moved_to], 2, "TransposeOptions")
    m.w.op("SQUEEZE", [moved_to], [bare], 1, "SqueezeOptions")
    m.w.op("RESHAPE", [bare, m.c(24)], [flat], 1)
    m.w.op("QUANTIZE", [flat], [y], 1, "QuantizeOptions")
    return m.done(y)


@operator
def lstm(random: Random) -> Model:
    m = Maker(random)
    batch, time, depth, units = sides(random, 4, 1, 5)
    major = bool(random.integers(2))
    x = m.x((time, batch, depth) if major else (batch, time, depth), **m.scale("int8"))
    ws = [m.w.constant("w", random.integers(-127, 128, (units, depth)).astype(np.int8), [0.01]) for _ in range(4)]
    rs = [m.w.constant("r", random.integers(-127, 128, (units, units)).astype(np.int8), [0.01]) for _ in range(4)]
    bs = [m.w.constant("b", random.integers(-9999, 9999, units).astype(np.int32), [1e-4]) for _ in range(4)]
    q = m.scale("int8", 0.005, 0.01)
    hidden = m.w.tensor("hidden", (batch, units), q["scale"], q["zero"], variable=True)
    cell = m.w.tensor("cell", (batch, units), 2.0 ** -int(random.integers(9, 14)), 0, type="int16", variable=True)
    y = m.y((time, batch, units) if major else (batch, time, units), **q)
    operands = [x, *ws, *rs, -1, -1, -1, *bs, -1, -1, hidden, cell, -1, -1, -1, -1]
    m.w.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], 1, "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=4,
           CellClip=float(random.choice([0.0, 1.0, 10.0])), TimeMajor=major)  # fmt: skip
    return m.done(y)


@operator
def lstm_f32(random: Random) -> Model:
    m = Maker(random)
    batch, time, depth, units = sides(random, 4, 1, 5)
    major = bool(random.integers(2))

    def real(*shape: int) -> int:
        return m.w.constant("r", random.normal(0, 1, shape).astype(np.float32))

    x = m.x((time, batch, depth) if major else (batch, time, depth), "float32")
    m.given[-1] = np.clip(m.given[-1], -4, 4)
    ws, rs = [real(units, depth) for _ in range(4)], [real(units, units) for _ in range(4)]
    bs = [real(units) for _ in range(4)]
    hidden, cell = (m.w.tensor(name, (batch, units), type="float32", variable=True) for name in ("hidden", "cell"))
    y = m.y((time, batch, units) if major else (batch, time, units), "float32")
    operands = [x, *ws, *rs, -1, -1, -1, *bs, -1, -1, hidden, cell, -1, -1, -1, -1]
    m.w.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], 1, "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=4,
           CellClip=float(random.choice([0.0, 1.0, 10.0])), TimeMajor=major)  # fmt: skip
    return m.done(y)


@operator
def svdf_f32(random: Random) -> Model:
    m = Maker(random)
    batch, depth, units, rank, memory = sides(random, 5, 1, 7)
    x = m.x((batch, depth), "float32")
    w = m.w.constant("w", random.normal(0, 1, (units * rank, depth)).astype(np.float32))
    t = m.w.constant("t", random.normal(0, 1, (units * rank, memory)).astype(np.float32))
    b = m.w.constant("b", random.normal(0, 1, units).astype(np.float32))  # without one the reference kernels fault
    state = m.w.tensor("state", (batch, memory * units * rank), type="float32", variable=True)
    y = m.y((batch, units), "float32")
    m.w.op("SVDF", [x, w, t, b, state], [y], 1, "SVDFOptions", Rank=rank, FusedActivationFunction=int(random.choice([0, 1])))
    return m.done(y)


@operator
def gather(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    shape = sides(random, int(random.integers(1, 4)))
    axis = int(random.integers(len(shape)))
    indices = random.integers(0, shape[axis], int(random.integers(1, 6)))
    q = m.scale(type)
    x = m.x(shape, type, **q)
    y = m.y(cut(shape, axis, len(indices)), type, **q)
    at = m.c(*indices)
    if random.integers(2):
        at = m.x((len(indices),), "int32")
        m.given[-1] = indices.astype(np.int32)
    m.w.op("GATHER", [x, at], [y], 2, "GatherOptions", Axis=axis)
    return m.done(y)


def padding(kind: str) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(["int8", "float32"] + (["int16"] if kind == "PAD" else [])))
        shape = sides(random, 4, 2)
        most = 1 if kind == "MIRROR_PAD" else 3
        pads = random.integers(0, most + 1, (4, 2))
        q = m.scale(type)
        x = m.x(shape, type, **q)
        y = m.y(tuple(int(n) for n in shape + pads.sum(axis=1)), type, **q)
        inputs = [x, m.c(*pads.reshape(-1), shape=(4, 2))]
        if kind == "PADV2":
            value = np.array([random.integers(-128, 128)], np.int8) if type == "int8" else np.array([2.5], np.float32)
            inputs.append(m.w.tensor("v", (1,), q.get("scale", ()), q.get("zero", ()), type=type, data=value.tobytes()))
        options = {"PAD": "PadOptions", "PADV2": "PadV2Options", "MIRROR_PAD": "MirrorPadOptions"}[kind]
        m.w.op(kind, inputs, [y], 2, options, **({"Mode": int(random.integers(2))} if kind == "MIRROR_PAD" else {}))
        return m.done(y)

    OPERATORS[kind.lower()] = model


for each in ("PAD", "PADV2", "MIRROR_PAD"):
    padding(each)


@operator
def depth_to_space(random: Random) -> Model:
    m = Maker(random)
    type, block = str(random.choice(["int8", "float32"])), int(random.integers(1, 4))
    b, h, w, c = sides(random, 4, 1, 4)
    q = m.scale(type)
    x = m.x((b, h, w, c * block * block), type, **q)
    y = m.y((b, h * block, w * block, c), type, **q)
    m.w.op("DEPTH_TO_SPACE", [x], [y], 1, "DepthToSpaceOptions", BlockSize=block)
    return m.done(y)


@operator
def space_to_depth(random: Random) -> Model:
    m = Maker(random)
    type, block = str(random.choice(["int8", "float32"])), int(random.integers(1, 4))
    b, h, w, c = sides(random, 4, 1, 4)
    q = m.scale(type)
    x = m.x((b, h * block, w * block, c), type, **q)
    y = m.y((b, h, w, c * block * block), type, **q)
    m.w.op("SPACE_TO_DEPTH", [x], [y], 1, "SpaceToDepthOptions", BlockSize=block)
    return m.done(y)


def space_to_batch_model(random: Random, most: int) -> tuple[Model, np.ndarray]:
    """With up to `most` lines and columns around; and what comes out by NumPy."""
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    b, h, w, c = sides(random, 4, 1, 4)
    block_h, block_w = sides(random, 2, 1, 3)
    pads = random.integers(0, most + 1, (2, 2))
    inner = (h * block_h - pads[0].sum(), w * block_w - pads[1].sum())
    if min(inner) < 1:
        pads[:] = 0
        inner = (h * block_h, w * block_w)
    q = m.scale(type)
    x = m.x((b, int(inner[0]), int(inner[1]), c), type, **q)
    y = m.y((b * block_h * block_w, h, w, c), type, **q)
    m.w.op("SPACE_TO_BATCH_ND", [x, m.c(block_h, block_w), m.c(*pads.reshape(-1), shape=(2, 2))], [y], 2,
           "SpaceToBatchNDOptions")  # fmt: skip
    around = np.pad(m.given[0], [(0, 0), *pads.tolist(), (0, 0)], constant_values=q.get("zero", 0))
    split = around.reshape(b, h, block_h, w, block_w, c).transpose(2, 4, 0, 1, 3, 5)
    return m.done(y), split.reshape(-1, h, w, c)


@operator
def space_to_batch(random: Random) -> Model:
    """Without padding: what the reference pads with is not defined."""
    return space_to_batch_model(random, 0)[0]


@operator
def batch_to_space(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32"]))
    b, h, w, c = sides(random, 4, 2, 4)
    block_h, block_w = sides(random, 2, 1, 3)
    crops = random.integers(0, 2, (2, 2))
    if min(h * block_h - crops[0].sum(), w * block_w - crops[1].sum()) < 1:
        crops[:] = 0
    q = m.scale(type)
    x = m.x((b * block_h * block_w, h, w, c), type, **q)
    y = m.y((b, int(h * block_h - crops[0].sum()), int(w * block_w - crops[1].sum()), c), type, **q)
    m.w.op(
        "BATCH_TO_SPACE_ND",
        [x, m.c(block_h, block_w), m.c(*crops.reshape(-1), shape=(2, 2))],
        [y],
        2,
        "BatchToSpaceNDOptions",
    )
    return m.done(y)


def resizing(kind: str) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        type = str(random.choice(["int8", "float32"]))
        b, h, w, c = sides(random, 4)
        out = sides(random, 2, 1, 11)
        q = m.scale(type)
        x = m.x((b, h, w, c), type, **q)
        y = m.y((b, *out, c), type, **q)
        how = [(False, False), (True, False), (False, True)][int(random.integers(3))]
        options = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        m.w.op(kind, [x, m.c(*out)], [y], 3, options, AlignCorners=how[0], HalfPixelCenters=how[1])
        return m.done(y)

    OPERATORS[kind.lower()] = model


resizing("RESIZE_BILINEAR")
resizing("RESIZE_NEAREST_NEIGHBOR")


def weights(m: Maker, shape: tuple[int, ...], type: str, axis: int, x_scale: float) -> tuple[int, int]:
    channels = shape[axis]
    if type == "float32":
        k = m.w.constant("w", m.random.normal(0, 1, shape).astype(np.float32))
        return k, m.w.constant("b", m.random.normal(0, 1, channels).astype(np.float32))
    scales = [float(np.float32(s)) for s in m.random.uniform(0.001, 0.02, channels)]
    if type == "int16":
        k = m.w.constant("w", m.random.integers(-127, 128, shape).astype(np.int8), scales, axis)
        return k, m.w.constant("b", m.random.integers(-(2**30), 2**30, channels).astype(np.int64), [0.001] * channels)
    k = m.w.constant("w", m.random.integers(-127, 128, shape).astype(np.int8), scales, axis)
    bias = m.random.integers(-5000, 5000, channels).astype(np.int32)
    return k, m.w.constant("b", bias, [float(np.float32(x_scale) * np.float32(s)) for s in scales])


@operator
def transpose_conv(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int16"]))
    b, h, w, c = sides(random, 4, 1, 4)
    k_h, k_w, s_h, s_w = sides(random, 4, 1, 3)
    channels, padding = int(random.integers(1, 5)), int(random.integers(2))
    out = (h * s_h, w * s_w) if padding == 0 else ((h - 1) * s_h + k_h, (w - 1) * s_w + k_w)
    q = m.scale(type)
    x = m.x((b, h, w, c), type, **q)
    k, bias = weights(m, (channels, k_h, k_w, c), type, 0, q.get("scale", 1.0))
    y = m.y((b, *out, channels), type, **m.scale(type))
    inputs = [m.c(b, *out, channels), k, x] + ([bias] if type != "int8" or random.integers(2) else [])
    m.w.op("TRANSPOSE_CONV", inputs, [y], 3, "TransposeConvOptions", Padding=padding, StrideH=s_h, StrideW=s_w)
    return m.done(y)


@operator
def conv_groups(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["int8", "float32", "int16"]))
    b, h, w, part = sides(random, 4, 1, 5)
    groups, each = int(random.integers(2 if type == "int8" else 1, 4)), int(random.integers(1, 4))
    k_h, k_w, s_h, s_w = sides(random, 4, 1, 3)
    d = int(random.integers(1, 3))
    q = m.scale(type)
    x = m.x((b, h, w, part * groups), type, **q)
    k, bias = weights(m, (groups * each, k_h, k_w, part), type, 0, q.get("scale", 1.0))
    y = m.y((b, -(-h // s_h), -(-w // s_w), groups * each), type, **m.scale(type))
    m.w.op("CONV_2D", [x, k, bias], [y], 3, "Conv2DOptions", Padding=0, StrideH=s_h, StrideW=s_w, DilationHFactor=d,
           DilationWFactor=d, FusedActivationFunction=int(random.integers(4)))  # fmt: skip
    return m.done(y)


@operator
def depthwise_wide(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["float32", "int16"]))
    b, h, w, c = sides(random, 4, 1, 5)
    k_h, k_w, s_h, s_w = sides(random, 4, 1, 3)
    times, d = int(random.integers(1, 4)), int(random.integers(1, 3))
    x = m.x((b, h, w, c), type, **m.scale(type))
    k, bias = weights(m, (1, k_h, k_w, c * times), type, 3, 1.0)
    y = m.y((b, -(-h // s_h), -(-w // s_w), c * times), type, **m.scale(type))
    m.w.op("DEPTHWISE_CONV_2D", [x, k, bias], [y], 2, "DepthwiseConv2DOptions", Padding=0, StrideH=s_h, StrideW=s_w,
           DilationHFactor=d, DilationWFactor=d, DepthMultiplier=times,
           FusedActivationFunction=int(random.integers(4)))  # fmt: skip
    return m.done(y)


@operator
def pool_wide(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["float32", "int16"]))
    q = m.scale(type)
    b, h, w, c = sides(random, 4, 1, 7)
    k_h, k_w, s_h, s_w = sides(random, 4, 1, 3)
    x = m.x((b, h, w, c), type, **q)
    y = m.y((b, -(-h // s_h), -(-w // s_w), c), type, **q)
    m.w.op(str(random.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"])), [x], [y], 1, "Pool2DOptions", Padding=0, StrideH=s_h,
           StrideW=s_w, FilterHeight=k_h, FilterWidth=k_w, FusedActivationFunction=int(random.integers(4)))  # fmt: skip
    return m.done(y)


@operator
def dense_wide(random: Random) -> Model:
    m = Maker(random)
    type = str(random.choice(["float32", "int16"]))
    batch, depth, channels = sides(random, 3, 1, 17)
    x = m.x((batch, depth), type, **m.scale(type))
    k, bias = weights(m, (channels, depth), type, 0, 1.0)
    y = m.y((batch, channels), type, **m.scale(type))
    m.w.op("FULLY_CONNECTED", [x, k, bias], [y], 1, "FullyConnectedOptions",
           FusedActivationFunction=int(random.integers(4)))  # fmt: skip
    return m.done(y)


def rows(kind: str, options: str | None) -> None:
    def model(random: Random) -> Model:
        m = Maker(random)
        shape = sides(random, 2, 1, 40)
        x = m.x(shape, "float32")
        y = m.y(shape, "float32")
        m.w.op(kind, [x], [y], 1, options, **({"Beta": float(random.uniform(0.1, 2))} if kind == "SOFTMAX" else {}))
        return m.done(y)

    OPERATORS[f"{kind.lower()}_f32"] = model


rows("SOFTMAX", "SoftmaxOptions")
rows("LOG_SOFTMAX", "LogSoftmaxOptions")
rows("L2_NORMALIZATION", "L2NormOptions")


@operator
def log_softmax(random: Random) -> Model:
    m = Maker(random)
    shape = sides(random, 2, 1, 40)
    x = m.x(shape, "int8", **m.scale("int8", 0.001, 1.0))
    y = m.y(shape, "int8", scale=1 / 16, zero=127)
    m.w.op("LOG_SOFTMAX", [x], [y], 1, "LogSoftmaxOptions")
    return m.done(y)


@operator
def l2_normalization(random: Random) -> Model:
    m = Maker(random)
    shape = sides(random, 2, 1, 40)
    x = m.x(shape, "int8", **m.scale("int8"))
    y = m.y(shape, "int8", scale=1 / 128, zero=0)
    m.w.op("L2_NORMALIZATION", [x], [y], 1, "L2NormOptions")
    return m.done(y)


@operator
def softmax_i16(random: Random) -> Model:
    m = Maker(random)
    shape = sides(random, 2, 1, 40)
    x = m.x(shape, "int16", scale=float(np.float32(random.choice([0.0001, 0.001, 0.02]))), zero=0)
    y = m.y(shape, "int16", scale=1 / 32768, zero=0)
    m.w.op("SOFTMAX", [x], [y], 2, "SoftmaxOptions", Beta=1.0)
    return m.done(y)


@operator
def softmax_wide(random: Random) -> Model:
    m = Maker(random)
    shape = sides(random, 2, 1, 40)
    x = m.x(shape, "int8", **m.scale("int8", 0.001, 1.0))
    y = m.y(shape, "int16", scale=float(np.float32(1 / 65536)), zero=-32768)
    m.w.op("SOFTMAX", [x], [y], 2, "SoftmaxOptions", Beta=1.0)
    return m.done(y)


@operator
def quantize(random: Random) -> Model:
    m = Maker(random)
    pairs = [
        ("float32", "int8"), ("float32", "int16"), ("int16", "int8"), ("int16", "int32"), ("int8", "uint8"),
        ("uint8", "int8"), ("int8", "int32"), ("int16", "int16"), ("int8", "int16"),
    ]  # fmt: skip
    source, target = pairs[int(random.integers(len(pairs)))]

    def quant(type: str) -> dict[str, Any]:
        zero = {"int8": int(random.integers(-128, 128)), "uint8": int(random.integers(256))}.get(type, 0)
        return {} if type == "float32" else {"scale": float(np.float32(random.uniform(0.001, 0.1))), "zero": zero}

    shape = sides(random, 3, 1, 9)
    x = m.x(shape, source, **quant(source))
    y = m.y(shape, target, **quant(target))
    m.w.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
    return m.done(y)


@operator
def dequantize(random: Random) -> Model:
    m = Maker(random)
    source = str(random.choice(["int8", "int16", "uint8"]))
    shape = sides(random, 3, 1, 9)
    x = m.x(shape, source, scale=float(np.float32(random.uniform(0.001, 0.1))), zero=3 if source != "int16" else 0)
    y = m.y(shape, "float32")
    m.w.op("DEQUANTIZE", [x], [y], 2, "DequantizeOptions")
    return m.done(y)


@operator
def cast(random: Random) -> Model:
    m = Maker(random)
    pairs = [("int8", "int32"), ("int16", "int32"), ("int32", "int16"), ("int8", "float32"), ("int16", "float32"),
             ("int32", "float32"), ("float32", "int8"), ("float32", "int32")]  # fmt: skip
    source, target = pairs[int(random.integers(len(pairs)))]
    shape = sides(random, 3, 1, 9)
    x = m.x(shape, source)
    if source == "float32":
        m.given[-1] = np.clip(m.given[-1], -100, 100)
    y = m.y(shape, target)
    m.w.op("CAST", [x], [y], 1, "CastOptions")
    return m.done(y)


@operator
def svdf(random: Random) -> Model:
    m = Maker(random)
    batch, depth, units, rank, memory = sides(random, 5, 1, 7)
    q = m.scale("int8")
    x = m.x((batch, depth), **q)
    w = m.w.constant("w", random.integers(-127, 128, (units * rank, depth)).astype(np.int8), [0.01])
    t = m.w.constant("t", random.integers(-32767, 32768, (units * rank, memory)).astype(np.int16), [0.0002])
    b = m.w.constant("b", random.integers(-5000, 5000, units).astype(np.int32), [0.0002 * 0.001])
    state = m.w.tensor("state", (batch, memory * units * rank), 0.001, 0, type="int16", variable=True)
    y = m.y((batch, units), **m.scale("int8"))
    m.w.op("SVDF", [x, w, t, b, state], [y], 3, "SVDFOptions", Rank=rank, FusedActivationFunction=0)
    return m.done(y)
