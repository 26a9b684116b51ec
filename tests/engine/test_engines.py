"""Builds and engines: objects, calls, traps, messages, and what the cache may answer."""

import threading

import numpy as np
import pytest

from synapticos import toolchain
from synapticos.engine import Build
from synapticos.engine.words import Words
from synapticos.kernel import hal
from synapticos.kernel.note import Note
from synapticos.kernel.status import Status
from synapticos.lang import *

SLOTS = param(u32, 4, max=16)
PAYLOAD = blob()
Row = Fn[[u32], u32]


@struct
class Point:
    x: i32
    y: i16
    kind: u8
    on: bool
    weight: f32


@struct
class Cloud:
    points: Shaped[Array[Point], SLOTS]
    count: u64
    name: Shaped[Array[u8], 8]


@fn
def find(cloud: Cloud, x: i32) -> Point | None:
    for point in cloud.points:
        if point.x == x:
            return point
    return None


@fn
def put(cloud: Cloud, at: u32, x: i32) -> tuple[Status, u32]:
    if at >= SLOTS:
        return Status.INVAL, 0
    cloud.points[at].x = x
    cloud.points[at].weight = f32(x) * 0.5
    cloud.count += 1
    return Status.OK, at


@fn
def total(values: Ptr[i16], n: u32) -> i32:
    sum: i32 = 0
    for i in range(n):
        sum += values[i]
    return sum


@fn
def strict(n: u32) -> u32:
    assert n < 10, "at most nine"
    return n + 1


@fn
def narrow(n: u32) -> u8:
    return u8(n)


@fn
def double(n: u32) -> u32:
    return n * 2


@fn
def triple(n: u32) -> u32:
    return n * 3


ROWS = table(Row, [double], open=True)


@fn
def choose(at: u32, n: u32) -> u32:
    return ROWS[at](n)


@fn
def payload(at: u32) -> u32:
    if at == 0xFFFF:
        return len(PAYLOAD)
    return u32(PAYLOAD[at])


@fn
def now() -> u32:
    ticks = hal.ticks(0)
    console.print(f"now {ticks:>6}")
    return ticks


@fn
def leave(code: i32) -> u32:
    hal.exit(0, code)
    return 0


def test_fields_and_elements_of_an_object(make):
    e = make(find)
    cloud = e.new(Cloud, count=7, name=b"cloud")
    cloud.points[2].x = -5
    cloud.points[2].on = True
    assert (cloud.points[2].x, cloud.points[2].on, cloud.count) == (-5, True, 7)
    assert bytes(cloud.name) == b"cloud\0\0\0"
    assert len(cloud.points) == 4
    with pytest.raises(AttributeError):
        cloud.size
    with pytest.raises(AttributeError):
        cloud.size = 1
    with pytest.raises(IndexError):
        cloud.points[4]
    with pytest.raises(ValueError, match="does not fit"):
        cloud.points[0].kind = 256


def test_references_come_back_and_none_too(make):
    e = make(find, put)
    cloud = e.new(Cloud)
    assert e(put, cloud, 3, 42) == (Status.OK, 3)
    found = e(find, cloud, 42)
    assert (found.x, found.weight) == (42, 21.0)
    found.y = 9
    assert cloud.points[3].y == 9
    assert e(find, cloud, 43) is None
    assert e(put, cloud, 4, 1) == (Status.INVAL, 0)


def test_a_capacity_is_the_build_s(make):
    e = make(put, SLOTS=2)
    cloud = e.new(Cloud)
    assert len(cloud.points) == 2
    assert e(put, cloud, 2, 1) == (Status.INVAL, 0)


def test_wrong_arguments_are_refused_before_the_call(make):
    e = make(find, total)
    cloud = e.new(Cloud)
    with pytest.raises(ValueError, match="does not fit i32"):
        e(find, cloud, 1 << 31)
    with pytest.raises(TypeError, match="2 arguments"):
        e(find, cloud)
    with pytest.raises(TypeError, match="is given"):
        e(find, e.array(u8, 4), 1)
    with pytest.raises(TypeError):
        e(total, None, 1)
    with pytest.raises(TypeError):
        e(total, e.array(i32, 3), 3)


def test_arrays_go_in_by_value(make):
    e = make(total)
    assert e(total, np.array([1, -2, 30000], np.int16), 3) == 29999
    assert e(total, e.array(i16, [1, 2, 3, 4]).part(1, 3), 2) == 5


def test_an_assertion_names_its_line_on_every_engine(make):
    e = make(strict)
    assert e(strict, 9) == 10
    with pytest.raises(Trap) as caught:
        e(strict, 10)
    line = next(i for i, text in enumerate(open(__file__), 1) if "at most nine" in text)
    assert caught.value.line == line
    assert caught.value.file.endswith("test_engines.py")
    assert e(strict, 1) == 2  # the engine goes on


def test_a_release_build_wraps_where_a_checked_one_traps(make):
    e = make(narrow)
    if make.engine == "checked":
        with pytest.raises(Trap, match="256 overflows u8"):
            e(narrow, 256)
    else:
        assert e(narrow, 256) == 0
        with pytest.raises(Trap):
            make(narrow, checks=True)(narrow, 256)


def test_a_table_has_the_build_s_rows_and_no_more(make):
    assert make(choose)(choose, 0, 5) == 10
    e = make(choose, tables={ROWS: [double, triple]})
    assert e(choose, 1, 5) == 15
    with pytest.raises(Trap):
        e(choose, 2, 5)


def test_a_blob_is_the_build_s_bytes(make):
    e = make(payload, blobs={PAYLOAD: b"abc" * 1000})
    assert (e(payload, 0xFFFF), e(payload, 2), e(payload, 2999)) == (3000, 99, 99)


def test_time_moves_when_it_is_moved(make):
    e = make(now)
    e.board.take_console()
    e.board.now = 1234
    assert e(now) == 1234
    e.board.advance(1)
    assert e(now) == 1235
    assert e.board.take_console() == b"now   1234\nnow   1235\n"
    e.board.now = 0


def test_an_exit_comes_back_with_its_code(make):
    from synapticos.boards.host import HostExit

    with pytest.raises(HostExit) as caught:
        make(leave)(leave, -3)
    assert caught.value.code == -3


def test_memory_holds_what_fill_says(make):
    e = make(total)
    e.fill = 0xA5
    try:
        assert bytes(e.new(Point, x=1))[4:] == bytes([0xA5]) * 8
        assert bytes(e.array(u8, 3)) == bytes([0xA5]) * 3
    finally:
        e.fill = 0


@pytest.mark.parametrize("engine", ["checked", "native"])
def test_memory_of_the_host_is_shared_without_a_copy(engine):
    e = Build([total]).engine(engine)
    data = np.arange(8, dtype=np.int16)
    shared = e.share(data)
    data[0] = 100
    assert bytes(shared)[:2] == b"\x64\0"


def test_native_calls_run_in_parallel():
    e = Build([total]).engine("native")
    data = e.array(i16, 30000)
    wrong = []

    def work(n):
        for _ in range(50):
            if e(total, data, n) != 0:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(30000 - i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_changed_constant_is_not_answered_from_the_cache(tmp_path, monkeypatch):
    import importlib
    import sys

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tuned.json").write_text("3")
    (tmp_path / "tuned_app.py").write_text(
        "import json\nfrom pathlib import Path\nfrom synapticos.lang import fn, u32\n"
        "FACTOR = json.loads((Path(__file__).parent / 'tuned.json').read_text())\n\n\n@fn\ndef tuned(n: u32) -> u32:\n    return n * FACTOR\n"
    )
    module = importlib.import_module("tuned_app")
    assert Build([module.tuned]).engine("native")(module.tuned, 5) == 15
    (tmp_path / "tuned.json").write_text("4")
    module = importlib.reload(module)
    assert Build([module.tuned]).engine("native")(module.tuned, 5) == 20
    sys.modules.pop("tuned_app")


def test_a_cached_build_is_found_without_checking_it_again(tmp_path, monkeypatch):
    from synapticos.compiler import Program

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert Build([double]).engine("native")(double, 4) == 8
    monkeypatch.setattr(Program, "need", lambda *_: pytest.fail("checked again"))
    assert Build([double]).engine("native")(double, 4) == 8


def test_a_damaged_manifest_costs_time_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Build([double]).engine("native")
    for manifest in (toolchain.cache_folder() / "built").glob("manifest-*"):
        manifest.write_text('{"name": "native-no')
    assert Build([double]).engine("native")(double, 4) == 8


@pytest.fixture
def twin(tmp_path, monkeypatch):
    """What a function that the build has written gives, by the stage that it calls: the apps differ in that alone."""
    import importlib
    import linecache
    import sys

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "from synapticos.lang import *\n@fn\ndef enter(n: u32) -> u32:\n    return stage(n)\n"
    linecache.cache["enter.py"] = (len(source), None, source.splitlines(keepends=True), "enter.py")

    def run(app, add, size=4):
        (tmp_path / f"{app}_kept.py").write_text(f"from synapticos.lang import *\n\n\n@struct\nclass Part:\n    n: u32\n\n\n@struct\nclass Kept:\n    n: Shaped[Array[Part], {size}]\n")
        (tmp_path / f"{app}_app.py").write_text(
            f"from synapticos.lang import *\n\nfrom {app}_kept import Kept\n\n\n"
            f"@fn\ndef stage(n: u32) -> u32:\n    kept = local(Kept)\n    for k in kept.n:\n        n += 1\n    return n + {add}\n"
        )
        importlib.invalidate_caches()
        for name in (f"{app}_kept", f"{app}_app"):
            sys.modules.pop(name, None)
        space = {"__name__": "enter", "__file__": "enter.py", "stage": importlib.import_module(f"{app}_app").stage}
        exec(compile(source, "enter.py", "exec"), space)
        return Build([space["enter"]]).engine("native")(space["enter"], 1)

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield run
    for name in [n for n in sys.modules if n.endswith(("_kept", "_app"))]:
        sys.modules.pop(name)


def _put(file, data):
    """Another file in its place: this process has the old one mapped."""
    file.unlink()
    file.write_bytes(data)


def test_two_apps_of_one_name_are_two_builds(twin):
    assert [twin("one", 100), twin("other", 500), twin("one", 100)] == [105, 505, 105]


def test_a_changed_struct_of_a_file_without_functions_is_another_build(twin):
    assert [twin("one", 100), twin("one", 100, 9)] == [105, 110]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder, _: _put(folder / "kernel.so", b""),
        lambda folder, _: _put(folder / "kernel.so", (folder / "kernel.so").read_bytes()[:20000]),
        lambda folder, _: (folder / "kernel.so").unlink(),
        lambda folder, _: (folder / "words.json").write_text("{"),
        lambda folder, _: (folder.rename(folder.parent / "away"), folder.touch()),
        lambda _, manifest: manifest.write_text("[]"),
        lambda _, manifest: manifest.write_text('{"name": "../..", "sources": [], "stamp": 1}'),
    ],
)
def test_what_is_damaged_in_the_cache_is_built_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Build([double]).engine("native")
    place = toolchain.cache_folder() / "built"
    damage(next(place.glob("native-*/native-*")), next(place.glob("manifest-*")))
    assert Build([double]).engine("native")(double, 4) == 8


def test_words_of_messages_are_found_by_number():
    build = Build([refusing])
    program = build.program()
    words = Words.of(program)
    e = build.engine("native")
    note = e.new(Note)
    assert e(refusing, note, -7, 300) == Status.NOMEM
    assert words.say(note.text, [note.args[i] for i in range(4)]) == "-7 of 300 in NOMEM, True"
    assert e.program.texts == program.texts


@fn
def refusing(note: Note, a: i32, b: u32) -> Status:
    return refuse(note, Status.NOMEM, f"{a} of {b} in {Status.NOMEM}, {b > 5}")


def test_a_file_saved_during_a_build_is_not_tied_to_what_was_built(tmp_path, monkeypatch):
    import os
    import subprocess
    import sys

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    app = tmp_path / "edited_app.py"
    text = "from synapticos.lang import fn, u32\n\n\n@fn\ndef edited(n: u32) -> u32:\n    return n * {}\n"
    app.write_text(text.format(2))
    run = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport edited_app\nfrom pathlib import Path\nfrom synapticos import toolchain\n"
        "from synapticos.engine import Build\nshared = toolchain.Toolchain.shared\n"
        "def slow(self, *a, **k):\n    if len(sys.argv) > 2:\n        Path(edited_app.__file__).write_text(sys.argv[2])\n    return shared(self, *a, **k)\n"
        "toolchain.Toolchain.shared = slow\nprint(Build([edited_app.edited]).engine('native')(edited_app.edited, 5))\n"
    )
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    results = []
    for extra in ([text.format(3)], []):
        command = [sys.executable, "-c", run, str(tmp_path), *extra]
        results.append(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.strip())
    assert results == ["10", "15"]


def test_two_engines_of_one_library_have_a_console_each():
    first, second = (Build([now]).engine("native") for _ in range(2))
    second.board.now = 77
    assert second(now) == 77
    assert first.board.take_console() == b""
    assert second.board.take_console() == b"now     77\n"
    first.close()
    second.close()
