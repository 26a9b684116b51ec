"""SignalWindow, SignalFftAutoScale and SignalEnergy: samples made ready for a spectrum, and what is in it.

    WINDOW  y[i] = clamp(x[i] * w[i] >> shift)                  x, w, y  i16 [n]
    SCALE   y[i] = x[i] << bits; bits = what the largest |x| leaves free      x, y  i16 [n]; bits  i32 [1]
    ENERGY  y[i] = re[i]**2 + im[i]**2 for first <= i < end, else 0      x  i16 [n, 2]; y  u32 [n]

A row is all there is.
"""

from typing import Any

from synapticos.lang import *
from synapticos.kernel.container import DTYPE_INT16, DTYPE_INT32, DTYPE_UINT32, LayerCall, LayerCheck
from synapticos.kernel.layers.checks import apart, product, takes
from synapticos.kernel.layers.operands import holds, holds_const
from synapticos.kernel.layers.softmax import leading_zeros
from synapticos.kernel.status import Status


@struct
class SignalParams:
    n: u32
    shift: u32  # WINDOW
    first: u32  # ENERGY
    end: u32


SIGNAL_PARAMS_BYTES: Final[u32] = sizeof(SignalParams)


@fn
def signal_window_validate(check: LayerCheck) -> Status:
    if not takes(check, 2, SIGNAL_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SignalParams, check.params)
    if not holds(check, 0, DTYPE_INT16, p.n) or not holds_const(check, 1, DTYPE_INT16, p.n) or p.shift > 31:
        return Status.INVAL
    if not holds(check, 2, DTYPE_INT16, p.n) or check.rows != 1 or not apart(check, True):
        return Status.INVAL
    return Status.OK


@fn
def signal_window(x: Ptr[i16], w: Ptr[i16], n: u32, shift: u32, y: Ptr[i16]) -> None:
    """WINDOW; shift is at most 31."""
    for i in range(n):
        y[i] = i16(min(max((i32(x[i]) * w[i]) >> shift, -32768), 32767))


@fn
def signal_window_run(call: LayerCall) -> Status:
    p = view(SignalParams, call.params)
    signal_window(view(i16, call.data[0]), view(i16, call.data[1]), p.n, p.shift, view(i16, call.data[2]))
    return Status.OK


@fn
def signal_scale_validate(check: LayerCheck) -> Status:
    if check.inputs != 1 or check.outputs != 2 or check.params_bytes < SIGNAL_PARAMS_BYTES:
        return Status.INVAL
    p = view(SignalParams, check.params)
    if not holds(check, 0, DTYPE_INT16, p.n) or not holds(check, 1, DTYPE_INT16, p.n):
        return Status.INVAL
    if not holds(check, 2, DTYPE_INT32, 1) or check.rows != 1 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def signal_scale(x: Ptr[i16], n: u32, y: Ptr[i16]) -> u32:
    """SCALE, in place too: the bits, 0..15."""
    largest: i32 = 0
    for i in range(n):
        largest = max(largest, max(i32(x[i]), -i32(x[i])))
    used = 32 - leading_zeros(u32(largest))
    free: u32 = 0
    if used < 15:
        free = 15 - used
    for i in range(n):
        y[i] = wrap(i16, i32(x[i]) << free)
    return free


@fn
def signal_scale_run(call: LayerCall) -> Status:
    p = view(SignalParams, call.params)
    free = signal_scale(view(i16, call.data[0]), p.n, view(i16, call.data[1]))
    view(i32, call.data[2])[0] = i32(free)
    return Status.OK


@fn
def signal_energy_validate(check: LayerCheck) -> Status:
    if not takes(check, 1, SIGNAL_PARAMS_BYTES, 0):
        return Status.INVAL
    p = view(SignalParams, check.params)
    if not holds(check, 0, DTYPE_INT16, product(p.n, 2)) or not holds(check, 1, DTYPE_UINT32, p.n):
        return Status.INVAL
    if p.first > p.end or p.end > p.n or check.rows != 1 or not apart(check, False):
        return Status.INVAL
    return Status.OK


@fn
def signal_energy(x: Ptr[i16], first: u32, end: u32, y: Ptr[u32]) -> None:
    """ENERGY from `first` to before `end`; what lies beside stays as it is."""
    for i in range(first, end):
        re = i32(x[2 * i])
        im = i32(x[2 * i + 1])
        y[i] = u32(re * re) + u32(im * im)


@fn
def signal_energy_run(call: LayerCall) -> Status:
    p = view(SignalParams, call.params)
    y = view(u32, call.data[1])
    fill(y, 0, p.n)
    signal_energy(view(i16, call.data[0]), p.first, p.end, y)
    return Status.OK


def plan(op: Any) -> Any:
    """The step for one of the three. Plain Python."""
    from synapticos.kernel.layers import variants

    x, o = op.inputs[0], op.options
    n = x.elements
    if op.kind == "SignalWindow":
        variant, params = variants.SIGNAL_WINDOW, pack(SignalParams, n=n, shift=o["shift"])
    elif op.kind == "SignalFftAutoScale":
        variant, params = variants.SIGNAL_SCALE, pack(SignalParams, n=n)
    else:
        n //= 2
        variant, params = variants.SIGNAL_ENERGY, pack(SignalParams, n=n, first=o["start_index"], end=o["end_index"])
    return variants.LayerPlan(variant, list(op.inputs), list(op.outputs), params, scratch=0, cost=n, rows=1)
