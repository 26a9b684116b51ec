"""Constructs of Python that are not in the language: how each is named, and what to write instead.

`python -m synapticos.compiler.refusals` prints the table that docs/language.md shows.
"""

from __future__ import annotations

import ast

# node -> (name, way out, whether it may come one day)
CONSTRUCTS: dict[type[ast.AST], tuple[str, str, bool]] = {
    ast.Try: ("try", "return a Status", False),
    ast.TryStar: ("try", "return a Status", False),
    ast.Raise: ("raise", "return a Status, or assert for a bug", False),
    ast.With: ("with", "call the opening and the closing function", False),
    ast.Global: ("global", "keep state in a struct and pass it", False),
    ast.Nonlocal: ("nonlocal", "keep state in a struct and pass it", False),
    ast.FunctionDef: ("a function in a function", "write it at module level", False),
    ast.AsyncFunctionDef: ("async", "make each part a step", False),
    ast.ClassDef: ("a class in a function", "write the @struct at module level", False),
    ast.Lambda: ("lambda", "write an @fn at module level and name it in a table()", False),
    ast.ListComp: ("a list comprehension", "write a loop over an array", False),
    ast.SetComp: ("a set comprehension", "write a loop over an array", False),
    ast.DictComp: ("a dict comprehension", "write a loop over an array", False),
    ast.GeneratorExp: ("a generator", "write a loop", False),
    ast.Yield: ("yield", "keep a cursor in a struct", False),
    ast.YieldFrom: ("yield from", "keep a cursor in a struct", False),
    ast.Await: ("await", "make each part a step", False),
    ast.List: ("a list", "use local(T, n), a field or a rom() table", False),
    ast.Tuple: ("a tuple but as a result", "use a local for each part", False),
    ast.Dict: ("a dict", "use a struct, or match", False),
    ast.Set: ("a set", "use bits of a word", False),
    ast.Delete: ("del", "storage ends with its function or its arena", False),
    ast.Import: ("import in a function", "import at the top of the file", False),
    ast.ImportFrom: ("import in a function", "import at the top of the file", False),
    ast.JoinedStr: ("an f-string", "it may only stand in console.print, log.info and its kin, and refuse", False),
    ast.NamedExpr: (":=", "assign in a statement of its own", True),
    ast.Starred: ("*", "write the operands out", False),
    ast.AsyncFor: ("async for", "make each part a step", False),
    ast.AsyncWith: ("async with", "make each part a step", False),
}

OPERATORS: dict[type[ast.AST], tuple[str, str, bool]] = {
    ast.Pow: ("**", "multiply, or shift 1", False),
    ast.MatMult: ("@", "call a matrix kernel", False),
    ast.In: ("in", "write the comparisons out", True),
    ast.NotIn: ("not in", "write the comparisons out", True),
}

OTHERS: list[tuple[str, str, bool]] = [
    ("default arguments", "pass every argument", True),
    ("keyword arguments", "pass arguments by position", True),
    ("*args, **kwargs", "pass every argument", False),
    ("recursion", "use a loop and an array of known length", False),
    ("for/while ... else", "set a bool before break", False),
    ("for over anything but range() and arrays of structs", "index it in a range()", True),
    ("a range() step that is not constant", "write a while", False),
    ("inheritance of structs", "hold the other struct as a field", False),
    ("/ on integers", "// (unsigned), div_floor or div_trunc (signed)", False),
    ("// and % on signed integers", "div_floor, div_trunc, mod_floor or rem_trunc", False),
    ("signed 64-bit division", "divide in 32 bits, or unsigned by div_u64", True),
    ("operands that no wider type holds", "convert one of them", False),
    ("a struct as a value", "copy(dst, src), or work on the reference", False),
    ("local(...) in a loop", "move it before the loop", True),
    ("mmio(...)", "ask the board through kernel/hal", True),
    ("generic functions", "make one function for each width", True),
]

# Words that CPython does not know yet either: an import of them fails.
LATER: list[tuple[str, str, bool]] = [
    ("In[T]", "write Ptr[T]", True),
    ("@struct(shared=True)", "hold offsets, and name the padding", True),
]


def rows() -> list[tuple[str, str, str]]:
    """(construct, what to write instead, 'no' or 'not yet'), in alphabetical order."""
    every = [*CONSTRUCTS.values(), *OPERATORS.values(), *OTHERS, *LATER]
    seen = {(name, fix, "not yet" if later else "no") for name, fix, later in every}
    return sorted(seen, key=lambda r: r[0].strip("*:@/ ").lower())


def table() -> str:
    lines = ["| not in the language | write instead | |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows()])


if __name__ == "__main__":
    print(table())
