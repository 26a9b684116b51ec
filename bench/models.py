"""Networks: time on the host beside TensorFlow Lite Micro in the same run, and instructions a layer on the Cortex-M33."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from synapticos import importers
from synapticos.engine import Build, Engine
from synapticos.kernel.container import ModelMemory
from synapticos.kernel.cpu import cpu_load, cpu_run
from synapticos.kernel.status import Status
from synapticos.lang import *
from synapticos.model import compile_model

FOUR = ("hello_world_int8", "digits_cnn_int8", "person_detect_int8", "face_blazeface_int8")


@fn
def bench_memory(m: ModelMemory, container: Ptr[u8], size: u32, frame: Ptr[u8], frame_bytes: u32, scratch: Ptr[u8], scratch_bytes: u32, given: Ptr[u8], given_bytes: u32) -> None:
    m.container = container
    m.container_bytes = size
    m.frame = frame
    m.frame_bytes = frame_bytes
    m.scratch = scratch
    m.scratch_bytes = scratch_bytes
    m.input = given
    m.input_bytes = given_bytes
    m.persistent = frame
    m.persistent_bytes = 0


@fn
def bench_step(m: ModelMemory, step: u32, rows: u32) -> Status:
    return cpu_run(m, step, 0, rows)


@fn
def bench_model(m: ModelMemory, rows: Ptr[u32], steps: u32) -> Status:
    """All steps of a model, one after another."""
    for step in range(steps):
        check(cpu_run(m, step, 0, rows[step]))
    return Status.OK


@fn
def bench_load(m: ModelMemory) -> Status:
    return cpu_load(m)


@fn
def bench_nothing(m: ModelMemory, step: u32, rows: u32) -> Status:
    return Status.OK


@fn
def bench_dot(a: Ptr[i8], b: Ptr[i8], n: u32) -> i32:
    """One multiply-accumulate after another."""
    acc: i32 = 0
    for k in range(n):
        acc += i32(a[k]) * b[k]
    return acc


ROOTS = [bench_memory, bench_step, bench_model, bench_load, bench_nothing, bench_dot]


class Loaded:
    """A model in an engine's memory, ready to run."""

    def __init__(self, e: Engine, path: Path) -> None:
        self.e = e
        self.model = compile_model(importers.load(path))
        self.graph = self.model.graph
        self.m = e.new(ModelMemory)
        given = sum(-(-t.bytes // 16) * 16 for t in self.graph.inputs)
        noise = np.random.default_rng(1).integers(-128, 128, max(given, 16)).astype(np.int8)
        self.keep = [e.array(u8, self.model.container), e.array(u8, max(self.model.frame_bytes, 16)), e.array(u8, max(self.model.scratch_bytes, 16)), e.array(u8, noise.tobytes())]
        c, f, s, g = self.keep
        e(bench_memory, self.m, c, len(c), f, len(f), s, len(s), g, len(g))
        assert e(bench_load, self.m) == Status.OK
        self.rows = e.array(u32, [layer.rows for layer in self.model.layers])
        self.run = e.prepare(bench_model, self.m, self.rows, len(self.rows))


def best(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """Seconds of one call: the lower quartile of rounds that fill `seconds`."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    inner = max(1, int(0.01 / once))
    rounds = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds) < 3:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        rounds.append((time.perf_counter() - start) / inner)
    return statistics.quantiles(rounds, n=4)[0] if len(rounds) > 3 else min(rounds)


def judge(path: Path) -> Callable[[], Any] | None:
    """One inference of the same file by TensorFlow Lite Micro, or None where it has no wheel."""
    try:
        from tflite_micro.python.tflite_micro import runtime
    except ImportError:
        return None
    interpreter = runtime.Interpreter.from_file(str(path), arena_size=4 << 20)
    graph = importers.load(path)
    for i, t in enumerate(graph.inputs):
        interpreter.set_input(np.random.default_rng(1).integers(-128, 128, t.shape).astype(np.int8), i)
    return interpreter.invoke


def host(folder: Path) -> list[dict[str, Any]]:
    e = Build(ROOTS).engine("native")
    rows = []
    for name in FOUR:
        path = folder / f"{name}.tflite"
        if not path.exists():
            continue
        loaded = Loaded(e, path)
        peer = judge(path)
        ours = best(loaded.run)
        theirs = best(peer) if peer else None
        ours = min(ours, best(loaded.run))
        macs = sum(layer.cost for layer in loaded.model.layers)
        rows.append({"model": name, "work": macs, "us": ours * 1e6, "tflite_micro_us": theirs and theirs * 1e6, "ratio": theirs and theirs / ours})
    return rows


def checked_rate(n: int = 100_000) -> float:
    """Multiply-accumulates a second on the checked engine."""
    e = Build([bench_dot]).engine("checked")
    a = e.array(i8, np.arange(n).astype(np.int8))
    b = e.array(i8, np.arange(n)[::-1].astype(np.int8))
    return n / best(lambda: e(bench_dot, a, b, n), 2.0)


def layers(folder: Path) -> list[dict[str, Any]]:
    """Instructions of each layer on the Cortex-M33, exact."""
    e: Any = Build(ROOTS).engine("cortex-m")
    rows = []
    for name in FOUR:
        path = folder / f"{name}.tflite"
        if not path.exists():
            continue
        loaded = Loaded(e, path)
        e(bench_nothing, loaded.m, 0, 1)
        call = e.instructions
        for i, layer in enumerate(loaded.model.layers):
            assert e(bench_step, loaded.m, i, layer.rows) == Status.OK
            rows.append({"model": name, "step": i, "kind": loaded.model.program.ops[i].kind if hasattr(loaded.model, "program") else "", "work": layer.cost, "instructions": e.instructions - call})
    return rows
