"""Known answers of a container, run where it lies."""

import numpy as np
import pytest
from make_test_model import Layers

from synapticos import importers
from synapticos.kernel.container import Header
from synapticos.kernel.status import Status
from synapticos.kernel.verify import verify_answer, verify_answers, verify_layer
from synapticos.lang import sizeof, u8, unpack
from synapticos.model import Answer, compile_model

from test_corrupt import sealed


@pytest.fixture(scope="session")
def e(engines):
    return engines(verify_answer, verify_answers, verify_layer)


def graph():
    m = Layers(4)
    x = m.tensor("x", (1, 5, 5, 3), 0.01, -1)
    y = m.conv("y", x, 4, (3, 3))
    z = m.pool("MAX", "z", y, (2, 2), 2, 0)
    return importers.read(m.finish([x], [z]), "two")


def inputs():
    random = np.random.Generator(np.random.PCG64(1))
    return [random.integers(-128, 128, (1, 5, 5, 3)).astype(np.int8) for _ in range(3)]


def outputs(e, g, x):
    """What the layers themselves answer; whether that is right is the business of other tests."""
    c = compile_model(g)
    memory, container, given = e.array(u8, c.plan.ram), e.array(u8, c.container), e.array(u8, x.tobytes())
    for step in range(2):
        assert e(verify_layer, container, len(container), memory, len(memory), given, len(given), step, step == 0) == Status.OK
    assert e(verify_layer, container, len(container), memory, len(memory), given, len(given), 2, False) == Status.NOENT
    (y,) = g.outputs
    return np.frombuffer(bytes(memory)[c.plan.places[y] :][: y.bytes], np.int8).reshape(y.shape)


def with_answers(e, change=None):
    g = graph()
    answers = [Answer([x], [outputs(e, g, x)]) for x in inputs()]
    if change is not None:
        answers[change].outputs[0].setflags(write=False)
        wrong = answers[change].outputs[0].copy()
        wrong[0, 0, 0, 0] ^= 1
        answers[change] = Answer(answers[change].inputs, [wrong])
    return compile_model(g, answers=answers)


def ask(e, c, data, number):
    memory, container = e.array(u8, c.plan.ram), e.array(u8, data)
    return e(verify_answer, container, len(data), memory, len(memory), number)


def test_right_answers_are_found_right(e):
    c = with_answers(e)
    assert e(verify_answers, e.array(u8, c.container), len(c.container)) == 3
    assert [ask(e, c, c.container, k) for k in range(3)] == [(Status.OK, True)] * 3
    assert ask(e, c, c.container, 3) == (Status.NOENT, False)


def test_a_wrong_answer_is_found_alone(e):
    c = with_answers(e, change=1)
    assert [ask(e, c, c.container, k)[1] for k in range(3)] == [True, False, True]


def test_too_little_memory_and_no_answers_are_said(e):
    c = with_answers(e)
    memory, container = e.array(u8, c.plan.ram - 1), e.array(u8, c.container)
    assert e(verify_answer, container, len(container), memory, len(memory), 0) == (Status.NOMEM, False)
    bare = compile_model(graph())
    assert e(verify_answers, e.array(u8, bare.container), len(bare.container)) == 0
    assert ask(e, bare, bare.container, 0) == (Status.NOENT, False)


@pytest.mark.parametrize("count", [4, 5, 4096, 4097, 0x10000000, 0x3FFFFFFF, 0xFFFFFFFF])
def test_more_answers_than_the_container_holds_are_refused(e, count):
    c = with_answers(e)
    at = unpack(Header, c.container[: sizeof(Header)])["answers_at"]
    data = bytearray(c.container)
    data[at : at + 4] = count.to_bytes(4, "little")
    assert ask(e, c, sealed(data), 0) == (Status.INVAL, False)
