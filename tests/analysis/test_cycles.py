"""The cycle model's tables, and that a piece of a run has the instructions that really ran."""

import pytest

from synapticos import boards, toolchain
from synapticos.analysis.cycles import CORES, Costs, cost, thumb, timing
from synapticos.app.load import load_app
from synapticos.errors import UserError
from synapticos.host.measure import measure

M33, M3 = CORES["cortex-m33"], CORES["cortex-m3"]


@pytest.mark.parametrize(
    ("code", "m33", "m3", "accesses"),
    [
        ((0x1840, 0), 1, 1, 0),  # adds r0, r0, r1
        ((0x4348, 0), 1, 1, 0),  # muls r0, r1
        ((0x6808, 0), 2, 2, 1),  # ldr r0, [r1]
        ((0xB510, 0), 3, 3, 2),  # push {r4, lr}
        ((0xBDF0, 0), 6, 6, 5),  # pop {r4-r7, pc}
        ((0xC80F, 0), 5, 5, 4),  # ldm r0!, {r0-r3}
        ((0xBF08, 0), 1, 1, 0),  # it eq
        ((0xE92D, 0x4FF0), 10, 10, 9),  # push.w {r4-r11, lr}
        ((0xE9D1, 0x2300), 3, 3, 2),  # ldrd r2, r3, [r1]
        ((0xE8DF, 0xF003), 2, 2, 1),  # tbb [pc, r3]
        ((0xF8D1, 0x0100), 2, 2, 1),  # ldr.w r0, [r1, #256]
        ((0xFB01, 0x2003), 1, 2, 0),  # mla r0, r1, r3, r2
        ((0xFB01, 0xF003), 1, 1, 0),  # mul r0, r1, r3
        ((0xFB81, 0x2300), 1, 5, 0),  # smull r2, r3, r1, r0
        ((0xFBC1, 0x2300), 1, 7, 0),  # smlal r2, r3, r1, r0
        ((0xFB91, 0xF0F2), 12, 12, 0),  # sdiv r0, r1, r2
        ((0xEE80, 0x0A20), 15, 15, 0),  # vdiv.f32 s0, s0, s1
        ((0xEEB1, 0x0AC0), 15, 15, 0),  # vsqrt.f32 s0, s0
        ((0xEEA0, 0x0A20), 4, 4, 0),  # vfma.f32 s0, s0, s1
        ((0xEE30, 0x0A20), 2, 2, 0),  # vadd.f32 s0, s0, s1
        ((0xED91, 0x0A00), 2, 2, 1),  # vldr s0, [r1]
        ((0xED2D, 0x8B10), 17, 17, 16),  # vpush {d8-d15}
        ((0xF3BF, 0x8F4F), 4, 4, 0),  # dsb
        ((0xF380, 0x8810), 2, 2, 0),  # msr primask, r0
        ((0xF000, 0xF800), 1, 1, 0),  # bl: the jump itself is counted where it happens
    ],
)
def test_instructions_cost_what_the_manuals_say(code, m33, m3, accesses):
    assert cost(M33, *code) == (m33, accesses)
    assert cost(M3, *code) == (m3, accesses)


def test_instructions_are_told_from_the_first_halfword():
    assert [(at, size) for at, size, _, _ in thumb(bytes.fromhex("4018016810bd"), 16)] == [(16, 2), (18, 2), (20, 2)]
    assert [size for _, size, _, _ in thumb(bytes.fromhex("2de9f04f4018"), 0)] == [4, 2]


def test_wait_states_and_margin_only_add():
    board = boards.find("mps2-an521")
    plain, slow = timing(board, margin=0), timing(board, margin=0, waits=(2, 1))
    assert plain.ns(20) == 1000 and timing(board).ns(20) == 1200 and timing(board, mhz=40, margin=0).ns(20) == 500
    assert (slow.fetch_waits, slow.data_waits) == (2, 1)


@pytest.mark.parametrize("given", [{"mhz": 0}, {"waits": (-1, 0)}, {"margin": -0.1}, {"waits": (0, 101)}])
def test_a_setting_that_cannot_be_is_refused(given):
    with pytest.raises(UserError):
        timing(boards.find("mps2-an521"), **given)


@pytest.fixture(scope="module")
def three():
    if not toolchain.find_all("cortex-m33") or not toolchain.find_all("host"):
        pytest.skip("no compilers for host and Cortex-M")
    from pathlib import Path

    return load_app(Path(__file__).with_name("three_jobs.py"))


def test_a_poll_has_the_instructions_that_really_ran(three, monkeypatch):
    """Against the emulator's own exact count, which leaves out what an IT block skips."""
    from synapticos.emulator import Machine, meter

    kept: dict[str, list] = {}
    run, pieces = Machine.run, meter.Meter.pieces

    def counting(self, limit=1 << 40):
        name = next(s for s in self.image.symbols if s.startswith("measured_poll"))
        kept["exact"] = self.count(name)[name]
        return run(self, limit)

    monkeypatch.setattr(Machine, "run", counting)
    monkeypatch.setattr(meter.Meter, "pieces", lambda self: kept.setdefault("pieces", pieces(self)))
    image, costed = measure(three, timing(boards.find("mps2-an521")), "mps2-an521")
    polls = [instructions for function, instructions, _ in kept["pieces"] if function == 1]
    assert len(polls) == len(kept["exact"]) > 50
    assert all(exact <= ours <= exact * 1.03 for ours, exact in zip(polls, kept["exact"], strict=True))
    assert image.slots == 3 and min(costed.crowd, 0) == 0 and costed.resume > 0 and costed.idle > 0 and costed.post > 0


def test_waits_make_every_step_longer(three):
    board = boards.find("mps2-an521")
    fast = measure(three, timing(board), "mps2-an521")[1]
    slow = measure(three, timing(board, waits=(3, 2)), "mps2-an521")[1]
    for name, steps in fast.steps.items():
        for a, b in zip(steps, slow.steps[name], strict=True):
            assert a.most < b.most and a.instructions == b.instructions


def test_a_block_is_a_difference(three):
    from synapticos.boards.faults import Image
    from synapticos.host.firmware import build_firmware

    costs = Costs(Image(build_firmware(three, "mps2-an521", profile=False).elf), timing(boards.find("mps2-an521")))
    assert costs.count == sorted(costs.count) and costs.cycles == sorted(costs.cycles)
    assert costs.count[-1] > 1000 and costs.cycles[-1] >= costs.count[-1]
