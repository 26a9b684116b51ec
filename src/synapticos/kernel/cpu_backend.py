"""The cpu backend's row in the backend tables. A build that has real models adds `CPU_BACKEND` to its tables."""

from synapticos.lang import *
from synapticos.kernel.backend import Caps, Need, StepRows
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.cpu import (
    cpu_clear, cpu_frame_bytes, cpu_input_bytes, cpu_load, cpu_output, cpu_outputs, cpu_persistent_bytes, cpu_rows, cpu_run, cpu_scratch_bytes,
    cpu_steps, cpu_tile,
)  # fmt: skip
from synapticos.kernel.npu import BACKEND_CAPS, BACKEND_CLEAR, BACKEND_LOAD, BACKEND_NEED, BACKEND_OUTPUT, BACKEND_RUN, BACKEND_STEP
from synapticos.kernel.stub import stub_caps, stub_clear, stub_load, stub_need, stub_output, stub_run, stub_step

CPU_NAME = rom(b"cpu")
LEAST_FRAME: Final[u32] = 16  # so that a model's frame is never nothing


@fn
def cpu_caps(caps: Caps) -> None:
    for i in range(3):
        caps.name[i] = CPU_NAME[i]
    caps.max_ops = 0
    caps.scratch_bytes = 0
    caps.dtypes = 0x37  # int8, uint8, int16, float32, int32
    caps.model_limit = 0
    caps.input_limit = 0
    caps.asynchronous = False
    caps.exclusive = False


@fn
def cpu_need(m: ModelMemory, need: Need) -> None:
    need.frame_bytes = max(cpu_frame_bytes(m), LEAST_FRAME)
    need.scratch_bytes = cpu_scratch_bytes(m)
    need.persistent_bytes = cpu_persistent_bytes(m)
    need.input_bytes = cpu_input_bytes(m)
    need.steps = cpu_steps(m)
    need.outputs = cpu_outputs(m)
    need.raw = False


@fn
def cpu_step_rows(m: ModelMemory, step: u32, rows: StepRows) -> None:
    rows.row = 0
    rows.row_end = cpu_rows(m, step)
    rows.tile = cpu_tile(m, step)


CPU_BACKEND = {  # all rows of the backend tables in such a build: the stub keeps number 0
    BACKEND_CAPS: [stub_caps, cpu_caps],
    BACKEND_LOAD: [stub_load, cpu_load],
    BACKEND_NEED: [stub_need, cpu_need],
    BACKEND_STEP: [stub_step, cpu_step_rows],
    BACKEND_RUN: [stub_run, cpu_run],
    BACKEND_OUTPUT: [stub_output, cpu_output],
    BACKEND_CLEAR: [stub_clear, cpu_clear],
}
