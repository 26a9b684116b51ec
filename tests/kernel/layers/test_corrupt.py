"""Containers with a wrong number in them and a right checksum: refused, or run inside their memory.

On the checked engine an access outside is a trap, so a run that returns has none; beside it the guards around frame
and scratch must be untouched on every engine.
"""

import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_calls import clear_state, compiled, input_bytes, load_container, load_from, run_step
from layer_models import SAME, Writer

from synapticos.kernel.container import Header, StepRecord, TensorRecord
from synapticos.kernel.status import Status
from synapticos.lang import layout, sizeof, u8, unpack

GUARD = 64
REFUSALS = {Status.INVAL, Status.NOTSUP, Status.ILSEQ, Status.NOMEM}
EXTREMES = [0, 1, 2, 3, 4, 7, 8, 15, 16, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x0FFFFFFF, 0x10000000,
            0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF]  # fmt: skip
many = settings(max_examples=150, deadline=None)


def small_model() -> bytes:
    """Each layer once, as small as it can be."""
    random = np.random.default_rng(5)
    w = Writer()
    x = w.tensor("x", (1, 5, 4, 2), 0.05, 3)

    def weights(shape, axis, n):
        return (
            w.constant("w", random.integers(-127, 128, shape).astype(np.int8), [0.01] * n, axis),
            w.constant("b", random.integers(-99, 99, n).astype(np.int32), [0.0005] * n),
        )

    def windowed(kind, options, source, shape, channels, **fields):
        axis = 0 if kind == "CONV_2D" else 3
        y = w.tensor("y", (1, 5, 4, channels), 0.04, -4)
        w.op(kind, [source, *weights(shape, axis, channels)], [y], 3, options, Padding=SAME, StrideW=1, StrideH=1,
             DilationWFactor=1, DilationHFactor=1, FusedActivationFunction=0, **fields)  # fmt: skip
        return y

    a = windowed("CONV_2D", "Conv2DOptions", x, (5, 3, 3, 2), 5)
    b = windowed("CONV_2D", "Conv2DOptions", a, (4, 1, 1, 5), 4)
    c = windowed("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", b, (1, 3, 3, 4), 4, DepthMultiplier=1)
    d = windowed("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", c, (1, 2, 3, 8), 8, DepthMultiplier=2)
    pooled = []
    for kind in ("MAX", "AVERAGE"):
        y = w.tensor("p", (1, 2, 2, 8), 0.04, -4)
        w.op(f"{kind}_POOL_2D", [d], [y], 2, "Pool2DOptions", Padding=1, StrideW=2, StrideH=2, FilterWidth=2,
             FilterHeight=2, FusedActivationFunction=0)  # fmt: skip
        pooled.append(y)
    total = w.tensor("s", (1, 2, 2, 8), 0.06, 1)
    w.op("ADD", pooled, [total], 2, "AddOptions", FusedActivationFunction=1)
    q = w.tensor("q", (1, 2, 2, 8), 0.04, -4)
    w.op("QUANTIZE", [total], [q], 1, "QuantizeOptions")
    joined = w.tensor("j", (1, 2, 2, 16), 0.04, -4)
    w.op("CONCATENATION", [q, pooled[1]], [joined], 2, "ConcatenationOptions", Axis=3, FusedActivationFunction=0)
    amounts = w.constant("amounts", np.array([[0, 0], [1, 0], [0, 1], [0, 2]], np.int32))
    padded = w.tensor("pad", (1, 3, 3, 18), 0.04, -4)
    w.op("PAD", [joined, amounts], [padded], 2, "PadOptions")
    flat = w.tensor("flat", (1, 162), 0.04, -4)
    shape = w.constant("shape", np.array([1, 162], np.int32))
    w.op("RESHAPE", [padded, shape], [flat], 1, "ReshapeOptions")
    dense = w.tensor("dense", (1, 6), 0.1, 0)
    w.op("FULLY_CONNECTED", [flat, *weights((6, 162), 0, 6)], [dense], 4, "FullyConnectedOptions")
    y = w.tensor("out", (1, 6), 1 / 256, -128)
    w.op("SOFTMAX", [dense], [y], 2, "SoftmaxOptions", Beta=1.0)
    return w.finish([x], [y])


MODEL = compiled(small_model())
GIVEN = input_bytes(MODEL, [np.arange(40, dtype=np.int8).reshape(1, 5, 4, 2)])
HEADER = unpack(Header, MODEL.container[: sizeof(Header)])


def sealed(data: bytearray) -> bytes:
    """The container with its checksums made right."""
    size = sizeof(Header)
    at = {field[0]: field[1] for field in layout(Header)}
    data[at["payload_crc"] : at["payload_crc"] + 4] = zlib.crc32(bytes(data[size:])).to_bytes(4, "little")
    data[at["header_crc"] : at["header_crc"] + 4] = bytes(4)
    data[at["header_crc"] : at["header_crc"] + 4] = zlib.crc32(bytes(data[:size])).to_bytes(4, "little")
    return bytes(data)


def survives(e, container: bytes) -> Status:
    """Load, and run all steps if accepted: with exactly the memory that the container asks for, guarded."""
    blob = e.array(u8, container)
    header = unpack(Header, container[: sizeof(Header)])
    frame, scratch = header["frame_bytes"], header["scratch_bytes"]
    status = Status(e(load_container, blob, len(container), 0x7FFFFFFF, 0x7FFFFFFF))
    if status != Status.OK:
        assert status in REFUSALS
        return status
    state = header["persistent_bytes"]
    if max(frame, scratch, state) > 1 << 16:  # right, if large: nobody would give it so much here
        return Status.NOMEM
    memory, work, kept = (e.array(u8, n + GUARD) for n in (frame, scratch, state))
    guards = bytes(memory)[frame:], bytes(work)[scratch:], bytes(kept)[state:]
    assert e(clear_state, blob, len(container), kept, state) == Status.OK
    given = e.array(u8, GIVEN)
    for step in range(header["steps"]):
        record = unpack(StepRecord, container[header["steps_at"] + 32 * step :][:32])
        rows = record["row_end"] - record["row"]
        e(run_step, blob, len(container), memory, frame, work, scratch, given, len(GIVEN), kept, state, step, 0, rows)
    assert (bytes(memory)[frame:], bytes(work)[scratch:], bytes(kept)[state:]) == guards
    assert bytes(blob) == container and bytes(given) == GIVEN
    return status


def test_the_whole_container_is_accepted(e):
    assert survives(e, MODEL.container) == Status.OK


def test_a_flipped_bit_anywhere_is_refused(e):
    random = np.random.default_rng(3)
    for at in [*range(0, 128, 7), *random.integers(128, len(MODEL.container), 20).tolist()]:
        data = bytearray(MODEL.container)
        data[at] ^= 1 << int(random.integers(8))
        assert e(load_container, e.array(u8, bytes(data)), len(data), 1 << 20, 1 << 20) in REFUSALS


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129])
def test_a_cut_container_is_refused(e, size):
    data = MODEL.container[:size] + bytes(16)
    assert e(load_container, e.array(u8, data), size, 1 << 20, 1 << 20) in REFUSALS


@pytest.mark.parametrize(("at", "status"), [(0, Status.OK), (1, Status.INVAL), (2, Status.INVAL), (4, Status.OK)])
def test_a_container_whose_words_are_not_aligned_is_refused(e, at, status):
    memory = e.array(u8, bytes(at) + MODEL.container)
    assert e(load_from, memory, at, len(MODEL.container)) == status


def fields():
    """(offset, bytes) of each field of header, tensor and step records."""
    made = []
    for at, count, record in (
        (0, 1, Header),
        (HEADER["tensors_at"], HEADER["tensors"], TensorRecord),
        (HEADER["steps_at"], HEADER["steps"], StepRecord),
    ):
        offsets = [field[1] for field in layout(record)] + [sizeof(record)]
        for i in range(count):
            base = at + i * sizeof(record)
            made += [(base + a, min(b - a, 4)) for a, b in zip(offsets, offsets[1:], strict=False)]
    return made


@many
@given(st.sampled_from(fields()), st.one_of(st.sampled_from(EXTREMES), st.integers(0, 2**32 - 1)))
def test_a_wrong_field_is_refused_or_harmless(e, field, value):
    at, size = field
    data = bytearray(MODEL.container)
    data[at : at + size] = value.to_bytes(4, "little")[:size]
    survives(e, sealed(data))


@many
@given(
    st.integers(0, HEADER["params_bytes"] // 4 - 1),
    st.one_of(st.sampled_from(EXTREMES), st.integers(0, 2**32 - 1), st.integers(-3, 3)),
)
def test_a_wrong_parameter_is_refused_or_harmless(e, word, value):
    at = HEADER["params_at"] + 4 * word
    data = bytearray(MODEL.container)
    old = int.from_bytes(data[at : at + 4], "little")
    data[at : at + 4] = ((old + value if -3 <= value <= 3 else value) % 2**32).to_bytes(4, "little")
    survives(e, sealed(data))


@many
@given(
    st.integers(0, HEADER["list_entries"] - 1),
    st.one_of(st.integers(0, HEADER["tensors"] + 1), st.sampled_from([0x7FFF, 0xFFFE, 0xFFFF])),
)
def test_a_wrong_list_entry_is_refused_or_harmless(e, entry, value):
    at = HEADER["lists_at"] + 2 * entry
    data = bytearray(MODEL.container)
    data[at : at + 2] = value.to_bytes(2, "little")
    survives(e, sealed(data))


@many
@given(st.integers(0, HEADER["consts_bytes"] // 4 - 1), st.one_of(st.sampled_from(EXTREMES), st.integers(0, 2**32 - 1)))
def test_a_wrong_constant_is_refused_or_harmless(e, word, value):
    at = HEADER["consts_at"] + 4 * word
    data = bytearray(MODEL.container)
    data[at : at + 4] = value.to_bytes(4, "little")
    survives(e, sealed(data))


def test_too_little_memory_is_refused(e):
    blob = e.array(u8, MODEL.container)
    n = len(MODEL.container)
    frame, scratch = MODEL.frame_bytes, MODEL.scratch_bytes
    assert e(load_container, blob, n, frame, scratch) == Status.OK
    assert e(load_container, blob, n, frame - 1, scratch) == Status.NOMEM
    assert e(load_container, blob, n, frame, scratch - 1) == Status.NOMEM
    small = e.array(u8, 16)
    given = e.array(u8, GIVEN)
    assert e(run_step, blob, n, small, 16, small, 16, given, len(GIVEN), small, 0, 0, 0, 1) == Status.NOMEM
    assert e(run_step, blob, n, small, 16, small, 16, given, len(GIVEN), small, 0, 99, 0, 1) == Status.INVAL
    assert e(run_step, blob, n, small, 16, small, 16, given, len(GIVEN), small, 0, 0, 0, 999) == Status.INVAL


@pytest.mark.slow
def test_damaged_containers_touch_no_byte_outside_under_the_sanitizers():
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("the sanitizers' runtime is gcc's, and there is no gcc")
    library = subprocess.run(
        [gcc, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no libasan here")
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("damage.py")), "1500"],
        env=os.environ | {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "runtime error" not in ran.stderr
    assert "'OK'" in ran.stdout and "'INVAL'" in ran.stdout
