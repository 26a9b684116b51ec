"""Elements put elsewhere: slices, transposes, gathers, padding and whatever else copies without arithmetic.

    y[i, j, k, l, :] = x[at_0[i] + at_1[j] + at_2[k] + at_3[l] :][: run], or `value` where one of them is OUTSIDE

    x   any type
    at  u32 [d0 + d1 + d2 + d3]  constant: bytes to add for each index of y, dimension by dimension
    y   the same type, [d0, d1, d2, d3, run bytes]

What lies in one piece in both, from the last dimension on, is the run. Rows are the first three dimensions.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_UINT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, product, takes, trails
from synapticos.kernel.layers.operands import element_bytes, holds_const
from synapticos.kernel.status import Status

OUTSIDE: Final[u32] = 0xFFFFFFFF  # in `at`: no element of x, but `value`
SHORT_RUN: Final[u32] = 8  # bytes that are copied here sooner than by a call


@struct
class PickParams:
    d: Shaped[Array[u32], 4]
    run: u32  # bytes
    element: u32  # bytes: 1, 2, 4 or 8
    value: u32  # the low bytes of an element outside
    value_high: u32


PICK_PARAMS_BYTES: Final[u32] = sizeof(PickParams)


@fn
def pick_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, PICK_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(PickParams, check.params)
    x = check.tensor(0)
    y = check.tensor(2)
    if x is None or y is None or x.dtype != y.dtype or p.element != element_bytes(x.dtype):
        return Status.INVAL
    pieces: u32 = 1
    rows: u32 = 1
    entries: u32 = 0
    for i in range(4):
        if p.d[i] == 0 or p.d[i] > MAX_SIDE:
            return Status.INVAL
        rows = pieces
        pieces = product(pieces, p.d[i])
        entries += p.d[i]
    if p.run == 0 or p.run % p.element != 0 or product(pieces, p.run) != y.bytes or check.rows > rows:
        return Status.INVAL
    if not holds_const(check, 1, DTYPE_UINT32, entries) or p.run > x.bytes or not trails(check):
        return Status.INVAL
    # The farthest place of each dimension together must leave room for a run.
    table = check.tensor(1)
    if table is None:
        return Status.INVAL
    at = view(u32, check.consts[table.offset :])
    room = x.bytes - p.run
    entry: u32 = 0
    for i in range(4):
        farthest: u32 = 0
        for j in range(p.d[i]):
            place = at[entry]
            if place != OUTSIDE:
                if place % p.element != 0:
                    return Status.INVAL
                farthest = max(farthest, place)
            entry += 1
        if farthest > room:
            return Status.INVAL
        room -= farthest
    return Status.OK


@fn
def pick_fill(y: Ptr[u8], p: PickParams, n: u32) -> None:
    """`n` bytes of elements outside."""
    if p.value == 0 and p.value_high == 0:
        fill(y, 0, n)
    elif p.element == 1:
        fill(y, u8(p.value & 255), n)
    else:
        for i in range(n):
            byte = i % p.element
            word = p.value
            if byte >= 4:
                word = p.value_high
            y[i] = u8(word >> (byte % 4 * 8) & 255)


@fn
def pick_run(call: LayerCall) -> Status:
    p = view(PickParams, call.params)
    at_0 = view(u32, call.data[1])
    at_1 = at_0[p.d[0] :]
    at_2 = at_1[p.d[1] :]
    at_3 = at_2[p.d[2] :]
    run = p.run
    d3 = p.d[3]
    for row in range(call.row, call.row_end):
        a = at_0[row // p.d[2] // p.d[1]]
        b = at_1[row // p.d[2] % p.d[1]]
        c = at_2[row % p.d[2]]
        y = call.data[2][row * d3 * run :]
        if a == OUTSIDE or b == OUTSIDE or c == OUTSIDE:
            pick_fill(y, p, d3 * run)
            continue
        x = call.data[0][a + b + c :]
        k: u32 = 0
        while k < d3:
            # Runs that follow each other in x, or lie outside, go together.
            first = k
            place = at_3[k]
            k += 1
            if place == OUTSIDE:
                while k < d3 and at_3[k] == OUTSIDE:
                    k += 1
                pick_fill(y[first * run :], p, (k - first) * run)
                continue
            next_ = place + run
            while k < d3 and at_3[k] == next_:
                k += 1
                next_ += run
            n = (k - first) * run
            source = x[place:]
            target = y[first * run :]
            if n < SHORT_RUN:
                for i in range(n):
                    target[i] = source[i]
            else:
                move(target, source, n)
    return Status.OK


def plan_pick(op: Any, x: Any, y: Any, places: Any, value: bytes = b"") -> Any:
    """The step for y[i, j, ...] = x.flat[sum of places[d][index]] (-1: `value`), at most 8 dimensions. Plain Python."""
    from math import prod

    import numpy as np

    from synapticos.kernel.layers.variants import MAX_ROWS, PICK, Const, LayerPlan, Unsupported

    size = np.dtype(y.dtype).itemsize
    axes = [np.asarray(p, np.int64) for p in places]
    base = 0
    for i, axis in enumerate(axes):
        low = int(axis[axis >= 0].min()) if (axis >= 0).any() else 0
        axes[i] = np.where(axis < 0, -1, axis - low)
        base += low
    run = 1
    while axes and np.array_equal(axes[-1], np.arange(len(axes[-1])) * run):
        run *= len(axes.pop())
    merged: list[Any] = []
    for axis in reversed(axes):  # from the last; two neighbours that step alike are one
        if len(axis) == 1 and axis[0] == 0:
            continue
        if merged and (axis >= 0).all() and (merged[0] >= 0).all() and len(axis) * len(merged[0]) <= 1024:
            both = (axis[:, None] + merged[0][None, :]).reshape(-1)
            if len(np.unique(np.diff(both))) <= 1:
                merged[0] = both
                continue
        merged.insert(0, axis)
    if base:
        if not merged:
            merged = [np.zeros(1, np.int64)]
        merged[0] = np.where(merged[0] < 0, -1, merged[0] + base)
    while len(merged) > 4:
        at = min(range(len(merged) - 1), key=lambda i: len(merged[i]) * len(merged[i + 1]))
        a, b = merged[at], merged[at + 1]
        both = np.where((a[:, None] < 0) | (b[None, :] < 0), -1, a[:, None] + b[None, :]).reshape(-1)
        merged[at : at + 2] = [both]
    d = [1] * (4 - len(merged)) + [len(a) for a in merged]
    rows = prod(d[:3])
    if max(d) > MAX_SIDE or rows > MAX_ROWS:
        raise Unsupported(f"{rows} rows to move", f"up to {MAX_ROWS}")
    table = np.concatenate([np.zeros(4 - len(merged), np.int64), *[np.where(a < 0, -1, a * size) for a in merged]])
    fill_bytes = value.ljust(8, b"\0")
    params = pack(
        PickParams, d=d, run=run * size, element=size,
        value=int.from_bytes(fill_bytes[:4], "little"), value_high=int.from_bytes(fill_bytes[4:8], "little"),
    )  # fmt: skip
    at = Const(f"{op.kind}/places", (table & 0xFFFFFFFF).astype(np.uint32))
    return LayerPlan(PICK, [x, at], [y], params, scratch=0, cost=prod(d) * run, rows=rows)


def strides_of(shape: Any) -> list[int]:
    """Elements from one index to the next of each dimension, row-major. Plain Python."""
    strides = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        strides[at] = strides[at + 1] * int(shape[at + 1])
    return strides
