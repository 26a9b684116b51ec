"""One-operator containers with wrong numbers in them: refused, or run inside their memory, on the checked engine.

There an access outside, an overflow and a division by zero are traps, so a run that returns had none. So is a NaN that
arithmetic makes: the float layers let that happen (an infinite weight times 0), as the chip does.
"""

import os
import zlib
from math import prod

import layer_models  # noqa: F401 - puts tools/ on the path
import numpy as np
import pytest
from judge import noise
from layer_calls import ROOTS, compiled, input_bytes, load_container, run_step
from operator_models import OPERATORS

from synapticos.engine import Build
from synapticos.kernel.container import Header, StepRecord, TensorRecord
from synapticos.kernel.status import Status
from synapticos.lang import Trap, pack, sizeof, u8, unpack

ROUNDS = int(os.environ.get("SYNAPTICOS_DAMAGE", "12"))
WILD = [
    0,
    1,
    2,
    3,
    4,
    127,
    255,
    256,
    0xFFFF,
    0x10000,
    0x0FFFFFFF,
    0x10000000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
]
MOST = 4000  # elements of a model: checked runs take time


@pytest.fixture(scope="module")
def checked():
    return Build(roots=list(ROOTS)).engine("checked")


def sealed(data: bytearray) -> bytes:
    """With the checksums made right."""
    size = sizeof(Header)
    fields = unpack(Header, bytes(data[:size])) | {"header_crc": 0, "payload_crc": zlib.crc32(bytes(data[size:]))}
    header = pack(Header, **fields)
    return pack(Header, **fields | {"header_crc": zlib.crc32(header)}) + bytes(data[size:])


def damage(dice: np.random.Generator, container: bytes) -> bytes:
    data = bytearray(container)
    header = unpack(Header, container[: sizeof(Header)])
    for _ in range(int(dice.integers(1, 3))):
        where = int(dice.integers(10))
        if where < 6 and header["params_bytes"]:
            at = header["params_at"] + 4 * int(dice.integers(header["params_bytes"] // 4))
        elif where < 8 and header["consts_bytes"] >= 4:
            at = header["consts_at"] + 4 * int(dice.integers(header["consts_bytes"] // 4))
        elif where == 8:
            at = header["tensors_at"] + 4 * int(dice.integers(header["tensors"] * sizeof(TensorRecord) // 4))
        else:
            at = header["steps_at"] + 4 * int(dice.integers(header["steps"] * sizeof(StepRecord) // 4))
        near = int.from_bytes(data[at : at + 4], "little") + int(dice.integers(-3, 4))
        value = near if dice.integers(2) else int(dice.choice(WILD))
        data[at : at + 4] = (value % 2**32).to_bytes(4, "little")
    return sealed(data)


def survive(checked, made, inputs, data: bytes) -> bool:
    """Whether a container was accepted; its steps are then run, each at once."""
    container = checked.array(u8, data)
    header = unpack(Header, data[: sizeof(Header)])
    frame, scratch = made.frame_bytes, made.scratch_bytes
    if checked(load_container, container, len(container), frame, scratch) != Status.OK:
        return False
    memory = [checked.array(u8, max(n, 16)) for n in (frame, scratch, made.persistent_bytes)]
    given = checked.array(u8, input_bytes(made, [np.nan_to_num(a) for a in inputs]))
    for step in range(header["steps"]):
        at = header["steps_at"] + step * sizeof(StepRecord)
        record = unpack(StepRecord, data[at : at + sizeof(StepRecord)])
        try:
            checked(run_step, container, len(container), memory[0], frame, memory[1], scratch, given, len(given),
                    memory[2], len(memory[2]), step, 0, record["row_end"] - record["row"])  # fmt: skip
        except Trap as trap:
            if "NaN" not in str(trap):
                raise
    return True


@pytest.mark.parametrize("name", OPERATORS)
def test_no_number_in_an_operator_s_container_makes_it_trap(checked, name):
    dice = np.random.default_rng([len(name), ord(name[0]), ord(name[-1])])
    for seed in range(ROUNDS):
        model = OPERATORS[name](np.random.default_rng([seed, 3]))
        made = compiled(model.data)
        if sum(prod(t.shape) for t in made.graph.tensors()) < MOST:
            survive(checked, made, model.inputs, damage(dice, made.container))


@pytest.mark.parametrize("name", ["audio_preprocessor_int8", "mnist_lstm_int8", "keyword_svdf_int16"])
def test_no_number_in_a_network_with_state_makes_it_trap(checked, shared_models, name):
    dice = np.random.default_rng(len(name))
    made = compiled((shared_models / f"{name}.tflite").read_bytes())
    inputs = noise(made.graph, 3)[2]
    for _ in range(ROUNDS):
        survive(checked, made, inputs, damage(dice, made.container))
