"""Random submissions, cancellations, polls and reads against the scheduler as a few lines of Python, on all engines.

After every call the kernels of all engines have equal bytes (up to `board`), whatever their memory held before.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import EPHEMERAL, FAIL, INT8, OPTIONS, PASS, ROOTS, World, stub_output
from synapticos.kernel.job import JobState
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.sched import Poll
from synapticos.kernel.status import Status

SLOTS = 4
FREE, QUEUED, RUNNING, DONE, ERROR, CANCELLED = (
    JobState.FREE, JobState.QUEUED, JobState.RUNNING, JobState.DONE, JobState.ERROR, JobState.CANCELLED,
)  # fmt: skip


class Worlds:
    """The same kernel on several engines."""

    def __init__(self, engines, fill: int, pre: tuple[tuple[int, ...], ...]) -> None:
        self.each = []
        for engine in engines:
            engine.fill = fill
            try:
                w = World(engine)
            finally:
                engine.fill = 0
            w.hand_model()
            model = w.model()
            w.pipes = [w.pipeline(model, stages) for stages in pre]
            self.each.append(w)
        self.upto = next(f.offset for f in self.each[0].e.type(Kernel).fields if f.name == "board")

    def do(self, action):
        results = [action(w) for w in self.each]
        states = [bytes(w.kernel)[: self.upto] for w in self.each]
        assert all(r == results[0] for r in results), results
        assert all(s == states[0] for s in states), self.where(states)
        return results[0]

    def where(self, states):
        for i, (a, b) in enumerate(zip(states[0], next(s for s in states if s != states[0]), strict=True)):
            if a != b:
                field = [f for f in self.each[0].e.type(Kernel).fields if f.offset <= i][-1]
                return f"byte {i} differs: {field.name} + {i - field.offset}"
        return "equal"


class Model:
    """Jobs as dicts; one frame, so one job at most is half done."""

    def __init__(self, steps: list[int], fails: list[bool]) -> None:
        self.steps, self.fails, self.slots, self.next, self.running = steps, fails, [None] * SLOTS, 1, None

    def find(self, id):
        return next((j for j in self.slots if j and j["id"] == id), None)

    def submit(self, pipe, priority, deadline):
        if None not in self.slots:
            return 0
        slot = self.slots.index(None)
        job = dict(id=self.next, pipe=pipe, key=(-priority, deadline or 1 << 63, self.next), state=QUEUED, left=self.steps[pipe], abort=False, detached=False)
        self.slots[slot] = job
        self.next += 1
        return job["id"]

    def drop(self, job):
        self.slots[self.slots.index(job)] = None

    def end(self, job, state):
        job["state"] = state
        if self.running is job:
            self.running = None
        if job["detached"]:
            self.drop(job)

    def poll(self):
        if self.running is None:
            queued = [j for j in self.slots if j and j["state"] == QUEUED]
            if not queued:
                return Poll.IDLE, 0
            self.running = min(queued, key=lambda j: j["key"])
            self.running["state"] = RUNNING
        job = self.running
        if job["abort"]:
            self.end(job, CANCELLED)
        else:
            job["left"] -= 1
            if job["left"] == 0:
                self.end(job, ERROR if self.fails[job["pipe"]] else DONE)
        return Poll.RAN, job["id"]

    def cancel(self, id):
        job = self.find(id)
        if job is None:
            return Status.NOENT
        if job["state"] in (DONE, ERROR, CANCELLED):
            return Status.ALREADY
        if job["state"] == RUNNING:
            return Status.BUSY
        self.end(job, CANCELLED)
        return Status.OK

    def abort(self, id):
        status = self.cancel(id)
        if status == Status.BUSY:
            self.find(id)["abort"] = True
            return Status.OK
        return status

    def detach(self, id):
        job = self.find(id)
        if job is None:
            return Status.NOENT
        job["detached"] = True
        if job["state"] in (DONE, ERROR, CANCELLED):
            self.drop(job)
        return Status.OK

    def result(self, id):
        job = self.find(id)
        if job is None:
            return Status.NOENT
        if job["state"] not in (DONE, ERROR, CANCELLED):
            return Status.BUSY
        self.drop(job)
        return {DONE: Status.OK, ERROR: Status.IO, CANCELLED: Status.CANCELED}[job["state"]]


ids = st.integers(0, 12)
operations = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 2), st.integers(0, 2), st.sampled_from([0, 0, 100, 200])),
    st.tuples(st.just("submit"), st.integers(0, 2), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("poll")), st.tuples(st.just("poll")), st.tuples(st.just("poll")),
    st.tuples(st.just("cancel"), ids), st.tuples(st.just("abort"), ids), st.tuples(st.just("detach"), ids), st.tuples(st.just("result"), ids),
)  # fmt: skip
PRE = ((), (PASS, PASS), (PASS, FAIL))
MODEL_STEPS, MODEL_FAILS = [1, 3, 2], [False, False, True]


def act(operation, model):
    """What the operation does to a kernel, and what the model says of it."""
    op, *rest = operation
    if op == "submit":
        pipe, priority, deadline = rest
        data = bytes([17 * model.next % 256] * 48)
        want = model.submit(pipe, priority, deadline)
        return lambda w: w.submit(w.pipes[pipe], data, priority, deadline=deadline), want
    if op == "poll":
        want = model.poll()
        return lambda w: w("kernel_poll"), want
    id = rest[0]
    name = {"cancel": "infer_cancel", "abort": "infer_abort", "detach": "infer_detach"}.get(op)
    if name:
        want = getattr(model, op)(id)
        return lambda w: w(name, id), want
    want = model.result(id)
    if want == Status.OK:
        expected = stub_output(bytes([17 * id % 256] * 48))
        return lambda w: Status.OK if w.result(id) == expected else "wrong bytes", want
    return lambda w: w("infer_get_result", id, w.descriptor(0)), want


@settings(max_examples=25)
@given(st.lists(operations, max_size=30), st.sampled_from([0xA5, 0x5A]))
def test_any_sequence_does_what_the_model_does(engines, operations, fill):
    worlds, model = Worlds(engines(*ROOTS, **OPTIONS).each, fill, PRE), Model(MODEL_STEPS, MODEL_FAILS)
    for operation in operations:
        action, want = act(operation, model)
        assert worlds.do(action) == want, operation
        worlds.do(lambda w: w("mem_reset_ephemeral"))
        # What a job still needs is not handed out again: scribble over all that is free.
        worlds.do(lambda w: w.tensor([200], INT8, EPHEMERAL, b"\xee" * 200) is not None)
        states = [JobState(int(j.state)) for j in worlds.each[0].kernel.jobs]
        assert states == [j["state"] if j else FREE for j in model.slots]
        assert sum(s == RUNNING for s in states) <= 1


def test_memory_is_given_back(w):
    """A thousand jobs through four slots: nothing leaks."""
    pipe = w.simple()
    rounds = 1000 if w.e.name != "checked" else 100
    for i in range(rounds):
        job = w.submit(pipe, bytes(48))
        assert w("infer_wait", job, 10) == Status.OK
        assert w("infer_get_result", job, w.descriptor(0)) == Status.OK
        w("mem_reset_ephemeral")
    assert w.stats().arena_used == 0 and w.stats().reset_count == rounds and w.kernel.stats.submitted == rounds
    assert w.kernel.pipelines.items[0].jobs == 0
