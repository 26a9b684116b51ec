"""The doorbell on an emulated board in virtual time, without pre-emption and with it: who misses what.

    make demo            or: python examples/doorbell/demo.py [--mic SOUND.wav] [--out FOLDER]
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from synapticos.app.load import load_app
from synapticos.cli.output import table
from synapticos.errors import UserError
from synapticos.host.clock import run_by_clock
from synapticos.host.execute import run_on_board
from synapticos.host.firmware import build_firmware
from synapticos.host.report import Report
from synapticos.host.spans import job_spans
from synapticos.host.timeline import JobSpan, draw_timelines, write_trace

FOLDER = Path(__file__).parent
BOARD = "mps2-an521"
RAM = 256 << 10  # what all of it may take, bytes
# Each step is written down; without the guards that end a faulty stage's job, which keep the emulator busy.
SETTINGS = {"TRACE": 1, "GUARD": 0}


@dataclass
class Counts:
    """What became of one job's releases."""

    released: int
    in_time: int
    dropped: int  # never begun: the next ones had come
    late: int  # ended, or were given up, after the deadline
    longest_us: int  # from release to end, of those that ended

    @property
    def missed(self) -> int:
        return self.dropped + self.late


@dataclass
class Played:
    report: Report
    jobs: dict[str, Counts]
    heard: list[int]  # when the word was heard, us after the start
    faces: int
    spans: list[JobSpan]


def play(preemptible: bool, files: dict[str, Path]) -> Played:
    """Run the app as firmware, all jobs pre-emptible or none."""
    app = load_app(FOLDER)
    for job in app.jobs:
        job.preemptible = preemptible
    report = run_on_board(build_firmware(app, BOARD, settings=SETTINGS), files)
    jobs = {}
    for name, counts in report.counts["jobs"].items():
        ended = [r for r in report.results if r.pipeline == name]
        late, dropped = counts["misses"], counts["dropped"] + counts["starved"]
        longest = max((r.finish_us - (r.release_us or 0) for r in ended), default=0)
        jobs[name] = Counts(counts["released"], counts["released"] - late - dropped, dropped, late, longest)
    heard = [r.finish_us for r in report.results if r.pipeline == "heard" and r.arrays[0][1] == 1]
    faces = sum(len(r.arrays[0]) for r in report.results if r.pipeline == "visitor")
    end = max(r.finish_us for r in report.results)
    return Played(report, jobs, heard, faces, job_spans(report, end))


def show(title: str, played: Played) -> None:
    rows = [
        [name, c.released, c.in_time, c.late, c.dropped, f"{c.longest_us / 1000:.1f}"] for name, c in played.jobs.items()
    ]
    table(title, ["job", "released", "in time", "late", "dropped", "longest, ms"], rows)
    first = f"{len(played.heard)} windows, first after {played.heard[0] / 1e6:.2f} s" if played.heard else "not at all"
    print(f"the word was heard: {first}; faces found: {played.faces}")


def show_memory(report: Report) -> None:
    image, sizes = report.image, report.sizes
    feeds = sum(feed.bytes for feed in image.feeds)
    rest = sizes["ram"] - sizes["stack"] - image.arena_bytes
    print(f"RAM, bytes: {sizes['ram']:,} of {RAM:,}: arena {image.arena_bytes:,}, stack {sizes['stack']:,}, the rest {rest:,}; flash {sizes['flash']:,}")
    print(
        f"in the arena: frames of visitor and heard {image.frames[0]:,} and {image.frames[2]:,}, sound and pictures that wait {feeds:,}, "
        f"state of the network that hears {image.persistent:,}, of the stages {image.states:,}, scratch {image.scratch:,}"
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=str(__doc__))
    arguments.add_argument("--mic", type=Path, help="sound, .wav of 16 kHz with 16 bits and one channel")
    arguments.add_argument("--out", type=Path, default=Path("out"), help="where the timeline goes")
    given = arguments.parse_args()
    files = {"mic": given.mic} if given.mic else {}
    start = time.perf_counter()
    print(f"== a wake word beside a face detector on {BOARD}, emulated in this process")
    both = {word: play(word == "on", files) for word in ("off", "on")}
    for word, played in both.items():
        show(f"pre-emption {word}", played)
    show_memory(both["on"].report)
    print("times are the emulator's, 32 ns an instruction: no silicon was measured. What a cycle model says of one:")
    print("  syn check examples/doorbell/app.py --mhz 150")

    here = run_by_clock(load_app(FOLDER), files)
    equal = here.digest == both["on"].report.digest
    print(f"{here.digest}  {here.where}\n{both['on'].report.digest}  {both['on'].report.where}, pre-emption on")
    print("equal: the same bytes from sound and pictures to results" if equal else "DIFFERENT: this is a bug, please report it")

    given.out.mkdir(parents=True, exist_ok=True)
    picture = given.out / "doorbell.svg"
    panels = [(f"pre-emption {word}", played.spans) for word, played in both.items()]
    draw_timelines(panels, picture, begin_us=2_850_000, end_us=4_350_000)
    for word, played in both.items():
        write_trace(played.spans, given.out / f"doorbell-{word}.trace.json")
    print(f"wrote {picture}, and {given.out}/doorbell-off.trace.json and -on.trace.json for ui.perfetto.dev")
    print(f"(in all {time.perf_counter() - start:.1f} s, compiling included)")
    missed = both["on"].jobs["heard"].missed
    return 0 if equal and missed == 0 and both["on"].report.sizes["ram"] <= RAM else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        sys.exit(130)
