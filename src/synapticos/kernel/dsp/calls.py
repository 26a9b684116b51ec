"""The published calls for signal processing: `contract`, with the accelerators that the kernel has tried at boot.

A build with DSP 0 carries none of it: its boot tries nothing, and these calls answer NOTSUP.
"""

from synapticos.lang import *
from synapticos.kernel.capacity import DSP
from synapticos.kernel.dsp.calibrate import dsp_init
from synapticos.kernel.dsp.contract import dsp_argmax, dsp_fft_f32, dsp_mat_mult_q15, dsp_normalize_int8, dsp_softmax_f32
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.status import Status


@fn
def kernel_dsp_init(kernel: Kernel) -> Status:
    """Try the accelerators; one that answers wrong is logged and not used. Returns OK; NOTSUP in a build without."""
    if DSP == 0:
        return Status.NOTSUP
    dsp = kernel.dsp
    status = dsp_init(dsp)
    if dsp.refused != 0:
        log.warning(kernel.log, f"dsp: wrong answers of accelerators {dsp.refused:x} (bit n: operation n), software does these")
    return status


@fn
def kernel_dsp_normalize_int8(kernel: Kernel, x: Ptr[u8] | None, y: Ptr[i8] | None, n: u32, scale: f32, zero_point: i32) -> Status:
    if DSP == 0:
        return Status.NOTSUP
    return dsp_normalize_int8(kernel.dsp, x, y, n, scale, zero_point)


@fn
def kernel_dsp_softmax_f32(kernel: Kernel, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    if DSP == 0:
        return Status.NOTSUP
    return dsp_softmax_f32(kernel.dsp, x, y, n)


@fn
def kernel_dsp_argmax(kernel: Kernel, data: Ptr[i8] | None, n: u32, index: Ptr[u32] | None) -> Status:
    if DSP == 0:
        return Status.NOTSUP
    return dsp_argmax(kernel.dsp, data, n, index)


@fn
def kernel_dsp_fft_f32(kernel: Kernel, x: Ptr[f32] | None, y: Ptr[f32] | None, n: u32) -> Status:
    if DSP == 0:
        return Status.NOTSUP
    return dsp_fft_f32(kernel.dsp, x, y, n)


@fn
def kernel_dsp_mat_mult_q15(kernel: Kernel, a: Ptr[i16] | None, b: Ptr[i16] | None, out: Ptr[i16] | None, rows: u32, cols: u32) -> Status:
    if DSP == 0:
        return Status.NOTSUP
    return dsp_mat_mult_q15(kernel.dsp, a, b, out, rows, cols)
