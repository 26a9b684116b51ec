"""The plain data of jobs in time."""

import pytest

from synapticos.analysis.tasks import MS, US, Interference, Step, Task, TaskSet
from synapticos.errors import UserError

TASKS = TaskSet(
    (
        Task("control", 2, (Step(1 * MS),), 20 * MS, 5 * MS, jitter_ns=100 * US),
        Task("vision", 0, (Step(15 * MS, layer=0), Step(3 * MS, "npu", 1), Step(2 * MS, guaranteed=False)), sporadic=True),
    ),
    (Interference("tick", 1 * MS, 10 * US),),
)


def test_what_is_written_is_read_again():
    assert TaskSet.from_json(TASKS.to_json()) == TASKS


def test_sums():
    vision = TASKS.task("vision")
    assert (vision.cost_ns, vision.cpu_ns, vision.npu_ns) == (20 * MS, 17 * MS, 3 * MS)
    assert not vision.guaranteed and TASKS.task("control").guaranteed
    assert TASKS.utilisation == pytest.approx(0.06)  # vision has no rate


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"tasks": [{"name": "a", "priority": 0, "steps": []}]}', 'task "a": takes no time'),
        ('{"tasks": [{"name": "a", "priority": 0, "steps": [{"ns": -1}]}]}', "no whole number"),
        ('{"tasks": [{"name": "a", "priority": 0, "steps": [{"ns": 1, "resource": "gpu"}]}]}', '"cpu" or the "npu"'),
        ('{"tasks": [], "interference": [{"name": "i", "period_ns": 0, "cost_ns": 1}]}', 'interference "i"'),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(text, said):
    with pytest.raises(UserError, match=said):
        TaskSet.from_json(text)
