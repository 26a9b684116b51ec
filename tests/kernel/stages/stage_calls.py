"""Calls of built-in processors through their table, with NumPy arrays in and out."""

from typing import Any, NamedTuple

import numpy as np

from synapticos.kernel.stages.micro import micro_bytes, micro_frontend
from synapticos.kernel.stages.tables import BUILTINS, KINDS, ROWS, capacity, check_config, config_size, scratch_size, state_size
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor
from synapticos.lang import *

DTYPES = {"int8": DType.INT8, "uint8": DType.UINT8, "int16": DType.INT16, "float32": DType.FLOAT32}
BEFORE = dict(dtype=DType.INT16, ndim=1, shape=[7, 7, 7, 7])  # how a result is described before a stage says otherwise


@fn
def run_stage(kind: u32, inputs: u32, x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: Ptr[u8] | None, config_bytes: u32,
              state: Ptr[u8] | None, state_bytes: u32) -> Status:  # fmt: skip
    call = local(StageCall)
    scratch = local(f32, 2304)
    call.inputs = inputs
    copy(call.x[0], x)
    call.x_data[0] = x_data
    copy(call.y, y)
    call.y_data = y_data
    call.config = config
    call.config_bytes = config_bytes
    call.scratch = view(u8, scratch)
    call.scratch_bytes = scratch_size(kind, config, config_bytes)
    call.state = state
    call.state_bytes = state_bytes
    status = BUILTINS[kind](call)
    copy(y, call.y)
    return status


ROOTS = (run_stage, capacity, check_config, config_size, scratch_size, state_size)


class Result(NamedTuple):
    status: Status
    tensor: dict[str, Any]
    bytes: bytes  # all that was given to the result, used or not

    @property
    def array(self) -> np.ndarray:
        """The result as NumPy sees it (records of argmax and top_k do not)."""
        assert self.status == Status.OK
        dtype = {DType.INT8: "i1", DType.UINT8: "u1", DType.FLOAT32: "f4"}[self.tensor["dtype"]]
        shape = self.tensor["shape"][: self.tensor["ndim"]]
        return np.frombuffer(self.bytes[: self.tensor["size"]], dtype).reshape(shape)

    @property
    def records(self) -> list[tuple[int, float]]:
        """(index, score) of argmax and top_k."""
        assert self.status == Status.OK and self.tensor["dtype"] == DType.FLOAT32 and self.tensor["ndim"] == 1
        assert self.tensor["size"] == 8 * self.tensor["shape"][0] and self.tensor["shape"][1:] == [0, 0, 0]
        data = self.bytes[: self.tensor["size"]]
        return [(int(i), float(s)) for i, s in np.frombuffer(data, np.dtype([("i", "u4"), ("s", "f4")]))]


def config_bytes(name: str, **fields: Any) -> bytes:
    if name == "micro_features":  # tables follow its struct
        return micro_bytes(micro_frontend(**{n: v for n, v in fields.items() if n != "rows"}), fields["rows"])
    return pack(ROWS[KINDS[name]].config, **fields)


def tensor(e: Any, array: np.ndarray, shape: Any = None, size: int | None = None) -> Any:
    shape = list(array.shape if shape is None else shape)
    size = array.nbytes if size is None else size
    return e.new(Tensor, size=size, dtype=DTYPES[str(array.dtype)], ndim=len(shape), shape=(shape + [0] * 4)[:4])


def run(e: Any, name: str, array: Any, config: bytes | None = None, *, room: int | None = None, shape: Any = None,
        size: int | None = None, inputs: int = 1, state: Any = None) -> Result:  # fmt: skip
    """One stage on one array. `room` is the capacity of the result; `shape` and `size` misdeclare the input."""
    array = np.ascontiguousarray(array)
    x = tensor(e, array, shape, size)
    x_data = e.array(u8, array.tobytes() or bytes(4))
    given = e.array(u8, config) if config is not None else None
    n = len(config) if config is not None else 0
    if room is None:
        room = e(capacity, KINDS[name], x, given, n)
    y = e.new(Tensor, size=room, **BEFORE)
    y_data = e.array(u8, b"\xa5" * max(room, 4))
    before = bytes(y), bytes(y_data)
    status = Status(e(run_stage, KINDS[name], inputs, x, x_data, y, y_data, given, n, state, len(state) if state is not None else 0))
    assert bytes(x_data) == (array.tobytes() or bytes(4)), "a stage does not write its input"
    if status != Status.OK:
        assert bytes(y) == before[0], "an error leaves the result as it was"
    if status == Status.NOMEM:
        assert bytes(y_data) == before[1]
    result = Result(status, unpack(Tensor, bytes(y)), bytes(y_data))
    assert result.tensor["size"] <= room
    return result
