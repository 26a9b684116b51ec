"""The typed tree to Python code objects that check every width, bound and lifetime, at the lines of the source."""

from __future__ import annotations

import ast
import threading
from types import CodeType, FunctionType
from typing import Any

from synapticos.lang.checked import Places, helpers
from synapticos.lang.memory import P, Q, R, new_region
from synapticos.lang.types import (
    BOOL,
    F32,
    VOID,
    ArrayType,
    EnumType,
    OptType,
    PtrType,
    Scalar,
    StructType,
    TupleType,
    Type,
)
from synapticos.lang.words import Function, Rom, Static, Table

from . import ir
from .diag import Pos
from .parse import short_path
from .program import Program

_MINE = {"inf", "nan", "min", "max", "float", "range"}  # what the code made here calls by name
_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


def unit(kind: Type) -> str:
    """Name of the typed view that holds a scalar."""
    if isinstance(kind, EnumType):
        kind = kind.base
    return "u8" if kind is BOOL else kind.name


def scalar(kind: Type) -> bool:
    return isinstance(kind, (Scalar, EnumType))


class Checked:
    """One program on the checked engine: Python functions by the kernel's."""

    def __init__(self, program: Program, board: Any = None) -> None:
        self.program = program
        self.places = Places()
        self.names: dict[str, Any] = helpers(self.places, short_path)
        self.names |= {"inf": float("inf"), "nan": float("nan")}
        self.made: set[Function] = set()
        self.board = board
        self.sources: dict[Function, str] = {}  # of those that were called
        self.compiling = threading.RLock()

    def refresh(self) -> None:
        """Name what the program has gained since. A function is compiled when it is first called: most never are."""
        for function in self.program.functions:
            if function not in self.made:
                self.made.add(function)
                self.names["f_" + function.c_name] = self._first(function)
        for hal in self.program.hals():
            self.names.setdefault("f_" + hal.c_name, self._hal(hal))
        for table in self.program.tables:
            entries = self.program.entries(table)
            self.names[self.table(table)] = [self.names["f_" + f.c_name] for f in entries]

    def _first(self, function: Function) -> Any:
        def first(*arguments: Any) -> Any:
            with self.compiling:
                if function not in self.sources:
                    self._compile(function)
            return self.names["f_" + function.c_name](*arguments)

        return first

    def _compile(self, function: Function) -> None:
        text, lines = Emitter(self, self.program.functions[function]).function()
        self.sources[function] = text
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                line = lines[min(node.lineno, len(lines)) - 1]
                node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
                node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
        # Made of its code, not by running the `def`: whoever traces the kernel's lines would see that one too.
        code = next(c for c in compile(tree, function.file, "exec").co_consts if isinstance(c, CodeType))
        self.names["f_" + function.c_name] = FunctionType(code, self.names)
        for table in self.program.tables:
            for i, entry in enumerate(self.program.entries(table)):
                if entry is function:
                    self.names[self.table(table)][i] = self.names["f_" + function.c_name]

    def table(self, table: Table) -> str:
        return f"t_{table.name}_{id(table)}"

    def function(self, function: Function) -> Any:
        if function not in self.made:
            self.program.need(function)
            self.refresh()
        return self.names["f_" + function.c_name]

    def _hal(self, function: Function) -> Any:
        def call(*arguments: Any) -> Any:
            return getattr(self.board, function.__name__)(*arguments)

        return call

    def place(self, pos: Pos) -> int:
        return self.places.add(pos.file, pos.line, pos.column, pos.end)

    def global_name(self, thing: Rom | Static, kind: Type) -> str:
        name = f"g_{id(thing)}"
        if name not in self.names:
            region = new_region(max(kind.size, 1), getattr(thing, "given_name", "") or thing.name)
            element = kind.element if isinstance(kind, ArrayType) else kind
            if isinstance(thing, Rom):
                view = getattr(region, unit(element))
                if getattr(thing, "blob", False):
                    data = self.program.blobs.get(thing, b"")
                    region.buffer[: len(data)] = data
                for i, value in enumerate(thing.flat()):
                    view[i] = float(value) if element is F32 else int(value)
                region.buffer = region.buffer.toreadonly()
                delattr(region, unit(element))
            if isinstance(kind, StructType):
                self.names[name] = R(region, 0)
            elif scalar(element):
                self.names[name] = P(region, unit(element), 0, 0, kind.count)  # type: ignore[attr-defined]
            else:
                self.names[name] = Q(region, 0, 0, kind.size, element.size)
            self.names[name + "_thing"] = thing
        return name


class Emitter:
    def __init__(self, owner: Checked, made: ir.FnIR) -> None:
        self.owner, self.made = owner, made
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self.depth = 0
        self.temps = 0

    def place(self, e: ir.Expr | ir.Stmt) -> int:
        return self.owner.place(e.pos)

    def line(self, text: str, number: int) -> None:
        self.lines.append("    " * self.depth + text)
        self.numbers.append(number)

    def temp(self, prefix: str) -> str:
        self.temps += 1
        return f"_{prefix}{self.temps}"

    def name(self, local: ir.Local) -> str:
        return local.name + "__" if local.name in _MINE or local.name.startswith(("_", "f_", "g_", "t_")) else local.name

    def function(self) -> tuple[str, list[int]]:
        made = self.made
        self.line(f"def f_{made.function.c_name}({', '.join(self.name(p) for p in made.parameters)}):", made.pos.line)
        self.depth = 1
        self.body(made.body, made.pos.line)
        return "\n".join(self.lines) + "\n", self.numbers

    def body(self, body: list[ir.Stmt], number: int) -> None:
        before = len(self.lines)
        for s in body:
            getattr(self, "s_" + type(s).__name__)(s)
        if len(self.lines) == before:
            self.line("pass", number)

    # Statements

    def s_Declare(self, s: ir.Declare) -> None:
        self.line(f"{self.name(s.local)} = {self.e(s.value, s.local.name)}", s.pos.line)

    def s_Assign(self, s: ir.Assign) -> None:
        if isinstance(s.target, ir.LocalRef):
            self.line(f"{self.name(s.target.local)} = {self.e(s.value)}", s.pos.line)
            return
        value = self.e(s.value)
        if not scalar(s.target.type):
            value = f"_address({value})"
        self.line(f"{self.slot(s.target)} = {value}", s.pos.line)

    def s_Unpack(self, s: ir.Unpack) -> None:
        call = self.e(s.call)
        single = not isinstance(s.call.type, TupleType)
        got = self.temp("c")
        self.line(f"{got} = ({call},)" if single else f"{got} = {call}", s.pos.line)
        if s.check:
            rest = ", ".join(self.zero(t) for t in s.result.items[1:]) if isinstance(s.result, TupleType) else ""
            self.line(f"if {got}[0] != 0: return ({got}[0], {rest})" if rest else f"if {got}[0] != 0: return {got}[0]", s.pos.line)
        for i, target in enumerate(s.targets):
            if target is not None:
                reference = target[0]
                assert isinstance(reference, ir.LocalRef)
                self.line(f"{self.name(reference.local)} = {got}[{i}]", s.pos.line)

    def zero(self, kind: Type) -> str:
        return "False" if kind is BOOL else "0.0" if kind is F32 else "0" if scalar(kind) else "None"

    def s_Do(self, s: ir.Do) -> None:
        self.line(self.e(s.call), s.pos.line)

    def s_If(self, s: ir.If) -> None:
        self.line(f"if {self.e(s.test)}:", s.pos.line)
        self.inside(s.body, s.pos.line)
        if s.orelse:
            self.line("else:", s.orelse[0].pos.line)
            self.inside(s.orelse, s.pos.line)

    def inside(self, body: list[ir.Stmt], number: int) -> None:
        self.depth += 1
        self.body(body, number)
        self.depth -= 1

    def s_While(self, s: ir.While) -> None:
        self.line(f"while {self.e(s.test)}:", s.pos.line)
        self.inside(s.body, s.pos.line)

    def s_ForRange(self, s: ir.ForRange) -> None:
        stop = self.e(s.stop)
        kind = s.local.type
        if s.step > 1 and not isinstance(s.stop, ir.Const):
            stop = f"_loop({stop}, {s.step}, {kind.high}, {self.place(s)})"  # type: ignore[attr-defined]
        self.line(f"for {self.name(s.local)} in range({self.e(s.start)}, {stop}, {s.step}):", s.pos.line)
        self.inside(s.body, s.pos.line)

    def s_ForEach(self, s: ir.ForEach) -> None:
        base, at = self.temp("b"), self.temp("k")
        self.line(f"{base} = {self.e(s.base)}", s.pos.line)
        count = self.e(s.count)
        if isinstance(s.base.type, ArrayType) and not isinstance(s.count, ir.Const):
            count = f"_most({count}, {s.base.type.count}, {self.place(s)})"
        self.line(f"for {at} in range({count}):", s.pos.line)
        self.depth += 1
        self.line(f"{self.name(s.local)} = _elem({base}, {at}, {self.place(s)})", s.pos.line)
        self.body(s.body, s.pos.line)
        self.depth -= 1

    def s_Match(self, s: ir.Match) -> None:
        subject = self.temp("m")
        self.line(f"{subject} = {self.e(s.subject)}", s.pos.line)
        word = "if"
        for values, body in s.cases:
            number = values[0].pos.line if values else body[0].pos.line if body else s.pos.line
            if values:
                self.line(f"{word} {' or '.join(f'{subject} == {v.value}' for v in values)}:", number)
            elif word == "if":
                self.body(body, number)
                return
            else:
                self.line("else:", number)
            self.inside(body, number)
            word = "elif"

    def s_Return(self, s: ir.Return) -> None:
        self.line("return" + (" " + ", ".join(self.e(v) for v in s.values) if s.values else ""), s.pos.line)

    def s_Jump(self, s: ir.Jump) -> None:
        self.line(s.word, s.pos.line)

    def s_Assert(self, s: ir.Assert) -> None:
        self.line(f"if not {self.e(s.test)}: _failed({s.text!r}, {self.place(s)})", s.pos.line)

    # Places in memory

    def address(self, e: ir.Expr) -> tuple[str, str, str]:
        """(first use, later use, byte offset) of the struct or array `e` in the region of a root reference R."""
        if isinstance(e, ir.FieldGet):
            first, root, offset = self.address(e.base)
            return first, root, f"{offset} + {e.field.offset}" if e.field.offset else offset
        if isinstance(e, ir.Index) and isinstance(e.type, StructType) and isinstance(e.base, ir.FieldGet) and isinstance(e.base.type, ArrayType):
            first, root, offset = self.address(e.base)
            return first, root, f"{offset} + {self.flat(e.base.type, e.at, e)} * {e.type.size}"
        text = self.e(e)
        if text.isidentifier():
            return text, text, f"{text}.o"
        name = self.temp("s")
        return f"({name} := {text})", name, f"{name}.o"

    def flat(self, kind: ArrayType, at: list[ir.Expr], e: ir.Expr) -> str:
        """Index of an element, each dimension checked."""
        text = ""
        for length, index in zip(kind.dims, at, strict=False):
            mine = self.e(index)
            if not (index.lo >= 0 and index.hi < length):
                mine = f"(_i if 0 <= (_i := {mine}) < {length} else _ix(_i, {length}, {self.place(index)}))"
            text = f"({text} * {length} + {mine})" if text else mine
        return text

    def slot(self, e: ir.Expr) -> str:
        """A scalar or pointer in memory, as Python that can be read and assigned."""
        view, size = (unit(e.type), e.type.size) if scalar(e.type) else ("u64", 8)
        if isinstance(e, ir.FieldGet):
            first, root, offset = self.address(e)
            return f"{first}.r.{view}[({offset}) >> {_SHIFT[size]}]"
        assert isinstance(e, ir.Index)
        if isinstance(e.base, ir.FieldGet) and isinstance(e.base.type, ArrayType):
            first, root, offset = self.address(e.base)
            return f"{first}.r.{view}[(({offset}) >> {_SHIFT[size]}) + {self.flat(e.base.type, e.at, e)}]"
        base = self.e(e.base)
        first = base
        if not base.isidentifier():
            name = self.temp("p")
            first, base = f"({name} := {base})", name
        at = self.flat(e.base.type, e.at, e) if isinstance(e.base.type, ArrayType) else self.e(e.at[0])
        if not scalar(e.type):
            item = self.temp("q")
            return f"({item} := _elem({first}, {at}, {self.place(e)})).r.u64[{item}.o >> 3]"
        return f"{first}.v[_i if {base}.lo <= (_i := {base}.at + {at}) < {base}.hi else _out({base}, _i - {base}.at, {self.place(e)})]"

    def load(self, e: ir.Expr) -> str:
        text = self.slot(e)
        kind = e.type
        if kind is BOOL:
            return f"({text} != 0)"
        if isinstance(kind, OptType):
            kind = kind.inner
        if isinstance(kind, PtrType):
            if scalar(kind.element):
                return f"_load_p({text}, {unit(kind.element)!r})"
            return f"_load_q({text}, {kind.element.size})"
        if isinstance(kind, StructType):
            return f"_load_r({text})"
        return text

    def array(self, kind: ArrayType, region: str, offset: str) -> str:
        if scalar(kind.element):
            at = f"({offset}) >> {_SHIFT[kind.element.size]}"
            return f"_P({region}, {unit(kind.element)!r}, (_i := {at}), _i, _i + {kind.count})"
        return f"_Q({region}, (_i := {offset}), _i, _i + {kind.size}, {kind.element.size})"

    # Expressions

    def e(self, e: ir.Expr, hint: str = "") -> str:
        if isinstance(e, ir.Storage):
            return self.storage(e, hint)
        return getattr(self, "e_" + type(e).__name__)(e)

    def storage(self, e: ir.Storage, hint: str) -> str:
        region = f"_zero({max(e.type.size, 1)}, {hint!r}, {0 if e.zero else 0xA5})"
        if isinstance(e.type, ArrayType):
            return self.array(e.type, region, "0")
        return f"_R({region}, 0)"

    def e_Const(self, e: ir.Const) -> str:
        if isinstance(e.value, float):
            return "nan" if e.value != e.value else f"({e.value!r})" if e.value < 0 else repr(e.value)
        return f"({e.value})" if not isinstance(e.value, bool) and e.value < 0 else repr(e.value)

    def e_LocalRef(self, e: ir.LocalRef) -> str:
        return self.name(e.local)

    def e_GlobalRef(self, e: ir.GlobalRef) -> str:
        return self.owner.global_name(e.thing, e.type)

    def e_NoneRef(self, e: ir.NoneRef) -> str:
        return "None"

    def e_Bin(self, e: ir.Bin) -> str:
        if e.type is F32:
            a, b = self.e(e.a), self.e(e.b)
            if self.made.function.nan:
                return f"_fdiv_any({a}, {b})" if e.op == "/" else f"_fl_any({a} {e.op} {b})"
            return f"_fdiv({a}, {b}, {self.place(e)})" if e.op == "/" else f"_fl({a} {e.op} {b}, {self.place(e)})"
        a, b = (self.raw(e.a), self.raw(e.b)) if e.wraps else (self.e(e.a), self.e(e.b))
        kind = e.type
        assert isinstance(kind, Scalar)
        if e.op in ("<<", ">>"):
            b = self.e(e.b)
            if e.b.hi >= kind.bits or e.b.lo < 0:
                b = f"_count({b}, {kind.bits}, {self.place(e)})"
            if e.wraps or e.op == ">>":
                return f"({a} {e.op} {b})"
        if e.op in ("//", "%"):
            if not e.checked:
                return f"({a} {e.op} {b})"
            return f"_{'div' if e.op == '//' else 'mod'}({a}, {b}, {self.place(e)})"
        text = f"{a} {e.op} {b}"
        if e.wraps or not e.checked or e.op in ("&", "|", "^"):
            return f"({text})"
        return self.ranged(text, kind, e)

    def ranged(self, text: str, kind: Scalar, e: ir.Expr) -> str:
        return f"(_t if {kind.low} <= (_t := {text}) <= {kind.high} else _ov(_t, {kind.name!r}, {self.place(e)}))"

    def raw(self, e: ir.Expr) -> str:
        """An operand inside wrap(): its exact value, unmasked."""
        if isinstance(e, ir.Convert) and e.kind == "wrap" and not (isinstance(e.a, ir.Bin) and e.a.wraps) and not isinstance(e.a, ir.Convert):
            return self.e(e.a)
        return self.e(e)

    def e_Un(self, e: ir.Un) -> str:
        if e.type is F32:
            return f"(-{self.e(e.a)})"
        a = self.raw(e.a) if e.wraps else self.e(e.a)
        kind = e.type
        assert isinstance(kind, Scalar)
        if e.op == "~":
            return f"({a} ^ {kind.high})" if not kind.signed and not e.wraps else f"(~{a})"
        if e.wraps or not e.checked:
            return f"(-{a})"
        return self.ranged(f"-{a}", kind, e)

    def e_Not(self, e: ir.Not) -> str:
        return f"(not {self.e(e.a)})"

    def e_Compare(self, e: ir.Compare) -> str:
        a, b = self.e(e.a), self.e(e.b)
        if e.a.type is F32 and not self.made.function.nan:
            place = self.place(e)
            a = a if isinstance(e.a, ir.Const) else f"_fcmp({a}, {place})"
            b = b if isinstance(e.b, ir.Const) else f"_fcmp({b}, {place})"
        return f"({a} {e.op} {b})"

    def e_IsNone(self, e: ir.IsNone) -> str:
        return f"({self.e(e.a)} is {'not ' if e.negate else ''}None)"

    def e_Logic(self, e: ir.Logic) -> str:
        return "(" + f" {e.op} ".join(self.e(p) for p in e.parts) + ")"

    def e_Cond(self, e: ir.Cond) -> str:
        return f"({self.e(e.a)} if {self.e(e.test)} else {self.e(e.b)})"

    def e_Convert(self, e: ir.Convert) -> str:
        kind = e.type
        if e.kind == "enum":
            assert isinstance(kind, EnumType)
            return f"_enum({self.e(e.a)}, {set(kind.members.values())!r}, {kind.name!r}, {self.place(e)})"
        assert isinstance(kind, Scalar)
        if e.kind == "wrap":
            narrow = e.a.type.size < kind.size  # wrapped to fewer bits first: then these have to be exact
            inner = self.e(e.a) if narrow else self.raw(e.a)
            open_ended = isinstance(e.a, (ir.Bin, ir.Un)) and e.a.wraps or isinstance(e.a, ir.Convert) and e.a.kind == "wrap"
            if e.safe and (narrow or not open_ended):
                return inner
            mask = (1 << kind.bits) - 1
            half = 1 << (kind.bits - 1)
            return f"((({inner}) + {half} & {mask}) - {half})" if kind.signed else f"({inner} & {mask})"
        inner = self.e(e.a)
        if kind.kind == "float":
            return f"float({inner})" if e.a.lo >= -(1 << 24) and e.a.hi <= 1 << 24 else f"_to_float({inner}, {self.place(e)})"
        if e.a.type is F32:
            if e.kind == "sat":
                return f"_sat_float({inner}, {kind.low}, {kind.high})"
            return f"_to_int({inner}, {kind.low}, {kind.high}, {kind.name!r}, {self.place(e)})"
        if e.safe:
            return inner
        if e.kind == "sat":
            return f"min(max({inner}, {kind.low}), {kind.high})"
        return f"(_t if {kind.low} <= (_t := {inner}) <= {kind.high} else _ov(_t, {kind.name!r}, {self.place(e)}))"

    def e_FieldGet(self, e: ir.FieldGet) -> str:
        if isinstance(e.type, ArrayType):
            first, _, offset = self.address(e)
            return self.array(e.type, f"{first}.r", offset)
        if isinstance(e.type, StructType):
            first, _, offset = self.address(e)
            return f"_R({first}.r, {offset})"
        return self.load(e)

    def e_Index(self, e: ir.Index) -> str:
        if isinstance(e.type, StructType):
            if isinstance(e.base, ir.FieldGet) and isinstance(e.base.type, ArrayType):
                first, _, offset = self.address(e)
                return f"_R({first}.r, {offset})"
            at = self.flat(e.base.type, e.at, e) if isinstance(e.base.type, ArrayType) else self.e(e.at[0])
            return f"_elem({self.e(e.base)}, {at}, {self.place(e)})"
        return self.load(e)

    def e_Slice(self, e: ir.Slice) -> str:
        base = self.e(e.base)
        place = self.place(e)
        if e.row:
            kind = e.base.type
            assert isinstance(kind, ArrayType)
            width = kind.dims[-1]
            inner = ArrayType(kind.element, kind.dims[:-1])
            at = self.flat(inner, e.row, e)
            base = f"_cut({base}, (_j := ({at}) * {width}), _j + {width}, {place})"
        start = self.e(e.start) if e.start is not None else "0"
        return f"_cut({base}, {start}, {self.e(e.stop) if e.stop is not None else None}, {place})"

    def e_View(self, e: ir.View) -> str:
        base, kind = self.e(e.base), e.type
        if isinstance(e.base.type, ArrayType) and isinstance(kind, PtrType) and kind.element is e.base.type.element:
            return base
        if isinstance(e.base.type, StructType):
            base = f"_from_struct({base}, {e.base.type.size})"
        if isinstance(kind, StructType):
            return f"_view_r({base}, {kind.size}, {kind.align}, {kind.name!r}, {self.place(e)})"
        assert isinstance(kind, PtrType)
        if scalar(kind.element):
            return f"_view({base}, {unit(kind.element)!r}, {self.place(e)})"
        return f"_view_q({base}, {kind.element.size}, {kind.element.align}, {self.place(e)})"

    def e_FunctionRef(self, e: ir.FunctionRef) -> str:
        return f"f_{e.function.c_name}"

    def e_Call(self, e: ir.Call) -> str:
        return f"f_{e.function.c_name}({', '.join(self.e(a) for a in e.args)})"

    def e_TableCall(self, e: ir.TableCall) -> str:
        return f"_row({self.owner.table(e.table)}, {self.e(e.at)}, {self.place(e)})({', '.join(self.e(a) for a in e.args)})"

    def e_Builtin(self, e: ir.Builtin) -> str:
        args = [self.e(a) for a in e.args]
        place = self.place(e)
        if e.name in ("min", "max"):
            if e.type is F32 and not self.made.function.nan:
                args = [f"_fcmp({a}, {place})" for a in args]
            return f"{e.name}({', '.join(args)})"
        if e.name in ("bits", "from_bits"):
            return f"_{e.name}({args[0]})"
        if e.name == "isnan":
            name = self.temp("n")
            return f"(({name} := {args[0]}) != {name})"
        if e.name in ("div_u64", "rem_u64"):
            return f"_{'div' if e.name == 'div_u64' else 'mod'}({args[0]}, {args[1]}, {place})"
        if e.name in ("div_floor", "mod_floor", "div_trunc", "rem_trunc"):
            kind = e.type
            assert isinstance(kind, Scalar)
            return f"_signed({e.name!r}, {args[0]}, {args[1]}, {kind.low}, {kind.high}, {kind.name!r}, {place})"
        if e.name == "aligned":
            return f"(_address({args[0]}) & ({args[1]} - 1) == 0)"
        if e.name == "copy":
            return f"_copy_apart({args[0]}, {args[1]}, {e.args[0].type.size}, {place})"
        if e.name in ("fill", "move"):
            return f"_{e.name}({', '.join(args)}, {place})"
        if e.name == "load_acquire":
            return f"_acquire({args[0]}, {place})"
        if e.name == "store_release":
            return f"_release({args[0]}, {args[1]}, {place})"
        assert e.name == "fence" or e.type is VOID
        return "None"
