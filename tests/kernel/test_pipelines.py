"""Pipelines: spec 32, lines 53 to 58 and 74; estimates and plans; the defects of 33.3 that are not a stage's own."""

import struct

import pytest
from kernels import BOAST, DIRTY, FAIL, FLOAT32, HALVE, INT8, MISSHAPE, PASS, UINT8, stub_output
from synapticos.kernel.pipeline import BUILTIN_STAGE
from synapticos.kernel.stages.normalize import NormalizeConfig
from synapticos.kernel.stages.resize import ResizeConfig
from synapticos.kernel.stages.tables import KIND_ARGMAX, KIND_NORMALIZE, KIND_QUANTIZE, KIND_RESIZE, KIND_SOFTMAX
from synapticos.kernel.stages.operands import Quantization
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.lang import pack, u8

RESIZE, NORMALIZE, QUANTIZE, SOFTMAX, ARGMAX = (
    BUILTIN_STAGE + k for k in (KIND_RESIZE, KIND_NORMALIZE, KIND_QUANTIZE, KIND_SOFTMAX, KIND_ARGMAX)
)


def pre(w, pipe, stage, config=None):
    return w("pipeline_add_preprocess", pipe, stage, None if config is None else w.e.array(u8, config), 0 if config is None else len(config))


def post(w, pipe, stage, config=None):
    return w("pipeline_add_postprocess", pipe, stage, None if config is None else w.e.array(u8, config), 0 if config is None else len(config))


def normalize(mean=127.5, std=127.5, channels=3):
    return pack(NormalizeConfig, mean=[mean] * 4, std=[std] * 4, channels=channels)


def outcome(w, pipe, data):
    job = w.submit(pipe, data)
    w.run()
    status = w("infer_wait", job, 0)
    return status, w.result(job) if status == Status.OK else b""


# Spec 32


def test_create_and_destroy(w):
    pipe = w("pipeline_create", w.e.array(u8, b"vision\0"))
    assert pipe == 1
    assert bytes(w.kernel.pipelines.items[0].name).rstrip(b"\0") == b"vision"
    w("pipeline_destroy", pipe)
    w("pipeline_destroy", 0)
    w("pipeline_destroy", pipe)


def test_names_are_cut_and_missing_ones_made_up(w):
    w("pipeline_create", w.e.array(u8, b"a name of more than 23 characters\0"))
    w("pipeline_create", None)
    names = [bytes(p.name).rstrip(b"\0") for p in w.kernel.pipelines.items]
    assert names[:2] == [b"a name of more than 23 ", b"unnamed"]


def test_four_pipelines_and_no_more(w):
    pipes = [w("pipeline_create", None) for _ in range(4)]
    assert all(pipes) and w("pipeline_create", None) == 0
    w("pipeline_destroy", pipes[2])
    assert w("pipeline_create", None) != 0


def test_a_pipeline_needs_a_model(w):
    pipe = w("pipeline_create", None)
    pre(w, pipe, PASS)
    assert w("pipeline_build", pipe) == Status.INVAL


def test_the_grammar_is_pre_model_post(w):
    model, pipe = w.model(), w("pipeline_create", None)
    assert post(w, pipe, PASS) == Status.INVAL
    assert w("pipeline_add_model", pipe, model) == Status.OK
    assert pre(w, pipe, PASS) == Status.INVAL
    assert w("pipeline_add_model", pipe, model) == Status.ALREADY


def test_models_that_are_not_there(w):
    pipe = w("pipeline_create", None)
    assert w("pipeline_add_model", pipe, 99) == Status.NOENT
    assert w("pipeline_add_model", pipe, 0) == Status.INVAL


def test_a_built_pipeline_does_not_change(w):
    model, pipe = w.model(), w("pipeline_create", None)
    for _ in range(2):
        pre(w, pipe, PASS)
    w("pipeline_add_model", pipe, model)
    post(w, pipe, PASS)
    assert w("pipeline_build", pipe) == Status.OK
    assert w("pipeline_build", pipe) == Status.ALREADY
    assert post(w, pipe, PASS) == pre(w, pipe, PASS) == w("pipeline_add_model", pipe, model) == Status.PERM


def test_line_74_normalize_quantize_model_softmax_argmax(w):
    w.hand_model()
    pipe = w("pipeline_create", None)
    assert pre(w, pipe, NORMALIZE, normalize(0, 1)) == Status.OK
    assert pre(w, pipe, QUANTIZE, pack(Quantization, scale=1.0, zero_point=0)) == Status.OK
    assert w("pipeline_add_model", pipe, w.model()) == Status.OK
    assert post(w, pipe, SOFTMAX) == post(w, pipe, ARGMAX) == Status.OK
    assert w("pipeline_build", pipe) == Status.OK
    x = w.tensor([1, 4, 4, 3], UINT8, data=bytes(range(48)))
    job = w("infer_submit", pipe, x, None)
    assert w("infer_wait", job, 100) == Status.OK
    index, score = struct.unpack("<If", w.result(job))
    assert index == 8 and score > 0.99


# Handles and limits


def test_defect_31_stale_and_made_up_handles_are_bad(w):
    model = w.model()
    old = w.pipeline(model)
    w("pipeline_destroy", old)
    new = w.pipeline(model)
    assert new != old and new & 0xFF == old & 0xFF
    for bad in (old, 0, 5, 200, new + (1 << 8), 1 << 31):
        assert w("pipeline_build", bad) == pre(w, bad, PASS) == w("pipeline_add_model", bad, model) == Status.INVAL
        assert w.submit(bad, bytes(48)) == 0 and w.status == Status.INVAL


def test_the_stage_table_is_finite(w):
    pipe = w("pipeline_create", None)
    assert [pre(w, pipe, PASS) for _ in range(9)] == [Status.OK] * 8 + [Status.NOMEM]
    assert w("pipeline_add_model", pipe, w.model()) == Status.NOMEM


@pytest.mark.parametrize("stage", [0, 1, 0xFFF, BUILTIN_STAGE + 99, 0x2000 + 99, 0x4000, 0xFFFFFFFF])
def test_no_stage_of_this_number(w, stage):
    assert pre(w, w("pipeline_create", None), stage) == Status.INVAL


def test_configurations_are_checked_and_copied_when_they_are_added(w):
    pipe = w("pipeline_create", None)
    assert pre(w, pipe, RESIZE) == pre(w, pipe, RESIZE, pack(ResizeConfig, w=0, h=4)) == Status.INVAL
    config = w.e.array(u8, pack(ResizeConfig, w=2, h=1))
    assert w("pipeline_add_preprocess", pipe, RESIZE, config, 0) == Status.OK  # 0: the size of its own
    for i in range(4):
        config[i] = 0xEE
    w.hand_model()
    w("pipeline_add_model", pipe, w.model(input=6))
    w("pipeline_build", pipe)
    x = w.tensor([1, 4, 4, 3], UINT8, data=bytes(48))
    job = w("infer_submit", pipe, x, None)
    w.run()
    assert w("infer_wait", job, 0) == Status.OK


def test_the_room_for_configurations_is_finite(w):
    pipe = w("pipeline_create", None)
    assert w("pipeline_add_preprocess", pipe, PASS, w.e.array(u8, 97), 97) == Status.NOMEM
    assert w("pipeline_add_preprocess", pipe, PASS, w.e.array(u8, 95), 95) == Status.OK
    assert w("pipeline_add_preprocess", pipe, PASS, w.e.array(u8, 4), 4) == Status.NOMEM
    assert w.kernel.pipelines.items[0].count == 1


# Estimate and plan


def test_the_published_estimates(w):
    """Model only 4,106; the face pipeline 40,394; one stage before the model 202."""
    simple = w.pipeline(w.model("a", 768, 10, 4096))
    face = w.pipeline(w.model("b", 432, 10, 4096), (PASS, PASS, PASS))
    custom = w.pipeline(w.model("c", 48, 10, 0), (PASS,))
    assert [w("pipeline_get_estimate", p) for p in (simple, face, custom)] == [4106, 40394, 202]


def test_an_estimate_beyond_32_bits_is_the_largest(w):
    assert w("pipeline_get_estimate", w.pipeline(w.model(input=1 << 31), (PASS,) * 7)) == 0xFFFFFFFF


def test_defect_29_the_exact_plan_is_what_the_face_pipeline_uses(w):
    w.hand_model()
    pipe = w("pipeline_create", None)
    pre(w, pipe, RESIZE, pack(ResizeConfig, w=12, h=12))
    pre(w, pipe, NORMALIZE, normalize())
    pre(w, pipe, QUANTIZE, pack(Quantization, scale=1 / 127, zero_point=0))
    w("pipeline_add_model", pipe, w.model(input=432))
    w("pipeline_build", pipe)
    image = w.e.array(u8, bytes(24 * 24 * 3))
    x = w.e.new(Tensor, size=1728, ndim=4, shape=[1, 24, 24, 3], dtype=UINT8)
    assert w("pipeline_plan", pipe, x) == (Status.OK, 2784)
    status, job = w("infer_post", pipe, x, image, None, 0, None)
    assert status == Status.OK
    w.run()
    assert w("infer_wait", job, 0) == Status.OK
    assert w.stats().arena_used == 2784


# What stages leave


def test_the_stage_before_the_model_has_room_for_all_of_its_input(w):
    """48 bytes are halved, and what the model does not get is zeros, whatever lay there."""
    w.hand_model()
    pipe = w.pipeline(w.model(input=200), (DIRTY,))
    data = bytes(range(48))
    status, got = outcome(w, pipe, data)
    assert status == Status.OK and got == stub_output(b"\x55" * 16)


def test_defect_28_the_callers_input_must_have_the_models_length(w):
    pipe = w.simple()
    assert outcome(w, pipe, bytes(10))[0] == Status.MSGSIZE
    assert outcome(w, pipe, bytes(49))[0] == Status.MSGSIZE


def test_a_stages_output_longer_than_the_models_input_is_refused(w):
    w.hand_model()
    pipe = w.pipeline(w.model(input=20), (PASS,))
    assert outcome(w, pipe, bytes(48))[0] == Status.MSGSIZE


def test_a_model_without_declared_input_takes_any(w):
    w.hand_model()
    pipe = w.pipeline(w.model(input=0))
    assert outcome(w, pipe, b"\x03" * 7) == (Status.OK, stub_output(b"\x03" * 7))


@pytest.mark.parametrize("stage, status", [(FAIL, Status.IO), (BOAST, Status.FBIG), (MISSHAPE, Status.INVAL)])
@pytest.mark.parametrize("after", [False, True])
def test_defect_24_what_a_stage_says_of_its_output_is_checked(w, stage, status, after):
    w.hand_model()
    model = w.model()
    pipe = w.pipeline(model, (PASS,), (PASS, stage)) if after else w.pipeline(model, (PASS, stage))
    job = w.submit(pipe, bytes(48))
    w.run()
    assert w("infer_wait", job, 0) == status
    assert w("infer_error_at", job) == ((3 if after else 1), 0)
    assert w("infer_get_result", job, w.descriptor(0)) == status
    assert w("infer_state", job) == 0


def test_stages_after_the_model_get_its_output(w):
    w.hand_model()
    pipe = w.pipeline(w.model(), (), (HALVE, PASS))
    assert outcome(w, pipe, b"\x01" + bytes(47)) == (Status.OK, bytes([0, 127, 0, 0, 0]))


@pytest.mark.parametrize("dtype, shape, want", [(INT8, [1, 10, 0, 0], [1, 10, 0, 0]), (INT8, [1, 144, 0, 0], [10, 0, 0, 0]), (2, [1, 10, 0, 0], [5, 0, 0, 0]), (2, [1, 5, 0, 0], [1, 5, 0, 0])])
def test_defect_27_the_output_has_the_declared_shape_if_it_matches_and_counts_elements(w, dtype, shape, want):
    w.hand_model()
    pipe = w.pipeline(w.model(output_dtype=dtype, output_shape=shape))
    job = w.submit(pipe, bytes(48))
    w.run()
    t = w.e.new(Tensor)
    assert w("infer_output", job, 0, t) == Status.OK
    assert (list(t.shape), t.size, int(t.dtype)) == (want, 10, dtype)


def test_defect_30_a_pipeline_is_not_taken_from_under_a_running_job(w):
    w.hand_model()
    model = w.model()
    pipe = w.pipeline(model, (PASS,))
    job = w.submit(pipe, b"\x11" * 48)
    w("kernel_poll")
    w("pipeline_destroy", pipe)
    assert w.submit(pipe, bytes(48)) == 0
    others = [w("pipeline_create", None) for _ in range(4)]
    assert others[3] == 0 and all(p & 0xFF != pipe & 0xFF for p in others)
    w.run()
    assert w.result(job) == stub_output(b"\x11" * 48)
    assert w("pipeline_create", None) & 0xFF == pipe & 0xFF  # free now


def test_destroy_cancels_what_is_queued(w):
    pipe = w.simple()
    jobs = [w.submit(pipe, bytes(48)) for _ in range(2)]
    w("pipeline_destroy", pipe)
    assert [w("infer_wait", j, 100) for j in jobs] == [Status.CANCELED] * 2
    assert w("pipeline_create", None) != 0


def test_an_arena_that_is_too_small_ends_the_job(world):
    w = world(arena=1200, scratch=1024)
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,))
    assert outcome(w, pipe, bytes(48))[0] == Status.NOMEM
    assert w.kernel.note.code == Status.NOMEM and list(w.kernel.note.args)[:2] == [0, 192]


def test_a_model_of_float_output_has_float_elements(w):
    w.hand_model()
    pipe = w.pipeline(w.model(output_dtype=FLOAT32))
    job = w.submit(pipe, bytes(48))
    w.run()
    t = w.e.new(Tensor)
    w("infer_output", job, 0, t)
    assert (t.shape[0], int(t.dtype)) == (2, FLOAT32)
