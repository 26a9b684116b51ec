"""What a model keeps from run to run: read before and after it is assigned, cleared, and in no other tensor's bytes."""

import numpy as np
import pytest
from layer_calls import Running

from synapticos.model import Graph, Op, Tensor, compile_model

ONE = np.ones(1, np.float32)
ZERO = np.full(1, -3, np.int32)


def tensor(name: str, state: bool = False) -> Tensor:
    return Tensor(name, (1, 1, 1, 4), "int8", ONE, ZERO, state=state)


def last_and_this(late: bool) -> Graph:
    """Real y = x + the x of the run before; with `late` the variable is assigned before the sum is made."""
    x, kept, old, y = tensor("x"), tensor("kept", state=True), tensor("old"), tensor("y")
    read = Op("READ_VARIABLE", 0, [kept], [old])
    assign = Op("ASSIGN_VARIABLE", 1, [x], [kept])
    add = Op("ADD", 2, [x, old], [y], {"activation": "NONE"})
    return Graph("state", [x], [y], [read, assign, add] if late else [read, add, assign])


@pytest.mark.parametrize("optimize", ["default", "none"])
@pytest.mark.parametrize("late", [False, True])
def test_a_variable_read_gives_what_it_was_before_the_assignment(e, late, optimize):
    model = compile_model(last_and_this(late), optimize=optimize)
    assert len(model.plan.steps) == (3 if late else 2)  # a copy only where the old value outlives the new
    assert model.persistent_bytes == 16
    runs = [np.full((1, 1, 1, 4), v, np.int8) for v in (7, 20, -40)]
    running = Running(e, model, [runs[0]])
    before = -3  # real 0, to begin with
    for x in runs:
        running.give([x])
        running.run()
        wanted = int(x.flat[0]) + before + 3
        assert running.tensor(model.graph.outputs[0]).reshape(-1).tolist() == [wanted] * 4
        before = int(x.flat[0])
    running.clear()
    running.run()
    assert running.tensor(model.graph.outputs[0]).reshape(-1).tolist() == [-40] * 4


def test_a_step_that_only_changes_state_is_not_dropped(e):
    x, kept, y = tensor("x"), tensor("kept", state=True), tensor("y")
    ops = [Op("ASSIGN_VARIABLE", 0, [x], [kept]), Op("QUANTIZE", 1, [x], [y])]
    model = compile_model(Graph("state", [x], [y], ops))
    running = Running(e, model, [np.arange(4, dtype=np.int8).reshape(1, 1, 1, 4)])
    running.run()
    assert running.tensor(kept).reshape(-1).tolist() == [0, 1, 2, 3]
