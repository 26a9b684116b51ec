"""Branches and loops."""

from synapticos.lang import *


class Kind(u8, Enum):
    IDLE = 0
    BUSY = 1
    GONE = 2


@fn
def sign(x: i32) -> i32:
    if x < 0:
        return -1
    elif x == 0:
        return 0
    else:
        return 1


@fn
def first_zero(p: Ptr[u8], n: u32) -> u32:
    # Stops at the first: what lies behind is not looked at.
    for i in range(n):
        if p[i] == 0:
            return i
    return n


@fn
def loops(p: Ptr[i16], n: u32) -> i32:
    total: i32 = 0
    for i in range(0, n, 4):
        total += p[i]
    for j in range(7, -1, -1):
        total -= p[j]
    k: u32 = 0
    while k < n and total > 0:
        k += 1
        if p[k] == 0:
            continue
        total -= 1
    return total


@fn
def turn(kind: Kind, n: u32) -> u32:
    match kind:
        case Kind.IDLE:
            n += 1
        case Kind.BUSY | Kind.GONE:
            n = 0
    match n:
        case 1:
            return 10
        case 2 | 3:
            n *= 2
        case _:
            pass
    return n if kind != Kind.IDLE else n + 1


@fn
def within(x: i32, low: i32, high: i32) -> bool:
    assert low <= high, "the bounds are in order"
    return low <= x < high and not x == 3
