"""The compilers, and the cache of what they built."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

from synapticos import toolchain
from synapticos.errors import UserError

HOSTS = toolchain.find_all("host")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(toolchain.cache_folder() / "zig"))  # zig's first build is slow
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(toolchain.cache_folder() / "zig"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNAPTICOS_CC", raising=False)


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(toolchain, "_all", lambda target: ())


@pytest.mark.parametrize("target, package", [("host", "gcc"), ("cortex-m33", "gcc-arm-none-eabi")])
def test_a_machine_without_a_compiler_is_told_how_to_get_one(nothing_installed, target, package):
    with pytest.raises(UserError, match=rf"apt install {package}, or pip install synapticos\[toolchain\]"):
        toolchain.find(target)


def test_a_compiler_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UserError, match="no compiler called icc for the host is installed; found: "):
        toolchain.find("host", "icc")


@pytest.mark.skipif(len(HOSTS) < 2, reason="needs two compilers for the host")
def test_a_variable_chooses_the_compiler(monkeypatch):
    monkeypatch.setenv("SYNAPTICOS_CC", HOSTS[1].name)
    assert toolchain.find("host") is HOSTS[1]


@pytest.mark.parametrize("chain", HOSTS, ids=lambda c: c.name)
def test_a_shared_library_is_of_all_its_files(chain, tmp_path):
    (tmp_path / "one.c").write_text("int one(void); int one(void) { return ONE; }\n")
    (tmp_path / "two.c").write_text("int one(void); int two(void); int two(void) { return one() + 1; }\n")
    out = chain.shared([tmp_path / "one.c", tmp_path / "two.c"], tmp_path / "x.so", ["-O2", "-DONE=41"])
    assert ctypes.CDLL(str(out)).two() == 42


@pytest.mark.parametrize("chain", HOSTS, ids=lambda c: c.name)
def test_an_error_is_the_compilers_own_with_file_and_line(chain, tmp_path):
    (tmp_path / "bad.c").write_text('int f(void);\n#line 34 "kernel/job.py"\nint f(void) { return x; }\n')
    with pytest.raises(toolchain.CompileError, match=r"kernel/job\.py:34:"):
        chain.shared([tmp_path / "bad.c"], tmp_path / "x.so")
    assert not (tmp_path / "x.so").exists()


@pytest.mark.parametrize("chain", [c for c in HOSTS if not c.is_zig], ids=lambda c: c.name)
def test_a_sanitized_library_reports_undefined_behaviour(chain, tmp_path):
    (tmp_path / "s.c").write_text("int f(int n); int f(int n) { return 1 << n; }\n")
    out = chain.shared([tmp_path / "s.c"], tmp_path / "s.so", ["-O1"], sanitize=["undefined"])
    code = f"import ctypes; print(ctypes.CDLL({str(out)!r}).f(40))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "shift exponent 40" in done.stderr


def test_a_key_tells_apart_what_differs(tmp_path):
    file = tmp_path / "a.c"
    file.write_text("one")
    first = toolchain.key("x", [file, b"y"], 3)
    assert first == toolchain.key("x", [file, b"y"], 3)
    assert len({first, toolchain.key("x", file, [b"y"], 3), toolchain.key("xy", [file, b""], 3), toolchain.key()}) == 4
    file.write_text("two")
    assert toolchain.key("x", [file, b"y"], 3) != first


@pytest.mark.parametrize("folder", [False, True])
def test_a_built_thing_is_made_once_and_whole(folder):
    made = []

    def make(path):
        made.append(path)
        if folder:
            path.mkdir()
            path = path / "inside"
        path.write_bytes(b"12345")

    place = toolchain.cached("thing", make)
    assert toolchain.cached("thing", make) == place and len(made) == 1
    assert (place / "inside" if folder else place).read_bytes() == b"12345"
    assert sorted(os.listdir(place.parent)) == ["sum", "thing"]
    assert toolchain.cache_size() == 5 + 64
    assert toolchain.cache_clear() == 5 + 64 and toolchain.cache_size() == 0


def test_a_build_that_fails_leaves_nothing():
    def make(path):
        path.write_bytes(b"half")
        raise UserError("no")

    with pytest.raises(UserError):
        toolchain.cached("thing", make)
    assert toolchain.cache_size() == 0


@pytest.mark.parametrize("folder", [False, True])
def test_two_who_build_the_same_thing_at_once_both_get_it(folder):
    together, places = threading.Barrier(2, timeout=10), []

    def make(path):
        if folder:
            path.mkdir()
            (path / "inside").write_bytes(b"12345")
        else:
            path.write_bytes(b"12345")
        together.wait()

    threads = [threading.Thread(target=lambda: places.append(toolchain.cached("thing", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(places) == 2 and places[0] == places[1] and places[0].exists()
    assert toolchain.cache_size() == 5 + 64


@pytest.mark.parametrize("damage", [lambda p: p.write_bytes(b"1234"), lambda p: p.unlink(), lambda p: (p.parent / "sum").unlink()])
def test_a_damaged_thing_is_made_again(damage):
    place = toolchain.cached("thing", lambda path: path.write_bytes(b"12345"))
    damage(place)
    assert toolchain.cached("thing", lambda path: path.write_bytes(b"12345")) == place
    assert place.read_bytes() == b"12345"


def test_a_cache_that_cannot_be_written_is_said_with_the_way_out(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"file.*: cannot be written \(Not a directory\).*XDG_CACHE_HOME"):
        toolchain.cached("thing", lambda path: path.write_bytes(b"12345"))


def test_what_a_killed_process_left_half_made_is_deleted_in_time():
    built = toolchain.cache_folder() / "built"
    for name, age in (("old", 2 * toolchain.STALE_S), ("new", 0)):
        (built / f".making-{name}").mkdir(parents=True)
        os.utime(built / f".making-{name}", (time.time() - age,) * 2)
    toolchain.cached("thing", lambda path: path.write_bytes(b"12345"))
    assert sorted(os.listdir(built)) == [".making-new", "thing"]


def test_clearing_a_cache_that_is_not_there_frees_nothing():
    assert toolchain.cache_clear() == 0


@pytest.mark.parametrize("chain", [c for c in HOSTS if c.name == "gcc"], ids=lambda c: c.name)
def test_an_address_sanitized_library_catches_a_read_past_a_buffer(chain, tmp_path):
    preload = chain.sanitizer_environment()
    if not preload:
        pytest.skip("this gcc has no libasan")
    (tmp_path / "s.c").write_text("int f(const char *p, int n); int f(const char *p, int n) { return p[n]; }\n")
    out = chain.shared([tmp_path / "s.c"], tmp_path / "s.so", ["-O1"], sanitize=["address", "undefined"])
    code = f"import ctypes; b = ctypes.create_string_buffer(40); f = ctypes.CDLL({str(out)!r}).f; f(b, 39); print('in'); f(b, 40)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **preload}
    )
    assert done.stdout == "in\n" and done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr and "s.c:1" in done.stderr
