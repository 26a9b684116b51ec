"""`syn try`: one page about a network, with or without compilers and the reference."""

import json
from pathlib import Path

import pytest
from make_test_model import VALID, Layers
from synapticos import toolchain
from synapticos.model.verify import Reference

DATA = Path(__file__).resolve().parents[1] / "data"
EVERY = DATA / "every_layer.tflite"
SINE = DATA.parents[1] / "examples" / "hello_world" / "sine.tflite"


needs_all = pytest.mark.skipif(
    Reference.missing() is not None or not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"),
    reason="needs both compilers and the reference",
)


@needs_all
def test_the_page_says_size_cost_fit_and_exactness(syn):
    status, out, _ = syn("try", EVERY)
    assert status == 0
    for text in (
        "every_layer: 19 layers, ", "in  1x13x9x3 int8, scale 0.0078125 zero -1", "flash  ", "RAM  ", "largest live set", "instructions  ",
        "fits          lm3s6965evb: flash ", "fits          mps2-an521: flash ", "exact         19 layers, 3 inputs, native against tflite-micro",
    ):  # fmt: skip
        assert text in out, text


@needs_all
def test_its_figures_are_the_compiler_s_and_the_emulator_s(syn):
    status, out, _ = syn("try", SINE, "--board", "lm3s6965evb", "--json")
    page = json.loads(out)
    assert status == 0 and page["good"] and page["verdict"]["first"] is None
    assert page["macs"] == 16 + 256 + 16 and page["arena"] == page["frame"] + page["scratch"]
    assert all(layer["macs"] < layer["instructions"] < 100 * layer["macs"] for layer in page["layers"])
    (fit,) = page["boards"]
    assert fit["fits"] and page["container"] < fit["flash"] < 60_000 and page["arena"] < fit["ram"]


def test_without_compilers_the_host_part_stands(syn, monkeypatch):
    monkeypatch.setattr(toolchain, "find_all", lambda *_: [])
    status, out, err = syn("try", SINE)
    assert status == 0
    assert "instructions are not counted" in err and "kernel not counted: no compiler" in out
    assert "flash         " in out and "3 layers, 288 multiply-accumulates" in out
    if Reference.missing() is None:
        assert "checked CPython against tflite-micro" in out and "0 of " in out


def test_without_the_reference_it_says_so(syn, monkeypatch):
    monkeypatch.setattr(Reference, "missing", staticmethod(lambda: "it is not there"))
    monkeypatch.setattr(toolchain, "find_all", lambda *_: [])
    status, out, err = syn("try", SINE)
    assert status == 0 and "exact" not in out
    assert "not compared with the reference kernels: it is not there" in err


@needs_all
def test_the_first_layer_that_differs_is_named(syn, monkeypatch):
    original = Reference.run

    def wrong(self, graph, inputs, fresh=True):
        results = original(self, graph, inputs, fresh)
        results[graph.ops[1].outputs[0].number].reshape(-1)[3] ^= 1
        return results

    monkeypatch.setattr(Reference, "run", wrong)
    status, out, _ = syn("try", SINE, "--board", "mps2-an521")
    assert status == 1
    assert "DIFFERS" in out and "step 1: FULLY_CONNECTED" in out and "1 of 16 elements, by up to 1" in out


def test_a_board_that_is_too_small_says_what_is_missing(syn, tmp_path):
    m = Layers(1)
    x = m.tensor("x", (1, 160, 160, 3), 0.0078125, -1)
    (tmp_path / "large.tflite").write_bytes(m.finish([x], [m.pool("MAX", "y", x, (1, 1), 1, VALID)]))
    status, out, _ = syn("try", tmp_path / "large.tflite", "--board", "lm3s6965evb", "--cases", 1)
    assert status == 1
    assert "does not fit  lm3s6965evb: " in out and "bytes of RAM are missing" in out


def test_operators_that_cannot_be_compiled_are_listed(syn, tmp_path):
    m = Layers(1)
    x = m.tensor("x", (1, 4), 0.1, 0)
    y = m.tensor("y", (1, 4), 0.1, 0)
    m.op("SEGMENT_SUM", [x, x], [y], 1)
    (tmp_path / "odd.tflite").write_bytes(m.finish([x], [y]))
    status, out, _ = syn("try", tmp_path / "odd.tflite")
    assert status == 1 and "odd: 1 operator cannot be compiled" in out and "SEGMENT_SUM" in out


def test_bad_input_is_one_line(syn, tmp_path):
    (tmp_path / "empty.tflite").write_bytes(b"")
    for arguments in ((tmp_path / "none.tflite",), (tmp_path / "empty.tflite",), (SINE, "--board", "toaster")):
        status, out, err = syn("try", *arguments)
        assert status == 2 and err.startswith("syn: ") and err.count("\n") == 1 and not out
