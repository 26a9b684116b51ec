"""Kernel-Python files to C and to checked Python.

`parse` (source and ast) -> `check` (a typed tree, every implicit step explicit) -> `emit_c` or `emit_checked`.
Both emitters read the same tree (`ir`) and neither decides a type. `diag` words every message.
"""

from .diag import LanguageError
from .program import Program

__all__ = ["LanguageError", "Program"]
