"""Apps on this machine: `Runtime` runs one in a program, `execute` and `firmware` are what the commands call.

Jobs are futures, NumPy arrays go in without a copy, results are the caller's own.
"""

from synapticos.host.runtime import Job, Runtime

__all__ = ["Job", "Runtime"]
