"""From Python: how long an empty job takes from its submission to its result, and how late an urgent one is beside a long one.

Times are of this machine and of what else it does; a thread pool and the length of a step are measured in the same run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import synapticos as syn

ROUNDS = 20_000
PERIOD = 0.005  # s, of the urgent job
SECONDS = 10.0  # that the long one runs, over and over


def at(sorted_ns: list[int], part: float) -> float:
    """Microseconds below which `part` of them lie."""
    return sorted_ns[min(int(len(sorted_ns) * part), len(sorted_ns) - 1)] / 1000


def timed(call: Callable[[], Any], rounds: int) -> list[int]:
    for _ in range(rounds // 20):
        call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)


def networks(folder: Path) -> tuple[Path, Path]:
    """One that does next to nothing, and one of 60 convolutions of equal length."""
    from make_test_model import RELU, Layers
    from tflite_writer import Writer

    w = Writer()
    x, y = w.tensor("x", (1, 8), 0.5), w.tensor("y", (1, 8), 0.5)
    w.op("RELU", [x], [y], 1)
    (folder / "small.tflite").write_bytes(w.finish([x], [y]))
    m = Layers(3)
    first = at_last = m.tensor("picture", (1, 32, 32, 16), 0.0078125, -1)
    for i in range(60):
        at_last = m.conv(f"c{i}", at_last, 16, (3, 3), activation=RELU)
    (folder / "long.tflite").write_bytes(m.finish([first], [at_last]))
    return folder / "small.tflite", folder / "long.tflite"


def figures(seconds: float = SECONDS, rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds, by what they are of."""
    with TemporaryDirectory() as scratch:
        small, long = networks(Path(scratch))
        app = syn.App("latency")
        quick = app.pipeline("quick", app.frames("x", (1, 8))).model(app.model(small))
        slow = app.pipeline("slow", app.frames("picture", (1, 32, 32, 16))).model(app.model(long))
        app.job(quick, priority=syn.REALTIME)
        app.job(slow)
        out = {}
        with syn.Runtime(app) as rt, ThreadPoolExecutor(1) as pool:
            x, picture = np.zeros((1, 8), np.int8), np.zeros((1, 32, 32, 16), np.int8)
            times = timed(lambda: rt.submit("quick", x).result(), rounds)
            out["empty job, submit to result, median"] = at(times, 0.5)
            out["empty job, submit to result, 99th percentile"] = at(times, 0.99)
            out["thread pool, submit to result, median"] = at(timed(lambda: pool.submit(int).result(), rounds // 10), 0.5)
            rt.run("slow", picture)
            out["one step of the long job"] = at(timed(lambda: rt.run("slow", picture), 20), 0.5) / 60
            late, end = [], time.perf_counter() + seconds
            running = threading.Thread(target=lambda: [rt.run("slow", picture) for _ in iter(lambda: time.perf_counter() < end, False)])
            running.start()
            while time.perf_counter() < end:
                start = time.perf_counter_ns()
                rt.submit("quick", x).result()
                late.append(time.perf_counter_ns() - start)
                time.sleep(max(PERIOD - (time.perf_counter_ns() - start) / 1e9, 0))
            running.join()
        late.sort()
        out["urgent job beside it, median"] = at(late, 0.5)
        out["urgent job beside it, 99th percentile"] = at(late, 0.99)
    return out
