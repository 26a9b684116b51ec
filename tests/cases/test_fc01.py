"""FC-01: the RAM figure is exact, and known before flashing."""

import re

import numpy as np
import pytest
from case_models import ROOTS, graph_of, noise, run_in, skip_model

import synapticos as syn
from synapticos import toolchain
from synapticos.errors import UserError
from synapticos.host.execute import run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.lang import u8
from synapticos.model import ArenaTooSmall, compile_model

BOARD = "mps2-an521"


def app_of(folder, **budget):
    (folder / "skip.tflite").write_bytes(skip_model())
    graph = graph_of(skip_model())
    np.stack(noise(graph, 1)).tofile(folder / "frames.bin")
    app = syn.App("skip", **budget)
    source = app.frames("picture", (1, 8, 8, 3), "int8", file=folder / "frames.bin")
    pipeline = app.pipeline("skip", source).model(app.model(folder / "skip.tflite"))
    app.job(pipeline)
    return app


def test_every_engine_touches_exactly_the_bytes_that_were_planned(make):
    e = make(*ROOTS)
    graph = graph_of(skip_model())
    need = compile_model(graph).plan.ram
    compiled = compile_model(graph, ram=need)
    touched = np.zeros(need, bool)
    results = set()
    for paint in (0xA5, 0x5A):
        memory = e.array(u8, bytes([paint]) * need)
        results.add(run_in(e, compiled, memory, noise(graph, 1))[0])
        touched |= np.frombuffer(bytes(memory), np.uint8) != paint
    assert len(results) == 1
    assert np.flatnonzero(touched)[-1] + 1 == need
    assert touched[: compiled.plan.peak].all()  # no byte of the frame is there for nothing


def test_a_byte_less_is_refused_by_the_build_and_by_every_engine(make):
    graph = graph_of(skip_model())
    compiled = compile_model(graph)
    need = compiled.plan.ram
    with pytest.raises(ArenaTooSmall) as caught:
        compile_model(graph, ram=need - 1)
    error = caught.value
    assert (error.needed, error.available, error.missing) == (need, need - 1, 1)
    for part in (str(need), str(need - 1), "1 are missing", error.layer, *(name for name, _ in error.alive)):
        assert part in str(error)
    assert compiled.plan.live[compiled.plan.worst_step] == compiled.plan.peak
    e = make(*ROOTS)
    memory, container, given = e.array(u8, need - 1), e.array(u8, compiled.container), e.array(u8, 192)
    status = e(ROOTS[2], container, len(container), memory, need - 1, given, 192, 0, True)
    assert status == -12  # NOMEM
    assert not any(bytes(memory))


def test_an_app_with_exactly_its_need_runs_on_host_and_board_and_reads_it_back(tmp_path):
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M")
    need = build_firmware(app_of(tmp_path), BOARD).image.arena_bytes
    app = app_of(tmp_path, ram=need)
    built = build_firmware(app, BOARD)
    assert built.image.arena_bytes == need
    on_board = run_on_board(built, {})
    assert on_board.planned == need
    assert on_board.peak == on_board.frames_planned  # the frame's high-water mark, from the target
    image = on_board.image
    used = image.persistent + image.result_bytes * image.slots + on_board.peak + image.scratch
    assert used == need
    assert on_board.digest == run_on_host(app_of(tmp_path), {}).digest


def test_an_app_with_a_byte_less_is_refused_with_layer_and_tensors(tmp_path):
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M")
    need = build_firmware(app_of(tmp_path), BOARD).image.arena_bytes
    with pytest.raises(UserError) as caught:
        build_firmware(app_of(tmp_path, ram=need - 1), BOARD)
    text = str(caught.value)
    assert f"needs {need:,} bytes, {need - 1:,} are available, 1 are missing" in text
    worst = compile_model(graph_of(skip_model())).info
    assert worst.worst_layer in text
    for name, size in worst.alive:
        assert f"{name} {size:,}" in text


def test_two_shortages_are_reported_in_one_go(tmp_path):
    if not toolchain.find_all("cortex-m33"):
        pytest.skip("no compiler for Cortex-M")
    built = build_firmware(app_of(tmp_path), BOARD)
    need, deep = built.image.arena_bytes, built.stack.bytes
    assert build_firmware(app_of(tmp_path, stack=deep), BOARD).stack.bytes == deep
    with pytest.raises(UserError) as caught:
        build_firmware(app_of(tmp_path, ram=need - 1, stack=deep - 1), BOARD)
    text = str(caught.value)
    assert f"arena needs {need:,} bytes, {need - 1:,} are available, 1 are missing" in text
    assert re.search(rf"stack may need {deep:,} bytes, {deep - 1:,} are available, 1 are missing", text)
