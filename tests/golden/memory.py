"""Pointers, slices, views, tables, local storage."""

from synapticos.lang import *

WAVE = rom(i16, [round(100 * i * (7 - i)) for i in range(8)])
GAINS = rom(f32, [0.5, 1.0, -2.25])
NAME = rom(b"arena")


@struct
class Head:
    magic: u32
    size: u32


@fn
def checksum(p: Ptr[u8], n: u32) -> u32:
    total: u32 = 0
    for i in range(n):
        total = wrap(u32, total * 31 + p[i])
    return total


@fn
def open_head(region: Ptr[u8], at: u32) -> u32:
    head = view(Head, region[at:])
    body = view(u16, region[at + 8 :])
    if head.magic != 0x4D4E5953:
        return 0
    extra = body[0]
    return checksum(region[at : at + head.size], head.size) + extra


@fn
def tables(i: u32, gain: u32) -> f32:
    total = f32(WAVE[i]) * GAINS[gain]
    return total + f32(checksum(NAME, len(NAME) - 1))


@fn
def scratch(p: Ptr[i32], n: u32) -> i32:
    row = local(i32, 8)
    head = local(Head)
    head.size = min(n, 8)
    move(row, p, head.size)
    fill(row[head.size :], -1, 8 - head.size)
    return row[0] + row[7]
