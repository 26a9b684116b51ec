"""A kernel whose time is virtual: boot an app of timed models on it, let things arrive, read what happened.

    kernel = VirtualKernel(rate=1_000_000_000)
    kernel.boot(tables, containers, sources, arena_bytes=4096)
    for events in kernel.run(arrivals, until):     # NumPy records, as kernel.simulate.Event
        ...
    kernel.figures()                               # of each pipeline, as kernel.simulate.Figures

Made once, it boots as many apps as one likes: tables and costs are data. Times are ticks, `rate` a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app import program
from synapticos.boards.host import HostBoard
from synapticos.engine import Build
from synapticos.errors import KernelError
from synapticos.kernel import simulate as sim
from synapticos.kernel import tables as rows
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.run import APP_STAGES
from synapticos.kernel.stages.tables import stage_tables
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import Tensor
from synapticos.kernel.timed import BESIDE_BACKEND, TIMED_BACKEND, timed_stage
from synapticos.lang.layouts import of
from synapticos.lang.types import ArrayType, StructType

ROOTS: list[Any] = [program.app_start, rows.app_pipeline, sim.simulate_begin, sim.simulate, sim.simulate_interrupt]
TABLES: dict[Any, list[Any]] = {
    **TIMED_BACKEND,  # type: ignore[dict-item]
    APP_STAGES: [timed_stage],
    **{table: entries[:1] for table, entries in stage_tables(set()).items()},  # no stage computes
}
EVENTS = 1 << 16  # that are taken at once
LEAD = 1 << 32  # ticks of arrivals that are known ahead
MOST: dict[str, int] = {
    "MAX_MODELS": 16, "MAX_PIPELINES": 16, "MAX_PIPELINE_STAGES": 8, "MAX_JOBS": 32, "STAGE_INPUTS": 1, "SCRATCH_DEPTH": 1,
    "PIPELINE_CONFIG_BYTES": 4, "NPU_INPUT_BYTES": 4, "NPU_OUTPUT_BYTES": 4, "LAYER_TIMES": 1, "PROFILING": 0,
}  # fmt: skip


def dtype_of(struct: Any) -> np.dtype:
    """A kernel's struct as a NumPy record."""

    def made(kind: Any) -> Any:
        if isinstance(kind, StructType):
            fields = kind.fields
            return np.dtype({
                "names": [f.name for f in fields], "formats": [made(f.type) for f in fields],
                "offsets": [f.offset for f in fields], "itemsize": kind.size,
            })  # fmt: skip
        if isinstance(kind, ArrayType):
            return (made(kind.element), kind.dims)
        return np.dtype("<" + kind.code)

    return np.dtype(made(of(struct)))


ARRIVAL, EVENT, FIGURES = dtype_of(sim.Arrival), dtype_of(sim.Event), dtype_of(sim.Figures)


def arrivals_of(times: Sequence[int] | np.ndarray, until: int, kind: sim.Comes, *, target: int = 0, value: int = 0) -> np.ndarray:
    """Arrivals of one kind at these times, those before `until`."""
    at = np.asarray(times, np.uint64)
    at = at[at < until]
    out = np.zeros(len(at), ARRIVAL)
    out["at"], out["kind"], out["target"], out["value"] = at, int(kind), target, value
    return out


def in_order(arrivals: Sequence[np.ndarray]) -> np.ndarray:
    """All of them by time; equals in the order in which they are given."""
    joined = np.concatenate([np.zeros(0, ARRIVAL), *arrivals])
    return joined[np.argsort(joined["at"], kind="stable")]


class VirtualKernel:
    """One kernel of a build, on one engine, with memory for the apps that it boots one after the other."""

    def __init__(self, *, rate: int = 1_000_000, engine: str = "native", parameters: Mapping[str, int] = MOST) -> None:
        tables = TABLES | (BESIDE_BACKEND if parameters.get("OFFLOAD") else {})
        build = Build(ROOTS, tables=tables, **parameters)  # type: ignore[arg-type]
        if engine == "checked":
            self.e: Any = build.engine(engine, board=HostBoard(tick_rate=rate))
        else:
            self.e = build.engine(engine)
            self.e.board.rate = rate
        self.rate = rate
        self.kernel = self.e.new(Kernel)
        self.sim = self.e.new(sim.Simulation)
        self._events = self._buffer(EVENTS * EVENT.itemsize)
        self._kept: dict[str, Any] = {}
        self._call: Any = None

    def _buffer(self, n: int) -> Any:
        return self.e.array(lang.u8, n)

    def _held(self, name: str, data: bytes) -> Any:
        """Memory with these bytes, the same from app to app as long as it is large enough."""
        buffer = self._kept.get(name)
        if buffer is None or len(buffer) < len(data):
            buffer = self._kept[name] = self._buffer(max(2 * len(data), 64))
            self._call = None
        self.e.write(buffer._address, data)
        return buffer

    def boot(
        self, tables: bytes, containers: bytes, inputs: Sequence[Mapping[str, Any]], *, arena_bytes: int, scratch: int = 0, most: int = 16
    ) -> None:  # fmt: skip
        """Boot an app; `inputs` are the fields of the tensor that each pipeline is given, and at most `most` bytes are
        pushed at once. Raises KernelError if it does not start."""
        self._held("arena", bytes(arena_bytes))
        held = self._held("tables", tables), self._held("containers", containers)
        status = self.e(
            program.app_start, self.kernel, self.e.board.number, self._kept["arena"], arena_bytes, scratch,
            held[0], len(tables), held[1], len(containers),
        )  # fmt: skip
        if status != Status.OK:
            raise KernelError(f"the app does not start on a virtual clock: {Status(int(status)).name}", int(status))
        self._held("input", bytes(max([most, *(int(i["size"]) for i in inputs)])))
        self._held("sources", b"".join(
            lang.pack(sim.Source, pipe=self.e(rows.app_pipeline, self.kernel, n), tensor=lang.pack(Tensor, **{"ndim": 1, **given}))
            for n, given in enumerate(inputs)
        ))  # fmt: skip

    def run(
        self, arrivals: np.ndarray | Iterable[tuple[np.ndarray, int]], until: int, *, record: int = 0, idle: int = 0,
        steps: tuple[int, int] | None = None,
    ) -> Iterator[np.ndarray]:  # fmt: skip
        """From now on for `until` ticks: the events, piece by piece (empty ones if none are recorded).

        `arrivals` are records of ARRIVAL in order of time: all of them, or pieces, each with the time up to which nothing
        else comes (at least 2 * LEAD after the one before). `idle` is how long a poll takes that finds nothing. Steps are
        recorded from `steps[0]` to `steps[1]`.
        """
        e, state = self.e, self.sim
        e(sim.simulate_begin, self.kernel, state, until, record, EVENTS, idle)
        state.lead = LEAD
        if steps is not None:
            state.steps_from, state.steps_until = steps
        pieces = iter([(arrivals, until)] if isinstance(arrivals, np.ndarray) else arrivals)
        left = np.zeros(0, ARRIVAL)
        stop = sim.Stop.MORE
        while stop != sim.Stop.DONE:
            if stop == sim.Stop.MORE:
                more, state.known = next(pieces)
                left = np.concatenate([left[state.next :], more])
                self._held("arrivals", left.tobytes())
                state.next, state.arrivals = 0, len(left)
            if self._call is None:
                given = (self.kernel, state, self._kept["sources"], self._kept["input"], self._kept["arrivals"], self._events)
                self._call = e.prepare(sim.simulate, *given)
                e.interrupt(int(sim.LINE), sim.simulate_interrupt, *given)
            stop = self._call()
            if state.lost:
                raise KernelError(f"{state.lost} events came at once, more than there is room for", int(Status.NOMEM))
            if stop == sim.Stop.STUCK:
                raise KernelError("a job waits for somebody who is not there", int(Status.BUSY))
            yield np.frombuffer(e.read(self._events._address, state.used * EVENT.itemsize), EVENT)

    def last_arrivals(self, most: int) -> np.ndarray:
        """What came last, of what is held now: up to `most` of it."""
        first = max(int(self.sim.next) - most, 0)
        size = (int(self.sim.next) - first) * ARRIVAL.itemsize
        return np.frombuffer(self.e.read(self._kept["arrivals"]._address + first * ARRIVAL.itemsize, size), ARRIVAL)

    def figures(self) -> np.ndarray:
        """Of each pipeline, since the run began: records as kernel.simulate.Figures."""
        return np.frombuffer(bytes(self.sim.figures), FIGURES)

    def close(self) -> None:
        self.e.close()
