"""Several sources into a model of several inputs: bound by name, prepared one by one, the same everywhere."""

import numpy as np
import pytest
import synapticos as syn
from synapticos import boards
from synapticos.analysis.cycles import timing
from synapticos.app.image import compile_app, frame_needs
from synapticos.errors import UserError
from synapticos.host.check import check_app
from synapticos.host.execute import read_sources, run_on_board, run_on_host
from synapticos.host.firmware import build_firmware
from synapticos.kernel.status import Status
from synapticos.lang import Array, Shaped, f32, i8
from tflite_writer import Writer

SCALE, ZERO = 1 / 255, -128


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A picture of 3 x 5 and four numbers: both handed on, one after the other."""
    w = Writer()
    picture = w.tensor("picture", (1, 3, 5, 1), SCALE, ZERO)
    heat = w.tensor("heat", (1, 4), SCALE, ZERO)
    flat = w.tensor("flat", (1, 15), SCALE, ZERO)
    both = w.tensor("both", (1, 19), SCALE, ZERO)
    w.op("RESHAPE", [picture, w.constant("shape", np.array([1, 15], np.int32))], [flat], 1, "ReshapeOptions")
    w.op("CONCATENATION", [flat, heat], [both], 2, "ConcatenationOptions", Axis=1)
    file = tmp_path_factory.mktemp("networks") / "both.tflite"
    file.write_bytes(w.finish([picture, heat], [both]))
    return file


@syn.stage
def halved(x: Shaped[Array[f32], 4], out: Shaped[Array[f32], 4]) -> Status:
    for i in range(4):
        out[i] = x[i] * 0.5
    return Status.OK


@syn.stage
def flipped(both: Shaped[Array[i8], 19], out: Shaped[Array[i8], 19]) -> Status:
    for i in range(19):
        out[i] = both[18 - i]
    return Status.OK


def plain(network, *order):
    """As they come: the sources' frames are what the model takes."""
    app = syn.App("plain")
    m = app.model(network)
    sources = {"picture": app.frames("picture", (1, 3, 5, 1)), "heat": app.frames("heat", (4,))}
    app.job(app.pipeline("judge", *(sources[name] for name in order)).model(m))
    return app


def prepared(network, *order):
    """Each source with steps of its own, declared in either order."""
    app = syn.App("prepared")
    m = app.model(network)
    camera, meter = app.camera("camera", 10, 6, "grey"), app.frames("meter", (4,), "float32")
    pipeline = app.pipeline("judge", camera, meter)
    for name in order:
        if name == "camera":
            pipeline.of(camera).resize(7, 4).fit(m["picture"])
        else:
            pipeline.of(meter).stage(halved).quantize(m["heat"])
    app.job(pipeline.model(m, picture=camera, heat=meter).stage(flipped))
    return app


def frames(seed=5):
    random = np.random.Generator(np.random.PCG64(seed))
    return random.integers(0, 256, (1, 6, 10, 1)).astype(np.uint8), random.uniform(0, 2, 4).astype(np.float32)


@pytest.mark.parametrize("order", [("picture", "heat"), ("heat", "picture")])
def test_sources_that_fit_are_bound_by_name_and_nothing_is_copied(network, order):
    app = plain(network, *order)
    assert [step.kind for step in app.pipelines["judge"].steps] == ["model"]
    picture, heat = np.arange(15, dtype=np.int8).reshape(1, 3, 5, 1), np.array([-7, -8, -9, -10], np.int8)
    with syn.Runtime(app) as rt:
        for _ in range(3):
            result = rt.run("judge", {"heat": heat, "picture": picture})
            assert result.reshape(-1).tolist() == [*range(15), -7, -8, -9, -10]


@pytest.mark.parametrize("order", [("camera", "meter"), ("meter", "camera")])
@pytest.mark.parametrize("engine", ["native", "checked"])
def test_each_source_has_its_own_steps(network, order, engine):
    picture, heat = frames()
    # The same steps in a pipeline of one source each.
    alone = syn.App("alone")
    m = alone.model(network)
    camera, meter = alone.camera("camera", 10, 6, "grey"), alone.frames("meter", (4,), "float32")
    small = np.zeros((1, 4, 7, 1), np.uint8)
    app = prepared(network, *order)
    with syn.Runtime(app, engine=engine, profile=True) as rt:
        job = rt.submit("judge", {"camera": picture, "meter": heat})
        result = job.result().reshape(-1)[::-1]
        wanted = np.round(heat * 0.5 / SCALE + ZERO).clip(-128, 127)
        assert result[15:].tolist() == wanted.tolist()
        assert job.times["frame"] == rt.image.frames[1]
    assert m.input_bytes == 20 and camera.spec.bytes == 60 and meter.spec.bytes == 16 and small.size == 28
    one = expected_picture(picture)
    assert result[:15].tolist() == one.reshape(-1).tolist()


def expected_picture(picture):
    """Bilinear, corners on corners, twice: as the published resize has it, in 16.16 steps."""
    def resize(p, w, h):
        from synapticos.engine import default_engine
        from synapticos.kernel.stages import resize as r
        from synapticos.kernel.tensor import Tensor
        from synapticos.lang import u8

        e = default_engine()
        x = e.new(Tensor, size=p.size, dtype=1, ndim=4, shape=[1, *p.shape, 1])
        y, data = e.new(Tensor, size=w * h), e.array(u8, w * h)
        assert e(r.resize, x, e.array(u8, p.tobytes()), y, data, e.new(r.ResizeConfig, w=w, h=h)) == Status.OK
        return np.frombuffer(bytes(data), np.uint8).reshape(h, w)

    small = resize(resize(picture[0, :, :, 0], 7, 4), 5, 3)
    return (small.astype(int) - 128).astype(np.int8)


def test_a_board_gives_the_same_bytes(network, tmp_path):
    for app in (prepared(network, "camera", "meter"), plain(network, "heat", "picture")):
        random = np.random.Generator(np.random.PCG64(1))
        files = {}
        for name, source in app.sources.items():
            if isinstance(source.spec.dtype, str) and name == "camera":
                from PIL import Image

                files[name] = tmp_path / "camera.png"
                Image.fromarray(frames()[0][0, :, :, 0]).save(files[name])
            else:
                count = 1 if "camera" in app.sources else 3
                data = [random.uniform(0, 2, source.spec.shape).astype(source.spec.dtype) for _ in range(count)]
                files[name] = tmp_path / f"{name}.bin"
                files[name].write_bytes(b"".join(d.tobytes() for d in data))
        host = run_on_host(app, files)
        board = run_on_board(build_firmware(app, "mps2-an521"), files)
        assert host.digest == board.digest and len(host.results) == len(board.results) == (1 if "camera" in app.sources else 3)
        assert board.peak == board.frames_planned


def test_the_plan_is_what_boot_works_out(network):
    image = compile_app(prepared(network, "camera", "meter"))
    steps = image.pipelines[0].steps
    assert [step.kind for step in steps] == ["part", "builtin", "builtin", "part", "stage", "builtin", "model", "stage"]
    sizes = [0, 28, 15, 0, 16, 4, 48, 19]
    #           block, beside it what the stage reads and leaves; the last of a part leaves into the block
    assert frame_needs(steps, sizes) == [32, 32 + 32, 32 + 32, 32, 32 + 16, 32 + 16, 32 + 48, 48 + 32]


def test_a_part_without_steps_beside_one_with_steps(network):
    app = syn.App("mixed")
    m = app.model(network)
    camera, meter = app.camera("camera", 10, 6, "grey"), app.frames("meter", (4,))
    pipeline = app.pipeline("judge", meter, camera).of(camera).fit(m["picture"]).model(m, {"heat": meter, "picture": camera})
    assert [step.kind for step in pipeline.steps] == ["part", "builtin", "part", "model"]
    with syn.Runtime(app) as rt:
        for k in range(3):
            result = rt.run("judge", {"camera": np.full((1, 6, 10, 1), 40 * k, np.uint8), "meter": np.array([k, 2, 3, 4], np.int8)})
            assert result.reshape(-1).tolist() == [40 * k - 128] * 15 + [k, 2, 3, 4]


def test_a_stage_of_the_host_works_on_its_part(network):
    app = syn.App("hosted")
    m = app.model(network)
    camera, meter = app.camera("camera", 10, 6, "grey"), app.frames("meter", (4,))

    @syn.host_stage(shape=(4,), dtype="int8")
    def doubled(x):
        return x * 2

    app.pipeline("judge", camera, meter).of(camera).fit(m["picture"]).of(meter).stage(doubled).model(m, heat=meter, picture=camera)
    with syn.Runtime(app) as rt:
        result = rt.run("judge", {"camera": np.full((1, 6, 10, 1), 9, np.uint8), "meter": np.array([1, 2, 3, 4], np.int8)})
        assert result.reshape(-1).tolist() == [9 - 128] * 15 + [2, 4, 6, 8]


def test_names_of_your_own(network):
    app = syn.App("named")
    m = app.model(network, inputs=("what", "where"), outputs=("all",))
    one, two = app.frames("one", (3, 5)), app.frames("two", (4,))
    app.pipeline("judge", two, one).model(m, what=one, where=two).dequantize()
    with syn.Runtime(app) as rt:
        assert rt.run("judge", {"one": np.zeros((3, 5), np.int8), "two": np.ones(4, np.int8)}).shape == (1, 19)


def test_what_does_not_fit_is_refused_by_name(network):
    app = syn.App("wrong")
    m = app.model(network)
    camera, heat = app.camera("camera", 10, 6, "grey"), app.frames("heat", (4,))
    other = app.frames("other", (4,))
    count = 0

    def begun(*sources):
        nonlocal count
        count += 1
        return app.pipeline(f"p{count}", *sources)

    def refused(words, call):
        with pytest.raises(UserError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)

    refused('has 2 inputs, and a source for each: "picture" .i8 1 x 3 x 5 x 1., "heat"', lambda: begun(heat).model(m))
    refused('has 2 inputs: .*; say which: both\\["picture"\\]', lambda: begun(camera, heat).of(camera).fit(m))
    refused("fit: which of camera .*, heat .*Say .of.source. before it", lambda: begun(camera, heat).fit(m["picture"]))
    refused("halved: which of camera", lambda: begun(camera, heat).stage(halved))
    refused('has no input "warmth"; there is "picture"', lambda: begun(camera, heat).model(m, warmth=heat))
    refused('has no input "warmth"; there is "picture"', lambda: m["warmth"])
    refused('input "picture" is fed by nothing; say which source', lambda: begun(camera, heat).model(m))
    refused('input "heat": \'other\' is no source of this pipeline', lambda: begun(camera, heat).model(m, picture=camera, heat=other))
    refused('source "other" feeds no input', lambda: begun(camera, heat, other).model(m, picture=camera, heat=heat))
    refused('source "other" feeds no input', lambda: begun(heat, other).model(m, picture=heat, heat=heat))
    refused('input "picture": takes i8 1 x 3 x 5 x 1, the step before gives u8 1 x 6 x 10 x 1; put .fit', lambda: begun(camera, heat).model(m, picture=camera, heat=heat))
    refused("of: other is not one of its sources", lambda: begun(camera, heat).of(other))
    refused('steps for "camera" are there already', lambda: begun(camera, heat).of(camera).of(camera))
    refused("has one source; every step is for that", lambda: begun(camera).of(camera))
    refused('source "heat" is there twice', lambda: begun(heat, heat))
    refused("which source\\?", begun)


def test_what_is_run_must_be_a_dict_of_what_is_there(network):
    with syn.Runtime(plain(network, "picture", "heat")) as rt:
        zeros = {"picture": np.zeros((3, 5), np.int8), "heat": np.zeros(4, np.int8)}
        for data in (np.zeros(20, np.int8), {"picture": zeros["picture"]}, zeros | {"more": zeros["heat"]}):
            with pytest.raises(UserError, match="takes a dict of arrays by source, picture .*, heat"):
                rt.run("judge", data)
        with pytest.raises(UserError, match='"judge: heat": takes i8 4, the array is int8 5'):
            rt.run("judge", zeros | {"heat": np.zeros(5, np.int8)})
        assert rt.run("judge", zeros).shape == (1, 19)


def test_a_failing_part_ends_its_job_and_the_next_runs(network):
    app = syn.App("failing")
    m = app.model(network)
    camera, meter = app.camera("camera", 10, 6, "grey"), app.frames("meter", (4,))
    bad = True

    @syn.host_stage(shape=(4,), dtype="int8")
    def short(x):
        return x[:3] if bad else x

    app.pipeline("judge", camera, meter).of(camera).fit(m["picture"]).of(meter).stage(short).model(m, heat=meter, picture=camera)
    data = {"camera": np.zeros((1, 6, 10, 1), np.uint8), "meter": np.array([1, 2, 3, 4], np.int8)}
    with syn.Runtime(app) as rt:
        with pytest.raises(UserError, match="stage short gave 3 bytes, its shape is i8 4"):
            rt.run("judge", data)
        bad = False
        assert rt.run("judge", data).reshape(-1).tolist()[15:] == [1, 2, 3, 4]


def test_files_that_do_not_match_are_refused(network, tmp_path):
    app = plain(network, "picture", "heat")
    files = {name: tmp_path / name for name in ("picture", "heat")}
    files["picture"].write_bytes(bytes(45))
    files["heat"].write_bytes(bytes(8))
    with pytest.raises(UserError, match='takes a frame of each source at a time, and their files have "picture" 3, "heat" 2'):
        run_on_host(app, files)


def timed(network, tmp_path, parts, **job):
    """A picture each 10 ms, four numbers each 4 ms, from 0 on; released by one of them or by a clock."""
    app = syn.App("timed")
    m = app.model(network)
    picture = app.frames("picture", (1, 3, 5, 1), "int8", file=tmp_path / "picture.raw", every=10 * syn.ms)
    heat = app.frames("heat", (4,), "float32" if parts else "int8", file=tmp_path / "heat.raw", every=4 * syn.ms)
    rng = np.random.default_rng(3)
    pictures, heats = (rng.integers(-128, 128, (n, 15)).astype(np.int8) for n in (4, 10))
    heats = heats[:, :4]
    (tmp_path / "picture.raw").write_bytes(pictures.tobytes())
    (tmp_path / "heat.raw").write_bytes(((heats.astype(np.float32) - ZERO) * np.float32(SCALE)).tobytes() if parts else heats.tobytes())
    pipeline = app.pipeline("judge", heat, picture)
    if parts:
        pipeline.of(heat).quantize(m["heat"])
    job = {name: {"picture": picture, "heat": heat}.get(value, value) for name, value in job.items()}
    app.job(pipeline.model(m), **job)
    return app, pictures, heats


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize(
    "job, times",
    [
        ({"on": "picture"}, [0, 10, 20, 30]),
        ({"on": "heat", "depth": 2}, list(range(0, 40, 4))),
        ({"every": 8 * syn.ms, "phase": 1 * syn.ms}, [1, 9, 17, 25, 33]),
    ],
)
def test_a_clock_or_one_of_its_sources_releases_a_job_of_several(network, tmp_path, parts, job, times):
    """What releases it gives the next entry, the others their newest; the same bytes everywhere."""
    app, pictures, heats = timed(network, tmp_path, parts, **job)
    ways = [lambda: run_on_host(app, {}), lambda: run_on_host(app, {}, engine="checked"), lambda: run_on_board(build_firmware(app, "mps2-an521"), {})]
    for run in ways if parts or "every" in job else ways[1:2]:
        report = run()
        assert len(read_sources(app, {}, False)) == 2  # as long as each is
        assert [r.release_us for r in report.results] == [1000 * t for t in times] and not report.failures
        want = [np.concatenate([pictures[t // 10], heats[t // 4]]).tolist() for t in times]
        assert [r.arrays[0].reshape(-1).tolist() for r in report.results] == want
        counts = report.counts["jobs"]["judge"]
        assert (counts["released"], counts["started"], counts["starved"], counts["dropped"]) == (len(times), len(times), 0, 0)


def test_a_release_that_lacks_a_source_has_starved(network, tmp_path):
    app, pictures, heats = timed(network, tmp_path, True, every=2 * syn.ms)
    app.sources["picture"].every, app.sources["heat"].every = 10 * syn.ms, 4 * syn.ms
    with syn.Runtime(app, virtual=True) as rt:
        live = rt.live
        live.start()
        live.sleep([0])
        for now in range(0, 8, 2):
            if now == 4:
                rt.push("picture", pictures[0])
            if now == 2:
                rt.push("heat", ((heats[1].astype(np.float32) - ZERO) * np.float32(SCALE)))
            while rt.poll():
                pass
            live.sleep([])
        (first, *rest) = live.take()
        assert first.release_us == 4000 and first.arrays[0].reshape(-1).tolist() == [*pictures[0], *heats[1]]
        counts = rt.counters()["jobs"]["judge"]
        assert counts["starved"] == 2 and counts["released"] == 4 and len(rest) == 1


def test_a_job_of_several_sources_is_checked_with_its_copies(network, tmp_path):
    app, *_ = timed(network, tmp_path, True, on="heat", deadline=4 * syn.ms)
    board = boards.find("mps2-an521")
    check = check_app(app, board.name, timing(board))
    assert [check.verdict(response) for response in check.responses] == ["kept"]
    # Both give as much; what heat gives is copied to the job, and the newest picture with it.
    assert check.kernel["data of heat"] > 1.3 * check.kernel["data of picture"]


def test_a_source_that_is_not_read_releases_nothing(network, tmp_path):
    app = syn.App("other")
    m = app.model(network)
    picture, heat, third = app.frames("picture", (1, 3, 5, 1)), app.frames("heat", (4,)), app.frames("third", (4,))
    with pytest.raises(UserError, match='released by the source that it reads, "picture" or "heat"'):
        app.job(app.pipeline("judge", picture, heat).model(m), on=third)
