"""Capacities: how many of everything a build has room for. A build sets them by name; here are the defaults."""

from synapticos.lang import *

MAX_MODELS = param(u32, 4, min=1, max=16)  # registered at once
MAX_PIPELINES = param(u32, 4, min=1, max=32)
MAX_PIPELINE_STAGES = param(u32, 8, min=1, max=16)  # of one pipeline, its model included
MAX_JOBS = param(u32, 2, min=1, max=64)  # slots: queued, running and finished but unread
PIPELINE_CONFIG_BYTES = param(u32, 96, min=4, max=4096)  # a pipeline's copies of its stages' configurations; a multiple of 4
NPU_INPUT_BYTES = param(u32, 1024, min=1, max=1 << 20)  # what `npu_set_input` can copy
NPU_OUTPUT_BYTES = param(u32, 256, min=4, max=1 << 20)  # what `npu_invoke` can keep
NPU_MODEL_BYTES = param(u32, 450496, max=1 << 28)  # of one model: what a slot of the flash store holds
RESIDENT_MODELS = param(u32, 1, min=1, max=16)  # at once on the accelerator, if its backend says that as many fit
LAYER_TIMES = param(u32, 32, min=1, max=1024)  # layers that a trace keeps
PROFILING = param(u32, 1, max=1)  # 0: no times are kept
DEADLINE_ORDER = param(u32, 1, max=1)  # inside a class: 1 earliest deadline first, 0 first come, first served
# What a build may leave out; each is 1, or 0 for code that is not there. `bench size` says what each costs.
COMPOSING = param(u32, 1, max=1)  # 0: pipelines come from an app's tables, and run in planned frames
PLAIN_STAGES = param(u32, 1, max=1)  # 0: a pipeline is a model and nothing else
HOST_STAGES = param(u32, 1, max=1)  # 0: no stage waits for the host
DEADLINES = param(u32, 1, max=1)  # 0: no job has a deadline
LATE_POLICIES = param(u32, 1, max=1)  # 0: a miss is counted and no more; no job is skipped, ended or told of for it
RECLAIM = param(u32, 1, max=1)  # 0: a job that has ended keeps its slot until somebody reads it
MODEL_STATE = param(u32, 1, max=1)  # 0: no model keeps anything from run to run
ACCELERATOR = param(u32, 1, max=1)  # 0: no backend holds one model at a time, or leaves outputs that it does not describe
PARTS = param(u32, 1, max=1)  # 0: every pipeline has one source, or a model that takes several as they come
FRONT_ENDS = param(u32, 1, max=1)  # 0: no pipeline makes features of sound
OFFLOAD = param(u32, 0, max=1)  # 1: backends may work beside the processor
DSP = param(u32, 1, max=1)  # 0: no accelerators for signal processing are tried at boot, and no calls to them
HANDLERS = param(u32, 0, max=1)  # 1: pipelines of an app may have a function that gets their results
GUARD = param(u32, 0, max=1)  # 1: what a stage or layer does wrong ends its own job; the board has to answer `guard_run`
WATCHDOG_US = param(u32, 0)  # how long one stage, or one layer's rows, may take in a build with GUARD; 0: any time
WATCHDOGS = param(u32, 0, max=1)  # 1: an app's tables may say it of each stage, in place of that
RUN_ON = param(u32, 0, max=1)  # 1: a poll runs all steps of a job that nothing could come between; for builds without a clock's duties
ONE_THREAD = param(u32, 0, max=1)  # 1: one thread alone calls `poll` and what waits by it, so nobody else looks whether it is taken
SYNC_TIMEOUT_MS = param(u32, 5000)  # how long `infer_run_sync` waits
RELEASES = param(u32, 0, max=32)  # jobs that begin by the clock or by what arrives; 0: all are submitted
FEEDS = param(u32, 0, max=32)  # sources that keep what arrives
FEED_ENTRIES = param(u32, 4, min=1, max=64)  # of one feed at most
MAX_WAITING = param(u32, 4, min=1, max=64)  # releases of one job that may wait
JOINS = param(u32, 0, max=8)  # sources of one released job, where any has several
