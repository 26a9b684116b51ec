"""`syn model compile, verify, diff`."""

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from make_test_model import Layers
from synapticos import toolchain
from synapticos.model.verify import Reference
from tflite_writer import Writer

DATA = Path(__file__).resolve().parents[1] / "data"
EVERY = DATA / "every_layer.tflite"


needs_reference = pytest.mark.skipif(Reference.missing() is not None, reason=str(Reference.missing()))


@needs_reference
def test_a_network_is_exact_on_the_host_and_on_a_board(syn):
    status, out, _ = syn("model", "verify", EVERY)
    assert status == 0 and "exact, 0 of" in out
    if toolchain.find_all("cortex-m33"):
        status, out, _ = syn("model", "verify", EVERY, "--board", "mps2-an521", "--cases", 2, "--json")
        assert status == 0 and json.loads(out)["exact"]


@needs_reference
def test_a_container_with_known_answers_is_verified_without_the_reference(syn, tmp_path):
    out = tmp_path / "every.synm"
    assert syn("model", "compile", EVERY, "-o", out, "--answers", 3)[0] == 0
    status, text, _ = syn("model", "verify", out)
    assert (status, text) == (0, "every.synm: all 3 known answers are right, native\n")
    status, text, _ = syn("model", "verify", out, "--board", "mps2-an521")
    assert (status, text) == (0, "every.synm: all 3 known answers are right, mps2-an521 (in-process emulator)\n")
    damaged = bytearray(out.read_bytes())
    at = int.from_bytes(damaged[116:120], "little")
    damaged[at + 8] ^= 1  # what the second answer's outputs should be
    damaged[44:48] = zlib.crc32(damaged[128:]).to_bytes(4, "little")
    damaged[64:68] = bytes(4)
    damaged[64:68] = zlib.crc32(damaged[:128]).to_bytes(4, "little")
    out.write_bytes(damaged)
    for board in ("host", "mps2-an521"):
        status, text, _ = syn("model", "verify", out, "--board", board)
        assert status == 1 and "1 of 3 known answers are wrong" in text and text.rstrip().endswith(": 1")


@needs_reference
def test_several_inputs_are_verified_answered_and_run(syn, tmp_path):
    w = Writer()
    picture, heat = w.tensor("picture", (1, 3, 5, 1), 0.1, 3), w.tensor("heat", (1, 4), 0.1, 3)
    flat, both = w.tensor("flat", (1, 15), 0.1, 3), w.tensor("both", (1, 19), 0.1, 3)
    w.op("RESHAPE", [picture, w.constant("shape", np.array([1, 15], np.int32))], [flat], 1, "ReshapeOptions")
    w.op("CONCATENATION", [flat, heat], [both], 2, "ConcatenationOptions", Axis=1)
    file, out = tmp_path / "both.tflite", tmp_path / "both.synm"
    file.write_bytes(w.finish([picture, heat], [both]))
    for board in ("host", "mps2-an521"):
        assert syn("model", "verify", file, "--board", board)[0] == 0
        assert syn("model", "compile", file, "-o", out, "--answers", 3)[0] == 0
        status, text, _ = syn("model", "verify", out, "--board", board)
        assert status == 0 and "all 3 known answers are right" in text


def test_a_container_without_answers_says_so(syn, tmp_path):
    out = tmp_path / "every.synm"
    assert syn("model", "compile", EVERY, "-o", out)[0] == 0
    status, text, _ = syn("model", "verify", out)
    assert status == 1 and "no known answers" in text


def net(path, seed=1, filters=4, extra=False, scale=0.0078125):
    m = Layers(seed)
    x = m.tensor("x", (1, 8, 8, 3), scale, -1)
    y = m.conv("a", x, filters, (3, 3))
    if extra:
        y = m.depthwise("b", y, 1, (3, 3))
    path.write_bytes(m.finish([x], [m.pool("MAX", "c", y, (2, 2), 2, 1)]))
    return path


def test_two_copies_have_no_difference(syn, tmp_path):
    a, b = net(tmp_path / "a.tflite"), net(tmp_path / "b.tflite")
    status, out, _ = syn("model", "diff", a, b)
    assert status == 0 and "no difference" in out


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"seed": 2}, ["~ step 0: CONV_2D", "other weights"]),
        ({"filters": 6}, ["- step 0: CONV_2D (node 0) 1x8x8x3 -> 1x8x8x4", "+ step 0: CONV_2D", "-> 1x8x8x6"]),
        ({"extra": True}, ["+ step 1: DEPTHWISE_CONV_2D"]),
        ({"scale": 0.02}, ["input 0: 1x8x8x3 int8 scale 0.0078125 zero -1 -> 1x8x8x3 int8 scale 0.02 zero -1"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["tflite", "synm"])
def test_what_changed_is_named(syn, tmp_path, change, lines, kind):
    a, b = net(tmp_path / "a.tflite"), net(tmp_path / "b.tflite", **change)
    if kind == "synm":
        for path in (a, b):
            assert syn("model", "compile", path)[0] == 0
        lines = [line.replace("DEPTHWISE_CONV_2D", "depthwise").replace("CONV_2D", "conv_i8") for line in lines]
        a, b = a.with_suffix(".synm"), b.with_suffix(".synm")
    status, out, _ = syn("model", "diff", a, b)
    assert status == 1
    for line in lines:
        assert line in out, out


def test_bad_input_is_one_line(syn, tmp_path):
    (tmp_path / "x.synm").write_bytes(b"SYNM" + bytes(200))
    for arguments in (
        ("verify", tmp_path / "none.tflite"), ("verify", tmp_path / "x.synm"), ("verify", EVERY, "--cases", 0),
        ("diff", EVERY, tmp_path / "x.synm"), ("compile", EVERY, "-o", tmp_path / "no" / "such.synm"),
        ("compile", EVERY, "--ram", "100"), ("verify", EVERY, "--board", "toaster"),
    ):  # fmt: skip
        status, out, err = syn("model", *arguments)
        assert status == 2 and err.startswith("syn: ") and err.count("\n") == 1 and not out, (arguments, err)


def test_a_network_of_floats_is_described(syn, tmp_path):
    m = Layers(1)
    x = m.tensor("x", (1, 4), type="float32")
    y = m.tensor("y", (1, 4), 0.5, 3)
    m.op("QUANTIZE", [x], [y], 1, "QuantizeOptions")
    (tmp_path / "floats.tflite").write_bytes(m.finish([x], [y]))
    status, out, _ = syn("model", "info", tmp_path / "floats.tflite")
    assert status == 0 and "in:  1x4 float32\n" in out
