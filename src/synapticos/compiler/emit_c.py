"""The typed tree to C99, freestanding, line for line with the Python.

Expressions come with their precedence, so that parentheses stand where gcc's -Wall wants them and nowhere else.
`checks` makes the build that traps where checked CPython would.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from synapticos.lang.reserved import WORDS, c_name, taken
from synapticos.lang.types import (
    BOOL,
    F32,
    U32,
    VOID,
    ArrayType,
    EnumType,
    FnType,
    OptType,
    PtrType,
    Scalar,
    StructType,
    TupleType,
    Type,
)
from synapticos.lang.words import Function, Param, Rom, Static, Table

from . import ir
from .emit_checked import scalar, unit
from .parse import source
from .program import Program

_C = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t",
      "i64": "int64_t", "f32": "float", "bool": "bool"}  # fmt: skip
_PREC = {"*": 13, "/": 13, "//": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10,
         "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "and": 5, "or": 4}  # fmt: skip
_WORD = {"+": "add", "-": "sub", "*": "mul", "<<": "shl"}
POSTFIX, UNARY, COND, LOW = 15, 14, 3, 0


def ctype(kind: Type) -> str:
    """The C type of a value, parameter or pointer."""
    if isinstance(kind, OptType):
        return ctype(kind.inner)
    if isinstance(kind, Scalar):
        return _C[kind.name]
    if isinstance(kind, EnumType):
        return kind.name
    if isinstance(kind, StructType):
        return kind.name + " *"
    if isinstance(kind, (PtrType, ArrayType)):
        element = kind.element
        return (element.name + " *") if isinstance(element, StructType) else _star(ctype(element))
    return "void"


def _star(text: str) -> str:
    return text + "*" if text.endswith("*") else text + " *"


def declare(kind: Type, name: str) -> str:
    text = ctype(kind)
    return text + name if text.endswith("*") else f"{text} {name}"


def number(value: int, kind: Scalar) -> str:
    if kind.name == "u32":
        return f"{value}u"
    if kind.name == "u64":
        return f"{value}ull"
    if kind.name == "i64":
        return f"{value}ll" if value > -(1 << 63) else "(-9223372036854775807ll - 1)"
    return str(value) if value > -(1 << 31) else "(-2147483647 - 1)"


def real(value: float) -> str:
    if value != value:
        return '__builtin_nanf("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    text = f"{value:.9g}"
    for digits in range(1, 10):
        short = f"{value:.{digits}g}"
        from .expr import round_f32

        if round_f32(float(short)) == value:
            text = short
            break
    return (text if any(c in text for c in ".e") else text + ".0") + "f"


class Names:
    """Macros and symbols of one emitted program."""

    def __init__(self, program: Program, checks: bool) -> None:
        self.program, self.checks = program, checks
        self.macros: dict[str, tuple[Any, str]] = {}
        self._symbols: dict[str, Any] = {}
        self._named: dict[Any, str] = {}
        modules = {id(f.globals): f.globals for f in program.functions}.values()
        # What may become a macro, in any module: nothing else may have these names.
        self.constants = {n for m in modules for n, v in m.items() if _loud(n) and isinstance(v, (int, float, Param)) and not isinstance(v, Enum)}
        self.globals = {f.c_name for f in program.functions} | {t.name for t in [*program.types.structs, *program.types.enums]}

    def macro(self, name: str, value: Any, kind: Scalar, text: str) -> str:
        """The name of a constant, defined as a macro; its text where another module has the name for something else."""
        if not name or not _loud(name) or taken(name) or name in self.globals or name in self._symbols:
            return text
        found = self.macros.setdefault(name, (value, text))
        return name if found == (value, text) else text

    def symbol(self, thing: Rom | Static | Table) -> str:
        """The C name of a module's table or storage: its own, or with its module's before it where two modules share it."""
        if thing not in self._named:
            name = getattr(thing, "given_name", "") or c_name(thing.name)
            if name in self._symbols or name in self.constants or name in self.globals:
                name = f"{thing.place.module.removeprefix('synapticos.').replace('.', '_')}_{name}"
            while name in self._symbols or name in self.globals:
                name += "_"
            self._symbols[name] = thing
            self._named[thing] = name
        return self._named[thing]

    def field(self, name: str) -> str:
        return name + "_" if name in WORDS or name in self.constants or taken(name) and _loud(name) else name

    def local(self, name: str) -> str:
        """A local's name, out of the way of all that C knows at file level."""
        reserved = name.startswith("_") or taken(name) or name in self.constants or name in self.globals
        return name + "_" if reserved or _loud(name) and name in self._symbols else name


class FunctionEmitter:
    """C of one function, as (line, depth, text) pieces; those of line 0 are closing braces, which go where there is room."""

    def __init__(self, names: Names, made: ir.FnIR) -> None:
        self.names, self.made = names, made
        self.pieces: list[tuple[int, int, str]] = []  # line, depth, text
        self.depth = 0
        self.temps = 0
        self.file = names.program.file_id(made.function.file)
        self.lines = source(made.function.file).lines
        self.read = _read(made.body)
        self.spelled: dict[str, str] = {}
        for name in [p.name for p in made.parameters] + _born(made.body):
            spelled = names.local(name)
            while spelled in self.spelled.values() and name not in self.spelled:
                spelled += "_"
            self.spelled.setdefault(name, spelled)
        self.used = set(self.spelled.values())
        self.storage: list[str] = []

    def put(self, line: int, text: str) -> None:
        self.pieces.append((line, self.depth, text))

    def close(self) -> None:
        self.depth -= 1
        self.pieces.append((0, self.depth, "}"))

    def heading(self, word: str, first: int, after: int) -> int:
        """The line of an `else` or `case _` whose block begins at line `first`: Python's tree does not say."""
        lines = self.lines
        return next((n for n in range(first, after, -1) if lines[n - 1].lstrip().startswith(word)), first)

    def temp(self, word: str) -> str:
        self.temps += 1
        return self.unique(f"{word}_{self.temps}")

    def unique(self, name: str) -> str:
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name

    def at(self, e: ir.Expr | ir.Stmt) -> str:
        return f"{self.file}, {e.pos.line}"

    def local(self, x: ir.Local) -> str:
        return self.spelled[x.name]

    # Functions

    def signature(self) -> str:
        return signature(self.names, self.made.function, [self.local(p) for p in self.made.parameters])

    def run(self) -> list[tuple[int, int, str]]:
        self.put(self.made.pos.line, self.signature() + " {")
        self.depth += 1
        unused = [p for p in self.made.parameters if p not in self.read]
        head = " ".join(f"(void){self.local(p)};" for p in unused)
        start = len(self.pieces)
        self.body(self.made.body)
        if self.storage:
            head = " ".join([head, *self.storage]).strip()
        if head:
            self.pieces.insert(start, (self.made.pos.line + 1, 1, head))
        self.close()
        return self.pieces

    def body(self, body: list[ir.Stmt]) -> None:
        for s in body:
            getattr(self, "s_" + type(s).__name__)(s)

    # Statements

    def s_Declare(self, s: ir.Declare) -> None:
        name = self.local(s.local)
        if isinstance(s.value, ir.Storage):
            kind = s.value.type
            store = self.unique(name + "_storage")
            if isinstance(kind, ArrayType):
                element = kind.element.name if isinstance(kind.element, StructType) else ctype(kind.element)
                # Bytes may be viewed as words: checked memory is aligned for any of them.
                align = " __attribute__((aligned(8)))" if kind.element.align < 8 <= kind.size else ""
                self.storage.append(f"{element}{'' if element.endswith('*') else ' '}{store}[{max(kind.count, 1)}]{align};")
                text = self.cleared(declare(kind, name), store, s.value.zero)
            else:
                self.storage.append(f"{kind.name} {store};")
                text = self.cleared(declare(kind, name), "&" + store, s.value.zero)
        else:
            text = f"{declare(s.local.type, name)} = {self.value(s.value)};"
        if s.local not in self.read:
            text += f" (void){name};"
        self.put(s.pos.line, text)

    def cleared(self, head: str, store: str, zero: bool) -> str:
        """Not zeroed, it holds 0xA5 in builds with checks, as in checked runs: a read of what nobody wrote is then seen."""
        if not zero and not self.names.checks:
            return f"{head} = {store};"
        return f"{head} = __builtin_memset({store}, {0 if zero else '0xA5'}, sizeof {store.lstrip('&')});"

    def s_Assign(self, s: ir.Assign) -> None:
        target = self.e(s.target)[0]
        if s.augmented and isinstance(s.value, ir.Bin) and s.value.op not in ("//", "%") and not (self.names.checks and s.value.checked):
            value = s.value
            signed_shift = value.op == "<<" and isinstance(value.type, Scalar) and value.type.signed
            if value.type.size >= 4 and not signed_shift:
                one = isinstance(value.b, ir.Const) and value.b.value == 1 and value.type is not F32
                if one and value.op in "+-":
                    self.put(s.pos.line, f"{target}{value.op * 2};")
                else:
                    self.put(s.pos.line, f"{target} {value.op}= {self.value(value.b)};")
                return
        self.put(s.pos.line, f"{target} = {self.value(s.value)};")

    def s_Unpack(self, s: ir.Unpack) -> None:
        items = s.call.type.items if isinstance(s.call.type, TupleType) else (s.call.type,)
        outs: list[str] = []
        for target, kind in list(zip(s.targets, items, strict=True))[1:]:
            if target is None:
                name = self.temp("unused")
                self.put(s.pos.line, f"{declare(kind, name)};")
                outs.append("&" + name)
            else:
                reference, new = target
                assert isinstance(reference, ir.LocalRef)
                name = self.local(reference.local)
                if new:
                    void = "" if reference.local in self.read else f" (void){name};"
                    self.put(s.pos.line, f"{declare(reference.local.type, name)};{void}")
                outs.append("&" + name)
        call = self.call(s.call, outs)
        first = s.targets[0]
        if s.check:
            name = self.temp("status")
            self.put(s.pos.line, f"const {declare(items[0], name)} = {call};")
            self.put(s.pos.line, f"if ({name} != 0) {{ {self.leave(s, name)} }}")
        elif first is None:
            self.put(s.pos.line, f"(void){call};")
        else:
            reference, new = first
            assert isinstance(reference, ir.LocalRef)
            name = self.local(reference.local)
            self.put(s.pos.line, f"{declare(reference.local.type, name) if new else name} = {call};")
            if reference.local not in self.read:
                self.put(s.pos.line, f"(void){name};")

    def leave(self, s: ir.Unpack, status: str) -> str:
        if not isinstance(s.result, TupleType):
            return f"return {status};"
        zeros = " ".join(f"*out_{i} = {self.zero(t)};" for i, t in enumerate(s.result.items) if i)
        return f"{zeros} return {status};"

    def zero(self, kind: Type) -> str:
        return "false" if kind is BOOL else "0.0f" if kind is F32 else "0" if scalar(kind) else "NULL"

    def s_Do(self, s: ir.Do) -> None:
        self.put(s.pos.line, (self.call(s.call, []) if isinstance(s.call, (ir.Call, ir.TableCall)) else self.value(s.call)) + ";")

    def s_If(self, s: ir.If, word: str = "if") -> None:
        self.put(s.pos.line, f"{word} ({self.value(s.test)}) {{")
        self.depth += 1
        self.body(s.body)
        if len(s.orelse) == 1 and isinstance(s.orelse[0], ir.If):
            self.depth -= 1
            self.s_If(s.orelse[0], "} else if")
            return
        if s.orelse:
            self.depth -= 1
            self.put(self.heading("else", s.orelse[0].pos.line, s.body[-1].pos.line), "} else {")
            self.depth += 1
            self.body(s.orelse)
        self.close()

    def s_While(self, s: ir.While) -> None:
        self.put(s.pos.line, f"while ({self.value(s.test)}) {{")
        self.depth += 1
        self.body(s.body)
        self.close()

    def stable(self, e: ir.Expr, body: list[ir.Stmt]) -> bool:
        return isinstance(e, ir.Const) or (isinstance(e, ir.LocalRef) and e.local not in _assigned(body)) or (
            isinstance(e, ir.Convert) and e.kind == "widen" and self.stable(e.a, body))  # fmt: skip

    def counted(self, s: ir.ForRange) -> None:
        """A loop whose variable would pass its type at the end: count its rounds instead."""
        kind = s.local.type
        assert isinstance(kind, Scalar)
        name, word = self.local(s.local), "uint64_t" if kind.size == 8 else "uint32_t"
        k, width = self.temp("k"), ctype(kind)
        size = abs(s.step)
        if isinstance(s.start, ir.Const) and isinstance(s.stop, ir.Const):
            first, rounds = self.value(s.start), f"{len(range(s.start.value, s.stop.value, s.step))}u"
            self.put(s.pos.line, f"for ({word} {k} = 0; {k} < {rounds}; {k}++) {{")
        else:
            first, last = self.unique(name + "_start"), self.unique(name + "_stop")
            low, high = (first, last) if s.step > 0 else (last, first)
            self.put(s.pos.line, f"{{ const {width} {first} = {self.value(s.start)}, {last} = {self.value(s.stop)};")
            self.depth += 1
            rounds = f"{low} < {high} ? (({word}){high} - ({word}){low} - 1) / {size} + 1 : 0"
            self.put(s.pos.line, f"for ({word} {k} = 0, {k}_end = {rounds}; {k} < {k}_end; {k}++) {{")
        self.put(s.pos.line, f"const {width} {name} = ({width})({first} {'+' if s.step > 0 else '-'} ({width})({k} * {size}));")
        if s.local not in self.read:
            self.put(s.pos.line, f"(void){name};")
        self.depth += 1
        self.body(s.body)
        self.close()
        if not isinstance(s.start, ir.Const) or not isinstance(s.stop, ir.Const):
            self.close()

    def s_ForRange(self, s: ir.ForRange) -> None:
        name = self.local(s.local)
        kind = s.local.type
        assert isinstance(kind, Scalar)
        constant = isinstance(s.stop, ir.Const)
        empty = isinstance(s.stop, ir.Const) and isinstance(s.start, ir.Const) and not len(range(s.start.value, s.stop.value, s.step))
        past = (s.stop.lo + s.step + 1, s.stop.hi + s.step - 1)[s.step > 0]  # the furthest that the variable goes
        if abs(s.step) != 1 and (constant or s.step < 0) and not kind.low <= past <= kind.high:
            self.counted(s)
            return
        stop, extra = self.operand(s.stop, 11), ""
        unsure = self.names.checks and s.step > 1 and not constant
        if not self.stable(s.stop, s.body) or (unsure and not isinstance(s.stop, ir.LocalRef)):
            end = self.unique(name + "_end")
            extra, stop = f", {end} = {self.value(s.stop)}", end
        step = f"{name}++" if s.step == 1 else f"{name}--" if s.step == -1 else f"{name} += {s.step}" if s.step > 0 else f"{name} -= {-s.step}"
        if abs(s.step) != 1 and kind.size < 4:
            step = f"{name} = ({ctype(kind)})({name} {'+' if s.step > 0 else '-'} {abs(s.step)})"
        if unsure:
            extra += f", {name}_fits = syn_loop_{kind.name}({stop}, {number(kind.high - s.step + 1, kind)}, {self.at(s)})"
        test = f"{name} {'<' if s.step > 0 else '>'} {stop}"
        if empty:
            test = "false"
        first = str(s.start.value) if isinstance(s.start, ir.Const) and not s.start.name and abs(s.start.value) < 1 << 31 else self.value(s.start)
        self.put(s.pos.line, f"for ({ctype(kind)} {name} = {first}{extra}; {test}; {step}) {{")
        self.depth += 1
        if unsure:
            self.put(s.pos.line, f"(void){name}_fits;")
        if empty and s.local not in self.read:
            self.put(s.pos.line, f"(void){name};")
        self.body(s.body)
        self.close()

    def s_ForEach(self, s: ir.ForEach) -> None:
        name = self.local(s.local)
        last, kind = self.unique(name + "_end"), s.local.type
        count = self.operand(s.count, 13)
        if self.names.checks and isinstance(s.base.type, ArrayType) and not isinstance(s.count, ir.Const):
            count = f"syn_most({self.value(s.count)}, {s.base.type.count}u, {self.at(s)})"
        self.put(s.pos.line, f"for ({kind.name} *{name} = {self.value(s.base)}, *{last} = {name} + {count}; {name} < {last}; {name}++) {{")
        self.depth += 1
        self.body(s.body)
        self.close()

    def s_Match(self, s: ir.Match) -> None:
        if any(_jumps(body) for _, body in s.cases):
            self.match_as_ifs(s)
            return
        self.put(s.pos.line, f"switch ({self.value(s.subject)}) {{")
        for values, body in s.cases:
            line = values[0].pos.line if values else self.heading("case", body[0].pos.line, s.pos.line)
            labels = " ".join(f"case {self.value(v)}:" for v in values) or "default:"
            if all(isinstance(x, ir.Jump) and x.word == "pass" for x in body):
                self.put(line, labels + " break;")
                continue
            self.put(line, labels + " {")
            self.depth += 1
            self.body(body)
            from .check import ends

            if not ends(body):
                self.put(body[-1].pos.line if body else line, "break;")
            self.close()
        if all(values for values, _ in s.cases):
            self.put(s.pos.line, "default: break;")
        self.depth += 1
        self.close()

    def match_as_ifs(self, s: ir.Match) -> None:
        name = self.temp("subject")
        self.put(s.pos.line, f"const {declare(s.subject.type, name)} = {self.value(s.subject)};")
        word = "if"
        for values, body in s.cases:
            line = values[0].pos.line if values else self.heading("case", body[0].pos.line, s.pos.line)
            tests = " || ".join(f"{name} == {self.value(v)}" for v in values)
            self.put(line, f"{word} ({tests}) {{" if values else word.replace(" if", " {").replace("if", "{"))
            self.depth += 1
            self.body(body)
            self.depth -= 1
            word = "} else if"
        self.depth += 1
        self.close()

    def s_Return(self, s: ir.Return) -> None:
        if not s.values:
            self.put(s.pos.line, "return;")
            return
        if len(s.values) == 1 and isinstance(s.values[0].type, TupleType):
            kind = s.values[0].type
            self.put(s.pos.line, f"return {self.call(s.values[0], [f'out_{i}' for i in range(1, len(kind.items))])};")
            return
        outs = [f"*out_{i} = {self.value(v)};" for i, v in enumerate(s.values) if i]
        first = self.value(s.values[0])
        if outs and not isinstance(s.values[0], (ir.Const, ir.LocalRef)):
            name = self.temp("result")
            self.put(s.pos.line, f"const {declare(self.made.result.items[0], name)} = {first}; {' '.join(outs)} return {name};")  # type: ignore[attr-defined]
        else:
            self.put(s.pos.line, " ".join([*outs, f"return {first};"]))

    def s_Jump(self, s: ir.Jump) -> None:
        if s.word != "pass":
            self.put(s.pos.line, s.word + ";")

    def s_Assert(self, s: ir.Assert) -> None:
        self.put(s.pos.line, f"if ({self.inverse(s.test)[0]}) {{ syn_panic({self.at(s)}); }}")

    def inverse(self, e: ir.Expr) -> tuple[str, int]:
        """`not e`, by the opposite comparison where there is one."""
        opposite = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
        if isinstance(e, ir.Compare) and e.a.type is not F32:
            made = ir.Compare(e.pos, e.type, opposite[e.op], e.a, e.b)
            return self.e(made)
        if isinstance(e, ir.IsNone):
            return self.e(ir.IsNone(e.pos, e.type, e.a, not e.negate))
        if isinstance(e, ir.Not):
            return self.e(e.a)
        return "!" + self.operand(e, UNARY), UNARY

    # Expressions: (text, precedence)

    def value(self, e: ir.Expr) -> str:
        return self.e(e)[0]

    def operand(self, e: ir.Expr, least: int) -> str:
        text, precedence = self.e(e)
        return f"({text})" if precedence < least else text

    def e(self, e: ir.Expr) -> tuple[str, int]:
        return getattr(self, "e_" + type(e).__name__)(e)

    def e_Const(self, e: ir.Const) -> tuple[str, int]:
        kind = e.type
        if isinstance(kind, EnumType):
            text = next((f"{kind.name.upper()}_{n}" for n, v in kind.members.items() if n == e.name or (not e.name and v == e.value)), str(e.value))
            return text, POSTFIX
        assert isinstance(kind, Scalar)
        if kind is BOOL:
            return ("true" if e.value else "false"), POSTFIX
        if kind is F32:
            return self.names.macro(e.name, e.value, kind, real(e.value)), POSTFIX if e.value >= 0 else UNARY
        text = number(e.value, kind)
        named = self.names.macro(e.name, e.value, kind, text if e.value >= 0 else f"({text})") if e.name else text
        return named, POSTFIX if e.value >= 0 or named != text or text[0] == "(" else UNARY

    def e_LocalRef(self, e: ir.LocalRef) -> tuple[str, int]:
        return self.local(e.local), POSTFIX

    def e_GlobalRef(self, e: ir.GlobalRef) -> tuple[str, int]:
        name = self.names.symbol(e.thing)
        return ("&" + name, UNARY) if isinstance(e.type, StructType) else (name, POSTFIX)

    def e_NoneRef(self, e: ir.NoneRef) -> tuple[str, int]:
        return "NULL", POSTFIX

    def lvalue(self, e: ir.Expr) -> str:
        """A struct as a C object, ready for `.field`."""
        if isinstance(e, ir.FieldGet):
            return f"{self.member(e.base)}{self.names.field(e.field.name)}"
        if isinstance(e, ir.Index):
            return self.element(e)
        if isinstance(e, ir.GlobalRef):
            return self.names.symbol(e.thing)
        return f"(*{self.operand(e, UNARY)})"

    def member(self, base: ir.Expr) -> str:
        """`base->` or `base.`"""
        if isinstance(base, (ir.FieldGet, ir.Index)) and isinstance(base.type, StructType) and not _stored(base):
            return self.lvalue(base) + "."
        if isinstance(base, ir.GlobalRef):
            return self.names.symbol(base.thing) + "."
        return self.operand(base, POSTFIX) + "->"

    def e_FieldGet(self, e: ir.FieldGet) -> tuple[str, int]:
        text = self.member(e.base) + self.names.field(e.field.name)
        return ("&" + text, UNARY) if isinstance(e.type, StructType) else (text, POSTFIX)

    def element(self, e: ir.Index) -> str:
        base = self.operand(e.base, POSTFIX)
        return f"{base}[{self.flat(e)}]"

    def flat(self, e: ir.Index | ir.Slice) -> str:
        kind = e.base.type
        indices = e.at if isinstance(e, ir.Index) else e.row
        if not isinstance(kind, ArrayType):
            return str(indices[0].value) if isinstance(indices[0], ir.Const) and not indices[0].name else self.value(indices[0])
        text, precedence = "", POSTFIX
        for length, index in zip(kind.dims, indices, strict=False):
            mine, p = (str(index.value), POSTFIX) if isinstance(index, ir.Const) and not index.name else self.e(index)
            if self.names.checks and not (index.lo >= 0 and index.hi < length):
                mine, p = f"syn_index({mine}, {length}u, {self.at(index)})", POSTFIX
            if text == "0":
                text = ""
            if text:
                mine = f"{text if precedence >= 13 else f'({text})'} * {length} + {mine if p > 12 else f'({mine})'}"
                p = 12
            text, precedence = mine, p
        return text

    def e_Index(self, e: ir.Index) -> tuple[str, int]:
        text = self.element(e)
        return ("&" + text, UNARY) if isinstance(e.type, StructType) else (text, POSTFIX)

    def e_Slice(self, e: ir.Slice) -> tuple[str, int]:
        cast = f"({ctype(e.type)})" if _rom(e.base) else ""
        base = self.operand(e.base, POSTFIX)
        if e.row:
            kind = e.base.type
            assert isinstance(kind, ArrayType)
            at = f"{self.flat(e)} * {kind.dims[-1]}" if len(e.row) == 1 and self.e(e.row[0])[1] >= 13 else f"({self.flat(e)}) * {kind.dims[-1]}"
            if e.start is not None:
                at += f" + {self.operand(e.start, 13)}"
        elif e.start is None:
            return (cast + base, UNARY) if cast else (base, POSTFIX)
        else:
            at = self.value(e.start)
        return f"{cast}&{base}[{at}]", UNARY

    def e_View(self, e: ir.View) -> tuple[str, int]:
        have, want = e.base.type, e.type
        same = isinstance(have, (ArrayType, PtrType)) and isinstance(want, PtrType) and have.element is want.element
        if same and not _rom(e.base):
            return self.e(e.base)
        return f"({ctype(want)}){self.operand(e.base, UNARY)}", UNARY

    def e_Bin(self, e: ir.Bin) -> tuple[str, int]:
        kind = e.type
        assert isinstance(kind, Scalar)
        if kind is F32:
            text, p = self.infix(e)
            return (f"syn_not_nan({text}, {self.at(e)})", POSTFIX) if self.names.checks else (text, p)
        if e.op in ("//", "%"):
            if e.checked:
                word = "div" if e.op == "//" else "rem"
                return f"syn_{word}_{kind.name}({self.value(e.a)}, {self.value(e.b)}, {self.at(e)})", POSTFIX
            return self.infix(e)
        checks = self.names.checks
        if checks and e.op == ">>" and e.checked:
            return f"syn_shr_{kind.name}({self.value(e.a)}, {self.value(e.b)}, {self.at(e)})", POSTFIX
        if checks and e.checked and not e.wraps and e.op in _WORD:
            return f"syn_{_WORD[e.op]}_{kind.name}({self.value(e.a)}, {self.value(e.b)}, {self.at(e)})", POSTFIX
        if e.op == "<<":
            count = self.operand(e.b, UNARY)
            if checks and e.checked:
                count = f"syn_count({self.value(e.b)}, {kind.bits}u, {self.at(e)})"
            elif isinstance(e.b, ir.Const):
                count = str(e.b.value)
            unsigned = kind.size >= 4 and not kind.signed
            a = self.operand(e.a, UNARY) if unsigned else f"(uint{max(kind.bits, 32)}_t){self.operand(e.a, UNARY)}"
            text = f"{a} << {count}"
            return (text, 11) if unsigned else (f"({_C[kind.name]})({text})", UNARY)
        if e.op == ">>":
            count = str(e.b.value) if isinstance(e.b, ir.Const) else self.operand(e.b, UNARY)
            return f"{self.operand(e.a, UNARY)} >> {count}", 11
        text, p = self.infix(e)
        if kind.size < 4 and e.op in ("+", "-", "*") and e.checked:
            if e.op == "*" and kind.size == 2:
                text = f"(uint32_t){self.operand(e.a, UNARY)} * {self.operand(e.b, UNARY)}"
            return f"({_C[kind.name]})({text})", UNARY
        return text, p

    def infix(self, e: ir.Bin) -> tuple[str, int]:
        op = "/" if e.op == "//" else e.op
        p = _PREC[op]
        left, right = p, p + 1
        if op in ("&", "|", "^"):
            left = right = UNARY
            if isinstance(e.a, ir.Bin) and e.a.op == op and not (self.names.checks and e.a.checked):
                left = p
        return f"{self.operand(e.a, left)} {op} {self.operand(e.b, right)}", p

    def e_Un(self, e: ir.Un) -> tuple[str, int]:
        kind = e.type
        assert isinstance(kind, Scalar)
        a = self.operand(e.a, UNARY)
        if a.startswith("-"):
            a = f"({a})"
        if kind is F32:
            return f"-{a}", UNARY
        if e.op == "-" and e.checked and self.names.checks and not e.wraps:
            return f"syn_sub_{kind.name}(0, {self.value(e.a)}, {self.at(e)})", POSTFIX
        if kind.size < 4 and (e.checked or (e.op == "~" and not kind.signed)):
            return f"({_C[kind.name]}){e.op}{a}", UNARY
        return f"{e.op}{a}", UNARY

    def e_Not(self, e: ir.Not) -> tuple[str, int]:
        return self.inverse(e.a)

    def e_Compare(self, e: ir.Compare) -> tuple[str, int]:
        p = _PREC[e.op]
        a, b = (f"({self.value(x)})" if isinstance(x, ir.Not) else self.operand(x, 11) for x in (e.a, e.b))
        if self.names.checks and e.a.type is F32:
            a, b = (x if isinstance(y, ir.Const) else f"syn_not_nan({x}, {self.at(e)})" for x, y in ((a, e.a), (b, e.b)))
        return f"{a} {e.op} {b}", p

    def e_IsNone(self, e: ir.IsNone) -> tuple[str, int]:
        return f"{self.operand(e.a, 10)} {'!=' if e.negate else '=='} NULL", 9

    def e_Logic(self, e: ir.Logic) -> tuple[str, int]:
        p = _PREC[e.op]
        sign = " && " if e.op == "and" else " || "
        return sign.join(self.operand(x, p if isinstance(x, ir.Logic) and x.op == e.op else p + 1 if e.op == "and" else 6) for x in e.parts), p

    def e_Cond(self, e: ir.Cond) -> tuple[str, int]:
        a = self.operand(e.a, 6)
        if e.type is U32 and all(isinstance(x, ir.Convert) and x.kind == "widen" for x in (e.a, e.b)):
            a = self.cast("uint32_t", e.a)[0]  # else C's type is int
        return f"{self.operand(e.test, 6)} ? {a} : {self.operand(e.b, 6)}", COND

    def e_Convert(self, e: ir.Convert) -> tuple[str, int]:
        kind, inner = e.type, e.a
        if e.kind == "enum":
            assert isinstance(kind, EnumType)
            name = f"syn_{kind.name}_of"
            text = self.value(inner)
            if isinstance(inner.type, Scalar) and inner.type.name == "u64" and kind.base.signed:
                text = f"(int64_t)syn_sat_u64({text}, 9223372036854775807ull)"
            return f"{name}({text}, {self.at(e)})", POSTFIX
        assert isinstance(kind, Scalar)
        target = _C[kind.name]
        if inner.type is F32:
            if e.kind == "sat":
                return f"syn_satf_{kind.name}({self.value(inner)})", POSTFIX
            if self.names.checks:
                low = real(float(kind.low) - 1.0) if kind.size < 4 else real(-1.0) if not kind.signed else real(_below(float(kind.low)))
                return f"({target})syn_fit_f({self.value(inner)}, {low}, {real(float(kind.high + 1))}, {self.at(e)})", UNARY
            return self.cast(target, inner)
        if kind.kind == "float":
            return self.cast("float", inner)
        if e.kind == "widen":
            have = inner.type.base if isinstance(inner.type, EnumType) else inner.type
            assert isinstance(have, Scalar)
            if kind.size <= 4 and not (have.size >= 4 and have.signed != kind.signed):
                text, precedence = self.e(inner)
                # What C computes in int where we mean u32: it would warn at comparisons, and shift as signed.
                if kind is U32 and isinstance(inner, (ir.Bin, ir.Un, ir.Cond)) and not (precedence == UNARY and text.startswith("(uint")):
                    return self.cast(target, inner)
                return text, precedence
            if isinstance(inner, ir.Const) and isinstance(inner.type, Scalar):
                return number(inner.value, kind), POSTFIX
            return self.cast(target, inner)
        if e.kind == "sat":
            have = inner.type
            assert isinstance(have, Scalar)
            if e.safe:
                return self.cast(target, inner)
            if have.signed:
                wide = "i64" if have.size == 8 else "i32"
                unit_ = _scalar(wide)
                if kind.high > unit_.high:
                    low = syn_max(self, inner, wide)
                    return f"({target}){low}", UNARY
                return f"({target})syn_sat_{wide}({self.value(inner)}, {number(max(kind.low, unit_.low), unit_)}, {number(min(kind.high, unit_.high), unit_)})", UNARY
            wide = "u64" if have.size == 8 else "u32"
            unit_ = _scalar(wide)
            return f"({target})syn_sat_{wide}({self.value(inner)}, {number(min(kind.high, unit_.high), unit_)})", UNARY
        if e.kind == "exact" and self.names.checks and not e.safe:
            have = inner.type
            assert isinstance(have, (Scalar, EnumType))
            signed = have.signed if isinstance(have, Scalar) else have.base.signed
            if signed:
                return f"({target})syn_fit_i({self.value(inner)}, {number(max(kind.low, -(1 << 63)), _scalar('i64'))}, {number(min(kind.high, (1 << 63) - 1), _scalar('i64'))}, {self.at(e)})", UNARY
            return f"({target})syn_fit_u({self.value(inner)}, {number(kind.high, _scalar('u64'))}, {self.at(e)})", UNARY
        if e.kind == "wrap":
            if inner.type is kind and kind.size >= 4:
                return self.e(inner)
            while isinstance(inner, ir.Convert) and inner.kind == "wrap" and inner.type.size >= kind.size:
                inner = inner.a
            if inner.type is kind and not (isinstance(inner, ir.Bin) and inner.wraps):
                return self.e(inner)
        if isinstance(inner, ir.Const) and isinstance(inner.type, Scalar) and kind.low <= inner.value <= kind.high and not inner.name:
            return number(inner.value, kind), POSTFIX if inner.value >= 0 else UNARY
        return self.cast(target, inner)

    def cast(self, target: str, e: ir.Expr) -> tuple[str, int]:
        text = self.operand(e, UNARY)
        return text if text.startswith(f"({target})") else f"({target}){text}", UNARY

    def call(self, e: ir.Expr, outs: list[str]) -> str:
        assert isinstance(e, (ir.Call, ir.TableCall))
        args = ", ".join([self.value(a) for a in e.args] + outs)
        if isinstance(e, ir.TableCall):
            length = len(self.names.program.entries(e.table))
            return f"{self.names.symbol(e.table)}[syn_index({self.value(e.at)}, {length}u, {self.at(e)})]({args})"
        return f"{e.function.c_name}({args})"

    def e_Call(self, e: ir.Call) -> tuple[str, int]:
        return self.call(e, []), POSTFIX

    def e_TableCall(self, e: ir.TableCall) -> tuple[str, int]:
        return self.call(e, []), POSTFIX

    def e_Builtin(self, e: ir.Builtin) -> tuple[str, int]:
        args = [self.value(a) for a in e.args]
        if e.name in ("min", "max"):
            if self.names.checks and e.type is F32:
                args = [f"syn_not_nan({a}, {self.at(e)})" for a in args]
            return f"syn_{e.name}_{unit(e.type)}({', '.join(args)})", POSTFIX
        if e.name in ("bits", "from_bits"):
            return f"syn_{e.name}({args[0]})", POSTFIX
        if e.name == "isnan":
            return f"__builtin_isnan({args[0]})", POSTFIX
        if e.name in ("div_u64", "rem_u64") and isinstance(e.args[1], ir.Const):
            return f"{self.operand(e.args[0], 13)} {'/' if e.name[0] == 'd' else '%'} {self.operand(e.args[1], UNARY)}", 13
        if e.name in ("div_u64", "rem_u64"):
            return f"syn_{e.name[:3]}_u64({args[0]}, {args[1]}, {self.at(e)})", POSTFIX
        if e.name in ("div_floor", "mod_floor", "div_trunc", "rem_trunc"):
            b = e.args[1]
            if isinstance(b, ir.Const) and b.value > 0 and e.name.endswith("trunc"):
                return f"{self.operand(e.args[0], 13)} {'/' if e.name[0] == 'd' else '%'} {self.operand(b, UNARY)}", 13
            return f"syn_{e.name}_{unit(e.type)}({args[0]}, {args[1]}, {self.at(e)})", POSTFIX
        if e.name == "copy":
            name = e.args[0].type.name if isinstance(e.args[0].type, StructType) else ""
            # The same or apart: checked runs trap where the two overlap.
            return f"__builtin_memcpy({args[0]}, {args[1]}, {f'sizeof({name})' if name else e.args[0].type.size})", POSTFIX
        if e.name == "aligned":
            return f"((uintptr_t){self.operand(e.args[0], UNARY)} & ({args[1]} - 1u)) == 0", 9
        if e.name == "move":
            return f"__builtin_memmove({args[0]}, {args[1]}, {self.bytes(e, args[2])})", POSTFIX
        if e.name == "fill":
            element = e.args[0].type.element  # type: ignore[attr-defined]
            if element.size == 1:
                return f"__builtin_memset({args[0]}, {args[1]}, {args[2]})", POSTFIX
            zero = isinstance(e.args[1], ir.Const) and (e.args[1].value == 0 and str(e.args[1].value)[0] != "-")
            if zero:
                return f"__builtin_memset({args[0]}, 0, {self.bytes(e, args[2])})", POSTFIX
            return f"syn_fill_{unit(element)}({args[0]}, {args[1]}, {args[2]})", POSTFIX
        if e.name == "load_acquire":
            return f"__atomic_load_n({args[0]}, __ATOMIC_ACQUIRE)", POSTFIX
        if e.name == "store_release":
            return f"__atomic_store_n({args[0]}, {args[1]}, __ATOMIC_RELEASE)", POSTFIX
        assert e.name == "fence"
        return "__atomic_thread_fence(__ATOMIC_SEQ_CST)", POSTFIX

    def bytes(self, e: ir.Builtin, count: str) -> str:
        element = e.args[0].type.element  # type: ignore[attr-defined]
        name = element.name if isinstance(element, StructType) else ctype(element)
        return count if element.size == 1 else f"{self.operand(e.args[2], UNARY)} * sizeof({name})"


def syn_max(emitter: FunctionEmitter, inner: ir.Expr, wide: str) -> str:
    zero = number(0, _scalar(wide))
    return f"syn_max_{wide}({emitter.value(inner)}, {zero})"


def _scalar(name: str) -> Scalar:
    from synapticos.lang.types import INTEGERS

    return next(t for t in INTEGERS if t.name == name)


def _below(x: float) -> float:
    import struct

    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return struct.unpack("<f", struct.pack("<I", bits + 1))[0]


def _rom(e: ir.Expr) -> bool:
    return isinstance(e, ir.GlobalRef) and isinstance(e.thing, Rom)


def _stored(e: ir.Expr) -> bool:
    """A reference that a field holds (a pointer in C), not an embedded struct."""
    return isinstance(e, (ir.FieldGet, ir.Index)) and isinstance(getattr(e, "field", None) and e.field.type, OptType)  # type: ignore[union-attr]


def _every(body: list[ir.Stmt]) -> Iterator[ir.Stmt]:
    """The statements of a body, and those inside them."""
    for s in body:
        yield s
        for name in ("body", "orelse"):
            yield from _every(getattr(s, name, []))
        for _, inner in getattr(s, "cases", []):
            yield from _every(inner)


def _assigned(body: list[ir.Stmt]) -> set[ir.Local]:
    out: set[ir.Local] = set()
    for s in _every(body):
        if isinstance(s, ir.Assign) and isinstance(s.target, ir.LocalRef):
            out.add(s.target.local)
        if isinstance(s, ir.Declare):
            out.add(s.local)
        if isinstance(s, ir.Unpack):
            out |= {t[0].local for t in s.targets if t is not None}  # type: ignore[attr-defined]
    return out


def _born(body: list[ir.Stmt]) -> list[str]:
    """Names of the locals that begin in a body, in order."""
    out: list[str] = []
    for s in _every(body):
        if isinstance(s, (ir.Declare, ir.ForRange, ir.ForEach)):
            out.append(s.local.name)
        if isinstance(s, ir.Unpack):
            out += [t[0].local.name for t in s.targets if t is not None]  # type: ignore[attr-defined]
    return out


def _loud(name: str) -> bool:
    """Written as constants are."""
    return name.isupper() or name.replace("_", "").isupper()


def _jumps(body: list[ir.Stmt]) -> bool:
    from .check import _breaks

    return _breaks(body)


def _read(body: list[ir.Stmt]) -> set[ir.Local]:
    """Locals whose value something looks at, other than their own next value."""
    from .program import walk

    out: set[ir.Local] = set()
    for s in _every(body):
        own = s.target.local if isinstance(s, ir.Assign) and isinstance(s.target, ir.LocalRef) else None

        def visit(e: ir.Expr, own: ir.Local | None = own) -> None:
            if isinstance(e, ir.LocalRef) and e.local is not own:
                out.add(e.local)

        for name in ("value", "target", "call", "test", "start", "stop", "base", "count", "subject"):
            e = getattr(s, name, None)
            if isinstance(e, ir.Expr):
                walk([ir.Do(s.pos, e)], visit)
        for e in getattr(s, "values", []):
            walk([ir.Do(s.pos, e)], visit)
    return out


def signature(names: Names, function: Function, parameter_names: list[str] | None = None) -> str:
    parameters, result = names.program.signature(function)
    spelled = parameter_names or [names.local(n) for n, _ in parameters]
    restrict = "restrict " if function.disjoint else ""
    texts = [declare(kind, (restrict if isinstance(_bare(kind), PtrType) else "") + name) for name, (_, kind) in zip(spelled, parameters, strict=True)]
    first = result
    if isinstance(result, TupleType):
        first = result.items[0]
        texts += [declare_out(kind, f"out_{i}") for i, kind in enumerate(result.items) if i]
    head = "void" if first is VOID else ctype(first)
    space = "" if head.endswith("*") else " "
    return f"{head}{space}{function.c_name}({', '.join(texts) or 'void'})"


def _bare(kind: Type) -> Type:
    return kind.inner if isinstance(kind, OptType) else kind


def declare_out(kind: Type, name: str) -> str:
    return _star(ctype(kind)) + name


def fn_type(kind: FnType) -> tuple[str, str]:
    """(result, parameters) of a function pointer."""
    result = kind.result
    first = result.items[0] if isinstance(result, TupleType) else result
    texts = [ctype(p) for p in kind.parameters]
    if isinstance(result, TupleType):
        texts += [_star(ctype(t)) for t in result.items[1:]]
    return "void" if first is VOID else ctype(first), ", ".join(texts) or "void"


class LineWriter:
    """Text whose lines have the numbers of the Python's, by filling gaps, `#line` over long ones."""

    def __init__(self, path: str) -> None:
        self.file = source(path)
        self.comments = self.file.comments()
        self.out: list[str] = []
        self.line = 0  # number of the next line, as the C compiler counts
        self.current = ""

    def function(self, made: ir.FnIR, pieces: list[tuple[int, int, str]], before: str = "") -> None:
        if before:
            self.out.append(before)
        doc = made.doc.split("\n\n")[0].replace("*/", "* /").strip()
        if doc:
            self.out.append(f"/* {' '.join(doc.split())} */")
        self.line = pieces[0][0]
        self.closing: list[int] = []
        self.out.append(f'#line {self.line} "{self.file.short}"')
        self.current = ""
        for line, depth, text in pieces:
            if not line:
                self.closing.append(depth)
                continue
            self.advance(line, depth)
            self.current += (" " if self.current.strip() else "    " * depth) + text
        self.out.append(self.current)
        self.out += ["    " * depth + "}" for depth in self.closing]
        self.current = ""

    def close_blocks(self, line: int) -> None:
        """Put the closing braces on lines of their own before `line`, as far as there are any without a comment."""
        room = next((n for n in range(self.line + 1, line) if n in self.comments), line) - self.line - 1
        if room < 1:
            self.current += " }" * len(self.closing)
        elif self.closing:
            rows = [[depth] for depth in self.closing] if room >= len(self.closing) else [self.closing]
            for row in rows:
                self.out.append(self.current)
                self.line += 1
                self.current = "    " * row[0] + " ".join("}" for _ in row)
        self.closing = []

    def advance(self, line: int, depth: int) -> None:
        self.close_blocks(line)
        if line <= self.line:
            return
        self.out.append(self.current)
        self.current = ""
        self.line += 1
        if line - self.line > 12 and not any(n in self.comments for n in range(self.line, line)):
            self.out.append(f'#line {line} "{self.file.short}"')
            self.line = line
            return
        while self.line < line:
            comment = self.comments.get(self.line, "").replace("*/", "* /")
            self.out.append("    " * depth + f"/* {comment} */" if comment else "")
            self.line += 1

    def text(self) -> str:
        return "\n".join(self.out) + "\n"
