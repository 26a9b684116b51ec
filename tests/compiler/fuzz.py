"""Expression fuzz: random typed functions, run everywhere, compared to the bit.

Where checked CPython returns, every other engine and compiler returns the same; where it traps, the C with checks traps
at the same line.

    python tests/compiler/fuzz.py --rounds 20            # fresh seeds
    python tests/compiler/fuzz.py --seed 7 --keep DIR    # one round again, its module kept
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import struct as _struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synapticos import toolchain
from synapticos.compiler import LanguageError
from synapticos.engine import Build
from synapticos.lang import Trap
from synapticos.lang import layouts as layout
from synapticos.lang.types import ArrayType, EnumType, Scalar, StructType

BITS = {f"{s}{n}": n for s in "ui" for n in (8, 16, 32, 64)}
INTS = list(BITS)
UNSIGNED = [t for t in INTS if t[0] == "u"]
SMALL = ["u8", "u16", "u32"]
# Names that mean something in C, in generated C or in generated Python.
NAMES = """index exp linux unix double short register auto signed union NAN errno inf nan f_a g_b k_1 i_end result_1 EOF
stdin y1 typeof uint8_t syn_x status_1 struct_ default_ LIMIT KEEP fuzz_pair""".split()


def low(t: str) -> int:
    return -(1 << (BITS[t] - 1)) if t[0] == "i" else 0


def high(t: str) -> int:
    return (1 << (BITS[t] - (t[0] == "i"))) - 1


def holds(wide: str, narrow: str) -> bool:
    return low(wide) <= low(narrow) and high(narrow) <= high(wide)


def edge(r: random.Random, t: str) -> int:
    """A value of an integer type, mostly one where something happens."""
    half = BITS[t] // 2
    near = [low(t), low(t) + 1, high(t), high(t) - 1, 0, 1, 2, 3, 5, 7, 1 << half, (1 << half) - 1, 127, 128, 255, 31, 32, 33, -1, -2, -128]
    pick = r.random()
    value = r.choice(near) if pick < 0.6 else r.randint(0, 20) if pick < 0.85 else r.randint(low(t), high(t))
    return min(max(value, low(t)), high(t))


def edge_float(r: random.Random) -> float:
    value = r.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0, 3.0, 255.0, 256.0, -128.0, 127.5, 2147483648.0, -2147483648.0, 16777216.0, 1e-45,
                      1.17549435e-38, 3.4028234e38, -3.4028234e38, 0.1, 1e10, 65535.9, float("inf"), r.uniform(-100, 100), r.uniform(-1e9, 1e9)])  # fmt: skip
    return float(_struct.unpack("<f", _struct.pack("<f", value))[0])


class Module:
    """The text of one random module, and how to call its functions."""

    def __init__(self, seed: int, functions: int) -> None:
        self.r = random.Random(seed)
        self.lines = [
            '"""Random."""', "from synapticos.lang import *", "", "LIMIT = 9", "KEEP = 200", "",
            "class Kind(u8, Enum):", "    A = 0", "    B = 1", "    C = 7", "",
            "class Code(i32, Enum):", "    OK = 0", "    BAD = -1", "    WORSE = -70000", "",
            "@struct", "class Item:", "    n: u32", "    short: i16", "    kind: Kind", "    flag: bool", "",
            "@struct", "class Box:", *(f"    {t}_: {t}" for t in INTS), "    real: f32", "    flag: bool", "    kind: Kind", "    code: Code",
            *(f"    a_{t}: Shaped[Array[{t}], 5]" for t in INTS), "    reals: Shaped[Array[f32], 3]", "    grid: Shaped[Array[i16], 3, 4]",
            "    items: Shaped[Array[Item], 4]", "    one: Item", "",
        ]  # fmt: skip
        self.rom: dict[str, str] = {}
        for t in ("u8", "i16", "i32", "u64"):
            self.lines.append(f"ROM_{t.upper()} = rom({t}, {[edge(self.r, t) for _ in range(6)]})")
            self.rom[t] = f"ROM_{t.upper()}"
        self.lines.append("")
        for t in INTS:
            self.lines += ["@fn(pure=True)", f"def fold_{t}(p: Ptr[{t}], n: u32) -> u32:", "    total: u32 = 1", "    for i in range(n):",
                           "        total = wrap(u32, total * 31 + p[i])", "    return total", ""]  # fmt: skip
        self.functions: list[tuple[str, list[str], str]] = []  # name, parameter types, result
        self.helpers: list[tuple[str, list[str], str]] = []
        self.pairs: list[tuple[str, list[str], list[str]]] = []
        for i in range(functions):
            Function(self, i)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class Function:
    """Writes one function at the end of a module."""

    def __init__(self, module: Module, number: int) -> None:
        self.m, self.r = module, module.r
        r = self.r
        self.name = f"fuzz_{number}"
        self.scopes: list[dict[str, str]] = [{}]
        self.fixed: set[str] = set()  # loop variables
        self.arrays: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.counter = 0
        self.depth = 1
        self.loops = 0
        self.called = False
        self.lines: list[str] = []
        self.budget = r.randint(1, 8)
        shape = r.random()
        self.pure = number < 4 or shape < 0.25
        self.box = not self.pure and r.random() < 0.6
        parameters = [self.new(self.pick()) for _ in range(r.randint(1, 4))]
        self.result = r.choice(INTS * 2 + ["f32", "bool"])
        self.second = r.choice(INTS) if not self.pure and r.random() < 0.15 else ""
        annotated = [f"{n}: {self.scopes[0][n]}" for n in parameters]
        kinds = [self.scopes[0][n] for n in parameters]
        if self.box:
            annotated.insert(r.randint(0, len(annotated)), "box: Box")
        order = [a.split(": ")[1] for a in annotated]
        for _ in range(self.budget):
            self.statement()
        if r.random() < 0.1 and self.depth == 1:
            self.put(f"assert {self.boolean(2)}, \"no\"")
        self.finish()
        result = f"tuple[{self.result}, {self.second}]" if self.second else self.result
        module.lines += [f"@fn{'(pure=True)' if self.pure else ''}", f"def {self.name}({', '.join(annotated)}) -> {result}:", *self.lines, ""]
        module.functions.append((self.name, order, self.result))
        if self.pure:
            module.helpers.append((self.name, kinds, self.result))
        if self.second and not self.box:
            module.pairs.append((self.name, kinds, [self.result, self.second]))

    # Names

    def pick(self) -> str:
        return self.r.choice(INTS * 3 + ["f32", "f32", "bool"])

    def fresh(self) -> str:
        if self.r.random() < 0.15:
            name = self.r.choice(NAMES)
            if name not in self.kinds and not any(name in s for s in self.scopes):
                return name
        self.counter += 1
        return f"v{self.counter}"

    def new(self, t: str) -> str:
        name = self.fresh()
        self.scopes[-1][name] = t
        self.kinds[name] = t
        return name

    def reach(self) -> dict[str, str]:
        return {n: t for scope in self.scopes for n, t in scope.items()}

    def variables(self, *types: str, assign: bool = False) -> list[str]:
        return [n for n, t in self.reach().items() if t in types and not (assign and n in self.fixed)]

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # Expressions: text of exactly this type

    def leaf(self, t: str) -> str:
        r = self.r
        choices = self.variables(t)
        if choices and r.random() < 0.75:
            return r.choice(choices)
        if t == "bool":
            if self.box and r.random() < 0.5:
                return r.choice(["box.flag", "box.one.flag"])
            return r.choice(["True", "False"])
        if t == "f32":
            if self.box and r.random() < 0.4:
                return "box.real"
            value = edge_float(r)
            return f"f32({value!r})" if abs(value) < 1e39 else "f32(3.0)"
        if self.box and r.random() < 0.4:
            options = [f"box.{t}_", f"box.a_{t}[{r.randint(0, 4)}]"]
            if t == "i16":
                options += ["box.one.short", f"box.grid[{r.randint(0, 2)}, {r.randint(0, 3)}]", f"box.items[{r.randint(0, 3)}].short"]
            if t == "u32":
                options += ["box.one.n", f"box.items[{r.randint(0, 3)}].n"]
            return r.choice(options)
        if t in self.m.rom and r.random() < 0.3:
            return f"{self.m.rom[t]}[{self.index(6)}]"
        arrays = [n for n, k in self.arrays.items() if k == t]
        if arrays and r.random() < 0.6:
            return f"{r.choice(arrays)}[{self.index(6)}]"
        if choices:
            return r.choice(choices)
        others = self.variables(*INTS)
        if others and r.random() < 0.5:
            other = r.choice(others)
            return f"wrap({t}, {other})"
        return f"{t}({self.small(t)})"

    def small(self, t: str) -> int:
        return min(self.r.randint(0, 12), high(t)) if self.r.random() < 0.6 else edge(self.r, t)

    def index(self, n: int) -> str:
        r = self.r
        names = self.variables(*UNSIGNED)
        if not names or r.random() < 0.3:
            return str(r.randint(0, n - 1))
        name = r.choice(names)
        return r.choice([f"{name} % {n}" if self.reach()[name] != "u64" else f"{name} & 3", f"{name} & 3", f"min({name}, {n - 1})", name if r.random() < 0.1 else f"{name} & 1"])

    def literal(self, t: str) -> str:
        if t == "f32":
            value = edge_float(self.r)
            return repr(value) if abs(value) < 1e39 else "3.5"
        return str(edge(self.r, t))

    def operand(self, t: str, depth: int) -> str:
        """Of type t, or narrower, or a literal: for the second place of an operator."""
        pick = self.r.random()
        if pick < 0.2:
            return self.literal(t)
        if pick < 0.35 and t in BITS:
            narrow = [n for n in INTS if n != t and holds(t, n)]
            if narrow:
                return self.expr(self.r.choice(narrow), depth)
        return self.expr(t, depth)

    def expr(self, t: str, depth: int) -> str:
        if depth <= 0 or self.r.random() < 0.12:
            return self.leaf(t)
        if t == "bool":
            return self.boolean(depth)
        return self.real(depth) if t == "f32" else self.integer(t, depth)

    def call(self, t: str, depth: int) -> str | None:
        found = [h for h in self.m.helpers if h[2] == t]
        if not found:
            return None
        name, kinds, _ = self.r.choice(found)
        return f"{name}({', '.join(self.operand(k, depth - 1) if k != 'bool' else self.expr(k, depth - 1) for k in kinds)})"

    def count(self, t: str, depth: int) -> str:
        """A shift count for t."""
        r, bits = self.r, BITS[t]
        pick = r.random()
        if pick < 0.35:
            return str(r.choice([0, 1, bits // 2, bits - 1, r.randint(0, bits - 1)]))
        u = r.choice(UNSIGNED)
        inner = self.expr(u, depth - 1)
        if pick < 0.8:
            return f"({inner} & {min(bits - 1, 31)})"
        if pick < 0.9:
            return f"min({inner}, {bits - 1})"
        return f"({inner})" if r.random() < 0.5 else f"({bits - 1} - ({inner} & {bits - 1}))"

    def integer(self, t: str, depth: int) -> str:
        r, d = self.r, depth - 1
        pick = r.randint(0, 23)
        if pick <= 6:
            op = r.choice(["+", "-", "*", "&", "|", "^", "+", "-"])
            a, b = self.expr(t, d), self.operand(t, d)
            if op in "+-*" and r.random() < 0.85:
                half = BITS[t] // 2 - 1
                a = f"({a} >> {half + 1})" if r.random() < 0.7 else f"({a} & {(1 << half) - 1})"
                b = b if b.lstrip("-").isdigit() else self.expr(t, d)
                b = b if b.lstrip("-").isdigit() else f"({b} & {(1 << half) - 1})" if op != "-" or t[0] == "i" else f"({b} & 1)"
                if op == "-" and t[0] == "u":
                    a = f"({a} | 1)"
            if r.random() < 0.3 and op != "-":
                a, b = b, a
            return f"({a} {op} {b})"
        if pick == 7:
            op = r.choice(["<<", ">>", ">>"])
            return f"({self.expr(t, d)} {op} {self.count(t, d)})"
        if pick == 8:
            return f"({r.choice('-~') if t[0] == 'i' or r.random() < 0.1 else '~'}{self.expr(t, d)})"
        if pick == 9:
            return f"{r.choice(['min', 'max'])}({self.expr(t, d)}, {self.operand(t, d)})"
        if pick <= 12:
            other = r.choice(INTS)
            inner = self.expr(other, d)
            if inner.startswith(tuple(f"{u}(" for u in INTS)) and inner.rstrip(")").rsplit("(", 1)[-1].lstrip("-").isdigit():
                inner = self.leaf(other)  # constants are converted by the checker
            pick = r.random()
            if pick < 0.4:
                inner = f"({inner} & {min(high(t), high(other))})"
            elif pick < 0.6:
                inner = f"min({inner}, {min(high(t), high(other))})" if low(other) >= low(t) else f"max({inner}, {max(low(t), low(other))})"
            return f"{t}({inner})"
        if pick <= 15:
            return f"wrap({t}, {self.modular(d + 1)})"
        if pick == 16:
            return f"sat({t}, {self.expr(r.choice([*INTS, 'f32']), d)})"
        if pick == 17:
            a, b = self.expr(t, d), self.operand(t, d)
            return f"({a} if {self.boolean(d)} else {b})" if r.random() < 0.6 else f"({b} if {self.boolean(d)} else {a})"
        if pick <= 19:
            divisor = r.choice([self.expr(t, d) if r.random() < 0.3 else f"max({self.expr(t, d)}, 1)", f"({self.expr(t, d)} | 1)", str(r.choice([1, 2, 3, 7, 10, 100]))])
            if t == "u64":
                return f"{r.choice(['div_u64', 'rem_u64'])}({self.expr(t, d)}, {divisor})"
            if t == "i64":
                return f"({self.expr(t, d)} >> {r.randint(0, 63)})"
            if t[0] == "u" and r.random() < 0.6:
                return f"({self.expr(t, d)} {r.choice(['//', '%'])} {divisor})"
            if r.random() < 0.15 and t[0] == "i":
                divisor = "-1"
            return f"{r.choice(['div_floor', 'mod_floor', 'div_trunc', 'rem_trunc'])}({self.expr(t, d)}, {divisor})"
        if pick == 20:
            return (self.fold() if t == "u32" and r.random() < 0.7 else self.call(t, d)) or self.leaf(t)
        if pick == 21:
            if t == "u32" and r.random() < 0.6:
                return f"bits({self.expr('f32', d)})"
            if r.random() < 0.5:
                return f"{t}(max(min({self.real(d)}, 100.0), {0.0 if t[0] == 'u' else -100.0}))"
            return f"sat({t}, {self.real(d)})" if r.random() < 0.7 else f"{t}({self.real(d)})"
        if pick == 22 and self.box:
            if t in ("u8", "i32") and r.random() < 0.4:
                return f"{t}({'box.kind' if t == 'u8' else 'box.code'})"
            if t == "i16" and r.random() < 0.5:
                return f"box.grid[{self.index(3)}, {self.index(4)}]"
            if t == "u32" and r.random() < 0.5:
                return f"box.items[{self.index(4)}].n"
            return f"box.a_{t}[{self.index(5)}]"
        if pick == 23 and t in ("u8", "i32"):
            kind = "Kind" if t == "u8" else "Code"
            if r.random() < 0.2:
                return f"{t}({kind}({self.expr(r.choice(INTS), d)}))"
            return f"{t}(Kind({self.expr(r.choice(INTS), d)} & 1))" if t == "u8" else f"i32(Code.BAD if {self.boolean(d)} else Code.WORSE)"
        return self.leaf(t)

    def fold(self) -> str | None:
        """A pointer to part of something, read by a function."""
        r = self.r
        options = [f"fold_{t}({name}, 6)" for t, name in self.m.rom.items()]
        options += [f"fold_{t}({name}[{self.index(3)}:], 3)" for name, t in self.arrays.items()]
        if self.box:
            t = r.choice(INTS)
            options += [f"fold_{t}(box.a_{t}, {self.index(6)})", f"fold_{t}(box.a_{t}[{self.index(3)} : 5], 2)", f"fold_u8(view(u8, box.a_{t}), {5 * BITS[t] // 8})",
                        f"fold_i16(box.grid[{self.index(3)}, :], 4)", f"fold_i16(box.grid[{self.index(3)}, {self.index(2)}:], 2)", f"fold_u16(view(u16, box.items[{self.index(4)}]), 3)"]  # fmt: skip
        return r.choice(options)

    def modular(self, depth: int) -> str:
        r = self.r
        if depth <= 0 or r.random() < 0.2:
            return self.leaf(r.choice(INTS)) if r.random() < 0.8 else str(r.choice([0, 1, 255, 16777619, 1 << 31, (1 << 64) - 1, -1, -7]))
        pick = r.randint(0, 9)
        if pick <= 5:
            return f"({self.modular(depth - 1)} {r.choice('+-*&|^')} {self.modular(depth - 1)})"
        if pick == 6:
            return f"({r.choice('-~')}{self.modular(depth - 1)})"
        if pick == 7:
            return f"({self.modular(depth - 1)} << {r.choice([str(r.randint(0, 31)), '(' + self.expr(r.choice(UNSIGNED), depth - 1) + ' & 31)'])})"
        return self.expr(r.choice(INTS), depth - 1)

    def real(self, depth: int) -> str:
        r, d = self.r, depth - 1
        pick = r.randint(0, 9)
        if pick <= 4:
            a, b = self.expr("f32", d), self.operand("f32", d)
            if r.random() < 0.3:
                a, b = b, a
            return f"({a} {r.choice('+-*/')} {b})"
        if pick == 5:
            return f"(-{self.expr('f32', d)})"
        if pick == 6:
            return f"{r.choice(['min', 'max'])}({self.expr('f32', d)}, {self.operand('f32', d)})"
        if pick == 7:
            return f"f32({self.expr(r.choice(INTS), d)})"
        if pick == 8:
            return f"from_bits({self.expr('u32', d)} & {0xFF7FFFFF})"
        return f"({self.expr('f32', d)} if {self.boolean(d)} else {self.operand('f32', d)})"

    def boolean(self, depth: int) -> str:
        r, d = self.r, depth - 1
        if depth <= 0:
            return self.leaf("bool")
        pick = r.randint(0, 12)
        if pick <= 6:
            t = r.choice(INTS * 2 + ["f32"])
            a, b = self.expr(t, d), self.operand(t, d)
            if r.random() < 0.3:
                a, b = b, a
            return f"({a} {r.choice(['==', '!=', '<', '<=', '>', '>='])} {b})"
        if pick <= 8:
            return f"({self.boolean(d)} {r.choice(['and', 'or'])} {self.boolean(d)})"
        if pick == 9:
            return f"(not {self.boolean(d)})"
        if pick == 10:
            return f"({self.boolean(d)} {r.choice(['==', '!='])} {self.boolean(d)})"
        if pick == 11:
            names = [n for n, t in self.reach().items() if t in BITS]
            if names:
                name = r.choice(names)
                t = self.reach()[name]
                return f"({self.expr(t, d)} {r.choice(['<', '<='])} {name} {r.choice(['<', '<=', '!='])} {self.operand(t, d)})"
        if self.box and r.random() < 0.5:
            return f"(box.kind {r.choice(['==', '!='])} Kind.{r.choice('ABC')})"
        return self.leaf("bool")

    # Statements

    def finish(self) -> None:
        values = [self.expr(self.result, 3)]
        if self.second:
            values.append(self.expr(self.second, 2))
        self.put("return " + ", ".join(values))

    def block(self, inside: Callable[[], None] | None = None) -> None:
        self.depth += 1
        self.scopes.append({})
        start = len(self.lines)
        if inside is not None:
            inside()
        for _ in range(self.r.randint(1, 3)):
            self.statement()
        if len(self.lines) == start:
            self.put("pass")
        self.scopes.pop()
        self.depth -= 1

    def loop(self, inside: Callable[[], None] | None = None) -> None:
        self.loops += 1
        self.block(inside)
        self.loops -= 1

    def statement(self) -> None:
        r = self.r
        pick = r.randint(0, 19)
        deep = self.depth > 3
        if pick <= 4:
            t = self.pick()
            value = self.expr(t, 3)
            name = self.new(t)
            if r.random() < 0.6 or self.is_literal(value):
                text = f"{name}: {t} = {self.literal(t) if t != 'bool' and r.random() < 0.1 else value}"
            else:
                text = f"{name} = {value}"
            self.put(text)
        elif pick <= 7:
            names = [n for n in self.reach() if n not in self.fixed]
            if names:
                name = r.choice(names)
                t = self.reach()[name]
                if r.random() < 0.5 and t != "bool":
                    self.augment(name, t)
                else:
                    value = self.expr(t, 3)
                    if value != name:
                        self.put(f"{name} = {value}")
        elif pick == 8 and self.box:
            t = r.choice(INTS)
            place = r.choice([f"box.{t}_", f"box.a_{t}[{self.index(5)}]"])
            if r.random() < 0.5:
                self.augment(place, t)
            else:
                value = self.expr(t, 3)
                self.put(f"{place} = {value}" if value != place else f"{place} = {self.literal(t)}")
        elif pick == 9 and self.box:
            self.put(r.choice([
                f"box.grid[{self.index(3)}, {self.index(4)}] = {self.expr('i16', 2)}",
                f"box.items[{self.index(4)}].n = {self.expr('u32', 2)}",
                f"box.one.short = ~{self.expr('i16', 2)}", f"box.kind = Kind({self.expr('u8', 2)} & 1)", f"box.code = Code.BAD if {self.boolean(2)} else Code.OK",
                f"box.flag = not {self.boolean(2)}", f"box.real = -{self.expr('f32', 2)}", "copy(box.one, box.items[1])", "copy(box.a_u8, box.a_u8)",
                f"fill(box.a_u16, {self.expr('u16', 1)}, {r.randint(0, 5)})", "move(box.a_i32[1:], box.a_i32, 4)",
            ]))  # fmt: skip
        elif pick <= 11 and not deep:
            self.put(f"if {self.boolean(2)}:")
            self.block(self.early if r.random() < 0.2 else None)
            if r.random() < 0.3:
                self.put(f"elif {self.boolean(2)}:")
                self.block()
            if r.random() < 0.5:
                self.put("else:")
                self.block()
        elif pick <= 14 and not deep and self.loops < 2:
            self.for_loop()
        elif pick == 15 and not deep and self.loops < 2:
            t = r.choice(INTS)
            name = self.new(t)
            self.put(f"{name}: {t} = 0")
            self.fixed.add(name)
            self.put(f"while {name} < {r.randint(1, 6)} and {self.boolean(1)}:" if r.random() < 0.5 else f"while {name} < {r.randint(1, 6)}:")
            self.loop(lambda: self.put(f"{name} += 1"))
        elif pick == 16 and not deep:
            self.match()
        elif pick == 17 and self.depth == 1 and len(self.arrays) < 2:
            t = r.choice(INTS)
            self.counter += 1
            name = f"buf{self.counter}"
            self.put(f"{name} = local({t}, 6)")
            self.arrays[name] = t
            self.put(f"fill({name}, {self.expr(t, 1)}, 6)" if r.random() < 0.3 else f"{name}[{self.index(6)}] = {self.expr(t, 2)}")
        elif pick == 18 and self.m.pairs and not self.pure:
            name, kinds, results = r.choice(self.m.pairs)
            args = ", ".join(self.expr(k, 1) for k in kinds)
            targets = []
            for t in results:
                old = [n for n in self.variables(t, assign=True) if n not in targets]
                targets.append(r.choice(old) if old and r.random() < 0.5 else "_" if r.random() < 0.2 else self.new(t))
            self.put(f"{targets[0]}, {targets[1]} = {name}({args})")
        elif pick == 19 and self.loops and r.random() < 0.5:
            self.put(f"if {self.boolean(1)}:")
            self.depth += 1
            self.put(r.choice(["break", "continue"]))
            self.depth -= 1

    def is_literal(self, text: str) -> bool:
        return text.lstrip("(-").split("(")[0] in ("",) or text.lstrip("(-")[0].isdigit()

    def early(self) -> None:
        if self.r.random() < 0.5:
            return
        self.put(f"if {self.boolean(1)}:")
        self.depth += 1
        self.finish()
        self.depth -= 1

    def augment(self, place: str, t: str) -> None:
        r = self.r
        if t == "f32":
            self.put(f"{place} {r.choice('+-*/')}= {self.operand('f32', 2)}")
            return
        op = r.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "+", "-"] + (["//", "%"] if t in SMALL else []))
        value = self.count(t, 2) if op in ("<<", ">>") else f"({self.expr(t, 2)} | 1)" if op in ("//", "%") else r.choice(["1", self.operand(t, 2)])
        if op in ("+", "-", "*", "<<") and r.random() < 0.6:
            self.put(f"{place} = wrap({t}, {place} {op} {value})")
        else:
            self.put(f"{place} {op}= {value}")

    def for_loop(self) -> None:
        r = self.r
        if self.box and r.random() < 0.2:
            self.counter += 1
            name = f"item{self.counter}"
            bound = r.choice(["", "[:box.u8_]", "[:2]", "[:box.u32_ & 3]"])
            self.put(f"for {name} in box.items{bound}:")

            def inside() -> None:
                self.put(r.choice([f"{name}.n = wrap(u32, {name}.n + {self.operand('u32', 1)})", f"{name}.short = {self.expr('i16', 1)}"]))

            self.loop(inside)
            return
        name = self.fresh()
        if any(name in s for s in self.scopes) or name in self.kinds:
            return
        pick = r.random()
        if pick < 0.35:
            a, b, step = r.randint(0, 10), r.randint(0, 20), r.choice([1, 1, 2, 3, -1, -2, -3])
            t = "u32"
            bounds = f"{a}, {b}, {step}" if step > 0 else f"{b}, {a}, {step}"
            if r.random() < 0.2:
                bounds, t = f"{b}, -1, {r.choice([-1, -2, -4])}", "i32"
        else:
            t = r.choice(INTS)
            top = self.leaf(t)
            span = f"min({self.leaf(t)}, {r.randint(0, 6)})"
            bounds = r.choice([span, f"{low(t) if t[0] == 'i' and r.random() < .2 else 0}, {span}", f"{span}, {r.randint(0, 9)}, {r.choice([1, 2, 3])}", f"{span}, 0, {r.choice([-1, -2])}",
                               f"max({top}, {high(t) - 9}), {high(t) - r.randint(0, 3)}, {r.choice([1, 2, 5])}", f"0, {span}, 2", f"0, {span} & 7, 3"])  # fmt: skip
            if t[0] == "i" and "0, -" in bounds or bounds.startswith(f"{low(t)},") and low(t):
                bounds = f"-2, {span}"
            if t[0] == "i":
                bounds = bounds.replace(f"min({top}", f"min({top}")
                if r.random() < 0.7:
                    bounds = f"{r.randint(-5, 0)}, {span}"
        self.put(f"for {name} in range({bounds}):")
        self.kinds[name] = t

        def inside() -> None:
            self.scopes[-1][name] = t
            self.fixed.add(name)
            if t[0] == "i":
                self.put(f"if {name} > 20 or {name} < -20:")
                self.depth += 1
                self.put("break")
                self.depth -= 1

        self.loop(inside)

    def match(self) -> None:
        r = self.r
        if self.box and r.random() < 0.4:
            self.put("match box.kind:")
            cases = ["Kind.A", "Kind.B | Kind.C"] if r.random() < 0.5 else ["Kind.C", "_"]
        else:
            names = self.variables(*INTS)
            if not names:
                return
            name = r.choice(names)
            t = self.reach()[name]
            values = list(dict.fromkeys(edge(r, t) for _ in range(4)))
            self.put(f"match {name if r.random() < 0.6 else f'{name} & 3'}:")
            cases = [str(v) for v in values[:-1]]
            if len(values) > 2:
                cases = [f"{values[0]} | {values[1]}", *map(str, values[2:-1])]
            cases = cases or [str(values[0])]
            if r.random() < 0.6:
                cases.append("_")
        self.depth += 1
        for case in cases:
            self.put(f"case {case}:")
            self.block()
            if self.loops and r.random() < 0.25:
                self.depth += 1
                self.put(r.choice(["break", "continue"]))
                self.depth -= 1
        self.depth -= 1


# Running -------------------------------------------------------------------------------------------------------------


class Found(Exception):
    """A disagreement."""


def load(path: Path) -> Any:
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def random_struct(r: random.Random, kind: Any) -> bytes:
    def value(t: Any) -> Any:
        if isinstance(t, StructType):
            return {f.name: value(f.type) for f in t.fields}
        if isinstance(t, ArrayType):
            return [value(t.element) for _ in range(t.count)]
        if isinstance(t, EnumType):
            return r.choice(list(t.members.values()))
        assert isinstance(t, Scalar)
        if t.kind == "bool":
            return r.random() < 0.5
        return edge_float(r) if t.kind == "float" else edge(r, t.name)

    made = layout.of(kind)
    out = bytearray(made.size)
    layout.store(out, 0, made, value(made))
    return bytes(out)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float):
        return _struct.pack("<f", a) == _struct.pack("<f", b) or (a != a and b != b)
    return bool(a == b) and type(a) is type(b)


def engines(build: Build, zig: bool) -> list[tuple[str, Any, bool]]:
    """(name, engine, whether its C traps where checked Python does) of all that this machine has."""
    out: list[tuple[str, Any, bool]] = []
    for target, name in (("host", "native"), ("cortex-m33", "cortex-m")):
        for chain in toolchain.find_all(target):
            if chain.is_zig and not zig:
                continue
            options: dict[str, Any] = {"compiler": chain.name}
            label = f"{name} {chain.name}"
            if chain.is_zig and name == "native":
                options["sanitize"] = ("undefined",)
                label += " ubsan"
            out.append((label, build.engine(name, **options), False))
        if toolchain.find_all(target):
            first = toolchain.find_all(target)[0]
            out.append((f"{name} {first.name} checks", build.engine(name, checks=True, compiler=first.name), True))
    return out


def run_round(seed: int, functions: int, calls: int, folder: Path, *, zig: bool = True, log: Path | None = None) -> tuple[int, int]:
    """One module on all engines: (calls, of them trapped). Raises Found, or what the compilers raise."""
    made = Module(seed, functions)
    lines = made.text().split("\n")
    name = f"fuzz_module_{seed}"
    for attempt in range(20):
        path = folder / f"{name}_{attempt}.py"
        path.write_text("\n".join(lines) + "\n")
        module = load(path)
        roots = [getattr(module, n) for n, _, _ in made.functions if hasattr(module, n)]
        build = Build(roots)
        try:
            build.program()
            break
        except LanguageError as error:
            # The generator knows the rules but roughly: leave the functions out that the checker refuses.
            if os.environ.get("FUZZ_REFUSED"):
                print(error, file=sys.stderr)
            bad = {m.pos.line for m in error.messages}
            lines = without(lines, bad)
    else:
        raise Found("twenty attempts and the module is still refused")
    program = build.program()
    kept = [f for f in made.functions if hasattr(module, f[0])]
    checked = build.engine("checked")
    others = engines(build, zig)
    r = random.Random(seed + 1)
    total = trapped = 0
    for fn_name, parameters, _ in kept:
        function = getattr(module, fn_name)
        for _ in range(calls):
            content = random_struct(r, module.Box)
            values = [None if p == "Box" else edge_float(r) if p == "f32" else r.random() < 0.5 if p == "bool" else edge(r, p) for p in parameters]

            def run(engine: Any, values: list[Any] = values, parameters: list[str] = parameters, content: bytes = content, function: Any = function) -> tuple[Any, bytes, int]:
                box = engine.new(module.Box)
                engine.write(box._address, content)
                try:
                    got = engine(function, *[box if p == "Box" else v for v, p in zip(values, parameters, strict=True)])
                except Trap as trap:
                    return None, b"", trap.line
                return got, bytes(box), 0

            want = run(checked)
            total += 1
            trapped += want[2] != 0
            for label, engine, checks in others:
                if want[2] and not checks:
                    continue
                if log is not None and "ubsan" in label:
                    log.write_text(f"seed {seed}: {label}: {fn_name}{values} Box={content.hex()}\n")
                got = run(engine)
                first, end = extent(lines, fn_name)
                if want[2] and got[2] and not (first < want[2] <= end and first < got[2] <= end):
                    continue  # two operands trap, one of them in a callee: C may begin with either
                if want[2] != got[2] or (not want[2] and not (same(want[0], got[0]) and want[1] == got[1])):
                    text = "\n".join(f"{i + 1:5} {line}" for i, line in enumerate(lines[first:end], first))
                    changed = [(f, a, b) for (f, a), b in zip(fields(module.Box, want[1]), (v for _, v in fields(module.Box, got[1])), strict=False) if not same(a, b)]
                    raise Found(f"seed {seed}: {fn_name}{tuple(values)}: checked {want[0]!r} line {want[2]}, {label} {got[0]!r} line {got[2]} {changed}\n"
                                f"{text}\n  in {path}; Box {content.hex()}")  # fmt: skip
    del program
    return total, trapped


def fields(kind: Any, data: bytes) -> list[tuple[str, Any]]:
    return list(layout.unpack(kind, data).items()) if data else []


def extent(lines: list[str], name: str) -> tuple[int, int]:
    first = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}(")) - 1
    end = first + 2
    while end < len(lines) and lines[end].startswith("    "):
        end += 1
    return first, end


def without(lines: list[str], bad: set[int]) -> list[str]:
    """Without the functions that hold these lines, nor those that call them."""
    gone = []
    out = list(lines)
    starts = [i for i, line in enumerate(lines) if line.startswith("@fn")]
    for start in starts:
        name = lines[start + 1].split("(")[0].removeprefix("def ")
        first, end = extent(lines, name)
        text = "\n".join(lines[first + 1 : end])
        if any(first < n <= end for n in bad) or any(f" {g}(" in text or f"({g}(" in text or f"-{g}(" in text or f"~{g}(" in text for g in gone):
            gone.append(name)
            for i in range(first, end):
                out[i] = ""
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--no-zig", action="store_true")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time())
    failures = total = trapped = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        # What is built here is of no use to the next run.
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache") if "FUZZ_CACHE" not in os.environ else os.environ["XDG_CACHE_HOME"]
        zig_cache = Path.home() / ".cache" / "synapticos" / "zig"
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(zig_cache))
        os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", str(zig_cache))
        for i in range(args.rounds):
            start = time.time()
            try:
                n, t = run_round(seed + i, args.functions, args.calls, folder, zig=not args.no_zig, log=folder / "last-call")
                total, trapped = total + n, trapped + t
                print(f"seed {seed + i}: {n} calls, {t} trapped, {time.time() - start:.1f} s", flush=True)
            except Found as found:
                failures += 1
                print(found, flush=True)
            except Exception as error:  # noqa: BLE001 - whatever a compiler says of our code is found too
                failures += 1
                print(f"seed {seed + i}: {type(error).__name__}: {str(error)[:3000]}", flush=True)
                if "FUZZ_TRACE" in os.environ:
                    traceback.print_exc()
    print(f"{args.rounds} rounds, {total} calls, {trapped} trapped, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
