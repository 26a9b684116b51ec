"""Containers given to the cpu backend, with NumPy arrays in and out."""

from typing import Any

import numpy as np

from synapticos import importers
from synapticos.kernel.container import MAX_BYTES, ModelMemory
from synapticos.kernel.cpu import cpu_clear, cpu_load, cpu_run
from synapticos.kernel.status import Status
from synapticos.lang import *
from synapticos.model import compile_model

try:
    from judge import Judge  # tools/judge.py, put on the path by layer_models
    from tflite_micro.python.tflite_micro import runtime as _runtime  # noqa: F401
except ImportError:
    Judge = None  # type: ignore[assignment,misc]


@fn
def give(m: ModelMemory, container: Ptr[u8], size: u32, frame: Ptr[u8], frame_bytes: u32, scratch: Ptr[u8], scratch_bytes: u32,
         given: Ptr[u8], input_bytes: u32, state: Ptr[u8], state_bytes: u32) -> None:  # fmt: skip
    """Where a model's spaces lie, and how large they are."""
    m.container = container
    m.container_bytes = size
    m.frame = frame
    m.frame_bytes = frame_bytes
    m.scratch = scratch
    m.scratch_bytes = scratch_bytes
    m.input = given
    m.input_bytes = input_bytes
    m.persistent = state
    m.persistent_bytes = state_bytes


@fn
def load_container(container: Ptr[u8], size: u32, frame_bytes: u32, scratch_bytes: u32) -> Status:
    """Check a container as at registration: no frame, no scratch, no input yet."""
    m = local(ModelMemory)
    give(m, container, size, container, frame_bytes, container, scratch_bytes, container, 0, container, 0)
    return cpu_load(m)


@fn
def run_step(
    container: Ptr[u8], size: u32, frame: Ptr[u8], frame_bytes: u32, scratch: Ptr[u8], scratch_bytes: u32,
    given: Ptr[u8], input_bytes: u32, state: Ptr[u8], state_bytes: u32, step: u32, row: u32, row_end: u32,
) -> Status:  # fmt: skip
    m = local(ModelMemory)
    give(m, container, size, frame, frame_bytes, scratch, scratch_bytes, given, input_bytes, state, state_bytes)
    return cpu_run(m, step, row, row_end)


@fn
def clear_state(container: Ptr[u8], size: u32, state: Ptr[u8], state_bytes: u32) -> Status:
    """A model's state as it is before the first run."""
    m = local(ModelMemory)
    give(m, container, size, container, 0, container, 0, container, 0, state, state_bytes)
    return cpu_clear(m)


@fn
def load_from(memory: Ptr[u8], at: u32, size: u32) -> Status:
    """Check a container that begins at byte `at`."""
    return load_container(memory[at:], size, MAX_BYTES, MAX_BYTES)


ROOTS = (load_container, load_from, run_step, clear_state)


def compiled(data: bytes, optimize: str = "none") -> Any:
    """A .tflite file compiled with every layer's result in bytes of its own."""
    return compile_model(importers.read(data, "test"), optimize=optimize)


def input_bytes(model: Any, inputs: list[np.ndarray]) -> bytes:
    """The inputs as the container expects them: one behind the other, each aligned."""
    data = b""
    for array in inputs:
        data += bytes(-len(data) % 16) + np.ascontiguousarray(array).tobytes()
    return data


class Running:
    """A compiled model in an engine's memory."""

    def __init__(self, e: Any, model: Any, inputs: list[np.ndarray]) -> None:
        self.e = e
        self.model = model
        self.container = e.array(u8, model.container)
        self.frame = e.array(u8, max(model.frame_bytes, 16))
        self.scratch = e.array(u8, max(model.scratch_bytes, 16))
        self.state = e.array(u8, max(model.persistent_bytes, 16))
        self.give(inputs)
        status = e(load_container, self.container, len(model.container), model.frame_bytes, model.scratch_bytes)
        assert status == Status.OK

        self.clear()

    def give(self, inputs: list[np.ndarray]) -> None:
        """The inputs of the next run."""
        self.given = self.e.array(u8, input_bytes(self.model, inputs))

    def clear(self) -> None:
        """Forget what earlier runs left."""
        status = self.e(
            clear_state, self.container, len(self.model.container), self.state, self.model.persistent_bytes
        )
        assert status == Status.OK

    def step(self, number: int, row: int, row_end: int) -> Any:
        return self.e(
            run_step, self.container, len(self.model.container), self.frame, self.model.frame_bytes, self.scratch,
            self.model.scratch_bytes, self.given, len(self.given), self.state, len(self.state), number, row, row_end,
        )  # fmt: skip

    def tensor(self, tensor: Any) -> np.ndarray:
        plan = self.model.plan
        root, inside = plan.program.root(tensor)
        if tensor in plan.places:
            raw = bytes(self.frame)[plan.places[tensor] :][: tensor.bytes]
        else:
            raw = bytes(self.state)[plan.states[root] + inside :][: tensor.bytes]
        return np.frombuffer(raw, tensor.dtype).reshape(tensor.shape)

    def run(self, tiles: int = 1) -> None:
        """All steps, each in at most `tiles` pieces."""
        for number, layer in enumerate(self.model.layers):
            piece = -(-layer.rows // tiles)
            for row in range(0, layer.rows, piece):
                assert self.step(number, row, min(row + piece, layer.rows)) == Status.OK
