"""What the fuzzers share: a sanitized engine in this process, and one call that loads and runs a container.

Run by `test_fuzz.py` in a process of its own (the first bad access ends it), or by hand:

    python tests/fuzz/containers.py --cases 100000 --seed 7
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from synapticos import toolchain
from synapticos.engine import Build
from synapticos.errors import UserError
from synapticos.kernel.container import Header, ModelMemory, TensorRecord
from synapticos.kernel.cpu import cpu_clear, cpu_load, cpu_rows, cpu_run, cpu_steps, header_status
from synapticos.kernel.status import Status
from synapticos.lang import Ptr, fn, layout, local, sizeof, u8, u32, unpack

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "kernel" / "layers"), str(TESTS.parent / "tools")]
from layer_calls import give  # noqa: E402

MOST = 1 << 18  # bytes of a space that a run is given; who asks for more is accepted only
RECORD = sizeof(TensorRecord)
OFFSET_AT = next(at for name, at, *_ in layout(TensorRecord) if name == "offset")
HEADER_AT = {name: offset for name, offset, *_ in layout(Header)}


@fn
def fuzz_stage(container: Ptr[u8], size: u32, frame: Ptr[u8], frame_bytes: u32, scratch: Ptr[u8], scratch_bytes: u32,
               given: Ptr[u8], given_bytes: u32, state: Ptr[u8], state_bytes: u32, run: bool) -> tuple[u32, Status]:  # fmt: skip
    """How far a container gets, and why not further: 0 nowhere, 1 past header and checksums, 2 accepted, 3 run to its end."""
    m = local(ModelMemory)
    give(m, container, size, frame, frame_bytes, scratch, scratch_bytes, given, given_bytes, state, state_bytes)
    status = header_status(m)
    if status != Status.OK:
        return 0, status
    status = cpu_load(m)
    if status != Status.OK:
        return 1, status
    if not run:
        return 2, status
    status = cpu_clear(m)
    for step in range(cpu_steps(m)):
        if status == Status.OK:
            rows = cpu_rows(m, step)
            half = rows // 2  # in two pieces, as a scheduler may
            if half != 0:
                status = cpu_run(m, step, 0, half)
            if status == Status.OK:
                status = cpu_run(m, step, half, rows)
    if status != Status.OK:
        return 2, status
    return 3, status


class Sanitized:
    """The kernel under AddressSanitizer and UndefinedBehaviorSanitizer. Each buffer is an allocation of exactly its size."""

    def __init__(self, sanitize: tuple[str, ...] = ("address", "undefined")) -> None:
        self.e = Build([fuzz_stage]).engine("native", sanitize=sanitize, **({"compiler": "gcc"} if sanitize else {}))

    def array(self, n: int) -> Any:
        return self.e.array(u8, bytes([0xA5]) * max(n, 1))

    def take(self, container: bytes) -> tuple[int, Status]:
        """As `fuzz_stage`, with the memory that the container asks for."""
        sizes, given = [0, 0, 0], 0
        if len(container) >= sizeof(Header):
            header = unpack(Header, container[: sizeof(Header)])
            sizes = [header["frame_bytes"], header["scratch_bytes"], header["persistent_bytes"]]
            given = self._input_bytes(container, header)
        run = max(*sizes, given) <= MOST
        blob = self.e.array(u8, container or b"\0")
        frame, scratch, state = (self.array(n if run else 1) for n in sizes)
        x = self.array(given if run else 1)
        level, status = self.e(
            fuzz_stage, blob, len(container), frame, sizes[0], scratch, sizes[1], x, given, state, sizes[2], run
        )
        assert bytes(blob) == (container or b"\0"), "the container was written to"
        return int(level), Status(int(status))

    @staticmethod
    def _input_bytes(container: bytes, header: dict[str, Any]) -> int:
        """What a caller would give: where the last input ends, by the container's own word."""
        need = 0
        for i in range(min(header["inputs"], 8)):
            entry = header["lists_at"] + 2 * i
            at = header["tensors_at"] + int.from_bytes(container[entry : entry + 2], "little") * RECORD
            if at + RECORD <= len(container):
                offset, size = struct.unpack_from("<II", container, at + OFFSET_AT)
                need = max(need, offset + size)
        return min(need, 1 << 31)


def sealed(data: bytes | bytearray) -> bytes:
    """The container with its checksums made right."""
    data = bytearray(data)
    size = sizeof(Header)
    if len(data) < size:
        return bytes(data)
    for name, value in (("payload_crc", zlib.crc32(bytes(data[size:]))), ("header_crc", 0)):
        data[HEADER_AT[name] : HEADER_AT[name] + 4] = value.to_bytes(4, "little")
    at = HEADER_AT["header_crc"]
    data[at : at + 4] = zlib.crc32(bytes(data[:size])).to_bytes(4, "little")
    return bytes(data)


def arguments(doc: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="stop after so long, however many cases are left")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--keep", type=Path, help="write the case that fails into this file")
    return parser.parse_args()


def report(counts: Counter[str], began: float) -> None:
    print(json.dumps({**dict(sorted(counts.items())), "seconds": round(time.monotonic() - began, 1)}))


def run_sanitized(script: str, *options: str) -> dict[str, Any]:
    """Run a fuzzer in a child under gcc's sanitizers: what it counted. Raises AssertionError with what they found."""
    import pytest

    try:
        chain = toolchain.find("host", "gcc")
    except UserError:
        pytest.skip("the sanitizers' runtime is gcc's, and there is no gcc")
    extra = chain.sanitizer_environment()
    if not extra:
        pytest.skip("gcc has no libasan here")
    ran = subprocess.run(
        [sys.executable, str(HERE / script), *options],
        env=os.environ | extra | {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, f"{script} {' '.join(options)}\n{ran.stdout[-2000:]}\n{ran.stderr[-6000:]}"
    assert "runtime error" not in ran.stderr, ran.stderr[-4000:]
    return dict(json.loads(ran.stdout.splitlines()[-1]))
