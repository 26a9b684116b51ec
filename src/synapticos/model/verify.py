"""Is a model's arithmetic exact? Every layer's result against a reference, and the first that differs.

    verdict = verify_layers(engine, compiled, [Reference(data).run(graph, x) for x in inputs], inputs)
    verdict.first, verdict.to_text()

The reference is TensorFlow Lite Micro's own kernels, where that package is installed: the meaning of the model format,
not the faster kernels of desktops, which differ in last bits. Elsewhere a container's stored answers can be run.
An engine is handed in; its build has `ROOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synapticos.errors import UserError
from synapticos.kernel import verify as kernel
from synapticos.kernel.status import Status
from synapticos.lang import u8
from synapticos.model.graph import Graph, Op, Tensor, short
from synapticos.model.load import load_container
from synapticos.model.pack import Compiled

ROOTS: tuple[Any, ...] = (kernel.verify_answer, kernel.verify_answers, kernel.verify_layer)
SEED = 20260701
ARENA = 16 << 20  # bytes that the reference gets: it keeps every tensor
MAX_ULP = 2  # by which a float may differ from the reference's
Results = dict[int, np.ndarray]  # a tensor's number in the file: its value


@dataclass(frozen=True)
class Difference:
    """A layer whose result is not the reference's."""

    step: int
    operator: str
    node: int  # in the source model
    tensor: str
    case: int  # number of the input
    differing: int  # elements
    elements: int
    largest: float  # difference, in units of the tensor's integers, or real
    where: tuple[int, ...]  # the first that differs

    def __str__(self) -> str:
        at = ", ".join(map(str, self.where))
        return (
            f'step {self.step}: {self.operator} "{short(self.tensor)}" (node {self.node}) is the first layer that differs: '
            f"{self.differing:,} of {self.elements:,} elements, by up to {self.largest:g}, the first at [{at}], input {self.case}"
        )


@dataclass(frozen=True)
class Verdict:
    """What a comparison found."""

    model: str
    where: str  # what ran the model
    reference: str
    cases: int
    layers: int  # compared in each case
    elements: int  # compared in all
    first: Difference | None  # None: none that matters
    allowed: int = 0  # by which integers may differ, as the reference computes with reals
    off: int = 0  # elements that differ by no more than that

    @property
    def agrees(self) -> bool:
        """No layer differs by more than is allowed."""
        return self.first is None

    @property
    def exact(self) -> bool:
        return self.first is None and self.off == 0

    @property
    def word(self) -> str:
        return "exact" if self.exact else f"within {self.allowed}" if self.agrees else "DIFFERS"

    @property
    def found(self) -> str:
        if self.first is not None:
            return str(self.first)
        return f"{self.off:,} of {self.elements:,} elements differ" + (f" by up to {self.allowed}" if self.off else "")

    def to_text(self) -> str:
        head = f"{self.model}: {self.layers} layers, {self.cases} inputs, {self.where} against {self.reference}"
        return f"{head}: {self.word}, {self.found}" if self.agrees else f"{head}:\n  {self.first}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exact": self.exact}


class Reference:
    """TensorFlow Lite Micro with every tensor kept. Raises UserError where it is not installed or refuses the model."""

    allowed = 0  # by which our integers may differ from its

    def __init__(self, data: bytes, where: str = "the model"):
        self.data, self.where = data, where
        self._start()

    @staticmethod
    def missing() -> str | None:
        """Why there is no reference here, or None."""
        try:
            from tflite_micro.python.tflite_micro import runtime  # noqa: F401
        except ImportError:
            return "tflite-micro is not installed: pip install --pre tflite-micro (x86-64 Linux, Python 3.11 to 3.13)"
        return None

    @property
    def name(self) -> str:
        from importlib.metadata import version

        return f"tflite-micro {version('tflite-micro')}"

    def _start(self) -> None:
        missing = self.missing()
        if missing is not None:
            raise UserError(f"{self.where}: nothing to compare with: {missing}")
        from tflite_micro.python.tflite_micro import runtime

        try:
            self.interpreter = runtime.Interpreter.from_bytes(
                self.data,
                intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,  # spelled so
                arena_size=ARENA,
            )
        except Exception as error:
            raise UserError(f"{self.where}: the reference cannot run this model ({error})") from None
        self.used = False

    def run(self, graph: Graph, inputs: Sequence[np.ndarray], fresh: bool = True) -> Results:
        """Every operator's results and the states it changes. `fresh`: as after a start."""
        if fresh and self.used:
            self._start()
        self.used = True
        for i, array in enumerate(inputs):
            self.interpreter.set_input(array, i)
        self.interpreter.invoke()
        # A number out of range would end the process: these come from the graph, which the reader has checked.
        numbers = [t.number for op in graph.ops for t in op.outputs if t.number >= 0]
        return {n: np.array(self.interpreter.GetTensor(n, 0)["tensor_data"]) for n in numbers}


def sample_inputs(graph: Graph, cases: int) -> list[list[np.ndarray]]:
    """Inputs for `cases` runs: all lowest, all highest, then noise that is the same everywhere for good."""
    made = []
    for case in range(cases):
        arrays = []
        for i, t in enumerate(graph.inputs):
            words = np.random.PCG64([SEED, case, i]).random_raw(t.elements)
            kind = np.dtype(t.dtype)
            if kind.kind == "f":
                reals = (words >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)
                array = reals if case > 1 else np.full(t.elements, (-1, 1)[case], np.float32)
            else:
                limits = np.iinfo(kind)
                ends = np.full(t.elements, (limits.min, limits.max)[case & 1], kind)
                array = words.astype(f"u{kind.itemsize}").view(kind) if case > 1 else ends
            arrays.append(array.reshape(t.shape))
        made.append(arrays)
    return made


def job_input(inputs: Sequence[np.ndarray]) -> bytes:
    """A model's inputs as they lie in memory: one behind the other, each 16-aligned."""
    data = b""
    for array in inputs:
        data += bytes(-len(data) % 16) + np.ascontiguousarray(array).tobytes()
    return data


class Stepper:
    """A compiled model on an engine, layer by layer."""

    def __init__(self, engine: Any, compiled: Compiled):
        self.e, self.compiled = engine, compiled
        self.container = engine.array(u8, compiled.container)
        self.memory = engine.array(u8, max(compiled.plan.ram, 16))
        self.base = -(-compiled.persistent_bytes // 16) * 16  # of the frame

    def run(self, inputs: Sequence[np.ndarray], fresh: bool, seen: Callable[[int, Op], None]) -> None:
        """Run every step; `seen` is called after each, when its results are whole."""
        given = self.e.array(u8, job_input(inputs))
        for step, op in enumerate(self.compiled.plan.steps):
            status = self.e(
                kernel.verify_layer,
                *(self.container, len(self.container), self.memory, len(self.memory)),
                *(given, len(given), step, fresh and step == 0),
            )
            if Status(int(status)) != Status.OK:
                raise UserError(f"{self.compiled.graph.where}: {op} ended with {Status(int(status)).name}")
            seen(step, op)

    def _at(self, tensor: Tensor) -> int:
        plan = self.compiled.plan
        if tensor in plan.places:
            return self.base + plan.places[tensor]
        root, inside = plan.program.root(tensor)
        return plan.states[root] + inside

    def value(self, tensor: Tensor) -> np.ndarray:
        raw = self.e.read(self.memory._address + self._at(tensor), tensor.bytes)
        return np.frombuffer(raw, tensor.dtype).reshape(tensor.shape)

    def put(self, tensor: Tensor, value: np.ndarray) -> None:
        self.e.write(self.memory._address + self._at(tensor), np.ascontiguousarray(value, tensor.dtype).tobytes())


def verify_layers(
    engine: Any,
    compiled: Compiled,
    cases: Sequence[Sequence[np.ndarray]],
    reference: Callable[[Sequence[np.ndarray], bool], Results],
    *,
    where: str = "native",
    name: str = "reference",
    fresh: Sequence[bool] = (),
    allowed: int = 0,
) -> Verdict:
    """Compare each layer's result with `reference(inputs, fresh)`; integers within `allowed`, floats within MAX_ULP.

    SOFTMAX and LOG_SOFTMAX of float32 are held against exact reals, from which the reference is farther away. Each layer is judged by itself: what it is given is the reference's, even behind one that differs.
    """
    stepper, parts = Stepper(engine, compiled), defined(compiled.plan.steps)
    first: list[Difference] = []
    count, off, layers = 0, 0, set()
    for case, inputs in enumerate(cases):
        start = fresh[case] if fresh else True
        wanted = reference(inputs, start)
        given = wanted | {t.number: np.asarray(x) for t, x in zip(compiled.graph.inputs, inputs, strict=True)}

        def seen(step: int, op: Op, case: int = case, wanted: Results = wanted, given: Results = given) -> None:
            nonlocal count, off
            for tensor in op.outputs:
                if tensor.number not in wanted:
                    continue
                layers.add(step)
                count += tensor.elements
                right = wanted[tensor.number].reshape(tensor.shape)
                x = op.activations[0] if is_exact(op) else None
                if x is not None and x.number in given:
                    real = exact_rows(op, given[x.number].reshape(x.shape))
                    found = find_difference(step, op, tensor, case, stepper.value(tensor), real)
                    stepper.put(tensor, right)  # what comes next is given the reference's
                    if found is not None:
                        first.append(found)
                    continue
                found = find_difference(step, op, tensor, case, stepper.value(tensor), right, parts.get(tensor, ALL))
                if found is not None:
                    stepper.put(tensor, right)
                    if found.largest > allowed:
                        first.append(found)
                    else:
                        off += found.differing

        stepper.run(inputs, start, seen)
    worst = min(first, key=lambda d: (d.step, d.case), default=None)
    return Verdict(compiled.graph.name, where, name, len(cases), len(layers), count, worst, allowed, off)


ALL = slice(None)


def is_exact(op: Op) -> bool:
    """A layer whose reference is the real value of its formula (`kernel/layers/rows_f32`)."""
    return op.kind in ("SOFTMAX", "LOG_SOFTMAX") and op.outputs[0].dtype == "float32"


def exact_rows(op: Op, x: np.ndarray) -> np.ndarray:
    """SOFTMAX or LOG_SOFTMAX of each row, in double precision, rounded once to float32."""
    beta = op.options.get("beta", 1.0) if op.kind == "SOFTMAX" else 1.0
    wide = x.astype(np.float64)
    power = (wide - wide.max(-1, keepdims=True)) * beta
    parts = np.exp(power)
    if op.kind == "SOFTMAX":
        return (parts / parts.sum(-1, keepdims=True)).astype(np.float32)
    np.put_along_axis(parts, wide.argmax(-1)[..., None], 0.0, -1)  # that one is 1: log1p takes the others, however small
    return (power - np.log1p(parts.sum(-1, keepdims=True))).astype(np.float32)


def defined(steps: Sequence[Op]) -> dict[Tensor, slice]:
    """Results of which the reference writes only a part and leaves what lay in the rest, and what is cast from them."""
    parts: dict[Tensor, slice] = {}
    for op in steps:
        if op.kind == "SignalEnergy":
            parts[op.outputs[0]] = slice(op.options["start_index"], op.options["end_index"])
        elif op.kind == "CAST" and op.activations and op.activations[0] in parts:
            parts[op.outputs[0]] = parts[op.activations[0]]
    return parts


def find_difference(
    step: int, op: Op, tensor: Tensor, case: int, value: np.ndarray, right: np.ndarray, within: slice = ALL
) -> Difference | None:
    """Where (of its last dimension `within`) and by how much a layer's result is not what it should be, or None."""
    if within != ALL:
        value, right = value[..., within], right[..., within]
    if value.dtype.kind == "f":
        wrong = ulps(value, right) > MAX_ULP
        away = np.abs(np.nan_to_num(value.astype(np.float64)) - np.nan_to_num(right.astype(np.float64)))
    else:
        away = np.abs(value.astype(np.int64) - right.astype(np.int64))
        wrong = away != 0
    if not wrong.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
    return Difference(
        step, op.kind, op.index, tensor.name, case, int(wrong.sum()), value.size, float(away[wrong].max()), at
    )


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many float32 lie between two; NaN equals NaN."""

    def line(x: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(x, np.float32).view(np.int32).astype(np.int64).reshape(x.shape)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    away = np.abs(line(a) - line(b))
    return np.where(np.isnan(a) & np.isnan(b), 0, away)


@dataclass(frozen=True)
class Answered:
    """What became of a container's known answers."""

    model: str
    where: str
    answers: int
    wrong: tuple[int, ...]  # their numbers

    @property
    def exact(self) -> bool:
        return self.answers > 0 and not self.wrong

    @property
    def agrees(self) -> bool:
        return self.exact

    def to_text(self) -> str:
        if self.answers == 0:
            return f"{self.model}: holds no known answers; compile it with some"
        if not self.wrong:
            return f"{self.model}: all {self.answers} known answers are right, {self.where}"
        return f"{self.model}: {len(self.wrong)} of {self.answers} known answers are wrong, {self.where}: {', '.join(map(str, self.wrong))}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exact": self.exact}


def verify_answers(engine: Any, container: bytes, source: str, where: str = "native") -> Answered:
    """Run a container's known answers. Raises UserError for one that cannot be loaded."""
    header = load_container(container, source).header
    ram = sum(-(-header[f"{space}_bytes"] // 16) * 16 for space in ("persistent", "frame", "scratch"))
    blob, memory = engine.array(u8, container), engine.array(u8, max(ram, 16))
    wrong: list[int] = []
    number = 0
    while True:
        status, right = engine(kernel.verify_answer, blob, len(container), memory, len(memory), number)
        status = Status(int(status))
        if status == Status.NOENT:
            return Answered(source, where, number, tuple(wrong))
        if status != Status.OK:
            raise UserError(f"{source}: this build cannot run the container ({status.name}); compile the model again")
        if not right:
            wrong.append(number)
        number += 1
