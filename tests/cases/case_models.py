"""Small networks from fixed seeds, for the field cases."""

from __future__ import annotations

from typing import Any

import numpy as np
from make_test_model import RELU, Layers

from synapticos import importers
from synapticos.kernel import verify
from synapticos.lang import u8

ROOTS = (verify.verify_answer, verify.verify_answers, verify.verify_layer)


def skip_model(seed: int = 1) -> bytes:
    """Five layers; the first one's output is needed again by the fourth."""
    m = Layers(seed)
    x = m.tensor("picture", (1, 8, 8, 3), 0.0078125, -1)
    one = m.conv("one", x, 16, (3, 3), activation=RELU)
    two = m.conv("two", one, 8, (1, 1))
    three = m.conv("three", two, 16, (3, 3))
    four = m.add("four", three, one)
    five = m.pool("AVERAGE", "five", four, (8, 8), 8, 0)
    return m.finish([x], [five])


def small_model(seed: int = 2) -> bytes:
    m = Layers(seed)
    x = m.tensor("picture", (1, 8, 8, 3), 0.0078125, -1)
    y = m.conv("only", x, 4, (3, 3), stride=2)
    return m.finish([x], [y])


def graph_of(data: bytes, name: str = "case") -> Any:
    return importers.read(data, name)


def noise(graph: Any, seed: int) -> list[np.ndarray]:
    random = np.random.Generator(np.random.PCG64(seed))
    return [random.integers(-128, 128, t.shape).astype(t.dtype) for t in graph.inputs]


def run_in(e: Any, compiled: Any, memory: Any, inputs: list[np.ndarray]) -> list[bytes]:
    """Run a compiled model step by step in one piece of memory; the outputs' bytes."""
    container = e.array(u8, compiled.container)
    data = b""
    for array in inputs:
        data += bytes(-len(data) % 16) + array.tobytes()
    given = e.array(u8, data)
    for step in range(len(compiled.layers)):
        status = e(verify.verify_layer, container, len(container), memory, len(memory), given, len(given), step, step == 0)
        assert status == 0, (step, status)
    content = bytes(memory)
    base = -(-compiled.persistent_bytes // 16) * 16
    places = compiled.plan.places
    return [content[base + places[t] :][: t.bytes] for t in compiled.graph.outputs]
