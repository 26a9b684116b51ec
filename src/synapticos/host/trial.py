"""A network on trial: all that somebody who has only a model wants to know, on one page.

Does it compile, which board holds it, what does each layer cost, and are its results exact? What this machine cannot
do (no compiler, no reference) is said and left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from synapticos import boards, importers, toolchain
from synapticos.boards.board import Board
from synapticos.errors import UserError
from synapticos.host.verify import native, reference_of
from synapticos.kernel import verify as kernel
from synapticos.kernel.status import Status
from synapticos.lang import u8
from synapticos.model import compile_model
from synapticos.model.graph import short
from synapticos.model.pack import Compiled
from synapticos.model.unsupported import UnsupportedModel
from synapticos.model.verify import ROOTS, Reference, Verdict, job_input, sample_inputs, verify_layers

CHECKED_MACS = 1_000_000  # that CPython is given where there is no compiler: some seconds


@dataclass(frozen=True)
class Fit:
    """What a board has, and what firmware of nothing but this network takes of it."""

    board: str
    title: str
    flash: int | None  # bytes taken; None: it could not be built
    flash_size: int
    ram: int | None
    ram_size: int
    fits: bool
    note: str = ""


@dataclass(frozen=True)
class LayerCost:
    step: int
    operator: str
    name: str
    output: str
    macs: int
    weights: int  # bytes of flash
    live: int  # bytes of RAM
    instructions: int | None  # on a Cortex-M33


@dataclass
class Trial:
    """What came out. `problems`: operators that cannot be compiled; then nothing else is known."""

    name: str
    file: int  # bytes
    problems: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    container: int = 0
    arena: int = 0
    frame: int = 0
    scratch: int = 0
    state: int = 0
    live: int = 0  # largest set of tensors alive
    total: int = 0  # of all tensors, as if none shared memory
    macs: int = 0
    peak: str = ""
    layers: list[LayerCost] = field(default_factory=list)
    boards: list[Fit] = field(default_factory=list)
    verdict: Verdict | None = None
    notes: list[str] = field(default_factory=list)  # what was left out, and why

    @property
    def good(self) -> bool:
        """It compiles, some board holds it, and nothing differs from the reference by more than is allowed."""
        held = any(fit.fits for fit in self.boards)
        return not self.problems and held and (self.verdict is None or self.verdict.agrees)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"good": self.good}


def try_model(path: Path, *, board_names: list[str] | None = None, cases: int = 3) -> Trial:
    """Put a .tflite or .onnx on trial. Raises UserError for a file that is none."""
    chosen = [boards.find(name) for name in board_names or boards.BOARDS]
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    trial = Trial(path.stem, len(data))
    try:
        compiled = compile_model(importers.load(path))
    except UnsupportedModel as missing:
        trial.problems = [str(problem) for problem in missing.problems]
        return trial
    info, plan = compiled.info, compiled.plan
    for tensors, out in ((info.inputs, trial.inputs), (info.outputs, trial.outputs)):
        out += [f"{_shape(t.shape)} {t.dtype}" + (f", scale {t.scale:.6g} zero {t.zero}" if t.scale else "") for t in tensors]
    trial.container, trial.macs, trial.peak = len(compiled.container), info.macs, info.worst_layer
    trial.arena, trial.frame, trial.scratch, trial.state = plan.ram, plan.peak, plan.scratch, plan.persistent
    trial.live, trial.total = plan.lower_bound, plan.total
    costs = _instructions(compiled, trial.notes)
    trial.layers = [
        LayerCost(
            layer.step, layer.operator, short(layer.outputs[0].name) if layer.outputs else "",
            " ".join(_shape(t.shape) for t in layer.outputs), layer.macs, layer.weights, layer.live, costs[i] if costs else None,
        )
        for i, layer in enumerate(info.layers)
    ]  # fmt: skip
    trial.boards = [_fit(path, compiled, board) for board in chosen]
    trial.verdict = _verify(data, compiled, cases, trial.notes)
    return trial


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _instructions(compiled: Compiled, notes: list[str]) -> list[int] | None:
    """Of each layer on a Cortex-M33, counted in the in-process emulator; the checks around it are taken off."""
    if not toolchain.find_all("cortex-m33"):
        notes.append(f"instructions are not counted: there is no compiler for Cortex-M; apt install gcc-arm-none-eabi, or {toolchain.INSTALL}")
        return None
    from synapticos.engine import Build

    e: Any = Build(list(ROOTS)).engine("cortex-m")
    container, memory = e.array(u8, compiled.container), e.array(u8, max(compiled.plan.ram, 16))
    given = e.array(u8, job_input(sample_inputs(compiled.graph, 3)[2]))

    def run(step: int, fresh: bool) -> tuple[Status, int]:
        status = e(kernel.verify_layer, container, len(container), memory, len(memory), given, len(given), step, fresh)
        return Status(int(status)), e.instructions

    _, around = run(len(compiled.layers), True)  # no such step: all but the step itself
    counts = []
    for step in range(len(compiled.layers)):
        status, count = run(step, step == 0)
        if status != Status.OK:
            raise UserError(f"{compiled.graph.where}: layer {step} ended with {status.name} in the emulator")
        counts.append(max(count - around, 0))
    return counts


def _fit(path: Path, compiled: Compiled, board: Board) -> Fit:
    """Firmware with one pipeline, from the network's input to its output, built for the board."""
    container, plan = len(compiled.container), compiled.plan
    need = plan.ram + sum(-(-t.bytes // 16) * 16 for t in compiled.graph.inputs)
    sizes = (board.name, board.title), (board.flash.size, board.ram.size)
    if need + board.stack > board.ram.size:
        short_of = need + board.stack - board.ram.size
        return Fit(*sizes[0], None, sizes[1][0], need + board.stack, sizes[1][1], False, f"{short_of:,} bytes of RAM are missing")
    if container > board.flash.size:
        return Fit(*sizes[0], container, sizes[1][0], None, sizes[1][1], False, f"{container - board.flash.size:,} bytes of flash are missing")
    if not toolchain.find_all(board.target) or len(compiled.graph.inputs) != 1:
        why = "kernel not counted: " + ("no compiler for it here" if len(compiled.graph.inputs) == 1 else "several inputs")
        return Fit(*sizes[0], container, sizes[1][0], need + board.stack, sizes[1][1], True, why)
    from synapticos.app import App
    from synapticos.host.firmware import build_firmware

    x = compiled.graph.inputs[0]
    app = App("trial")
    source = app.frames("input", tuple(x.shape), x.dtype)
    app.job(app.pipeline("network", source).model(app.model(path.resolve(), name="network")))
    try:
        built = build_firmware(app, board.name).sizes
    except UserError as error:
        return Fit(*sizes[0], None, sizes[1][0], None, sizes[1][1], False, str(error).splitlines()[0])
    return Fit(*sizes[0], built["flash"], sizes[1][0], built["ram"], sizes[1][1], True)


def _verify(data: bytes, compiled: Compiled, cases: int, notes: list[str]) -> Verdict | None:
    """Against the reference kernels; natively where a compiler is, under CPython if the network is small."""
    missing = None if importers.is_onnx(data, compiled.graph.where) else Reference.missing()
    if missing is not None:
        notes.append(f"not compared with the reference kernels: {missing}")
        return None
    graph = compiled.graph
    if toolchain.find_all("host"):
        engine, where = native(), "native"
    elif compiled.info.macs <= CHECKED_MACS:
        from synapticos.engine import Build

        engine, where, cases = Build(list(ROOTS)).engine("checked"), "checked CPython", 1
    else:
        notes.append(f"not compared with the reference kernels: there is no compiler; apt install gcc, or {toolchain.INSTALL}")
        return None
    try:
        reference = reference_of(data, graph.where)
    except UserError as refused:
        notes.append(str(refused))
        return None
    inputs = sample_inputs(graph, cases)
    return verify_layers(
        engine, compiled, inputs, lambda x, fresh: reference.run(graph, x, fresh), where=where, name=reference.name,
        allowed=reference.allowed,
    )  # fmt: skip
