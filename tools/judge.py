"""Digests of every layer's output by TensorFlow Lite Micro's reference kernels, kept where that package has no wheel.

    python tools/judge.py MODEL.tflite [--inputs FILE.npz] [--cases N] -o tests/data/NAME.json

Runs the model on seeded noise, the extremes and, from an .npz with `in_<i>` arrays, the stored cases; writes the crc32
of each operator's outputs for each case. Inputs are made again from the seed, or read again from the .npz.
"""

from __future__ import annotations

import argparse
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import importers
from synapticos.model import Graph

SEED = 20260701
MAX_ANSWER = 64  # bytes of an output that is written out whole
ARENA = 16 << 20  # bytes: the face detector needs 2 MB when it keeps every tensor


def noise(graph: Graph, cases: int) -> list[list[np.ndarray]]:
    """Inputs for `cases` cases: all lowest, all highest, and from then on noise.

    Of the raw stream, which NumPy keeps the same for good.
    """
    made: list[list[np.ndarray]] = []
    for case in range(cases):
        arrays = []
        for i, tensor in enumerate(graph.inputs):
            if tensor.dtype == "float32":
                array = _reals(case, i, tensor.elements).reshape(tensor.shape)
                arrays.append(array)
                continue
            limits = np.iinfo(tensor.dtype)
            if case < 2:
                array = np.full(tensor.shape, limits.min if case == 0 else limits.max, tensor.dtype)
            else:
                words = np.random.PCG64([SEED, case, i]).random_raw(tensor.elements)
                array = words.astype(f"u{limits.dtype.itemsize}").view(tensor.dtype).reshape(tensor.shape)
            arrays.append(array)
        made.append(arrays)
    return made


def _reals(case: int, i: int, count: int) -> np.ndarray:
    """As `noise`, of reals from -1 to 1."""
    if case < 2:
        return np.full(count, -1 if case == 0 else 1, np.float32)
    words = np.random.PCG64([SEED, case, i]).random_raw(count)
    return ((words >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)).astype(np.float32)


def fresh(path: Path, cases: int) -> list[bool]:
    """For each stored case, whether it begins with the state cleared; else it goes on from the case before."""
    with np.load(path) as file:
        return [bool(f) for f in file["fresh"][:cases]] if "fresh" in file else [True] * cases


def stored(graph: Graph, path: Path, cases: int) -> list[list[np.ndarray]]:
    """The first cases of an .npz with an array `in_<i>` for each input."""
    with np.load(path) as file:
        arrays = [file[f"in_{i}"] for i in range(len(graph.inputs))]
    return [[array[case] for array in arrays] for case in range(min(cases, len(arrays[0])))]


class Judge:
    """TensorFlow Lite Micro with every tensor kept."""

    def __init__(self, data: bytes):
        self.data = data
        self.start()

    def start(self) -> None:
        """A new interpreter: its `reset` does not clear every kind of state."""
        from tflite_micro.python.tflite_micro import runtime

        self.interpreter = runtime.Interpreter.from_bytes(
            self.data,
            intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,  # spelled so
            arena_size=ARENA,
        )
        self.used = False

    def run(self, graph: Graph, inputs: list[np.ndarray], fresh: bool = True) -> dict[int, np.ndarray]:
        """Every operator's results, and the states it changes, by the tensors' numbers in the file."""
        if fresh and self.used:
            self.start()
        self.used = True
        for i, array in enumerate(inputs):
            self.interpreter.set_input(array, i)
        self.interpreter.invoke()
        # Numbers come from the checked graph: one out of range would end the process.
        return {t.number: self.tensor(t.number) for op in graph.ops for t in op.outputs if t.number >= 0}

    def tensor(self, number: int) -> np.ndarray:
        return np.array(self.interpreter.GetTensor(number, 0)["tensor_data"])


def digest(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def judge(data: bytes, name: str, npz: Path | None, cases: int) -> dict[str, Any]:
    """The digests of a model as they are stored."""
    graph = importers.read(data, name)
    who = Judge(data)
    sets: dict[str, list[list[np.ndarray]]] = {"noise": noise(graph, cases)}
    if npz is not None:
        sets["stored"] = stored(graph, npz, cases)
    results: dict[str, list[dict[str, int]]] = {}
    answers = []
    for source, inputs in sets.items():
        results[source] = []
        starts = fresh(npz, cases) if npz is not None and source == "stored" else [True] * len(inputs)
        for arrays, start in zip(inputs, starts, strict=False):
            made = who.run(graph, arrays, start)
            results[source].append({str(number): digest(array) for number, array in made.items()})
            if source == "noise":
                small = [t.number for t in graph.outputs if t.bytes <= MAX_ANSWER]
                answers.append({str(number): made[number].tobytes().hex() for number in small})
    return {
        "model": name,
        "crc32": zlib.crc32(data),
        "seed": SEED,
        "operators": [[op.index, op.kind, [t.number for t in op.outputs]] for op in graph.ops],
        "outputs": [t.number for t in graph.outputs],
        "answers": answers,  # to the noise: hex of the small outputs' bytes
        "cases": results,  # source of the inputs: for each case, number of the tensor: crc32 of its bytes
    }


def to_text(result: dict[str, Any]) -> str:
    """JSON with a line for each case, so that a change of one shows as one."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in result.items() if key != "cases"]
    cases = [
        f"    {json.dumps(source)}: [\n" + ",\n".join(f"      {json.dumps(case)}" for case in rows) + "\n    ]"
        for source, rows in result["cases"].items()
    ]
    return "{\n" + ",\n".join(lines) + ',\n  "cases": {\n' + ",\n".join(cases) + "\n  }\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--inputs", type=Path, help=".npz with in_0, in_1, ...")
    parser.add_argument("--cases", type=int, default=4, help="of each kind")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    result = judge(args.model.read_bytes(), args.model.stem, args.inputs, args.cases)
    args.output.write_text(to_text(result))


if __name__ == "__main__":
    main()
