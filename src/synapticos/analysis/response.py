"""Worst-case response times of an app's jobs under the kernel's rules, by busy periods.

What runs: the highest class; in it a half-done job before queued ones, those by deadline, then by release (so that jobs
of one class never interrupt each other: non-pre-emptive EDF in a class, fixed priorities between classes). A job gives
way between two of its steps, to a higher class only. So there are three things that a job of class c waits for:

- **blocking**, once: what was begun just before it or anything that precedes it came. A step of a lower class (all the
  consecutive steps of a job that is not pre-emptible), or a half-done job of its own class with a later deadline, whole;
- **jobs of its class** with no later deadline, until it begins itself;
- **jobs of higher classes**, until its last step begins, and interference until it ends.

Let time 0 be the last instant, at or before the job's release at `a`, at which nothing is left of earlier releases of
higher classes or of jobs of class c that go before it. From then on some of those is always there, so until it begins

    s = B(a) + sum over class c of N_j(s, a) C_j + sum over higher classes of (floor((s + J_h) / T_h) + 1) C_h + I(s)
    N_j(s, a) = min(releases in [0, s], releases in [0, a + D_i - D_j])

Of a task without a deadline N_j is the releases in [0, a] and one more for each own job before it: such jobs go by
submission, and a task's next one is submitted as its last one ends. Where a release is several jobs, one after the
other, all this is of the last, and those before it are earlier jobs. The least solution is the latest start; until the
last step begins the same with N fixed at that s and C_i - q_i added, q_i the last step; and until it ends q_i and the
interference I meanwhile. The response is f - a, and only those `a` matter at which an N_j rises: between two of them f
stays or falls while `a` grows. They lie within the longest busy
period L = B + sum of ceil((L + J) / T) C over classes >= c. The window must be searched whole, and not at a = 0 only:
behind a job that could not be interrupted any more, what it has put off comes all at once.

Sources. The busy period with all arrivals in it, EDF: M. Spuri, "Analysis of Deadline Scheduled Real-Time Systems",
INRIA RR-2772, 1996; without pre-emption, deadline busy periods and the blocking term: L. George, N. Rivierre, M. Spuri,
"Preemptive and Non-Preemptive Real-Time Uniprocessor Scheduling", INRIA RR-2966, 1996. EDF inside fixed priorities:
M. González Harbour, J. C. Palencia, "Response Time Analysis for Tasks Scheduled under EDF within Fixed Priorities", RTSS
2003. Steps that cannot be interrupted, and why more than the first job is looked at: R. J. Bril, J. J. Lukkien,
W. F. J. Verhaegh, "Worst-case response time analysis of real-time tasks under fixed-priority scheduling with deferred
preemption", Real-Time Systems 42, 2009. Release jitter: N. Audsley, A. Burns, M. Richardson, K. Tindell, A. Wellings,
"Applying new scheduling theory to static priority pre-emptive scheduling", Software Engineering Journal 8(5), 1993.

The accelerator. While a job waits for it the processor is free, for lower classes too; each time it comes back it can
find a step of theirs (or, seen from a lower class, a job of that class that began meanwhile) in progress. Both are
charged to the waiting job: its cost counts the wait in full, and such a piece for each return (suspension-oblivious
analysis; J.-J. Chen et al., "Many suspensions, many problems", Real-Time Systems 55, 2019). This holds because at each
instant of a busy period a job in it runs, or is served by the accelerator, or is behind a piece that began before. Where
several classes share the accelerator, a job that asks for it is behind one operation of a lower class at most (those of
higher classes are in their own cost), then behind one more piece until it is picked; and each time that the accelerator
comes free, a job of each class may look in vain. A job that is not pre-emptible keeps it until it is picked again, at
its own class: who shares the accelerator with such a one of a lower class has no bound here.

Late policies need no rule of their own: "abort" and "skip" only take work away, and all counts here are of releases at
full cost. A job that is aborted ends no later than the bound says of it if it ran on.

Whole nanoseconds throughout, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from synapticos.analysis.tasks import Interference, Task, TaskSet

MOST_WINDOWS = 20_000  # releases looked at of one task; beyond, nothing is proved
MOST_ROUNDS = 20_000  # of one fixed point


@dataclass(frozen=True)
class Demand:
    """A task as the analysis sees it. Times in ns; `period` 0: once in a busy period; `deadline` 0: none."""

    name: str
    priority: int
    cost: int  # of a release, waits for the accelerator in it
    tail: int  # from when nothing of the kernel's interrupts it any more
    section: int  # the most that a higher class may have to wait for
    period: int
    jitter: int = 0
    deadline: int = 0
    returns: int = 0  # times that it comes back from the accelerator
    operation: int = 0  # the longest there
    look: int = 0  # the longest step from which it asks for it
    keeps: bool = False  # the accelerator, from its first step there to its last
    culprit: str = ""  # which step is the section
    jobs: int = 1  # of a release

    def releases(self, window: int) -> int:
        """At most so many in a closed interval of this length; of none if it is negative."""
        if window < 0:
            return 0
        return (window + self.jitter) // self.period + 1 if self.period else 1


@dataclass(frozen=True)
class Response:
    """What is known of one task. `response` None: there is no bound, and `reason` says why."""

    name: str
    priority: int
    deadline: int  # ns after its release; 0: none
    response: int | None  # ns from release to end, at most
    start: int | None  # ns from release to the first step of its (last) job, at most
    cost: int  # ns, its own
    blocking: int  # ns, in the worst window
    culprit: str  # whose, and which step
    others: tuple[tuple[str, int], ...]  # ns of each other task in the worst window, most first
    reason: str = ""
    apart: int = 0  # ns: holds if two releases are at least so far apart; 0: as declared

    @property
    def slack(self) -> int | None:
        return self.deadline - self.response if self.response is not None and self.deadline else None

    @property
    def meets(self) -> bool:
        """No deadline, or one that it never misses."""
        return not self.deadline or (self.response is not None and self.response <= self.deadline and not self.apart)


@dataclass(frozen=True)
class Window:
    """One release looked at."""

    start: int
    finish: int
    blocking: int
    culprit: str
    counts: tuple[tuple[str, int], ...]


def demand(task: Task) -> Demand:
    """A task by itself. Waits behind others for the accelerator are not in it (`accelerated`)."""
    runs: list[tuple[int, str]] = []  # stretches of the processor that nothing interrupts
    open_run = False
    steps = task.steps[: len(task.steps) // task.jobs]
    for number, step in enumerate(steps):
        if step.resource != "cpu":
            open_run = False
        elif open_run and not task.preemptible:
            ns, label = runs[-1]
            runs[-1] = ns + step.ns, label
        else:
            runs.append((step.ns, step.name or f"step {number}"))
            open_run = True
    section, label = max(runs)
    tail = runs[-1][0] if steps[-1].resource == "cpu" else 0
    waits = [i for i, step in enumerate(steps) if step.resource == "npu"]
    operation = max((steps[i].ns for i in waits), default=0)
    look = max((steps[i - 1].ns for i in waits if i), default=0)
    whole = "" if task.preemptible else " on, not pre-emptible"
    return Demand(
        task.name, task.priority, task.cost_ns, tail, section, task.period_ns, task.jitter_ns, task.deadline_ns,
        len(waits) * task.jobs, operation, look, bool(waits) and not task.preemptible, label + whole, task.jobs,
    )  # fmt: skip


class Level:
    """The analysis of one class: its tasks, those above, and what can block from below."""

    def __init__(self, demands: Sequence[Demand], priority: int, interference: Sequence[Interference] = (), idle: int = 0, clock: int = 0):
        self.priority = priority
        self.own = [d for d in demands if d.priority == priority]
        self.above = [d for d in demands if d.priority > priority]
        self.interference = list(interference)
        self.clock = clock
        below = [(d.section, f"{d.name}: {d.culprit}") for d in demands if d.priority < priority]
        self.below = max([*below, (idle, "a poll that finds nothing")])
        self.unrated = [d.name for d in [*self.above, *self.own] if not d.period]
        self.users = [d for d in demands if d.returns]
        classes = {d.priority for d in self.users}
        self.shared = len(classes) > 1
        self.looks = sum(max(d.look for d in self.users if d.priority == c) for c in classes)
        highest = max((d.priority for d in self.users if d.priority >= priority), default=None)
        self.kept = next((d.name for d in self.users if d.keeps and highest is not None and d.priority < highest), None)

    def utilisation(self, also: Demand | None = None) -> Fraction:
        """Of the processor, by this class, those above and interference."""
        rated = [d for d in [*self.above, *self.own] if d.period and d is not also]
        total = sum((Fraction(self.cost(d), d.period) for d in rated), Fraction(0))
        total += sum((Fraction(i.cost_ns, i.period_ns) for i in self.interference), Fraction(0))
        return total + (Fraction(self.cost(also), also.period) if also is not None and also.period else 0)

    def cost(self, d: Demand) -> int:
        """Of a job of this class or above: what can be in its way each time it returns from the accelerator counts too."""
        if d.returns == 0:
            return d.cost
        piece = self.below[0]
        if d.priority > self.priority:  # meanwhile any job of this class may have begun
            piece = max([piece, *(k.cost + k.returns * self.extra(k, self.below[0]) for k in self.own)])
        return d.cost + d.returns * self.extra(d, piece)

    def extra(self, d: Demand, piece: int) -> int:
        """For one use of the accelerator: what is in the way before it and after it."""
        if not self.shared:
            return piece
        behind = max((o.operation for o in self.users if o.priority < d.priority), default=0)
        return behind + 2 * piece + self.looks

    def stolen(self, window: int) -> int:
        """Interference in a half-open window."""
        return sum(-(-(window + i.jitter_ns) // i.period_ns) * i.cost_ns for i in self.interference)

    def blocking(self, task: Demand, at: int) -> tuple[int, str]:
        """The most that can be in progress when the window of a release at `at` opens, and whose it is."""
        found = [self.below]
        if task.deadline:
            for other in self.own:
                if other is not task and (not other.deadline or other.deadline > at + task.deadline - self.clock):
                    found.append((self.cost(other), f"{other.name}, half done, whose deadline is later"))
        return max(found)

    def longest_blocking(self, task: Demand) -> int:
        """Of any release, ns."""
        return max([self.below[0], *(self.cost(d) for d in self.own if d is not task)])

    def longest(self, task: Demand) -> int | None:
        """The busy period of this class, ns; None if it never ends or is too long to look at."""
        start = self.longest_blocking(task)
        everyone = [*self.above, *self.own]

        def step(length: int) -> int:
            work = start + self.stolen(length)
            for d in everyone:
                work += (-(-(length + d.jitter) // d.period) if d.period else 1) * self.cost(d)
            return work

        return fixed_point(step, start + sum(self.cost(d) for d in everyone))

    def windows(self, task: Demand, length: int) -> list[int] | None:
        """The releases to look at: where one more job begins to go before it. None if there are too many."""
        found = {0}
        for other in self.own:
            if not task.deadline:
                if other.deadline and other is not task:
                    continue
                first, rise = 0, -other.jitter
            elif other is task:
                first, rise = 0, -other.jitter
            elif other.deadline:
                first = other.deadline - task.deadline - self.clock
                rise = first - other.jitter
            else:
                continue
            if 0 <= first <= length:
                found.add(first)
            if other.period:
                k = max(1, -(rise // other.period))
                count = (length - rise) // other.period - k + 1
                if count > MOST_WINDOWS:
                    return None
                found.update(rise + n * other.period for n in range(k, k + max(count, 0)))
            if len(found) > MOST_WINDOWS:
                return None
        return sorted(at for at in found if 0 <= at <= length)

    def before(self, task: Demand, other: Demand, at: int, ahead: int) -> int | None:
        """How many releases of another task of the class can go before the last job of one at `at`, which `ahead` of its
        own go before; None: as many as come."""
        if not task.deadline:
            return None if other.deadline else other.releases(at) + ahead
        if not other.deadline:
            return 0
        return other.releases(at + task.deadline + self.clock - other.deadline)

    def window(self, task: Demand, at: int) -> Window | None:
        """A release at `at` in the worst window; None if that window ends before."""
        blocked, culprit = self.blocking(task, at)
        mine = self.cost(task) // task.jobs
        earlier = ((at + task.jitter) // task.period if task.period else 0) * task.jobs + task.jobs - 1
        peers = [(d, self.before(task, d, at, earlier)) for d in self.own if d is not task]

        def peers_until(s: int) -> list[tuple[Demand, int]]:
            return [(d, d.releases(s) if most is None else min(most, d.releases(s))) for d, most in peers]

        def until(s: int) -> int:
            work = sum(n * self.cost(d) for d, n in peers_until(s))
            return blocked + earlier * mine + work + sum(d.releases(s) * self.cost(d) for d in self.above) + self.stolen(s + 1)

        start = fixed_point(until, until(0))
        if start is None or start < at:
            return None
        ahead = peers_until(start)
        fixed = blocked + earlier * mine + sum(n * self.cost(d) for d, n in ahead)
        tail = min(task.tail, mine)

        def until_last(s: int) -> int:
            return fixed + mine - tail + sum(d.releases(s) * self.cost(d) for d in self.above) + self.stolen(s + 1)

        last = fixed_point(until_last, start)
        if last is None:
            return None
        above = [(d, d.releases(last)) for d in self.above]
        load = fixed + mine + sum(n * self.cost(d) for d, n in above)
        finish = fixed_point(lambda f: load + self.stolen(f), load)
        if finish is None:
            return None
        counts = [(d.name, n * self.cost(d)) for d, n in [*ahead, *above] if n]
        counts += [(f"{task.name}, earlier", earlier * mine)] if earlier else []
        counts += [(i.name, -(-(finish + i.jitter_ns) // i.period_ns) * i.cost_ns) for i in self.interference]
        return Window(start - at, finish - at, blocked, culprit, tuple(sorted(counts, key=lambda c: -c[1])))

    def response(self, task: Demand) -> Response:
        """The worst of all releases of a task of this class. One without a rate: if its jobs are at least `apart`."""
        others = [name for name in self.unrated if name != task.name]
        if others:
            return _unbounded(task, f"{others[0]} is released by its source and nobody has said how often")
        if self.kept is not None:
            return _unbounded(task, f"{self.kept} is not pre-emptible and keeps the accelerator, which classes above it use too")
        if task.period:
            return self._response(task)
        apart, first = 0, self._response(task)
        found = first
        while found.response is not None and found.response > apart:
            apart = found.response
            own = replace(task, period=apart)
            found = Level.of(self, task, own)._response(own)
        if found.response is None:
            return replace(first, apart=0, reason="no distance of its releases is enough: " + found.reason, response=None)
        return replace(found, apart=apart)

    @classmethod
    def of(cls, other: Level, task: Demand, by: Demand) -> Level:
        """The same class with one task in another's place."""
        made = cls.__new__(cls)
        made.__dict__ |= other.__dict__
        made.own = [by if d is task else d for d in other.own]
        made.users = [by if d is task else d for d in other.users]
        made.unrated = [d.name for d in [*made.above, *made.own] if not d.period]
        return made

    def _response(self, task: Demand) -> Response:
        load = self.utilisation()
        if load > 1:
            return _unbounded(task, f"its class and those above take {float(load):.0%} of the processor")
        if load == 1 and self.longest_blocking(task):
            return _unbounded(task, "its class and those above take all of the processor, and something of others can be in their way")
        length = self.longest(task)
        windows = self.windows(task, length) if length is not None else None
        if windows is None:
            return _unbounded(task, "its class and those above leave the processor too little rest to look at all that may come")
        worst: Window | None = None
        latest = 0
        for at in windows:
            found = self.window(task, at)
            if found is not None:
                latest = max(latest, found.start)
                if worst is None or found.finish > worst.finish:
                    worst = found
        if worst is None:
            return _unbounded(task, "the search does not end")
        return Response(
            task.name, task.priority, task.deadline, worst.finish, latest, task.cost, worst.blocking, worst.culprit, worst.counts
        )  # fmt: skip


def _unbounded(task: Demand, reason: str) -> Response:
    return Response(task.name, task.priority, task.deadline, None, None, task.cost, 0, "", (), reason)


def fixed_point(step: Callable[[int], int], start: int) -> int | None:
    """The least solution of x = step(x) from `start`, where step never falls; None if it is not found soon."""
    x = start
    for _ in range(MOST_ROUNDS):
        after = step(x)
        if after <= x:
            return x
        x = after
    return None


def analyse(tasks: TaskSet) -> list[Response]:
    """Every task's worst response, in the order of the set."""
    return respond([demand(task) for task in tasks.tasks], tasks.interference, tasks.idle_ns, tasks.clock_ns)


def respond(demands: Sequence[Demand], interference: Sequence[Interference] = (), idle: int = 0, clock: int = 0) -> list[Response]:
    """The same of demands; classes are any integers."""
    levels = {d.priority: Level(demands, d.priority, interference, idle, clock) for d in demands}
    return [levels[d.priority].response(d) for d in demands]
