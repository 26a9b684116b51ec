"""Layers of .onnx models beside onnxruntime's: each is given what onnxruntime has before it."""

from typing import Any

import numpy as np

from synapticos import importers
from synapticos.host.onnx_reference import OnnxReference
from synapticos.model import compile_model
from synapticos.model.verify import Stepper, sample_inputs


def largest_differences(engine: Any, data: bytes, cases: int = 3, optimize: str = "none") -> dict[str, int]:
    """Of each kind of operator the largest difference, in units of its result."""
    compiled = compile_model(importers.read(data, "m", "m.onnx"), optimize=optimize)
    reference = OnnxReference(data)
    stepper = Stepper(engine, compiled)
    found: dict[str, int] = {}
    seen = set()
    for inputs in sample_inputs(compiled.graph, cases):
        wanted = reference.run(compiled.graph, inputs)

        def look(step: int, op: Any) -> None:
            for tensor in op.outputs:
                if tensor.number not in wanted:
                    continue
                seen.add(tensor.number)
                right = wanted[tensor.number].reshape(tensor.shape)
                away = int(np.abs(stepper.value(tensor).astype(int) - right.astype(int)).max())
                found[op.kind] = max(found.get(op.kind, 0), away)
                if away:
                    stepper.put(tensor, right)

        stepper.run(inputs, True, look)
    for output in compiled.graph.outputs:
        root, _ = compiled.plan.program.root(output)
        assert output.number in seen or root.number in seen or root in compiled.plan.places, f"{output} was not compared"
    return found
