"""The kernel's names in C: what a firmware in C, or a tool, calls. The header is generated from these.

Every function takes the kernel first; the header binds the board's one kernel for the published signatures. Those
below with `Ptr` results are the published shapes of calls that in Python give a tuple.
"""

from synapticos.lang import *
from synapticos.kernel import compose, due, feed, infer, kernel, memory, models, npu, offload, runtime, sched, tables
from synapticos.kernel.dsp import calls
from synapticos.kernel.kernel import Kernel
from synapticos.kernel.model import ModelInfo
from synapticos.kernel.models import model_get_by_name, model_register
from synapticos.kernel.status import Status


@fn
def api_model_register(kernel: Kernel, info: ModelInfo | None, handle: Ptr[u32] | None) -> Status:
    """`model_register`, the handle (0 on an error) written to `handle`. INVAL too if that is None."""
    if handle is None:
        return Status.INVAL
    status, value = model_register(kernel, info)
    handle[0] = value
    return status


@fn
def api_model_get_by_name(kernel: Kernel, name: Ptr[u8] | None, handle: Ptr[u32] | None) -> Status:
    """`model_get_by_name`, the handle (0 if there is none) written to `handle`. INVAL too if that is None."""
    if handle is None:
        return Status.INVAL
    status, value = model_get_by_name(kernel, name)
    handle[0] = value
    return status


@fn
def api_model_list(kernel: Kernel, handles: Ptr[u32] | None, count: Ptr[u32] | None, most: u32) -> Status:
    """Up to `most` handles in slot order, and how many. Returns OK; INVAL for None."""
    if handles is None or count is None:
        return Status.INVAL
    count[0] = kernel.models.list(handles, most)
    return Status.OK


EXPORTS = {
    "syn_boot": kernel.kernel_boot,
    "syn_init": runtime.kernel_init,
    "syn_shutdown": runtime.kernel_shutdown,
    "syn_mem_init": memory.mem_init,
    "syn_mem_tensor_alloc": memory.mem_tensor_alloc,
    "syn_mem_tensor_free": memory.mem_tensor_free,
    "syn_mem_tensor_init": memory.mem_tensor_init,
    "syn_mem_data": memory.mem_data,
    "syn_mem_reset_ephemeral": memory.mem_reset_ephemeral,
    "syn_mem_scratch_acquire": memory.mem_scratch_acquire,
    "syn_mem_scratch_release": memory.mem_scratch_release,
    "syn_mem_get_stats": memory.mem_get_stats,
    "syn_mem_print_stats": memory.mem_print_stats,
    "syn_hal_npu_init": npu.npu_init,
    "syn_hal_npu_deinit": npu.npu_deinit,
    "syn_hal_npu_get_caps": npu.npu_get_caps,
    "syn_hal_npu_get_state": npu.npu_get_state,
    "syn_hal_npu_load_model": npu.npu_load_model,
    "syn_hal_npu_set_input": npu.npu_set_input,
    "syn_hal_npu_invoke": npu.npu_invoke,
    "syn_hal_npu_invoke_async": npu.npu_invoke_async,
    "syn_hal_npu_get_output": npu.npu_get_output,
    "syn_hal_npu_suspend": npu.npu_suspend,
    "syn_hal_npu_resume": npu.npu_resume,
    "syn_npu_done": offload.npu_done,
    "syn_hal_dsp_init": calls.kernel_dsp_init,
    "syn_hal_dsp_normalize_int8": calls.kernel_dsp_normalize_int8,
    "syn_hal_dsp_softmax_f32": calls.kernel_dsp_softmax_f32,
    "syn_hal_dsp_argmax": calls.kernel_dsp_argmax,
    "syn_hal_dsp_fft_f32": calls.kernel_dsp_fft_f32,
    "syn_hal_dsp_mat_mult_q15": calls.kernel_dsp_mat_mult_q15,
    "syn_model_register": api_model_register,
    "syn_model_unregister": models.model_unregister,
    "syn_model_get_info": models.model_get_info,
    "syn_model_get_by_name": api_model_get_by_name,
    "syn_model_list": api_model_list,
    "syn_model_set_data": models.model_set_data,
    "syn_model_set_crc": models.model_set_crc,
    "syn_model_clear_state": models.model_clear_state,
    "syn_model_pin": models.model_pin,
    "syn_model_loads": models.model_loads,
    "syn_model_load": models.model_load,
    "syn_model_unload": models.model_unload,
    "syn_model_is_loaded": models.model_is_loaded,
    "syn_model_swap": models.model_swap,
    "syn_pipeline_create": compose.pipeline_create,
    "syn_pipeline_add_preprocess": compose.pipeline_add_preprocess,
    "syn_pipeline_add_model": compose.pipeline_add_model,
    "syn_pipeline_add_postprocess": compose.pipeline_add_postprocess,
    "syn_pipeline_build": compose.pipeline_build,
    "syn_pipeline_get_estimate": compose.pipeline_get_estimate,
    "syn_pipeline_plan": compose.pipeline_plan,
    "syn_pipeline_destroy": sched.pipeline_destroy,
    "syn_infer_submit": sched.infer_submit,
    "syn_infer_post": sched.infer_post,
    "syn_infer_wait": sched.infer_wait,
    "syn_infer_cancel": sched.infer_cancel,
    "syn_infer_abort": sched.infer_abort,
    "syn_infer_reclaim": sched.infer_reclaim,
    "syn_infer_set_deadline": sched.infer_set_deadline,
    "syn_infer_detach": sched.infer_detach,
    "syn_infer_state": sched.infer_state,
    "syn_infer_get_result": sched.infer_get_result,
    "syn_infer_output": sched.infer_output,
    "syn_infer_read": sched.infer_read,
    "syn_infer_set_max_concurrent": sched.infer_set_max_concurrent,
    "syn_infer_run_sync": infer.infer_run_sync,
    "syn_drain": sched.sched_drain,
    "syn_release": sched.sched_release,
    "syn_poll": sched.kernel_poll,
    "syn_due": due.kernel_due,
    "syn_rest": due.kernel_rest,
    "syn_job_enable": due.job_enable,
    "syn_job_counts": due.job_counts,
    "syn_source_counts": due.source_counts,
    "syn_source_push": feed.source_push,
    "syn_source_push_at": feed.source_push_at,
    "syn_stage_take": sched.stage_take,
    "syn_stage_done": sched.stage_done,
    "syn_prof_enable": runtime.prof_enable,
    "syn_prof_disable": runtime.prof_disable,
    "syn_prof_get_last": runtime.prof_get_last,
    "syn_prof_get_job": runtime.prof_get_job,
    "syn_prof_print_summary": runtime.prof_print_summary,
    "syn_prof_enable_layer_trace": runtime.prof_enable_layer_trace,
    "syn_prof_get_layer_time": runtime.prof_get_layer_time,
    "syn_app_boot": tables.app_boot,
    "syn_app_clear_state": tables.app_clear_state,
    "syn_app_pipeline": tables.app_pipeline,
}
