"""A program as C files: one header, one file a module, two units that include them (system and layers), and thunks.

Within a unit all but what other units need is static, so that the C compiler sees through calls. Nothing in the files
depends on where the package or the output lies.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from synapticos.lang.types import BOOL, F32, VOID, ArrayType, EnumType, Scalar, StructType, TupleType, Type
from synapticos.lang.words import Function, Rom, Static, Table

from .c_lines import LineWriter
from .c_names import Names, ctype, declare, fn_type, number, real, signature
from .emit_c import FunctionEmitter
from .parse import short_path
from .program import Program, keeping

_LAYERS = ("synapticos.kernel.layers", "synapticos.kernel.stages", "synapticos.kernel.fmath")
_SUPPORT = os.path.join(os.path.dirname(__file__), "support.h")


@dataclass
class CProgram:
    """Names and texts of the files; `units` are to be compiled, the rest is included by them."""

    files: dict[str, str | bytes] = field(default_factory=dict)
    units: list[str] = field(default_factory=list)
    thunks: dict[str, Thunk] = field(default_factory=dict)


@dataclass
class Thunk:
    """Layout of a call's argument block: parameters, then results."""

    symbol: str
    parameters: list[tuple[Type, int]]
    results: list[tuple[Type, int]]
    size: int


def unit_of(function: Function) -> str:
    module = function.module
    return "system" if module.startswith("synapticos.") and not module.startswith(_LAYERS) else "layers"


def bare(kind: Type) -> str:
    """The C type of an object of this type, not of a reference to it."""
    return kind.name if isinstance(kind, StructType) else ctype(kind)


def is_word(kind: Type) -> bool:
    """Passed as an address."""
    return not isinstance(kind, (Scalar, EnumType))


def thunk(program: Program, function: Function) -> Thunk:
    parameters, result = program.signature(function)
    at = 0
    blocks: list[list[tuple[Type, int]]] = [[], []]
    results: list[Type] = [] if result is VOID else list(result.items) if isinstance(result, TupleType) else [result]
    for which, kinds in enumerate(([t for _, t in parameters], results)):
        for kind in kinds:
            size = 8 if is_word(kind) else kind.size
            at = -(-at // size) * size
            blocks[which].append((kind, at))
            at += size
    return Thunk(function.c_name + "_thunk", blocks[0], blocks[1], max(-(-at // 8) * 8, 8))


class CWriter:
    """Emits one program."""

    def __init__(self, program: Program, roots: list[Function], checks: bool = False, thunks: bool = True) -> None:
        self.program, self.roots, self.thunks = program, roots, thunks
        self.names = Names(program, checks)
        self.out = CProgram()

    def run(self) -> CProgram:
        with keeping():
            return self._run()

    def _run(self) -> CProgram:
        program = self.program
        uses: dict[str, set[str]] = {}
        units: dict[Function, str] = {f: unit_of(f) for f in program.functions}
        called: dict[Function, set[str]] = {}
        globals_: dict[Any, set[str]] = {}
        tables: dict[Table, set[str]] = {}
        for function, made in program.functions.items():
            for callee in made.calls:
                called.setdefault(callee, set()).add(units[function])
            for table in made.tables:
                tables.setdefault(table, set()).add(units[function])
            for thing in made.globals:
                globals_.setdefault(thing, set()).add(units[function])
        for table, where in tables.items():
            home = "system" if "system" in where else "layers"
            for entry in program.entries(table):
                called.setdefault(entry, set()).add(home)
        used = sorted(set(units.values()), reverse=True)
        public = {f for f in program.functions if f in self.roots or called.get(f, set()) - {units[f]}}
        shared = {g for g, where in globals_.items() if len(where) > 1 or isinstance(g, Static)}
        shared_tables = {t for t, where in tables.items() if len(where) > 1}
        bodies: dict[str, str] = {}
        modules: dict[str, dict[str, list[Function]]] = {u: {} for u in used}
        for function in program.functions:
            modules[units[function]].setdefault(function.file, []).append(function)
        for unit in used:
            text = [f'/* The unit "{unit}": see the files that it includes. */', '#include "program.h"', ""]
            text += self.prototypes([f for f in program.functions if units[f] == unit and f not in public])
            for thing, where in globals_.items():
                if min(where, key=used.index) == unit or (thing not in shared and unit in where):
                    text += self.data(thing, thing in shared)
            for table, where in tables.items():
                home = "system" if "system" in where else "layers"
                if home == unit:
                    text += self.table(table, table in shared_tables)
            for path, functions in modules[unit].items():
                name = os.path.splitext(short_path(path))[0].replace(os.sep, "_").removeprefix("synapticos_") + ("_layers" if unit == "layers" and self._split(path, modules) else "")
                writer = LineWriter(path)
                for function in sorted(functions, key=lambda f: f.line):
                    self.function(writer, function, function in public)
                bodies[f"{name}.c"] = f"/* From {short_path(path)}. */\n" + writer.text()
                text.append(f'#include "{name}.c"')
            self.out.files[f"{unit}.c"] = "\n".join(text) + "\n"
            self.out.units.append(f"{unit}.c")
            uses[unit] = set()
        self.out.files.update(bodies)
        if self.thunks:
            self.out.files["thunks.c"] = self.thunk_file()
            self.out.units.append("thunks.c")
        self.out.files["program.h"] = self.header(public, shared, shared_tables)
        with open(_SUPPORT, encoding="utf-8") as support:
            self.out.files["support.h"] = support.read()
        return self.out

    def _split(self, path: str, modules: dict[str, dict[str, list[Function]]]) -> bool:
        return sum(path in m for m in modules.values()) > 1

    def function(self, writer: LineWriter, function: Function, public: bool) -> None:
        made = self.program.functions[function]
        emitter = FunctionEmitter(self.names, made)
        pieces = emitter.run()
        prefix = "" if public else _linkage(function)
        if function.inline is False:
            prefix += "__attribute__((noinline)) "
        line, depth, text = pieces[0]
        pieces[0] = (line, depth, prefix + text)
        if function.kind == "intrinsic":
            arguments = [emitter.local(p) for p in made.parameters]
            code = function.code.format(*arguments)
            writer.out.append(f"#if {function.when}\n{pieces[0][2]} {'' if made.result is VOID else 'return '}{code}; }}\n#else")
            writer.function(made, pieces)
            writer.out.append("#endif")
            return
        writer.function(made, pieces)

    def prototypes(self, functions: list[Function]) -> list[str]:
        out = []
        for function in functions:
            prefix = _linkage(function)
            out.append(f"{prefix}{signature(self.names, function)};")
        return [*out, ""]

    def data(self, thing: Rom | Static, shared: bool) -> list[str]:
        name = self.names.symbol(thing)
        if isinstance(thing, Static):
            whole = self.static_type(thing)
            extra = (f" __attribute__((aligned({thing.align})))" if thing.align else "") + (f' __attribute__((section("{thing.section}")))' if thing.section else "")
            if isinstance(whole, ArrayType):
                return [f"{bare(whole.element)} {name}[{max(whole.count, 1)}]{extra};"]
            return [f"{bare(whole)} {name}{extra};"]
        element = self.program.types.of(thing.element)
        if getattr(thing, "blob", False):
            data = self.program.blobs[thing]
            self.out.files[f"{name}.bin"] = data
            return [
                f'__asm__(".pushsection .rodata.{name},\\"a\\",%progbits\\n.balign 16\\n.globl {name}\\n{name}:\\n.incbin \\"{name}.bin\\"\\n.balign 4\\n.popsection");',
            ]
        values = [self.literal(v, element) for v in thing.flat()]
        lines = []
        for i in range(0, len(values), 16):
            lines.append("    " + ", ".join(values[i : i + 16]) + ",")
        count = max(len(values), 1)
        return [f"{'' if shared else 'static '}const {ctype(element)} {name}[{count}] = {{", *lines, "};"]

    def static_type(self, thing: Static) -> Type:
        kind = self.program.types.of(thing.type)
        return kind if thing.count is None else self.program.types.array(kind, (self.program.types.number(thing.count),))

    def literal(self, value: Any, kind: Type) -> str:
        if kind is F32:
            from .expr import round_f32

            return real(round_f32(float(value)))
        if kind is BOOL:
            return "true" if value else "false"
        base = kind.base if isinstance(kind, EnumType) else kind
        assert isinstance(base, Scalar)
        return number(int(value), base)

    def table(self, table: Table, shared: bool) -> list[str]:
        kind = self.program.types.of(table.type)
        result, parameters = fn_type(kind)  # type: ignore[arg-type]
        entries = self.program.entries(table)
        listed = ", ".join(f.c_name for f in entries) or "0"
        return [f"{'' if shared else 'static '}{result} (*const {self.names.symbol(table)}[{max(len(entries), 1)}])({parameters}) = {{{listed}}};"]

    def header(self, public: set[Function], shared: set[Any], shared_tables: set[Table]) -> str:
        program = self.program
        out = ["/* Types, constants and what the units share. Generated from the Python. */", "#ifndef PROGRAM_H", "#define PROGRAM_H", "", '#include "support.h"', ""]
        for name, (_, text) in sorted(self.names.macros.items()):
            out.append(f"#define {name} {text}")
        out.append("")
        for enum in program.types.enums:
            out.append(f"typedef {ctype(enum.base)} {enum.name};")
            out += [f"#define {enum.name.upper()}_{n} {f'({v})' if v < 0 else v}" for n, v in enum.members.items()]
            tests = " || ".join(f"x == {number(v, enum.base)}" for v in enum.members.values())
            wide = "int64_t" if enum.base.signed else "uint64_t"
            out.append(f"SYN_INLINE {enum.name} syn_{enum.name}_of({wide} x, uint32_t f, uint32_t l) {{ if (!({tests})) {{ syn_panic(f, l); }} return ({enum.name})x; }}")
            out.append("")
        for struct in program.types.structs:
            out.append(f"typedef struct {struct.name} {struct.name};")
        for struct in program.types.structs:
            doc = (struct.cls.__doc__ or "").strip().split("\n\n")[0]
            if doc and not doc.startswith(struct.name + "("):
                out.append(f"/* {' '.join(doc.split())} */")
            out.append(f"struct {struct.name} {{")
            for f in struct.fields:
                out.append(f"    {self.member(f.type, f.name)};")
            out.append("};")
            if struct.fields:
                out.append(f'_Static_assert(sizeof({struct.name}) == {struct.size}, "{struct.name}");')
                out += [f'_Static_assert(offsetof({struct.name}, {self.names.field(f.name)}) == {f.offset}, "{struct.name}.{f.name}");' for f in struct.fields]
            out.append("")
        for hal in program.hals():
            out.append(f"{signature(self.names, hal)};")
        for function in sorted(public, key=lambda f: f.c_name):
            out.append(f"{signature(self.names, function)};")
        for thing in sorted(shared, key=lambda g: self.names.symbol(g)):
            if isinstance(thing, Static):
                kind = self.static_type(thing)
                if isinstance(kind, ArrayType):
                    out.append(f"extern {bare(kind.element)} {self.names.symbol(thing)}[{max(kind.count, 1)}];")
                else:
                    out.append(f"extern {kind} {self.names.symbol(thing)};")
            elif not getattr(thing, "blob", False):
                count = max(len(thing.flat()), 1)
                out.append(f"extern const {ctype(program.types.of(thing.element))} {self.names.symbol(thing)}[{count}];")
        for thing in program.globals_used():
            if getattr(thing, "blob", False):
                out.append(f"extern const uint8_t {self.names.symbol(thing)}[{max(len(program.blobs[thing]), 1)}];")
        for table in sorted(shared_tables, key=lambda t: t.name):
            result, parameters = fn_type(program.types.of(table.type))  # type: ignore[arg-type]
            out.append(f"extern {result} (*const {self.names.symbol(table)}[{max(len(program.entries(table)), 1)}])({parameters});")
        out += ["", "#endif", ""]
        return "\n".join(out)

    def member(self, kind: Type, name: str) -> str:
        name = self.names.field(name)
        if isinstance(kind, StructType):
            return f"{kind.name} {name}"
        if isinstance(kind, ArrayType):
            element = kind.element
            text = element.name + " " if isinstance(element, StructType) else declare(element, "")
            return f"{text}{name}[{kind.count}]"
        return declare(kind, name)

    def thunk_file(self) -> str:
        out = ["/* One function a root, its arguments and results in one block, the same on every engine. */", '#include "program.h"', ""]
        for root in self.roots:
            made = thunk(self.program, root)
            self.out.thunks[root.c_name] = made
            name = root.c_name
            fields = [] if made.parameters or made.results else ["uint64_t nothing;"]
            for i, (kind, _) in enumerate(made.parameters):
                fields.append(f"{'uint64_t' if is_word(kind) else ctype(kind)} p{i};")
            for i, (kind, _) in enumerate(made.results):
                fields.append(f"{'uint64_t' if is_word(kind) else ctype(kind)} r{i};")
            out.append(f"typedef struct {{ {' '.join(fields)} }} {name}_args;")
            out += [f'_Static_assert(offsetof({name}_args, p{i}) == {at}, "{name}");' for i, (_, at) in enumerate(made.parameters)]
            out += [f'_Static_assert(offsetof({name}_args, r{i}) == {at}, "{name}");' for i, (_, at) in enumerate(made.results)]
            arguments = [f"({ctype(k)})(uintptr_t)a->p{i}" if is_word(k) else f"a->p{i}" for i, (k, _) in enumerate(made.parameters)]
            body = []
            for i, (kind, _) in enumerate(made.results[1:], 1):
                if is_word(kind):
                    body.append(f"{declare(kind, f'o{i}')};")
                arguments.append(f"&o{i}" if is_word(kind) else f"&a->r{i}")
            call = f"{name}({', '.join(arguments)})"
            if made.results:
                body.append(f"a->r0 = {f'(uintptr_t){call}' if is_word(made.results[0][0]) else call};")
            else:
                body.append(f"{call};")
            body += [f"a->r{i} = (uintptr_t)o{i};" for i, (kind, _) in enumerate(made.results) if i and is_word(kind)]
            unused = "" if fields[0] != "uint64_t nothing;" else "(void)a; "
            out.append(f"void {name}_thunk({name}_args *a);")
            out.append(f"void {name}_thunk({name}_args *a) {{ {unused}{' '.join(body)} }}")
            out.append("")
        return "\n".join(out)


def _linkage(function: Function) -> str:
    return "SYN_INLINE " if function.inline or function.kind == "intrinsic" else "static "
