"""Start and stop: spec 32, lines 43 to 45; the defects of 33.5; the profiler."""

from kernels import NORMAL, PASS
from synapticos.kernel.kernel import Kernel, kernel_boot
from synapticos.kernel.profile import ProfileResult
from synapticos.kernel.status import Status
from synapticos.lang import u8, u32


def start(w):
    return w("kernel_init", w.memory, 8192, 1024)


def test_start_stop_start(w):
    assert start(w) == Status.ALREADY
    assert w("kernel_shutdown") == Status.OK
    assert w("kernel_shutdown") == Status.PERM
    assert start(w) == Status.OK


def test_boot_trusts_no_memory(make):
    """A kernel in memory full of 0xA5 and one in memory full of 0x5A have the same bytes after boot."""
    from kernels import OPTIONS, ROOTS

    e = make(*ROOTS, **OPTIONS)
    states = []
    for byte in (0xA5, 0x5A):
        e.fill = byte
        kernel = e.new(Kernel)
        e.fill = 0
        e(kernel_boot, kernel, 0)
        states.append(bytes(kernel))
    assert states[0] == states[1]


def test_defect_50_an_accelerator_brought_up_before_is_no_error(world):
    w = world(up=False)
    assert w("npu_init") == Status.OK
    assert start(w) == Status.OK


def test_defect_50_a_failed_start_leaves_nothing_half_done(world):
    w = world(up=False)
    assert w("kernel_init", None, 8192, 1024) == Status.INVAL
    assert w("npu_init") == Status.OK  # was not brought up
    assert start(w) == Status.OK


def test_defect_51_stopping_cancels_jobs_and_unloads_models(w):
    pipe = w.simple()
    model = w("api_model_get_by_name", w.e.array(u8, b"pipe_test".ljust(32, b"\0")), w.e.array(u32, 1))
    jobs = [w.submit(pipe, bytes(48)) for _ in range(3)]
    handle = 1
    assert model == Status.OK and w("model_load", handle) == Status.OK
    w("kernel_poll")
    assert w("kernel_shutdown") == Status.OK
    assert [w("infer_wait", j, 0) for j in jobs] == [Status.OK, Status.CANCELED, Status.CANCELED]
    assert not w("model_is_loaded", handle)
    assert start(w) == Status.BUSY  # results are still unread


def profile(w):
    out = w.e.new(ProfileResult)
    return w("prof_get_last", out), out


def test_no_profile_before_a_job(w):
    assert profile(w)[0] == Status.NOENT
    assert w("prof_get_last", None) == Status.INVAL
    w.e.board.take_console()
    w("prof_print_summary")
    assert w.e.board.take_console() == b"profile: no data\n"


def test_the_parts_of_a_profile(w):
    """A job is suspended for 1,000,000 us between its steps: in the total, in no part."""
    w.hand_model()
    pipe = w.pipeline(w.model(), (PASS,), (PASS, PASS))
    job = w.submit(pipe, bytes(48))
    w("kernel_poll")
    w.e.board.advance(1_000_000)
    w.run()
    status, got = profile(w)
    rate = w.kernel.clock.rate
    assert status == Status.OK and got.mem_peak_bytes == w.kernel.arena.peak
    assert got.total_us >= 1_000_000 * 1_000_000 // rate
    assert got.preprocess_us + got.npu_us + got.postprocess_us < 1_000_000 or rate != 1_000_000
    assert w("prof_get_job", job, got) == Status.OK
    assert w("prof_get_stage", 3)[0] == Status.OK and w("prof_get_stage", 4)[0] == Status.NOENT


def test_defect_52_a_failing_job_leaves_the_last_profile(w):
    from kernels import FAIL

    w.hand_model()
    model = w.model()
    good, bad = w.pipeline(model), w.pipeline(model, (FAIL,))
    first = w.submit(good, bytes(48))
    w.run()
    before = bytes(w.kernel.profile.last)
    w.submit(bad, bytes(48))
    w.run()
    assert bytes(w.kernel.profile.last) == before and w.kernel.profile.last.job == first


def test_defect_53_a_long_job_does_not_overflow_its_utilisation(w):
    w.kernel.profile.last.job = 1
    w.kernel.profile.last.total = 0xFFFFFFFF
    w.kernel.profile.last.npu = 0xFFFFFFFE
    _, got = profile(w)
    assert got.npu_utilization_pct == 99


def test_profiling_can_be_off(w):
    pipe = w.simple()
    w("prof_disable")
    w.submit(pipe, bytes(48), NORMAL)
    w.run()
    assert profile(w)[0] == Status.NOENT


def test_layer_times_follow_one_job(w):
    pipe = w.simple()
    us = w.e.array(u32, [9])
    assert w("prof_get_layer_time", 0, None) == Status.INVAL
    assert w("prof_get_layer_time", 0, us) == Status.NOENT and us[0] == 0
    assert w("prof_enable_layer_trace") == Status.OK
    w.submit(pipe, bytes(48))
    w.run()
    assert w("prof_get_layer_ticks", 0)[0] == Status.OK
    assert w("prof_get_layer_ticks", 1)[0] == Status.NOENT
    assert w("prof_get_layer_time", 0, us) == Status.OK
