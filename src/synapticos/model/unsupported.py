"""What a model uses and the compiler cannot do: all of it in one report."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from synapticos.errors import UserError


@dataclass(frozen=True)
class Problem:
    """One operator that cannot be compiled."""

    node: int  # its number in the file
    operator: str
    version: int
    types: str  # of its operands: "int8, int8, int32 -> int8"
    tensors: tuple[str, ...]  # names of its inputs and outputs
    fact: str  # what stands in the way
    nearest: str  # the nearest form that would do

    def __str__(self) -> str:
        names = ", ".join(self.tensors)
        return (
            f"node {self.node} {self.operator} version {self.version} ({self.types}; {names}): "
            f"{self.fact}; nearest supported: {self.nearest}"
        )


class UnsupportedModel(UserError):
    """A model with operators that cannot be compiled; `problems` lists every one."""

    def __init__(self, where: str, problems: list[Problem]):
        self.where = where
        self.problems = sorted(problems, key=lambda p: p.node)
        count = len(self.problems)
        head = f"{where}: {count} operator{'s' if count != 1 else ''} cannot be compiled"
        if all("float32" in p.types for p in self.problems):
            head += "; it computes in float: convert it with full integer quantization"
        super().__init__("\n  ".join([head, *map(str, self.problems)]))

    def to_json(self) -> dict[str, object]:
        return {"model": self.where, "problems": [asdict(p) for p in self.problems]}
