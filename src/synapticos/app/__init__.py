"""What a user declares, and the tables it becomes.

`App` and what hangs off it are plain data; `stage` and `host_stage` mark a user's functions; `compile_app` turns an
app into an `Image`: read-only tables, containers and the stages' functions, which an engine or firmware boots.
"""

from synapticos.app.declare import BEST_EFFORT, NORMAL, REALTIME, App, Pipeline, ms, seconds, us
from synapticos.app.stage import host_stage, stage

__all__ = ["BEST_EFFORT", "NORMAL", "REALTIME", "App", "Pipeline", "host_stage", "ms", "seconds", "stage", "us"]
