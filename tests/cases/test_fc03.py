"""FC-03: a thousand model changes leave no trace."""

from case_models import graph_of, noise, small_model
from kernels import OPTIONS, ROOTS, World
from make_test_model import RELU, Layers

from synapticos.kernel.models import model_set_data
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.lang import u8
from synapticos.model import compile_model

CPU = 1
ROUNDS = {"checked": 30, "native": 1000, "cortex-m": 1000}


def large_model():
    m = Layers(3)
    x = m.tensor("picture", (1, 8, 8, 3), 0.0078125, -1)
    a = m.conv("a", x, 8, (3, 3), stride=2, activation=RELU)
    b = m.depthwise("b", a, 1, (3, 3))
    return m.finish([x], [m.add("c", a, b)])


class Alternating:
    """Two models that take turns in one kernel."""

    def __init__(self, w, compiled):
        self.w, self.compiled = w, compiled
        self.data = noise(compiled.graph, 5)[0].tobytes()

    def __call__(self, damage=False):
        """Load, run once, unload. What there is to remember: result, where it lay, memory before and after."""
        w, bytes_of = self.w, bytearray(self.compiled.container)
        if damage:
            bytes_of[-1] ^= 0x40
        handle = w.model("one", input=len(self.data))
        buffer = w.e.array(u8, bytes(bytes_of))
        w.kept = [buffer]
        assert w.e(model_set_data, w.kernel, handle, buffer, len(buffer), CPU) == Status.OK
        before = bytes(w.kernel.arena)
        status = w("model_load", handle)
        seen = None
        if damage:
            assert status == Status.ILSEQ
            assert bytes(w.kernel.arena) == before and not w("model_is_loaded", handle)
        else:
            assert status == Status.OK
            pipe = w.pipeline(handle)
            job = w.submit(pipe, self.data)
            w.run()
            y = w.e.new(Tensor)
            assert w("infer_output", job, 0, y) == Status.OK
            at = y.offset
            seen = w.result(job), at
            w("pipeline_destroy", pipe)
            assert w("model_unload", handle) == Status.OK
        assert w("model_unregister", handle) == Status.OK
        w("mem_reset_ephemeral")
        return seen, w.stats().arena_total - w.stats().arena_used


def test_free_memory_addresses_and_outputs_never_change(make):
    w = World(make(*ROOTS, **OPTIONS), arena=12288, scratch=4096)
    a, b = Alternating(w, compile_model(graph_of(large_model()))), Alternating(w, compile_model(graph_of(small_model())))
    first = a(), b()
    assert first[0][1] == first[1][1]
    for i in range(2, ROUNDS[make.engine] + 1):
        if i % max(ROUNDS[make.engine] // 10, 1) == 0:
            assert (a if i % 20 else b)(damage=True) == (None, first[0][1])
        assert (a(), b()) == first, f"round {i}"
