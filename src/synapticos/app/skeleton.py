"""The app that `syn new` writes: a network, a stage of the user's own, one job."""

import re
import shutil
from importlib.resources import as_file, files
from pathlib import Path
from string import Template

from synapticos.app.declare import check_name
from synapticos.errors import UserError

APP = Template('''"""$name: a network, and a stage of your own behind it.

    syn run app.py                        on this machine
    syn run app.py --board mps2-an521     as firmware, in an emulator
"""

import synapticos as syn
from synapticos import Array, Shaped, Status, f32, i8, i32

app = syn.App("$name")
source = app.frames("source", $input_shape, "$input_type", file="frames.bin")
network = app.model("$model", name="network", outputs=($output_names))


@syn.struct
class Settings:
    threshold: f32


@syn.stage
def above(
    $first: Shaped[Array[i8], $elements], ${first}_scale: f32, ${first}_zero: i32, cfg: Settings, out: Shaped[Array[f32], $elements]
) -> Status:
    """What is above the threshold, as reals; the rest as 0. Typed Python: the same bytes on the host and on a chip."""
    for i in range($elements):
        value = ${first}_scale * f32($first[i] - ${first}_zero)
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
        x, outputs = network.input, network.outputs
        if len(outputs) != 1 or outputs[0].dtype != "int8" or outputs[0].scale is None:
            there = ", ".join(str(s) for s in outputs)
            raise UserError(f"{network.path}: the skeleton is for networks with one int8 output, this one has {there}; copy examples/face_detection instead")
        elements = 1
        for n in outputs[0].shape:
            elements *= n
        text = APP.substitute(
            name=name,
            model=network.path.name,
            input_shape=x.shape,
            input_type=x.dtype,
            first="values",
            output_names='"values",',
            elements=elements,
        )
        folder.mkdir(parents=True)
        try:
            shutil.copyfile(network.path, folder / network.path.name)
            # Four frames, each of one value: a quarter of the way up from the lowest, and so on.
            low = 128 if x.dtype == "int8" else 0
            values = [(low + 64 * i) % 256 for i in range(4)] if x.dtype in ("int8", "uint8") else [0]
            (folder / "frames.bin").write_bytes(b"".join(bytes([v]) * x.bytes for v in values))
            (folder / "app.py").write_text(text)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return [folder / "app.py", folder / network.path.name, folder / "frames.bin"]
