"""f32 is IEEE single on every engine: the four operations, square root and conversions, bit for bit against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from synapticos.kernel.fmath import f32_sqrt
from synapticos.lang import *

SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF,
           0x7F800000, 0xFF800000, 0x33800000, 0x4B800000, 0x4B7FFFFF, 0x34000000, 0x5F000000, 0x1F000000, 0x40490FDB]  # fmt: skip


@fn
def each(kind: u32, a: Ptr[u32], b: Ptr[u32], out: Ptr[u32], n: u32):
    for i in range(n):
        x = from_bits(a[i])
        y = from_bits(b[i])
        z: f32 = 0.0
        match kind:
            case 0:
                z = x + y
            case 1:
                z = x - y
            case 2:
                z = x * y
            case 3:
                z = x / y
            case _:
                z = f32_sqrt(x)
        out[i] = bits(z)


@fn
def convert(a: Ptr[u32], out: Ptr[i64], clamped: Ptr[i8], n: u32):
    for i in range(n):
        x = from_bits(a[i])
        out[i] = sat(i64, x)
        clamped[i] = sat(i8, x)


@fn
def from_integers(a: Ptr[i64], out: Ptr[u32], n: u32):
    for i in range(n):
        out[i] = bits(f32(a[i]))


OPERATIONS = [np.add, np.subtract, np.multiply, np.divide, lambda x, _: np.sqrt(x)]


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)), np.uint32)
    random = rng.integers(0, 1 << 32, (4000, 2), np.uint32)
    near = random.copy()
    near[:, 1] = near[:, 0] ^ rng.integers(0, 16, 4000, np.uint32)  # nearly equal, so that much cancels
    near[::2, 1] ^= 0x80000000
    small = random & np.uint32(0x807FFFFF)  # subnormals
    small[::2, 1] = random[::2, 1]
    every = np.concatenate([pairs, random, near, small])
    return np.ascontiguousarray(every[:, 0]), np.ascontiguousarray(every[:, 1])


@pytest.mark.parametrize("kind", range(5), ids=["add", "subtract", "multiply", "divide", "sqrt"])
def test_an_operation_rounds_as_ieee_says(make, kind):
    a, b = operands()
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        want = OPERATIONS[kind](x, y).astype(np.float32)
    keep = ~(np.isnan(x) | np.isnan(y) | np.isnan(want))  # operations on NaN trap in checked runs
    if kind == 4:
        keep &= (x >= 0) & np.isfinite(x)
    a, b, want = a[keep], b[keep], want[keep]
    e = make(each, convert, from_integers)
    out = e.array(u32, len(a))
    e(each, kind, e.array(u32, a), e.array(u32, b), out, len(a))
    assert (out.numpy() == want.view(np.uint32)).all()


def test_conversions_clamp_and_round(make):
    a, _ = operands()
    x = a.view(np.float32).astype(np.float64)
    e = make(each, convert, from_integers)
    out, clamped = e.array(i64, len(a)), e.array(i8, len(a))
    e(convert, e.array(u32, a), out, clamped, len(a))
    exact = [0 if v != v else max(-(1 << 63), min((1 << 63) - 1, int(v))) if abs(v) != float("inf") else ((1 << 63) - 1 if v > 0 else -(1 << 63)) for v in x]
    assert out.numpy().tolist() == exact
    assert clamped.numpy().tolist() == [max(-128, min(127, v)) for v in exact]


def test_integers_become_the_nearest_float(make):
    rng = np.random.default_rng(6)
    a = np.concatenate([rng.integers(-(1 << 63), 1 << 63, 2000, np.int64) >> rng.integers(0, 63, 2000), np.array(
        [0, 1, -1, (1 << 24) + 1, (1 << 24) + 3, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), (1 << 62) + (1 << 38), (1 << 62) + (1 << 38) + 1], np.int64)])  # fmt: skip
    e = make(each, convert, from_integers)
    out = e.array(u32, len(a))
    e(from_integers, e.array(i64, a), out, len(a))
    assert (out.numpy() == a.astype(np.float32).view(np.uint32)).all()
