"""What `syn check` charges is what polls take: each poll of a run on the emulated board against the sum of what was in it."""

from __future__ import annotations

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polls_program as board_side
import pytest

import synapticos as syn
from synapticos import boards, lang, toolchain
from synapticos.analysis.cycles import Costs, timing
from synapticos.app import clock, program
from synapticos.app.image import compile_app, run_rows
from synapticos.emulator import Machine
from synapticos.emulator.meter import Meter
from synapticos.host.clock import plan_run
from synapticos.host.firmware import firmware_parameters, link_program
from synapticos.host.measure import _symbol, measure
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8, i16, i32, sat, u8, u32

SINE = Path(__file__).resolve().parents[2] / "examples" / "hello_world" / "sine.tflite"
pytestmark = pytest.mark.skipif(
    not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"), reason="needs compilers for Cortex-M and for this machine"
)


@syn.stage
def peak(mic: Shaped[Array[i16], 64], out: Shaped[Array[i8], 1, 1]) -> Status:
    top: i32 = 0
    for i in range(64):
        top = max(top, i32(mic[i]))
    out[0, 0] = sat(i8, top >> 8)
    return Status.OK


@syn.stage
def slowly(x: Shaped[Array[i8], 1, 1], out: Shaped[Array[i8], 1, 1]) -> Status:
    """Some three milliseconds."""
    y: u32 = 1
    for i in range(20000):
        y = (y * 5 + u32(i)) & 0xFFFF
    out[0, 0] = i8(u32(x[0, 0] & 31) + (y & 1))
    return Status.OK


@syn.stage
def first(cam: Shaped[Array[u8], 8, 8], out: Shaped[Array[i8], 1, 1]) -> Status:
    out[0, 0] = i8(cam[0, 0] & 7)
    return Status.OK


@syn.stage
def find(y: Shaped[Array[i8], 1, 1], out: Shaped[Array[f32], 8, 6]) -> tuple[Status, u32]:
    for i in range(4):
        out[i, 0] = f32(i)
        out[i, 1] = f32(i)
        out[i, 2] = f32(i + 2)
        out[i, 3] = f32(i + 2)
        out[i, 4] = f32(y[0, 0] & 1)
        out[i, 5] = 0.0
    return Status.OK, 4


@syn.stage
def corner(cam: Shaped[Array[u8], 2, 2], out: Shaped[Array[i8], 1, 1]) -> Status:
    out[0, 0] = i8(cam[0, 0] & 63)
    return Status.OK


def doorbell(tmp_path) -> syn.App:
    """Sound with a front end for three that read it, pictures with a detector and what looks at its boxes; too much of all."""
    with wave.open(str(tmp_path / "sound.wav"), "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes((np.sin(np.arange(8000) / 7) * 30000).astype("<i2").tobytes())
    (tmp_path / "cam.raw").write_bytes((np.arange(6 * 64) % 100).astype(np.uint8).tobytes())
    app = syn.App("bell")
    mic = app.microphone("mic", rate=8000, window=64, hop=48, file=tmp_path / "sound.wav")
    cam = app.frames("cam", (1, 8, 8, 1), "uint8", file=tmp_path / "cam.raw", every=11 * syn.ms)
    model = app.model(SINE, outputs=("y",))
    loud = app.pipeline("front", mic).stage(peak).feed("loud")
    app.job(app.pipeline("heard", loud).model(model), deadline=1 * syn.ms, priority=syn.REALTIME, late="abort")
    app.job(app.pipeline("skipped", loud).stage(slowly).model(model), deadline=4 * syn.ms, late="skip", queue="newest", depth=2)
    app.job(app.pipeline("clocked", loud).stage(slowly).model(model), every=7 * syn.ms, phase=2 * syn.ms, deadline=6 * syn.ms, depth=2)
    detector = app.pipeline("detector", cam).stage(first).model(model).stage(find)
    app.job(detector, on=cam, deadline=5 * syn.ms, queue="coalesce")
    reader = app.pipeline("reader", cam).crop(2, 2).stage(corner).model(model)
    app.cascade("boxes", detector, each=reader, most=3, priority=syn.BEST_EFFORT, deadline=9 * syn.ms, late="abort")
    rare = app.pipeline("rare", cam).stage(first).stage(slowly).model(model)
    app.job(rare, every=13 * syn.ms, priority=syn.BEST_EFFORT, deadline=12 * syn.ms, late="abort")
    return app


def simple(tmp_path) -> syn.App:
    """Few jobs: a build without queues of its own, by the clock only."""
    (tmp_path / "x.raw").write_bytes(bytes(range(100)))
    app = syn.App("simple")
    x = app.frames("x", (1, 1), "int8", file=tmp_path / "x.raw", every=3 * syn.ms)
    model = app.model(SINE, outputs=("y",))
    app.job(app.pipeline("a", x).model(model), every=3 * syn.ms, deadline=3 * syn.ms, priority=syn.REALTIME)
    app.job(app.pipeline("b", x).stage(slowly).model(model), every=4 * syn.ms, deadline=4 * syn.ms)
    return app


@dataclass
class Polls:
    app: syn.App
    costed: object
    records: list[dict]
    cycles: list[int]


def run(app: syn.App, board_name: str = "mps2-an521") -> Polls:
    from synapticos.compiler import Program

    board = boards.find(board_name)
    chosen = timing(board)
    _, costed = measure(app, chosen, board_name)
    image = compile_app(app, slots=len(app.jobs), enforce=False)
    rows, inputs = run_rows(image)
    parameters = firmware_parameters(image, inputs, False)
    if parameters.get("GUARD"):
        board = board.guarded()
    blobs = {program.TABLES: image.tables, program.CONTAINERS: image.containers, program.RUNS: rows}
    beside = [clock.run_all_by_clock]  # what it polls by is compiled as in firmware, which has several calls of it
    made = Program.of([board_side.main, *beside], parameters, 4, image.lean_tables, blobs)
    elf, _ = link_program(made, board_side.main, board, toolchain.find(board.target), beside)
    machine = Machine(elf, board, files=plan_run(image, {}).files())
    costs = Costs(machine.image, chosen)
    meter = Meter(machine.cpu, costs, begins=[_symbol(machine.image, "counted_poll")[0]], inside=[_symbol(machine.image, "note_poll")])
    done = machine.run()
    assert done.code == 0, done.text + done.reason
    data, size = done.files["polls"], lang.sizeof(board_side.PollRecord)
    records = [lang.unpack(board_side.PollRecord, data, at) for at in range(0, len(data), size)]
    assert len(records) == len(meter.pieces())
    return Polls(app, costed, records, [cycles for _, _, cycles in meter.pieces()])


def charged(polls: Polls, record: dict) -> int:
    """Cycles that one poll takes at most, by what was in it."""
    app, costed = polls.app, polls.costed
    names = list(app.pipelines)
    total = costed.idle
    if record["pipeline"] != board_side.NOBODY:
        steps = costed.steps[names[record["pipeline"]]]
        layer = app.pipelines[names[record["pipeline"]]].steps[record["stage"]].model is not None
        mine = [s for s in steps if s.stage == record["stage"] and (not layer or (s.layer, s.row) == (record["step"], record["row"]))]
        total = max(s.bound or s.most for s in mine) + costed.crowd + (0 if record["begun"] else costed.resume)
    for j, (job, events) in enumerate(zip(app.jobs, costed.jobs, strict=True)):
        total += record["started"][j] * events.begun + record["missed"][j] * events.late
        total += record["released"][j] * events.due if job.every else 0
        if events.boxes and record["pipeline"] == names.index(job.pipeline.name):
            total += events.boxes
    if record["scanned"] and not any(record["missed"]):
        total += max(events.late for events in costed.jobs)
    total += costed.stirred * bin(record["looked"]).count("1")
    return total + sum(n * events.arrived for n, events in zip(record["arrived"], costed.feeds, strict=False))


@pytest.mark.parametrize("make", [doorbell, simple])
def test_no_poll_takes_more_than_what_is_charged_for_it(tmp_path, make):
    polls = run(make(tmp_path))
    over = []
    for i, (record, cycles) in enumerate(zip(polls.records, polls.cycles, strict=True)):
        if cycles > charged(polls, record):
            over.append((i, cycles, charged(polls, record), record))
    assert not over, (len(over), len(polls.records), over[:3])
    assert len(polls.records) > 200
    if make is doorbell:
        assert any(r["scanned"] for r in polls.records) and any(any(r["missed"]) for r in polls.records)
    # It is no idle bound either: of all that is charged, most is taken.
    assert sum(polls.cycles) > 0.9 * sum(charged(polls, r) for r in polls.records)
