"""A pytest plugin: the native engine is built with the sanitizers named in SANITIZE, by the compiler named in SANITIZE_CC."""

from __future__ import annotations

import os
from typing import Any

from synapticos.engine import Build

_engine = Build.engine


def engine(self: Build, name: str, **options: Any) -> Any:
    if name == "native":
        options |= {"sanitize": tuple(os.environ["SANITIZE"].split(",")), "compiler": os.environ["SANITIZE_CC"]}
    return _engine(self, name, **options)


Build.engine = engine  # type: ignore[method-assign]
