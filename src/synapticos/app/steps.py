"""The steps of a pipeline: what each takes, gives and needs to know, checked as it is added."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from synapticos.app import pictures, sound
from synapticos.app.model import ModelFile
from synapticos.app.spec import Spec
from synapticos.app.stage import Binding, HostStage, Stage, bind
from synapticos.errors import UserError


@dataclass
class Step:
    kind: str  # model, builtin, stage, host, part
    name: str  # of the model, the processor, the function or the source
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    config: dict[str, Any] | bytes | None = None  # a built-in's, field by field, or packed
    model: ModelFile | None = None
    binding: Binding | None = None
    host: HostStage | None = None
    part: str = ""  # of several sources, whose this step is
    place: tuple[int, int, int] = (0, 0, 0)  # of a part: in the job's input, in the model's block, bytes that the model takes
    cost_us: int = 0  # of a stage of the app's, where it says so
    watchdog: int | None = None  # us that it may take, 0 for any time; None: as its job says

    @property
    def result_bytes(self) -> int:
        return sum(s.bytes for s in self.outputs)


def model_step(pipeline: str, model: ModelFile, before: tuple[Spec, ...]) -> Step:
    where = f'pipeline "{pipeline}": model "{getattr(model, "name", model)}"'
    if not isinstance(model, ModelFile):
        raise UserError(f'{where}: is not a model; declare it: m = app.model("{model}")')
    if len(model.inputs) != 1:
        names = ", ".join(f'"{s.name}": ...' for s in model.inputs)
        raise UserError(
            f"{where}: has {len(model.inputs)} inputs, and a source for each: {model.there}; "
            f"app.pipeline(name, source, source).model(m, {{{names}}})"
        )
    check_input(where, _one(where, before), model.input)
    return Step("model", model.name, before, model.outputs, model=model)


def part_step(name: str, spec: Spec) -> Step:
    """One of several sources begins."""
    return Step("part", name, (spec,), (spec,), part=name)


def check_input(where: str, got: Spec, wanted: Spec) -> None:
    """Does a step give what a model takes?"""
    if got.dtype != wanted.dtype or got.bytes != wanted.bytes or got.squeezed != wanted.squeezed:
        picture = got.dtype == "uint8" and len(got.shape) == 4
        way = "; put .fit(model) before it" if picture else ""
        raise UserError(f"{where}: takes {wanted}, the step before gives {got}{way}")


def stage_step(
    pipeline: str, app: str, stage: Stage[Any, Any], before: tuple[Spec, ...], cfg: dict[str, Any], after_model: bool
) -> Step:
    binding = bind(pipeline, app, stage, before, cfg, after_model)
    assert binding.output is not None, "a stage, no handler"
    return Step("stage", stage.__name__, before, (binding.output,), binding=binding)


def host_step(pipeline: str, stage: HostStage, before: tuple[Spec, ...]) -> Step:
    from synapticos.app.sources import spec

    shape = stage.shape if stage.shape is not None else before[0].shape
    dtype = stage.dtype if stage.shape is not None or stage.dtype != "float32" else before[0].dtype
    output = spec(stage.__name__, shape, dtype).like(rows=stage.rows is not None)
    return Step("host", stage.__name__, before, (output,), host=stage)


def builtin_step(pipeline: str, name: str, before: tuple[Spec, ...], given: dict[str, Any]) -> Step:
    where = f'pipeline "{pipeline}": {name}'
    output, config = BUILTINS[name](where, _one(where, before), given)
    return Step("builtin", name, before, (output,), config=config)


def _one(where: str, before: tuple[Spec, ...]) -> Spec:
    if len(before) == 1:
        return before[0]
    there = ", ".join(f"{s.name} ({s})" for s in before)
    raise UserError(f"{where}: takes one tensor, the step before gives {len(before)}: {there}; take them in a stage of your own")


def _picture(where: str, x: Spec) -> None:
    if len(x.shape) != 4 or x.shape[0] != 1 or x.dtype not in ("uint8", "int8") or x.shape[3] > 4:
        raise UserError(f"{where}: takes a picture (u8 or i8, 1 x height x width x 1..4), the step before gives {x}")


def _floats(where: str, x: Spec) -> None:
    if x.dtype != "float32":
        raise UserError(f"{where}: takes reals (f32), the step before gives {x}")


def _scores(where: str, x: Spec) -> None:
    if x.dtype not in ("int8", "float32"):
        raise UserError(f"{where}: takes i8 or f32, the step before gives {x}")


def _whole(where: str, name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UserError(f"{where}: {name} is a whole number from {low} to {high}, not {value!r}")
    return value


def _real(where: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise UserError(f"{where}: {name} is a finite number, not {value!r}")
    return float(value)


def _resize(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _picture(where, x)
    w, h = _whole(where, "width", given["width"], 1, 65535), _whole(where, "height", given["height"], 1, 65535)
    return x.like(shape=(1, h, w, x.shape[3])), {"w": w, "h": h}


def _channels(where: str, name: str, value: Any, channels: int) -> list[float]:
    values = value if isinstance(value, tuple | list) else (value,) * channels
    if len(values) != channels:
        raise UserError(f"{where}: {len(values)} values of {name} for {channels} channels")
    return [_real(where, name, v) for v in values]


def _normalize(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _picture(where, x)
    channels = x.shape[3]
    mean, std = (_channels(where, name, given[name], channels) for name in ("mean", "std"))
    if 0.0 in std:
        raise UserError(f"{where}: std is 0")
    return x.like(dtype="float32", scale=None, zero=0), {"mean": mean, "std": std, "channels": channels}


def _quantize(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _floats(where, x)
    model: ModelFile | None = given["model"]
    scale, zero = (model.input.scale, model.input.zero) if model else (given["scale"], given["zero"])
    if scale is None or zero is None:
        raise UserError(f"{where}: whose scale? Say .quantize(model), or .quantize(scale=, zero=)")
    scale, zero = _real(where, "scale", scale), _whole(where, "zero", zero, -128, 127)
    if scale <= 0:
        raise UserError(f"{where}: scale is {scale:g}; it must be above 0")
    return x.like(dtype="int8", scale=scale, zero=zero), {"scale": scale, "zero_point": zero}


def _fit(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _picture(where, x)
    model = given["model"]
    if not isinstance(model, ModelFile):
        raise UserError(f"{where}: takes a model: .fit(m) with m = app.model(...)")
    y = model.input
    if len(y.shape) != 4 or y.dtype != "int8" or y.scale is None:
        raise UserError(f'{where}: model "{model.name}" takes {y}, which is no int8 picture')
    if y.shape[3] != x.shape[3]:
        raise UserError(f'{where}: model "{model.name}" takes {y.shape[3]} channels, the step before gives {x.shape[3]}')
    mean, std = model.pixels()
    config = {"w": y.shape[2], "h": y.shape[1], "channels": y.shape[3], "mean": list(mean), "std": list(std)}
    return y.like(name=x.name), config | {"scale": y.scale, "zero_point": y.zero}


def _dequantize(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    if x.dtype != "int8" or x.scale is None:
        raise UserError(f"{where}: takes i8 with a scale, the step before gives {x}")
    return x.like(dtype="float32", scale=None, zero=0), {"scale": x.scale, "zero_point": x.zero}


def _softmax(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any] | None]:
    _scores(where, x)
    config = {"scale": x.scale, "zero_point": x.zero} if x.dtype == "int8" and x.scale is not None else None
    return x.like(dtype="float32", scale=None, zero=0), config


def _argmax(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, None]:
    _scores(where, x)
    return Spec(x.name, (1,), "score"), None


def _top_k(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _scores(where, x)
    k = _whole(where, "k", given["k"], 1, 16)
    count = 1
    for n in x.shape:
        count *= n
    return Spec(x.name, (min(k, count),), "score"), {"k": k}


def _nms(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _floats(where, x)
    if x.shape[-1] != 6 or x.bytes > 64 * 24:
        raise UserError(f"{where}: takes up to 64 boxes of 6 (x1, y1, x2, y2, score, class), the step before gives {x}")
    iou, score = _real(where, "iou", given["iou"]), _real(where, "score", given["score"])
    most = _whole(where, "max_boxes", given["max_boxes"], 1, 64)
    config = {"iou_threshold": iou, "score_threshold": score, "max_boxes": most}
    return Spec("boxes", (min(most, x.bytes // 24), 6), "float32", rows=True), config


def _suppress(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    output, config = _nms(where, x, given)
    ways = {None: 0, "linear": 1, "gaussian": 2}
    if not isinstance(given["soft"], str | None) or given["soft"] not in ways:
        raise UserError(f"{where}: soft is linear or gaussian, not {given['soft']!r}")
    sigma = _real(where, "sigma", given["sigma"])
    if sigma <= 0 or (given["soft"] and config["score_threshold"] < 0):
        raise UserError(f"{where}: sigma is above 0, and for soft ways score is 0 or more")
    return output, config | {"sigma": sigma, "method": ways[given["soft"]], "any_class": int(given["any_class"])}


def _scale(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _resize(where, x, given)
    return pictures.scale(where, x, given)


def _encode(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    _picture(where, x)
    return pictures.encode(where, x, given)


BUILTINS: dict[str, Callable[[str, Spec, dict[str, Any]], tuple[Spec, dict[str, Any] | bytes | None]]] = {
    "fit": _fit,
    "resize": _resize,
    "normalize": _normalize,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "softmax": _softmax,
    "argmax": _argmax,
    "top_k": _top_k,
    "nms": _nms,
    "suppress": _suppress,
    "scale": _scale,
    "crop": _scale,
    "colour": pictures.colour,
    "normalize_quantize": _encode,
    "map_boxes": pictures.map_boxes,
    "features": sound.features,
    "stream_features": sound.stream_features,
    "micro_features": sound.micro_features,
}
