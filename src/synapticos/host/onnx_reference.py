"""onnxruntime as the reference of an .onnx: every quantised result, stored as the graph has it.

The file is run as it is written, with reals between DequantizeLinear and QuantizeLinear, and nothing fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.importers import onnx as reader
from synapticos.importers.onnx_graph import IN_FILE, STORED, Value
from synapticos.model import Graph
from synapticos.model.verify import Results


class OnnxReference:
    """onnxruntime with every quantised tensor as a result. Raises UserError where it is not installed."""

    allowed = 1  # by which integer arithmetic may differ from rounded reals, in units of the result

    def __init__(self, data: bytes, where: str = "the model"):
        try:
            import onnx
            import onnxruntime as ort
        except ImportError:
            raise UserError(f"{where}: nothing to compare with: onnxruntime is not installed: pip install onnxruntime") from None
        builder, self.inputs, _ = reader.build(data, where)
        self.names = list(builder.file.inputs)
        self.real = [builder.file.inputs[name][0] == "float" for name in self.names]
        self.values = {name: v for name, v in builder.quantized.items() if name not in builder.file.inputs}
        model = onnx.ModelProto.FromString(data)
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.values)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        try:
            self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UserError(f"{where}: the reference cannot run this model ({error})") from None
        self.name = f"onnxruntime {ort.__version__}"

    def run(self, graph: Graph, inputs: Sequence[np.ndarray], fresh: bool = True) -> Results:
        """Every operator's result, by the number of its tensor."""
        given: dict[str, Any] = {}
        for name, real, v, array in zip(self.names, self.real, self.inputs, inputs, strict=True):
            array = array.reshape(v.tensor.shape)
            array = array.transpose(IN_FILE[array.ndim]) if v.first else array
            if real:
                array = ((array.astype(np.int32) - v.scale.zero) * np.float32(v.scale.scale)).astype(np.float32)
            given[name] = np.ascontiguousarray(array)
        results = self.session.run(list(self.values), given)
        return {
            v.tensor.number: _as_stored(v, np.asarray(array))
            for v, array in zip(self.values.values(), results, strict=True)
            if v.tensor.number >= 0
        }


def _as_stored(v: Value, array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint8:
        array = (array.astype(np.int16) - 128).astype(np.int8)
    array = array.reshape(v.shape)
    if v.rows is not None:
        array = array.reshape(-1, *v.rows).transpose(STORED[len(v.rows) + 1])
    elif v.first:
        array = array.transpose(STORED[array.ndim])
    return np.ascontiguousarray(array).reshape(v.tensor.shape)
