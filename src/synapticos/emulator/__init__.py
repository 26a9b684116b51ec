"""The in-process Cortex-M: `Core` calls single functions, `Machine` runs a firmware with its board's devices.

`cpu` wraps the engine (unicorn). Imports `boards`, and nothing of the kernel.
"""

import importlib

from synapticos.errors import UserError

try:
    importlib.import_module("unicorn")
except ImportError as error:
    raise UserError(f"the in-process emulator needs unicorn ({error}); pip install unicorn, or run with --emulator qemu") from None

from synapticos.emulator.core import Core, Exited, Fault, Panic
from synapticos.emulator.machine import Machine

__all__ = ["Core", "Exited", "Fault", "Machine", "Panic"]
