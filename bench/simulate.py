"""Virtual time: how much faster than real time an app runs."""

from __future__ import annotations

from pathlib import Path

import synapticos as syn
from synapticos.analysis.tasks import SECOND, TaskSet
from synapticos.host.simulate import Simulator, seeded, streams

SINE = Path(__file__).resolve().parents[1] / "examples" / "hello_world" / "sine.tflite"
MS = 1_000_000


def pair() -> Simulator:
    """A wake word each 30 ms, twenty steps of 0.3 ms, and a detector each 500 ms, thirty steps of 6.7 ms: 60 % load."""
    app = syn.App("pair")
    sound = app.frames("sound", (1, 1), "int8", every=30 * syn.ms)
    heard = app.pipeline("heard", sound).model(app.model(SINE)).dequantize()
    seen = app.pipeline("seen", app.frames("picture", (1, 1), "int8", every=500 * syn.ms)).model(app.model(SINE, name="other")).dequantize()
    app.job(heard, on=sound, priority=syn.REALTIME, deadline=30 * syn.ms)
    app.job(seen, every=500 * syn.ms, priority=syn.BEST_EFFORT, deadline=400 * syn.ms)

    def cost(polls: int, ns: int) -> dict[tuple[int, int | None], list[int]]:
        return {(0, 0): [ns] * (polls - 3), (0, 1): [ns], (0, 2): [ns], (1, None): [ns]}

    return Simulator(app, TaskSet((), name="pair"), {"heard": cost(20, 300_000), "seen": cost(30, 20 * MS // 3)})


def figures() -> dict[str, str]:
    """The fastest of three runs."""
    simulator = pair()
    given = streams(simulator.image, simulator.tasks, [])
    made = min((simulator.run(3600 * SECOND, seeded(given, 3600 * SECOND, 0)) for _ in range(3)), key=lambda m: m.took)
    return {
        f"an hour of two jobs at {made.load:.0%} load: times real time": f"{made.factor:,.0f}",
        "- steps a second of real time": f"{round(made.steps / made.took, -3):,.0f}",
    }
