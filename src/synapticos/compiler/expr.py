"""Expressions: names, types, the meeting of operands, None, and the intervals of integers."""

from __future__ import annotations

import ast
import binascii
import builtins
from enum import Enum
from typing import Any

from synapticos.lang import layouts as layout
from synapticos.lang import words
from synapticos.lang.types import (
    BOOL,
    F32,
    I32,
    I64,
    SCALARS,
    U8,
    U32,
    U64,
    ArrayType,
    BadType,
    EnumType,
    OptType,
    PtrType,
    Scalar,
    StructType,
    Type,
    Types,
)
from synapticos.lang.words import Function, Param, Rom, Static, Table

from . import ir
from .diag import Follows, Pos, Refused
from .parse import position, short_path, source
from .refusals import CONSTRUCTS, OPERATORS

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.LShift: "<<",
           ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}  # fmt: skip
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MODULAR = {"+", "-", "*", "&", "|", "^"}
_SIGNED_DIVISION = {words.div_floor: "div_floor", words.mod_floor: "mod_floor", words.div_trunc: "div_trunc", words.rem_trunc: "rem_trunc"}
_WIDE_DIVISION = {words.div_u64: "div_u64", words.rem_u64: "rem_u64"}
_UNSIGNED = {1: U8, 2: SCALARS[words.u16], 4: U32, 8: U64}


class NotConstant(Exception):
    pass


def is_int(t: Type) -> bool:
    return isinstance(t, Scalar) and t.kind == "int"


def is_number(t: Type) -> bool:
    return isinstance(t, Scalar) and t.kind != "bool"


def holds(wide: Type, narrow: Type) -> bool:
    return is_int(wide) and is_int(narrow) and wide.low <= narrow.low and narrow.high <= wide.high  # type: ignore[attr-defined]


class ExprChecker:
    """What statements share: the names in reach and the typing of expressions."""

    types: Types
    program: Any
    whole: ast.expr | None

    def __init__(self, function: Function) -> None:
        self.function = function
        self.file = function.file
        self.globals = function.globals
        self.scopes: list[dict[str, ir.Local]] = [{}]
        self.ended: dict[str, Pos] = {}
        self.broken: set[str] = set()  # names whose first assignment was refused
        self.narrow: set[ir.Local] = set()
        self.calls: list[Function] = []
        self.tables: list[Table] = []
        self.storage: list[ir.Local] = []
        self.loops = 0

    # Places and names

    def pos(self, node: Any) -> Pos:
        return position(self.file, node)

    def find(self, name: str) -> ir.Local | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def look(self, node: ast.Name) -> Any:
        if node.id in self.broken:
            raise Follows(self.pos(node), f"{node.id} has no value because of an error before")
        if node.id in self.globals:
            return self.globals[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        if node.id in self.ended:
            raise Refused(self.pos(node), f"{node.id} does not exist here", f"it is set only inside the block at {self.where(self.ended[node.id])}",
                          fix=f"give {node.id} a value before that block")  # fmt: skip
        raise Refused(self.pos(node), f"{node.id} is not defined", fix="a local begins with its first assignment; other names come from the module")

    def where(self, pos: Pos) -> str:
        return f"{source(pos.file).short}:{pos.line}"

    def origin(self, e: ir.Expr, node: Any) -> str:
        """`x is u32 (file:line)`, for the notes of a message."""
        text = ast.unparse(node)
        if isinstance(e, ir.Const) and not e.name and self.is_literal(node):
            return ""
        if isinstance(e, ir.LocalRef):
            return f"{text} is {e.type} ({self.where(e.local.pos)})"
        if isinstance(e, ir.FieldGet) and isinstance(e.base.type, StructType):
            line = field_line(e.base.type.cls, e.field.name)
            return f"{text} is {e.type}" + (f" ({short_path(e.base.type.cls.__kernel_place__.file)}:{line})" if line else "")
        return f"{text} is {e.type}"

    def origins(self, a: ir.Expr, left: ast.expr, b: ir.Expr, right: ast.expr) -> str:
        """What two operands are; a literal says it itself, and the same is said once."""
        return "; ".join(dict.fromkeys(x for x in (self.origin(a, left), self.origin(b, right)) if x))

    def type_of(self, node: ast.expr) -> Type:
        """The type that an annotation names."""
        try:
            annotation = eval(compile(ast.Expression(node), self.file, "eval"), self.globals)
            if isinstance(annotation, str):
                annotation = eval(annotation, self.globals)
        except Exception as error:
            raise Refused(self.pos(node), f"this annotation cannot be read: {error}", fix="name a type of the language") from None
        try:
            return self.types.of(annotation)
        except BadType as error:
            raise Refused(self.pos(node), str(error), fix="see the table of types in docs/language.md") from None

    # Constants

    def constant(self, node: ast.expr) -> tuple[Any, str]:
        """(value, name or '') of what Python already knows; raises NotConstant."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (bool, int, float)):
                return node.value, ""
            raise NotConstant
        if isinstance(node, ast.Name):
            if self.find(node.id) is not None or node.id not in self.globals or node.id in self.broken:
                raise NotConstant
            value = self.globals[node.id]
            if isinstance(value, Param):
                return value.value(self.types.params), node.id if not isinstance(value, words.ParamExpr) else ""
            if isinstance(value, (bool, int, float)) and not isinstance(value, Enum):
                return _plain(value), node.id
            raise NotConstant
        if isinstance(node, ast.Attribute):
            thing = self.global_of(node)
            if isinstance(thing, Param):
                return thing.value(self.types.params), ""
            if isinstance(thing, (bool, int, float)) and not isinstance(thing, Enum):
                return _plain(thing), ""
            raise NotConstant
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            value, _ = self.constant(node.operand)
            return (-value if isinstance(node.op, ast.USub) else ~value if isinstance(node.op, ast.Invert) else value), ""
        if isinstance(node, ast.BinOp) and (type(node.op) in _BINARY or isinstance(node.op, ast.Pow)):
            a, b = self.constant(node.left)[0], self.constant(node.right)[0]
            if isinstance(a, bool) or isinstance(b, bool):
                raise NotConstant
            try:
                return eval(f"a {_op_text(node.op)} b", {"a": a, "b": b}), ""
            except Exception as error:
                raise Refused(self.pos(node), f"this constant has no value: {error}", fix="change the operands") from None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and self.find(node.func.id) is None:
            callee = self.globals.get(node.func.id, getattr(builtins, node.func.id, None))
            if callee is layout.sizeof and len(node.args) == 1:
                return self.type_of(node.args[0]).size, ""
            if callee is len and len(node.args) == 1:
                thing = self.global_of(node.args[0])
                if isinstance(thing, Table):
                    return len(self.program.entries(thing)), ""
                if isinstance(thing, words.Blob):
                    return len(self.program.blobs.get(thing, b"")), ""
                if isinstance(thing, Rom):
                    return len(thing), ""
            if callee in (min, max):
                return callee(*(self.constant(a)[0] for a in node.args)), ""
        raise NotConstant

    def global_of(self, node: ast.expr) -> Any:
        """The Python object that a dotted name outside the function names; raises NotConstant."""
        if isinstance(node, ast.Name):
            if self.find(node.id) is not None or node.id not in self.globals:
                raise NotConstant
            return self.globals[node.id]
        if isinstance(node, ast.Attribute):
            base = self.global_of(node.value)
            if words.is_struct(base) and node.attr in base.__kernel_methods__:
                return base.__kernel_methods__[node.attr]
            try:
                return getattr(base, node.attr)
            except AttributeError:
                raise Refused(self.pos(node), f"{ast.unparse(node.value)} has no {node.attr}", fix="check the name") from None
        raise NotConstant

    def literal(self, node: ast.expr, want: Type | None) -> ir.Expr | None:
        """A constant as `want`, or None if `node` is no constant."""
        try:
            value, name = self.constant(node)
        except NotConstant:
            return None
        pos = self.pos(node)
        if isinstance(value, bool):
            return ir.Const(pos, BOOL, value, name)
        if isinstance(want, OptType) or want is None or not isinstance(want, Scalar) or want.kind == "bool":
            if want is BOOL:
                raise Refused(pos, f"{value} is not a bool", fix="write True or False, or a comparison")
            if isinstance(want, EnumType):
                raise Refused(pos, f"{value} is a number, and a {want} is wanted", fix=f"name a member: {want}.{next(iter(want.members))}")
            want = F32 if isinstance(value, float) else U32 if value >= 0 else I32
            if isinstance(value, int) and not want.low <= value <= want.high:
                want = U64 if value >= 0 else I64
        if want.kind == "float":
            return ir.Const(pos, F32, round_f32(float(value)), name)
        if isinstance(value, float):
            raise Refused(pos, f"{value} is not an integer, and {want} is wanted", fix=f"write an integer, or {want}(x) of an f32")
        if not want.low <= value <= want.high:
            raise Refused(pos, f"{value} does not fit {want}", f"{want} holds {want.low} to {want.high}", fix="use a wider type, or wrap()")
        return ir.Const(pos, want, int(value), name)

    def is_literal(self, node: ast.expr) -> bool:
        try:
            self.constant(node)
            return True
        except NotConstant:
            return False

    # Expressions

    def expr(self, node: ast.expr, want: Type | None = None) -> ir.Expr:
        """Type an expression; `want` gives bare literals and None their type, and converts nothing else."""
        if type(node) in CONSTRUCTS:
            name, fix, later = CONSTRUCTS[type(node)]
            raise Refused(self.pos(node), f"{name} is not {'yet ' if later else ''}part of kernel-Python", fix=fix)
        made = self.literal(node, want)
        if made is not None:
            return made
        if isinstance(node, ast.Constant):
            if node.value is None:
                if not isinstance(want, OptType):
                    if isinstance(want, (StructType, PtrType)):
                        want = self.types.optional(want)
                    else:
                        raise Refused(self.pos(node), "None has no type here", fix="write the type: `x: S | None = None`")
                return ir.NoneRef(self.pos(node), want)
            raise Refused(self.pos(node), f"{type(node.value).__name__} is not part of kernel-Python", fix='text is a rom(b"...") table')
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            raise Refused(self.pos(node), f"{type(node).__name__} is not part of kernel-Python", fix="see what is in the language: docs/language.md")
        return method(node, want)

    def value(self, node: ast.expr, want: Type) -> ir.Expr:
        """An expression that becomes `want`, by widening at most."""
        return self.coerce(self.expr(node, want), want, node)

    def coerce(self, e: ir.Expr, want: Type, node: Any) -> ir.Expr:
        made = self.fit(e, want)
        if made is not None:
            return made
        fix = f"convert it: {want}({ast.unparse(node)})" if is_number(want) and is_number(e.type) else f"give it a {want}"
        if isinstance(e.type, OptType) and self.fit(ir.Expr(e.pos, e.type.inner), want) is not None:
            fix = f"test it first: if {ast.unparse(node)} is not None"
        raise Refused(e.pos, f"{e.type} does not become {want} by itself", self.origin(e, node), fix=fix)

    def fit(self, e: ir.Expr, want: Type) -> ir.Expr | None:
        have = e.type
        if have is want:
            return e
        if is_int(have) and is_int(want):
            if holds(want, have) or (isinstance(e, ir.LocalRef) and e.local.ranged and want.low <= e.lo and e.hi <= want.high):  # type: ignore[attr-defined]
                return ir.Convert(e.pos, want, "widen", e)
            return None
        if isinstance(want, OptType):
            if isinstance(e, ir.NoneRef):
                return ir.NoneRef(e.pos, want)
            return self.fit(e, want.inner)
        if isinstance(want, PtrType) and isinstance(have, ArrayType) and have.element is want.element:
            return ir.View(e.pos, want, e)
        return None

    def condition(self, node: ast.expr) -> tuple[ir.Expr, set[ir.Local], set[ir.Local]]:
        """A bool, with the locals that are not None when it is true and when it is false."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            e, yes, no = self.condition(node.operand)
            return ir.Not(self.pos(node), BOOL, e), no, yes
        if isinstance(node, ast.BoolOp):
            parts, before = [], set(self.narrow)
            known: set[ir.Local] = set()
            for part in node.values:
                e, yes, no = self.condition(part)
                parts.append(e)
                mine = yes if isinstance(node.op, ast.And) else no
                known |= mine
                self.narrow |= mine
            self.narrow = before
            made = ir.Logic(self.pos(node), BOOL, "and" if isinstance(node.op, ast.And) else "or", parts)
            return (made, known, set()) if isinstance(node.op, ast.And) else (made, set(), known)
        e = self.expr(node, BOOL)
        if e.type is not BOOL:
            zero = "None" if isinstance(e.type, OptType) else "0"
            test = f"if {ast.unparse(node)} is not None:" if zero == "None" else f"if {ast.unparse(node)} != 0:"
            raise Refused(e.pos, f"a condition is a bool, and this is {e.type}", self.origin(e, node), fix=f"write the comparison: {test}")
        if isinstance(e, ir.IsNone) and isinstance(e.a, ir.LocalRef):
            return (e, {e.a.local}, set()) if e.negate else (e, set(), {e.a.local})
        return e, set(), set()

    def expr_Name(self, node: ast.Name, want: Type | None) -> ir.Expr:
        local = self.find(node.id)
        if local is not None:
            kind = local.type
            if isinstance(kind, OptType) and local in self.narrow:
                kind = kind.inner
            return ir.LocalRef(self.pos(node), kind, local)
        thing = self.look(node)
        return self.thing(node, thing)

    def thing(self, node: ast.expr, thing: Any) -> ir.Expr:
        pos = self.pos(node)
        if words.is_enum(type(thing)):
            return ir.Const(pos, self.types.enum(type(thing)), int(thing.value), thing.name)
        if isinstance(thing, words.Blob):
            return ir.GlobalRef(pos, self.types.array(U8, (len(self.program.blobs.get(thing, b"")),)), thing)
        if isinstance(thing, Rom):
            return ir.GlobalRef(pos, self.types.array(self.types.of(thing.element), thing.shape), thing)
        if isinstance(thing, Static):
            kind = self.types.of(thing.type)
            if thing.count is None and not isinstance(kind, StructType):
                raise Refused(pos, f"{thing.name} is one {kind}, and storage is a struct or an array", fix=f"static({kind}, 1), and {thing.name}[0]")
            if thing.count is not None:
                kind = self.types.array(kind, (self.types.number(thing.count),))
            return ir.GlobalRef(pos, kind, thing)
        if isinstance(thing, Function):
            raise Refused(pos, f"{thing.__name__} is a function, not a value", fix="call it, or name it in a table()")
        name = ast.unparse(node)
        raise Refused(pos, f"{name} is a Python {type(thing).__name__}, which kernel-Python cannot use", fix="use a number, an enum, a rom() table or a struct")

    def expr_Attribute(self, node: ast.Attribute, want: Type | None) -> ir.Expr:
        try:
            return self.thing(node, self.global_of(node))
        except NotConstant:
            pass
        base = self.expr(node.value)
        base = self.present(base, node.value)
        if not isinstance(base.type, StructType):
            raise Refused(self.pos(node), f"{base.type} has no fields", self.origin(base, node.value), fix="only a struct has fields")
        if node.attr not in base.type.by_name:
            if node.attr in base.type.cls.__kernel_methods__:
                raise Refused(self.pos(node), f"{node.attr} is a method", fix=f"call it: {ast.unparse(node)}(...)")
            raise Refused(self.pos(node), f"{base.type} has no field {node.attr}", f"it has {', '.join(base.type.by_name)}", fix="check the name")
        found = base.type.by_name[node.attr]
        return ir.FieldGet(self.pos(node), found.type, base, found)

    def present(self, e: ir.Expr, node: ast.expr) -> ir.Expr:
        if isinstance(e.type, OptType):
            raise Refused(e.pos, f"{ast.unparse(node)} may be None here", self.origin(e, node), fix=f"test it first: if {ast.unparse(node)} is not None" +
                          ("" if isinstance(e, ir.LocalRef) else " (bind it to a local before)"))  # fmt: skip
        return e

    def index_value(self, node: ast.expr) -> ir.Expr:
        e = self.expr(node)
        if not is_int(e.type):
            raise Refused(e.pos, f"an index is an integer, and this is {e.type}", self.origin(e, node), fix="convert it")
        if isinstance(e, ir.Const) and e.value < 0:
            raise Refused(e.pos, "an index is not negative: nothing counts from the end here", fix="write the length minus it")
        return e

    def expr_Subscript(self, node: ast.Subscript, want: Type | None) -> ir.Expr:
        base = self.present(self.expr(node.value), node.value)
        kind, pos = base.type, self.pos(node)
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(kind, (ArrayType, PtrType)):
            raise Refused(pos, f"{kind} cannot be indexed", self.origin(base, node.value), fix="only arrays and pointers can")
        dims = kind.dims if isinstance(kind, ArrayType) else (None,)
        if isinstance(items[-1], ast.Slice):
            part = items[-1]
            if part.step is not None:
                raise Refused(pos, "a slice has no step here", fix="index in a loop")
            if len(items) != len(dims):
                raise Refused(pos, f"{kind} has {len(dims)} dimensions, and {len(items)} are given", fix="name each dimension: grid[r, :]")
            row = [self.bounded(i, d) for i, d in zip(items[:-1], dims[:-1], strict=True)]
            start = self.index_value(part.lower) if part.lower else None
            stop = self.index_value(part.upper) if part.upper else None
            return ir.Slice(pos, self.types.ptr(kind.element), base, row, start, stop)
        if len(items) != len(dims):
            example = "grid[r, :]" if len(items) < len(dims) else "grid[r]"
            raise Refused(pos, f"{kind} has {len(dims)} dimensions, and {len(items)} are given", fix=f"name each dimension: {example}")
        return ir.Index(pos, kind.element, base, [self.bounded(i, d) for i, d in zip(items, dims, strict=True)])

    def bounded(self, node: ast.expr, length: int | None) -> ir.Expr:
        e = self.index_value(node)
        if length is not None and isinstance(e, ir.Const) and e.value >= length:
            raise Refused(e.pos, f"{e.value} is outside an array of {length}", fix=f"use 0 to {length - 1}")
        return e

    # Arithmetic

    def expr_UnaryOp(self, node: ast.UnaryOp, want: Type | None) -> ir.Expr:
        if isinstance(node.op, ast.Not):
            return self.condition(node)[0]
        e = self.expr(node.operand, want)
        op = {ast.USub: "-", ast.Invert: "~", ast.UAdd: "+"}[type(node.op)]
        if not is_number(e.type) or (op == "~" and not is_int(e.type)):
            raise Refused(self.pos(node), f"{op} of {e.type} has no meaning", self.origin(e, node.operand), fix="convert it to an integer" if op == "~" else "convert it to a number")
        if op == "+":
            return e
        made = ir.Un(self.pos(node), e.type, op, e)
        if is_int(e.type):
            low, high = (-e.hi, -e.lo) if op == "-" else (~e.hi, ~e.lo)
            if op == "~" and not e.type.signed:  # type: ignore[attr-defined]
                made.checked = False
                made.lo, made.hi = e.type.high - e.hi, e.type.high - e.lo  # type: ignore[attr-defined]
            else:
                self.interval(made, low, high)
        return made

    def interval(self, e: Any, low: int, high: int) -> None:
        kind = e.type
        e.checked = not (kind.low <= low and high <= kind.high)
        e.lo, e.hi = max(low, kind.low), min(high, kind.high)
        if e.lo > e.hi:
            e.lo, e.hi = kind.low, kind.high

    def meet(self, node: ast.AST, left: ast.expr, right: ast.expr, op: str, want: Type | None = None) -> tuple[ir.Expr, ir.Expr]:
        """Both operands, in the wider of their types."""
        a = self.literal(left, None)
        b = self.literal(right, None)
        if a is None or b is None:
            if a is None:
                a = self.expr(left, want)
                self.no_real(right, b, left, a.type, op, first=False)
                b = self.expr(right, a.type)
            else:
                b = self.expr(right, want)
                self.no_real(left, a, right, b.type, op, first=True)
                a = self.expr(left, b.type)
        elif a.type is not b.type and isinstance(a, ir.Const) and isinstance(b, ir.Const):
            # Two bare numbers: one type that holds both.
            values = (a.value, b.value)
            kind = F32 if any(isinstance(v, float) for v in values) else next((t for t in (U32, I32, I64) if t.low <= min(values) and max(values) <= t.high), a.type)
            a, b = self.literal(left, kind) or a, self.literal(right, kind) or b
        if a.type is b.type:
            return a, b
        for x, y in ((a, b), (b, a)):
            made = self.fit(x, y.type) if not isinstance(y.type, OptType) else None
            if made is not None and not isinstance(x.type, ArrayType):
                return (made, b) if x is a else (a, made)
        why = "the operands differ in sign" if is_int(a.type) and is_int(b.type) else "neither holds the other"
        first, second = ast.unparse(left), ast.unparse(right)
        first, second = (f"f32({first})", second) if b.type is F32 else (first, f"{a.type}({second})")
        both = "{} " + op + " {}" if not op.isalpha() else op.replace("to", "range") + "({}, {})"
        fix = f"convert one of them: {both.format(first, second)}" if is_number(a.type) and is_number(b.type) else "convert one of them"
        raise Refused(self.pos(node), f"{both.format(a.type, b.type)} has no type: {why}", self.origins(a, left, b, right), fix=fix)

    def no_real(self, bare: ast.expr, number: ir.Expr | None, other: ast.expr, kind: Type, op: str, first: bool) -> None:
        """Refuses a bare real number beside an integer, with the conversion that is meant."""
        if isinstance(number, ir.Const) and isinstance(number.value, float) and is_int(kind):
            text, real = f"f32({ast.unparse(other)})", ast.unparse(bare)
            a, b = (real, text) if first else (text, real)
            both = f"{a} {op} {b}" if not op.isalpha() else f"{op.replace('to', 'range')}({a}, {b})"
            raise Refused(self.pos(bare), f"{real} is not an integer, and {kind} is wanted", fix=f"write an integer, or {both}")

    def expr_BinOp(self, node: ast.BinOp, want: Type | None) -> ir.Expr:
        if type(node.op) in OPERATORS:
            name, fix, later = OPERATORS[type(node.op)]
            raise Refused(self.pos(node), f"{name} is not {'yet ' if later else ''}part of kernel-Python", fix=fix)
        op = _BINARY[type(node.op)]
        return self.binary(node, op, node.left, node.right, want)

    def binary(self, node: Any, op: str, left: ast.expr, right: ast.expr, want: Type | None) -> ir.Expr:
        if op in ("<<", ">>"):
            a = self.expr(left, want)
            b = self.expr(right)
        else:
            a, b = self.meet(node, left, right, op, want)
        return self.combine(self.pos(node), op, a, b, left, right)

    def combine(self, pos: Pos, op: str, a: ir.Expr, b: ir.Expr, left: ast.expr, right: ast.expr) -> ir.Expr:
        kind = a.type
        both = self.origins(a, left, b, right)
        if not is_number(kind) or not is_number(b.type):
            hint = "bool is not a number: use and, or, not" if kind is BOOL else "only numbers have arithmetic"
            raise Refused(pos, f"{kind} {op} {b.type} has no meaning", both, fix=hint)
        if kind is F32:
            if op not in ("+", "-", "*", "/"):
                raise Refused(pos, f"f32 {op} f32 has no meaning", both, fix="convert to an integer first")
            return ir.Bin(pos, F32, op, a, b)
        if op == "/":
            raise Refused(pos, f"/ on integers has no meaning: {kind} / {b.type}", both, fix="write // (unsigned), div_floor or div_trunc (signed), or f32(a) / f32(b)")
        made = ir.Bin(pos, kind, op, a, b, checked=op in ("+", "-", "*", "<<"))
        if op in ("//", "%"):
            if kind.signed:  # type: ignore[attr-defined]
                raise Refused(pos, f"{op} is for unsigned operands, and these are {kind}", both,
                              fix="say which: div_floor, div_trunc" if op == "//" else "say which: mod_floor, rem_trunc")  # fmt: skip
            if kind is U64:
                raise Refused(pos, f"{op} of u64 is a library routine on the chip", both, fix="say so: div_u64(a, b)" if op == "//" else "say so: rem_u64(a, b)")
            if isinstance(b, ir.Const) and b.value == 0:
                raise Refused(pos, "this divides by zero", fix="change the divisor")
            low = max(b.lo, 1)
            self.interval(made, *((a.lo // max(b.hi, 1), a.hi // low) if op == "//" else (0, min(a.hi, max(b.hi - 1, 0)))))
            made.checked = b.lo <= 0  # whether the divisor may be 0
            return made
        if op in ("<<", ">>"):
            if b.type.signed and not isinstance(b, ir.Const):  # type: ignore[attr-defined]
                raise Refused(b.pos, f"a shift count is unsigned, and this is {b.type}", self.origin(b, right), fix=f"convert it: u32({ast.unparse(right)})")
            if isinstance(b, ir.Const) and not 0 <= b.value < kind.bits:  # type: ignore[attr-defined]
                raise Refused(b.pos, f"a shift by {b.value} is outside {kind}", fix=f"use 0 to {kind.bits - 1}")  # type: ignore[attr-defined]
            if b.lo >= kind.bits:  # type: ignore[attr-defined]
                raise Refused(b.pos, f"a shift by {b.lo} or more is outside {kind}", fix=f"use 0 to {kind.bits - 1}")  # type: ignore[attr-defined]
            most = min(b.hi, kind.bits - 1)  # type: ignore[attr-defined]
            if op == ">>":
                made.checked = b.hi >= kind.bits  # type: ignore[attr-defined]
                ends = [a.lo >> max(b.lo, 0), a.lo >> most, a.hi >> max(b.lo, 0), a.hi >> most]
                made.lo, made.hi = min(ends), max(ends)
            else:
                ends = [a.lo << max(b.lo, 0), a.lo << most, a.hi << max(b.lo, 0), a.hi << most]
                self.interval(made, min(ends), max(ends))
                made.checked = made.checked or b.hi >= kind.bits  # type: ignore[attr-defined]
            return made
        if op in ("&", "|", "^"):
            if a.lo >= 0 and b.lo >= 0:
                made.lo, made.hi = 0, min(a.hi, b.hi) if op == "&" else (1 << max(a.hi, b.hi).bit_length()) - 1
            elif op == "&" and (a.lo >= 0 or b.lo >= 0):
                made.lo, made.hi = 0, a.hi if a.lo >= 0 else b.hi
            made.hi = min(made.hi, kind.high)  # type: ignore[attr-defined]
            if a.lo == a.hi and b.lo == b.hi:
                made.lo = made.hi = a.lo & b.lo if op == "&" else a.lo | b.lo if op == "|" else a.lo ^ b.lo
            return made
        if op == "+":
            ends = [a.lo + b.lo, a.hi + b.hi]
        elif op == "-":
            ends = [a.lo - b.hi, a.hi - b.lo]
        else:
            ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        self.interval(made, min(ends), max(ends))
        return made

    def expr_Compare(self, node: ast.Compare, want: Type | None) -> ir.Expr:
        parts: list[ir.Expr] = []
        operands = [node.left, *node.comparators]
        for middle in operands[1:-1]:
            if not isinstance(middle, (ast.Name, ast.Constant, ast.Attribute)):
                raise Refused(self.pos(middle), "a chain of comparisons has simple operands in its middle", fix="bind it to a local first")
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) in OPERATORS:
                name, fix, _ = OPERATORS[type(op)]
                raise Refused(self.pos(node), f"{name} is not yet part of kernel-Python", fix=fix)
            if isinstance(op, (ast.Is, ast.IsNot)):
                if not (isinstance(right, ast.Constant) and right.value is None):
                    raise Refused(self.pos(node), "`is` is for None only", fix="compare indices or offsets with ==")
                local = self.find(left.id) if isinstance(left, ast.Name) else None
                a: ir.Expr = ir.LocalRef(self.pos(left), local.type, local) if local is not None else self.expr(left)
                if not isinstance(a.type, OptType):
                    raise Refused(self.pos(node), f"{a.type} is never None", self.origin(a, left), fix="drop the test")
                parts.append(ir.IsNone(self.pos(node), BOOL, a, isinstance(op, ast.IsNot)))
                continue
            sign = _COMPARE[type(op)]
            a, b = self.meet(node, left, right, sign)
            if isinstance(a.type, EnumType) and sign not in ("==", "!="):
                raise Refused(self.pos(node), f"members of {a.type} have no order", fix=f"compare numbers: {a.type.base}({ast.unparse(left)})")
            if a.type is BOOL and sign not in ("==", "!="):
                raise Refused(self.pos(node), "bools have no order", fix="use and, or, not")
            if not isinstance(a.type, (Scalar, EnumType)):
                raise Refused(self.pos(node), f"{a.type} {sign} {b.type} has no meaning", self.origins(a, left, b, right), fix="compare fields, or indices")
            parts.append(ir.Compare(self.pos(node), BOOL, sign, a, b))
        return parts[0] if len(parts) == 1 else ir.Logic(self.pos(node), BOOL, "and", parts)

    def expr_BoolOp(self, node: ast.BoolOp, want: Type | None) -> ir.Expr:
        return self.condition(node)[0]

    def expr_IfExp(self, node: ast.IfExp, want: Type | None) -> ir.Expr:
        test, yes, no = self.condition(node.test)
        before = set(self.narrow)
        lit_a, lit_b = self.literal(node.body, want), self.literal(node.orelse, want)
        if want is None and (lit_a is None) != (lit_b is None):
            self.narrow = before | (no if lit_b is None else yes)
            other = self.expr(node.orelse if lit_b is None else node.body)
            want = other.type
        self.narrow = before | yes
        a = self.expr(node.body, want)
        self.narrow = before | no
        b = self.expr(node.orelse, want)
        self.narrow = before
        kind = a.type
        if kind is not b.type:
            target = want if want is not None else None
            fitted = (self.fit(a, target), self.fit(b, target)) if target is not None else (None, None)
            if fitted[0] is None or fitted[1] is None:
                if self.fit(b, a.type) is not None:
                    fitted = (a, self.fit(b, a.type))
                elif self.fit(a, b.type) is not None:
                    fitted = (self.fit(a, b.type), b)
                else:
                    raise Refused(self.pos(node), f"the arms differ: {a.type} and {b.type}", self.origins(a, node.body, b, node.orelse), fix="convert one of them")
            a, b = fitted  # type: ignore[assignment]
            kind = target if isinstance(target, OptType) else a.type
        return ir.Cond(self.pos(node), kind, test, a, b)


def many(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n != 1)}"


def are(n: int) -> str:
    return f"{n} {'is' if n == 1 else 'are'}"


def field_line(cls: Any, name: str) -> int:
    """The line on which a struct's field stands; 0 where it cannot be found."""
    try:
        tree = source(cls.__kernel_place__.file).tree
    except (OSError, SyntaxError):
        return 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == name:
                    return item.lineno
    return 0


def _plain(value: Any) -> Any:
    return bool(value) if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)


def _op_text(op: ast.operator) -> str:
    return "**" if isinstance(op, ast.Pow) else _BINARY[type(op)]


def round_f32(x: float) -> float:
    import array

    return array.array("f", [x])[0]


def text_number(text: str, kinds: list[str]) -> int:
    """A message's number: the same in every build."""
    return binascii.crc32(("".join(kinds) + "|" + text).encode())

