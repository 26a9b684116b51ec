"""The words of kernel-Python. A kernel file begins `from synapticos.lang import *`; apps import words by name.

`__init__.pyi` beside this file is what editors and type checkers see.
"""

from . import words as _words
from .layouts import layout, pack, sizeof, unpack
from .trap import Trap
from .words import *  # noqa: F403

__all__ = [*_words.__all__, "Trap", "layout", "pack", "sizeof", "unpack"]
