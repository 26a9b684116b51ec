"""Write the generated parts of docs/ anew: what the language refuses, which operators networks may have, what an app declares.

    python tools/make_docs.py [--check]

A generated part stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. `--check` writes nothing and ends
with 1 where a page is not what would be written.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def refusals() -> str:
    """The table that the compiler itself gives."""
    command = [sys.executable, "-m", "synapticos.compiler.refusals"]
    head, line, *rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()
    return "\n".join([head, line, *sorted(rows)])


def operators() -> str:
    """From the table by which the importer accepts or refuses."""
    from synapticos.importers.tflite import supported

    lines = ["| operator | up to version | tensors |", "|---|---|---|"]
    by_name: dict[tuple[str, int], list[str]] = {}
    for name, version, types in supported():
        by_name.setdefault((name, version), []).append(types)
    for (name, version), types in sorted(by_name.items()):
        lines.append(f"| {name} | {version} | {'<br>'.join(types)} |")
    return "\n".join(lines)


def onnx_operators() -> str:
    """As `operators`, of .onnx files."""
    from synapticos.importers.onnx import supported

    lines = ["| operator | becomes | if it is |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {kind} | {becomes} | {words or 'any'} |" for kind, becomes, words in supported())])


def processors() -> str:
    """The built-in stages, by their modules' own words."""
    import inspect

    from synapticos.kernel.stages.tables import ROWS

    lines = ["| number | name | what it does |", "|---|---|---|"]
    for number, row in enumerate(ROWS):
        module = inspect.getmodule(row.stage.python)
        first = (module.__doc__ or "").splitlines()[0]
        lines.append(f"| {number} | {row.name} | {first.partition(':')[2].strip() or first} |")
    return "\n".join(lines)


def record(kind: object) -> str:
    """Offset, type and name of each field of a struct."""
    from synapticos import lang

    lines = ["| offset | type | field |", "|---|---|---|"]
    lines += [f"| {offset} | {type_} | {name} |" for name, offset, type_ in lang.layout(kind)]
    return "\n".join([*lines, f"\n{lang.sizeof(kind)} bytes."])


def container(name: str) -> str:
    from synapticos.kernel import container as records

    return record(getattr(records, name))


def app_rows() -> str:
    from synapticos.kernel import tables

    kinds = (tables.AppHeader, tables.ModelRow, tables.PipelineRow, tables.StageRow, tables.JobRow, tables.SourceRow)
    return "\n\n".join(f"### {kind.__name__}\n\n{record(kind)}" for kind in kinds)


def variants() -> str:
    from synapticos.kernel.layers.variants import VARIANTS

    names = VARIANTS.items() if isinstance(VARIANTS, dict) else enumerate(VARIANTS)
    return "\n".join(["| number | variant |", "|---|---|", *(f"| {number} | {name} |" for number, name in names)])


def calls(*kinds: str) -> str:
    """The public methods of classes of `synapticos`, with what they say of themselves."""
    import inspect

    import synapticos

    parts = []
    for kind in kinds:
        made = getattr(synapticos, kind)
        parts.append(f"\n### {kind}\n\n{inspect.cleandoc(made.__doc__)}\n")
        for name, method in vars(made).items():
            if callable(method) and method.__doc__ and (name == "__init__" or not name.startswith("_")):
                parts.append(call(f"{kind}" if name == "__init__" else f".{name}", method))
    return "\n".join(parts).strip()


def call(name: str, function: object) -> str:
    import inspect

    signature = str(inspect.signature(function))  # type: ignore[arg-type]
    signature = re.sub(r" -> .*$", "", signature).replace("'", '"').replace("(self, ", "(").replace("(self)", "()")
    signature = re.sub(r'(: )"([^"]*)"', r"\1\2", signature)
    signature = re.sub(r"\b(synapticos|pathlib|collections|typing)(\.[a-z_]+)*\.(?=[A-Z])|\b(np|sources)\.(?=\w)", "", signature)
    return f"- `{name}{signature}`\\\n  {' '.join(inspect.cleandoc(function.__doc__ or '').split())}"


def functions(*names: str) -> str:
    import synapticos

    return "\n".join(call(name, getattr(synapticos, name)) for name in names)


PARTS = {
    "app": lambda: calls("App", "Pipeline"),
    "descriptions": lambda: functions("stage", "host_stage", "librosa", "micro_frontend"),
    "runtime": lambda: calls("Runtime", "Job"),
    "refusals": refusals,
    "onnx": onnx_operators,
    "operators": operators,
    "processors": processors,
    "header": lambda: container("Header"),
    "tensor": lambda: container("TensorRecord"),
    "step": lambda: container("StepRecord"),
    "variants": variants,
    "tables": app_rows,
}
PLACE = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def written(text: str) -> str:
    """A page with its generated parts made anew."""
    return PLACE.sub(lambda m: f"<!-- generated: {m[1]} -->\n{PARTS[m[1]]()}\n<!-- end of {m[1]} -->", text)


def main() -> int:
    stale = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        old = page.read_text()
        new = written(old)
        if new != old:
            stale += 1
            print(page.relative_to(ROOT))
            if "--check" not in sys.argv:
                page.write_text(new)
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
