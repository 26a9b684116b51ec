"""Two operands of different shapes, element by element: which element of each goes into an element of the result.

    y[i, j, k, l]  of  a[i * a_0 + j * a_1 + k * a_2 + l * a_3]  and  b likewise

A step of 0 is a dimension along which an operand has one element for all. Rows are all of y but its last dimension.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import LayerCheck
from synapticos.kernel.layers.checks import MAX_SIDE, TOO_MUCH, apart, product
from synapticos.kernel.layers.operands import element_bytes, holds
from synapticos.kernel.layers.variants import MAX_ROWS, Unsupported


@struct
class Broadcast:
    y: Shaped[Array[u32], 4]  # shape; 1 for dimensions in front that are not there
    a: Shaped[Array[u32], 4]  # elements from one index to the next, or 0
    b: Shaped[Array[u32], 4]


@fn(pure=True)
def steps_fit(check: LayerCheck, operand: u32, dtype: u8, y: Broadcast, second: bool) -> bool:
    """Whether an operand has the type and an element wherever the steps lead."""
    record = check.tensor(operand)
    if record is None or record.dtype != dtype:
        return False
    farthest: u32 = 0
    for d in range(4):
        step = y.a[d]
        if second:
            step = y.b[d]
        part = product(y.y[d] - 1, step)
        if part == TOO_MUCH:
            return False
        farthest += part
    reach = product(farthest + 1, element_bytes(dtype))
    return reach != TOO_MUCH and reach <= record.bytes


@fn(pure=True)
def broadcast_fits(check: LayerCheck, p: Broadcast, dtype: u8, out: u32) -> bool:
    """Whether operands 0 and 1 and the output, operand `out`, fit; the output may lie on an input."""
    for d in range(4):
        if p.y[d] == 0:
            return False
    rows = product(product(p.y[0], p.y[1]), p.y[2])
    if rows > MAX_SIDE or check.rows > rows or not holds(check, out, dtype, product(rows, p.y[3])):
        return False
    return steps_fit(check, 0, dtype, p, False) and steps_fit(check, 1, dtype, p, True) and apart(check, True)


@fn(pure=True, inline=True)
def first_a(p: Broadcast, row: u32) -> u32:
    """The element of the first operand that goes into the first of a row."""
    line = row // p.y[2]
    return line // p.y[1] * p.a[0] + line % p.y[1] * p.a[1] + row % p.y[2] * p.a[2]


@fn(pure=True, inline=True)
def first_b(p: Broadcast, row: u32) -> u32:
    line = row // p.y[2]
    return line // p.y[1] * p.b[0] + line % p.y[1] * p.b[1] + row % p.y[2] * p.b[2]


def broadcast_fields(a: Any, b: Any, y: Any) -> dict[str, list[int]]:
    """Fields of Broadcast. Plain Python."""
    from math import prod

    rank = len(y.shape)
    sides = [int(n) for n in y.shape]
    steps = []
    for operand in (a, b):
        shape = [1] * (rank - len(operand.shape)) + [int(n) for n in operand.shape]
        step, all_steps = 1, []
        for n in reversed(shape):
            all_steps.insert(0, 0 if n == 1 else step)
            step *= n
        steps.append(all_steps)
    # Neighbours along which both operands go on alike are one dimension; short last ones cost a row each.
    dims = list(zip(sides, *steps, strict=True))
    at = len(dims) - 1
    while at > 0:
        (n, p, q), (m, r, s) = dims[at - 1], dims[at]
        alike = (n == 1 or (p == r * m and q == s * m)) if m != 1 else True
        if alike and (m < 64 or len(dims) > 4 or prod(d[0] for d in dims[:-1]) > MAX_ROWS):
            dims[at - 1 : at + 1] = [(n * m, r if m != 1 else p, s if m != 1 else q)]
        at -= 1
    if len(dims) > 4 or prod(d[0] for d in dims[:-1]) > MAX_ROWS:
        raise Unsupported(f"shapes {tuple(a.shape)} and {tuple(b.shape)}", f"four dimensions that differ, {MAX_ROWS} rows")
    dims = [(1, 0, 0)] * (4 - len(dims)) + dims
    return {name: [d[i] for d in dims] for i, name in enumerate(("y", "a", "b"))}
