"""The program that runs one model on a board layer by layer, for `syn model verify --board`.

Reads inputs from the file `in0`, one after the other, each as a job takes it; writes every result of every layer to
`out0` in the order of the steps. On an emulated board these are files of the host.
"""

from synapticos.kernel import hal
from synapticos.kernel.container import SPACE_FRAME, ModelMemory
from synapticos.kernel.cpu import cpu_clear, cpu_steps, model_list, model_step, model_tensor
from synapticos.kernel.status import Status
from synapticos.kernel.verify import verify_open, verify_step
from synapticos.lang import Ptr, blob, console, fn, i32, local, param, rom, static, u8, u32

MODEL = blob()
MODEL_RAM = param(u32, 16)  # persistent, frame and scratch
MODEL_INPUT = param(u32, 16)
MODEL_MEMORY = static(u8, MODEL_RAM, align=16)
MODEL_GIVEN = static(u8, MODEL_INPUT, align=16)
IN_FILE = rom(b"in0")
OUT_FILE = rom(b"out0")


@fn
def write_results(m: ModelMemory, step: u32, start: u32) -> tuple[bool, u32]:
    """Append a step's results to the file: the second result is where it ends now."""
    record = model_step(m, step)
    at = start
    good = True
    for i in range(u32(record.outputs)):
        y = model_tensor(m, u32(model_list(m, u32(record.first) + record.inputs + i)))
        data: Ptr[u8] = m.persistent
        if y.space == SPACE_FRAME:
            data = m.frame
        if good:
            written = hal.file_write(0, OUT_FILE, at, data[y.offset : y.offset + y.bytes], y.bytes)
            good = written == i32(y.bytes)
        at += y.bytes
    return good, at


@fn
def run_layers(m: ModelMemory) -> Status:
    """Every input, from cleared state. Returns OK; IO if a file cannot be written; what a layer says."""
    at: u32 = 0
    case: u32 = 0
    more = True
    while more:
        got = hal.file_read(0, IN_FILE, case * MODEL_INPUT, MODEL_GIVEN, MODEL_INPUT)
        more = got == i32(MODEL_INPUT)
        if more:
            status = cpu_clear(m)
            for step in range(cpu_steps(m)):
                if status == Status.OK:
                    status = verify_step(m, step)
                if status == Status.OK:
                    good, end = write_results(m, step, at)
                    at = end
                    if not good:
                        status = Status.IO
            if status != Status.OK:
                return status
        case += 1
    return Status.OK


@fn
def main() -> i32:
    m = local(ModelMemory)
    status = verify_open(m, MODEL, len(MODEL), MODEL_MEMORY, MODEL_RAM)
    if status == Status.OK:
        m.input = MODEL_GIVEN
        m.input_bytes = MODEL_INPUT
        status = run_layers(m)
    if status != Status.OK:
        console.print(f"the model does not run: {status}")
        return 1
    return 0
