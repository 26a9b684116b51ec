"""A model's layers on a board, compared with the same layers on this machine and with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synapticos import boards, importers, toolchain
from synapticos.errors import UserError
from synapticos.host import answers_program, layers_program
from synapticos.host.firmware import link_program
from synapticos.host.onnx_reference import OnnxReference
from synapticos.kernel.layers import tables as layer_tables
from synapticos.model.graph import Graph, Op
from synapticos.model.load import load_container
from synapticos.model.pack import Compiled
from synapticos.model.verify import (
    ALL,
    ROOTS,
    Answered,
    Difference,
    Reference,
    Results,
    Stepper,
    Verdict,
    defined,
    find_difference,
    job_input,
    sample_inputs,
    verify_answers,
    verify_layers,
)  # fmt: skip


def native() -> Any:
    """An engine that can run any model."""
    from synapticos.engine import Build

    return Build(list(ROOTS)).engine("native")


def reference_of(data: bytes, where: str) -> Reference | OnnxReference:
    """What a model file's layers are compared with. Raises UserError where it is not installed."""
    return OnnxReference(data, where) if importers.is_onnx(data, where) else Reference(data, where)


def verify_on_host(data: bytes, compiled: Compiled, cases: int) -> Verdict:
    """Every layer on this machine against the reference. `data`: the model file."""
    graph = compiled.graph
    reference = reference_of(data, graph.where)
    inputs = sample_inputs(graph, cases)
    return verify_layers(
        native(), compiled, inputs, lambda x, fresh: reference.run(graph, x, fresh), name=reference.name, allowed=reference.allowed
    )


class Own:
    """This machine's results, as the reference where another's are near and not equal."""

    name = "native"

    def __init__(self, compiled: Compiled):
        self.stepper = Stepper(native(), compiled)

    def run(self, graph: Graph, inputs: Sequence[np.ndarray], fresh: bool = True) -> Results:
        results: Results = {}

        def keep(step: int, op: Op) -> None:
            results.update({t.number: self.stepper.value(t).copy() for t in op.outputs if t.number >= 0})

        self.stepper.run(inputs, fresh, keep)
        return results


def verify_on_board(data: bytes, compiled: Compiled, board_name: str, cases: int) -> Verdict:
    """Every layer as firmware on an emulated board against the reference kernels, one input after the other."""
    graph = compiled.graph
    reference: Any = reference_of(data, graph.where)
    if reference.allowed:  # no layer may differ from this machine's, and those are near
        near = verify_on_host(data, compiled, cases)
        if not near.agrees:
            return near
        reference = Own(compiled)
        reference.name = f"native, which is within {near.allowed} of {near.reference}"
    inputs = sample_inputs(graph, cases)
    traces = run_on_board(compiled, board_name, inputs)
    first: list[Difference] = []
    count, parts = 0, defined(compiled.plan.steps)
    for case, (given, trace) in enumerate(zip(inputs, traces, strict=True)):
        wanted = reference.run(graph, given)
        for step, (op, results) in enumerate(zip(compiled.plan.steps, trace, strict=True)):
            for tensor, value in zip(op.outputs, results, strict=True):
                if tensor.number not in wanted:
                    continue
                count += tensor.elements
                right = wanted[tensor.number].reshape(tensor.shape)
                found = find_difference(step, op, tensor, case, value, right, parts.get(tensor, ALL))
                if found is not None:
                    first.append(found)
    worst = min(first, key=lambda d: (d.step, d.case), default=None)
    where = f"{board_name} (in-process emulator)"
    return Verdict(graph.name, where, reference.name, cases, len(compiled.plan.steps), count, worst)


def run_on_board(compiled: Compiled, board_name: str, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[list[np.ndarray]]]:
    """Every result of every layer, for each input."""
    from synapticos.compiler import Program
    from synapticos.emulator import Machine

    board = boards.find(board_name)
    given = [job_input(x) for x in inputs]
    ram, size = max(compiled.plan.ram, 16), len(given[0])
    need = ram + size + board.stack
    if need > board.ram.size:
        raise UserError(
            f"{compiled.graph.where} on {board.name}: needs {need:,} bytes of RAM (arena {ram:,}, input {size:,}, stack "
            f"{board.stack:,}), {board.ram.size:,} are available, {need - board.ram.size:,} are missing; give another --board"
        )
    variants = {layer.variant for layer in compiled.layers}
    rows = {
        layer_tables.VALIDATE: layer_tables.validate_functions(variants),
        layer_tables.RUN: layer_tables.run_functions(variants),
    }
    entry: Any = layers_program.main
    made = Program.of([entry], {"MODEL_RAM": ram, "MODEL_INPUT": size}, 4, rows, {layers_program.MODEL: compiled.container})
    elf, _ = link_program(made, entry, board, toolchain.find(board.target))
    done = Machine(elf, board, files={"in0": b"".join(given)}).run()
    if done.code != 0:
        text = done.text.strip().splitlines()
        raise UserError(f"{compiled.graph.where} on {board.name}: {done.reason or (text[-1] if text else f'ended with {done.code}')}")
    data, at, traces = done.files.get("out0", b""), 0, []
    for _ in inputs:
        trace = []
        for op in compiled.plan.steps:
            results = []
            for tensor in op.outputs:
                results.append(np.frombuffer(data[at : at + tensor.bytes], tensor.dtype).reshape(tensor.shape))
                at += tensor.bytes
            trace.append(results)
        traces.append(trace)
    return traces


def verify_container(container: bytes, source: str) -> Answered:
    """A container's own known answers, on this machine."""
    return verify_answers(native(), container, source)


def verify_container_on_board(container: bytes, source: str, board_name: str) -> Answered:
    """A container's own known answers, as firmware on an emulated board."""
    from synapticos.compiler import Program
    from synapticos.emulator import Machine

    board = boards.find(board_name)
    found = load_container(container, source)
    header = found.header
    ram = max(sum(-(-header[f"{space}_bytes"] // 16) * 16 for space in ("persistent", "frame", "scratch")), 16)
    if ram + board.stack > board.ram.size:
        raise UserError(
            f"{source} on {board.name}: needs {ram + board.stack:,} bytes of RAM (arena {ram:,}, stack {board.stack:,}), "
            f"{board.ram.size:,} are available; give another --board"
        )
    variants = {step["variant"] for step in found.steps}
    rows = {
        layer_tables.VALIDATE: layer_tables.validate_functions(variants),
        layer_tables.RUN: layer_tables.run_functions(variants),
    }
    entry: Any = answers_program.main
    made = Program.of([entry], {"ANSWERS_RAM": ram}, 4, rows, {answers_program.CONTAINER: container})
    elf, _ = link_program(made, entry, board, toolchain.find(board.target))
    done = Machine(elf, board, files={}).run()
    if done.code != 0:
        text = done.text.strip().splitlines()
        raise UserError(f"{source} on {board.name}: {done.reason or (text[-1] if text else f'ended with {done.code}')}")
    told = done.files.get("out0", b"")
    return Answered(source, f"{board.name} (in-process emulator)", len(told), tuple(i for i, right in enumerate(told) if not right))


def known_answers(data: bytes, compiled: Compiled, cases: int) -> list[Any]:
    """Inputs with what the reference answers, to be kept in a container."""
    from synapticos.model.pack import Answer

    near = reference_of(data, compiled.graph.where)
    reference: Any = Own(compiled) if near.allowed else near
    answers = []
    for inputs in sample_inputs(compiled.graph, cases):
        results = reference.run(compiled.graph, inputs)
        answers.append(Answer(inputs, [results[t.number].reshape(t.shape) for t in compiled.graph.outputs]))
    return answers


__all__ = ["known_answers", "reference_of", "run_on_board", "verify_container", "verify_container_on_board", "verify_on_board", "verify_on_host"]
