"""How long a build takes: the whole kernel to a shared library, cold and from the cache, and what an import costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

_WHOLE = """
import time
t = time.perf_counter()
from synapticos.engine import Build
from synapticos.kernel.api import EXPORTS
from synapticos.kernel.cpu_backend import CPU_BACKEND
build = Build(list(EXPORTS.values()), tables=CPU_BACKEND)
s = time.perf_counter()
build.engine("native")
print(time.perf_counter() - s)
"""
_IMPORT = "import time; t = time.perf_counter(); import synapticos; print(time.perf_counter() - t)"


def _run(code: str, cache: str) -> float:
    environment = dict(os.environ, XDG_CACHE_HOME=cache)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout)


def figures() -> dict[str, float]:
    """Name -> seconds."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _run(_WHOLE, cache)
        cached = min(_run(_WHOLE, cache) for _ in range(3))
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    python = time.perf_counter() - start
    return {
        "the whole kernel to a shared library, cold": cold,
        "the same, cached": cached,
        "import synapticos": min(_run(_IMPORT, "") for _ in range(3)),
        "(starting Python itself)": python,
    }
