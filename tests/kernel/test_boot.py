from synapticos.kernel.status import Status


def test_a_kernel_boots(w):
    assert w("kernel_init", w.memory, 8192, 1024) == Status.ALREADY


def test_hello(w):
    pipe = w.simple()
    job = w.submit(pipe, bytes(range(48)))
    assert job == 1
    assert w("infer_wait", job, 100) == Status.OK
    assert w.result(job).index(127) == sum(range(48)) % 10
