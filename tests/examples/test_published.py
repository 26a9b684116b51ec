"""The published samples give the published outcomes, to the byte (spec 27.1, 27.2)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.published import face_detection, hello_inference
from synapticos.engine import Build
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.status import Status
from synapticos.lang import u8

WINNERS = [7, 0, 7, 6, 4, 6, 4, 2, 1, 8]


@pytest.fixture(params=["native", "cortex-m", "checked"])
def engine(request):
    build = Build([kernel_boot, hello_inference.hello_inference, face_detection.face_detection])
    return build.engine(request.param)


def start(e):
    e.fill = 0xA5
    kernel, memory = e.new(Kernel), e.array(u8, 8192)
    e(kernel_boot, kernel, 0)
    return kernel, memory


def test_hello_inference(engine):
    kernel, memory = start(engine)
    out = engine.new(hello_inference.Outcome)
    assert engine(hello_inference.hello_inference, kernel, memory, 8192, out) == Status.OK
    assert (out.handle, out.estimate) == (1, 4106)
    assert (out.best, out.confidence) == (0, 127)
    assert out.peak == 896


def test_face_detection(engine):
    kernel, memory = start(engine)
    frame, out = engine.array(u8, 1728), engine.new(face_detection.FaceOutcome)
    assert engine(face_detection.face_detection, kernel, memory, 8192, frame, out) == Status.OK
    assert (out.frames, out.detections, out.estimate) == (30, 30, 40394)
    assert list(out.winners) == WINNERS * 3
    assert (out.peak, out.used, out.allocs, out.resets) == (2784, 0, 120, 30)
