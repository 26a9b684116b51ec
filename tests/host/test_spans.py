"""What a traced run becomes in a timeline: each release once, with what became of it."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import synapticos as syn
from synapticos.host.report import Report, Result, Step
from synapticos.host.spans import job_spans

MODEL = Path(__file__).parents[2] / "examples" / "hello_world" / "sine.tflite"


@pytest.fixture
def app():
    app = syn.App("two")
    rows = app.frames("rows", (1, 1), "int8")
    sine = app.model(MODEL)
    slow = app.pipeline("slow", rows).model(sine)
    app.job(slow, every=100 * syn.ms, phase=10 * syn.ms, deadline=50 * syn.ms, late="skip")
    return app


def step(release, begin, end, layer=0):
    return Step("slow", release, 0, layer, begin, end)


def test_each_release_is_there_once_and_says_what_became_of_it(app):
    report = Report("board", SimpleNamespace(jobs=app.jobs), [], 1, {})  # type: ignore[arg-type]
    done = Result("slow", 0, np.zeros(0), [], release_us=10_000, finish_us=30_000)
    report.results = [done]
    report.steps = [
        step(10_000, 11_000, 20_000), step(10_000, 20_000, 29_000, 1),  # done
        step(110_000, 170_000, 170_001),  # skipped: its only poll ended it
        step(210_000, 211_000, 259_000), step(210_000, 262_000, 262_001, 1),  # begun, and ended by its deadline
    ]  # fmt: skip
    spans = job_spans(report, 400_000)
    assert [(s.release_us, s.outcome, s.missed) for s in spans] == [
        (10_000, "done", False), (110_000, "skipped", True), (210_000, "aborted", True), (310_000, "dropped", True),
    ]  # fmt: skip
    assert [len(s.steps) for s in spans] == [2, 0, 1, 0]
    assert spans[0].steps[1].name == "sine 1" and spans[0].end_us == 30_000 and spans[0].deadline_us == 60_000
