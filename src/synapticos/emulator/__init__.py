"""The in-process Cortex-M: `Core` calls single functions, `Machine` runs a firmware with its board's devices.

`cpu` wraps the engine (unicorn). Imports `boards`, and nothing of the kernel.
"""

from synapticos.emulator.core import Core, Exited, Fault, Panic
from synapticos.emulator.machine import Machine

__all__ = ["Core", "Exited", "Fault", "Machine", "Panic"]
