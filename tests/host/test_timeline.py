"""Timelines: what is in the picture and in the trace. How it looks is for eyes."""

import json
import xml.etree.ElementTree as xml

import pytest
from synapticos.errors import UserError
from synapticos.host.timeline import LATE, MOST, JobSpan, StepSpan, draw_timeline, draw_timelines, write_trace

SVG = "{http://www.w3.org/2000/svg}"


def steps(*spans):
    return tuple(StepSpan(name, begin, end) for name, begin, end in spans)


JOBS = [
    JobSpan("wake <word>", 1, 0, 3000, 5000, steps=steps(("mfcc", 0, 1000), ("conv & co", 2000, 3000))),
    JobSpan("wake <word>", 2, 4000, 9500, 9000, steps=steps(("mfcc", 8000, 9500))),
    JobSpan("visitor", 3, 0, None, None, "open", steps(("fit", 1000, 2000),)),
    JobSpan("visitor", 4, 6000, 6100, 7000, "skipped"),
]


def boxes(path, colour=None):
    found = [e for e in xml.parse(path).iter(SVG + "rect") if e.find(SVG + "title") is not None]
    return [e for e in found if colour is None or e.get("fill") == colour]


def test_every_step_is_a_box_and_what_is_late_is_red(tmp_path):
    draw_timeline(JOBS, tmp_path / "t.svg", title='a "title" <&>')
    assert len(boxes(tmp_path / "t.svg")) == 5  # the late one is cut in two at its deadline
    (late,) = boxes(tmp_path / "t.svg", LATE)
    whole = next(b for b in boxes(tmp_path / "t.svg") if b.find(SVG + "title").text.endswith("fit: 1,000.0 us"))
    assert float(late.get("width")) == pytest.approx(float(whole.get("width")) / 2, rel=0.01)
    text = (tmp_path / "t.svg").read_text()
    assert "2 missed" in text and "1 of 2 missed" in text and "skipped" in text and "a &quot;title&quot; &lt;&amp;&gt;" in text


def test_a_part_of_the_time_shows_only_that(tmp_path):
    draw_timeline(JOBS, tmp_path / "t.svg", begin_us=2500, end_us=8500)
    assert len(boxes(tmp_path / "t.svg")) == 2
    with_all = [float(b.get("x")) + float(b.get("width")) for b in boxes(tmp_path / "t.svg")]
    assert max(with_all) <= 1200


def test_panels_share_the_axis_and_the_colours(tmp_path):
    draw_timelines([("off", JOBS), ("on", JOBS[:1])], tmp_path / "t.svg", order=["visitor"])
    assert {b.get("fill") for b in boxes(tmp_path / "t.svg")} == {"#0072b2", "#e69f00", LATE}
    draw_timelines([("nothing", [])], tmp_path / "empty.svg")
    assert boxes(tmp_path / "empty.svg") == []


def test_more_than_a_picture_can_show_is_refused(tmp_path):
    many = [JobSpan("a", 1, 0, steps=steps(*(("s", i, i + 1) for i in range(MOST + 1))))]
    with pytest.raises(UserError, match="draw less time"):
        draw_timeline(many, tmp_path / "t.svg")
    assert not (tmp_path / "t.svg").exists()


def test_a_trace_has_steps_jobs_and_misses(tmp_path):
    write_trace(JOBS, tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    of = {ph: [e for e in events if e["ph"] == ph] for ph in "MXibe"}
    assert [(e["name"], e["ts"], e["dur"]) for e in of["X"] if e["tid"] == 1] == [("mfcc", 0, 1000), ("conv & co", 2000, 1000), ("mfcc", 8000, 1500)]
    assert sum(e["name"].endswith("released") for e in of["i"]) == 4
    assert sorted(e["name"] for e in of["i"] if e["name"].endswith("missed")) == ["visitor 4 missed", "wake <word> 2 missed"]
    assert len(of["b"]) == len(of["e"]) == 3
    assert {e["args"]["name"] for e in of["M"]} == {"SynapticOS", "wake <word>", "visitor"}
