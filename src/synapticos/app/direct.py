"""A stage called like any function, with NumPy arrays: it runs under CPython, every width and bound checked."""

import inspect
from typing import Any

import numpy as np

from synapticos import lang
from synapticos.app.spec import DTYPES, ELEMENTS
from synapticos.errors import UserError


def _as(stage: Any, p: Any, value: Any) -> np.ndarray:
    """An argument as the parameter's element type, if every value of its own is one: 1.5 is no i8, nor is 300."""
    wanted = DTYPES[ELEMENTS[p.element]]
    given = np.asarray(value)
    if not np.can_cast(given.dtype, wanted, "safe"):
        if isinstance(value, np.ndarray):
            raise UserError(
                f'stage {stage.__name__}: parameter "{p.name}" is {p}, the array is {given.dtype}; '
                f"make it {wanted.name} yourself: .astype(np.{wanted.name})"
            )
        # A list: NumPy gave it its widest type.
        numbers = given.dtype.kind in "iuf"
        with np.errstate(all="ignore"):
            cast = given.astype(wanted) if numbers else given
        exact = numbers and (wanted.kind == given.dtype.kind == "f" or np.array_equal(cast.astype(given.dtype), given, equal_nan=True))
        if not exact:
            raise UserError(f'stage {stage.__name__}: parameter "{p.name}" is {p}; not every one of {value!r} is {wanted.name}'[:300])
        given = cast
    return np.ascontiguousarray(given, wanted)


def call_stage(stage: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `stage` on the checked engine; arrays among the arguments are copied in, and `out` back."""
    from synapticos.engine import default_engine

    engine = default_engine()
    bound = inspect.signature(stage.python).bind(*args, **kwargs)
    with engine.lending():
        return _call(engine, stage, bound.arguments)


def _call(engine: Any, stage: Any, arguments: dict[str, Any]) -> Any:
    operands, back = [], []
    for p in stage.parameters:
        value = arguments[p.name]
        if p.element == "Ranked":
            raise UserError(f'stage {stage.__name__}: parameter "{p.name}" is {p}, which only a pipeline gives it; run one: syn.Runtime(app).run(...)')
        if p.kind in ("array", "rows"):
            array = _as(stage, p, value)
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
