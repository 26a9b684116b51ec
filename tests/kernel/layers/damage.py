"""Runs damaged containers on the native engine under AddressSanitizer and UndefinedBehaviorSanitizer.

    LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 python damage.py COUNT

In a process of its own, as the first bad access ends it. Each buffer is an allocation of exactly its size.
"""

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import test_corrupt
from layer_calls import ROOTS

from synapticos.engine import Build


class Exact:
    """The engine, with arrays of at least one byte."""

    def __init__(self) -> None:
        self.engine = Build(roots=list(ROOTS)).engine("native", sanitize=("address", "undefined"))

    def array(self, element: Any, values: Any) -> Any:
        return self.engine.array(element, max(values, 1) if isinstance(values, int) else values)

    def __call__(self, *call: Any) -> Any:
        return self.engine(*call)


def damaged(dice: random.Random) -> bytes:
    header = test_corrupt.HEADER
    data = bytearray(test_corrupt.MODEL.container)
    value = dice.choice([*test_corrupt.EXTREMES, *(dice.getrandbits(32) for _ in range(8))])
    where = dice.choice(["field", "parameter", "list", "constant", "bytes"])
    if where == "field":
        at, size = dice.choice(test_corrupt.fields())
        data[at : at + size] = value.to_bytes(4, "little")[:size]
    elif where == "parameter":
        at = header["params_at"] + 4 * dice.randrange(header["params_bytes"] // 4)
        near = int.from_bytes(data[at : at + 4], "little") + dice.randrange(-3, 4)
        data[at : at + 4] = (dice.choice([near, value]) % 2**32).to_bytes(4, "little")
    elif where == "list":
        at = header["lists_at"] + 2 * dice.randrange(header["list_entries"])
        data[at : at + 2] = dice.choice([dice.randrange(header["tensors"] + 1), value & 0xFFFF]).to_bytes(2, "little")
    elif where == "constant":
        at = header["consts_at"] + 4 * dice.randrange(header["consts_bytes"] // 4)
        data[at : at + 4] = value.to_bytes(4, "little")
    else:
        for _ in range(3):
            data[dice.randrange(128, header["consts_at"])] = dice.randrange(256)
    return test_corrupt.sealed(data)


def main() -> None:
    test_corrupt.GUARD = 0
    e = Exact()
    dice = random.Random(7)
    outcomes = Counter(test_corrupt.survives(e, damaged(dice)).name for _ in range(int(sys.argv[1])))
    print(dict(outcomes))


if __name__ == "__main__":
    main()
