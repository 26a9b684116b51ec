"""The typed tree to C99, freestanding, line for line with the Python.

`checks` makes the build that traps where checked CPython would.
"""

from __future__ import annotations

from synapticos.lang.types import (
    BOOL,
    F32,
    ArrayType,
    Scalar,
    StructType,
    TupleType,
    Type,
)

from . import ir
from .c_expr import ExprEmitter
from .c_names import Names, ctype, declare, number, signature
from .emit_checked import scalar
from .parse import source


class FunctionEmitter(ExprEmitter):
    """C of one function, as (line, depth, text) pieces; those of line 0 are closing braces, which go where there is room."""

    def __init__(self, names: Names, made: ir.FnIR) -> None:
        super().__init__(names, made)
        self.pieces: list[tuple[int, int, str]] = []  # line, depth, text
        self.depth = 0
        self.lines = source(made.function.file).lines
        self.read = _read(made.body)
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


def _assigned(body: list[ir.Stmt]) -> set[ir.Local]:
    out: set[ir.Local] = set()
    for s in ir.every(body):
        if isinstance(s, ir.Assign) and isinstance(s.target, ir.LocalRef):
            out.add(s.target.local)
        if isinstance(s, ir.Declare):
            out.add(s.local)
        if isinstance(s, ir.Unpack):
            out |= {t[0].local for t in s.targets if t is not None}  # type: ignore[attr-defined]
    return out


def _jumps(body: list[ir.Stmt]) -> bool:
    from .check import _breaks

    return _breaks(body)


def _read(body: list[ir.Stmt]) -> set[ir.Local]:
    """Locals whose value something looks at, other than their own next value."""
    out: set[ir.Local] = set()
    for s in ir.every(body):
        own = s.target.local if isinstance(s, ir.Assign) and isinstance(s.target, ir.LocalRef) else None
        for e in ir.expressions(s):
            out |= {one.local for one in ir.below(e) if isinstance(one, ir.LocalRef) and one.local is not own}
    return out
