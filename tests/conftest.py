"""Fixtures: the three engines, and the models that only some checkouts have beside them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from synapticos import toolchain
from synapticos.engine import ENGINES, Build, Engine
from synapticos.errors import UserError
from synapticos.lang import Trap
from synapticos.lang.words import Function

# Some tests press Ctrl-C. Where it is ignored, as by what a shell runs in the background, they and what they start would not hear.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "synapticos", deadline=None, max_examples=int(os.environ.get("SYNAPTICOS_EXAMPLES", "40")), derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("synapticos")
REPOSITORY = Path(__file__).resolve().parents[1]
_TARGET = {"native": "host", "cortex-m": "cortex-m33"}
_engines: dict[Any, Engine] = {}


def _has_engine(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("only")
    if mark is None:
        return True
    if not mark.args or not set(mark.args) <= set(ENGINES):
        raise pytest.UsageError(f"{item.nodeid}: only{mark.args}: the engines are {', '.join(ENGINES)}")
    return item.callspec.params["make"] in mark.args  # type: ignore[attr-defined]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test for some engines only is not there for others. Files with slow tests come first: workers take a file at a
    time, and what is left for the end should be short."""
    elsewhere = [item for item in items if not _has_engine(item)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in set(elsewhere)]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Beside the slowest tests the slowest files, what they set up included."""
    most = config.getoption("durations")
    seconds: dict[str, float] = {}
    for report in (r for reports in terminalreporter.stats.values() for r in reports if hasattr(r, "duration")):
        file = report.nodeid.split("::")[0]
        seconds[file] = seconds.get(file, 0.0) + report.duration
    if most and seconds:
        terminalreporter.section(f"slowest {most} files")
        for file in sorted(seconds, key=seconds.__getitem__, reverse=True)[:most]:
            terminalreporter.write_line(f"{seconds[file]:7.1f} s  {file}")
        terminalreporter.write_line(f"{sum(seconds.values()):7.1f} s  in all, by all workers")


def engine_of(name: str, roots: tuple[Function, ...], **options: Any) -> Engine:
    """An engine of a build, made once a session; skips where its compiler is missing."""
    if name in _TARGET:
        try:
            toolchain.find(_TARGET[name])
        except UserError as error:
            pytest.skip(str(error))
    tables, blobs = options.pop("tables", None), options.pop("blobs", None)
    engine_options = {k: options.pop(k) for k in ("checks", "compiler") if k in options}
    if name == "checked":
        engine_options = {}
    key = (name, roots, tuple(sorted(options.items())), tuple(sorted(engine_options.items())), id(tables), id(blobs))
    if key not in _engines:
        made = Build(list(roots), tables=tables, blobs=blobs, **options).engine(name, **engine_options)
        made.tables_alive = (tables, blobs)  # type: ignore[attr-defined] # their ids are part of the key
        _engines[key] = made
    return _engines[key]


@pytest.fixture(params=ENGINES, scope="session")
def make(request: pytest.FixtureRequest) -> Callable[..., Engine]:
    """`e = make(Arena.alloc, Arena.reset, SLOTS=4)`: the test runs once on each engine."""

    def made(*roots: Function, **options: Any) -> Engine:
        return engine_of(request.param, roots, **options)

    made.engine = request.param  # type: ignore[attr-defined]
    return made


class Engines:
    """All engines at once: a call runs on each, and results and the bytes of the objects must agree.

    Objects are made by `new` and `array`, and stand for one object on each engine.
    """

    def __init__(self, each: list[Engine]) -> None:
        self.each = each

    def new(self, kind: Any, **fields: Any) -> Same:
        return Same([e.new(kind, **{k: v[i] if isinstance(v, Same) else v for k, v in fields.items()}) for i, e in enumerate(self.each)])

    def array(self, element: Any, values: Any, name: str = "array") -> Same:
        return Same([e.array(element, values, name) for e in self.each])

    def __call__(self, function: Function, *arguments: Any) -> Any:
        outcomes: list[Any] = []
        for i, engine in enumerate(self.each):
            mine = [a.each[i] if isinstance(a, Same) else a for a in arguments]
            try:
                outcomes.append(engine(function, *mine))
            except Trap as trap:
                outcomes.append(("trap", trap.line) if engine.name == "checked" or getattr(engine, "checks", False) else trap)
        first = outcomes[0]
        if isinstance(first, tuple) and first and first[0] == "trap":
            raise Trap("trapped on checked", line=first[1])
        for engine, other in zip(self.each[1:], outcomes[1:], strict=True):
            assert _same(first, other), f"{self.each[0].name} gives {first!r}, {engine.name} {other!r}"
        for argument in arguments:
            if isinstance(argument, Same):
                argument.check()
        return first


class Same:
    """One object on each engine."""

    def __init__(self, each: list[Any]) -> None:
        self.each = each

    def check(self) -> None:
        contents = [bytes(o) for o in self.each]
        for engine_object, content in zip(self.each[1:], contents[1:], strict=True):
            assert content == contents[0], f"bytes differ on {engine_object._engine.name}"

    def __bytes__(self) -> bytes:
        self.check()
        return bytes(self.each[0])

    def __getattr__(self, name: str) -> Any:
        got = [getattr(o, name) for o in self.each]
        return got[0] if not hasattr(got[0], "_engine") else Same(got)

    def __getitem__(self, at: Any) -> Any:
        got = [o[at] for o in self.each]
        return got[0] if not hasattr(got[0], "_engine") else Same(got)

    def __setitem__(self, at: Any, value: Any) -> None:
        for o in self.each:
            o[at] = value

    def __len__(self) -> int:
        return len(self.each[0])

    def set(self, name: str, value: Any) -> None:
        for o in self.each:
            setattr(o, name, value)

    def numpy(self) -> Any:
        self.check()
        return self.each[0].numpy()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        import struct

        return struct.pack("<f", a) == struct.pack("<f", b) or (a != a and b != b)
    if hasattr(a, "_engine") and hasattr(b, "_engine"):
        return True  # references: their bytes are compared where they are passed
    return bool(a == b)


@pytest.fixture(scope="session")
def engines() -> Callable[..., Engines]:
    """`e = engines(relu, SLOTS=4)`; `e(relu, ...)` runs on all engines that this machine has, and compares."""

    def made(*roots: Function, **options: Any) -> Engines:
        each = [engine_of("checked", roots, **options)]
        for name, target in _TARGET.items():
            if toolchain.find_all(target):
                each.append(engine_of(name, roots, **options))
        return Engines(each)

    return made


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """The folder of real networks; the test is skipped where there is none."""
    folder = Path(os.environ.get("SYNAPTICOS_MODELS", REPOSITORY.parent / "shared" / "models"))
    if not (folder / "hello_world_int8.tflite").exists():
        pytest.skip(f"no models at {folder} (SYNAPTICOS_MODELS)")
    return folder


@pytest.fixture
def syn(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: status, stdout, stderr."""
    from synapticos.cli import invoke

    def run(*arguments: object) -> tuple[int, str, str]:
        status = invoke([str(a) for a in arguments])
        got = capfd.readouterr()
        return status, got.out, got.err

    return run
