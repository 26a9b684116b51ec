"""Smallest cases of what the random programs, and people, found wrong. Each runs on all engines."""

from __future__ import annotations

import pytest
from test_reject import load

from synapticos.compiler import LanguageError
from synapticos.engine import Build
from synapticos.lang import *
from synapticos.lang.types import BadType, Types


class Level(u8, Enum):
    LOW = 0
    HIGH = 200


class Code(i32, Enum):
    OK = 0
    BAD = -1


@struct
class Words:
    double: u32  # a keyword of C
    unix: u8  # a macro of gnu99
    level: Level
    pad: Shaped[Array[u8], 2]
    grid: Shaped[Array[u8], 2, 3]
    pad_2: Shaped[Array[u8], 2]


@fn(pure=True)
def wrap_twice(x: i64) -> i64:
    return wrap(i64, wrap(u32, x))


@fn(pure=True)
def shift_by_difference(n: u32) -> u32:
    return u32(1) << (31 - n)


@fn(pure=True)
def count_down(n: u32) -> u32:
    total: u32 = 0
    for i in range(n, 0, -3):
        total += i
    return total


@fn(pure=True)
def count_to_the_end(n: u8) -> u32:
    total: u32 = 0
    for i in range(n, 250, 10):
        total += i
    return total


@fn(pure=True)
def backwards(n: u32) -> u32:
    out: u32 = 0
    for i in range(3, -1, -1):
        out = out * 10 + u32(i) + n
    return out


@fn(pure=True)
def loop_variable_as_signed(a: i32) -> i32:
    found: i32 = 0
    for i in range(4):
        if a + i < 0:
            found += 1
    return found


@fn(pure=True)
def number_of_level(words: Words) -> u32:
    return u32(words.level) + 100  # an enum's number was taken for 0 by the checks


@fn(pure=True)
def level_of(n: i32) -> u8:
    return u8(Level(n))


@fn(pure=True)
def code_of(n: u64) -> i32:
    return i32(Code(n))


@fn(pure=True)
def names_of_c(index: u32, exp: u32, linux: u32, max: u32, f_a: u32, nan: u32) -> u32:
    register = index + exp
    signed = linux + max
    uint8_t = f_a + nan
    return register * 100 + signed * 10 + uint8_t


@fn
def fields_of_c(words: Words) -> u32:
    words.double = 7
    words.unix = 2
    return words.double + words.unix


@fn(pure=True)
def not_equal_not(a: u32, b: u32) -> bool:
    return (not a == 3) == (b < 2)


@fn(pure=True)
def complement(a: u8, b: u8) -> bool:
    return a == ~b


@fn(pure=True)
def always(a: u8) -> u32:
    count: u32 = 0
    if a >= 0:
        count += 1
    if a > 255:
        count += 2
    if i32(a) < 1000:
        count += 4
    return count


@fn(pure=True)
def shift_by_a_wide_count(a: u32, n: u64) -> u32:
    return a << n


@fn(pure=True)
def narrow_sum(a: u16, b: u16, c: u32) -> bool:
    return c <= (a & 127) + (b & 127)


@fn
def fill_from_itself(n: u32) -> u32:
    words = local(u32, 4)
    words[0] = n
    fill(words, words[0] + 1, 4)
    return words[0] + words[3]


@fn
def two_storages(a: u32) -> u32:
    if a == 1:
        buffer = local(u8, 4)
        buffer[0] = 3
        return u32(buffer[0])
    else:
        buffer = local(u8, 4)
        return u32(buffer[1]) + 1


@fn(pure=True)
def row_of_grid(words: Words, r: u32) -> u8:
    row = words.grid[r % 2, :]
    return row[2]


@fn
def copy_of_itself(words: Words) -> u32:
    copy(words, words)
    return words.double


@fn(pure=True)
def match_and_break(n: u32) -> u32:
    found: u32 = 99
    for i in range(10):
        match i * n:
            case 6 | 12:
                found = i
                break
            case 4:
                continue
            case _:
                pass
    return found


@fn(pure=True)
def smaller_zero(a: f32, b: f32) -> u32:
    return bits(min(a, b)) | bits(max(b, a)) >> 31


@fn
def pair(a: u32) -> tuple[u32, u32]:
    return a + 1, a + 2


@fn
def unpack_into_old(a: u32) -> u32:
    x: u32 = 5
    y: u32 = 6
    x, y = pair(a + x)
    _, x = pair(x)
    return x * 100 + y


@fn
def next_pad(words: Words) -> u32:
    words.pad[0] += 1
    return u32(words.pad[0])


@fn
def and_is_ordered(words: Words) -> u32:
    if words.pad[0] == 1 and next_pad(words) == 2 and words.pad[0] == 2:
        return 1
    return 0


@fn
def length_as_index(words: Words) -> u8:
    return len(words.grid)


@pytest.mark.parametrize(("function", "arguments", "want"), [
    (wrap_twice, (-1,), 4294967295), (shift_by_difference, (0,), 1 << 31), (shift_by_difference, (31,), 1),
    (count_down, (10,), 22), (count_down, (0,), 0), (count_down, (3,), 3), (count_to_the_end, (5,), 3125), (count_to_the_end, (255,), 0), (backwards, (0,), 3210),
    (loop_variable_as_signed, (-2,), 2), (level_of, (200,), 200), (code_of, (0,), 0), (names_of_c, (1, 2, 3, 4, 5, 6), 381),
    (not_equal_not, (4, 1), True), (complement, (1, 254), True), (complement, (1, 1), False), (always, (255,), 5),
    (shift_by_a_wide_count, (3, 4), 48), (narrow_sum, (127, 127, 254), True), (fill_from_itself, (4,), 10), (two_storages, (1,), 3),
    (two_storages, (2,), 1), (match_and_break, (2,), 3), (match_and_break, (5,), 99), (smaller_zero, (0.0, -0.0), 1), (smaller_zero, (-0.0, 0.0), 0x80000000),
    (unpack_into_old, (1,), 908),
])  # fmt: skip
def test_what_was_wrong_once(make, function, arguments, want):
    assert make(*ROOTS)(function, *arguments) == want


@pytest.mark.parametrize(("function", "arguments"), [(level_of, (3,)), (level_of, (-1,)), (code_of, ((1 << 64) - 1,)), (shift_by_a_wide_count, (1, 1 << 32))])
def test_what_was_let_through_once_traps(make, function, arguments):
    with pytest.raises(Trap):
        make(*ROOTS, checks=True)(function, *arguments)


def test_an_enums_number_is_what_memory_says(make):
    e = make(*ROOTS)
    words = e.new(Words, level=Level.HIGH, grid=[1, 2, 3, 4, 5, 6])
    assert e(number_of_level, words) == 300
    assert e(row_of_grid, words, 1) == 6
    assert e(fields_of_c, words) == 9
    assert e(copy_of_itself, words) == 7


def test_the_operands_of_and_are_taken_in_order(make):
    e = make(*ROOTS)
    assert e(and_is_ordered, e.new(Words, pad=[1, 0])) == 1
    assert e(and_is_ordered, e.new(Words, pad=[2, 0])) == 0
    assert e(length_as_index, e.new(Words)) == 2


@fn
def takes_signed(x: i32) -> u32:
    return 0


@fn
def takes_unsigned(x: u32) -> u32:
    return x


OF_TWO_KINDS = table(Fn[[u32], u32], [takes_unsigned, takes_signed])


@fn
def calls_either(x: u32) -> u32:
    return OF_TWO_KINDS[x](x)


def test_what_was_refused_leaves_nothing_behind():
    engine = Build([]).engine("checked")
    for _ in range(2):
        with pytest.raises(LanguageError, match="OF_TWO_KINDS holds"):
            engine.call_direct(calls_either, (0,))
    assert engine.call_direct(takes_unsigned, (3,)) == 3


def test_a_corrected_function_takes_the_place_of_the_refused_one(tmp_path):
    engine = Build([]).engine("checked")
    outcomes = []
    for number, body in enumerate(("x + y", "x + 1")):
        path = tmp_path / f"cell_{number}.py"
        path.write_text(f"from synapticos.lang import *\n@fn\ndef cell(x: u32) -> u32:\n    return {body}\n")
        try:
            outcomes.append(engine.call_direct(load(path).cell, (1,)))
        except LanguageError as error:
            outcomes.append(error.messages[0].fact)
    assert outcomes == ["y is not defined", 2]


@struct
class HoldsNoType:
    good: u32
    bad: int


def test_a_struct_that_was_refused_is_refused_again():
    types = Types()
    for _ in range(2):
        with pytest.raises(BadType, match="HoldsNoType.bad"):
            types.struct(HoldsNoType)


ROOTS = [wrap_twice, shift_by_difference, count_down, count_to_the_end, backwards, loop_variable_as_signed, number_of_level, level_of, code_of, names_of_c,
         fields_of_c, not_equal_not, complement, always, shift_by_a_wide_count, narrow_sum, fill_from_itself, two_storages, row_of_grid, copy_of_itself,
         match_and_break, smaller_zero, unpack_into_old, and_is_ordered, length_as_index]  # fmt: skip
