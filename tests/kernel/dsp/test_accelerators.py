"""A right accelerator is used; one that is wrong in any way never is, and the software's answer comes out."""

import accelerators as a
import numpy as np
import pytest
from test_dsp import CALLS, LOWPASS, sections

from synapticos.kernel.dsp import contract
from synapticos.kernel.dsp.calibrate import dsp_init
from synapticos.kernel.dsp.contract import OPERATIONS, Dsp, dsp_biquad_f32, dsp_fft_f32, dsp_fft_q15, dsp_mat_mult_q15
from synapticos.kernel.status import Status
from synapticos.lang import f32, i16

TABLES = {
    "fft": contract.FFT, "rfft": contract.RFFT, "fft_q15": contract.FFT_Q15, "matvec_q15": contract.MATVEC_Q15, "matmul_q15": contract.MATMUL_Q15,
    "softmax": contract.SOFTMAX, "argmax": contract.ARGMAX, "biquad": contract.BIQUAD, "normalize_int8": contract.NORMALIZE_INT8,
}  # fmt: skip
RIGHT = {
    "fft": a.fft_falling, "rfft": a.rfft_right, "fft_q15": a.fft_q15_right, "matvec_q15": a.matvec_right, "matmul_q15": a.matmul_right,
    "softmax": a.softmax_right, "argmax": a.argmax_right, "biquad": a.biquad_right, "normalize_int8": a.normalize_right,
}  # fmt: skip
WRONG = {
    "fft": a.fft_backwards, "rfft": a.rfft_unscaled, "fft_q15": a.fft_q15_one_off, "matvec_q15": a.matvec_wraps, "matmul_q15": a.matmul_transposed,
    "softmax": a.softmax_unshared, "argmax": a.argmax_last, "biquad": a.biquad_forgets, "normalize_int8": a.normalize_wraps,
}  # fmt: skip


def software(name):
    return list(TABLES[name].entries)[:1]


def with_rows(functions):
    return {TABLES[name]: [*software(name), function] for name, function in functions.items()}


RIGHT_TABLES, WRONG_TABLES = with_rows(RIGHT), with_rows(WRONG)


def booted(e):
    dsp = e.new(Dsp)
    assert e(dsp_init, dsp) == Status.OK
    return dsp


def test_right_accelerators_are_used(engines):
    e = engines(*CALLS, tables=RIGHT_TABLES)
    dsp = booted(e)
    assert bytes(dsp.row)[:9] == bytes([1] * 9) and dsp.refused == 0
    assert (dsp.fft_gain, dsp.fft_gain_falls) == (1 / 16, 1)


def test_wrong_accelerators_are_not(engines):
    e = engines(*CALLS, tables=WRONG_TABLES)
    dsp = booted(e)
    assert bytes(dsp.row) == bytes(12) and dsp.refused == (1 << len(OPERATIONS)) - 1
    plain = engines(*CALLS)
    x = np.random.default_rng(1).normal(size=32).astype(np.float32)
    outputs = []
    for engine in (e, plain):
        state = booted(engine)
        y = engine.array(f32, 32)
        assert engine(dsp_fft_f32, state, engine.array(f32, x), y, 16) == Status.OK
        s = sections(engine, LOWPASS)
        for _ in range(2):
            assert engine(dsp_biquad_f32, state, s, 1, engine.array(f32, x), y, 32) == Status.OK
        outputs.append(bytes(y) + bytes(s))
    assert outputs[0] == outputs[1]


OTHERS = [
    {contract.FFT: [*software("fft"), f]} for f in (a.fft_odd_gain, a.fft_bin_0_only, a.fft_nothing, a.fft_refuses)
] + [{contract.MATVEC_Q15: [*software("matvec_q15"), a.matvec_rounds]}]


@pytest.mark.parametrize("tables", OTHERS, ids=["odd gain", "bin 0 only", "no numbers", "refuses all", "rounds"])
def test_other_ways_to_be_wrong(engines, tables):
    dsp = booted(engines(*CALLS, tables=tables))
    assert bytes(dsp.row) == bytes(12)
    assert dsp.refused == (1 if contract.FFT in tables else 1 << OPERATIONS.index("matvec_q15"))


CONSTANT = {contract.FFT: [*software("fft"), a.fft_constant]}


@pytest.mark.parametrize("tables", [RIGHT_TABLES, CONSTANT], ids=["gain falls", "gain constant"])
def test_a_gain_is_taken_out_at_every_length(engines, tables):
    e = engines(*CALLS, tables=tables)
    dsp = booted(e)
    assert dsp.row[0] == 1
    for n in (2, 4, 8, 16, 64, 512, 1024):  # the falling one refuses some of these, and the software takes them
        x = np.random.default_rng(n).normal(size=2 * n).astype(np.float32)
        y = e.array(f32, 2 * n)
        assert e(dsp_fft_f32, dsp, e.array(f32, x), y, n) == Status.OK
        exact = np.fft.fft(x.view(np.complex64).astype(complex))
        np.testing.assert_allclose(y.numpy().view(np.complex64), exact, atol=4e-6 * abs(exact).max())


def test_integer_operations_give_the_same_bytes_with_and_without(engines):
    outputs = []
    for options in (dict(tables=RIGHT_TABLES), {}):
        e = engines(*CALLS, **options)
        dsp = booted(e)
        values = np.random.default_rng(2).integers(-32768, 32768, 400).astype(np.int16)
        out, spectrum = e.array(i16, 20), e.array(i16, 128)
        assert e(dsp_mat_mult_q15, dsp, e.array(i16, values), e.array(i16, values[:20]), out, 20, 20) == Status.OK  # more than 16 a side
        assert e(dsp_fft_q15, dsp, e.array(i16, values), spectrum, 64) == Status.OK
        outputs.append(bytes(out) + bytes(spectrum))
    assert outputs[0] == outputs[1]
