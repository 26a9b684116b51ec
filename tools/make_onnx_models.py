"""Makes the .onnx models of the tests, from fixed seeds.

    python tools/make_onnx_models.py FOLDER

`Network` builds a float network, which onnxruntime's static quantiser turns into int8 as a user would; `Quantized` writes
the QuantizeLinear and DequantizeLinear by itself, with the scales that a test wants.
"""

import contextlib
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 17, 8


def _model(nodes, name, inputs, outputs, constants, opset=OPSET):
    graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR, producer_name="test")


class Network:
    """A float network, layer by layer."""

    def __init__(self, seed: int, shape, name: str = "x"):
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.nodes, self.constants, self.inputs, self.count = [], {}, {}, 0
        self.inputs[name] = list(shape)

    def const(self, array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def op(self, kind: str, inputs, outputs: int = 1, **attributes):
        self.count += 1
        names = [f"{kind.lower()}_{self.count}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def weights(self, *shape) -> str:
        fan = int(np.prod(shape[1:]))
        by_channel = self.random.uniform(0.3, 1.5, (shape[0],) + (1,) * (len(shape) - 1))
        return self.const((self.random.normal(0, 1, shape) * by_channel / np.sqrt(fan)).astype(np.float32))

    def conv(self, x, n_in, n_out, k, group=1, kind="Conv", **attributes):
        shape = (n_out, n_in // group, k, k) if kind == "Conv" else (n_in, n_out, k, k)
        bias = self.const(self.random.normal(0, 0.3, n_out).astype(np.float32))
        return self.op(kind, [x, self.weights(*shape), bias], group=group, **attributes)

    def gemm(self, x, n_in, n_out):
        bias = self.const(self.random.normal(0, 0.3, n_out).astype(np.float32))
        return self.op("Gemm", [x, self.weights(n_out, n_in), bias], transB=1)

    def ints(self, *values) -> str:
        return self.const(np.array(values, np.int64))

    def floats(self, *values) -> str:
        return self.const(np.array(values, np.float32))

    def finish(self, *outputs) -> onnx.ModelProto:
        given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.inputs.items()]
        wanted = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        return onnx.shape_inference.infer_shapes(_model(self.nodes, "net", given, wanted, self.constants))

    def quantized(self, *outputs, weights="QInt8", activations="QInt8", per_channel=True, **options) -> bytes:
        """As onnxruntime's static quantiser writes it, calibrated with noise."""
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        cases = iter([{n: self.random.normal(0, 1, s).astype(np.float32) for n, s in self.inputs.items()} for _ in range(8)])

        class Cases(CalibrationDataReader):
            def get_next(self):
                return next(cases, None)

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            path = Path(folder) / "q.onnx"
            quantize_static(
                self.finish(*outputs), path, Cases(), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                activation_type=getattr(QuantType, activations), weight_type=getattr(QuantType, weights), **options,
            )  # fmt: skip
            return path.read_bytes()


@contextlib.contextmanager
def _quiet():
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class Quantized:
    """A QDQ network with the scales that the caller gives. Names of activations stand for their reals."""

    def __init__(self, seed: int = 0):
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.nodes, self.constants, self.inputs = [], {}, []
        self.scales: dict[str, tuple[float, int]] = {}
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    def const(self, array) -> str:
        name = self.name("c")
        self.constants[name] = np.asarray(array)
        return name

    def ints(self, *values) -> str:
        return self.const(np.array(values, np.int64))

    def _pair(self, name: str, scale: float, zero: int, dtype) -> str:
        where = [self.const(np.float32(scale)), self.const(np.array(zero, dtype))]
        self.nodes.append(helper.make_node("QuantizeLinear", [name, *where], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *where], [f"{name}_dq"]))
        self.scales[f"{name}_dq"] = (float(np.float32(scale)), zero)
        return f"{name}_dq"

    def input(self, shape, scale=0.05, zero=0, dtype=np.int8) -> str:
        name = self.name("x")
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        return self._pair(name, scale, zero, dtype)

    def op(self, kind, inputs, scale=0.05, zero=0, dtype=np.int8, relu=None, **attributes) -> str:
        name = self.name(kind.lower())
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        if relu is not None:
            self.nodes.append(helper.make_node("Clip" if isinstance(relu, list) else "Relu", [name, *(relu or [])], [f"{name}_a"]))
            name = f"{name}_a"
        return self._pair(name, scale, zero, dtype)

    def weights(self, array, scale, axis=0, zero=None) -> str:
        name, scale = self.name("w"), np.asarray(scale, np.float32)
        array = np.asarray(array)
        self.constants[name] = array
        zeros = np.zeros(scale.shape, array.dtype) if zero is None else np.full(scale.shape, zero, array.dtype)
        where = [self.const(scale), self.const(zeros)]
        extra = {"axis": axis} if scale.ndim else {}
        self.nodes.append(helper.make_node("DequantizeLinear", [name, *where], [f"{name}_dq"], **extra))
        return f"{name}_dq"

    def bias(self, array, x: str, scale) -> str:
        product = np.float32(self.scales[x][0]) * np.asarray(scale, np.float32)
        return self.weights(np.asarray(array, np.int32), product)

    def finish(self, *outputs, opset=OPSET) -> bytes:
        wanted = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        return _model(self.nodes, "net", self.inputs, wanted, self.constants, opset).SerializeToString()


def pictures(seed: int = 1) -> bytes:
    """A small classifier with most of what convolutional networks use."""
    m = Network(seed, (1, 3, 20, 16))
    t = m.op("Relu", [m.conv("x", 3, 8, 3, strides=[2, 2], pads=[1, 1, 1, 1])])
    a = m.op("Clip", [m.conv(t, 8, 16, 3, group=8, pads=[1, 1, 1, 1]), m.floats(0), m.floats(6)])
    b = m.conv(m.conv(a, 16, 8, 1), 8, 16, 3, group=4, pads=[2, 2, 2, 2], dilations=[2, 2])
    t = m.op("Relu", [m.op("Add", [a, b])])
    p = m.op("MaxPool", [t], kernel_shape=[2, 2], strides=[2, 2])
    q = m.op("AveragePool", [t], kernel_shape=[2, 2], strides=[2, 2])
    t = m.op("Concat", [p, q], axis=1)
    gate = m.op("Sigmoid", [m.conv(m.op("GlobalAveragePool", [t]), 32, 32, 1)])
    t = m.op("Mul", [t, gate])
    t = m.op("Pad", [t, m.ints(0, 0, 1, 0, 0, 0, 1, 2), m.floats(0)], mode="constant")
    t = m.conv(t, 32, 8, 3)
    up = m.op("Resize", [t, "", m.floats(1, 1, 2, 2)], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    flat = m.op("Flatten", [t])
    y = m.op("Softmax", [m.gemm(m.op("Relu", [m.gemm(flat, 8 * 5 * 4, 24)]), 24, 10)], axis=1)
    return m.quantized(y, up)


def from_channels_last(seed: int = 2) -> bytes:
    """What converters write for a network that was trained with its channels last, in uint8."""
    m = Network(seed, (1, 12, 10, 3))
    t = m.op("Transpose", ["x"], perm=[0, 3, 1, 2])  # of reals: the quantiser begins behind it
    t = m.op("Relu", [m.conv(t, 3, 6, 3, auto_pad="SAME_UPPER", strides=[2, 2])])
    t = m.conv(t, 6, 12, 3, group=6, auto_pad="SAME_LOWER", strides=[2, 2])
    t = m.op("Transpose", [t], perm=[0, 2, 3, 1])
    y = m.op("Reshape", [t, m.ints(1, -1, 4)])
    return m.quantized(y, activations="QUInt8")


def dense(seed: int = 3) -> bytes:
    """Dense layers, MatMul, and functions of single numbers."""
    m = Network(seed, (4, 24))
    t = m.op("Tanh", [m.gemm("x", 24, 16)])
    weights = m.const(m.random.normal(0, 0.25, (16, 12)).astype(np.float32))
    t = m.op("Add", [m.op("MatMul", [t, weights]), m.const(m.random.normal(0, 1, 12).astype(np.float32))])
    t = m.op("LeakyRelu", [t], alpha=0.1)
    t = m.op("Mul", [t, m.op("Sigmoid", [t])])
    return m.quantized(m.op("Softmax", [t], axis=-1))


MODELS = {"pictures": pictures, "from_channels_last": from_channels_last, "dense": dense}


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        (folder / f"{name}.onnx").write_bytes(make())
        print(folder / f"{name}.onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
