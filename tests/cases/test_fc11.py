"""FC-11: all unsupported layers in one report."""

import numpy as np
import pytest
from make_test_model import VALID, Layers

from synapticos.cli import invoke
from synapticos.importers.tflite_forms import OPERATORS


@pytest.fixture
def model(tmp_path):
    """An unknown operator at node 4, a known one in a newer version at node 9, one of an unsupported type at node 12."""
    m = Layers(11)
    x = m.tensor("picture", (1, 8, 8, 4), 0.0078125, -1)

    def on(y, count):
        for i in range(count):
            y = m.pool("MAX", f"pool_{len(m.ops)}", y, (1, 1), 1, VALID)
        return y

    y = on(x, 4)
    cells = m.tensor("cells", (1, 8, 8, 4), 0.0078125, -1)
    m.op("SEGMENT_SUM", [y, m.constant("groups", np.zeros(1, np.int32))], [cells], 1)
    y = on(cells, 4)
    filtered = m.conv("filtered", y, 4, (1, 1))
    m.ops[-1].version = 77
    y = on(filtered, 2)
    halves = m.tensor("halves", (1, 8, 8, 4), type="float16")
    m.op("PAD", [y, m.constant("amounts", np.zeros((4, 2), np.int32))], [halves], 1, "PadOptions")
    path = tmp_path / "strange.tflite"
    path.write_bytes(m.finish([x], [halves]))
    return path


def test_one_run_names_all_three_and_writes_nothing(model, tmp_path, capfd):
    out = tmp_path / "strange.synm"
    status = invoke(["model", "compile", str(model), "-o", str(out)])
    text = capfd.readouterr().err
    assert status == 2 and not out.exists()
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("node ")]
    assert [line.split()[1] for line in lines] == ["4", "9", "12"]
    wanted = [
        ("SEGMENT_SUM", "version 1", "cells", "unknown operator"),
        ("CONV_2D", "version 77", "filtered", "newer than"),
        ("PAD", "version 1", "halves", "float16"),
    ]
    for line, parts in zip(lines, wanted, strict=True):
        for part in (*parts, "nearest supported: ", "int8"):
            assert part in line, (part, line)


def test_the_list_in_the_documentation_is_made_from_the_compiler_s_own():
    from make_docs import operators  # what `make docs` writes into docs/networks.md; another test looks that it did

    text = operators()
    for kind, form in OPERATORS.items():
        assert f"| {kind} | {form.version} |" in text
    assert text.count("\n| ") == len(OPERATORS)
