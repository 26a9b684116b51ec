"""The commands: what they print, how they end, and that bad input is one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from synapticos import toolchain
from synapticos.boards import qemu

pytestmark = pytest.mark.slow  # all together
EXAMPLES = Path(__file__).parents[2] / "examples"
HELLO = EXAMPLES / "hello_world"


def refusal(syn, *arguments):
    status, out, err = syn(*arguments)
    assert status == 2, (out, err)
    told = [line for line in err.splitlines() if not line.startswith("compiling ")]  # which takes long, once
    assert len(told) == 1 and told[0].startswith("syn: "), err
    assert not out
    return told[0]


def needs_arm():
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M: apt install gcc-arm-none-eabi, or pip install synapticos[toolchain]")


def test_hello_world_gives_the_same_bytes_on_every_engine_and_board(syn):
    needs_arm()
    ways = [("--engine", "native"), ("--engine", "checked"), ("--engine", "cortex-m"), ("--board", "mps2-an521")]
    ways += [("--board", "lm3s6965evb")]
    if qemu.missing() is None:
        ways += [("--board", "mps2-an521", "--emulator", "qemu"), ("--board", "lm3s6965evb", "--emulator", "qemu")]
    digests = set()
    for way in ways:
        status, out, _ = syn("run", HELLO, *way, "--json")
        assert status == 0
        report = json.loads(out)
        assert len(report["results"]) == 32
        digests.add(report["digest"])
    assert len(digests) == 1


def test_run_prints_results_on_stdout_and_the_digest_on_stderr(syn):
    status, out, err = syn("run", HELLO, "--times")
    assert status == 0
    assert out.startswith("wave 0: -0.04118\nwave 1: ") and "wave 31: " in out and "FULLY_CONNECTED" in out
    assert "host, native: 32 results, digest " in err


def test_measured_memory_equals_the_plan(syn):
    for way in (("--engine", "native"), ("--board", "mps2-an521")):
        status, out, _ = syn("run", HELLO, *way, "--json")
        assert status == 0
        arena = json.loads(out)["arena"]
        assert arena["used"] == arena["frames"] > 0


def test_a_file_for_a_source_is_given_by_its_name(syn, tmp_path):
    (tmp_path / "two.bin").write_bytes(b"\x80\xc0")
    status, out, _ = syn("run", HELLO, "--angles", tmp_path / "two.bin", "--json")
    assert status == 0 and len(json.loads(out)["results"]) == 2


def test_bad_input_is_one_line_that_names_it(syn, tmp_path):
    assert "nowhere.py: no such file" in refusal(syn, "run", "nowhere.py")
    assert "no such option; the sources of hello are --angles" in refusal(syn, "run", HELLO, "--angel", "x")
    assert "no such file" in refusal(syn, "run", HELLO, "--angles", "nowhere.bin")
    assert "there is no such board" in refusal(syn, "run", HELLO, "--board", "pico")
    assert "--engine fast" in refusal(syn, "run", HELLO, "--engine", "fast")
    assert "Missing argument" in refusal(syn, "new")
    assert "no such file" in refusal(syn, "model", "info", "nowhere.tflite")
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes((HELLO / "sine.tflite").read_bytes()[:700])
    assert "damaged.tflite" in refusal(syn, "model", "info", damaged)
    damaged.write_bytes(b"")
    assert "the file is empty" in refusal(syn, "model", "info", damaged)


def test_syn_without_a_command_shows_its_help(syn):
    for words in ((), ("model",)):
        status, out, err = syn(*words)
        assert status == 2 and not out
        assert err.startswith("Usage: syn") and err.count("\n") > 5


def test_an_option_that_would_do_nothing_is_refused(syn):
    assert "--engine checked: is for the host" in refusal(syn, "run", HELLO, "--board", "mps2-an521", "--engine", "checked")
    assert "--emulator qemu: is for a board" in refusal(syn, "run", HELLO, "--emulator", "qemu")


def test_a_file_that_cannot_be_written_is_one_line(syn, tmp_path):
    (tmp_path / "file").write_text("")
    assert "plan.png: " in refusal(syn, "model", "info", HELLO / "sine.tflite", "--picture", tmp_path / "no" / "plan.png")
    assert "not a directory" in refusal(syn, "new", tmp_path / "file" / "level")
    assert "name it so: boxes.png" in refusal(syn, "run", HELLO, "--draw", "boxes.jpg")


def test_a_picture_of_the_wrong_size_is_one_line(syn, tmp_path):
    from PIL import Image

    Image.new("RGB", (10, 10)).save(tmp_path / "small.png")
    text = refusal(syn, "run", EXAMPLES / "face_detection", "--front", tmp_path / "small.png")
    assert "is 10 x 10, the camera gives 128 x 128; say --crop" in text


def test_a_stage_that_does_not_type_check_is_pointed_at(syn, tmp_path):
    assert syn("new", tmp_path / "level")[0] == 0
    app = tmp_path / "level" / "app.py"
    app.write_text(app.read_text().replace("i8, i32", "i8, i32, u32").replace("values[i] - values_zero", "values[i] - u32(values_zero)"))
    status, out, err = syn("run", app)
    assert status == 2 and not out
    assert "app.py:30:" in err and "^" in err and "Traceback" not in err


def test_a_stage_that_fails_as_it_runs_names_its_line_on_every_engine_and_board(syn, tmp_path):
    needs_arm()
    (tmp_path / "frames.bin").write_bytes(b"\x80")
    (tmp_path / "app.py").write_text(
        f"""import synapticos as syn
from synapticos import Array, Shaped, Status, i8, u32

app = syn.App("div")
source = app.frames("x", (1, 1), "int8", file="frames.bin")
sine = app.model({str(HELLO / "sine.tflite")!r}, outputs=("y",))


@syn.stage
def divide(y: Shaped[Array[i8], 1], out: Shaped[Array[i8], 1]) -> Status:
    least: u32 = 0
    if y[0] > 100:
        least = 1
    out[0] = i8(100 // least)
    return Status.OK


app.job(app.pipeline("p", source).model(sine).stage(divide))
"""
    )
    ways = [("--engine", "native"), ("--engine", "checked"), ("--engine", "cortex-m"), ("--board", "mps2-an521")]
    ways += [("--board", "lm3s6965evb"), ("--checks",)]
    for way in ways:
        status, out, _ = syn("run", tmp_path, *way)
        assert status == 1 and "p 0: failed: stage divide did what it may not" in out and "app.py:14" in out, (way, out)
    status, out, _ = syn("run", tmp_path, "--engine", "native", "--json")
    failure = json.loads(out)["failures"][0]
    assert status == 1 and (failure["pipeline"], failure["stage"], failure["line"]) == ("p", 1, 14)
    assert "leave out --engine checked, which has them" in refusal(syn, "run", tmp_path, "--engine", "checked", "--checks")
    assert "leave out --board mps2-an521" in refusal(syn, "run", tmp_path, "--board", "mps2-an521", "--checks")


def test_a_board_without_room_says_what_is_missing_and_where(syn):
    needs_arm()
    text = refusal(syn, "build", EXAMPLES / "face_detection", "--board", "lm3s6965evb", "--out", "never")
    for word in ("65,536 are available", "are missing", "pipeline faces", "layer "):
        assert word in text
    assert not Path("never").exists()


def test_build_writes_what_it_says(syn, tmp_path):
    needs_arm()
    status, out, _ = syn("build", HELLO, "--board", "lm3s6965evb", "--out", tmp_path / "out", "--json")
    assert status == 0
    told = json.loads(out)
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"c", "hello-lm3s6965evb.elf", "hello-lm3s6965evb.bin", "hello-lm3s6965evb.hex"}
    assert sum(flash for _, flash, _ in told["parts"]) == told["sizes"]["flash"]
    assert sum(ram for _, _, ram in told["parts"]) == told["sizes"]["ram"]
    assert (tmp_path / "out" / "hello-lm3s6965evb.bin").stat().st_size == told["sizes"]["flash"]


def test_new_gives_an_app_that_runs_everywhere(syn, tmp_path):
    needs_arm()
    status, out, _ = syn("new", tmp_path / "level")
    assert status == 0 and "app.py" in out
    digests = {json.loads(syn("run", tmp_path / "level", *way, "--json")[1])["digest"] for way in ((), ("--board", "mps2-an521"))}
    assert len(digests) == 1
    assert "is there already" in refusal(syn, "new", tmp_path / "level")


def test_a_copy_of_an_app_runs_its_own_stage(syn, tmp_path):
    assert syn("new", tmp_path / "level")[0] == 0
    assert syn("run", tmp_path / "level")[0] == 0
    shutil.copytree(tmp_path / "level", tmp_path / "copy")
    app = tmp_path / "copy" / "app.py"
    app.write_text(app.read_text().replace("else 0.0", "else 7.0"))
    _, out, _ = syn("run", tmp_path / "copy")
    assert "results 0: 7\n" in out
    app.write_text(app.read_text().replace("else 7.0", "else seven"))
    assert "seven is not defined" in syn("run", tmp_path / "copy")[2]


@pytest.mark.parametrize("name", ["digits_cnn_int8", "hello_world_float", "wakeword_alexa_int8", "keyword_svdf_int16", "face_blazeface_int8"])
def test_new_takes_a_model_of_ones_own(syn, tmp_path, name, shared_models):
    model = shared_models / f"{name}.tflite"
    assert syn("new", tmp_path / "mine", "--model", model)[0] == 0
    status, out, err = syn("run", tmp_path / "mine", "--json")
    assert status == 0, err
    assert len(json.loads(out)["results"]) == 4


def test_info_draws_the_plan_and_says_whether_it_fits(syn, tmp_path):
    status, out, _ = syn("model", "info", HELLO / "sine.tflite", "--picture", tmp_path / "plan.png")
    assert status == 0 and "FULLY_CONNECTED" in out and (tmp_path / "plan.png").stat().st_size > 100
    status, _, err = syn("model", "info", HELLO / "sine.tflite", "--ram", "16")
    assert status == 1 and "are missing" in err
    assert json.loads(syn("model", "info", HELLO / "sine.tflite", "--json")[1])["macs"] == 288


def test_doctor_lists_what_is_there(syn):
    status, out, _ = syn("doctor", "--json")
    told = json.loads(out)
    assert status == (0 if told["ready"] else 1)
    assert {"python", "unicorn", "qemu-system-arm", "gdb-multiarch"} <= {t["name"] for t in told["things"]}


def test_ctrl_c_ends_a_run_without_a_traceback(tmp_path):
    (tmp_path / "many.bin").write_bytes(bytes(200_000))
    command = [sys.executable, "-m", "synapticos", "run", str(HELLO), "--engine", "checked", "--angles", str(tmp_path / "many.bin")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert "Traceback" not in err and err.endswith("syn: interrupted\n")  # and what there is by then
    assert all(line.startswith("wave ") for line in out.splitlines())


ENDLESS = '''
import synapticos as syn
from synapticos import Array, Shaped, Status, i8, u8, u32

app = syn.App("endless")
source = app.frames("x", (1, 1), "uint8", file="x.bin")
net = app.model("sine.tflite", outputs=("y",))

@syn.stage
def turn(x: Shaped[Array[u8], 1, 1], out: Shaped[Array[i8], 1]) -> Status:
    n = u32(x[0, 0])
    while n == 1:
        n = n & 3
    out[0] = 5
    return Status.OK

app.job(app.pipeline("p", source).stage(turn).model(net))
'''


def test_a_second_ctrl_c_ends_a_stage_that_never_returns(tmp_path):
    (tmp_path / "app.py").write_text(ENDLESS)
    (tmp_path / "x.bin").write_bytes(b"\1")
    (tmp_path / "sine.tflite").write_bytes((HELLO / "sine.tflite").read_bytes())
    command = [sys.executable, "-m", "synapticos", "run", str(tmp_path / "app.py")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < end:
        time.sleep(2)
        running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=5)
    assert running.returncode == 130 and out == "" and err.endswith("syn: interrupted\n") and "Traceback" not in err, err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_behind_stdout_is_one_line(more):
    command = [sys.executable, "-m", "synapticos", "model", "info", str(HELLO / "sine.tflite"), *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "syn: no space left on device; not all was written\n")


def test_a_terminal_without_the_letters_shows_others():
    command = [sys.executable, "-m", "synapticos", "model", "info", str(HELLO / "sine.tflite")]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == 0 and not done.stderr


def test_more_bad_input_is_one_line(syn, tmp_path):
    sine = HELLO / "sine.tflite"
    assert "is no regular file" in refusal(syn, "model", "info", tmp_path)
    assert "cannot be made" in refusal(syn, "new", "/proc/foo")
    assert "--max-step 0: at least 1" in refusal(syn, "model", "compile", sine, "--max-step", 0)
    assert "there is no folder" in refusal(syn, "run", HELLO, "--draw", tmp_path / "no" / "x.png")
    with open(tmp_path / "huge.tflite", "wb") as huge:
        huge.truncate(3 << 30)
    assert "more than a model may have" in refusal(syn, "model", "verify", tmp_path / "huge.tflite")


def test_what_a_host_stage_raises_is_told_with_its_line(syn, tmp_path):
    (tmp_path / "frames.bin").write_bytes(b"\x80")
    (tmp_path / "app.py").write_text(
        f"""import synapticos as syn
app = syn.App("a")
source = app.frames("x", (1, 1), "int8", file="frames.bin")
sine = app.model({str(HELLO / "sine.tflite")!r})
@syn.host_stage
def half(x):
    return x / {{}}
app.job(app.pipeline("p", source).model(sine).stage(half))
"""
    )
    assert "app.py:7: TypeError: " in refusal(syn, "run", tmp_path / "app.py")
