"""A network as an app names it: a file, read and compiled when somebody first asks."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from synapticos.app.spec import Spec
from synapticos.errors import UserError
from synapticos.kernel.stages.fit import full_range

Numbers = float | tuple[float, ...] | None


@dataclass(eq=False)
class ModelFile:
    path: Path
    name: str
    output_names: tuple[str, ...] | None = None
    input_names: tuple[str, ...] | None = None
    mean: Numbers = None
    std: Numbers = None
    features: dict[str, Any] | None = None  # as the app states them
    max_step: int | None = None  # multiply-accumulates
    on: str = "cpu"  # or "npu"

    @cached_property
    def front_end(self) -> dict[str, Any] | None:
        """The features that it was trained on, as the app and the file beside it say; None if nobody says."""
        from synapticos.app.sound import agree, beside, read_features

        file = beside(self.path).name
        return agree(f'model "{self.name}"', (file, read_features(self.path)), ("the app", self.features))

    @cached_property
    def graph(self) -> Any:
        from synapticos import importers

        if self.path.exists() and not self.path.is_file():
            raise UserError(f'model "{self.name}": {self.path}: is no regular file; give a .tflite or .onnx')
        if not self.path.is_file():
            raise UserError(f'model "{self.name}": {self.path}: no such file')
        return importers.load(self.path)

    @cached_property
    def compiled(self) -> Any:
        from synapticos.model import compile_model

        return compile_model(self.graph, name=self.name, max_step=self.max_step, features=self.front_end)

    @property
    def input(self) -> Spec:
        """The only input. Raises UserError where there are several: `model["name"]` is one of them."""
        if len(self.inputs) != 1:
            one = self.inputs[0].name
            raise UserError(f'model "{self.name}": has {len(self.inputs)} inputs: {self.there}; say which: {self.name}["{one}"]')
        return self.inputs[0]

    @cached_property
    def inputs(self) -> tuple[Spec, ...]:
        return self._named(self.graph.inputs, self.input_names, "inputs")

    @cached_property
    def outputs(self) -> tuple[Spec, ...]:
        return self._named(self.graph.outputs, self.output_names, "outputs")

    @property
    def input_bytes(self) -> int:
        """Of all inputs, one behind the other, each from a multiple of 16 on."""
        at = 0
        for spec in self.inputs:
            at = -(-at // 16) * 16 + spec.bytes
        return at

    @property
    def there(self) -> str:
        """Its inputs, for messages."""
        return ", ".join(f'"{s.name}" ({s})' for s in self.inputs)

    def _named(self, tensors: Any, names: tuple[str, ...] | None, what: str) -> tuple[Spec, ...]:
        names = names or tuple(t.name for t in tensors)
        if len(names) != len(tensors):
            there = ", ".join(f'"{t.name}" ({_spec(t, t.name)})' for t in tensors)
            raise UserError(f'model "{self.name}": {len(names)} names for {len(tensors)} {what}: {there}')
        if len(set(names)) != len(names):
            raise UserError(f'model "{self.name}": two {what} have one name; give each its own: app.model(..., {what}=("one", "other"))')
        return tuple(_spec(t, n) for t, n in zip(tensors, names))

    def __getitem__(self, name: str) -> "ModelInput":
        """One of several inputs, for a step that prepares it: `.of(camera).fit(model["picture"])`."""
        found = [spec for spec in self.inputs if spec.name == name]
        if not found:
            raise UserError(f'model "{self.name}": has no input "{name}"; there is {self.there}')
        return ModelInput(self, found[0])

    def pixels(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation, a channel each, that make of a pixel 0..255 what the network was trained on.

        Where the app does not say, 0..255 is spread over all that the input tensor can hold.
        """
        spec = self.input
        channels = spec.shape[-1]
        if self.mean is None and self.std is None and spec.scale is not None:
            mean, std = full_range(spec.scale, spec.zero)
            return (mean,) * channels, (std,) * channels
        return _each(self.mean, 0.0, channels, self.name), _each(self.std, 1.0, channels, self.name)


class ModelInput(ModelFile):
    """A model of which one input is meant."""

    def __init__(self, model: ModelFile, spec: Spec) -> None:
        super().__init__(model.path, model.name, model.output_names, model.input_names, model.mean, model.std, model.features)
        self.model, self.meant = model, spec

    @property
    def input(self) -> Spec:
        return self.meant

    @property
    def front_end(self) -> dict[str, Any] | None:  # type: ignore[override]
        return self.model.front_end


def _each(value: Numbers, default: float, channels: int, name: str) -> tuple[float, ...]:
    values = (default if value is None else value,) * channels if not isinstance(value, tuple) else value
    if len(values) != channels:
        raise UserError(f'model "{name}": {len(values)} values of mean or std for {channels} channels')
    return tuple(float(v) for v in values)


def _spec(tensor: Any, name: str) -> Spec:
    scales = np.asarray(tensor.scale)
    one = scales.size == 1
    zero = int(np.asarray(tensor.zero).reshape(-1)[0]) if one and np.asarray(tensor.zero).size else 0
    return Spec(name, tuple(int(n) for n in tensor.shape), str(tensor.dtype), float(scales.reshape(-1)[0]) if one else None, zero)
