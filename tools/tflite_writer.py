"""Writes .tflite files, for models made by scripts and for tests that need a file with something wrong in it.

w = Writer()
x = w.tensor("x", (1, 8, 8, 3), 0.05, 3)
k = w.constant("k", kernel, [0.01] * 4, axis=0)
y = w.tensor("y", (1, 8, 8, 4), 0.1, 0)
w.op("CONV_2D", [x, k, -1], [y], 3, "Conv2DOptions", Padding=0, StrideW=1, StrideH=1)
data = w.finish([x], [y])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import tflite


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    type: str
    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int
    data: bytes | None
    variable: bool = False


@dataclass
class _Op:
    kind: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: str | None
    fields: dict[str, int | float | bool]


class Writer:
    def __init__(self, description: str = "", old_codes: bool = True) -> None:
        self.description = description
        self.old_codes = old_codes  # also fill the field for operator codes that came first
        self.tensors: list[_Tensor] = []
        self.ops: list[_Op] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        scale: float | Sequence[float] = (),
        zero: int | Sequence[int] = (),
        *,
        type: str = "int8",
        axis: int = 0,
        data: bytes | None = None,
        variable: bool = False,
    ) -> int:
        scales = tuple(scale) if isinstance(scale, Sequence) else (scale,)
        zeros = tuple(zero) if isinstance(zero, Sequence) else (zero,)
        if scales and not zeros:
            zeros = (0,) * len(scales)
        self.tensors.append(_Tensor(name, tuple(shape), type, scales, zeros, axis, data, variable))
        return len(self.tensors) - 1

    def constant(self, name: str, array: np.ndarray, scale: Sequence[float] = (), axis: int = 0) -> int:
        data = np.ascontiguousarray(array).tobytes()
        return self.tensor(name, array.shape, scale, type=array.dtype.name, axis=axis, data=data)

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        version: int = 1,
        options: str | None = None,
        **fields: int | float | bool,
    ) -> None:
        """An operator; `kind` is a name of the schema, or of a custom operator; -1 is an input that is not there."""
        self.ops.append(_Op(kind, version, list(inputs), list(outputs), options, fields))

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The file's bytes."""
        b = flatbuffers.Builder(1 << 16)
        codes = sorted({(op.kind, op.version) for op in self.ops})
        buffers: list[bytes] = [b""] + [t.data for t in self.tensors if t.data is not None]

        def numbers(values: Sequence[int]) -> int:
            return b.CreateNumpyVector(np.array(values, np.int32))

        def offsets(made: list[int]) -> int:
            b.StartVector(4, len(made), 4)
            for offset in reversed(made):
                b.PrependUOffsetTRelative(offset)
            return b.EndVector()

        def table(kind: str, **fields: Any) -> int:
            getattr(tflite, f"{kind}Start")(b)
            for field, value in fields.items():
                if value is not None:
                    getattr(tflite, f"{kind}Add{field}")(b, value)
            return int(getattr(tflite, f"{kind}End")(b))

        made_buffers = []
        for data in buffers:
            vector = None
            if data:
                b.StartVector(1, len(data), 16)
                b.head -= len(data)
                b.Bytes[b.head : b.head + len(data)] = data
                vector = b.EndVector()
            made_buffers.append(table("Buffer", Data=vector))

        made_tensors = []
        stored = 0
        for t in self.tensors:
            quantization = None
            if t.scale:
                scale = b.CreateNumpyVector(np.array(t.scale, np.float32))
                zero = b.CreateNumpyVector(np.array(t.zero, np.int64))
                quantization = table("QuantizationParameters", Scale=scale, ZeroPoint=zero, QuantizedDimension=t.axis)
            stored += t.data is not None
            made_tensors.append(
                table(
                    "Tensor",
                    Name=b.CreateString(t.name),
                    Shape=numbers(t.shape),
                    Type=getattr(tflite.TensorType, t.type.upper()),
                    Buffer=stored if t.data is not None else 0,
                    Quantization=quantization,
                    IsVariable=t.variable or None,
                )
            )

        made_ops = []
        for op in self.ops:
            options = table(op.options, **op.fields) if op.options else None
            made_ops.append(
                table(
                    "Operator",
                    OpcodeIndex=codes.index((op.kind, op.version)),
                    Inputs=numbers(op.inputs),
                    Outputs=numbers(op.outputs),
                    BuiltinOptionsType=getattr(tflite.BuiltinOptions, op.options) if op.options else None,
                    BuiltinOptions=options,
                )
            )

        made_codes = []
        for kind, version in codes:
            number = getattr(tflite.BuiltinOperator, kind, None)
            custom = b.CreateString(kind) if number is None else None
            number = tflite.BuiltinOperator.CUSTOM if number is None else number
            made_codes.append(
                table(
                    "OperatorCode",
                    DeprecatedBuiltinCode=min(number, 127) if self.old_codes else None,
                    BuiltinCode=number,
                    CustomCode=custom,
                    Version=version,
                )
            )
        graph = table(
            "SubGraph",
            Tensors=offsets(made_tensors),
            Inputs=numbers(inputs),
            Outputs=numbers(outputs),
            Operators=offsets(made_ops),
            Name=b.CreateString("main"),
        )
        model = table(
            "Model",
            Version=3,
            OperatorCodes=offsets(made_codes),
            Subgraphs=offsets([graph]),
            Description=b.CreateString(self.description),
            Buffers=offsets(made_buffers),
        )
        b.Finish(model, b"TFL3")
        return bytes(b.Output())
