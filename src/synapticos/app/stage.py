"""A user's stages: `@syn.stage` in typed Python, compiled into the firmware; `@syn.host_stage` in NumPy, host only.

A stage's parameters bind by name. Those named after tensors of the step before get the tensors; `<tensor>_scale: f32`
and `<tensor>_zero: i32` their quantisation; `<tensor>_rows: u32` how many rows a tensor of `Rows` has; `out` is the result's memory; `cfg` a struct that `.stage(f, ...)` fills; `state` a struct that
keeps its values from run to run and begins with zeros.
The kernel calls every stage alike, so for each use of a stage the build writes an adapter: a few lines of
kernel-Python that check sizes, take the operands out of the call, and set the result's shape.
"""

import hashlib
import inspect
import linecache
import typing
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, ParamSpec, TypeVar, overload

from synapticos import lang
from synapticos.app.spec import DTYPES, ELEMENTS, LETTERS, WIDTHS, Spec
from synapticos.errors import UserError
from synapticos.kernel.handler import JobInfo
from synapticos.kernel.stages.argmax import Ranked
from synapticos.lang.words import Function, Marked, is_struct

MAX_BYTES = 1 << 28  # of a result: more than any arena
P = ParamSpec("P")
R = TypeVar("R")
DTYPE_MEMBERS = {"int8": "INT8", "uint8": "UINT8", "int16": "INT16", "int32": "INT32", "float32": "FLOAT32"}


@dataclass(frozen=True)
class Parameter:
    """One parameter as written: an array with a shape, a struct, or a scalar."""

    name: str
    kind: str  # array, rows, tensor, struct, scalar
    annotation: Any
    element: str = ""  # of an array: i8, f32...
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape))
        if self.kind == "rows":
            return f"{self.element} rows x {size}"
        return f"{self.element} {size}" if self.kind == "array" else getattr(self.annotation, "__name__", str(self.annotation))


class Stage(Generic[P, R]):
    """A function of the app that is a pipeline's stage. Called with NumPy arrays it runs under CPython, checked."""

    def __init__(self, python: Callable[P, R]) -> None:
        self.python = python
        self.function = Function(python)
        self.__name__ = python.__name__
        self.__doc__ = python.__doc__
        self.__wrapped__ = python
        self._parameters: list[Parameter] | None = None

    @property
    def where(self) -> str:
        code = self.python.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def parameters(self) -> list[Parameter]:
        if self._parameters is None:
            try:
                signature = inspect.signature(self.python, eval_str=True)
            except NameError as error:
                raise UserError(f"{self.where}: stage {self.__name__}: {error}; import it") from None
            self._parameters = [_parameter(self, p) for p in signature.parameters.values()]
        return self._parameters

    @property
    def gives_nothing(self) -> bool:
        """Whether it is a handler that returns nothing, and not a Status."""
        from synapticos.kernel.status import Status

        result = inspect.signature(self.python, eval_str=True).return_annotation
        if result not in (None, Status):
            raise UserError(f"{self.where}: handler {self.__name__} returns {_spell(result)}; it returns None, or a Status of which what is not OK is counted")
        return result is None

    @property
    def gives_rows(self) -> bool:
        """Whether it answers (Status, rows) rather than a Status alone."""
        from synapticos.kernel.status import Status

        result = inspect.signature(self.python, eval_str=True).return_annotation
        if result is Status:
            return False
        if typing.get_origin(result) is tuple and typing.get_args(result) == (Status, lang.u32):
            return True
        raise UserError(
            f"{self.where}: stage {self.__name__} returns {_spell(result)}; it must return Status, or tuple[Status, u32] "
            "with the number of rows it filled"
        )

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from synapticos.app.direct import call_stage

        return call_stage(self, args, kwargs)


class HostStage:
    """A stage in plain NumPy: runs on the host only, and is refused by name when building for a board."""

    def __init__(self, python: Callable[..., Any], shape: tuple[int, ...] | None, dtype: Any, rows: int | None) -> None:
        self.python, self.shape, self.dtype, self.rows = python, shape, dtype, rows
        self.__name__, self.__doc__ = python.__name__, python.__doc__
        self.__wrapped__ = python

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.python(*args, **kwargs)


def stage(function: Callable[P, R]) -> Stage[P, R]:
    """Make a function in typed Python a stage: compiled into the firmware, called as it stands on the host."""
    return Stage(function)


def is_typed(function: Callable[..., Any]) -> bool:
    """Is it kernel-Python, by its signature? Plain Python for the host takes one thing, without a type or a Done."""
    parameters = list(inspect.signature(function).parameters.values())
    plain = len(parameters) == 1 and parameters[0].annotation in (inspect.Parameter.empty, Any, "Done", "syn.Done")
    return not plain and getattr(parameters[0].annotation if len(parameters) == 1 else None, "__name__", "") != "Done"


def host_stage(
    function: Callable[..., Any] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: Any = "float32",
    rows: int | None = None,
) -> Any:
    """Make a NumPy function a stage of host programs. `shape` is its result's (default: as its input)."""
    if function is None:
        return lambda f: HostStage(f, shape, dtype, rows)
    return HostStage(function, shape, dtype, rows)


def _spell(annotation: Any) -> str:
    return "nothing" if annotation in (inspect.Signature.empty, None) else getattr(annotation, "__name__", str(annotation))


def _parameter(owner: Stage[Any, Any], p: inspect.Parameter) -> Parameter:
    from synapticos.kernel.tensor import Tensor

    written = p.annotation
    where = f'{owner.where}: stage {owner.__name__}: parameter "{p.name}"'
    if written is inspect.Parameter.empty:
        raise UserError(f"{where} has no type; write one, like Shaped[Array[i8], 12, 12], f32 or a struct")
    if typing.get_origin(written) is typing.Annotated:
        base, shape = written.__origin__, written.__metadata__
        if not isinstance(base, Marked) or base.kind not in ("Array", "Rows"):
            raise UserError(f"{where}: Shaped takes an Array and its sizes: Shaped[Array[i8], 12, 12]")
        element = getattr(base.element, "__name__", str(base.element))
        if element not in (ELEMENTS if base.element is Ranked else WIDTHS) or not 1 <= len(shape) <= 2 or not all(isinstance(n, int) and n > 0 for n in shape):
            raise UserError(f"{where}: an array of {', '.join(WIDTHS)} with one or two sizes: Shaped[Array[i8], 12, 12]")
        return Parameter(p.name, "array" if base.kind == "Array" else "rows", written, element, tuple(shape))
    if written is Tensor:
        return Parameter(p.name, "tensor", written)
    if is_struct(written):
        return Parameter(p.name, "struct", written)
    if written in (lang.f32, lang.i32, lang.u32):
        return Parameter(p.name, "scalar", written)
    raise UserError(f"{where}: {_spell(written)} cannot be handed to a stage; there are arrays with a shape, f32, i32 and structs")


@dataclass
class Binding:
    """How one use of a stage gets its operands, and what it gives."""

    stage: Stage[Any, Any]
    app: str
    arrays: list[tuple[Parameter, int]]  # parameter, number of the tensor it gets
    inputs: tuple[Spec, ...]
    out: Parameter | None  # None: a handler, which leaves nothing
    output: Spec | None
    words: dict[str, str]  # parameter: what it is in the call, where the model says it as it runs
    config: list[tuple[str, str, Any]]  # name, type, value, of those that are known now
    cfg: tuple[Any, dict[str, Any]] | None  # struct and field values
    state: Any = None  # struct
    told: str = ""  # of a handler: the parameter that gets a JobInfo
    adapter: Any = None  # lang Function
    args: Any = None  # its struct of configuration

    @property
    def name(self) -> str:
        return self.stage.__name__

    @property
    def state_bytes(self) -> int:
        return lang.sizeof(self.state) if self.state is not None else 0

    def pack(self) -> bytes:
        if self.args is None:
            return b""
        values = {name: value for name, _, value in self.config}
        if self.cfg is not None:
            values["cfg"] = self.cfg[1]
        return lang.pack(self.args, **values)


def bind(
    pipeline: str, app: str, stage: Stage[Any, Any], before: tuple[Spec, ...], cfg: dict[str, Any], after_model: bool, *, handler: bool = False
) -> Binding:
    """Match a stage's parameters with the tensors before it, or a handler's with those of the result. Raises UserError naming both."""
    where = f'pipeline "{pipeline}": {"handler" if handler else "stage"} {stage.__name__}'
    there = ", ".join(f"{s.name} ({s})" for s in before)
    parameters = {p.name: p for p in stage.parameters}
    state = parameters.pop("state", None)
    if state is not None and state.kind != "struct":
        raise UserError(f"{where}: state must be a struct of yours: @syn.struct class State with a line per value to keep")
    out = parameters.pop("out", None)
    told = [p.name for p in parameters.values() if handler and p.annotation is JobInfo]
    for name in told:
        del parameters[name]
    if handler:
        if out is not None:
            raise UserError(f"{where}: has an out, and nobody gets what a handler leaves; leave it out, or make it a stage: .stage({stage.__name__})")
        if len(told) > 1:
            raise UserError(f'{where}: parameters "{told[0]}" and "{told[1]}" are both a JobInfo; one is enough')
    elif out is None or out.kind != "array":
        raise UserError(f"{where}: has no out; add one for its result, like out: Shaped[Array[f32], 64, 6]")
    if out is not None and out.element not in WIDTHS:
        raise UserError(f"{where}: out is {out}; a stage leaves an array of {', '.join(WIDTHS)}")
    if out is not None and prod(out.shape) * DTYPES[WIDTHS[out.element]].itemsize > MAX_BYTES:
        raise UserError(f"{where}: out is {out}; a result has at most {MAX_BYTES:,} bytes")
    holder = parameters.pop("cfg", None)
    words: dict[str, Parameter] = {}
    tensors: dict[str, Parameter] = {}
    by_name = {s.name: i for i, s in enumerate(before)}
    for p in parameters.values():
        (words if p.kind == "scalar" else tensors)[p.name] = p
    if len(before) == 1 and len(tensors) == 1 and not set(tensors) & set(by_name):
        by_name = {next(iter(tensors)): 0}  # one tensor and one parameter: the name is the stage's own affair
    arrays = []
    for p in tensors.values():
        if p.name not in by_name:
            raise UserError(f'{where}: parameter "{p.name}" names no tensor of the step before; there is {there}')
        spec = before[by_name[p.name]]
        if p.kind == "tensor":
            raise UserError(f'{where}: parameter "{p.name}": syn.Tensor is not yet supported; write its shape')
        if p.kind == "struct" or (p.kind == "rows" and (ELEMENTS[p.element] != spec.dtype or p.shape != spec.shape[-1:])):
            raise UserError(f'{where}: parameter "{p.name}" is {p}, the tensor is {spec}')
        if p.kind == "rows":
            arrays.append((p, by_name[p.name]))
            continue
        if spec.rows:
            way = f"Shaped[Rows[{LETTERS[spec.dtype]}], {spec.shape[-1]}] with {p.name}_rows: u32"
            raise UserError(f'{where}: parameter "{p.name}" is {p}, the tensor is {spec}; take it as {way}')
        shape = tuple(n for n in p.shape if n != 1) or (1,)
        fits = shape == spec.squeezed or (len(p.shape) == 1 and p.shape[0] == prod(spec.shape))
        if ELEMENTS[p.element] != spec.dtype or not fits:
            sizes = spec.squeezed if len(spec.squeezed) <= 2 else (prod(spec.shape),)
            element = LETTERS.get(spec.dtype, "syn.Ranked")
            way = f"; write {p.name}: Shaped[Array[{element}], {', '.join(map(str, sizes))}]"
            raise UserError(f'{where}: parameter "{p.name}" is {p}, the tensor is {spec}{way}')
        arrays.append((p, by_name[p.name]))
    config = []
    live = {}
    taken = {i: k for k, (_, i) in enumerate(arrays)}
    for p in words.values():
        tensor, _, what = p.name.rpartition("_")
        if tensor not in by_name or what not in ("scale", "zero", "rows"):
            raise UserError(f'{where}: parameter "{p.name}" is no scale, zero point or number of rows of a tensor; there is {there}')
        spec = before[by_name[tensor]]
        if what == "rows":
            if p.annotation is not lang.u32 or by_name[tensor] not in taken:
                raise UserError(f'{where}: parameter "{p.name}" must be u32, beside the tensor itself')
            live[p.name] = f"call.x[{taken[by_name[tensor]]}].shape[0]"
            continue
        wanted = lang.f32 if what == "scale" else lang.i32
        if p.annotation is not wanted:
            raise UserError(f'{where}: parameter "{p.name}" must be {wanted.__name__}')
        if spec.scale is None:
            raise UserError(f'{where}: parameter "{p.name}": tensor {spec.name} ({spec}) has no single scale')
        if after_model and by_name[tensor] in taken:
            live[p.name] = f"call.{what}[{taken[by_name[tensor]]}]"
        else:
            config.append((p.name, wanted.__name__, spec.scale if what == "scale" else spec.zero))
    holding = None
    if holder is not None:
        if holder.kind != "struct":
            raise UserError(f"{where}: cfg must be a struct of yours: @syn.struct class Config with a line per setting")
        fields = [name for name, _, _ in lang.layout(holder.annotation)]
        unknown = [name for name in cfg if name not in fields]
        missing = [name for name in fields if name not in cfg]
        if unknown or missing:
            fact = f"has no {unknown[0]}" if unknown else f"needs {missing[0]}"
            raise UserError(f"{where}: cfg {fact}; it has {', '.join(fields)}")
        for name, value in cfg.items():
            try:
                lang.pack(holder.annotation, **{name: value})
            except (ValueError, TypeError) as error:
                raise UserError(f"{where}: cfg: {name}={value!r}: {error}") from None
        holding = (holder.annotation, dict(cfg))
    elif cfg:
        raise UserError(f"{where}: takes no {next(iter(cfg))}: give it a cfg parameter, a struct with that field")
    output = None if out is None else Spec("out", out.shape, WIDTHS[out.element], rows=stage.gives_rows)
    return Binding(stage, app, arrays, before, out, output, live, config, holding, state and state.annotation, "".join(told))


def write_adapter(binding: Binding, number: int) -> Any:
    """The adapter of one use of a stage, as a kernel function; `number` keeps two uses apart."""
    if binding.adapter is None:
        _write(binding, f"{binding.app}_{binding.name}_{number}")
    return binding.adapter


def _write(binding: Binding, name: str) -> None:
    stage, out = binding.stage, binding.out
    stage.function.prefix = f"{binding.app}_"
    head = [
        f'"""How the kernel calls stage {stage.__name__} of {binding.app}. Written by the build."""',
        "from synapticos.lang import *",
        "from synapticos.kernel.status import Status",
        "from synapticos.kernel.tensor import DType, StageCall",
        "",
    ]
    holders: list[str] = []
    camel = "".join(part.capitalize() for part in name.split("_"))

    def hold(label: str, p: Parameter) -> str:
        kind = f"{camel}{label.title().replace('_', '')}"
        sizes = ", ".join(map(str, p.shape))
        holders.extend(["@struct", f"class {kind}:", f"    data: Shaped[Array[{p.element}], {sizes}]", "", ""])
        return kind

    body = [f"    if call.inputs != {len(binding.arrays)}:", "        return Status.INVAL"]
    operands = dict(binding.words)
    for k, (p, i) in enumerate(binding.arrays):
        if p.kind == "rows":
            row = p.shape[0] * DTYPES[ELEMENTS[p.element]].itemsize
            body += [f"    if call.x[{k}].size != call.x[{k}].shape[0] * {row}:", "        return Status.MSGSIZE"]
            operands[p.name] = f"view({p.element}, call.x_data[{k}])"
            continue
        kind = hold(p.name, p)
        body += [
            f"    if call.x[{k}].size != {binding.inputs[i].bytes}:",
            "        return Status.MSGSIZE",
            f"    x_{p.name} = view({kind}, call.x_data[{k}])",
        ]
        operands[p.name] = f"x_{p.name}.data"
    if binding.config or binding.cfg:
        holders += ["@struct", f"class {camel}Args:"]
        holders += [f"    {n}: {t}" for n, t, _ in binding.config]
        if binding.cfg:
            holders.append("    cfg: Config")
        holders += ["", ""]
        body += [
            "    config = call.config",
            "    if config is None or call.config_bytes < {args_bytes}:",
            "        return Status.INVAL",
            f"    args = view({camel}Args, config)",
        ]
        operands |= {n: f"args.{n}" for n, _, _ in binding.config}
        operands["cfg"] = "args.cfg"
    if binding.state is not None:
        body += [
            "    state = call.state",
            f"    if state is None or call.state_bytes != {binding.state_bytes}:",
            "        return Status.INVAL",
            "    kept = view(State, state)",
        ]
        operands["state"] = "kept"
    if binding.told:
        body.append("    told = view(JobInfo, call.y_data)")
        operands[binding.told] = "told"
    if binding.output is None or out is None:
        call = f"user_stage({', '.join(operands[p.name] for p in stage.parameters)})"
        body += [f"    {call}", "    return Status.OK"] if stage.gives_nothing else [f"    return {call}"]
    else:
        _write_result(binding.output, stage, hold("out", out), operands, body)
    source = "\n".join([*head, *holders, "@fn", f"def {name}(call: StageCall) -> Status:", *body, ""])
    file = f"{name}.py"
    # What was built is found again by the names of modules: two apps of one name in two folders must not share theirs.
    home = hashlib.sha256(stage.python.__code__.co_filename.encode()).hexdigest()[:12]
    # The size of the arguments is known only once their struct exists, and stands in the text as a number.
    trial = {"__name__": f"synapticos_app_{home}.{name}", "user_stage": stage.function, "Config": binding.cfg and binding.cfg[0]}
    trial["State"] = binding.state
    trial |= {"JobInfo": JobInfo, "Ranked": Ranked}
    if f"class {camel}Args" in source:
        space = dict(trial)
        exec("\n".join([*head, *holders]), space)
        source = source.replace("{args_bytes}", str(lang.sizeof(space[f"{camel}Args"])))
    if file in linecache.cache and linecache.getlines(file) != source.splitlines(keepends=True):
        # Another app of that name in this process; a file that was parsed is not parsed again.
        file = f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:8]}.py"
    space = dict(trial)
    _execute(source, file, space)
    binding.adapter = space[name]
    binding.args = space.get(f"{camel}Args")


def _write_result(output: Spec, stage: Stage[Any, Any], kind: str, operands: dict[str, str], body: list[str]) -> None:
    """The lines that call a stage with memory for its result, and say what it left there."""
    size, shape = output.bytes, output.shape
    operands["out"] = "y.data"
    call = f"user_stage({', '.join(operands[p.name] for p in stage.parameters)})"
    body += [
        f"    if call.y.size < {size}:",
        "        return Status.NOMEM",
        f"    y = view({kind}, call.y_data)",
    ]
    if stage.gives_rows:
        body += [f"    status, rows = {call}", "    if status != Status.OK:", "        return status",
                 f"    if rows > {shape[0]}:", "        return Status.FBIG"]  # fmt: skip
    else:
        body += [f"    status = {call}", "    if status != Status.OK:", "        return status"]
    body += [
        f"    call.y.size = {f'rows * {size // shape[0]}' if stage.gives_rows else size}",
        f"    call.y.dtype = DType.{DTYPE_MEMBERS[output.dtype]}",
        f"    call.y.ndim = {len(shape)}",
    ]
    for i in range(4):
        value: object = shape[i] if i < len(shape) else 0
        body.append(f"    call.y.shape[{i}] = {'rows' if i == 0 and stage.gives_rows else value}")
    body.append("    return Status.OK")


def _execute(source: str, file: str, space: dict[str, Any]) -> None:
    space["__file__"] = file
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), space)


__all__ = ["DTYPES", "LETTERS", "Binding", "HostStage", "Stage", "bind", "host_stage", "stage", "write_adapter"]
