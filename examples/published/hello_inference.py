"""hello_inference: register a model, run it once, take the largest score. The published system's first sample.

    python -m examples.published hello_inference                       on this machine
    python -m examples.published hello_inference --board lm3s6965evb   as firmware in QEMU

The accelerator is the deterministic stub: the class is the sum of the input's bytes modulo 10.
"""

from synapticos.kernel.infer import infer_run_sync
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.memory import MemStats, mem_data, mem_get_stats, mem_tensor_alloc
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.models import model_load, model_register
from synapticos.kernel.npu import npu_load_model
from synapticos.kernel.profile import ProfileResult
from synapticos.kernel.runtime import kernel_init, prof_get_last
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, Lifetime, Tensor
from synapticos.lang import Final, Ptr, check, console, fn, i8, i32, local, rom, static, struct, u8, u32, view

ARENA_BYTES: Final[u32] = 8192
SCRATCH_BYTES: Final[u32] = 1024
INPUT_BYTES: Final[u32] = 768
CLASSES: Final[u32] = 10
PROCESSORS: set[str] = set()  # the built-in stages that its firmware carries

NAME = rom(b"test_classify")
VERSION = rom(b"1.0.0")
PAYLOAD = rom(u8, [0] * 64)


@struct
class Outcome:
    """What came out, for whoever calls the sample as a function."""

    handle: u32
    estimate: u32
    best: u32
    confidence: i32
    peak: u32  # bytes of the arena
    utilisation: u32  # percent of the time that the accelerator worked


@fn
def copy_text(target: Ptr[u8], text: Ptr[u8], n: u32) -> None:
    for i in range(n):
        target[i] = text[i]


@fn
def hello_inference(kernel: Kernel, memory: Ptr[u8], size: u32, out: Outcome) -> Status:
    """The sample, in a kernel that has been booted, with `size` bytes at `memory` for its arena."""
    check(kernel_init(kernel, memory, size, SCRATCH_BYTES))
    check(npu_load_model(kernel, PAYLOAD, 64))
    info = local(ModelInfo)
    copy_text(info.name, NAME, 13)
    copy_text(info.version, VERSION, 5)
    info.input_size = INPUT_BYTES
    info.output_size = CLASSES
    info.sram_required = 4096
    handle = check(model_register(kernel, info))
    check(model_load(kernel, handle))
    out.handle = handle

    shape = local(u32, 4)
    shape[0] = 1
    shape[1] = 16
    shape[2] = 16
    shape[3] = 3
    input = mem_tensor_alloc(kernel, shape, 4, u32(DType.INT8), u32(Lifetime.EPHEMERAL))
    if input is None:
        return Status.NOMEM
    data = mem_data(kernel, input)
    if data is None:
        return Status.NOMEM
    for i in range(INPUT_BYTES):
        data[i] = u8(i % 256)

    result = local(Tensor)
    check(infer_run_sync(kernel, handle, input, result, 1))
    bytes = mem_data(kernel, result)
    if bytes is None:
        return Status.INVAL
    scores = view(i8, bytes)
    out.best = 0
    for k in range(1, CLASSES):
        if scores[k] > scores[out.best]:
            out.best = k
    out.confidence = scores[out.best]

    stats = local(MemStats)
    check(mem_get_stats(kernel, stats))
    out.peak = stats.arena_peak
    profile = local(ProfileResult)
    check(prof_get_last(kernel, profile))
    out.utilisation = profile.npu_utilization_pct
    out.estimate = kernel.pipelines.items[0].estimate
    return Status.OK


KERNEL = static(Kernel)
ARENA = static(u8, 8192, align=16)


@fn
def main() -> i32:
    out = local(Outcome)
    kernel_boot(KERNEL, 0)
    status = hello_inference(KERNEL, ARENA, ARENA_BYTES, out)
    if status != Status.OK:
        code = i32(status)
        console.print(f"hello_inference failed: {code}")
        return 1
    console.print(f"model handle {out.handle}, estimate {out.estimate} bytes")
    console.print(f"class {out.best}, confidence {out.confidence}")
    console.print(f"memory peak {out.peak} bytes")
    return 0
