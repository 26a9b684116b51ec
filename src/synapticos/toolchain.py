"""Toolchain: the C compilers of this machine, and a cache of what they made.

A build names a target (`host`, `cortex-m33`, ...), never a compiler's options: the two dialects (gcc's and zig's) are
spelled in `TARGETS`. `find(target)` gives the first compiler that is installed, `find_all(target)` each of them,
because every file is compiled by two in tests.

    arm = toolchain.find("cortex-m33")
    arm.link(arm.compile(files, folder), folder / "fw.elf", script=script)

Nothing is fetched: where there is neither gcc nor clang, the `ziglang` wheel is both compilers.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from synapticos.errors import UserError

# What generated C relies on, so never optional: see docs/language.md, "From Python to C".
ALWAYS = (
    *("-std=gnu99", "-ffreestanding", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing"),
    *("-fno-delete-null-pointer-checks", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"),
)
GCC_ONLY = ("-fno-tree-loop-distribute-patterns",)  # clang has no such option, nor the habit that it turns off
INSTALL = "pip install synapticos[toolchain]"


class CompileError(UserError):
    """A compiler refused a file, or a linker a program; the text is what it said."""


@dataclass(frozen=True)
class Target:
    """A processor, spelled for both families of compilers."""

    name: str
    gcc: tuple[str, ...]
    zig: tuple[str, ...]

    @property
    def is_host(self) -> bool:
        return self.name == "host"


def _zig(abi: str, cpu: str) -> tuple[str, ...]:
    return ("-target", f"thumb-freestanding-{abi}", f"-mcpu={cpu}")


TARGETS: dict[str, Target] = {
    t.name: t
    for t in (
        Target("host", (), ()),
        Target(
            "cortex-m33",
            ("-mthumb", "-mcpu=cortex-m33", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
            _zig("eabihf", "cortex_m33+dsp+fp_armv8d16sp"),
        ),
        Target(
            "cortex-m33-nofpu", ("-mthumb", "-mcpu=cortex-m33+nofp", "-mfloat-abi=soft"), _zig("eabi", "cortex_m33+dsp")
        ),
        Target("cortex-m3", ("-mthumb", "-mcpu=cortex-m3", "-mfloat-abi=soft"), _zig("eabi", "cortex_m3")),
    )
}


@dataclass(frozen=True)
class Toolchain:
    """One compiler for one target."""

    name: str  # gcc, clang, zig, arm-none-eabi-gcc
    version: str
    command: tuple[str, ...]
    target: Target

    @property
    def is_zig(self) -> bool:
        return self.name == "zig"

    def flags(self, sanitize: Sequence[str] = ()) -> list[str]:
        """The flags of this target that every file gets; the optimisation level is the caller's."""
        flags = [*(self.target.zig if self.is_zig else self.target.gcc), *ALWAYS]
        if self.target.is_host:
            flags.append("-fPIC")
        if sanitize:
            flags += [f"-fsanitize={','.join(sanitize)}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"]
        elif self.is_zig:
            flags.append("-fno-sanitize=undefined")  # zig turns it on below -O1
        return flags

    def compile(
        self,
        files: Iterable[Path],
        folder: Path,
        flags: Sequence[str] = ("-O2", "-g"),
        *,
        per_file: Mapping[str, Sequence[str]] | None = None,
        sanitize: Sequence[str] = (),
        jobs: int = 2,
    ) -> list[Path]:
        """Compile each of `files` into an object in `folder`, two at a time; `per_file` adds flags by file name.

        Raises CompileError with the text of the first file that does not compile.
        """
        folder.mkdir(parents=True, exist_ok=True)
        common = [*self.command, *self.flags(sanitize), *flags]
        dropped = () if "gcc" in self.name else GCC_ONLY
        work: list[tuple[list[str], Path]] = []
        for number, file in enumerate(files):
            out = folder / f"{number:02}-{file.stem}.o"
            own = [flag for flag in (per_file or {}).get(file.name, ()) if flag not in dropped]
            work.append(([*common, *own, "-c", str(file), "-o", str(out)], out))
        if jobs > 1 and len(work) > 1:
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(lambda item: _run(item[0]), work))
        else:
            for command, _ in work:
                _run(command)
        return [out for _, out in work]

    def shared(
        self,
        files: Iterable[Path],
        out: Path,
        flags: Sequence[str] = ("-O2", "-g"),
        *,
        sanitize: Sequence[str] = (),
        per_file: Mapping[str, Sequence[str]] | None = None,
    ) -> Path:
        """Compile `files` and link them as a shared library of the host."""
        if not self.target.is_host:
            raise ValueError(f"a shared library is for the host, not for {self.target.name}")
        with tempfile.TemporaryDirectory(prefix="syn-cc-") as scratch:
            objects = self.compile(files, Path(scratch), flags, sanitize=sanitize, per_file=per_file)
            link = [*self.command, "-shared", "-fPIC", *(str(o) for o in objects), "-o", str(out)]
            if sys.platform != "darwin":
                link.append("-Wl,-Bsymbolic")  # a library's own names win over the process's
            if sanitize:
                link.append(f"-fsanitize={','.join(sanitize)}")
            elif self.is_zig:
                link.append("-fno-sanitize=undefined")
            _run(link)
        return out

    def sanitizer_environment(self) -> dict[str, str]:
        """Variables with which a new Python can load a library built with `sanitize=["address", ...]`.

        Empty for a compiler that brings no runtime to preload (zig).
        """
        if self.is_zig or not self.target.is_host:
            return {}
        name = "libasan.so" if self.name == "gcc" else "libclang_rt.asan-x86_64.so"
        path = _run([*self.command, f"-print-file-name={name}"]).strip()
        if not os.path.isabs(path):
            return {}
        return {"LD_PRELOAD": os.path.realpath(path), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}

    def link(
        self, objects: Iterable[Path], out: Path, *, script: Path, keep: Iterable[str] = (), flags: Sequence[str] = ()
    ) -> Path:
        """Link objects of a chip into an ELF by a linker script; `keep` are symbols that must stay, called or not."""
        if self.target.is_host:
            raise ValueError("a linker script is for a chip")
        command = [*self.command, *(self.target.zig if self.is_zig else self.target.gcc)]
        command += ["-Wl,-T," + str(script), "-Wl,--gc-sections", *(f"-Wl,-u,{name}" for name in keep), *flags]
        command += [str(o) for o in objects]
        command += (
            ["-fno-sanitize=undefined"]
            if self.is_zig
            else ["-nostartfiles", "-nodefaultlibs", "-lgcc", "-Wl,--no-warn-rwx-segments"]
        )
        _run([*command, "-o", str(out)])
        return out


def _environment() -> dict[str, str]:
    """The compiler's environment: zig's own cache lies in ours, so one command shows and clears both."""
    environment = dict(os.environ, LC_ALL="C")
    environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_folder() / "zig"))
    environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(cache_folder() / "zig"))
    return environment


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=_environment(), check=False
        )
    except OSError as error:
        raise CompileError(f"{command[0]}: {error.strerror or error}; install a compiler or {INSTALL}") from error
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip() or f"ended with status {done.returncode}"
        tool = "zig" if "ziglang" in command[:3] else Path(command[0]).name
        raise CompileError(f"{tool}: {text}")
    return done.stdout


@functools.cache
def _version(command: tuple[str, ...], pattern: str) -> str | None:
    """The compiler's version, or None if it is not there or does not start."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=_environment(), check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if done.returncode == 0 and found else None


def _candidates(target: Target) -> list[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    number = r"(\d+\.\d+(?:\.\d+)?)"
    found: list[tuple[str, tuple[str, ...], tuple[str, ...], str]] = []
    if target.is_host:
        found.append(("gcc", ("gcc",), ("-dumpfullversion",), number))
        found.append(("clang", ("clang",), ("--version",), "version " + number))
    else:
        found.append(("arm-none-eabi-gcc", ("arm-none-eabi-gcc",), ("-dumpfullversion",), number))
    if importlib.util.find_spec("ziglang") is not None:
        zig = (sys.executable, "-m", "ziglang")
        found.append(("zig", (*zig, "cc"), ("version",), number))
    return found


@functools.cache
def _all(target: str) -> tuple[Toolchain, ...]:
    there: list[Toolchain] = []
    for name, command, ask, pattern in _candidates(TARGETS[target]):
        base = command[:-1] if name == "zig" else command
        version = _version((*base, *ask), pattern)
        if version is None or (name == "gcc" and _gcc_is_clang()):
            continue
        there.append(Toolchain(name, version, command, TARGETS[target]))
    return tuple(there)


@functools.cache
def _gcc_is_clang() -> bool:
    """On some systems `gcc` is clang by another name; it is then listed once, as clang."""
    return _version(("gcc", "--version"), r"(clang)") is not None and shutil.which("clang") is not None


def find_all(target: str) -> list[Toolchain]:
    """Each installed compiler that can build for `target`, best first."""
    return list(_all(target))


def find(target: str, name: str | None = None) -> Toolchain:
    """The compiler to use for `target`: the first that is installed, or the one called `name`.

    The variable SYNAPTICOS_CC chooses one by name where the caller does not.
    Raises UserError, which says how to get one, if there is none.
    """
    wanted = name or os.environ.get("SYNAPTICOS_CC")
    there = _all(target)
    for chain in there:
        if wanted is None or chain.name == wanted:
            return chain
    if name is None and there:
        return there[0]  # SYNAPTICOS_CC names one that cannot build for this target
    what = "the host" if target == "host" else target
    system = "gcc" if target == "host" else "gcc-arm-none-eabi"
    if name is not None:
        raise UserError(
            f"no compiler called {name} for {what} is installed; found: {', '.join(c.name for c in there) or 'none'}"
        )
    raise UserError(f"no C compiler for {what} is installed; apt install {system}, or {INSTALL}")


MAKING = ".making-"  # how the name of a thing begins that is not whole yet
SUM = "sum"
STALE_S = 3600  # nothing takes an hour to make


# The cache -----------------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where built things are kept: $XDG_CACHE_HOME/synapticos, by default ~/.cache/synapticos."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "synapticos"


def key(*parts: object) -> str:
    """A name for a built thing: a hash of all it depends on (text, bytes, paths by their content, lists of these)."""
    digest = hashlib.sha256()

    def add(part: object) -> None:
        if isinstance(part, Path):
            data, kind = part.read_bytes(), b"p"
        elif isinstance(part, (bytes, bytearray)):
            data, kind = bytes(part), b"b"
        elif isinstance(part, (list, tuple)):
            digest.update(b"l%d:" % len(part))
            for item in part:
                add(item)
            return
        else:
            data, kind = str(part).encode(), b"s"
        digest.update(kind + b"%d:" % len(data) + data)

    add(list(parts))
    return digest.hexdigest()[:32]


announce: Callable[[str], None] = lambda text: None  # a command's: what is told of that takes long


def cached(name: str, make: Callable[[Path], None], what: str = "") -> Path:
    """The file or folder `name` of the cache; if it is not there, `make` writes it at the path that it is given, and `what` is announced.

    It appears whole or not at all: it is made beside its place, with a sum of its bytes, and then renamed. What does not
    have that sum any more is made again. Two processes may make the same thing at once; the first to finish wins and the
    other's is thrown away.
    """
    place = kept(name)
    if place is not None:
        return place
    if what:
        announce(f"compiling {what}; kept in {cache_folder()}")
    built = cache_folder() / "built"
    try:
        built.mkdir(parents=True, exist_ok=True)
        _sweep(built)
        with tempfile.TemporaryDirectory(prefix=MAKING, dir=built, ignore_cleanup_errors=True) as scratch:
            whole = Path(scratch) / "whole"
            whole.mkdir()
            make(whole / name)
            (whole / SUM).write_text(_sum(whole / name))
            try:
                os.replace(whole, built / name)
            except OSError:
                if kept(name) is None:  # nothing, or something damaged; else another process has just put it there
                    with contextlib.suppress(FileNotFoundError):
                        os.replace(built / name, Path(scratch) / "damaged")
                    os.replace(whole, built / name)
    except OSError as error:
        raise UserError(
            f"{error.filename or built}: cannot be written ({error.strerror or error}); free some space, "
            "or set XDG_CACHE_HOME to a folder that can be"
        ) from error
    return built / name / name


def kept(name: str) -> Path | None:
    """The file or folder `name` of the cache if it is there and whole."""
    holder = cache_folder() / "built" / name
    try:
        return holder / name if (holder / SUM).read_text() == _sum(holder / name) else None
    except (OSError, ValueError):
        return None


def _sum(thing: Path) -> str:
    """A hash of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(f for f in thing.rglob("*") if f.is_file()) if thing.is_dir() else [thing]:
        data = file.read_bytes()
        digest.update(b"%s %d:" % (os.fsencode(file.relative_to(thing)), len(data)) + data)
    return digest.hexdigest()


def _sweep(built: Path) -> None:
    """Delete what processes that were killed have left half made."""
    for left in built.glob(MAKING + "*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def cache_size() -> int:
    """Bytes in the cache."""
    total = 0
    for folder, _, files in os.walk(cache_folder()):
        for file in files:
            try:
                total += os.lstat(os.path.join(folder, file)).st_size
            except OSError:
                pass  # another process has cleared it
    return total


def cache_clear() -> int:
    """Delete the cache; the result is how many bytes that freed."""
    size = cache_size()
    shutil.rmtree(cache_folder(), ignore_errors=True)
    return size - cache_size()
