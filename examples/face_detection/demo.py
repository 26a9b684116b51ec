"""The main job, from end to end: find a face on this machine, then as firmware on an emulated Cortex-M33, and compare.

    make demo            or: python examples/face_detection/demo.py [--front PHOTO] [--out FOLDER]
"""

import argparse
import sys
import time
from pathlib import Path

from synapticos.app.load import load_app
from synapticos.boards import BOARDS, qemu
from synapticos.cli.output import table
from synapticos.errors import UserError
from synapticos.host.draw import draw_boxes
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.host.report import Report

BOARD = "mps2-an521"
# Boards that people have, with the RAM of which one piece can be had; bytes.
KNOWN = [
    ("NXP FRDM-MCXN947", 416 << 10),
    ("Raspberry Pi Pico 2", 520 << 10),
    ("ST NUCLEO-H743ZI", 512 << 10),
    ("Nordic nRF5340 DK", 512 << 10),
    ("Raspberry Pi Pico", 264 << 10),
    ("ST NUCLEO-L476RG", 96 << 10),
    ("TI LM3S6965EVB", 64 << 10),
]


def show_faces(report: Report) -> None:
    for result in report.results:
        side = result.input.shape[1]
        (boxes,) = result.arrays
        print(f"{len(boxes)} face{'s' if len(boxes) != 1 else ''} in a picture of {result.input.shape[2]} x {side}:")
        for x1, y1, x2, y2, score, _ in boxes:
            print(f"  from ({x1 * side:.1f}, {y1 * side:.1f}) to ({x2 * side:.1f}, {y2 * side:.1f}), score {score:.4f}")


def show_times(host: Report, board: Report) -> None:
    """Microseconds of stages and layers: on this machine, and in the emulator's time (32 ns an instruction, no cycles)."""
    for name, rows in host.stages.items():
        both = [[*row, there[-1]] for row, there in zip(rows, board.stages[name])]
        table(f"{name}: stages, us", ["stage", "step", "here", "emulated"], both)
    for name, rows in host.layers.items():
        both = [[*row, there[-1]] for row, there in zip(rows, board.layers[name])]
        table(f"{name}: layers, us", ["layer", "operator", "MACs", "here", "emulated"], both)


def show_memory(report: Report) -> None:
    image, model = report.image, report.image.app.models[0].compiled
    frame, own = image.source_bytes, report.sizes
    beside = own["ram"] - image.arena_bytes - frame
    total = own["ram"]
    print(f"arena: planned {report.planned:,} bytes; frames planned {report.frames_planned:,}, used {report.peak:,}")
    print(f"most of the network is alive at {model.info.worst_layer}:")
    for name, size in model.info.alive:
        print(f"  {size:>8,}  {name}")
    print(
        f"the firmware takes {own['flash']:,} bytes of flash and {total:,} of RAM: arena {image.arena_bytes:,}, "
        f"picture {frame:,}, stack {own['stack']:,}, the rest {beside:,}"
    )
    fits = [name for name, ram in KNOWN if ram >= total]
    not_fits = [name for name, ram in KNOWN if ram < total]
    print(f"RAM enough, by their data sheets (not tried): {', '.join(fits) or 'none of those known'}")
    print(f"too little: {', '.join(not_fits)}")
    small = [board.name for board in BOARDS.values() if board.ram.size < total]
    if small:
        print(f"of the boards here it does not fit {', '.join(small)}")


def main() -> int:
    arguments = argparse.ArgumentParser(description=str(__doc__))
    arguments.add_argument("--front", type=Path, help="a photograph; one of another size is cut and scaled")
    arguments.add_argument("--out", type=Path, default=Path("out"), help="where the picture with the boxes goes")
    given = arguments.parse_args()
    files = {"front": given.front} if given.front else {}
    app = load_app(Path(__file__).with_name("app.py"))
    reports = []

    print("== on this machine")
    start = time.perf_counter()
    reports.append(run_on_host(app, files, crop=True))
    show_faces(reports[-1])
    print(f"(in all {time.perf_counter() - start:.1f} s, compiling the kernel included)")

    print(f"\n== as firmware on {BOARD}, emulated in this process")
    start = time.perf_counter()
    firmware = build_firmware(app, BOARD)
    reports.append(run_on_board(firmware, files, crop=True))
    show_faces(reports[-1])
    print(f"{reports[-1].instructions:,} instructions (in all {time.perf_counter() - start:.1f} s, compiling included)")
    show_times(*reports)
    show_memory(reports[-1])

    missing = qemu.missing()
    if missing is None:
        print(f"\n== the same firmware in QEMU {qemu.version()}")
        reports.append(run_on_board(firmware, files, emulator="qemu", crop=True))
        show_faces(reports[-1])
    else:
        print(f"\n== QEMU: left out, {missing}")

    given.out.mkdir(parents=True, exist_ok=True)
    picture = given.out / "faces.png"
    draw_boxes(reports[0], picture)
    print(f"\nwrote {picture}")
    print("digests of all result bytes:")
    for report in reports:
        print(f"  {report.digest}  {report.where}")
    equal = len({report.digest for report in reports}) == 1
    print("equal: the same bytes everywhere" if equal else "DIFFERENT: this is a bug, please report it")
    return 0 if equal else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        sys.exit(130)
