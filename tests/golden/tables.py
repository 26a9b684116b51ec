"""Functions called through a number; intrinsics; pure and inline functions."""

from synapticos.lang import *

Step = Fn[[Ptr[i8], u32], i32]


@intrinsic("__builtin_arm_qadd({0}, {1})")
def add_sat(a: i32, b: i32) -> i32:
    """a + b, clamped."""
    return sat(i32, i64(a) + b)


@fn(pure=True, inline=True)
def square(x: i32) -> i32:
    return x * x


@fn
def relu(x: Ptr[i8], n: u32) -> i32:
    for i in range(n):
        x[i] = max(x[i], 0)
    return 0


@fn
def energy(x: Ptr[i8], n: u32) -> i32:
    total: i32 = 0
    for i in range(n):
        total = add_sat(total, square(i32(x[i])))
    return total


STEPS = table(Step, [relu, energy])


@fn(inline=False)
def refused() -> i32:
    return -1


@fn
def run(step: u32, x: Ptr[i8], n: u32) -> i32:
    if step >= len(STEPS):
        return refused()
    return STEPS[step](x, n)
