"""Whatever looks at the C, or at checked code, sees the Python: gdb, compiler warnings, tracebacks, coverage. Builds are equal bytes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from synapticos import toolchain
from synapticos.engine import Build
from synapticos.lang import *


@struct
class Scale:
    grams: u32
    pad: u32


@fn
def weigh(scale: Scale, grams: u32) -> u32:
    """Twice the weight, and one."""
    doubled = grams * 2
    scale.grams = doubled
    return doubled + 1  # the line to stop at


def line_of(text: str) -> int:
    return next(n for n, row in enumerate(Path(__file__).read_text().splitlines(), 1) if text in row and "line_of" not in row)


def test_gdb_stops_at_a_python_line_of_the_native_library(tmp_path):
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed (apt install gdb)")
    if not toolchain.find_all("host"):
        pytest.skip("no C compiler")
    script = tmp_path / "call.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_debug import *\n"
        "e = Build([weigh]).engine('native')\nprint(e(weigh, e.new(Scale), 21))\n"
    )
    line = line_of("the line to stop at")
    orders = ["set breakpoint pending on", "set confirm off", "set debuginfod enabled off", f"directory {Path(__file__).parents[1]}",
              f"break {Path(__file__).name}:{line}", "run", "info args", "list", "kill"]  # fmt: skip
    done = subprocess.run([gdb, "-nx", "-batch", *(x for order in orders for x in ("-ex", order)), "--args", sys.executable, str(script)],
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    said = done.stdout + done.stderr
    if "ptrace" in said and "Operation not permitted" in said:
        pytest.skip("this machine does not let gdb trace")
    assert f"test_debug.py:{line}" in said, said
    assert "grams = 21" in said or "scale = 0x" in said, said
    assert "return doubled + 1  # the line to stop at" in said, said


@pytest.mark.parametrize("chain", toolchain.find_all("host"), ids=lambda c: c.name)
def test_a_message_of_the_c_compiler_names_the_python(chain, tmp_path):
    made = Build([weigh]).c_files(tmp_path)
    body = next(p for p in tmp_path.glob("*test_debug.c"))
    body.write_text(body.read_text().replace("return doubled", "return undeclared"))
    with pytest.raises(toolchain.CompileError) as raised:
        chain.compile([p for p in made if p.name == "layers.c"], tmp_path / "out", ["-O2", f"-I{tmp_path}", f"-Wa,-I{tmp_path}"])
    assert f"compiler/test_debug.py:{line_of('the line to stop at')}:" in str(raised.value)


def test_a_trap_has_the_functions_line_in_its_traceback():
    e = Build([weigh]).engine("checked")
    with pytest.raises(Trap) as raised:
        e(weigh, e.new(Scale), 1 << 31)
    line = line_of("doubled = grams * 2")
    assert str(raised.value) == f"compiler/test_debug.py:{line}: 4294967296 overflows u32"
    assert any(f.filename == __file__ and f.lineno == line for f in traceback.extract_tb(raised.value.__traceback__))


def test_a_tracer_sees_each_line_of_the_source():
    """What pdb steps through and coverage counts."""
    e = Build([weigh]).engine("checked")
    seen = []

    def trace(frame, event, arg):
        if event == "line" and frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f_weigh":
            seen.append((frame.f_lineno, frame.f_locals.get("grams")))
        return trace

    sys.settrace(trace)
    try:
        e(weigh, e.new(Scale), 3)
    finally:
        sys.settrace(None)
    first = line_of("doubled = grams * 2")
    assert seen == [(first, 3), (first + 1, 3), (first + 2, 3)]


@pytest.mark.parametrize("chain", [c for t in ("host", "cortex-m33") for c in toolchain.find_all(t)], ids=lambda c: f"{c.name}-{c.target.name}")
def test_two_builds_in_two_folders_are_equal_bytes(chain, tmp_path):
    objects = []
    for folder in (tmp_path / "one", tmp_path / "another-and-longer"):
        files = Build([weigh]).c_files(folder)
        flags = ["-O2", "-g", f"-I{folder}", f"-Wa,-I{folder}", f"-ffile-prefix-map={folder}=."]
        objects.append([p.read_bytes() for p in chain.compile(files, folder / "out", flags)])
    assert objects[0] == objects[1]


def test_the_c_does_not_depend_on_where_it_is_written(tmp_path):
    for name in ("one", "two"):
        Build([weigh]).c_files(tmp_path / name)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two
