"""All that runs on the chip, a file each, in kernel-Python.

Imports only `synapticos.lang` and other kernel modules.
"""
