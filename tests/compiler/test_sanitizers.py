"""What checked CPython accepts, the sanitizers of C accept too: kernel tests again, on sanitized native builds.

In a process of their own, because a report ends the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from synapticos import toolchain

ROOT = Path(__file__).parents[2]
TESTS = ["tests/compiler/test_found.py", "tests/kernel/layers/test_requant.py", "tests/kernel/stages/test_nms.py", "tests/compiler/test_f32.py"]


def run(compiler: str, sanitize: str, tests: list[str], **environment: str) -> str:
    if compiler not in [c.name for c in toolchain.find_all("host")]:
        pytest.skip(f"no {compiler}")
    search = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "sanitize_plugin", "-p", "no:cacheprovider", "-k", "native", *tests],
        cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"SANITIZE": sanitize, "SANITIZE_CC": compiler, "PYTHONPATH": search} | environment,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_nothing_undefined_is_done(compiler):
    assert " passed" in run(compiler, "undefined", TESTS)


@pytest.mark.slow
def test_no_byte_outside_an_object_is_touched():
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False) if toolchain.find_all("host") else None
    if found is None or not Path(found.stdout.strip()).is_absolute():
        pytest.skip("gcc's AddressSanitizer is not installed")
    out = run("gcc", "address,undefined", ["tests/kernel/test_arena.py", *TESTS[:2]], LD_PRELOAD=found.stdout.strip(), ASAN_OPTIONS="detect_leaks=0", PYTHONMALLOC="malloc")
    assert " passed" in out


def test_a_write_outside_an_object_is_reported(tmp_path):
    """That the sanitizer sees at all: a stage that writes one element too far."""
    module = tmp_path / "too_far.py"
    module.write_text(
        "from synapticos.lang import *\n\n\n@fn\ndef put(p: Ptr[u8], i: u32):\n    p[i] = 1\n\n\n"
        "def test_native_put():\n    from synapticos.engine import Build\n\n    e = Build([put]).engine('native')\n    e(put, e.array(u8, 24), 24)\n"
    )
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False) if toolchain.find_all("host") else None
    if found is None or not Path(found.stdout.strip()).is_absolute():
        pytest.skip("gcc's AddressSanitizer is not installed")
    with pytest.raises(AssertionError) as raised:
        run("gcc", "address", [str(module)], LD_PRELOAD=found.stdout.strip(), ASAN_OPTIONS="detect_leaks=0")
    assert "too_far.py:6" in str(raised.value)
