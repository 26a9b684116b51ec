"""The accelerator contract and the stub: spec 32, lines 39 to 42; the defects of 33.2."""

import pytest
from kernels import stub_output
from synapticos.kernel.backend import Caps, NpuState
from synapticos.kernel.status import Status
from synapticos.lang import u8, u32


@pytest.fixture
def w(world):
    made = world()
    made("npu_deinit")
    assert made("npu_init") == Status.OK
    return made


def load(w, n=32):
    return w("npu_load_model", w.keep(w.e.array(u8, n)), n)


def feed(w, data):
    return w("npu_set_input", 0, w.e.array(u8, data), len(data))


def output(w, room=0):
    data, size = w.e.array(u8, 256), w.e.array(u32, [room])
    status = w("npu_get_output", 0, data, size)
    return status, bytes(data)[: size[0]]


def test_init_twice_is_already(w):
    assert w("npu_init") == Status.ALREADY
    assert w("npu_get_state") == NpuState.IDLE


def test_capabilities(w):
    caps = w.e.new(Caps)
    w("npu_deinit")
    assert w("npu_get_caps", caps) == Status.OK  # works before init
    assert bytes(caps.name).rstrip(b"\0") == b"stub" and not caps.asynchronous and caps.dtypes == 0x1F and caps.max_ops == 0
    assert w("npu_get_caps", None) == Status.INVAL
    assert w("npu_invoke_async") == Status.NOTSUP


def test_a_model_is_loaded(w):
    assert load(w, 64) == Status.OK
    assert w("npu_load_model", None, 64) == Status.INVAL
    assert w("npu_load_model", w.e.array(u8, 4), 0) == Status.INVAL


def test_the_stub_answers_the_same_each_time(w):
    load(w)
    for _ in range(2):
        assert feed(w, bytes(16)) == Status.OK
        assert w("npu_invoke") == Status.OK
        assert output(w) == (Status.OK, bytes([127] + [0] * 9))


@pytest.mark.parametrize("data", [b"\xff" * 1024, bytes(range(256)), b"\x80", b"\x11" * 48])
def test_the_stub_sums_bytes_as_unsigned(w, data):
    load(w)
    feed(w, data)
    w("npu_invoke")
    assert output(w)[1] == stub_output(data)


def test_checks_come_in_order(w):
    w("npu_deinit")
    assert load(w) == Status.PERM
    assert w("npu_set_input", 0, None, 4) == Status.INVAL
    assert w("npu_set_input", 1, w.e.array(u8, 4), 4) == Status.INVAL
    assert feed(w, b"abcd") == Status.PERM
    assert w("npu_invoke") == Status.PERM
    assert w("npu_get_output", 0, None, None) == Status.INVAL
    assert output(w)[0] == Status.PERM
    assert w("npu_suspend") == Status.PERM and w("npu_resume") == Status.PERM
    w("npu_init")
    assert feed(w, b"abcd") == Status.PERM  # no model
    assert w("npu_resume") == Status.INVAL  # not suspended
    load(w)
    assert w("npu_set_input", 0, w.e.array(u8, 1025), 1025) == Status.NOMEM


def test_defect_10_nothing_runs_while_suspended(w):
    load(w)
    feed(w, b"abcd")
    assert w("npu_suspend") == Status.OK
    assert w("npu_invoke") == feed(w, b"abcd") == load(w) == Status.PERM
    assert w("npu_get_state") == NpuState.SUSPENDED
    assert w("npu_resume") == Status.OK
    assert w("npu_invoke") == Status.OK


def test_defect_11_a_new_model_starts_without_input_and_output(w):
    load(w)
    assert w("npu_invoke") == Status.PERM  # no input since the load
    assert output(w)[0] == Status.NODATA
    feed(w, b"abcd")
    w("npu_invoke")
    load(w)
    assert w("npu_invoke") == Status.PERM
    assert output(w)[0] == Status.NODATA


def test_defect_12_the_callers_room_is_respected(w):
    load(w)
    feed(w, b"abcd")
    w("npu_invoke")
    assert output(w, 9)[0] == Status.MSGSIZE
    assert output(w, 10)[0] == Status.OK


def test_defect_16_a_model_that_fits_a_flash_slot_loads(w):
    assert load(w, 300_000) == Status.OK


def test_defect_14_busy_and_error_are_states(w):
    load(w)
    feed(w, b"abcd")
    w.kernel.npu.state = NpuState.BUSY
    assert w("npu_suspend") == w("npu_invoke") == load(w) == feed(w, b"abcd") == output(w)[0] == Status.BUSY
    w.kernel.npu.state = NpuState.ERROR
    assert w("npu_invoke") == Status.PERM
    assert load(w) == Status.OK and w("npu_get_state") == NpuState.IDLE


def test_defect_17_the_pointer_does_not_outlive_the_model(w):
    load(w)
    feed(w, b"abcd")
    w("npu_deinit")
    w("npu_init")
    assert w("npu_invoke") == Status.PERM
