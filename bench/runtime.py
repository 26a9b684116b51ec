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


def woken(pause: Callable[[], Any], rounds: int) -> list[int]:
    """How long after `Event.set` a thread runs that waits for it, `pause()` after it was woken before: the machine's own floor."""
    event, late, sent = threading.Event(), [], 0

    def wait() -> None:
        for _ in range(rounds):
            event.wait()
            late.append(time.perf_counter_ns() - sent)
            event.clear()

    thread = threading.Thread(target=wait)
    thread.start()
    for i in range(rounds):
        while len(late) < i:
            time.sleep(0.0001)
        pause()
        sent = time.perf_counter_ns()
        event.set()
    thread.join()
    return sorted(late)


def beside(rt: syn.Runtime, picture: np.ndarray, seconds: float, urgent: Callable[[float], None]) -> None:
    """`urgent(end)` while another thread runs the long job over and over, until `end` by `perf_counter`."""
    end = time.perf_counter() + seconds

    def work() -> None:
        while time.perf_counter() < end:
            rt.run("slow", picture)

    thread = threading.Thread(target=work)
    thread.start()
    urgent(end)
    thread.join()


def submitted(rt: syn.Runtime, x: np.ndarray, picture: np.ndarray, seconds: float) -> list[int]:
    """From the submission of an urgent job to its result, each PERIOD anew."""
    late = []

    def urgent(end: float) -> None:
        while time.perf_counter() < end:
            start = time.perf_counter_ns()
            rt.submit("quick", x).result()
            late.append(time.perf_counter_ns() - start)
            time.sleep(max(PERIOD - (time.perf_counter_ns() - start) / 1e9, 0))

    beside(rt, picture, seconds, urgent)
    return sorted(late)


def released(rt: syn.Runtime, x: np.ndarray, picture: np.ndarray, seconds: float) -> list[int]:
    """From the nominal time of an urgent job that the kernel begins each PERIOD to the call of who wants to hear of it."""
    late = []
    rt.run("slow", picture)
    clock = rt.kernel.clock  # its counter is that of `monotonic`, in microseconds
    boot = (int(clock.last) - int(clock.ticks)) & 0xFFFFFFFF

    def heard(done: Any) -> None:
        now = time.monotonic_ns()
        nominal = boot + rt.live.origin + done.release_us
        late.append(((now // 1000 - nominal) & 0xFFFFFFFF) * 1000)

    rt.on("quick", heard)
    rt.start()
    rt.push("x", x)
    beside(rt, picture, seconds, lambda end: time.sleep(seconds))
    return sorted(late)


def figures(seconds: float = SECONDS, rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds, by what they are of."""
    with TemporaryDirectory() as scratch:
        small, long = networks(Path(scratch))

        def app(**when: Any) -> syn.App:
            made = syn.App("latency")
            quick = made.pipeline("quick", made.frames("x", (1, 8))).model(made.model(small))
            slow = made.pipeline("slow", made.frames("picture", (1, 32, 32, 16))).model(made.model(long))
            made.job(quick, priority=syn.REALTIME, **when)
            made.job(slow)
            return made

        out = {}
        x, picture = np.zeros((1, 8), np.int8), np.zeros((1, 32, 32, 16), np.int8)
        with syn.Runtime(app()) as rt, ThreadPoolExecutor(1) as pool:
            times = timed(lambda: rt.submit("quick", x).result(), rounds)
            out["empty job, submit to result, median"] = at(times, 0.5)
            out["empty job, submit to result, 99th percentile"] = at(times, 0.99)
            out["thread pool, submit to result, median"] = at(timed(lambda: pool.submit(int).result(), rounds // 10), 0.5)
            rt.run("slow", picture)
            out["one step of the long job"] = at(timed(lambda: rt.run("slow", picture), 20), 0.5) / 60
            late = submitted(rt, x, picture, seconds)
        out["urgent job beside it, submit to result, median"] = at(late, 0.5)
        out["urgent job beside it, submit to result, 99th percentile"] = at(late, 0.99)
        with syn.Runtime(app(every=int(PERIOD * 1e6) * syn.us)) as rt:
            late = released(rt, x, picture, seconds)
        out["urgent job beside it, release to callback, median"] = at(late, 0.5)
        out["urgent job beside it, release to callback, 99th percentile"] = at(late, 0.99)
        late = woken(lambda: time.sleep(PERIOD), min(int(seconds / PERIOD), 1000))
        out["waking a thread by an Event each 5 ms, median"] = at(late, 0.5)
        out["waking a thread by an Event each 5 ms, 99th percentile"] = at(late, 0.99)
    return out
