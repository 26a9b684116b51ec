"""Instructions of a Cortex-M with the DSP extension, for loops that take four int8 at a time.

    if has_dsp(): four at a time ... else: one at a time, which compilers for larger machines make vectors of

Both ways are written where they are used, and must give the same sums: the engines are compared.
"""

from synapticos.lang import *


@intrinsic("1")
def has_dsp() -> bool:
    """Whether these are single instructions here. A constant, so the other way is no code at all."""
    return False


@intrinsic("((const struct {{ uint32_t word; }} __attribute__((packed)) *)({0}))->word")
def load4(p: Ptr[i8]) -> u32:
    """Four elements as one word, from any address: a board leaves CCR.UNALIGN_TRP at 0, as at reset."""
    low = u32(wrap(u8, p[0])) | u32(wrap(u8, p[1])) << 8
    return low | u32(wrap(u8, p[2])) << 16 | u32(wrap(u8, p[3])) << 24


@intrinsic("__builtin_arm_sxtb16({0})")
def even_bytes(x: u32) -> u32:
    """Bytes 0 and 2 as two signed halves."""
    low = u32(wrap(u16, i16(wrap(i8, x))))
    return low | u32(wrap(u16, i16(wrap(i8, x >> 16)))) << 16


# In assembler: compilers do not fold the rotation into the instruction.
@intrinsic('(__extension__({{ uint32_t odd_; __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd_) : "r"({0})); odd_; }}))')
def odd_bytes(x: u32) -> u32:
    """Bytes 1 and 3 as two signed halves."""
    return even_bytes(x >> 8)


@intrinsic("__builtin_arm_smlad((int32_t)({0}), (int32_t)({1}), {2})")
def dot2(a: u32, b: u32, acc: i32) -> i32:
    """acc + low(a) * low(b) + high(a) * high(b), signed halves."""
    p = i32(wrap(i16, a)) * wrap(i16, b)
    q = i32(wrap(i16, a >> 16)) * wrap(i16, b >> 16)
    return wrap(i32, acc + p + q)
