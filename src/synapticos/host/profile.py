"""Times of an app's steps as a board took them: recorded once, then used in place of a cycle model.

A profile is JSON: `{"syn_profile": 1, "app": ..., "where": ..., "frames": n, "margin": 0.1, "steps": {"faces": [{"name":
..., "ns": ...}, ...]}}`, a row for each step of each pipeline, in order, `ns` the most of all frames.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synapticos.app.declare import App
from synapticos.errors import UserError
from synapticos.host.report import Report

VERSION = 1


@dataclass
class Profile:
    app: str
    where: str
    frames: int
    steps: dict[str, list[tuple[str, int]]]  # of each pipeline: name and ns of each step
    margin: float = 0.0  # added to each

    def ns(self, pipeline: str, step: int) -> int:
        return round(self.steps[pipeline][step][1] * (1 + self.margin)) or 1

    def fits(self, app: App, steps: dict[str, int]) -> None:
        """Raises UserError for the profile of another app, or of this one before it was changed."""
        if self.app != app.name:
            raise UserError(f'a profile of app "{self.app}", not of "{app.name}"; record one: syn calibrate')
        for name, count in steps.items():
            known = len(self.steps.get(name, []))
            if known != count:
                raise UserError(f'the profile has {known} steps of pipeline "{name}", which now has {count}; record it anew: syn calibrate')

    def to_json(self) -> dict[str, Any]:
        steps = {name: [{"name": n, "ns": ns} for n, ns in rows] for name, rows in self.steps.items()}
        return {"syn_profile": VERSION, "app": self.app, "where": self.where, "frames": self.frames, "margin": self.margin, "steps": steps}

    @classmethod
    def read(cls, path: Path) -> Profile:
        """Raises UserError for a file that is none."""
        try:
            data = json.loads(path.read_text())
            if data["syn_profile"] != VERSION:
                raise ValueError(f"its version is {data['syn_profile']!r}, not {VERSION}")
            steps = {str(name): [(str(row["name"]), int(row["ns"])) for row in rows] for name, rows in data["steps"].items()}
            margin = float(data.get("margin", 0))
            if not 0 <= margin <= 10 or any(ns < 0 for rows in steps.values() for _, ns in rows):
                raise ValueError("a time or a margin below 0, or a margin above 10")
            return cls(str(data["app"]), str(data["where"]), int(data["frames"]), steps, margin)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: is no profile that syn calibrate wrote ({error})") from None

    @classmethod
    def of(cls, report: Report, margin: float) -> Profile:
        """From a run on a board: the most that each stage and layer took. What a job's total holds beside them is the
        kernel's, and is shared out to its steps, rounded up."""
        steps: dict[str, list[tuple[str, int]]] = {}
        for pipeline in report.image.pipelines:
            rows: list[tuple[str, int]] = []
            frames = report.times.get(pipeline.name, [])
            if not frames:
                continue
            tick = 1e9 / report.tick_rate
            for number, step in enumerate(pipeline.steps):
                if step.model is None:
                    rows.append((f"{step.kind} {step.name}", round(max(f["stages"][number] for f in frames) * tick)))
                    continue
                layers = step.model.compiled.info.layers
                if any(len(f["layers"]) != len(layers) for f in frames):
                    raise UserError(f'pipeline "{pipeline.name}": the run kept no times of layers; build it with profile=True')
                rows += [
                    (f"{step.name} layer {i} {layer.operator}", round(max(f["layers"][i] for f in frames) * tick)) for i, layer in enumerate(layers)
                ]
            beside = max(round(f["total"] * tick) - sum(round(t * tick) for i, t in enumerate(f["stages"])) for f in frames)
            each = -(-max(beside, 0) // len(rows))
            steps[pipeline.name] = [(name, ns + each) for name, ns in rows]
        if not steps:
            raise UserError("the run gave no times: nothing to record")
        return cls(report.image.app.name, report.where, max(len(t) for t in report.times.values()), steps, margin)
