"""Random programs, a fixed seed: the engines and compilers agree. Fresh seeds: `python tests/compiler/fuzz.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from synapticos import toolchain

FUZZ = Path(__file__).with_name("fuzz.py")


@pytest.mark.parametrize("seed", [7, 1729])
def test_random_programs_do_the_same_everywhere(seed, tmp_path):
    if not toolchain.find_all("host"):
        pytest.skip("no C compiler")
    # In a process of its own: a report of the sanitizer ends it.
    done = subprocess.run([sys.executable, str(FUZZ), "--seed", str(seed), "--functions", "24", "--calls", "8", "--keep", str(tmp_path)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    last = tmp_path / "last-call"
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:] + (last.read_text() if last.exists() else "")
