"""A stage called like any function, with NumPy arrays: it runs under CPython, every width and bound checked."""

import inspect
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app.spec import DTYPES, WIDTHS
from synapticos.errors import UserError


def call_stage(stage: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `stage` on the checked engine; arrays among the arguments are copied in, and `out` back."""
    from synapticos.engine import default_engine

    engine = default_engine()
    bound = inspect.signature(stage.python).bind(*args, **kwargs)
    operands, back = [], []
    for p in stage.parameters:
        value = bound.arguments[p.name]
        if p.kind in ("array", "rows"):
            array = np.ascontiguousarray(value, DTYPES[WIDTHS[p.element]])
            if array.size % p.shape[0] if p.kind == "rows" else array.size != np.prod(p.shape):
                raise UserError(f'stage {stage.__name__}: parameter "{p.name}" is {p}, the array has shape {array.shape}')
            holder = engine.array(getattr(lang, p.element), array.reshape(-1))
            operands.append(holder)
            back.append((holder, value))
        elif p.kind == "struct" and isinstance(value, dict):
            operands.append(engine.new(p.annotation, **value))
        else:
            operands.append(value)
    result = engine(stage.function, *operands)
    for holder, value in back:
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = holder.numpy().reshape(value.shape)
    return result
