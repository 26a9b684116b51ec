"""Sound on its way into a network: the description of its features, which travels with the model's file.

There are two kinds, what `syn.librosa` describes and the micro front ends of `syn.micro_frontend`.

A network hears only what it was trained on. `person.tflite` may have `person.features.json` beside it, and an app may
state what it thinks; where two descriptions differ, the field that differs is named.
"""

import json
from math import prod
from pathlib import Path
from typing import Any

from synapticos.app.model import ModelFile
from synapticos.app.spec import Spec
from synapticos.errors import UserError
from synapticos.kernel.stages.features import (
    MAX_FILTERS,
    WORDS,
    FeatureConfig,
    differences,
    feature_frames,
    feature_width,
    is_features,
)
from synapticos.kernel.stages.fft import MAX_FFT
from synapticos.kernel.stages.micro import micro_bytes
from synapticos.kernel.stages.stream import is_stream
from synapticos.lang import pack

Description = dict[str, Any]


def beside(model: Path) -> Path:
    """Where a model's description lies."""
    return model.with_suffix(".features.json")


def is_micro(description: Description) -> bool:
    """A micro front end (`syn.micro_frontend`), not what `syn.librosa` gives."""
    return "kind" in description


def _refuse_wrong(description: Description) -> None:
    """ValueError, KeyError, TypeError or AttributeError for what describes nothing."""
    if is_micro(description):
        micro_bytes(description, 1)
    else:
        pack(FeatureConfig, **description)


def write_features(model: Path, description: Description) -> None:
    """Store a description beside its model, in words."""
    words = description
    if not is_micro(description):
        words = {name: WORDS[name][value] if name in WORDS else value for name, value in description.items()}
    beside(model).write_text(json.dumps(words, indent=1) + "\n")


def read_features(model: Path) -> Description | None:
    """The description beside a model; None if there is none."""
    file = beside(model)
    if not file.is_file():
        return None
    try:
        description: Description = json.loads(file.read_text())
        if not is_micro(description):
            description = {n: WORDS[n].index(v) if n in WORDS else v for n, v in description.items()}
        _refuse_wrong(description)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: is no description of features: {error}") from None
    return description


def agree(where: str, one: tuple[str, Description | None], other: tuple[str, Description | None]) -> Description | None:
    """The description that two places share, or the only one. UserError names the fields in which they differ."""
    (a_name, a), (b_name, b) = one, other
    if a is None or b is None:
        return a or b
    if is_micro(a) and is_micro(b):
        found = [f"{name}: {a[name]}, {b.get(name)}" for name in a if a[name] != b.get(name)]
    elif is_micro(a) or is_micro(b):
        found = [f"kind: {', '.join(d.get('kind', 'mel') for d in (a, b))}"]
    else:
        found = differences(pack(FeatureConfig, **a), pack(FeatureConfig, **b))
    if found:
        raise UserError(f"{where}: {a_name} and {b_name} differ in {'; '.join(found)}")
    return a


def stage_of(pipeline: str, model: Any, stated: Description | None, rows: int | None) -> str:
    """Which processor makes the features that are asked for."""
    where = f'pipeline "{pipeline}": features'
    if model is not None and not isinstance(model, ModelFile):
        return "features"  # which is refused as no model
    if is_micro(_agreed(where, model, stated)):
        return "micro_features"
    return "features" if rows is None else "stream_features"


def _agreed(where: str, model: Any, stated: Description | None) -> Description:
    if stated is not None and not isinstance(stated, dict):
        raise UserError(f"{where}: {stated!r} is no description of features, like syn.librosa(...)")
    own = model.front_end if model is not None else None
    description = agree(where, (f'model "{getattr(model, "name", "")}"', own), ("the pipeline", stated))
    if description is None:
        raise UserError(f"{where}: how was the model trained? app.model(..., features=syn.librosa(...)), or a file {beside(Path('MODEL')).name}")
    return description


def _description(where: str, given: dict[str, Any]) -> Description:
    description = _agreed(where, given["model"], given["description"])
    try:
        _refuse_wrong(description)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{where}: {description!r} is no description of features, like syn.librosa(...): {error}") from None
    return description


def _samples(where: str, x: Spec) -> int:
    if x.dtype not in ("float32", "int16") or len(x.squeezed) != 1:
        raise UserError(f"{where}: takes sound (f32 or i16, one channel), the step before gives {x}")
    return x.squeezed[0]


def features(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Of a clip: what stands in x is all there is."""
    n, description = _samples(where, x), _description(where, given)
    e, config = _on_engine(description)
    if not e(is_features, config):
        raise UserError(f"{where}: no such features: {_culprit(description)}")
    frames = e(feature_frames, config, n)
    if frames == 0:
        raise UserError(f"{where}: {n} samples are not one frame of {description['fft']} (n_fft); give the source a window of as many")
    return _shaped(given["model"], frames, e(feature_width, config)), description


def _culprit(d: Description) -> str:
    """Which field of a description that `is_features` refuses is why, and what it may be."""
    fft, coefficients, filters = d["fft"], d["coefficients"], d["filters"]
    if fft < 8 or fft > MAX_FFT or fft & (fft - 1):
        whole = min(max(8, 1 << (fft - 1).bit_length()), MAX_FFT)
        way = f": n_fft={whole} with win_length={d['window']} has the same window" if d["window"] <= whole else ""
        return f"fft is {fft} (n_fft), and a power of two from 8 to {MAX_FFT}{way}"
    if not 2 <= d["window"] <= fft:
        return f"window is {d['window']} (win_length), and from 2 to fft, {fft}"
    if not 1 <= filters <= MAX_FILTERS:
        return f"filters is {filters} (n_mels), and from 1 to {MAX_FILTERS}"
    if coefficients and coefficients + 1 - d["keep_first"] > filters:
        return f"coefficients is {coefficients} (n_mfcc), and at most filters (n_mels), {filters}"
    if not 0 <= d["low_hz"] < d["high_hz"] <= d["rate"] / 2:
        return f"from low_hz {d['low_hz']:g} to high_hz {d['high_hz']:g} (fmin, fmax), and within 0 to half the rate, {d['rate'] / 2:g}"
    return f"a field of {d} is out of its range"


def micro_features(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, bytes]:
    """Of a stream, by a micro front end: x is what came since the last time."""
    n = _samples(where, x)
    if x.dtype != "int16":
        raise UserError(f"{where}: a micro front end takes samples of 16 bits, the step before gives {x}")
    description, rows, model = _description(where, given), _rows(where, given), given["model"]
    filters = description["filters"]
    if rows is None:  # as many as the model takes, or as new samples make
        rows = prod(model.input.shape) // filters if model is not None else n * 1000 // (description["rate"] * description["step_ms"])
    return _shaped(model, max(rows, 1), filters), micro_bytes(description, max(rows, 1))


def _rows(where: str, given: dict[str, Any]) -> int | None:
    rows = given["rows"]
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= 4096):
        raise UserError(f"{where}: rows is a whole number from 1 to 4096, not {rows!r}")
    return rows


def stream_features(where: str, x: Spec, given: dict[str, Any]) -> tuple[Spec, dict[str, Any]]:
    """Of a stream: x is what came since the last time."""
    _samples(where, x)
    description = _description(where, given)
    e, config = _on_engine(description)
    if not e(is_stream, config):
        raise UserError(f"{where}: a stream has no end: its frames are not padded (center=False) and its range is not limited (top_db=None)")
    rows = _rows(where, given)
    assert rows is not None  # else these are the features of a clip
    return _shaped(given["model"], rows, e(feature_width, config)), {"features": pack(FeatureConfig, **description), "rows": rows}


def _shaped(model: Any, frames: int, width: int) -> Spec:
    """Row after row, in the model's own shape where it takes as many numbers: many take them flat."""
    shape = (frames, width)
    if model is not None and prod(model.input.shape) == frames * width:
        shape = model.input.shape
    return Spec("features", shape, "float32")


def _on_engine(description: Description) -> tuple[Any, Any]:
    from synapticos.engine import default_engine

    e: Any = default_engine()
    return e, e.new(FeatureConfig, **description)
