"""A build and the three ways to run it: checked CPython, native, Cortex-M in the in-process emulator."""

from .base import Engine
from .build import ENGINES, Build, default_engine
from .obj import Obj

__all__ = ["ENGINES", "Build", "Engine", "Obj", "default_engine"]
