"""Calls from several threads at once, on the native engine, which leaves the interpreter's lock."""

import sys
import threading
import time

import pytest
from kernels import NORMAL, OPTIONS, ROOTS, World, stub_output
from synapticos.kernel.status import Status


@pytest.mark.only("native")
def test_jobs_from_several_threads_are_all_answered_once(make):
    """Three threads submit, one runs the kernel: each result is its own job's, no slot and no memory is lost."""
    w = World(make(*ROOTS, **OPTIONS))
    pipe = w.simple()
    first = w.submit(pipe, bytes(48), NORMAL)
    w.run()
    w("infer_state", first)
    w.result(first)
    ids: dict[int, list[int]] = {}
    wrong: list[object] = []
    running = True

    def client(number: int) -> None:
        mine = ids[number] = []
        for i in range(40):
            data = bytes([number * 31 + i & 255] * 48)
            job = 0
            while job == 0:
                job = w.submit(pipe, data, NORMAL)
                time.sleep(0.001 if job == 0 else 0)
            mine.append(job)
            while w("infer_state", job) not in (4, 5):
                time.sleep(0.001)
            if w.result(job) != stub_output(data):
                wrong.append((number, i))

    def kernel() -> None:
        while running:
            w("kernel_poll")
            w("mem_reset_ephemeral")

    threads = [threading.Thread(target=client, args=(n,)) for n in range(3)]
    runner = threading.Thread(target=kernel)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    runner.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    running = False
    runner.join(30)
    sys.setswitchinterval(interval)
    assert wrong == []
    everything = sorted(i for mine in ids.values() for i in mine)
    assert everything == list(range(2, 122))
    assert [int(j.state) for j in w.kernel.jobs] == [0] * 4 and w.kernel.pipelines.items[0].jobs == 0
    assert w("infer_wait", everything[-1], 0) == Status.NOENT
