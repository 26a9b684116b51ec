"""Names that C or its headers have taken: a Python name that meets one gets a `_` in C."""

from __future__ import annotations

import re

WORDS = frozenset("""auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
bool true false NULL offsetof linux unix i386""".split())  # fmt: skip
_PATTERN = re.compile(r"""
    u?int(8|16|32|64|ptr|max|_least\d+|_fast\d+)_t | (size|ptrdiff|wchar|max_align|wint)_t
  | U?INT(8|16|32|64|PTR|MAX|_LEAST\d+|_FAST\d+)_(MIN|MAX|C|WIDTH) | (SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MIN|MAX|WIDTH)
  | (syn|hal|SYN|HAL)_\w+ | mem(cpy|move|set|cmp) | PROGRAM_H
""", re.VERBOSE)  # fmt: skip


def taken(name: str) -> bool:
    return name in WORDS or _PATTERN.fullmatch(name) is not None


def c_name(name: str) -> str:
    """The name as C may have it."""
    return name + "_" if taken(name) else name
