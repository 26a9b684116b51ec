"""Damaged .tflite files: refused in one line, or compiled into a container that the kernel takes and runs in its own memory.

    python tests/fuzz/tflites.py --cases N --seed S

Whatever the bytes, nothing but a UserError may come out of reader and compiler, and no file may take SLOW seconds.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import harness
from harness import TESTS, Sanitized, UserError

from synapticos import importers
from synapticos.model import compile_model
from synapticos.model.unsupported import UnsupportedModel

SLOW = 20  # seconds
DEAR = 3_000_000  # multiply-accumulates that a mutant may cost to be run
SHARED = ("hello_world_int8", "digits_cnn_int8", "magic_wand_int8", "micro_speech_int8", "mnist_lstm_int8", "audio_preprocessor_int8",
          "keyword_svdf_int16", "hello_world_float")  # fmt: skip
WORDS = [0, 1, 2, 4, 8, 16, 127, 255, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def bases() -> list[tuple[str, bytes]]:
    import test_corrupt

    found = [("small", test_corrupt.small_model()), ("every", (TESTS / "data" / "every_layer.tflite").read_bytes())]
    found.append(("sine", (TESTS.parent / "examples" / "hello_world" / "sine.tflite").read_bytes()))
    folder = Path(os.environ.get("SYNAPTICOS_MODELS", TESTS.parents[1] / "shared" / "models"))
    return found + [(n, (folder / f"{n}.tflite").read_bytes()) for n in SHARED if (folder / f"{n}.tflite").exists()]


def mutant(dice: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 3, 6])):
        kind = dice.randrange(6)
        at = dice.randrange(len(out))
        if kind == 0:
            out[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            out[at] = dice.randrange(256)
        elif kind == 2:
            out[at & ~3 : (at & ~3) + 4] = dice.choice(WORDS).to_bytes(4, "little")
        elif kind == 3:  # near: sizes and indices are small numbers
            word = int.from_bytes(out[at & ~3 : (at & ~3) + 4], "little") + dice.choice([-2, -1, 1, 2])
            out[at & ~3 : (at & ~3) + 4] = (word % (1 << 32)).to_bytes(4, "little")
        elif kind == 4:  # most of what is not weights holds small bytes
            spots = [i for i in range(max(0, at - 200), min(len(out), at + 200)) if 0 < out[i] < 16]
            if spots:
                out[dice.choice(spots)] = dice.randrange(16)
        else:
            n = dice.choice([1, 2, 4, 8])
            to = dice.randrange(len(out))
            out[to : to + n] = out[at : at + n]
    if dice.random() < 0.02:
        del out[dice.randrange(len(out)) :]
    return bytes(out)


class TooSlow(Exception):
    pass


def _alarm(*_: Any) -> None:
    raise TooSlow


def main() -> None:
    args = harness.arguments(__doc__)
    kernel, dice, good = Sanitized(), random.Random(args.seed), bases()
    began = time.monotonic()
    counts: Counter[str] = Counter(cases=0, read=0, compiled=0, accepted=0, executed=0, bases=len(good))
    weights = [1 / len(data) for _, data in good]
    signal.signal(signal.SIGALRM, _alarm)
    while counts["cases"] < args.cases and time.monotonic() - began < args.seconds:
        name, base = dice.choices(good, weights)[0]
        data = mutant(dice, base)
        counts["cases"] += 1
        signal.alarm(SLOW)
        try:
            try:
                graph = importers.read(data, "mutant")
                counts["read"] += 1
                made = compile_model(graph)
            except UnsupportedModel:
                counts["unsupported"] += 1
                continue
            except UserError as error:
                assert len(str(error)) < 2000, error
                counts["refused"] += 1
                continue
            finally:
                signal.alarm(0)
            counts["compiled"] += 1
            if made.plan.ram > harness.MOST or made.info.macs > DEAR:
                counts["too large to run"] += 1
                continue
            level, status = kernel.take(made.container)
            assert level >= 2, f"the kernel refuses what was compiled: {status.name}"
            counts["accepted"] += 1
            counts["executed"] += level == 3
            counts["failed in a layer"] += level == 2
        except BaseException:
            if args.keep is not None:
                args.keep.write_bytes(data)
            print(f"case {counts['cases']}, seed {args.seed}, from {name}")
            raise
    harness.report(counts, began)


if __name__ == "__main__":
    main()
