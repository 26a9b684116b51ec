"""Functions: statements, scopes, what is not None where, order of effects; the result is an `ir.FnIR`."""

from __future__ import annotations

import ast
from typing import Any

from synapticos.lang import words
from synapticos.lang.types import (
    BOOL,
    I32,
    U32,
    VOID,
    ArrayType,
    EnumType,
    OptType,
    PtrType,
    Scalar,
    StructType,
    TupleType,
    Type,
    Types,
)
from synapticos.lang.words import Function

from . import ir
from .calls import CallChecker
from .diag import Follows, Message, Refused
from .expr import NotConstant, is_int, many
from .parse import node_of
from .refusals import CONSTRUCTS

_LEVELS = {"error": 1, "warning": 2, "info": 3, "debug": 4}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.LShift: "<<",
              ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}  # fmt: skip


def ends(body: list[ir.Stmt]) -> bool:
    """Control never leaves this block at its end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ir.Return,)) or (isinstance(last, ir.Jump) and last.word != "pass"):
        return True
    if isinstance(last, ir.If):
        return ends(last.body) and ends(last.orelse)
    if isinstance(last, ir.Match):
        return any(not c for c, _ in last.cases) and all(ends(b) for _, b in last.cases)
    if isinstance(last, ir.While):
        return isinstance(last.test, ir.Const) and bool(last.test.value) and not _breaks(last.body)
    return False


def _breaks(body: list[ir.Stmt]) -> bool:
    for s in body:
        if isinstance(s, ir.Jump) and s.word == "break":
            return True
        if isinstance(s, ir.If) and (_breaks(s.body) or _breaks(s.orelse)):
            return True
        if isinstance(s, ir.Match) and any(_breaks(b) for _, b in s.cases):
            return True
    return False


class FunctionChecker(CallChecker):
    """One function of one program."""

    def __init__(self, function: Function, program: Any, types: Types) -> None:
        super().__init__(function)
        self.program, self.types = program, types
        self.messages: list[Message] = []
        self.kinds: dict[str, ir.Local] = {}
        self.writes = False
        self.whole: ast.expr | None = None  # the right side of the assignment that begins a local

    def run(self) -> ir.FnIR:
        """The typed function. Raises LanguageError's messages through `self.messages`."""
        node = node_of(self.function)
        if isinstance(node, ast.AsyncFunctionDef):
            name, fix, _ = CONSTRUCTS[ast.AsyncFunctionDef]
            raise Refused(self.pos(node), f"{name} is not part of kernel-Python", fix=fix)
        parameters = []
        listed, self.result = self.program.signature(self.function, self.types)
        for argument, (name, kind) in zip(node.args.args, listed, strict=True):
            local = ir.Local(name, kind, self.pos(argument))
            parameters.append(local)
            self.scopes[0][name] = local
            self.kinds[name] = local
        doc = ast.get_docstring(node) or ""
        body_nodes = node.body[1:] if doc and isinstance(node.body[0], ast.Expr) else node.body
        body = self.block(body_nodes, scope=False)
        if self.result is not VOID and not ends(body) and not self.messages and self.function.kind != "hal":
            self.messages.append(Refused(self.pos(node), f"{self.function.__name__} may end without a result, and {self.result} is promised",
                                         fix="return a value on every path").message)  # fmt: skip
        if self.function.pure and self.writes:
            self.messages.append(Refused(self.pos(node), f"{self.function.__name__} is declared pure and writes memory", fix="drop pure=True").message)
        return ir.FnIR(self.function, parameters, self.result, body, doc, self.pos(node), node.end_lineno or node.lineno,
                       self.calls, self.tables, self.writes, self.storage)  # fmt: skip

    # Blocks

    def block(self, nodes: list[ast.stmt], scope: bool = True, locals_: list[ir.Local] | None = None) -> list[ir.Stmt]:
        if scope:
            self.scopes.append({x.name: x for x in locals_ or []})
        out: list[ir.Stmt] = []
        for node in nodes:
            try:
                if out and ends(out):
                    raise Refused(self.pos(node), "this is never reached", fix="delete it, or the jump before it")
                made = self.statement(node)
                for s in made:
                    self.order(s)
                out += made
            except Refused as refused:
                self.say(refused)
                self.recover(node)
        if scope:
            for name, local in self.scopes.pop().items():
                self.ended[name] = local.pos
        return out

    def say(self, refused: Refused) -> None:
        if not isinstance(refused, Follows):
            self.messages.append(refused.message)

    def recover(self, node: ast.stmt) -> None:
        """After a message: let a name that was to be born exist, so that it is not reported again."""
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            try:
                self.declare(node.target, self.type_of(node.annotation))
            except Refused:
                pass
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.For)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.broken |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and self.find(n.id) is None}

    def test(self, node: ast.expr) -> tuple[ir.Expr, set[ir.Local], set[ir.Local]]:
        """The condition of a statement; what is wrong with it does not hide what is wrong inside."""
        try:
            return self.condition(node)
        except Refused as refused:
            self.say(refused)
            return ir.Const(self.pos(node), BOOL, True), set(), set()

    def statement(self, node: ast.stmt) -> list[ir.Stmt]:
        if type(node) in CONSTRUCTS:
            name, fix, later = CONSTRUCTS[type(node)]
            raise Refused(self.pos(node), f"{name} is not {'yet ' if later else ''}part of kernel-Python", fix=fix)
        method = getattr(self, "stmt_" + type(node).__name__, None)
        if method is None:
            raise Refused(self.pos(node), f"{type(node).__name__} is not part of kernel-Python", fix="see docs/language.md")
        made = method(node)
        return made if isinstance(made, list) else [made]

    def stmt_Pass(self, node: ast.Pass) -> ir.Stmt:
        return ir.Jump(self.pos(node), "pass")

    def stmt_Break(self, node: ast.Break) -> ir.Stmt:
        return ir.Jump(self.pos(node), "break")

    def stmt_Continue(self, node: ast.Continue) -> ir.Stmt:
        return ir.Jump(self.pos(node), "continue")

    # Locals

    def declare(self, node: ast.Name, kind: Type) -> ir.Local:
        known = self.kinds.get(node.id)
        if known is not None and known.type is not kind and not isinstance(known.type, TupleType):
            raise Refused(self.pos(node), f"{node.id} is {known.type} in this function, and here {kind}", f"{node.id} began at {self.where(known.pos)}",
                          fix="use another name")  # fmt: skip
        local = ir.Local(node.id, kind, self.pos(node))
        self.scopes[-1][node.id] = local
        self.kinds[node.id] = local
        return local

    def born(self, e: ir.Expr, node: ast.Name, value: ast.expr) -> Type:
        """The type of a local whose first value is `e`."""
        arms = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        if isinstance(e.type, Scalar) and e.type.kind != "bool" and all(self.is_literal(arm) for arm in arms):
            bare = "both arms are bare literals" if len(arms) == 2 else f"{ast.unparse(value)} is a bare literal"
            raise Refused(self.pos(node), f"{node.id} has no width: {bare}", fix=f"write it: {node.id}: {e.type} = {ast.unparse(value)}")
        if e.type is VOID:
            raise Refused(self.pos(node), "this call has no result", fix="drop the assignment")
        if isinstance(e.type, TupleType):
            raise Refused(self.pos(node), f"this call has {many(len(e.type.items), 'result')}", fix="name each: a, b = ...")
        return e.type

    def assigned_now(self, local: ir.Local, e: ir.Expr) -> None:
        self.narrow.discard(local)
        if isinstance(local.type, OptType) and not isinstance(e.type, OptType):
            self.narrow.add(local)

    def may_assign(self, local: ir.Local, node: ast.expr) -> None:
        if local.loop:
            raise Refused(self.pos(node), f"{local.name} is the variable of a loop, and loops do not look at changes to it", fix="copy it to another local")

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> ir.Stmt:
        if not isinstance(node.target, ast.Name):
            raise Refused(self.pos(node), "only a local's first assignment has a type written", fix="drop the annotation")
        if node.value is None:
            raise Refused(self.pos(node), f"{node.target.id} has no value", fix="give it one")
        kind = self.type_of(node.annotation)
        if self.find(node.target.id) is not None:
            raise Refused(self.pos(node), f"{node.target.id} exists already", f"{node.target.id} began at {self.where(self.find(node.target.id).pos)}",  # type: ignore[union-attr]
                          fix="drop the annotation, or use another name")  # fmt: skip
        if self.is_check(node.value):
            return self.checked_call(node, [node.target], kind)
        self.whole = node.value
        value = self.value(node.value, kind)
        local = self.declare(node.target, kind)
        return self.begin(node, local, value)

    def begin(self, node: ast.stmt, local: ir.Local, value: ir.Expr) -> ir.Stmt:
        if isinstance(value, ir.Storage):
            local.storage = True
            self.storage.append(local)
        self.assigned_now(local, value)
        return ir.Declare(self.pos(node), local, value)

    def is_check(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self.globals.get(node.func.id) is words.check and self.find(node.func.id) is None

    def stmt_Assign(self, node: ast.Assign) -> ir.Stmt:
        if len(node.targets) != 1:
            raise Refused(self.pos(node), "a = b = c is not part of kernel-Python", fix="write two assignments")
        target = node.targets[0]
        if self.is_check(node.value):
            return self.checked_call(node, list(target.elts) if isinstance(target, ast.Tuple) else [target])
        if isinstance(target, ast.Tuple):
            return self.unpack(node, target)
        if isinstance(target, ast.Name):
            local = self.find(target.id)
            if local is None:
                self.whole = node.value
                e = self.expr(node.value)
                return self.begin(node, self.declare(target, self.born(e, target, node.value)), e)
            self.may_assign(local, target)
            if local.storage:
                raise Refused(self.pos(node), f"{target.id} is memory of this function and cannot become another", f"{target.id} began at {self.where(local.pos)}", fix="copy() into it, or use another name")
            self.changes(node)
            value = self.value(node.value, local.type)
            self.assigned_now(local, value)
            return ir.Assign(self.pos(node), ir.LocalRef(self.pos(target), local.type, local), value)
        self.changes(node)
        place = self.place(target)
        return ir.Assign(self.pos(node), place, self.value(node.value, place.type))

    def changes(self, node: ast.Assign) -> None:
        if type(node.targets[0]) is type(node.value) and ast.unparse(node.targets[0]) == ast.unparse(node.value):
            raise Refused(self.pos(node), f"{ast.unparse(node.value)} is assigned to itself", fix="delete the line")

    def place(self, node: ast.expr) -> ir.Expr:
        """A field or element that may be stored to."""
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            raise Refused(self.pos(node), f"{ast.unparse(node)} cannot be assigned to", fix="assign to a local, a field or an element")
        e = self.expr(node)
        if not isinstance(e, (ir.FieldGet, ir.Index)):
            raise Refused(self.pos(node), f"{ast.unparse(node)} cannot be assigned to", fix="assign to a local, a field or an element")
        if isinstance(e.type, (StructType, ArrayType)):
            raise Refused(self.pos(node), f"{ast.unparse(node)} is a {e.type}, which is not assigned but copied", fix=f"copy({ast.unparse(node)}, ...)")
        root = e
        while isinstance(root, (ir.FieldGet, ir.Index, ir.Slice, ir.View)):
            root = root.base  # type: ignore[assignment]
        if isinstance(root, ir.GlobalRef) and isinstance(root.thing, words.Rom):
            raise Refused(self.pos(node), f"{root.thing.name} is a rom table", fix="copy it to memory first")
        if not (isinstance(root, ir.LocalRef) and root.local.storage):
            self.writes = True
        return e

    def stmt_AugAssign(self, node: ast.AugAssign) -> ir.Stmt:
        if isinstance(node.target, ast.Name):
            local = self.find(node.target.id)
            if local is None:
                self.look(node.target)
                raise Refused(self.pos(node), f"{node.target.id} is not a local", fix="keep state in a struct and pass it")
            self.may_assign(local, node.target)
            target: ir.Expr = ir.LocalRef(self.pos(node.target), local.type, local)
        else:
            target = self.place(node.target)
        op = _OPERATORS.get(type(node.op))
        if op is None:
            return [self.expr(ast.BinOp(node.target, node.op, node.value))]  # type: ignore[return-value, list-item]
        load = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node.target)
        for sub in ast.walk(load):
            ast.copy_location(sub, node.target) if hasattr(sub, "lineno") else None
        value = self.binary(node, op, load, node.value, target.type)
        made = self.fit(value, target.type)
        if made is None:
            raise Refused(self.pos(node), f"{target.type} {op}= {value.type} does not fit", self.origin(target, node.target), fix=f"convert the right side: {target.type}({ast.unparse(node.value)})")
        plain = isinstance(value, ir.Bin) and made is value
        return ir.Assign(self.pos(node), target, made, augmented=plain)

    def unpack(self, node: ast.Assign, target: ast.Tuple) -> ir.Stmt:
        if isinstance(node.value, ast.Tuple):
            raise Refused(self.pos(node), "a, b = x, y is not part of kernel-Python", fix="write two assignments")
        call = self.expr(node.value)
        if not isinstance(call, (ir.Call, ir.TableCall)) or not isinstance(call.type, TupleType):
            raise Refused(self.pos(node), f"this is one value, {call.type}, and {len(target.elts)} names wait for it", fix="assign it to one name")
        if len(call.type.items) != len(target.elts):
            raise Refused(self.pos(node), f"the call has {many(len(call.type.items), 'result')}, and {many(len(target.elts), 'name')} wait for them", fix="name each; _ for one not used")
        return ir.Unpack(self.pos(node), self.targets(target.elts, call.type.items), call)

    def targets(self, nodes: list[ast.expr], kinds: tuple[Type, ...] | list[Type]) -> list[tuple[ir.Expr, bool] | None]:
        out: list[tuple[ir.Expr, bool] | None] = []
        for element, kind in zip(nodes, kinds, strict=True):
            if not isinstance(element, ast.Name):
                raise Refused(self.pos(element), "results are bound to locals", fix="bind it to a local, then store it")
            if element.id == "_":
                out.append(None)
                continue
            local = self.find(element.id)
            new = local is None
            if local is None:
                local = self.declare(element, kind)
            else:
                self.may_assign(local, element)
                if local.type is not kind and not (isinstance(local.type, OptType) and local.type.inner is kind):
                    raise Refused(self.pos(element), f"{element.id} is {local.type}, and this result is {kind}", f"{element.id} began at {self.where(local.pos)}", fix="use another name")
            self.narrow.discard(local)
            if isinstance(local.type, OptType) and not isinstance(kind, OptType):
                self.narrow.add(local)
            out.append((ir.LocalRef(self.pos(element), local.type, local), new))
        return out

    def checked_call(self, node: ast.stmt, targets: list[ast.expr], wanted: Type | None = None) -> ir.Stmt:
        """`x = check(f(...))`: hand a Status that is not OK on to the caller."""
        outer = node.value  # type: ignore[attr-defined]
        self.arity(outer, 1)
        call = self.expr(outer.args[0])
        items = call.type.items if isinstance(call.type, TupleType) else (call.type,)
        if not isinstance(call, (ir.Call, ir.TableCall)) or not _is_status(items[0]):
            raise Refused(self.pos(outer), f"check takes a call whose first result is a Status, and this is {call.type}", fix="drop check")
        mine = self.result.items if isinstance(self.result, TupleType) else (self.result,)
        if not _is_status(mine[0]):
            raise Refused(self.pos(outer), f"check hands a Status on, and {self.function.__name__} returns {self.result}", fix="return a Status, or test it here")
        rest = [i.inner if isinstance(i, OptType) else i for i in items[1:]]
        if len(rest) != len(targets):
            raise Refused(self.pos(node), f"the call has {many(len(rest), 'result')} beside its Status, and {many(len(targets), 'name')} wait for them", fix="name each; _ for one not used")
        if wanted is not None and rest[0] is not wanted:
            raise Refused(self.pos(node), f"this result is {rest[0]}, and {wanted} is written", fix="drop the annotation")
        return ir.Unpack(self.pos(node), [None, *self.targets(targets, rest)], call, True, self.result)

    def stmt_Expr(self, node: ast.Expr) -> list[ir.Stmt]:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return []
        if self.is_check(value):
            return [self.checked_call(node, [])]
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute):
                try:
                    base = self.global_of(value.func.value)
                except NotConstant:
                    base = None
                if base is words.console and value.func.attr == "print":
                    return self.console(value)
                if base is words.log:
                    return self.log(value)
            try:
                target = self.global_of(value.func)
            except NotConstant:
                target = None
            if target is words.ignore:
                self.arity(value, 1)
                return [self.discard(node, self.expr(value.args[0]))]
        e = self.expr(value)
        first = e.type.items[0] if isinstance(e.type, TupleType) else e.type
        if _is_status(first):
            raise Refused(self.pos(node), "this Status is not looked at", fix=f"write check({ast.unparse(value)}), bind it, or ignore(...)")
        if not isinstance(e, (ir.Call, ir.TableCall, ir.Builtin)):
            raise Refused(self.pos(node), "this value goes nowhere", fix="assign it, or delete the line")
        if isinstance(e, ir.Builtin):
            if e.type is not VOID and e.name != "load_acquire":
                raise Refused(self.pos(node), "this value goes nowhere", fix="assign it, or delete the line")
            if e.name in ("copy", "fill", "move", "store_release"):
                self.stores_through(e.args[0], value.args[0] if isinstance(value, ast.Call) else value)
            return [ir.Do(self.pos(node), e)]
        return [self.discard(node, e)]

    def stores_through(self, e: ir.Expr, node: ast.expr) -> None:
        root = e
        while isinstance(root, (ir.FieldGet, ir.Index, ir.Slice, ir.View)):
            root = root.base  # type: ignore[assignment]
        if isinstance(root, ir.GlobalRef) and isinstance(root.thing, words.Rom):
            raise Refused(self.pos(node), f"{root.thing.name} is a rom table", fix="copy it to memory first")
        if not (isinstance(root, ir.LocalRef) and root.local.storage):
            self.writes = True

    def discard(self, node: ast.stmt, e: ir.Expr) -> ir.Stmt:
        if not isinstance(e, (ir.Call, ir.TableCall)):
            raise Refused(self.pos(node), "only a call is ignored", fix="delete the line")
        if isinstance(e.type, TupleType):
            return ir.Unpack(self.pos(node), [None] * len(e.type.items), e)
        return ir.Do(self.pos(node), e)

    # Text

    def log(self, node: ast.Call) -> list[ir.Stmt]:
        from synapticos.kernel import log as module

        assert isinstance(node.func, ast.Attribute)
        if node.func.attr not in _LEVELS:
            raise Refused(self.pos(node), f"log.{node.func.attr} is no level", fix="log.error, log.warning, log.info or log.debug")
        self.arity(node, 2)
        target = module.Log.__kernel_methods__["write"]  # type: ignore[attr-defined]
        parameters, result = self.program.signature(target, self.types)
        self.calls.append(target)
        receiver = self.value(node.args[0], parameters[0][1])
        number, count, raws = self.message(node.args[1])
        level = ir.Const(self.pos(node), U32, _LEVELS[node.func.attr])
        self.writes = True
        return [ir.Do(self.pos(node), ir.Call(self.pos(node), result, target, [receiver, level, number, count, *raws]))]

    def console(self, node: ast.Call) -> list[ir.Stmt]:
        from synapticos.kernel import text

        module: Any = text

        self.arity(node, 1)
        _, values = self.text_parts(node.args[0])
        pos = self.pos(node)
        out: list[ir.Stmt] = []

        def call(function: Function, args: list[ir.Expr]) -> None:
            self.calls.append(function)
            out.append(ir.Do(pos, ir.Call(pos, VOID, function, args)))

        def write(text: str) -> None:
            if text:
                table = self.program.text_table(text)
                data = ir.GlobalRef(pos, self.types.array(self.types.of(words.u8), table.shape), table)
                call(module.console_text, [ir.View(pos, self.types.ptr(self.types.of(words.u8)), data), ir.Const(pos, U32, table.shape[0] - 1)])

        tail = ""
        literal = node.args[0]
        if isinstance(literal, ast.Constant):
            tail = str(literal.value)
        elif isinstance(literal, ast.JoinedStr) and literal.values and isinstance(literal.values[-1], ast.Constant):
            tail = str(literal.values[-1].value)
        for value, form, before in values:
            write(before)
            e = self.expr(value)
            if isinstance(e.type, EnumType):  # its number
                e = ir.Convert(e.pos, e.type.base, "widen", e)
            zero, base, width = form.startswith("0"), 10, form.lstrip(">")
            if width.endswith("x"):
                base, width = 16, width[:-1]
            if width and not width.isdigit():
                raise Refused(self.pos(value), f"the format {form!r} is not part of kernel-Python", fix="use a width (:>7), zeros (:04) or :x")
            if isinstance(e.type, Scalar) and e.type.signed and e.type.kind == "int":
                e = e if e.type.name == "i64" else ir.Convert(e.pos, self.types.of(words.i64), "widen", e)
                call(module.console_signed, [e, ir.Const(pos, U32, int(width or 0))])
            else:
                call(module.console_unsigned, [self.raw(value), ir.Const(pos, U32, int(width or 0)), ir.Const(pos, U32, base), ir.Const(pos, BOOL, zero)])
        write(tail + "\n" if isinstance(literal, ast.Constant) or tail or not values else "\n")
        self.writes = True
        return out

    # Control

    def stmt_If(self, node: ast.If) -> ir.Stmt:
        test, yes, no = self.test(node.test)
        before = set(self.narrow)
        self.narrow = before | yes
        body = self.block(node.body)
        after_body = self.narrow
        self.narrow = before | no
        orelse = self.block(node.orelse)
        after_else = self.narrow
        if ends(body):
            self.narrow = after_else
        elif orelse and ends(orelse):
            self.narrow = after_body
        else:
            self.narrow = after_body & after_else
        return ir.If(self.pos(node), test, body, orelse)

    def forget(self, nodes: list[ast.stmt]) -> None:
        """At a loop's head: what its body assigns may be None again."""
        if not self.narrow:
            return
        names = set()
        for statement in nodes:
            for sub in ast.walk(statement):
                if isinstance(sub, ast.Name) and isinstance(sub.ctx, ast.Store):
                    names.add(sub.id)
        self.narrow = {x for x in self.narrow if x.name not in names}

    def no_else(self, node: Any) -> None:
        if node.orelse:
            raise Refused(self.pos(node.orelse[0]), "a loop has no else here", fix="set a bool before break")

    def stmt_While(self, node: ast.While) -> ir.Stmt:
        self.no_else(node)
        self.forget(node.body)
        test, yes, no = self.test(node.test)
        before = set(self.narrow)
        self.narrow = before | yes
        self.loops += 1
        body = self.block(node.body)
        self.loops -= 1
        self.narrow = before if _breaks(body) else before | no
        self.forget(node.body)
        if not _breaks(body):
            self.narrow |= no
        return ir.While(self.pos(node), test, body)

    def stmt_For(self, node: ast.For) -> ir.Stmt:
        try:
            return self.loop(node)
        except Refused as refused:  # of its first line: what is inside is heard too
            self.say(refused)
            self.recover(node)
            self.loops += 1
            self.block(node.body)
            self.loops -= 1
            return ir.Jump(self.pos(node), "pass")

    def loop(self, node: ast.For) -> ir.Stmt:
        self.no_else(node)
        if not isinstance(node.target, ast.Name):
            raise Refused(self.pos(node.target), "a loop has one variable here", fix="index the second in the body")
        if self.find(node.target.id) is not None:
            raise Refused(self.pos(node.target), f"{node.target.id} exists already", f"{node.target.id} began at {self.where(self.find(node.target.id).pos)}", fix="use another name")  # type: ignore[union-attr]
        source = node.iter
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range" and self.find("range") is None:
            return self.for_range(node, source)
        return self.for_each(node, source)

    def for_range(self, node: ast.For, call: ast.Call) -> ir.Stmt:
        assert isinstance(node.target, ast.Name)
        self.arity(call, 1, 2, 3)
        zero = ast.copy_location(ast.Constant(0), call)
        first, last = (zero, call.args[0]) if len(call.args) == 1 else (call.args[0], call.args[1])
        step = 1
        if len(call.args) == 3:
            try:
                step = int(self.constant(call.args[2])[0])
            except NotConstant:
                raise Refused(self.pos(call.args[2]), "the step of a range is a constant", fix="write a while") from None
            if step == 0:
                raise Refused(self.pos(call.args[2]), "a step of 0 never ends", fix="write a while")
        a, b = self.meet(call, first, last, "to")
        if not is_int(a.type):
            raise Refused(self.pos(call), f"range counts in integers, not {a.type}", fix="convert the bounds")
        constant = isinstance(a, ir.Const) and isinstance(b, ir.Const)
        kind = a.type
        if constant and step < 0 and isinstance(b, ir.Const) and b.value < 0:
            kind = I32
        known = self.kinds.get(node.target.id)
        if known is not None and known.type is not kind and not known.loop:
            raise Refused(self.pos(node.target), f"{node.target.id} is {known.type} in this function, and here {kind}", f"{node.target.id} began at {self.where(known.pos)}", fix="use another name")
        local = ir.Local(node.target.id, kind, self.pos(node.target), loop=True)
        self.kinds[node.target.id] = local
        if constant:
            values = range(a.value, b.value, step)  # type: ignore[attr-defined]
            local.ranged = len(values) > 0
            if values:
                local.lo, local.hi = min(values[0], values[-1]), max(values[0], values[-1])
        elif kind.signed is False and step > 0:  # type: ignore[attr-defined]
            local.ranged, local.lo, local.hi = False, max(a.lo, 0), b.hi
        self.forget(node.body)
        before = set(self.narrow)
        self.loops += 1
        body = self.block(node.body, locals_=[local])
        self.loops -= 1
        self.narrow = before
        self.forget(node.body)
        return ir.ForRange(self.pos(node), local, a, b, step, body)

    def for_each(self, node: ast.For, source: ast.expr) -> ir.Stmt:
        assert isinstance(node.target, ast.Name)
        count: ir.Expr | None = None
        if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice) and source.slice.lower is None and source.slice.upper is not None:
            base = self.expr(source.value)
            count = self.value(source.slice.upper, U32)
        else:
            base = self.expr(source)
            if isinstance(base.type, ArrayType) and len(base.type.dims) == 1:
                count = ir.Const(self.pos(source), U32, base.type.dims[0])
        if not isinstance(base.type, (ArrayType, PtrType)) or not isinstance(base.type.element, StructType) or count is None:
            raise Refused(self.pos(source), f"for goes over range() and arrays of structs, not {base.type}", fix="index it: for i in range(n)")
        known = self.kinds.get(node.target.id)
        if known is not None and known.type is not base.type.element:
            raise Refused(self.pos(node.target), f"{node.target.id} is {known.type} in this function", fix="use another name")
        local = ir.Local(node.target.id, base.type.element, self.pos(node.target), loop=True)
        self.kinds[node.target.id] = local
        self.forget(node.body)
        before = set(self.narrow)
        self.loops += 1
        body = self.block(node.body, locals_=[local])
        self.loops -= 1
        self.narrow = before
        self.forget(node.body)
        return ir.ForEach(self.pos(node), local, base, count, body)

    def stmt_Match(self, node: ast.Match) -> ir.Stmt:
        try:
            subject = self.expr(node.subject)
            if not (is_int(subject.type) or isinstance(subject.type, EnumType)):
                raise Refused(subject.pos, f"match is on integers and enums, not {subject.type}", fix="write if and elif")
        except Refused as refused:
            self.say(refused)
            for case in node.cases:
                self.block(case.body)
            return ir.Jump(self.pos(node), "pass")
        cases: list[tuple[list[ir.Const], list[ir.Stmt]]] = []
        before, afters, rest = set(self.narrow), [], False
        seen: set[int] = set()
        for case in node.cases:
            if case.guard is not None:
                raise Refused(self.pos(case.guard), "a case has no condition here", fix="write if in its body")
            patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            values: list[ir.Const] = []
            for pattern in patterns:
                if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
                    rest = True
                    continue
                if not isinstance(pattern, ast.MatchValue):
                    raise Refused(self.pos(pattern), "a case is a constant, or _", fix="name a number or a member")
                value = self.value(pattern.value, subject.type)
                if not isinstance(value, ir.Const):
                    raise Refused(self.pos(pattern), "a case is a constant, or _", fix="name a number or a member")
                if value.value in seen:
                    raise Refused(self.pos(pattern), "this case is there already", fix="delete one")
                seen.add(value.value)
                values.append(value)
            self.narrow = set(before)
            body = self.block(case.body)
            if not ends(body):
                afters.append(set(self.narrow))
            cases.append(([] if rest and len(patterns) == 1 else values, body))
        if isinstance(subject.type, EnumType) and not rest and seen == set(subject.type.members.values()):
            constants, body = cases[-1]  # the last member is the rest: every member is named
            cases[-1] = ([], body)
        elif not rest:
            afters.append(before)
        self.narrow = set.intersection(*afters) if afters else before
        return ir.Match(self.pos(node), subject, cases)

    def stmt_Return(self, node: ast.Return) -> ir.Stmt:
        if self.result is VOID:
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                raise Refused(self.pos(node), f"{self.function.__name__} has no result", fix="write its type: -> u32")
            return ir.Return(self.pos(node), [])
        if node.value is None:
            raise Refused(self.pos(node), f"{self.function.__name__} returns {self.result}", fix="return a value")
        items = self.result.items if isinstance(self.result, TupleType) else (self.result,)
        nodes = list(node.value.elts) if isinstance(node.value, ast.Tuple) else [node.value]
        if len(nodes) == 1 and len(items) > 1:
            call = self.expr(nodes[0])
            if isinstance(call, (ir.Call, ir.TableCall)) and call.type is self.result:
                return ir.Return(self.pos(node), [call])
        if len(nodes) != len(items):
            raise Refused(self.pos(node), f"{self.function.__name__} returns {self.result}, and {many(len(nodes), 'value')} {'is' if len(nodes) == 1 else 'are'} given", fix="return one value for each")
        values = [self.value(n, t) for n, t in zip(nodes, items, strict=True)]
        for n, v in zip(nodes, values, strict=True):
            root: Any = v
            while isinstance(root, (ir.FieldGet, ir.Index, ir.Slice, ir.View)) and not isinstance(v.type, Scalar):
                root = root.base
            if isinstance(root, ir.LocalRef) and root.local.storage and not isinstance(v.type, (Scalar, EnumType)):
                raise Refused(self.pos(n), f"{root.local.name} ends with this function", fix="let the caller pass the memory")
        return ir.Return(self.pos(node), values)

    def stmt_Assert(self, node: ast.Assert) -> ir.Stmt:
        test, yes, _ = self.condition(node.test)
        text = ""
        if node.msg is not None:
            if not isinstance(node.msg, ast.Constant) or not isinstance(node.msg.value, str):
                raise Refused(self.pos(node.msg), "the text of an assert is a plain string", fix="leave the values out: checked runs stop there, and pdb shows them")
            text = node.msg.value
        self.narrow |= yes
        return ir.Assert(self.pos(node), test, text or "assertion failed")

    # Order of effects

    def order(self, s: ir.Stmt) -> None:
        """C leaves the order of operands open: one call with effects, and no memory read beside it."""
        for group in self.roots(s):
            self.together(group)

    def together(self, operands: list[ir.Expr]) -> tuple[list[ir.Expr], list[ir.Expr]]:
        """The calls with effects and the loads of operands that C may take in any order; refused if that could be seen."""
        calls: list[ir.Expr] = []
        loads: list[ir.Expr] = []
        for operand in operands:
            mine, beside = self.effects(operand)
            if calls and mine:
                raise Refused(mine[0].pos, "two calls with effects in one statement: C leaves their order open", fix="bind the first to a local")
            if (calls and beside) or (mine and loads):
                raise Refused((beside if calls else loads)[0].pos, "memory is read beside a call that may write it: C leaves their order open", fix="bind one of them to a local first")
            calls += mine
            loads += beside
        return calls, loads

    def roots(self, s: ir.Stmt) -> list[list[ir.Expr]]:
        if isinstance(s, ir.Declare):
            return [[s.value]]
        if isinstance(s, ir.Assign):
            if isinstance(s.target, ir.LocalRef):
                return [[s.value]]
            return [[*ir.children(s.target), s.value]]
        if isinstance(s, (ir.Unpack, ir.Do)):
            return [[s.call]]
        if isinstance(s, (ir.If, ir.While, ir.Assert)):
            return [[s.test]]
        if isinstance(s, ir.ForRange):
            return [[s.start, s.stop]]
        if isinstance(s, ir.ForEach):
            return [[s.base, s.count]]
        if isinstance(s, ir.Match):
            return [[s.subject]]
        if isinstance(s, ir.Return):
            return [list(s.values)]
        return []

    def effects(self, e: ir.Expr) -> tuple[list[ir.Expr], list[ir.Expr]]:
        """The calls with effects and the loads of one expression."""
        operands = ir.children(e)
        if isinstance(e, (ir.Logic, ir.Cond)):  # C takes these from left to right: only what stands beside them matters
            each = [self.effects(operand) for operand in operands]
            return [call for calls, _ in each for call in calls], [load for _, loads in each for load in loads]
        calls, loads = self.together(operands)
        effective = False
        if isinstance(e, ir.Call):
            effective = not e.function.pure
            self.writes = self.writes or effective
        elif isinstance(e, ir.TableCall):
            effective = self.writes = True
        elif isinstance(e, ir.Builtin) and e.name in ("copy", "fill", "move", "store_release", "fence", "load_acquire"):
            effective = True
        if effective:
            if calls:
                raise Refused(calls[0].pos, "a call with effects is an argument of another", fix="bind its result to a local first")
            return [e], []  # what the arguments read is read before the call
        reads = isinstance(e, (ir.FieldGet, ir.Index)) and not isinstance(e.type, (StructType, ArrayType))
        if isinstance(e, ir.Call) and e.function.kind == "fn" and any(isinstance(a.type, (StructType, PtrType, ArrayType)) for a in e.args):
            reads = True
        return calls, [e, *loads] if reads else loads


def _is_status(kind: Type) -> bool:
    return isinstance(kind, EnumType) and kind.name == "Status"
