"""The program that runs a container's known answers on a board, for `syn model verify MODEL.synm --board`.

Writes a byte for each answer to the file `out0`: 1 right, 0 wrong. On an emulated board that is a file of the host.
"""

from synapticos.kernel import hal
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.status import Status
from synapticos.kernel.verify import verify_answer, verify_answers, verify_open
from synapticos.lang import blob, console, fn, i32, local, param, rom, static, u8, u32

CONTAINER = blob()
ANSWERS_RAM = param(u32, 16)  # persistent, frame and scratch
ANSWERS_MEMORY = static(u8, ANSWERS_RAM, align=16)
ANSWERS_FILE = rom(b"out0")


@fn
def run_answers() -> Status:
    """Returns OK; IO if the file cannot be written; what `verify_open` and the layers say."""
    m = local(ModelMemory)
    opened = verify_open(m, CONTAINER, len(CONTAINER), ANSWERS_MEMORY, ANSWERS_RAM)
    if opened != Status.OK:
        return opened
    told = local(u8, 1)
    count = verify_answers(CONTAINER, len(CONTAINER))
    for number in range(count):
        status, right = verify_answer(CONTAINER, len(CONTAINER), ANSWERS_MEMORY, ANSWERS_RAM, number)
        if status != Status.OK:
            return status
        told[0] = 0
        if right:
            told[0] = 1
        written = hal.file_write(0, ANSWERS_FILE, number, told, 1)
        if written != 1:
            return Status.IO
    return Status.OK


@fn
def main() -> i32:
    status = run_answers()
    if status != Status.OK:
        console.print(f"the container does not run: {status}")
        return 1
    return 0
