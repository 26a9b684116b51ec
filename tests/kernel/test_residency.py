"""Who is on the accelerator: any sequence of uses, pins and losses against a few lines of Python, on all engines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synapticos.kernel.residency import Residency

ROOTS = tuple(Residency.__kernel_methods__.values())
MODELS = 4


class Model:
    """Places as a list of handles, the order of uses as a list, the last used at its end."""

    def __init__(self, places: int) -> None:
        self.places, self.order, self.pins, self.swaps, self.loads = [0] * places, [], set(), 0, [0] * MODELS

    def use(self, handle: int) -> bool:
        if handle not in self.places:
            if 0 in self.places:
                at = self.places.index(0)
            else:
                leaving = next((h for h in self.order if h in self.places and h not in self.pins), None)
                if leaving is None:
                    return False
                at = self.places.index(leaving)
                self.swaps += 1
            self.places[at] = handle
            self.loads[handle - 1] += 1
        self.order = [h for h in self.order if h != handle] + [handle]
        return True


operations = st.lists(
    st.one_of(
        st.tuples(st.just("use"), st.integers(1, MODELS)), st.tuples(st.just("use"), st.integers(1, MODELS)),
        st.tuples(st.just("pin"), st.integers(1, MODELS)), st.tuples(st.just("unpin"), st.integers(1, MODELS)),
        st.tuples(st.just("drop"), st.integers(1, MODELS)), st.tuples(st.just("clear"), st.just(0)),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.parametrize("places, capacity", [(1, 0), (1, 1), (2, 2), (3, 2), (3, 9)])
@settings(max_examples=20)
@given(operations=operations, start=st.sampled_from([0, 0xFFFFFFF8]))
def test_the_model_used_longest_ago_leaves_and_a_pinned_one_does_not(engines, places, capacity, operations, start):
    e = engines(*ROOTS, RESIDENT_MODELS=places)
    r = e.new(Residency, uses=start)  # the clock of uses may wrap
    count = min(max(capacity, 1), places)
    model = Model(count)
    for op, handle in operations:
        if op == "use":
            place = e(Residency.find, r, handle)
            good = True
            if place == places:
                place = e(Residency.make_room, r, capacity)
                good = place != places
                if good:
                    e(Residency.put, r, place, handle, 5)
            else:
                e(Residency.use, r, place)
            assert model.use(handle) == good
        elif op == "pin":
            want = handle in model.pins or len(model.pins) + 1 < count
            assert e(Residency.pin, r, handle, capacity) == want
            model.pins |= {handle} if want else set()
        elif op == "unpin":
            e(Residency.unpin, r, handle)
            model.pins -= {handle}
        elif op == "drop":
            e(Residency.drop, r, handle)
            model.pins -= {handle}
            model.places = [0 if h == handle else h for h in model.places]
        else:
            e(Residency.clear, r)
            model.places = [0] * count
        held = [int(p.model) for p in r.places]
        assert held == model.places + [0] * (places - count)
        assert int(r.swaps) == model.swaps and e(Residency.empty, r) == (not any(held))
        assert [int(r.loads[i].count) for i in range(MODELS)] == model.loads
        assert [int(r.loads[i].ticks) for i in range(MODELS)] == [5 * n for n in model.loads]
        assert all(e(Residency.is_pinned, r, h) == (h in model.pins) for h in range(1, MODELS + 1))
