"""Run a published sample: python -m examples.published hello_inference [--board lm3s6965evb] [--emulator qemu]"""

import argparse
import sys

from examples.published import face_detection, hello_inference
from synapticos import boards, toolchain
from synapticos.boards import firmware, qemu
from synapticos.compiler import Program
from synapticos.emulator import Machine
from synapticos.engine import Build
from synapticos.errors import UserError
from synapticos.host.firmware import link_program
from synapticos.kernel.stages.tables import stage_tables

SAMPLES = {"hello_inference": hello_inference, "face_detection": face_detection}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("sample", choices=SAMPLES)
    arguments.add_argument("--board", default="host", help="host, or a board to build firmware for")
    arguments.add_argument("--emulator", default="own", choices=("own", "qemu"))
    given = arguments.parse_args()
    program = SAMPLES[given.sample]
    if given.board == "host":
        engine = Build([program.main]).engine("native", real_clock=True)
        code = engine(program.main)
        print(engine.board.take_console().decode(), end="")
        return int(code)
    board = boards.find(given.board)
    tables = stage_tables(program.PROCESSORS)
    made = Program.of([program.main], {}, 4, tables)  # type: ignore[list-item]
    elf, _ = link_program(made, program.main, board, toolchain.find(board.target))
    done = qemu.run(board, elf) if given.emulator == "qemu" else Machine(elf, board).run()
    print(done.text, end="")
    sizes = firmware.sizes(elf, board)
    print(f"{board.name}: {sizes['flash']:,} bytes of flash, {sizes['ram']:,} of RAM, {sizes['stack']:,} of it stack", file=sys.stderr)
    return 1 if done.code is None else done.code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
