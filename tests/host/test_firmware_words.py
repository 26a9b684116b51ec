"""A firmware keeps the words of its messages and the names of its sources, in a section that is not loaded."""

from pathlib import Path

from synapticos import toolchain
from synapticos.app.load import load_app
from synapticos.engine.words import Words
from synapticos.host.firmware import build_firmware

ROOT = Path(__file__).resolve().parents[2]


def test_the_words_of_a_firmware_are_in_its_elf():
    if not toolchain.find_all("cortex-m33"):
        import pytest

        pytest.skip("no compiler for a Cortex-M33 is installed")
    made = build_firmware(load_app(ROOT / "examples" / "hello_world" / "app.py"), "mps2-an521")
    words = Words.from_elf(made.elf)
    assert any(file.endswith("kernel/cpu.py") for file in words.files)
    assert words.texts and words.place(0, 7).endswith(".py:7")
