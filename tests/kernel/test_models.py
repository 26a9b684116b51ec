"""The model registry: spec 32, lines 46 to 52; residency and swap; the defects of 33.4 and 33.5 that concern it."""

import zlib

import pytest
from kernels import INT8, ODD, stub_output
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.status import Status
from synapticos.lang import u8, u32


def named(w, name):
    out = w.e.array(u32, [9])
    return w("api_model_get_by_name", w.e.array(u8, name.encode().ljust(32, b"\0")), out), out[0]


def attach(w, handle, payload=b"model" * 20, crc=None, backend=0):
    assert w("model_set_data", handle, w.keep(w.e.array(u8, payload)), len(payload), backend) == Status.OK
    if crc is not None:
        assert w("model_set_crc", handle, crc) == Status.OK


def ask(w, pipe, data=b"\x11" * 48):
    job = w.submit(pipe, data)
    w.run()
    status = w("infer_wait", job, 0)
    if status != Status.OK:
        w("infer_get_result", job, w.descriptor(0))
        return status
    assert w.result(job) == stub_output(data)
    return status


# Spec 32


def test_registering_gives_a_handle(w):
    assert w.model("test_model_v1", 27648, 10, 65536) == 1
    assert w.model("another") == 2


def test_a_model_is_found_by_name(w):
    w.model("first")
    handle = w.model("lookup_test")
    assert named(w, "lookup_test") == (Status.OK, handle)
    assert named(w, "stranger") == (Status.NOENT, 0)
    assert w("api_model_get_by_name", None, w.e.array(u32, 1)) == Status.INVAL
    assert w("api_model_get_by_name", w.e.array(u8, 32), None) == Status.INVAL


def test_models_are_listed_in_slot_order(w):
    handles = [w.model("a"), w.model("b"), w.model("c")]
    assert w("model_unregister", handles[1]) == Status.OK
    out, count = w.e.array(u32, 4), w.e.array(u32, 1)
    assert w("api_model_list", out, count, 4) == Status.OK
    assert (count[0], out[0], out[1]) == (2, handles[0], handles[2])
    assert w("api_model_list", out, count, 1) == Status.OK and count[0] == 1
    assert w("api_model_list", None, count, 1) == w("api_model_list", out, None, 1) == Status.INVAL


def test_a_name_can_be_taken_once_and_the_table_is_finite(w):
    w.model("one")
    out = w.e.array(u32, [9])
    assert w("api_model_register", w.e.new(ModelInfo, name=b"one"), out) == Status.EXIST and out[0] == 0
    for i in range(3):
        w.model(f"more{i}")
    assert w("api_model_register", w.e.new(ModelInfo, name=b"two"), out) == Status.NOMEM and out[0] == 0


def test_load_and_unload_without_a_payload_set_a_flag(w):
    handle = w.model()
    assert not w("model_is_loaded", handle)
    assert w("model_load", handle) == Status.OK and w("model_is_loaded", handle)
    assert w("model_load", handle) == Status.ALREADY
    assert w("model_unload", handle) == Status.OK and not w("model_is_loaded", handle)
    assert w("model_unload", handle) == Status.ALREADY
    assert w("model_load", 77) == w("model_unload", 77) == w("model_unregister", 77) == Status.INVAL


def test_register_without_arguments_is_refused(w):
    assert w("api_model_register", None, w.e.array(u32, 1)) == Status.INVAL
    assert w("api_model_register", w.e.new(ModelInfo), None) == Status.INVAL


def test_the_record_comes_back_as_registered(w):
    handle = w.model("info_test", 768, 10, version=b"2.1.0", input_dtype=INT8)
    out = w.e.new(ModelInfo)
    assert w("model_get_info", handle, out) == Status.OK
    assert bytes(out.name).rstrip(b"\0") == b"info_test" and bytes(out.version).rstrip(b"\0") == b"2.1.0"
    assert (out.input_size, out.output_size, out.input_dtype) == (768, 10, INT8)
    assert len(bytes(out)) == 84
    assert w("model_get_info", 99, out) == w("model_get_info", handle, None) == Status.INVAL


# Payloads


def test_a_payload_with_another_checksum_is_refused(w):
    handle, good = w.model(), b"weights" * 9
    attach(w, handle, good, zlib.crc32(good) ^ 1)
    assert w("model_load", handle) == Status.ILSEQ and not w("model_is_loaded", handle)
    w("model_set_crc", handle, zlib.crc32(good))
    assert w("model_load", handle) == Status.OK


def test_defect_54_a_checksum_of_0_can_be_stated(w):
    handle = w.model(crc32=0)
    attach(w, handle)
    assert w("model_load", handle) == Status.OK  # 0 in a record: unknown
    w("model_unload", handle)
    w("model_set_crc", handle, 0)
    assert w("model_load", handle) == Status.ILSEQ


def test_data_of_no_bytes_is_refused_and_none_detaches(w):
    handle = w.model()
    assert w("model_set_data", handle, w.e.array(u8, 4), 0, 0) == Status.INVAL
    assert w("model_set_data", 99, w.e.array(u8, 4), 4, 0) == Status.INVAL
    assert w("model_set_data", handle, w.e.array(u8, 4), 4, 7) == Status.INVAL
    attach(w, handle)
    assert w("model_set_data", handle, None, 0, 0) == Status.OK
    assert w("model_load", handle) == Status.OK  # only the flag


def test_defect_38_a_job_runs_on_its_own_model_or_not_at_all(w):
    a, b = w.model("a"), w.model("b")
    attach(w, a, b"a" * 64)
    attach(w, b, b"b" * 64)
    on_a, on_b = w.pipeline(a), w.pipeline(b)
    assert ask(w, on_a) == Status.PERM  # not loaded
    assert w("model_load", a) == w("model_load", b) == Status.OK
    for pipe, handle in ((on_a, a), (on_b, b), (on_a, a)):
        assert ask(w, pipe) == Status.OK
        assert w.kernel.npu.holds.places[0].model == handle  # swapped in on demand
    w("model_unload", a)
    assert w.kernel.npu.holds.places[0].model == 0
    assert ask(w, on_a) == Status.PERM and ask(w, on_b) == Status.OK


def test_models_without_payload_run_on_what_was_loaded_by_hand(w):
    by_hand = w.pipeline(w.model("by_hand"))
    assert ask(w, by_hand) == Status.PERM  # nothing is loaded
    w.hand_model()
    assert ask(w, by_hand) == Status.OK
    handle = w.model("with_payload")
    attach(w, handle)
    w("model_load", handle)
    assert ask(w, by_hand) == Status.PERM  # another model is resident


def test_defect_49_a_pipeline_does_not_follow_a_recycled_handle(w):
    handle = w.model("old")
    w.hand_model()
    pipe = w.pipeline(handle)
    assert w("model_unregister", handle) == Status.OK
    new = w.model("new", 16, 10)
    assert new != handle and new & 0xFF == handle & 0xFF
    assert w("model_load", handle) == Status.INVAL
    assert ask(w, pipe) == Status.NOENT


def test_defect_48_a_name_of_32_characters_needs_no_end(w):
    long = "n" * 32
    handle = w.model(long)
    assert named(w, long) == (Status.OK, handle)
    assert named(w, "n" * 31)[0] == Status.NOENT


def test_swap(w):
    a, b = w.model("a"), w.model("b")
    attach(w, a)
    attach(w, b)
    w("model_load", a)
    pipe = w.pipeline(b)
    job = w.submit(pipe, b"\x11" * 48)
    assert w("model_swap", a, b) == Status.OK
    assert not w("model_is_loaded", a) and w("model_is_loaded", b)
    w.run()
    assert w("infer_wait", job, 0) == Status.OK  # it was queued and runs with the new model
    assert w("model_swap", a, a) == w("model_swap", a, 99) == w("model_swap", 99, a) == Status.INVAL


def test_defect_45_a_corrupt_model_leaves_neither_loaded_and_stops_nothing(w):
    a, b = w.model("a"), w.model("b")
    attach(w, a)
    attach(w, b, crc=1)
    w("model_load", a)
    assert w("model_swap", a, b) == Status.ILSEQ
    assert not w("model_is_loaded", a) and not w("model_is_loaded", b)
    assert not w.kernel.hold


@pytest.mark.parametrize("call", ["model_load", "model_unload", "model_unregister"])
def test_defect_36_no_model_changes_from_inside_a_stage(w, call):
    handle = w.model()
    attach(w, handle)
    if call == "model_unload":
        w("model_load", handle)
    w.kernel.inside = 1
    assert w(call, handle) == Status.BUSY
    w.kernel.inside = 0
    assert w(call, handle) == Status.OK


def test_a_models_state_is_cleared_on_demand(w):
    handle = w.model()
    assert w("model_clear_state", 99) == Status.INVAL
    assert w("model_clear_state", handle) == Status.PERM
    attach(w, handle)
    w("model_load", handle)
    assert w("model_clear_state", handle) == Status.OK


@pytest.mark.parametrize("ndim, first, want", [(1, 10, Status.OK), (1, 11, Status.INVAL), (0, 10, Status.INVAL), (5, 1, Status.INVAL), (200, 1, Status.INVAL)])
def test_what_a_backend_says_of_its_output_is_checked(w, ndim, first, want):
    handle = w.model()
    attach(w, handle, bytes([ndim, first, 0, 0]), backend=ODD)
    assert w("model_load", handle) == Status.OK
    assert ask(w, w.pipeline(handle)) == want  # no stage behind the model, which would refuse it too
