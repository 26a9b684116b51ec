"""An app's firmware: the kernel, its stages, tables and networks, compiled and linked for a board."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from synapticos import boards, toolchain
from synapticos.analysis.stack import StackReport, worst_stack
from synapticos.app import clock, program
from synapticos.app.declare import App
from synapticos.app.image import Image, compile_app, run_rows
from synapticos.boards import firmware
from synapticos.boards.board import Board
from synapticos.errors import UserError
from synapticos.host.files import write_files
from synapticos.kernel.sim import sim_work
from synapticos.toolchain import Toolchain

# What no firmware of an app needs: pipelines composed while it runs, stages of the host, a backend but the processor,
# calls for signal processing.
LEFT_OUT = {"COMPOSING": 0, "HOST_STAGES": 0, "ACCELERATOR": 0, "OFFLOAD": 0, "RECLAIM": 0, "DSP": 0, "PIPELINE_NAME": 8, "LOG_ARGS": 1}
MAIN_POLLS = {"RUN_ON": 1, "ONE_THREAD": 1}  # its main is all that polls, and has nothing else to do between two steps of a job


@dataclass
class Firmware:
    """What was built. `parts`: name, bytes of flash, bytes of RAM."""

    app: App
    image: Image
    board: Board
    compiler: str
    elf: bytes
    c_files: dict[str, bytes]
    sizes: dict[str, int]
    parts: list[tuple[str, int, int]]
    stack: StackReport  # the deepest it can get
    files: dict[int, str]  # Python files by the numbers that a failed check gives
    shortages: list[str] = field(default_factory=list)  # of its budgets and of the board; only where they were not enforced

    @property
    def left_out(self) -> list[str]:
        """What of the app is for the host only and is not in it, a line each."""
        return left_out(self.app)

    def write(self, folder: Path) -> list[Path]:
        """Write ELF, .bin, .hex and the C into `folder`."""
        base, data = firmware.binary(self.elf)
        stem = f"{self.app.name}-{self.board.name}"
        files: dict[str, bytes] = {
            f"{stem}.elf": self.elf,
            f"{stem}.bin": data,
            f"{stem}.hex": firmware.intel_hex(base, data).encode(),
        }
        files |= {f"c/{name}": text for name, text in self.c_files.items()}
        for source in self.board.sources:
            files[f"c/board/{source.parent.name}/{source.name}"] = source.read_bytes()
        write_files(folder, files)
        return [folder / f"{stem}{end}" for end in (".elf", ".bin", ".hex")] + [folder / "c"]


def left_out(app: App) -> list[str]:
    """What of an app no firmware has, a line each: handlers in plain Python."""
    return [
        f'on "{pipeline.name}": handler {getattr(callback, "__name__", "of the app")} is plain Python and stays on the host; '
        "give its parameters types to have it in firmware"
        for pipeline in app.pipelines.values()
        for callback in pipeline.callbacks
    ]


def build_firmware(
    app: App, board_name: str, compiler: str | None = None, *, profile: bool = True, settings: Mapping[str, int] | None = None,
    enforce: bool = True,
) -> Firmware:  # fmt: skip
    """Compile and link, or take the same build from the cache. Raises UserError for all that cannot be built.

    Without `profile` it keeps no times of stages and layers, which takes less flash and RAM. `settings` are build
    parameters over those that the app asks for. Without `enforce` what links is given back with its `shortages`.
    """
    from synapticos.compiler import Program

    board = boards.find(board_name)
    image = compile_app(app, slots=max(len(app.jobs), 1), enforce=False)
    if image.host_stages:
        names = ", ".join(stage.__name__ for stage, _ in image.host_stages)
        raise UserError(f'app "{app.name}": {names} is a stage of the host (NumPy) and cannot run on {board.name}; write it with @syn.stage')
    if not app.jobs:
        raise UserError(f'app "{app.name}": has no job; app.job(pipeline) makes one')
    rows, inputs = run_rows(image)
    room = [*image.shortages(), *ram_shortages(image, board, inputs)]
    chain = toolchain.find(board.target, compiler)
    blobs = {program.TABLES: image.tables, program.CONTAINERS: image.containers, program.RUNS: rows}
    parameters = firmware_parameters(image, inputs, profile) | MAIN_POLLS | (dict(settings) if settings else {})
    if parameters.get("GUARD"):
        board = board.guarded()
    entry: Any = clock.main if image.clocked else program.main
    beside: list[Any] = []
    if image.offloads:
        board = with_accelerator(app, board)
        beside = [program.npu_interrupt, sim_work]
    made = Program.of([entry, *beside], parameters, 4, image.lean_tables, blobs)
    try:
        elf, texts = link_program(made, entry, board, chain, beside)
    except UserError:
        if not room:
            raise
        raise UserError(_refusal(app, board, room)) from None  # it did not fit, and that is why
    comes = ("board_guard_tick" if board.guard else "board_tick", *(["board_interrupt"] if beside else []))
    deepest = worst_stack(elf, made, "board_reset", comes, board.fpu)
    stack = board.stack if app.stack is None else min(app.stack, board.stack)
    if deepest.bytes > stack:
        room.append(
            f"the stack may need {deepest.bytes:,} bytes, {stack:,} are available, {deepest.bytes - stack:,} are missing: {deepest}"
        )
    if room and enforce:
        raise UserError(_refusal(app, board, room))
    sizes = firmware.sizes(elf, board)
    return Firmware(app, image, board, chain.name, elf, texts, sizes, _parts(image, elf, sizes, inputs), deepest, dict(enumerate(made.files)), room)


def with_accelerator(app: App, board: Board) -> Board:
    """The board with its accelerator's interrupt. Raises UserError if it has no accelerator."""
    if board.npu == 0:
        names = ", ".join(f'"{m.name}"' for m in app.models if m.on == "npu")
        raise UserError(f'app "{app.name}": {board.name} has no accelerator for model {names}; leave out on="npu", or take {_with_npu()}')
    return replace(board, interrupts=1)


def firmware_parameters(image: Image, inputs: int, profile: bool) -> dict[str, int]:
    """Capacities of an app's firmware with `inputs` bytes of input memory; with `profile` it keeps times and says why it refuses."""
    parameters = image.parameters | {
        "ARENA_BYTES": image.arena_bytes,
        "ARENA_SCRATCH": image.scratch,
        "INPUT_BYTES": inputs,
        "PROFILING": int(profile),
        "NOTES": int(profile),
        "NOTE_ARGS": 4 if profile else 1,
        "LOG_LEVEL": 0,  # nobody reads it there
        "LOG_RECORDS": 1,
        **LEFT_OUT,
        "PLAIN_STAGES": int(image.handles or any(step.kind != "model" for p in image.pipelines for step in p.steps)),
        "MODEL_STATE": int(image.persistent != 0),
        "DEADLINES": int(image.clocked or image.handles or any(job.deadline != 0 for job in image.jobs)),  # or a job has no release time
        "ACCELERATOR": int(image.offloads),
        "OFFLOAD": int(image.offloads),
        "LATE_POLICIES": int(any(job.late in ("abort", "skip") for job in image.jobs)),
    }
    if not profile:
        parameters["LAYER_TIMES"] = 1
    if image.guarded:
        parameters |= image.guards
    return parameters


def link_program(made: Any, main: Any, board: Board, chain: Toolchain, beside: Sequence[Any] = ()) -> tuple[bytes, dict[str, bytes]]:
    """The ELF of a checked program whose `main` is the root, with functions `beside` it that the board calls, and its C
    files; from the cache where they are the same."""
    from synapticos.engine.words import program_files, write_files

    written = program_files(made, [main, *beside])
    texts: dict[str, bytes] = written.files  # type: ignore[assignment] # program_files leaves bytes only
    key = toolchain.key(sorted(texts.items()), chain.name, chain.version, board.target, board.script(), board.flags, *board.inputs)

    def make(target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="syn-app-") as scratch:
            folder = Path(scratch)
            write_files(written, folder)
            units = [folder / name for name in written.units]
            entry = () if main.c_name == "main" else (f"-D{main.c_name}=main",)
            flags = ("-Os", "-g", f"-I{folder}", f"-Wa,-I{folder}", *entry)
            firmware.build(board, units, target, chain=chain, flags=flags, per_file={"layers.c": ("-O2",)})

    return toolchain.cached(f"firmware-{key}.elf", make, f"firmware for {board.name}").read_bytes(), texts


def _with_npu() -> str:
    return " or ".join(sorted(board.name for board in boards.BOARDS.values() if board.npu))


def _refusal(app: App, board: Board, shortages: list[str]) -> str:
    return "\n  ".join([f'app "{app.name}" on {board.name}: {shortages[0]}', *shortages[1:]])


def ram_shortages(image: Image, board: Board, inputs: int) -> list[str]:
    """What does not fit the board: needed, available and missing, and where most is alive."""
    need = image.arena_bytes + inputs + board.stack
    if need <= board.ram.size:
        return []
    worst = max(image.pipelines, key=lambda p: p.plan)
    return [
        f"needs {need:,} bytes of RAM (arena {image.arena_bytes:,}, input {inputs:,}, "
        f"stack {board.stack:,}), {board.ram.size:,} are available, {need - board.ram.size:,} are missing; "
        f"most is alive in pipeline {worst.name}, {worst.worst}"
    ]


def _parts(image: Image, elf: bytes, sizes: dict[str, int], inputs: int) -> list[tuple[str, int, int]]:
    """What takes how much: networks and tables, layers and stages, the rest of the code; arena, input, the rest of RAM."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    symbols: list[Any] = []
    table = ELFFile(BytesIO(elf)).get_section_by_name(".symtab")
    if isinstance(table, SymbolTableSection):
        symbols = [(s.name, s["st_size"]) for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]
    layer_code = sum(size for name, size in symbols if name.endswith(("_run", "_validate")) or "_stage" in name)
    networks, tables = len(image.containers), len(image.tables)
    code = sizes["flash"] - networks - tables
    rest = sizes["ram"] - sizes["stack"] - image.arena_bytes - inputs
    return [
        ("networks", networks, 0),
        ("tables", tables, 0),
        ("layers and stages", layer_code, 0),
        ("kernel, board and the rest", code - layer_code, max(rest, 0)),
        ("arena", 0, image.arena_bytes),
        ("input", 0, inputs),
        ("stack", 0, sizes["stack"]),
    ]
