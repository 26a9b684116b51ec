"""Calls: functions, methods, tables, and the words of the language; the messages of f-strings."""

from __future__ import annotations

import ast
from typing import Any

from synapticos.lang import layouts as layout
from synapticos.lang import words
from synapticos.lang.types import (
    BOOL,
    F32,
    I64,
    SCALARS,
    U32,
    U64,
    VOID,
    ArrayType,
    EnumType,
    FnType,
    PtrType,
    Scalar,
    StructType,
    Type,
)
from synapticos.lang.words import Function, Table

from . import ir
from .diag import Refused
from .expr import (
    _BINARY,
    _MODULAR,
    _SIGNED_DIVISION,
    _UNSIGNED,
    _WIDE_DIVISION,
    ExprChecker,
    NotConstant,
    are,
    is_int,
    is_number,
    many,
    text_number,
)


class CallChecker(ExprChecker):
    """Adds calls to the expressions."""

    def expr_Call(self, node: ast.Call, want: Type | None) -> ir.Expr:
        if node.keywords and not (isinstance(node.func, ast.Name) and self.globals.get(node.func.id) is words.local):
            raise Refused(self.pos(node), "keyword arguments are not yet part of kernel-Python", fix="pass arguments by position")
        if isinstance(node.func, ast.Subscript):
            try:
                thing = self.global_of(node.func.value)
            except NotConstant:
                thing = None
            if isinstance(thing, Table):
                return self.table_call(node, thing)
            raise Refused(self.pos(node), "only a table() of functions is called through an index", fix="name the functions in a table()")
        try:
            target = self.global_of(node.func)
        except NotConstant:
            target = None
            if isinstance(node.func, ast.Name):
                if self.find(node.func.id) is not None:
                    raise Refused(self.pos(node), f"{node.func.id} is a local, not a function", fix="name the functions in a table()") from None
                target = self.look(node.func)
        if target is None and isinstance(node.func, ast.Attribute):
            base = self.present(self.expr(node.func.value), node.func.value)
            if isinstance(base.type, StructType) and node.func.attr in base.type.cls.__kernel_methods__:
                return self.call(node, base.type.cls.__kernel_methods__[node.func.attr], base)
            raise Refused(self.pos(node), f"{base.type} has no method {node.func.attr}", self.origin(base, node.func.value), fix="check the name")
        if isinstance(target, Function):
            return self.call(node, target)
        if target in SCALARS:
            return self.convert(node, SCALARS[target])
        if words.is_enum(target):
            kind = self.types.enum(target)
            self.arity(node, 1)
            e = self.expr(node.args[0], kind.base)
            if not is_int(e.type):
                raise Refused(e.pos, f"{kind}(...) takes a number, and this is {e.type}", fix="give it a number")
            return ir.Convert(self.pos(node), kind, "enum", e)
        if words.is_struct(target):
            raise Refused(self.pos(node), f"a {target.__name__} is not made by a call", fix=f"make one on the stack: local({target.__name__})")
        maker = getattr(self, "word_" + getattr(target, "__name__", "?"), None)
        if maker is not None and (target in vars(words).values() or target in (min, max, len, abs) or target is layout.sizeof):
            return maker(node, want)
        if target in _SIGNED_DIVISION or target in _WIDE_DIVISION:
            return self.division(node, target)
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            self.expr(node.func)
        name = ast.unparse(node.func)
        raise Refused(self.pos(node), f"{name} is plain Python: the kernel cannot call it", fix="decorate it with @fn, or compute it at import")

    def arity(self, node: ast.Call, *counts: int) -> None:
        if len(node.args) not in counts:
            name = ast.unparse(node.func)
            wanted = "no argument" if counts == (0,) else " or ".join(map(str, counts)) + " argument" + "s" * (counts != (1,))
            raise Refused(self.pos(node), f"{name} takes {wanted}, and {are(len(node.args))} given", fix="check the call")

    def call(self, node: ast.Call, function: Function, first: ir.Expr | None = None) -> ir.Expr:
        parameters, result = self.program.signature(function, self.types)
        given = len(node.args) + (first is not None)
        if given != len(parameters):
            listed = ", ".join(f"{n}: {t}" for n, t in parameters)
            raise Refused(self.pos(node), f"{function.__name__} takes {many(len(parameters), 'argument')}, and {are(given)} given", f"{function.__name__}({listed})", fix="check the call")
        args: list[ir.Expr] = []
        if first is not None:
            args.append(first)
            parameters = parameters[1:]
        for value, (_, kind) in zip(node.args, parameters, strict=True):
            args.append(self.function_value(value, kind) if isinstance(kind, FnType) else self.value(value, kind))
        self.calls.append(function)
        return ir.Call(self.pos(node), result, function, args)

    def function_value(self, node: ast.expr, kind: FnType) -> ir.Expr:
        """A function by its name, for a board to call back."""
        try:
            thing = self.global_of(node)
        except NotConstant:
            thing = None
        if not isinstance(thing, Function) or thing.kind != "fn":
            raise Refused(self.pos(node), f"a function is wanted, and this is {ast.unparse(node)}", fix=f"name one that is {kind}")
        parameters, result = self.program.signature(thing, self.types)
        if tuple(t for _, t in parameters) != kind.parameters or result is not kind.result:
            listed = ", ".join(str(t) for _, t in parameters)
            raise Refused(self.pos(node), f"{thing.__name__} is ({listed}) -> {result}, and {kind} is wanted", fix="give it that signature")
        self.calls.append(thing)
        return ir.FunctionRef(self.pos(node), kind, thing)

    def table_call(self, node: ast.Call, table: Table) -> ir.Expr:
        assert isinstance(node.func, ast.Subscript)
        kind = self.types.of(table.type)
        at = self.index_value(node.func.slice)
        self.arity(node, len(kind.parameters))  # type: ignore[attr-defined]
        args = [self.value(v, t) for v, t in zip(node.args, kind.parameters, strict=True)]  # type: ignore[attr-defined]
        self.tables.append(table)
        return ir.TableCall(self.pos(node), kind.result, table, at, args)  # type: ignore[attr-defined]

    def convert(self, node: ast.Call, kind: Scalar) -> ir.Expr:
        self.arity(node, 1)
        e = self.literal(node.args[0], kind if kind is not BOOL else None) or self.expr(node.args[0])
        if kind is BOOL:
            raise Refused(self.pos(node), "bool(...) hides a comparison", fix=f"write it: {ast.unparse(node.args[0])} != 0")
        if isinstance(e.type, EnumType):
            e = ir.Convert(e.pos, e.type.base, "widen", e)
        if not is_number(e.type):
            raise Refused(self.pos(node), f"{kind}(...) takes a number, and this is {e.type}", self.origin(e, node.args[0]), fix="write `1 if x else 0` for a bool")
        if e.type is kind:
            return e
        made = ir.Convert(self.pos(node), kind, "exact", e)
        if isinstance(e, ir.Const) and is_int(kind):
            whole = int(e.value) if e.value == e.value and abs(e.value) != float("inf") else kind.high + 1
            if not kind.low <= whole <= kind.high:
                raise Refused(e.pos, f"{e.value} does not fit {kind}", f"{kind} holds {kind.low} to {kind.high}", fix="use a wider type, or wrap()")
            return ir.Const(made.pos, kind, whole, e.name if is_int(e.type) else "")
        return made

    def word_wrap(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        kind = self.type_of(node.args[0])
        if not is_int(kind):
            raise Refused(self.pos(node), f"wrap makes integers, not {kind}", fix="name an integer width")
        unit = _UNSIGNED[max(kind.size, 4)]
        inner = self.modular(node.args[1], unit)
        if isinstance(inner, ir.Const):
            value = inner.value & ((1 << kind.bits) - 1)  # type: ignore[attr-defined]
            value -= (value > kind.high) << kind.bits  # type: ignore[attr-defined, operator]
            return ir.Const(self.pos(node), kind, value, inner.name if value == inner.value else "")
        if inner.type is kind and isinstance(inner, ir.Convert):
            return inner
        return ir.Convert(self.pos(node), kind, "wrap", inner)

    def modular(self, node: ast.expr, unit: Scalar) -> ir.Expr:
        """An expression modulo 2^n: `unit` is u32 or u64."""
        if self.is_literal(node):
            value, name = self.constant(node)
            if not isinstance(value, int) or isinstance(value, bool):
                raise Refused(self.pos(node), f"wrap takes integers, and this is {'bool' if isinstance(value, bool) else 'f32'}", fix="convert it first")
            return ir.Const(self.pos(node), unit, value & unit.high, name if 0 <= value <= unit.high else "")
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            op = _BINARY[type(node.op)]
            if op in _MODULAR:
                a, b = self.modular(node.left, unit), self.modular(node.right, unit)
                return ir.Bin(self.pos(node), unit, op, a, b, checked=False, wraps=True)
            if op == "<<":
                count = self.expr(node.right)
                if not is_int(count.type) or (count.type.signed and not isinstance(count, ir.Const)):  # type: ignore[attr-defined]
                    raise Refused(count.pos, f"a shift count is unsigned, and this is {count.type}", fix="convert it to u32")
                if isinstance(count, ir.Const) and not 0 <= count.value < unit.bits:
                    raise Refused(count.pos, f"a shift by {count.value} is outside {unit}", fix=f"use 0 to {unit.bits - 1}")
                made_bin = ir.Bin(self.pos(node), unit, "<<", self.modular(node.left, unit), count, wraps=True)
                made_bin.checked = count.hi >= unit.bits
                return made_bin
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
            a = self.modular(node.operand, unit)
            return ir.Un(self.pos(node), unit, "-" if isinstance(node.op, ast.USub) else "~", a, checked=False, wraps=True)
        e = self.expr(node)
        if isinstance(e.type, EnumType):
            e = ir.Convert(e.pos, e.type.base, "widen", e)
        if not is_int(e.type):
            raise Refused(e.pos, f"wrap takes integers, and this is {e.type}", self.origin(e, node), fix="convert it first")
        if isinstance(e, ir.Const):
            return ir.Const(e.pos, unit, e.value & unit.high)
        return ir.Convert(e.pos, unit, "wrap", e) if e.type is not unit else e

    def word_sat(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        kind = self.type_of(node.args[0])
        e = self.expr(node.args[1])
        if not is_int(kind) or not is_number(e.type):
            raise Refused(self.pos(node), f"sat({kind}, {e.type}) has no meaning", fix="name an integer width and give a number")
        return ir.Convert(self.pos(node), kind, "sat", e)

    def word_view(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        kind = self.type_of(node.args[0])
        base = self.present(self.expr(node.args[1]), node.args[1])
        if not isinstance(base.type, (PtrType, ArrayType, StructType)):
            raise Refused(self.pos(node), f"view needs memory, and this is {base.type}", self.origin(base, node.args[1]), fix="give it a pointer, an array or a struct")
        if isinstance(kind, (Scalar, EnumType, PtrType)):
            return ir.View(self.pos(node), self.types.ptr(kind), base)
        if isinstance(kind, StructType):
            return ir.View(self.pos(node), kind, base)
        raise Refused(self.pos(node), f"view cannot see {kind}", fix="name a width or a struct")

    def word_bits(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        return ir.Builtin(self.pos(node), U32, "bits", [self.value(node.args[0], F32)])

    def word_from_bits(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        return ir.Builtin(self.pos(node), F32, "from_bits", [self.value(node.args[0], U32)])

    def word_isnan(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        return ir.Builtin(self.pos(node), BOOL, "isnan", [self.value(node.args[0], F32)])

    def extreme(self, node: ast.Call, name: str, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        a, b = self.meet(node, node.args[0], node.args[1], name, want)
        if not is_number(a.type):
            raise Refused(self.pos(node), f"{name} of {a.type} has no meaning", fix="give it numbers")
        made = ir.Builtin(self.pos(node), a.type, name, [a, b])
        if is_int(a.type):
            made.lo, made.hi = (min(a.lo, b.lo), min(a.hi, b.hi)) if name == "min" else (max(a.lo, b.lo), max(a.hi, b.hi))
        return made

    def word_min(self, node: ast.Call, want: Type | None) -> ir.Expr:
        return self.extreme(node, "min", want)

    def word_max(self, node: ast.Call, want: Type | None) -> ir.Expr:
        return self.extreme(node, "max", want)

    def word_abs(self, node: ast.Call, want: Type | None) -> ir.Expr:
        raise Refused(self.pos(node), "abs is not yet part of kernel-Python", fix="write max(x, -x)")

    def word_len(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        e = self.expr(node.args[0])
        if not isinstance(e.type, ArrayType):
            raise Refused(self.pos(node), f"{e.type} has no length", self.origin(e, node.args[0]), fix="pass the length beside the pointer")
        kind, length = want if isinstance(want, Scalar) and is_int(want) else U32, e.type.dims[0]
        if length > kind.high:
            raise Refused(self.pos(node), f"the length {length} does not fit {kind}", f"{kind} holds {kind.low} to {kind.high}", fix="use a wider type")
        return ir.Const(self.pos(node), kind, length)

    def division(self, node: ast.Call, target: Any) -> ir.Expr:
        wide = target in _WIDE_DIVISION
        name = (_WIDE_DIVISION if wide else _SIGNED_DIVISION)[target]
        self.arity(node, 2)
        if wide:
            a, b = self.value(node.args[0], U64), self.value(node.args[1], U64)
        else:
            a, b = self.meet(node, node.args[0], node.args[1], name, want=None)
            if not is_int(a.type) or a.type is I64:
                raise Refused(self.pos(node), f"{name} of {a.type} has no meaning", self.origins(a, node.args[0], b, node.args[1]),
                              fix="divide in 32 bits" if a.type is I64 else "give it integers")  # fmt: skip
        if isinstance(b, ir.Const) and b.value == 0:
            raise Refused(self.pos(node), "this divides by zero", fix="change the divisor")
        return ir.Builtin(self.pos(node), a.type, name, [a, b])

    def word_local(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1, 2)
        zero = True
        for keyword in node.keywords:
            if keyword.arg != "zero" or not isinstance(keyword.value, ast.Constant) or not isinstance(keyword.value.value, bool):
                raise Refused(self.pos(keyword.value), "local(...) takes zero=False, and nothing else by name", fix="write local(T, n, zero=False)")
            zero = keyword.value.value
        if node is not self.whole:
            raise Refused(self.pos(node), "local(...) begins a local of its own", fix=f"bind it first: buffer = {ast.unparse(node)}")
        if self.loops:
            raise Refused(self.pos(node), "local(...) in a loop is not yet part of kernel-Python", fix="move it before the loop")
        kind = self.type_of(node.args[0])
        if len(node.args) == 2:
            try:
                count, _ = self.constant(node.args[1])
            except NotConstant:
                raise Refused(self.pos(node.args[1]), "the length of a local array is a constant", fix="use the largest it can be: a param") from None
            kind = self.types.array(kind, (int(count),))
        elif not isinstance(kind, StructType):
            raise Refused(self.pos(node), f"local({kind}) is a variable", fix=f"write `x: {kind} = 0`")
        return ir.Storage(self.pos(node), kind, zero)

    def word_null(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        kind = self.type_of(node.args[0])
        inner = kind if isinstance(kind, StructType) else self.types.ptr(kind)
        return ir.NoneRef(self.pos(node), self.types.optional(inner))

    def word_check(self, node: ast.Call, want: Type | None) -> ir.Expr:
        raise Refused(self.pos(node), "check(...) is a statement, or the whole right side of an assignment", fix="bind its result to a local first")

    word_ignore = word_check

    # Memory words: statements that are calls

    def word_copy(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        a, b = self.expr(node.args[0]), self.expr(node.args[1])
        if a.type is not b.type or not isinstance(a.type, (StructType, ArrayType)):
            raise Refused(self.pos(node), f"copy({a.type}, {b.type}) has no meaning", self.origins(a, node.args[0], b, node.args[1]),
                          fix="copy two structs or arrays of one type; move(dst, src, n) moves elements")  # fmt: skip
        return ir.Builtin(self.pos(node), VOID, "copy", [a, b])

    def pointer(self, node: ast.expr) -> ir.Expr:
        e = self.present(self.expr(node), node)
        if isinstance(e.type, ArrayType):
            e = ir.View(e.pos, self.types.ptr(e.type.element), e)
        if not isinstance(e.type, PtrType):
            raise Refused(e.pos, f"a pointer or array is wanted, and this is {e.type}", self.origin(e, node), fix="use view(u8, x) for a struct")
        return e

    def word_fill(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 3)
        p = self.pointer(node.args[0])
        element = p.type.element  # type: ignore[attr-defined]
        if not isinstance(element, Scalar):
            raise Refused(p.pos, f"fill sets numbers, and this is {p.type}", fix="view it as u8")
        return ir.Builtin(self.pos(node), VOID, "fill", [p, self.value(node.args[1], element), self.value(node.args[2], U32)])

    def word_move(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 3)
        a, b = self.pointer(node.args[0]), self.pointer(node.args[1])
        if a.type is not b.type:
            raise Refused(self.pos(node), f"move({a.type}, {b.type}) mixes elements", fix="view both as one type")
        return ir.Builtin(self.pos(node), VOID, "move", [a, b, self.value(node.args[2], U32)])

    def word_aligned(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        p = self.pointer(node.args[0])
        to = self.literal(node.args[1], U32)
        if not isinstance(to, ir.Const) or to.value == 0 or to.value & (to.value - 1):
            raise Refused(self.pos(node), "an alignment is a constant power of two", fix="write 4, 8 or 16")
        return ir.Builtin(self.pos(node), BOOL, "aligned", [p, to])

    def shared_word(self, node: ast.expr) -> tuple[ir.Expr, Type]:
        """A pointer to what is read and written by one instruction on every chip."""
        p = self.pointer(node)
        kind = p.type.element  # type: ignore[attr-defined]
        if not is_int(kind) or kind.size > 4:
            raise Refused(p.pos, f"{kind} is not read or written at once on every chip", fix="share an integer of at most 32 bits")
        return p, kind

    def word_load_acquire(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 1)
        p, kind = self.shared_word(node.args[0])
        return ir.Builtin(self.pos(node), kind, "load_acquire", [p])

    def word_store_release(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 2)
        p, kind = self.shared_word(node.args[0])
        return ir.Builtin(self.pos(node), VOID, "store_release", [p, self.value(node.args[1], kind)])

    def word_fence(self, node: ast.Call, want: Type | None) -> ir.Expr:
        self.arity(node, 0)
        return ir.Builtin(self.pos(node), VOID, "fence", [])

    # Text

    def text_parts(self, node: ast.expr) -> tuple[str, list[tuple[ast.expr, str, str]]]:
        """The text with {0}... for the values, and (node, format, literal text before) of each."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value.replace("{", "{{").replace("}", "}}"), []
        if not isinstance(node, ast.JoinedStr):
            raise Refused(self.pos(node), "text here is a string or an f-string", fix='write f"..."')
        text, before = "", ""
        values: list[tuple[ast.expr, str, str]] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value).replace("{", "{{").replace("}", "}}")
                before += str(part.value)
            else:
                assert isinstance(part, ast.FormattedValue)
                form = ""
                if part.conversion != -1 or any(not isinstance(v, ast.Constant) for v in getattr(part.format_spec, "values", [])):
                    raise Refused(self.pos(part), "a value of a message is converted by nothing and has a format that is written out", fix="write {x}, {x:>7} or {x:x}")
                if part.format_spec is not None:
                    form = "".join(str(v.value) for v in part.format_spec.values if isinstance(v, ast.Constant))  # type: ignore[attr-defined]
                text += "{" + str(len(values)) + (":" + form if form else "") + "}"
                values.append((part.value, form, before))
                before = ""
        return text, values

    def raw(self, node: ast.expr) -> ir.Expr:
        """A value of a message as u64 (signed ones as their two's complement in 64 bits)."""
        e = self.expr(node)
        if e.type is BOOL:
            one, zero = ir.Const(e.pos, U64, 1), ir.Const(e.pos, U64, 0)
            return ir.Cond(e.pos, U64, e, one, zero)
        if isinstance(e.type, EnumType):
            e = ir.Convert(e.pos, e.type.base, "widen", e)
        if not is_int(e.type):
            raise Refused(e.pos, f"a message holds integers, bools and enums, and this is {e.type}", self.origin(e, node), fix="convert it, or leave it out")
        if e.type.signed:  # type: ignore[attr-defined]
            e = ir.Convert(e.pos, I64, "widen", e) if e.type is not I64 else e
            return ir.Convert(e.pos, U64, "wrap", e)
        return ir.Convert(e.pos, U64, "widen", e) if e.type is not U64 else e

    def message(self, node: ast.expr) -> tuple[ir.Const, ir.Const, list[ir.Expr]]:
        """Number of the text, count of the values, four values."""
        text, values = self.text_parts(node)
        if len(values) > 4:
            raise Refused(self.pos(node), f"a message holds four values, and this has {len(values)}", fix="split it")
        kinds = []
        raws = []
        for value, _, _ in values:
            e = self.expr(value)
            kinds.append("i" if isinstance(e.type, Scalar) and e.type.signed else e.type.name if isinstance(e.type, EnumType) else "b" if e.type is BOOL else "u")
            raws.append(self.raw(value))
        pos = self.pos(node)
        number = text_number(text, kinds)
        other = self.program.texts.get(number)
        if other is not None and other != (text, kinds):
            raise Refused(pos, f"this text has the number of another: {other[0]!r}", fix="change a word of it")
        self.program.text(text, kinds)
        raws += [ir.Const(pos, U64, 0)] * (4 - len(raws))
        return ir.Const(pos, U32, number), ir.Const(pos, U32, len(values)), raws

    def word_refuse(self, node: ast.Call, want: Type | None) -> ir.Expr:
        from synapticos.kernel import note

        self.arity(node, 3)
        target = note.Note.__kernel_methods__["refuse"]  # type: ignore[attr-defined]
        parameters, result = self.program.signature(target, self.types)
        self.calls.append(target)
        args = [self.value(node.args[0], parameters[0][1]), self.value(node.args[1], parameters[1][1])]
        number, count, raws = self.message(node.args[2])
        return ir.Call(self.pos(node), result, target, [*args, number, count, *raws])
