"""What `syn model` and `syn try` do with an .onnx."""

import json

import pytest

from synapticos import toolchain

pytest.importorskip("onnx", reason="no onnx package for this Python or machine")
pytest.importorskip("onnxruntime", reason="no onnxruntime for this Python or machine")
from make_onnx_models import dense  # noqa: E402


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "dense.onnx"
    path.write_bytes(dense())
    return path


def test_info_shows_its_layers(syn, path):
    status, out, _ = syn("model", "info", path, "--json")
    assert status == 0
    told = json.loads(out)
    assert told["name"] == "dense" and told["macs"] == 4 * (24 * 16 + 16 * 12)


def test_verify_compares_it_with_onnxruntime(syn, path):
    status, out, _ = syn("model", "verify", path, "--json")
    told = json.loads(out)
    assert status == 0 and told["first"] is None and told["allowed"] == 1 and "onnxruntime" in told["reference"]


@pytest.mark.skipif(not toolchain.find_all("cortex-m33"), reason="no compiler for Cortex-M")
def test_a_board_s_bytes_are_this_machine_s(syn, path):
    status, out, _ = syn("model", "verify", path, "--board", "mps2-an521", "--json")
    assert status == 0 and json.loads(out)["exact"]


def test_a_container_keeps_known_answers(syn, path, tmp_path):
    out = tmp_path / "dense.synm"
    assert syn("model", "compile", path, "-o", out, "--answers", 2)[0] == 0
    status, text, _ = syn("model", "verify", out)
    assert (status, text) == (0, "dense.synm: all 2 known answers are right, native\n")


def test_what_cannot_be_compiled_writes_no_file(syn, tmp_path):
    from test_onnx import chain

    path, out = tmp_path / "chain.onnx", tmp_path / "chain.synm"
    path.write_bytes(chain())
    status, _, errors = syn("model", "compile", path, "-o", out)
    assert status != 0 and not out.exists() and "4 operators cannot be compiled" in errors


def test_try_says_how_near_it_is(syn, path):
    status, out, _ = syn("try", path)
    assert status == 0 and "against onnxruntime" in out and "fits" in out
