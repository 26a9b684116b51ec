"""Which file plans an operator, by the type of its result. Plain Python, on the host."""

from typing import Any

from synapticos.kernel.layers.variants import Unsupported


class ByType:
    """Stands where a layer's module would: `plan` asks the module for the output's type, or `other`."""

    def __init__(self, other: Any = None, **modules: Any) -> None:
        self.modules = modules
        self.other = other

    def plan(self, op: Any) -> Any:
        dtype = op.outputs[0].dtype
        module = self.modules.get(dtype, self.other)
        if module is None:
            raise Unsupported(f'{dtype} in "{op.outputs[0].name}"', " or ".join(self.modules))
        return module.plan(op)


class FirstThatCan:
    """Asks one module after another; the last one's refusal counts."""

    def __init__(self, *modules: Any) -> None:
        self.modules = modules

    def plan(self, op: Any) -> Any:
        for module in self.modules[:-1]:
            try:
                return module.plan(op)
            except Unsupported:
                continue
        return self.modules[-1].plan(op)
