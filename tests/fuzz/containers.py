"""Damaged containers with right checksums: refused, or run inside their own memory.

    python tests/fuzz/containers.py --cases N --seed S [--mode bytes]

Bases are the repository's networks, optimised and not, one with state, and one with known answers. `bytes`: one byte
anywhere set to another value. `all`: also whole fields of header, tensors and steps, list entries, parameters, and
pieces copied from elsewhere.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import harness
import numpy as np
from harness import TESTS, Sanitized, sealed

from synapticos import importers
from synapticos.kernel.container import Header, StepRecord, TensorRecord
from synapticos.lang import layout, sizeof, unpack
from synapticos.model import Answer, compile_model

EXTREMES = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x0FFFFFFF, 0x10000000,
            0x3FFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF]  # fmt: skip
# beside this checkout, where there are any: state, int16, floats, the operators of audio
SHARED = ("hello_world_int8", "wakeword_alexa_int8", "keyword_svdf_int16", "hello_world_float", "magic_wand_int8", "mnist_lstm_int8",
          "audio_preprocessor_int8")  # fmt: skip


class Base:
    """A good container, and where its fields are."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.header = header = unpack(Header, data[: sizeof(Header)])
        self.fields: list[tuple[int, int]] = []
        for at, count, record in (
            (0, 1, Header), (header["tensors_at"], header["tensors"], TensorRecord), (header["steps_at"], header["steps"], StepRecord),
        ):  # fmt: skip
            offsets = [field[1] for field in layout(record)] + [sizeof(record)]
            for i in range(count):
                base = at + i * sizeof(record)
                self.fields += [(base + a, min(b - a, 4)) for a, b in zip(offsets, offsets[1:], strict=False)]
        self.spots = [header["params_at"] + 4 * i for i in range(header["params_bytes"] // 4)]
        self.lists = [header["lists_at"] + 2 * i for i in range(header["list_entries"])]


def bases() -> list[Base]:
    import test_corrupt

    made = []
    small, every = test_corrupt.small_model(), (TESTS / "data" / "every_layer.tflite").read_bytes()
    for name, data in (("small", small), ("every", every)):
        graph = importers.read(data, name)
        for how in ("default", "none"):
            made.append(Base(f"{name} {how}", compile_model(graph, optimize=how).container))  # type: ignore[arg-type]
        x = [np.zeros(t.shape, t.dtype) for t in graph.inputs]
        y = [np.zeros(t.shape, t.dtype) for t in graph.outputs]
        made.append(Base(f"{name} answers", compile_model(graph, answers=[Answer(x, y)] * 3, max_step=2000).container))
    folder = Path(os.environ.get("SYNAPTICOS_MODELS", TESTS.parents[1] / "shared" / "models"))
    for name in SHARED:
        path = folder / f"{name}.tflite"
        if path.exists():
            try:
                made.append(Base(name, compile_model(importers.load(path)).container))
            except harness.UserError:
                pass  # not all its operators are there
    return made


def mutant(dice: random.Random, base: Base, mode: str) -> bytes:
    data = bytearray(base.data)
    if mode == "bytes":
        at = dice.randrange(len(data))
        data[at] ^= dice.randrange(1, 256)
        return sealed(data)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        value = dice.choice([*EXTREMES, *(dice.getrandbits(32) for _ in range(6))])
        kind = dice.choice(["field", "field", "field", "parameter", "parameter", "list", "byte", "copy", "near"])
        if kind == "field":
            at, size = dice.choice(base.fields)
            data[at : at + size] = value.to_bytes(4, "little")[:size]
        elif kind == "near":
            at, size = dice.choice(base.fields)
            now = int.from_bytes(data[at : at + size], "little") + dice.choice([-16, -4, -1, 1, 4, 16])
            data[at : at + size] = (now % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == "parameter" and base.spots:
            at = dice.choice(base.spots)
            near = int.from_bytes(data[at : at + 4], "little") + dice.randrange(-3, 4)
            data[at : at + 4] = (dice.choice([near, value]) % 2**32).to_bytes(4, "little")
        elif kind == "list":
            at = dice.choice(base.lists)
            data[at : at + 2] = dice.choice([dice.randrange(base.header["tensors"] + 1), value & 0xFFFF]).to_bytes(2, "little")
        elif kind == "byte":
            data[dice.randrange(len(data))] = dice.randrange(256)
        elif kind == "copy":
            (a, size), (b, other) = dice.choice(base.fields), dice.choice(base.fields)
            n = min(size, other)
            data[a : a + n] = data[b : b + n]
    if dice.random() < 0.02:
        del data[dice.randrange(len(data)) :]
    return sealed(data) if dice.random() < 0.98 else bytes(data)


def main() -> None:
    args = harness.arguments(__doc__)
    kernel, dice, good = Sanitized(), random.Random(args.seed), bases()
    began = time.monotonic()
    for base in good:
        assert kernel.take(base.data)[0] == 3, base.name
    counts: Counter[str] = Counter(cases=0, past_header=0, accepted=0, executed=0, bases=len(good))
    weights = [1 / len(b.data) for b in good]
    while counts["cases"] < args.cases and time.monotonic() - began < args.seconds:
        level, status = kernel.take(mutant(dice, dice.choices(good, weights)[0], args.mode))
        counts["cases"] += 1
        counts["past_header"] += level >= 1
        counts["accepted"] += level >= 2
        counts["executed"] += level >= 3
        counts[f"status {status.name}"] += 1
    harness.report(counts, began)


if __name__ == "__main__":
    main()
