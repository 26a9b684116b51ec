"""The host's picture of a network: graph, optimiser, memory plan, and the container that firmware executes.

    compiled = compile_model(importers.load("person.tflite"), ram=65_536)
    compiled.container, compiled.plan.peak, compiled.info.to_text()

Runs on the host only, and knows no file format but the container. Imports `lang` and `kernel`.
"""

from synapticos.model.draw import draw_png, draw_text
from synapticos.model.graph import DTYPES, Graph, Op, Tensor
from synapticos.model.info import ModelInfo
from synapticos.model.load import Description, load_container
from synapticos.model.pack import Answer, Compiled, compile_model
from synapticos.model.plan import ArenaTooSmall, MemoryPlan
from synapticos.model.unsupported import Problem, UnsupportedModel

__all__ = [
    "DTYPES",
    "Answer",
    "ArenaTooSmall",
    "Compiled",
    "Description",
    "Graph",
    "MemoryPlan",
    "ModelInfo",
    "Op",
    "Problem",
    "Tensor",
    "UnsupportedModel",
    "compile_model",
    "draw_png",
    "draw_text",
    "load_container",
]
