"""An app with a model on the accelerator, proved: its polls and the device's stated times are the steps of its jobs."""

import sys
from pathlib import Path

import pytest

import synapticos as syn
from synapticos import boards, toolchain
from synapticos.analysis.cycles import timing
from synapticos.analysis.tasks import US
from synapticos.errors import UserError
from synapticos.host.accelerated import reloads
from synapticos.host.check import check_app
from synapticos.host.profile import Profile

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from make_test_model import RELU, Layers  # noqa: E402

BOARD = "mps2-an521"
LAYERS = 3
pytestmark = pytest.mark.skipif(
    not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"), reason="needs compilers for Cortex-M and for this machine"
)


def network(seed):
    m = Layers(seed)
    x = m.tensor("picture", (1, 4, 4, 4), 0.0078125, -1)
    one = m.conv("one", x, 8, (3, 3), activation=RELU)
    two = m.conv("two", one, 8, (1, 1))
    return m.finish([x], [m.pool("AVERAGE", "three", two, (4, 4), 4, 0)])


def app_of(folder, *where, preemptible=True, priorities=(0, 1, 2)):
    """A pipeline a model, each of a class of its own, the first the least urgent."""
    app = syn.App("side")
    for i, on in enumerate(where):
        (folder / f"net{i}.tflite").write_bytes(network(i + 1))
        source = app.frames(f"picture{i}", (1, 4, 4, 4), "int8")
        pipeline = app.pipeline(f"p{i}", source).model(app.model(folder / f"net{i}.tflite", on=on))
        app.job(pipeline, priority=priorities[i], every=1000 * syn.ms, deadline=900 * syn.ms, preemptible=preemptible)
    return app


def check(app, **options):
    return check_app(app, BOARD, timing(boards.find(BOARD)), **options)


def resources(bounds):
    return "".join(b.resource[0] for b in bounds)  # c and n


def test_two_that_share_it_and_one_that_does_not_are_proved(tmp_path):
    app = app_of(tmp_path, "npu", "cpu", "npu")
    made = check(app)
    assert [made.verdict(r) for r in made.responses] == ["kept"] * 3 and made.good
    low, beside, high = (made.bounds[name] for name in ("p0", "p1", "p2"))
    assert resources(beside) == "c" * LAYERS
    assert resources(low) == resources(high) == "cncn" * LAYERS + "c"  # another's model may be there each time
    for i, bounds in ((0, low), (2, high)):
        compiled = app.models[i].compiled
        stated = [b.ns for b in bounds if b.resource == "npu"]
        load = (100 + -(-len(compiled.container) // 64)) * US  # docs/boards.md
        steps = [(20 + -(-info.cost // 100)) * US for info in compiled.info.layers]
        assert stated[::2] == [load] * LAYERS and stated[1::2] == steps
        assert [b.how for b in bounds if b.resource == "npu"] == ["stated"] * len(stated)
    task = made.tasks.task("p2")
    assert task.npu_ns == sum(b.ns for b in high if b.resource == "npu") and task.cpu_ns < task.cost_ns


def test_a_model_that_has_it_for_itself_is_loaded_before_its_first_layer_only(tmp_path):
    made = check(app_of(tmp_path, "npu", "cpu"))
    assert resources(made.bounds["p0"]) == "cn" + "cn" * LAYERS + "c" and made.good
    assert made.tasks.task("p1").npu_ns == 0
    with pytest.raises(UserError, match="a profile does not tell apart"):
        check(app_of(tmp_path, "npu"), profile=Profile.__new__(Profile))
    with pytest.raises(UserError, match="has no accelerator"):
        check_app(app_of(tmp_path, "npu"), "lm3s6965evb", timing(boards.find("lm3s6965evb")))


def test_who_may_put_a_model_out_between_two_layers(tmp_path):
    from synapticos.app.image import compile_app

    def asked(*where, **options):
        image = compile_app(app_of(tmp_path, *where, **options), slots=3, enforce=False)
        return [reloads(image, job) for job in image.jobs]

    assert asked("npu", "npu") == [True, True]
    assert asked("npu", "cpu") == [False, False]
    assert asked("npu", "npu", preemptible=False) == [False, False]
    assert asked("npu", "npu", priorities=(1, 1)) == [False, False]  # in its class nobody begins


def test_one_that_keeps_it_below_another_has_no_bound(tmp_path):
    made = check(app_of(tmp_path, "npu", "npu", preemptible=False))
    assert made.verdict(made.responses[1]) == "no bound" and "keeps the accelerator" in made.responses[1].reason
