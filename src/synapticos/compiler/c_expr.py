"""Expressions of the typed tree to C.

Each comes with its precedence, so that parentheses stand where gcc's -Wall wants them and nowhere else.
"""

from __future__ import annotations

from synapticos.lang.types import (
    BOOL,
    F32,
    U32,
    ArrayType,
    EnumType,
    OptType,
    PtrType,
    Scalar,
    StructType,
)
from synapticos.lang.words import Rom

from . import ir
from .c_names import _C, Names, ctype, number, real
from .emit_checked import unit

_PREC = {"*": 13, "/": 13, "//": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10,
         "==": 9, "!=": 9, "&": 8, "^": 7, "|": 6, "and": 5, "or": 4}  # fmt: skip
_WORD = {"+": "add", "-": "sub", "*": "mul", "<<": "shl"}
POSTFIX, UNARY, COND = 15, 14, 3


class ExprEmitter:
    """What statements share: the spelling of a function's locals, and its expressions as (text, precedence)."""

    def __init__(self, names: Names, made: ir.FnIR) -> None:
        self.names, self.made = names, made
        self.stops_at_nan = names.checks and not made.function.nan
        self.temps = 0
        self.file = names.program.file_id(made.function.file)
        self.spelled: dict[str, str] = {}
        for name in [p.name for p in made.parameters] + ir.born(made.body):
            spelled = names.local(name)
            while spelled in self.spelled.values() and name not in self.spelled:
                spelled += "_"
            self.spelled.setdefault(name, spelled)
        self.used = set(self.spelled.values())

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
            return (f"syn_not_nan({text}, {self.at(e)})", POSTFIX) if self.stops_at_nan else (text, p)
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
        if self.stops_at_nan and e.a.type is F32:
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

    def e_FunctionRef(self, e: ir.FunctionRef) -> tuple[str, int]:
        return e.function.c_name, POSTFIX

    def e_Call(self, e: ir.Call) -> tuple[str, int]:
        return self.call(e, []), POSTFIX

    def e_TableCall(self, e: ir.TableCall) -> tuple[str, int]:
        return self.call(e, []), POSTFIX

    def e_Builtin(self, e: ir.Builtin) -> tuple[str, int]:
        args = [self.value(a) for a in e.args]
        if e.name in ("min", "max"):
            if self.stops_at_nan and e.type is F32:
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
            # The same or apart: checked runs trap where the two overlap. An assignment may be to itself, memcpy may not.
            if isinstance(e.args[0].type, StructType):
                return f"*{self.operand(e.args[0], UNARY)} = *{self.operand(e.args[1], UNARY)}", 2
            return f"__builtin_memmove({args[0]}, {args[1]}, {e.args[0].type.size})", POSTFIX
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


def syn_max(emitter: ExprEmitter, inner: ir.Expr, wide: str) -> str:
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
