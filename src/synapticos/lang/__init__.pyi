"""The words of kernel-Python as editors and type checkers see them: a width is an alias of int, so that literals fit
and a hover over a parameter, field or result says `u32`. What CPython runs is `__init__.py`; both have the same names.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated as Shaped
from typing import Any, Final, Generic, TypeAlias, TypeVar, dataclass_transform, overload
from typing import Callable as Fn  # noqa: UP035 - `Fn[[A, B], R]` shall read as Callable does

from .layouts import layout, pack, sizeof, unpack
from .trap import Trap

u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
f32: TypeAlias = float

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_E = TypeVar("_E", bound=Enum)
_F = TypeVar("_F", bound=Callable[..., Any])

class Ptr(Generic[_T]):
    """A pointer to elements, without a length."""
    @overload
    def __getitem__(self, at: slice, /) -> Ptr[_T]: ...
    @overload
    def __getitem__(self, at: tuple[int, slice], /) -> Ptr[_T]: ...
    @overload
    def __getitem__(self, at: tuple[int, int, slice], /) -> Ptr[_T]: ...
    @overload
    def __getitem__(self, at: int | tuple[int, ...], /) -> _T: ...
    def __setitem__(self, at: int | tuple[int, ...], value: _T, /) -> None: ...
    def __iter__(self) -> Iterator[_T]: ...

class Array(Ptr[_T]):
    """Elements in a row; its shape is written beside it: `Shaped[Array[T], n]`."""
    def __len__(self) -> int: ...

class Rows(Ptr[_T]):
    """In an app: as many rows as came, of the shape written beside it."""

def param(width: type[int], default: int, *, max: int | None = None, min: int = 0) -> int:
    """A capacity: a number that each build may set, by this name, between `min` and `max`."""

@overload
def rom(element: bytes) -> Array[u8]: ...
@overload
def rom(element: type[_T], values: Any) -> Array[_T]:
    """A constant table: `rom(i16, [...])`, nested lists for two dimensions, `rom(b"text")` with a 0 after it."""

def blob() -> Any:
    """Constant bytes that a build gives by this name; `len()` of it is their count. 16-aligned."""

def table(type: Any, entries: list[Any], *, open: bool = False) -> Any:
    """A table of functions of one `Fn` type, called as `TABLE[i](...)`."""

@overload
def static(type: type[_T], *, align: int = 0, section: str = "") -> _T: ...
@overload
def static(type: type[_T], count: int, *, align: int = 0, section: str = "") -> Array[_T]:
    """Memory of a program's root: one struct, or an array of `count` elements."""

@overload
def fn(python: _F, /) -> _F: ...
@overload
def fn(*, pure: bool = False, inline: bool | None = None, disjoint: bool = False, nan: bool = False) -> Callable[[_F], _F]:
    """Kernel-Python from here on. `pure`: writes nothing but its own locals, so calls to it may stand anywhere."""

def intrinsic(code: str, *, when: str = "defined(__ARM_FEATURE_DSP)") -> Callable[[_F], _F]:
    """An instruction: `code` is C with `{0}`, `{1}`... for the arguments, used where the C condition `when` holds."""

def hal_function(python: _F, /) -> _F:
    """A function that the board answers."""

@dataclass_transform(kw_only_default=True)
def struct(cls: type[_T], /) -> type[_T]:
    """A struct: annotated fields in order, natural alignment. Functions in it are its methods."""

def wrap(width: type[_T], value: int, /) -> _T:
    """The exact value of the whole expression modulo the width."""

def sat(width: type[_T], value: float, /) -> _T:
    """The value, or the nearest that the width holds; NaN gives 0."""

@overload
def view(type: type[int], p: Any, /) -> Ptr[int]: ...
@overload
def view(type: type[float], p: Any, /) -> Ptr[float]: ...
@overload
def view(type: type[_T], p: Any, /) -> _T:
    """Memory seen as another type: a pointer to numbers, or a reference to a struct."""

def bits(x: f32, /) -> u32:
    """The bits of a float; 0x7fc00000 for each NaN."""

def from_bits(word: u32, /) -> f32: ...
def isnan(x: f32, /) -> bool: ...
@overload
def local(type: type[_T], /, *, zero: bool = True) -> _T: ...
@overload
def local(type: type[_T], count: int, /, *, zero: bool = True) -> Array[_T]:
    """A struct or array of this function, zero at first; with `zero=False` it holds whatever lay there."""

def copy(dst: _T, src: _T, /) -> None:
    """Copy a struct, or an array of the same type."""

def fill(p: Ptr[_T], value: _T, count: u32, /) -> None: ...
def move(dst: Ptr[_T], src: Ptr[_T], count: u32, /) -> None:
    """Copy elements; the two may overlap."""

def null(type: type[_T], /) -> Any: ...
def aligned(p: Ptr[Any], to: int, /) -> bool: ...
@overload
def check(result: tuple[Enum, _A | None, _B | None, _C | None], /) -> tuple[_A, _B, _C]: ...
@overload
def check(result: tuple[Enum, _A | None, _B | None], /) -> tuple[_A, _B]: ...
@overload
def check(result: tuple[Enum, _A | None], /) -> _A: ...
@overload
def check(result: Enum, /) -> None:
    """Hand a Status that is not OK on to the caller; the other results."""

def ignore(result: Any, /) -> None:
    """Drop a Status on purpose."""

def refuse(note: Any, status: _E, text: str, /) -> _E:
    """Store why in the note; the result is the Status."""

def div_floor(a: int, b: int, /) -> int: ...
def mod_floor(a: int, b: int, /) -> int: ...
def div_trunc(a: int, b: int, /) -> int: ...
def rem_trunc(a: int, b: int, /) -> int: ...
def div_u64(a: u64, b: u64, /) -> u64: ...
def rem_u64(a: u64, b: u64, /) -> u64: ...
def load_acquire(p: Ptr[_T], /) -> _T: ...
def store_release(p: Ptr[_T], value: _T, /) -> None: ...
def fence() -> None: ...

class _Console:
    def print(self, text: str) -> None:
        """Write a line to the board's console: `console.print(f"{used:>7} of {size:x}")`."""

class _Log:
    def error(self, log: Any, text: str) -> None: ...
    def warning(self, log: Any, text: str) -> None: ...
    def info(self, log: Any, text: str) -> None: ...
    def debug(self, log: Any, text: str) -> None: ...

console: _Console
log: _Log

__all__ = [
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "Array", "Ptr", "Rows", "Shaped", "Fn", "Final", "Enum",
    "param", "rom", "blob", "table", "static", "fn", "intrinsic", "hal_function", "struct", "wrap", "sat", "view", "bits", "from_bits",
    "isnan", "local", "copy", "fill", "move", "null", "aligned", "check", "ignore", "refuse", "console", "log", "div_floor", "mod_floor",
    "div_trunc", "rem_trunc", "div_u64", "rem_u64", "load_acquire", "store_release", "fence", "Trap", "layout", "pack", "sizeof", "unpack",
]  # fmt: skip
