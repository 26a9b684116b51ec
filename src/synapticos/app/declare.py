"""App, its sources, models, pipelines and jobs, as a user declares them.

Declaring checks what can be known at once (a name taken twice, a stage whose tensors do not fit) and computes
nothing: models are read when a pipeline first asks for their tensors.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from synapticos.app import sound, sources
from synapticos.app.model import ModelFile
from synapticos.app.spec import Spec
from synapticos.app.stage import Binding, HostStage, Stage, bind, is_typed
from synapticos.app.steps import Step, builtin_step, check_input, host_step, model_step, part_step, stage_step
from synapticos.errors import UserError

REALTIME, NORMAL, BEST_EFFORT = 2, 1, 0
PRIORITIES = {REALTIME: "REALTIME", NORMAL: "NORMAL", BEST_EFFORT: "BEST_EFFORT"}
LATE = {"finish": 0, "abort": 1, "skip": 2}
QUEUE = {"oldest": 0, "newest": 1, "coalesce": 2}
MAX_DEPTH = 64  # releases of one job that may wait
MAX_JOINED = 8  # sources of one job that the kernel begins, as `kernel/capacity` has it
MAX_BOXES = 16  # of one frame that a cascade looks at
us, ms, seconds = 1, 1_000, 1_000_000  # times are whole microseconds: 30 * ms
MAX_STAGES = 8

MAX_PIPELINES, MAX_MODELS = 32, 16  # the most that `kernel/capacity` has room for; a pipeline has one job
MAX_TIME = 0xFFFFFFFF  # us: a u32 of the kernel

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,22}\Z")
Channels = str
PUBLISHED_RESIZE = [("stretch", "bilinear", rule, None) for rule in (None, "align_corners")]


def check_name(name: str, what: str) -> str:
    if not isinstance(name, str) or not NAME.match(name):
        raise UserError(f'{what} "{name}": a name is a letter and up to 22 letters, digits or _ after it')
    return name


def parse_bytes(text: str | int | None, what: str) -> int | None:
    """`192K`, `1M`, `4096` or a number, in bytes."""
    if text is None or (type(text) is int and text >= 0):
        return text
    found = re.fullmatch(r"([0-9]{1,12})\s*([KM]?)B?", text.strip(), re.IGNORECASE) if isinstance(text, str) else None
    if not found:
        raise UserError(f'{what} "{text}": write bytes, or 192K, or 1M')
    return int(found[1]) * {"": 1, "K": 1024, "M": 1024 * 1024}[found[2].upper()]


def _time(where: str, name: str, value: Any) -> int:
    """Whole microseconds that the kernel can count; 1.5 * ms is whole."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= MAX_TIME or value != int(value):
        raise UserError(f"{where}: {name} is whole microseconds from 0 to {MAX_TIME}, like 30 * syn.ms; not {value!r}")
    return int(value)


def _count(where: str, name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise UserError(f"{where}: {name} is a whole number from {low} to {high}, not {value!r}")
    return value


def _pixels(where: str, name: str, value: Any) -> Any:
    """A number, or one for each channel in a tuple."""
    values = list(value) if isinstance(value, tuple | list) else [value]
    good = values and all(isinstance(v, int | float) and not isinstance(v, bool) and isfinite(v) for v in values)
    if value is not None and (not good or (name == "std" and 0 in values)):
        not_zero = " other than 0" if name == "std" else ""
        raise UserError(f"{where}: {name} is a finite number{not_zero}, or a tuple of one for each channel, not {value!r}")
    return tuple(values) if isinstance(value, tuple | list) else value


def _names(where: str, what: str, names: Any) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, tuple | list):
        raise UserError(f'{where}: {what} is a tuple of names, like ("values",), not {names!r}')
    if not all(isinstance(n, str) for n in names):
        raise UserError(f"{where}: {what} is a tuple of names, not {names!r}")
    return tuple(names)


@dataclass(eq=False)
class Pipeline:
    """A source and the steps after it; each method adds one and returns the pipeline."""

    app: "App"
    name: str
    source: sources.Source
    steps: list[Step] = field(default_factory=list)
    handler: Binding | None = None  # compiled code that gets its results
    callbacks: list[Callable[[Any], Any]] = field(default_factory=list)  # plain Python that does, on the host

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The tensors that the last step so far gives."""
        if self.steps:
            return self.steps[-1].outputs
        if isinstance(self.source, sources.Together):
            return tuple(s.spec for s in self.source.sources)
        return (self.source.spec,)

    def of(self, source: sources.Source) -> "Pipeline":
        """Of several sources: the steps that follow, until the next `of` or the model, are for this one."""
        where = f'pipeline "{self.name}"'
        if not isinstance(self.source, sources.Together):
            raise UserError(f'{where}: has one source; every step is for that, leave .of(...) out')
        if source not in self.source.sources:
            there = ", ".join(f'"{s.name}"' for s in self.source.sources)
            raise UserError(f"{where}: of: {getattr(source, 'name', repr(source))} is not one of its sources; there is {there}")
        if self.has_model:
            raise UserError(f"{where}: of: after the model there are its outputs only")
        if any(step.kind == "part" and step.part == source.name for step in self.steps):
            raise UserError(f'{where}: of: steps for "{source.name}" are there already; say them in one place')
        return self._add(part_step(source.name, source.spec))

    @property
    def job(self) -> "JobDecl | None":
        """How it runs, if the app says so."""
        return next((job for job in self.app.jobs if job.pipeline is self), None)

    @property
    def period_us(self) -> int:
        """From one of its jobs to the next, nominal; 0: nobody says."""
        return self.job.period_us if self.job is not None else 0

    @property
    def ends_in_feed(self) -> "sources.Feed | None":
        found = [s for s in self.app.sources.values() if isinstance(s, sources.Feed) and s.pipeline is self]
        return found[0] if found else None

    @property
    def crops(self) -> bool:
        """Whether it looks at boxes that another pipeline found."""
        return bool(self.steps) and self.steps[0].name == "crop" and self.steps[0].kind == "builtin"

    def crop(
        self, width: int, height: int, *, method: str = "bilinear", coordinates: str | None = None, mode: str = "stretch",
        fill: int | tuple[int, ...] = 0,
    ) -> "Pipeline":  # fmt: skip
        """The part of the source's picture that a box shows, to a size of its own; how, see `resize`. First of a pipeline
        that `app.cascade` runs for each box."""
        where = f'pipeline "{self.name}": crop'
        if self.steps:
            raise UserError(f"{where}: comes first: a box is a part of what the source gives")
        return self._builtin(
            "crop", width=width, height=height, method=method, coordinates=coordinates, mode=mode, fill=fill, roi=None
        )

    def feed(self, name: str, *, keep: int | None = None, window: int = 1, hop: int = 1) -> "sources.Feed":
        """End here, without a model: what this pipeline leaves is a source that others read, so that several networks
        share one front end. An entry is `window` results, one behind the other, and a new one begins each `hop` results.

        It runs when its source gives something, as urgently as the most urgent pipeline that reads it, unless app.job says.
        """
        where = f'pipeline "{self.name}": feed'
        check_name(name, "source")
        if not self.steps or self.has_model:
            why = "a network's result is no source" if self.has_model else "its source can be read as it is"
            raise UserError(f"{where}: {why}; a front end has stages and no model")
        if self.ends_in_feed is not None:
            raise UserError(f'{where}: it ends in "{self.ends_in_feed.name}" already')
        if len(self.specs) != 1 or self.specs[0].rows or self.specs[0].dtype == "score":
            raise UserError(f"{where}: leaves {', '.join(str(s) for s in self.specs)}; a source gives one tensor of one size")
        if isinstance(self.source, sources.Together) or self.crops:
            raise UserError(f"{where}: a front end reads one source, and all of it")
        window, hop = _count(where, "window", window, 1, 4096), _count(where, "hop", hop, 1, 4096)
        keep = None if keep is None else _count(where, "keep", keep, 1, MAX_DEPTH)
        if keep == 1 and hop < window:
            raise UserError(f"{where}: entries overlap, so keep is 2 or more")
        one = self.specs[0]
        spec = one.like(name=name)
        if window > 1:
            rows = one.shape if len(one.shape) > 1 else (1, *one.shape)
            spec = spec.like(shape=(window * rows[0], *rows[1:]))
        feed = sources.Feed(name, spec, None, keep=keep, pipeline=self, hop=hop, result_bytes=one.bytes)
        self.app._source(feed)
        self.app._add_job(JobDecl(self, BEST_EFFORT, on=self.source, own=True))
        return feed

    @property
    def has_model(self) -> bool:
        return any(step.kind == "model" for step in self.steps)

    def _begun(self, name: str) -> None:
        if isinstance(self.source, sources.Together) and not self.steps:
            there = ", ".join(f"{s.name} ({s})" for s in self.specs)
            raise UserError(f'pipeline "{self.name}": {name}: which of {there}? Say .of(source) before it')

    def _add(self, step: Step) -> "Pipeline":
        if self.ends_in_feed is not None:
            raise UserError(f'pipeline "{self.name}": ends in feed "{self.ends_in_feed.name}"; say this step before .feed(), or in a pipeline that reads it')
        if self.handler is not None:
            raise UserError(f'pipeline "{self.name}": handler {self.handler.name} takes what it left so far; say this step before @app.on')
        if len(self.steps) == MAX_STAGES:
            raise UserError(f'pipeline "{self.name}": more than {MAX_STAGES} stages; join two of them in one stage')
        if self.steps and not self.has_model:
            step.part = step.part or self.steps[-1].part
        self.steps.append(step)
        return self

    def _builtin(self, name: str, **config: Any) -> "Pipeline":
        model = config.get("model")
        if (model is not None or name == "normalize_quantize") and not isinstance(model, ModelFile):
            raise UserError(f'pipeline "{self.name}": {name}: {model!r} is no model; m = app.model(...) gives one')
        for flag in ("video", "any_class"):
            if not isinstance(config.get(flag, False), bool):
                raise UserError(f'pipeline "{self.name}": {name}: {flag} is True or False, not {config[flag]!r}')
        self._begun(name)
        return self._add(builtin_step(self.name, name, self.specs, config))

    def fit(
        self, model: ModelFile, *, mode: str = "stretch", method: str = "bilinear", coordinates: str | None = None,
        fill: int | tuple[int, ...] = 0, roi: tuple[int, int, int, int] | None = None,
    ) -> "Pipeline":  # fmt: skip
        """Resize, normalise and quantise a picture to what `model` wants. How it is resized: see `resize`."""
        if (mode, method, coordinates, roi) in PUBLISHED_RESIZE or not isinstance(model, ModelFile):
            return self._builtin("fit", model=model)
        width, height = model.input.shape[2:0:-1] if len(model.input.shape) == 4 else (0, 0)
        self.resize(width, height, mode=mode, method=method, coordinates=coordinates, fill=fill, roi=roi)
        return self.encode(model)

    def encode(self, model: ModelFile) -> "Pipeline":
        """Normalise and quantise a picture of the right size to what `model` wants, in one pass."""
        return self._builtin("normalize_quantize", model=model)

    def resize(
        self, width: int, height: int, *, method: str = "bilinear", coordinates: str | None = None, mode: str = "stretch",
        fill: int | tuple[int, ...] = 0, roi: tuple[int, int, int, int] | None = None,
    ) -> "Pipeline":  # fmt: skip
        """To another size: `method` nearest, bilinear or area; `coordinates` align_corners (for bilinear, unless said
        otherwise), half_pixel or asymmetric; `mode` stretch, crop or letterbox (with `fill` beside the picture), of all
        or of a part `roi` = (x, y, width, height)."""
        if (mode, method, coordinates, roi) in PUBLISHED_RESIZE:
            return self._builtin("resize", width=width, height=height)
        return self._builtin(
            "scale", width=width, height=height, method=method, coordinates=coordinates, mode=mode, fill=fill, roi=roi
        )

    def colour(
        self, source: str, target: str, *, video: bool = False, roi: tuple[int, int, int, int] | None = None
    ) -> "Pipeline":
        """From grey, rgb, bgr, rgba, rgb565, rgb565_swapped, yuyv or uyvy (`video`: in the narrow range) to grey, rgb or
        bgr, of all or of a part."""
        return self._builtin("colour", source=source, target=target, video=video, roi=roi)

    def map_boxes(self, units: str = "pixels") -> "Pipeline":
        """Boxes in pixels (`units` "fraction": in fractions) of the network's picture become boxes in pixels of the source's. Of several
        sources, one may be a picture that was scaled."""
        scaled = {step.part for step in self.steps if step.name in ("scale", "resize", "fit") and step.kind == "builtin"}
        if len(scaled) > 1:
            there = ", ".join(f'"{name}"' for name in sorted(scaled))
            raise UserError(f'pipeline "{self.name}": map_boxes: in which of {there}? Map them in a stage of your own')
        return self._builtin("map_boxes", units=units, steps=[s for s in self.steps if not s.part or s.part in scaled])

    def features(
        self, model: ModelFile | None = None, description: dict[str, Any] | None = None, *, rows: int | None = None
    ) -> "Pipeline":
        """Sound to the features that `model` was trained on, and to its int8 if it takes that. With `rows`, of a stream:
        what came since the last time goes in, the latest `rows` frames come out. A micro front end always is of a stream;
        its rows are as many as the model takes, unless said otherwise."""
        name = sound.stage_of(self.name, model, description, rows)
        self._builtin(name, model=model, description=description, rows=rows)
        return self.quantize(model) if model is not None and model.input.dtype == "int8" else self

    def normalize(self, mean: float | tuple[float, ...] = 127.5, std: float | tuple[float, ...] = 127.5) -> "Pipeline":
        """(pixel - mean) / std, for each channel."""
        return self._builtin("normalize", mean=mean, std=std)

    def quantize(
        self, model: ModelFile | None = None, *, scale: float | None = None, zero: int | None = None
    ) -> "Pipeline":
        """Reals to int8: by the scale and zero point of `model`'s input, or by those given."""
        return self._builtin("quantize", model=model, scale=scale, zero=zero)

    def model(
        self, model: ModelFile, inputs: Mapping[str, sources.Source] | None = None, **named: sources.Source
    ) -> "Pipeline":
        """Run a network. A pipeline has exactly one. Of several inputs, say which source feeds which:
        `.model(m, picture=camera, heat=meter)`, or in `inputs` where a name is no word; by equal names if nothing is said."""
        if self.has_model:
            raise UserError(f'pipeline "{self.name}": has a model already; a second one is a pipeline of its own')
        if isinstance(self.source, sources.Together):
            self._bind(model, {**(inputs or {}), **named})
            return self
        if inputs or named:
            raise UserError(f'pipeline "{self.name}": has one source, and there is nothing to choose: .model(model)')
        return self._add(model_step(self.name, model, self.specs))

    def _bind(self, model: ModelFile, chosen: dict[str, sources.Source]) -> None:
        """Several sources into a model: parts in the model's own order, and the model."""
        assert isinstance(self.source, sources.Together)
        where = f'pipeline "{self.name}": model "{getattr(model, "name", model)}"'
        if not isinstance(model, ModelFile):
            raise UserError(f'{where}: is not a model; declare it: m = app.model("{model}")')
        own = {s.name: s for s in self.source.sources}
        chosen = chosen or {spec.name: own[spec.name] for spec in model.inputs if spec.name in own}
        unknown = [n for n in chosen if n not in [spec.name for spec in model.inputs]]
        if unknown:
            raise UserError(f'{where}: has no input "{unknown[0]}"; there is {model.there}')
        strange = [n for n, s in chosen.items() if s not in own.values()]
        if strange:
            raise UserError(f'{where}: input "{strange[0]}": {getattr(chosen[strange[0]], "name", chosen[strange[0]])!r} is no source of this pipeline')
        missing = [spec.name for spec in model.inputs if spec.name not in chosen]
        idle = [n for n, s in own.items() if s not in chosen.values()]
        if missing:
            raise UserError(f'{where}: input "{missing[0]}" is fed by nothing; say which source: .model(m, {{"{missing[0]}": ...}})')
        if idle or len(set(chosen.values())) != len(chosen):
            fact = f'source "{idle[0]}" feeds no input' if idle else "one source feeds two inputs"
            raise UserError(f"{where}: {fact}; each source feeds one of {model.there}")
        order = [chosen[spec.name] for spec in model.inputs]
        if not self.steps:  # as they come: then a frame is what the model takes
            self.source = sources.Together.of(self.name, tuple(order))
        last: dict[str, Step] = {}
        for step in self.steps:
            last[step.part] = step
        for source in order if self.steps else []:
            if source.name not in last:
                last[source.name] = part_step(source.name, source.spec)
                self._add(last[source.name])
        given = [last[s.name].outputs[0] if s.name in last else s.spec for s in order]
        for spec, got in zip(model.inputs, given):
            if got.rows:
                raise UserError(f'{where}: input "{spec.name}" takes {spec}, the step before gives any number of rows ({got})')
            check_input(f'{where}: input "{spec.name}"', got, spec)
        at = 0
        for source, spec in zip(order, model.inputs):
            for step in self.steps:
                if step.kind == "part" and step.part == source.name:
                    step.place = (self.source.places[source.name], at, spec.bytes)
            at = -(-(at + spec.bytes) // 16) * 16
        self._add(Step("model", model.name, tuple(given), model.outputs, model=model))

    def dequantize(self) -> "Pipeline":
        """int8 to reals, by the tensor's own scale and zero point."""
        return self._builtin("dequantize")

    def softmax(self) -> "Pipeline":
        """Scores to shares of one, as reals."""
        return self._builtin("softmax")

    def argmax(self) -> "Pipeline":
        """The place of the largest value, and the value."""
        return self._builtin("argmax")

    def top_k(self, k: int) -> "Pipeline":
        """The places of the `k` largest values, and the values, largest first."""
        return self._builtin("top_k", k=k)

    def nms(
        self, iou: float = 0.5, score: float = 0.0, max_boxes: int = 10, *, any_class: bool = False, soft: str | None = None,
        sigma: float = 0.5,
    ) -> "Pipeline":  # fmt: skip
        """Of boxes (x1, y1, x2, y2, score, class) of a class (or of any) that overlap by more than `iou`, keep the one with
        the best score; `soft` linear or gaussian only weakens the others."""
        if not any_class and soft is None:
            return self._builtin("nms", iou=iou, score=score, max_boxes=max_boxes)
        return self._builtin("suppress", iou=iou, score=score, max_boxes=max_boxes, any_class=any_class, soft=soft, sigma=sigma)

    def stage(
        self, function: "Stage[Any, Any] | HostStage", *, cost_us: int = 0, watchdog: int | None = None, **cfg: Any
    ) -> "Pipeline":
        """A function of your own; keywords fill its `cfg`. `cost_us`: what it takes at most on its board, for `syn check`,
        where that cannot be worked out. `watchdog`: the time after which its job is ended, in place of what the job says."""
        if watchdog is not None:
            watchdog = _time(f'pipeline "{self.name}"', "watchdog", watchdog)
        if type(cost_us) is not int or not 0 <= cost_us <= MAX_TIME:
            raise UserError(f'pipeline "{self.name}": cost_us is whole microseconds from 0 to {MAX_TIME}, not {cost_us!r}')
        self._begun(getattr(function, "__name__", str(function)))
        if isinstance(function, HostStage):
            if watchdog:
                raise UserError(f'pipeline "{self.name}": {function.__name__} is a stage of the host, which nothing can stop in the middle; leave out watchdog=')
            return self._add(host_step(self.name, function, self.specs))
        if not isinstance(function, Stage):
            name = getattr(function, "__name__", str(function))
            raise UserError(f'pipeline "{self.name}": {name} is not a stage; put @syn.stage (or @syn.host_stage) before it')
        after_model = bool(self.steps) and self.steps[-1].kind == "model"
        step = stage_step(self.name, self.app.name, function, self.specs, cfg, after_model)
        step.cost_us, step.watchdog = cost_us, watchdog
        return self._add(step)


@dataclass(eq=False)
class JobDecl:
    """How a pipeline's jobs run. Exactly one thing releases them: the clock, a source, a cascade, or whoever submits."""

    pipeline: Pipeline
    priority: int
    every: int = 0  # us; 0: not by the clock
    deadline: int = 0  # us after release; 0: none
    late: str = "finish"
    on: sources.Source | None = None
    phase: int = 0  # us, of the first release by the clock
    jitter: int = 0  # us by which a release may come late
    queue: str = "oldest"
    depth: int = 1  # releases that may wait while a job runs
    enabled: bool = True
    preemptible: bool = True
    watchdog: int | None = None  # us that each of its stages and layers may take, 0 for any time; None: as the app says
    cascade: "Cascade | None" = None
    own: bool = False  # nobody declared it: a front end's, as urgent as the most urgent that reads it

    @property
    def released(self) -> bool:
        """Whether the kernel begins its jobs, and not who submits them."""
        return self.every != 0 or self.on is not None or self.cascade is not None

    @property
    def period_us(self) -> int:
        """From one release to the next, nominal, rounded down; 0: nobody says."""
        if self.cascade is not None:
            return self.cascade.detector.period_us
        return self.every or (self.on.period_us if self.on is not None else 0)


@dataclass(eq=False)
class Cascade:
    """A detector's boxes, each looked at by a pipeline of its own: the boxes of one frame release one job each."""

    name: str
    detector: Pipeline
    each: Pipeline
    most: int  # boxes of one frame; those beyond are counted
    job: JobDecl | None = None


P = ParamSpec("P")
R = TypeVar("R")


class App:
    """A device: what it sees and hears, what it runs on that, and when."""

    def __init__(self, name: str, *, ram: str | int | None = None, stack: str | int | None = None, watchdog: int = 0) -> None:
        """`ram` and `stack` are budgets, in bytes or like "192K": a build that needs more is refused.

        `watchdog` bounds each stage and layer, like `50 * ms`: one that takes longer ends its job. 0: none does.
        """
        self.name = check_name(name, "app")
        self.ram = parse_bytes(ram, f'app "{name}": ram')
        self.stack = parse_bytes(stack, f'app "{name}": stack')
        if isinstance(watchdog, bool) or not isinstance(watchdog, int) or not 0 <= watchdog < 1 << 32:
            raise UserError(f'app "{name}": watchdog={watchdog!r}: a time like 50 * ms, below an hour, or 0 for none')
        self.watchdog = watchdog
        self.folder = _caller_folder()
        self.sources: dict[str, sources.Source] = {}
        self.models: list[ModelFile] = []
        self.pipelines: dict[str, Pipeline] = {}
        self.jobs: list[JobDecl] = []
        self.interferences: list[tuple[str, int, int]] = []  # name, us from one to the next, us of one
        self.cascades: dict[str, Cascade] = {}

    def _source(self, source: sources.Source) -> Any:
        if source.name in self.sources:
            raise UserError(f'source "{source.name}": declared twice; give one another name')
        self.sources[source.name] = source
        return source

    def frames(
        self, name: str, shape: tuple[int, ...], dtype: Any = "int8", *, file: str | Path | None = None, every: int = 0,
        keep: int | None = None,
    ) -> sources.Frames:  # fmt: skip
        """Raw tensors, one after the other, from a file; one each `every` microseconds, `keep` of them in memory."""
        every, keep = self._timing(name, every, keep)
        return self._source(sources.Frames(name, sources.spec(name, shape, dtype), self._path(file), every=every, keep=keep))

    def camera(
        self, name: str, width: int, height: int, pixels: Channels = "rgb", *, file: str | Path | None = None, every: int = 0,
        keep: int | None = None,
    ) -> sources.Camera:  # fmt: skip
        """Pictures: `"rgb"`, `"bgr"` or `"grey"`, a byte a channel, or rgb565, rgb565_swapped, yuyv, uyvy (`.colour` turns
        these into others); one each `every` microseconds, `keep` of them in memory. On the host and in an emulator: image
        files."""
        every, keep = self._timing(name, every, keep)
        spec = sources.camera_spec(name, width, height, pixels)
        return self._source(sources.Camera(name, spec, self._path(file), pixels, every=every, keep=keep))

    def microphone(
        self, name: str, *, rate: int = 16_000, window: int, hop: int | None = None, file: str | Path | None = None,
        keep: int | None = None,
    ) -> sources.Microphone:  # fmt: skip
        """Sound, 16 bits and one channel: windows of so many samples, a new one each `hop` samples (default: side by side),
        `keep` of them in memory. On the host and in an emulator: .wav files."""
        where = f'source "{name}"'
        rate, window = _count(where, "rate", rate, 1, 1_000_000), _count(where, "window", window, 1, 1 << 20)
        hop = window if hop is None else _count(where, "hop", hop, 1, 1 << 20)
        _, keep = self._timing(name, 0, keep)
        if keep == 1 and hop < window:
            raise UserError(f"{where}: windows overlap, so keep is 2 or more")
        spec = Spec(name, (window,), "int16")
        return self._source(sources.Microphone(name, spec, self._path(file), rate, hop, keep=keep))

    def _timing(self, name: str, every: int, keep: int | None) -> tuple[int, int | None]:
        check_name(name, "source")
        where = f'source "{name}"'
        return _time(where, "every", every), None if keep is None else _count(where, "keep", keep, 1, MAX_DEPTH)

    def model(
        self,
        file: str | Path,
        *,
        name: str | None = None,
        outputs: tuple[str, ...] | None = None,
        inputs: tuple[str, ...] | None = None,
        mean: float | tuple[float, ...] | None = None,
        std: float | tuple[float, ...] | None = None,
        features: dict[str, Any] | None = None,
        max_step: int | None = None,
        on: Literal["cpu", "npu"] = "cpu",
    ) -> ModelFile:
        """A network. `outputs` and `inputs` give its output and input tensors names of your own; `mean` and `std` say what
        pixels it was trained on, `features` what sound (`syn.librosa(...)`; a MODEL.features.json beside the file says it
        too). Layers of more than `max_step` multiply-accumulates run a few rows at a time, with looks for more urgent work
        between them. `on` "npu" the board's accelerator runs it, a layer at a time, and the processor is free meanwhile."""
        path = self._path(file)
        if path is None:
            raise UserError('app.model(None): which file? A .tflite or .onnx beside the app: app.model("network.tflite")')
        name = check_name(name or re.sub(r"\W", "_", path.stem)[:23], "model")
        where = f'model "{name}"'
        outputs, inputs = _names(where, "outputs", outputs), _names(where, "inputs", inputs)
        if features is not None and not isinstance(features, dict):
            raise UserError(f"{where}: features is what syn.librosa(...) gives, not {features!r}")
        if on not in ("cpu", "npu"):
            raise UserError(f'{where}: on is "cpu" or "npu", not "{on}"')
        mean, std = _pixels(where, "mean", mean), _pixels(where, "std", std)
        if any(m.name == name for m in self.models):
            raise UserError(f'model "{name}": declared twice; give one another name: app.model(..., name="other")')
        if len(self.models) == MAX_MODELS:
            raise UserError(f"{where}: more than {MAX_MODELS} models in one app")
        if max_step is not None and (type(max_step) is not int or max_step < 1):
            raise UserError(f"{where}: max_step is multiply-accumulates, a whole number from 1 on, not {max_step!r}")
        model = ModelFile(path, name, outputs, inputs, mean, std, features, max_step, on)
        self.models.append(model)
        return model

    def pipeline(self, name: str, *given: sources.Source) -> Pipeline:
        """What is done with a source; with several, if its model takes several inputs (`of`, `model`)."""
        check_name(name, "pipeline")
        if not given:
            raise UserError(f'pipeline "{name}": which source? There is app.camera(...) and app.frames(...)')
        for source in given:
            if not isinstance(source, sources.Source):
                raise UserError(f'pipeline "{name}": {source!r} is no source; there is app.camera(...) and app.frames(...)')
            if given.count(source) > 1:
                raise UserError(f'pipeline "{name}": source "{source.name}" is there twice')
        source = given[0] if len(given) == 1 else sources.Together.of(name, given)
        if name in self.pipelines:
            raise UserError(f'pipeline "{name}": declared twice; give one another name')
        if len(self.pipelines) == MAX_PIPELINES:
            raise UserError(f'pipeline "{name}": more than {MAX_PIPELINES} pipelines in one app')
        self.pipelines[name] = Pipeline(self, name, source)
        return self.pipelines[name]

    def job(
        self,
        pipeline: "Pipeline | sources.Feed",
        *,
        priority: int = NORMAL,
        every: int = 0,
        on: "sources.Source | None" = None,
        phase: int = 0,
        jitter: int = 0,
        deadline: int = 0,
        late: str = "finish",
        queue: str = "oldest",
        depth: int = 1,
        enabled: bool = True,
        preemptible: bool = True,
        watchdog: int | None = None,
    ) -> JobDecl:
        """Run `pipeline` `every` so many microseconds (from `phase` on, each up to `jitter` late), or `on` each thing that its
        source gives; a microphone's and a front end's need not say so. Without either, jobs are submitted. By the clock a job
        gets the newest that its source has given by then, and what came in between nobody reads: who must hear all is released
        by the source. A pipeline of several sources is released by a clock or by one of them: what that gives next goes with the newest of the others, and
        before each has given something a release has starved, which is counted.

        `deadline` counts from the release; `late` says what becomes of a job that misses it: it may `finish`, is ended
        (`abort`), or not begun if it has passed by then, or is nearer than its
        declared costs (`skip`). While a job runs, `depth` releases may wait; of more, the `oldest` or the `newest` is
        dropped, or all become one (`coalesce`). A job that is not `enabled` waits for `job_enable`; one that is not
        `preemptible` runs to its end. `watchdog` bounds each of its stages and layers, in place of the app's; 0: none does."""
        if isinstance(pipeline, sources.Feed) and pipeline.pipeline.app is self:
            pipeline = pipeline.pipeline
        if not isinstance(pipeline, Pipeline) or pipeline.app is not self:
            raise UserError(f"job: {getattr(pipeline, 'name', repr(pipeline))} is no pipeline of this app; app.pipeline(name, source) begins one")
        where = f'job of "{pipeline.name}"'
        every, deadline = _time(where, "every", every), _time(where, "deadline", deadline)
        phase, jitter = _time(where, "phase", phase), _time(where, "jitter", jitter)
        if not pipeline.has_model and pipeline.ends_in_feed is None:
            raise UserError(f"{where}: the pipeline has no model; add .model(...), or end it in .feed(name)")
        if pipeline.crops:
            raise UserError(f"{where}: the pipeline looks at boxes; app.cascade(name, detector, each={pipeline.name}) runs it")
        own = pipeline.source
        if on is None and not every and isinstance(own, sources.Microphone | sources.Feed):
            on = own
        if on is not None and every:
            raise UserError(f"{where}: every= and on=: one thing releases a job; leave one of them out")
        if on is not None and on not in own.members:
            there = " or ".join(f'"{s.name}"' for s in own.members)
            raise UserError(f'{where}: on={getattr(on, "name", on)!r}: a pipeline is released by the source that it reads, {there}')
        if (on is not None or every) and len(own.members) > MAX_JOINED:
            raise UserError(f"{where}: reads {len(own.members)} sources; a job that a clock or a source releases reads at most {MAX_JOINED}: submit its jobs")
        if every and phase >= every or phase and not every:
            raise UserError(f"{where}: phase is less than every, the time between two releases")
        if jitter and not (every or on):
            raise UserError(f"{where}: jitter= says how late a release may be, and nothing releases it; say every= or on=")
        job = JobDecl(pipeline, priority, every, deadline, late, on, phase, jitter, queue, depth, enabled, preemptible, watchdog)
        return self._add_job(job)

    def cascade(
        self,
        name: str,
        detector: Pipeline,
        *,
        each: Pipeline,
        most: int = 4,
        priority: int = NORMAL,
        deadline: int = 0,
        late: str = "finish",
        queue: str = "newest",
        depth: int | None = None,
        enabled: bool = True,
        preemptible: bool = True,
        watchdog: int | None = None,
    ) -> Cascade:
        """Run `each`, which begins with .crop(...), for each of the first `most` boxes that `detector` leaves, on the frame in
        which it found them: boxes in pixels of that frame, so behind a network that leaves fractions `.map_boxes("fraction")`.
        Boxes beyond are counted. What the rest means, see `job`; a release is the detector's end."""
        where = f'cascade "{name}"'
        check_name(name, "cascade")
        for what, pipeline in (("detector", detector), ("each", each)):
            if not isinstance(pipeline, Pipeline) or pipeline.app is not self:
                raise UserError(f"{where}: {what} is {getattr(pipeline, 'name', repr(pipeline))!r}, no pipeline of this app")
        both = f'{where}: "{detector.name}" -> "{each.name}"'
        if detector is each:
            raise UserError(f"{both}: a pipeline cannot look at its own boxes")
        last = detector.specs[-1]
        if len(detector.specs) != 1 or not last.rows or last.dtype != "float32" or len(last.shape) != 2 or last.shape[1] != 6:
            raise UserError(f"{both}: the detector leaves {last}, and not boxes (f32 rows of x1, y1, x2, y2, score, class); end it in .nms(...) or .map_boxes()")
        if not each.crops or not each.has_model:
            lacks = ".crop(width, height)" if not each.crops else ".model(...)"
            raise UserError(f'{both}: "{each.name}" has no {lacks}; it is .crop(width, height), what fits its network, and .model(...)')
        if detector.source is not each.source:
            raise UserError(f'{both}: boxes in "{detector.source.name}" are no parts of "{each.source.name}"; let both read one source')
        if detector.crops:
            raise UserError(f'{both}: "{detector.name}" looks at boxes itself, which have no frame of their own')
        if not detector.has_model or each.job is not None:
            fact = f'"{each.name}" has a job already' if detector.has_model else f'"{detector.name}" has no model'
            raise UserError(f"{both}: {fact}")
        most = _count(where, "most", most, 1, MAX_BOXES)
        cascade = Cascade(name, detector, each, most)
        if name in self.cascades:
            raise UserError(f"{where}: declared twice; give one another name")
        depth = most if depth is None else depth
        deadline = _time(where, "deadline", deadline)
        job = JobDecl(
            each, priority, 0, deadline, late, None, 0, 0, queue, depth, enabled, preemptible, watchdog, cascade
        )
        cascade.job = self._add_job(job)
        self.cascades[name] = cascade
        return cascade

    def _add_job(self, job: JobDecl) -> JobDecl:
        """Check what all jobs have in common. A front end that nobody declared runs as its most urgent reader."""
        pipeline = job.pipeline
        where = f'job of "{pipeline.name}"'
        if type(job.priority) is not int or job.priority not in PRIORITIES:
            raise UserError(f"{where}: priority is syn.REALTIME, syn.NORMAL or syn.BEST_EFFORT")
        if not isinstance(job.late, str) or job.late not in LATE:
            raise UserError(f'{where}: late is "finish", "abort" or "skip", not {job.late!r}')
        if job.late != "finish" and not job.deadline:
            raise UserError(f'{where}: late="{job.late}" says what becomes of a job that misses its deadline; say deadline= too')
        if not isinstance(job.queue, str) or job.queue not in QUEUE:
            raise UserError(f'{where}: queue is "oldest", "newest" or "coalesce", not {job.queue!r}')
        _count(where, "depth", job.depth, 1, MAX_DEPTH)
        if job.watchdog is not None:
            job.watchdog = _time(where, "watchdog", job.watchdog)
        if job.queue == "coalesce" and job.depth != 1:
            raise UserError(f'{where}: queue="coalesce" lets one wait; leave depth={job.depth} out')
        for name in ("enabled", "preemptible"):
            if not isinstance(getattr(job, name), bool):
                raise UserError(f"{where}: {name} is True or False, not {getattr(job, name)!r}")
        before = pipeline.job
        if before is not None and before.own:
            self.jobs[self.jobs.index(before)] = job
            if job.priority < before.priority:
                reader = next(j for j in self.jobs if isinstance(j.pipeline.source, sources.Feed) and j.priority == before.priority)
                raise UserError(f'{where}: "{reader.pipeline.name}" waits for it and is more urgent; give it that priority')
        else:
            if before is not None:
                raise UserError(f"{where}: has a job already; give one pipeline one job, and for another a pipeline of its own")
            self.jobs.append(job)
        source = pipeline.source
        while isinstance(source, sources.Feed):
            front = source.pipeline.job
            if front.own:
                front.priority = max(front.priority, job.priority)
            source = source.pipeline.source
        return job

    def on(self, pipeline: Pipeline, **cfg: Any) -> Callable[[Callable[P, R]], Stage[P, R]]:
        """What is done with the results of `pipeline`: put it before a function.

        One in typed Python is compiled into the firmware, and called as each job ends, on the host as on the board. Its
        parameters bind as a stage's do: outputs by their names, their scales and rows, `state`, `cfg` (which keywords
        fill), and a `syn.JobInfo`; it has no `out`, and returns nothing, or a Status of which all but OK are counted. One
        that takes no outputs hears of jobs that ended with an error too. A pipeline has one.

        One whose only parameter has no type is plain Python for the host, which gets what `Runtime.on` says; firmware
        goes without it, and `syn build` says so."""
        if not isinstance(pipeline, Pipeline) or pipeline.app is not self:
            raise UserError(f"on: {getattr(pipeline, 'name', repr(pipeline))} is no pipeline of this app; @app.on(pipeline) stands before what gets its results")
        where = f'on "{pipeline.name}"'
        if pipeline.ends_in_feed is not None:
            raise UserError(f'{where}: ends in feed "{pipeline.ends_in_feed.name}"; handle the results of those that read it')
        if not pipeline.has_model:
            raise UserError(f"{where}: the pipeline has no model yet; @app.on comes behind its steps")

        def put(function: Any) -> Any:
            name = getattr(function, "__name__", repr(function))
            if not callable(function) or isinstance(function, HostStage):
                raise UserError(f"{where}: {name} is no function; write @app.on(pipeline) before one")
            if not isinstance(function, Stage) and not is_typed(function):
                if cfg:
                    raise UserError(f"{where}: handler {name} is plain Python and takes no {next(iter(cfg))}; give its parameters types")
                pipeline.callbacks.append(function)
                return function
            if pipeline.handler is not None:
                raise UserError(f"{where}: has a handler already, {pipeline.handler.name}; call both from one")
            stage = function if isinstance(function, Stage) else Stage(function)
            after_model = pipeline.steps[-1].kind == "model"
            pipeline.handler = bind(pipeline.name, self.name, stage, pipeline.specs, cfg, after_model, handler=True)
            return stage

        return put

    def interference(self, name: str, *, every: int, cost: int) -> None:
        """What takes the processor away from all jobs: an interrupt, a thread above ours, a busy flash. At most `cost`
        each time, at least `every` apart. Only `syn check` reads it."""
        where = f'interference "{check_name(name, "interference")}"'
        every, cost = _time(where, "every", every), _time(where, "cost", cost)
        if every == 0 or cost >= every:
            raise UserError(f"{where}: takes all of the processor; every is the time from one to the next, cost what one takes")
        self.interferences.append((name, every, cost))

    def _path(self, file: str | Path | None) -> Path | None:
        """Relative to the app's own file, so an app runs from any folder."""
        if file is None:
            return None
        try:
            return self.folder / Path(file).expanduser()
        except (TypeError, RuntimeError) as error:  # no path, or a home that nobody has
            raise UserError(f"file {file!r}: is no path ({error})") from None


def _caller_folder() -> Path:
    frame = sys._getframe(2)
    file = frame.f_globals.get("__file__")
    return Path(file).resolve().parent if file else Path.cwd()
