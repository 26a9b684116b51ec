"""`syn doctor`: what is installed, what is missing and how to get it; the cache."""

import importlib.metadata
import platform
import re
import shutil
import subprocess

import typer

from synapticos.cli.output import note, print_json, table

PROGRAMS = {
    "qemu-system-arm": ("QEMU: boots the same firmware; the emulator that pip brings needs none", "apt install qemu-system-arm"),
    "gdb-multiarch": ("gdb: stops firmware at a Python line", "apt install gdb-multiarch"),
}


def command(
    clear_cache: bool = typer.Option(False, "--clear-cache", help="Delete all that was built and kept."),
    as_json: bool = typer.Option(False, "--json", help="Print the answer as JSON."),
) -> int:
    """Say what this machine can do. Ends with 1 if it cannot compile for the host or the boards."""
    from synapticos import toolchain

    freed = toolchain.cache_clear() if clear_cache else 0
    things: list[dict[str, str | None]] = [{"name": "python", "version": platform.python_version(), "for": "checked", "get": ""}]
    for target, what, package in (
        ("host", "native: the kernel as a library of this machine", "gcc"),
        ("cortex-m33", "cortex-m: firmware", "gcc-arm-none-eabi"),
    ):
        there = toolchain.find_all(target)
        things += [{"name": c.name, "version": c.version, "for": what, "get": ""} for c in there]
        if not there:
            things.append({"name": f"compiler for {target}", "version": None, "for": what, "get": f"apt install {package}, or {toolchain.INSTALL}"})
    for package in ("unicorn", "numpy"):
        things.append({"name": package, "version": _package(package), "for": "the in-process emulator" if package == "unicorn" else "arrays", "get": ""})
        things[-1]["get"] = "" if things[-1]["version"] else f"pip install {package}"
    for program, (what, how) in PROGRAMS.items():
        version = _version(program)
        things.append({"name": program, "version": version, "for": what, "get": "" if version else how})
    ready = not any(str(t["name"]).startswith("compiler for") for t in things)
    cache = {"folder": toolchain.cache_folder(), "bytes": toolchain.cache_size(), "freed": freed}
    if as_json:
        print_json({"ready": ready, "things": things, "cache": cache})
    else:
        rows = [[t["name"], t["version"] or "missing", f"{t['for']}: {t['get']}" if t["get"] else t["for"]] for t in things]
        table("", ["what", "version", "for"], rows)
        print(f"cache: {cache['folder']}, {cache['bytes']:,} bytes (syn doctor --clear-cache deletes it)")
        if freed:
            note(f"{freed:,} bytes deleted")
    return 0 if ready else 1


def _package(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _version(program: str) -> str | None:
    if shutil.which(program) is None:
        return None
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return found[0] if found else "installed"
