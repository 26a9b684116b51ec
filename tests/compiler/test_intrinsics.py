"""Each intrinsic's body against its instruction: checked CPython has the one, the Cortex-M33 the other."""

from __future__ import annotations

import importlib
import pkgutil
import random
import struct
from typing import Any

import pytest

import synapticos.kernel
from synapticos import toolchain
from synapticos.engine import Build
from synapticos.lang import Trap
from synapticos.lang.types import PtrType, Scalar
from synapticos.lang.words import Function


def intrinsics() -> list[Function]:
    found: dict[Function, None] = {}
    for module in pkgutil.walk_packages(synapticos.kernel.__path__, "synapticos.kernel."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Function) and value.kind == "intrinsic" and value.module == module.name:
                found[value] = None
    return list(found)


ALL = intrinsics()
CALLED = [f for f in ALL if f.python.__code__.co_argcount]  # the rest are constants that say which code a processor runs
EDGES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80008000, 0x7FFF7FFF, 0x80018001, 0xFFFEFFFF]


@pytest.fixture(scope="module")
def both():
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for cortex-m33")
    build = Build(ALL)
    return build.engine("checked"), build.engine("cortex-m")


@pytest.mark.parametrize("function", CALLED, ids=lambda f: f.__name__)
def test_the_instruction_does_what_the_body_says(both, function):
    checked, chip = both
    kinds = [t for _, t in checked.program.signature(function)[0]]
    r = random.Random(function.__name__)
    data = r.randbytes(64)
    memory = [e.array(k.element, data) for e in both for k in kinds if isinstance(k, PtrType)]
    agreed = 0
    for i in range(2000):
        arguments: list[Any] = []
        for kind in kinds:
            if isinstance(kind, PtrType):
                at = r.randint(0, 56)
                arguments.append([m.part(at, 64) for m in memory])
                continue
            assert isinstance(kind, Scalar)
            word = r.choice(EDGES) if r.random() < 0.4 else r.getrandbits(32)
            if kind.kind == "float":
                arguments.append(struct.unpack("<f", struct.pack("<I", word & 0xFF7FFFFF))[0])
            elif kind.kind == "bool":
                arguments.append(bool(word & 1))
            else:
                value = (word | r.getrandbits(32) << 32) & ((1 << kind.bits) - 1)
                arguments.append(value - ((value > kind.high) << kind.bits))
        try:
            want = checked(function, *[a[0] if isinstance(a, list) else a for a in arguments])
        except Trap:
            continue  # outside what the body is defined for
        assert chip(function, *[a[1] if isinstance(a, list) else a for a in arguments]) == want, arguments
        agreed += 1
    assert agreed > 100
