"""FC-16: a damaged model with a good checksum is refused, or runs inside its own memory; the serving one goes on."""

import sys
from pathlib import Path

import numpy as np
import pytest
from case_models import graph_of, noise, skip_model, small_model
from kernels import OPTIONS, ROOTS, World

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))
from harness import run_sanitized, sealed

from synapticos.kernel.container import Header, StepRecord, TensorRecord
from synapticos.kernel.models import model_set_data
from synapticos.kernel.status import Status
from synapticos.lang import layout, sizeof, u8, unpack
from synapticos.model import compile_model

CPU = 1
PICTURE = noise(graph_of(skip_model()), 1)[0].tobytes()
REFUSED = {Status.INVAL, Status.NOTSUP, Status.ILSEQ, Status.NOMEM, Status.FBIG}
RANDOM = {"checked": 10, "native": 1000, "cortex-m": 300}


class Container:
    """The skip model's container, with fields to be changed."""

    def __init__(self):
        self.compiled = compile_model(graph_of(skip_model()))
        self.data = bytearray(self.compiled.container)
        self.header = unpack(Header, bytes(self.data[: sizeof(Header)]))

    def record(self, kind, number):
        at = self.header["tensors_at"] if kind is TensorRecord else self.header["steps_at"]
        at += number * sizeof(kind)
        return at, unpack(kind, bytes(self.data[at : at + sizeof(kind)]))

    def set(self, kind, number, field, *values):
        at, _ = self.record(kind, number)
        offset = next(o for name, o, *_ in layout(kind) if name == field)
        for i, value in enumerate(values):
            self.data[at + offset + 4 * i : at + offset + 4 * i + 4] = value.to_bytes(4, "little")

    def operand(self, step, i):
        """The tensor that a step has as operand `i`."""
        _, record = self.record(StepRecord, step)
        entry = self.header["lists_at"] + 2 * (record["first"] + i)
        return int.from_bytes(self.data[entry : entry + 2], "little")

    def output(self, step):
        return self.operand(step, self.record(StepRecord, step)[1]["inputs"])


def no_such_weights(c):
    c.set(TensorRecord, c.operand(0, 1), "offset", c.header["consts_bytes"])


def wrapping_shape(c):
    c.set(TensorRecord, c.output(0), "shape", 1, 65536, 65536, 16)


def tensor_999(c):
    _, record = c.record(StepRecord, 1)
    at = c.header["lists_at"] + 2 * record["first"]
    c.data[at : at + 2] = (999).to_bytes(2, "little")


def beyond_the_arena(c):
    c.set(TensorRecord, c.output(0), "offset", c.header["frame_bytes"])


def far_beyond_the_arena(c):
    c.set(TensorRecord, c.output(0), "offset", 0xFFFFFFF0)


def overlapping_live_tensors(c):
    """The second layer's result over the first one's, which the fourth still needs."""
    _, one = c.record(TensorRecord, c.output(0))
    c.set(TensorRecord, c.output(1), "offset", one["offset"])


def multiplier_out_of_range(c):
    _, scales = c.record(TensorRecord, c.operand(0, 3))
    at = c.header["consts_at"] + scales["offset"]
    c.data[at : at + 4] = (0x80000000).to_bytes(4, "little")


def shift_out_of_range(c):
    _, scales = c.record(TensorRecord, c.operand(0, 3))
    at = c.header["consts_at"] + scales["offset"] + 4
    c.data[at : at + 4] = (77).to_bytes(4, "little")


def eight_bytes(c):
    del c.data[8:]


DAMAGES = [
    no_such_weights, wrapping_shape, tensor_999, beyond_the_arena, far_beyond_the_arena, multiplier_out_of_range,
    shift_out_of_range, eight_bytes,
]  # fmt: skip


class Serving:
    """A kernel that serves a small model, and takes newcomers beside it."""

    def __init__(self, e):
        self.w = World(e, arena=16384, scratch=4096)
        compiled = compile_model(graph_of(small_model()))
        self.data = noise(compiled.graph, 3)[0].tobytes()
        self.active = self.install(compiled.container, "active", len(self.data))
        assert self.w("model_load", self.active) == Status.OK
        self.pipe = self.w.pipeline(self.active)
        self.kept = list(self.w.kept)
        self.answer = self.serve()

    def install(self, container, name="newcomer", size=192):
        w = self.w
        handle = w.model(name, input=size)
        data = w.keep(w.e.array(u8, bytes(container)))
        assert w.e(model_set_data, w.kernel, handle, data, len(data), CPU) == Status.OK
        return handle

    def serve(self):
        job = self.w.submit(self.pipe, self.data)
        self.w.run()
        return self.w.result(job)

    def offer(self, container):
        """Install a container, run it if it is taken, and drop it: the status of loading. The active model answers as ever."""
        w = self.w
        before = bytes(w.kernel.arena)
        handle = self.install(container)
        own = w.kept[-1]
        status = Status(int(w("model_load", handle)))
        self.outcome = None
        if status == Status.OK:
            pipe = w.pipeline(handle)
            job = w.submit(pipe, PICTURE)
            if job:
                w.run()
                self.outcome = w("infer_wait", job, 10)
                w("infer_get_result", job, w.descriptor(0))
            else:
                self.outcome = w.status
            w("pipeline_destroy", pipe)
        else:
            assert status in REFUSED
            assert bytes(w.kernel.arena) == before
        assert w("model_is_loaded", self.active) and self.serve() == self.answer
        assert bytes(own) == bytes(container)
        w("model_unregister", handle)
        w("mem_reset_ephemeral")
        w.kept = list(self.kept)
        return status


@pytest.fixture
def serving(make):
    return Serving(make(*ROOTS, **OPTIONS))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__)
def test_each_damage_is_refused_and_the_active_model_goes_on(serving, damage):
    c = Container()
    assert (serving.offer(c.compiled.container), serving.outcome) == (Status.OK, Status.OK)
    damage(c)
    assert serving.offer(sealed(c.data)) in REFUSED


def test_overlapping_live_tensors_stay_inside_their_own_memory(serving):
    c = Container()
    overlapping_live_tensors(c)
    serving.offer(sealed(c.data))


def test_an_input_of_another_shape_than_the_pipeline_was_built_for_is_refused(serving):
    w = serving.w
    handle = serving.install(compile_model(graph_of(skip_model())).container, "other", 192)
    assert w("model_load", handle) == Status.OK
    pipe = w.pipeline(handle)
    job = w.submit(pipe, bytes(48))
    assert job != 0
    w.run()
    assert w("infer_wait", job, 10) == Status.MSGSIZE
    assert serving.serve() == serving.answer


def test_random_bytes_are_refused_or_harmless_beside_a_serving_model(serving, make):
    random = np.random.Generator(np.random.PCG64(16))
    good = Container().compiled.container
    seen, ran = set(), 0
    for _ in range(RANDOM[make.engine]):
        data = bytearray(good)
        data[int(random.integers(len(data)))] ^= int(random.integers(1, 256))
        seen.add(serving.offer(sealed(data)))
        ran += serving.outcome == Status.OK
    assert ran > RANDOM[make.engine] // 4 and seen & REFUSED


def test_ten_thousand_random_bytes_under_the_address_checker():
    found = run_sanitized("containers.py", "--mode", "bytes", "--cases", "10000", "--seconds", "300")
    print(found)
    assert found["cases"] == 10_000 and found["past_header"] > 9000 and found["executed"] > 1000
