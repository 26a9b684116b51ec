"""FC-02: a container that does not fit the installed kernels is refused, before any inference, with layer and figures."""

from dataclasses import replace

import pytest
from case_models import graph_of, noise, skip_model, small_model
from kernels import OPTIONS, ROOTS, World

from synapticos.engine.words import Words
from synapticos.kernel.container import LayerCheck
from synapticos.kernel.layers import conv
from synapticos.kernel.layers.checks import has_scratch
from synapticos.kernel.layers.conv import ConvParams, conv_validate
from synapticos.kernel.layers.tables import VALIDATE
from synapticos.kernel.layers.window import window_patch_bytes
from synapticos.kernel.models import model_set_data
from synapticos.kernel.status import Status
from synapticos.lang import *
from synapticos.model import compile_model

CPU = 1  # the backend's number
MORE = 64


@fn
def greedy_conv_validate(check: LayerCheck) -> Status:
    """The next firmware's convolution: it takes 64 bytes more."""
    status = conv_validate(check)
    if status != Status.OK:
        return status
    p = view(ConvParams, check.params)
    if not has_scratch(check, window_patch_bytes(p.window) + 64):
        return Status.INVAL
    return Status.OK


K2_ROWS = {**OPTIONS["tables"], VALIDATE: [greedy_conv_validate if f is conv_validate else f for f in OPTIONS["tables"][VALIDATE]]}
K2 = {**OPTIONS, "tables": K2_ROWS}


@pytest.fixture
def worlds(make):
    """The firmware before and after its update."""
    return lambda: World(make(*ROOTS, **OPTIONS), arena=16384, scratch=4096), lambda: World(make(*ROOTS, **K2), arena=16384, scratch=4096)


def install(w, compiled, name):
    handle = w.model(name, input=compiled.graph.inputs[0].bytes)
    data = w.keep(w.e.array(u8, compiled.container))
    assert w.e(model_set_data, w.kernel, handle, data, len(data), CPU) == Status.OK
    return handle


def planned_for_k2(monkeypatch, data):
    original = conv.plan

    def plan(op):
        made = original(op)
        return replace(made, scratch=made.scratch + MORE) if made.scratch else made

    monkeypatch.setattr(conv, "plan", plan)
    return compile_model(graph_of(data))


def test_a_container_planned_for_other_kernels_is_refused_naming_layer_planned_and_required(worlds, monkeypatch):
    before, after = worlds
    first, second = compile_model(graph_of(skip_model())), compile_model(graph_of(small_model()))
    w = before()
    assert w("model_load", install(w, first, "first")) == Status.OK

    w = after()  # restarted with the new kernels
    handle = install(w, first, "first")
    arena = bytes(w.kernel.arena)
    assert w("model_load", handle) == Status.NOTSUP
    note = w.kernel.note
    layer, planned, required = (note.args[i] for i in range(3))
    assert required == 27 + MORE  # a 3 x 3 window of 3 channels
    assert (layer, planned) == (0, first.layers[0].scratch)
    said = Words.of(w.e.program).say(note.text, [note.args[i] for i in range(4)])
    assert f"layer {layer} " in said and f"{planned} bytes" in said and f"{required}" in said
    assert bytes(w.kernel.arena) == arena  # nothing was tried out
    assert not w("model_is_loaded", handle)

    other = install(w, second, "second")  # a second one, planned for the old kernels
    assert w("model_load", other) == Status.NOTSUP
    # Idle, but reachable: a container planned for these kernels is taken and runs.
    good = install(w, planned_for_k2(monkeypatch, skip_model()), "again")
    assert w("model_load", good) == Status.OK
    pipe = w.pipeline(good)
    assert w.submit(pipe, noise(first.graph, 1)[0].tobytes()) != 0
    assert {answer for answer, _ in w.run()} == {1}


def test_the_container_that_does_fit_goes_on_serving(worlds, monkeypatch):
    _, after = worlds
    w = after()
    fits = planned_for_k2(monkeypatch, small_model())
    monkeypatch.undo()
    serving = install(w, fits, "serving")
    assert w("model_load", serving) == Status.OK
    pipe, data = w.pipeline(serving), noise(fits.graph, 2)[0].tobytes()
    first = w.submit(pipe, data)
    w.run()
    answer = w.result(first)
    newcomer = install(w, compile_model(graph_of(skip_model())), "newcomer")
    assert w("model_load", newcomer) == Status.NOTSUP
    assert w("model_is_loaded", serving)
    again = w.submit(pipe, data)
    w.run()
    assert w.result(again) == answer
