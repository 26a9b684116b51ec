"""The published calls: a kernel tries its accelerators as it comes up, logs one that is wrong, and goes on."""

import numpy as np
import pytest
from test_accelerators import RIGHT_TABLES, WRONG, WRONG_TABLES

from synapticos.kernel.dsp import calls
from synapticos.kernel.dsp.contract import OPERATIONS
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.log import LOG_WARNING
from synapticos.kernel.runtime import kernel_init, kernel_shutdown
from synapticos.kernel.status import Status
from synapticos.lang import f32, i8, i16, u8, u32

CALLS = [f for f in vars(calls).values() if getattr(f, "c_name", "").startswith("kernel_dsp_")]
ROOTS = [kernel_boot, kernel_init, kernel_shutdown, *CALLS]
PLAIN: dict = {}
MEMORY: list = []  # that kernels were told of


def up(e):
    kernel = e.new(Kernel)
    e(kernel_boot, kernel, getattr(getattr(e, "board", None), "number", 0))
    assert start(e, kernel) == Status.OK
    return kernel


def start(e, kernel):
    MEMORY.append(e.array(u8, 4096))
    return e(kernel_init, kernel, MEMORY[-1], 4096, 0)


def answers(e, kernel):
    """What each call gives: bytes."""
    random = np.random.default_rng(3)
    signal, scores = random.normal(size=32).astype(np.float32), random.normal(size=9).astype(np.float32)
    a, b = (random.integers(-32768, 32768, n).astype(np.int16) for n in (12, 4))
    pixels, levels = random.integers(0, 256, 40).astype(np.uint8), np.array([3, 9, -4, 9], np.int8)
    x, y = e.array(f32, signal), e.array(f32, 32)
    assert e(calls.kernel_dsp_fft_f32, kernel, x, y, 16) == Status.OK
    made = [bytes(y)]
    assert e(calls.kernel_dsp_softmax_f32, kernel, e.array(f32, scores), y, 9) == Status.OK
    made.append(bytes(y)[:36])
    out = e.array(i16, 3)
    assert e(calls.kernel_dsp_mat_mult_q15, kernel, e.array(i16, a), e.array(i16, b), out, 3, 4) == Status.OK
    made.append(bytes(out))
    out = e.array(i8, 40)
    assert e(calls.kernel_dsp_normalize_int8, kernel, e.array(u8, pixels), out, 40, 0.5, -64) == Status.OK
    made.append(bytes(out))
    index = e.array(u32, 1)
    assert e(calls.kernel_dsp_argmax, kernel, e.array(i8, levels), 4, index) == Status.OK
    return [*made, bytes(index)]


def test_wrong_accelerators_are_logged_and_the_software_answers(make):
    e, plain = make(*ROOTS, tables=WRONG_TABLES), make(*ROOTS, tables=PLAIN)
    kernel, other = up(e), up(plain)
    assert kernel.up and (kernel.log.written, other.log.written) == (1, 0)
    record = kernel.log.records[0]
    assert (record.level, record.count, record.args[0]) == (int(LOG_WARNING), 1, (1 << len(OPERATIONS)) - 1)
    assert set(WRONG) == set(OPERATIONS)
    assert answers(e, kernel) == answers(plain, other)


def test_right_accelerators_are_used_again_after_a_restart(make):
    e = make(*ROOTS, tables=RIGHT_TABLES)
    kernel = up(e)
    for _ in range(2):
        assert bytes(kernel.dsp.row)[:9] == bytes([1] * 9) and kernel.log.written == 0
        assert e(kernel_shutdown, kernel) == Status.OK
        assert start(e, kernel) == Status.OK


def test_a_build_without_says_so(make):
    e = make(*ROOTS, DSP=0, tables=WRONG_TABLES)
    kernel = up(e)
    assert kernel.log.written == 0
    assert e(calls.kernel_dsp_init, kernel) == Status.NOTSUP
    assert e(calls.kernel_dsp_argmax, kernel, e.array(i8, 4), 4, e.array(u32, 1)) == Status.NOTSUP


@pytest.mark.parametrize("name", ["softmax_f32", "fft_f32"])
def test_null_pointers_are_refused(make, name):
    e = make(*ROOTS, tables=PLAIN)
    assert e(getattr(calls, f"kernel_dsp_{name}"), up(e), None, e.array(f32, 4), 2) == Status.INVAL
