"""What a wrong trigger is told, and what a right one becomes in the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import synapticos as syn
from synapticos.app.image import compile_app
from synapticos.errors import UserError
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, i8, i16

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"


@syn.stage
def one(mic: Shaped[Array[i16], 8], out: Shaped[Array[i8], 1, 1]) -> Status:
    out[0, 0] = 1
    return Status.OK


@pytest.fixture
def app():
    made = syn.App("app")
    made.x = made.frames("x", (1, 1), "int8", every=5 * syn.ms)
    made.other = made.frames("other", (1, 1), "int8")
    made.m = made.model(SINE)
    made.p = made.pipeline("p", made.x).model(made.m)
    return made


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(every=5, on="x"), "one thing releases a job"),
        (dict(on="other"), 'released by the source that it reads, "x"'),
        (dict(phase=3), "phase is less than every"),
        (dict(every=5, phase=5), "phase is less than every"),
        (dict(jitter=3), "nothing releases it"),
        (dict(every=1.5), "every is whole microseconds"),
        (dict(late="run"), 'late is "finish", "abort" or "skip"'),
        (dict(late="skip"), "say deadline= too"),
        (dict(queue="fifo"), 'queue is "oldest", "newest" or "coalesce"'),
        (dict(depth=0), "depth is a whole number from 1 to 64"),
        (dict(queue="coalesce", depth=2), "leave depth=2 out"),
        (dict(enabled=1), "enabled is True or False"),
        (dict(preemptible="no"), "preemptible is True or False"),
        (dict(priority=7), "priority is syn.REALTIME"),
    ],
)
def test_a_wrong_job_is_refused_in_a_line(app, options, words):
    options = {k: getattr(app, v) if k == "on" else v for k, v in options.items()}
    with pytest.raises(UserError, match=words) as told:
        app.job(app.p, **options)
    assert "\n" not in str(told.value) and str(told.value).startswith('job of "p"')
    assert app.jobs == []


def test_a_second_job_is_refused(app):
    app.job(app.p, every=5)
    with pytest.raises(UserError, match="has a job already"):
        app.job(app.p, on=app.x)


def test_one_pipeline_has_one_job(app):
    """Two would give each result twice."""
    app.job(app.p)
    with pytest.raises(UserError, match='job of "p": has a job already; give one pipeline one job, and for another a pipeline of its own'):
        app.job(app.p)


def test_an_app_without_triggers_is_as_before(app):
    job = app.job(app.p, deadline=5)
    image = compile_app(app)
    assert not job.released and not image.clocked and image.feeds == [] and image.parameters["RELEASES"] == image.parameters["FEEDS"] == 0


def test_a_microphone_releases_its_jobs_unless_a_clock_does():
    for every, on in ((0, True), (20 * syn.ms, False)):
        app = syn.App("app")
        mic = app.microphone("mic", rate=16_000, window=8, hop=4)
        job = app.job(app.pipeline("heard", mic).stage(one).model(app.model(SINE)), every=every)
        assert (job.on is mic) == on and job.period_us == (every or 250)


def test_entries_are_as_many_as_can_be_in_use(app):
    app.job(app.p, on=app.x, depth=2)
    app.job(app.pipeline("q", app.x).model(app.m), every=syn.ms)
    image = compile_app(app)
    assert [(f.source.name, f.keep) for f in image.feeds] == [("x", 1 + 3 + 2)]
    assert image.before_frames == 6 * 16 + image.result_bytes * image.slots
    app.x.keep = 2
    assert compile_app(app).feeds[0].keep == 2


def test_a_front_end_is_as_urgent_as_its_most_urgent_reader():
    app = syn.App("app")
    mic = app.microphone("mic", window=8)
    model = app.model(SINE)
    ear = app.pipeline("ear", mic).stage(one).feed("ear_out")
    app.job(app.pipeline("a", ear).model(model), priority=syn.NORMAL)
    app.job(app.pipeline("b", ear).model(model), priority=syn.REALTIME)
    assert [(j.pipeline.name, j.priority) for j in app.jobs] == [("ear", 2), ("a", 1), ("b", 2)]
    assert app.jobs[1].period_us == app.jobs[0].period_us == 500
    with pytest.raises(UserError, match="more urgent"):
        app.job(ear, priority=syn.BEST_EFFORT)
    with pytest.raises(UserError, match="ends in"):
        ear.pipeline.feed("again")
    with pytest.raises(UserError, match='ends in feed "ear_out"; say this step before'):
        ear.pipeline.model(model)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda app, p: p.feed("f"), "a front end has stages and no model"),
        (lambda app, p: app.pipeline("q", app.x).feed("f"), "can be read as it is"),
        (lambda app, p: app.pipeline("q", app.x).model(app.m).crop(1, 1), "comes first"),
        (lambda app, p: app.microphone("m", window=8, hop=4, keep=1), "overlap"),
        (lambda app, p: app.microphone("m", window=0), "window is a whole number"),
        (lambda app, p: app.frames("f", (1,), every=-1), "every is whole"),
    ],
)
def test_a_wrong_source_is_refused(app, make, words):
    with pytest.raises(UserError, match=words):
        make(app, app.p)
