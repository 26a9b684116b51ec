"""Flash and RAM: the published samples and a real network on `lm3s6965evb`, and what each part of a firmware takes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

from examples.published import face_detection, hello_inference
from synapticos import boards, toolchain
from synapticos.app.load import load_app
from synapticos.boards import firmware
from synapticos.compiler import Program
from synapticos.host.firmware import build_firmware, link_program
from synapticos.kernel.stages.tables import stage_tables

from .__main__ import ROOT, folder, table

BOARD = "lm3s6965evb"
PUBLISHED = {"hello_inference": "27.9 KB flash, 30.4 KB RAM", "face_detection": "42.7 KB flash, 32.2 KB RAM"}

# What an app's firmware gets only if the app needs it. Each alone: parts that features share are counted with each.
FEATURES = {
    "stages beside the model": {"PLAIN_STAGES": 1},
    "deadlines": {"DEADLINES": 1},
    "a second job slot, pre-emption": {"MAX_JOBS": 2},
    "models that keep a state": {"MODEL_STATE": 1},
    "times of stages and layers": {"PROFILING": 1},
    "refusals with their figures": {"NOTES": 1, "NOTE_ARGS": 4},
    "a log of 8 records": {"LOG_LEVEL": 3, "LOG_RECORDS": 8, "LOG_ARGS": 4},
    "pipelines composed at run time": {"COMPOSING": 1, "PIPELINE_NAME": 24},
    "stages of the host": {"PLAIN_STAGES": 1, "HOST_STAGES": 1},
    "backends that hold one model at a time": {"ACCELERATOR": 1},
}


def text() -> str:
    board = boards.find(BOARD)
    chain = toolchain.find(board.target)
    rows = []
    for name, module in (("hello_inference", hello_inference), ("face_detection", face_detection)):
        elf, _ = link_program(Program.of([module.main], {}, 4, stage_tables(module.PROCESSORS)), module.main, board, chain)
        sizes = firmware.sizes(elf, board)
        rows.append([f"published sample {name} (published: {PUBLISHED[name]})", f"{sizes['flash']:,}", f"{sizes['data'] + sizes['bss']:,}", f"{sizes['stack']:,}"])
    out = [table([f"{BOARD}, {chain.name} {chain.version}", "flash, bytes", "RAM without stack, arena included", "stack"], rows)]
    model = folder() / "hello_world_int8.tflite"
    with tempfile.TemporaryDirectory() as scratch:
        name = "hello_world_int8" if model.exists() else "sine"
        (Path(scratch) / "app.py").write_text(_APP)
        (Path(scratch) / "model.tflite").write_bytes((model if model.exists() else ROOT / "examples" / "hello_world" / "sine.tflite").read_bytes())
        (Path(scratch) / "in.bin").write_bytes(bytes(4))
        app = load_app(Path(scratch) / "app.py")
        made = build_firmware(app, BOARD, profile=False)
        rows = [[n, f"{flash:,}", f"{ram:,}"] for n, flash, ram in made.parts]
        rows.append(["all", f"{made.sizes['flash']:,}", f"{made.sizes['ram']:,}"])
        out.append(table([f"firmware of an app with {name}, without profile", "flash", "RAM"], rows))
        out.append(table(["the largest functions in it", "bytes"], [[n, f"{s:,}"] for n, s in _functions(made.elf)[:16]]))
        rows = []
        for title, settings in FEATURES.items():
            sizes = build_firmware(app, BOARD, profile=False, settings=settings).sizes
            rows.append([title, f"{sizes['flash'] - made.sizes['flash']:,}", f"{sizes['ram'] - made.sizes['ram']:,}"])
        out.append(table(["what it would take more with", "flash", "RAM"], rows))
    return "\n\n".join(out)


def _functions(elf: bytes) -> list[tuple[str, int]]:
    import io

    symbols = ELFFile(io.BytesIO(elf)).get_section_by_name(".symtab")
    found = [(s.name, s["st_size"]) for s in symbols.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]  # type: ignore[attr-defined]
    return sorted(found, key=lambda f: -f[1])


_APP = """
import synapticos as syn

app = syn.App("hello")
source = app.frames("x", (1, 1), "int8", file="in.bin")
net = app.model("model.tflite")
wave = app.pipeline("wave", source).model(net)
app.job(wave)
"""
