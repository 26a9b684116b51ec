"""The published system's first two samples, as programs in kernel-Python that build their pipelines at run time."""
