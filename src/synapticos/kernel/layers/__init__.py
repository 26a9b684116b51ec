"""Layer kernels, one family a file: each has `plan` (host), `validate` and `run` (kernel).

Numbers of the variants are in `variants`, the tables that the kernel calls through in `tables`, the requantizer
that all share in `requant`.
"""
