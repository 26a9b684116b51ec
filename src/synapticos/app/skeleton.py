"""The app that `syn new` writes: a network, a stage of the user's own, one job."""

import re
import shutil
from importlib.resources import as_file, files
from math import prod
from pathlib import Path
from string import Template

import numpy as np

from synapticos.app.declare import check_name
from synapticos.app.spec import DTYPES, LETTERS, Spec
from synapticos.errors import UserError

APP = Template('''"""$name: a network, and a stage of your own behind it.

    syn run app.py                        on this machine
    syn run app.py --engine checked       the same, and a value or an index that leaves its range stops with its line
    syn run app.py --board mps2-an521     as firmware, in an emulator

frames.bin has what the network is given: $frames inputs of $input_bytes bytes, one after the other, made up. Put your own
there, or say `--source FILE`.
"""

import synapticos as syn
from synapticos import Array, Shaped, Status, $words

app = syn.App("$name")
source = app.frames("source", $input_shape, "$input_type", file="frames.bin")
network = app.model("$model", name="network", outputs=($output_names))


@syn.struct
class Settings:
    threshold: f32  # results up to it become 0


@syn.stage
def above(
    $parameters, cfg: Settings, out: Shaped[Array[f32], $elements]
) -> Status:
    """What is above the threshold, as reals; the rest as 0. Typed Python: the same bytes on the host and on a chip."""
    for i in range($elements):
        value = $value
        out[i] = value if value > cfg.threshold else 0.0
    return Status.OK


results = app.pipeline("results", source).model(network).stage(above, threshold=0.25)
app.job(results, priority=syn.NORMAL)
''')


def write_skeleton(folder: Path, model: Path | None) -> list[Path]:
    """Write an app into `folder`, which must not be there yet: the files written."""
    from synapticos.app.model import ModelFile

    name = re.sub(r"\W", "_", folder.resolve().name)[:23]
    check_name(name, "app")
    if model is not None and not model.is_file():
        raise UserError(f"{model}: no such file")
    with as_file(files("synapticos.app") / "sine.tflite") as bundled:
        network = ModelFile(model or bundled, "network")
        frames = _frames(network.input)
        text = APP.substitute(
            _stage_of(network.outputs[0]),
            name=name,
            model=network.path.name,
            frames=len(frames),
            input_bytes=network.input.bytes,
            input_shape=network.input.shape,
            input_type=network.input.dtype,
            output_names="".join(f'"{n}", ' for n in _names(len(network.outputs))).rstrip(" " if len(network.outputs) == 1 else ", "),
        )
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made ({(error.strerror or str(error)).lower()}); name another folder") from None
        try:
            shutil.copyfile(network.path, folder / network.path.name)
            (folder / "frames.bin").write_bytes(b"".join(f.tobytes() for f in frames))
            (folder / "app.py").write_text(text)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise UserError(f"{folder}: cannot be written ({(error.strerror or str(error)).lower()})") from None
    return [folder / "app.py", folder / network.path.name, folder / "frames.bin"]


def _names(count: int) -> list[str]:
    """Names for a network's outputs; the stage takes the first."""
    return ["values", *(f"values{i}" for i in range(2, count + 1))]


def _frames(spec: Spec) -> list[np.ndarray]:
    """Four frames of one value each: the lowest of what the type holds, a quarter of the way up, and so on."""
    kind = DTYPES[spec.dtype]
    if kind.kind == "f":
        values = [0.0, 0.25, 0.5, 0.75]
    else:
        low, step = np.iinfo(kind).min, 2 ** (8 * kind.itemsize - 2)
        values = [low + step * i for i in range(4)]
    return [np.full(spec.shape, v, kind) for v in values]


def _stage_of(spec: Spec) -> dict[str, object]:
    """The parts of the stage that depend on the tensor it takes."""
    width = LETTERS[spec.dtype]
    parameters = [f"values: Shaped[Array[{width}], {prod(spec.shape)}]"]
    value = "values[i]" if width == "f32" else "f32(values[i])"
    words = {"f32", width}
    if spec.scale is not None and width != "f32":
        parameters += ["values_scale: f32", "values_zero: i32"]
        value = "values_scale * f32(values[i] - values_zero)"
        words.add("i32")
    return {
        "parameters": ", ".join(parameters),
        "value": value,
        "words": ", ".join(sorted(words, key=lambda w: (w[0], int(w[1:])))),
        "elements": prod(spec.shape),
    }
