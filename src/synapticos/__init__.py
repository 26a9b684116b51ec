"""SynapticOS: an operating system for microcontrollers whose unit of work is the inference job.

`import synapticos as syn` loads nothing but this file; each name below is fetched when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synapticos.app import BEST_EFFORT as BEST_EFFORT
    from synapticos.app import NORMAL as NORMAL
    from synapticos.app import REALTIME as REALTIME
    from synapticos.app import App as App
    from synapticos.app import Pipeline as Pipeline
    from synapticos.app import host_stage as host_stage
    from synapticos.app import ms as ms
    from synapticos.app import seconds as seconds
    from synapticos.app import us as us
    from synapticos.app.stage import stage as stage  # type: ignore[no-redef]
    from synapticos.errors import KernelError as KernelError
    from synapticos.errors import UserError as UserError
    from synapticos.host import Job as Job
    from synapticos.host import Runtime as Runtime
    from synapticos.host.live import Done as Done
    from synapticos.kernel.fmath import f32_exp as exp  # noqa: F401
    from synapticos.kernel.fmath import f32_log as log  # noqa: F401
    from synapticos.kernel.fmath import f32_sqrt as sqrt  # noqa: F401
    from synapticos.kernel.handler import JobInfo as JobInfo
    from synapticos.kernel.stages.argmax import Ranked as Ranked
    from synapticos.kernel.stages.features import librosa as librosa
    from synapticos.kernel.stages.micro import micro_frontend as micro_frontend
    from synapticos.kernel.status import Status as Status
    from synapticos.kernel.tensor import Tensor as Tensor
    from synapticos.lang import Array as Array
    from synapticos.lang import Ptr as Ptr
    from synapticos.lang import Rows as Rows
    from synapticos.lang import Shaped as Shaped
    from synapticos.lang import Trap as Trap
    from synapticos.lang import console as console
    from synapticos.lang import f32 as f32
    from synapticos.lang import fn as fn
    from synapticos.lang import i8 as i8
    from synapticos.lang import i16 as i16
    from synapticos.lang import i32 as i32
    from synapticos.lang import i64 as i64
    from synapticos.lang import local as local
    from synapticos.lang import rom as rom
    from synapticos.lang import sat as sat
    from synapticos.lang import struct as struct
    from synapticos.lang import u8 as u8
    from synapticos.lang import u16 as u16
    from synapticos.lang import u32 as u32
    from synapticos.lang import u64 as u64
    from synapticos.lang import wrap as wrap

__version__ = "0.1.0"

_WHERE = {
    "synapticos.app": ("App", "Pipeline", "stage", "host_stage", "REALTIME", "NORMAL", "BEST_EFFORT", "ms", "us", "seconds"),
    "synapticos.host": ("Runtime", "Job"),
    "synapticos.errors": ("UserError", "KernelError"),
    "synapticos.host.live": ("Done",),
    "synapticos.kernel.fmath": ("exp", "log", "sqrt"),
    "synapticos.kernel.handler": ("JobInfo",),
    "synapticos.kernel.stages.argmax": ("Ranked",),
    "synapticos.kernel.stages.features": ("librosa",),
    "synapticos.kernel.stages.micro": ("micro_frontend",),
    "synapticos.kernel.status": ("Status",),
    "synapticos.kernel.tensor": ("Tensor",),
    "synapticos.lang": (
        *("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "Array", "Ptr", "Rows", "Shaped", "Trap"),
        *("console", "fn", "struct", "local", "rom", "sat", "wrap"),
    ),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}
_SPELT = {"exp": "f32_exp", "log": "f32_log", "sqrt": "f32_sqrt"}  # a kernel's names are unique in C

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), _SPELT.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
