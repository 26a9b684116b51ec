import numpy as np
import pytest
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import config_bytes, run

from synapticos.kernel.stages.suppress import GAUSSIAN, HARD, LINEAR
from synapticos.kernel.status import Status


def to(method=HARD, iou=0.5, score=0.0, most=64, any_class=0, sigma=0.5):
    return config_bytes("suppress", iou_threshold=iou, score_threshold=score, sigma=sigma, max_boxes=most, method=method, any_class=any_class)


def soft(boxes, method, iou_threshold, score_threshold, most, any_class, sigma):
    """Soft suppression as its authors state it, in double precision: the best box moves over, all others decay."""
    left = [list(map(float, b)) for b in boxes if b[4] >= score_threshold]
    kept = []
    while left and len(kept) < most:
        best = max(left, key=lambda b: b[4])
        if best[4] < score_threshold:
            break
        left.remove(best)
        kept.append(best)
        for b in left:
            if any_class or b[5] == best[5]:
                iou = float(reference.iou(np.array(best, np.float32), np.array(b, np.float32)))
                if method == GAUSSIAN:
                    b[4] *= np.exp(-(iou**2) / sigma)
                elif iou > iou_threshold:
                    b[4] *= 1 - iou
    return np.array(kept).reshape(-1, 6)


corners = st.integers(0, 20).map(float)
box = st.tuples(corners, corners, st.integers(1, 15), st.integers(1, 15), st.integers(1, 100), st.integers(0, 2)).map(
    lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3], b[4] / 100, b[5]]
)
boxes = st.lists(box, max_size=12).map(lambda b: np.array(b, np.float32).reshape(-1, 6))


@given(boxes=boxes, iou=st.sampled_from([0.0, 0.3, 0.5, 1.0]), score=st.sampled_from([-1.0, 0.0, 0.4]), most=st.integers(1, 9))
def test_hard_and_classes_apart_is_nms(e, boxes, iou, score, most):
    published = run(e, "nms", boxes, config_bytes("nms", iou_threshold=iou, score_threshold=score, max_boxes=most))
    assert run(e, "suppress", boxes, to(HARD, iou, score, most)).array.tobytes() == published.array.tobytes()


@given(boxes=boxes, iou=st.sampled_from([0.0, 0.3, 0.5]), most=st.integers(1, 9))
def test_classes_together_is_nms_of_one_class(e, boxes, iou, most):
    one_class = boxes.copy()
    one_class[:, 5] = 7
    published = run(e, "nms", one_class, config_bytes("nms", iou_threshold=iou, max_boxes=most)).array
    got = run(e, "suppress", boxes, to(HARD, iou, most=most, any_class=1)).array
    assert got[:, :5].tobytes() == published[:, :5].tobytes()
    assert all(any((row == b).all() for b in boxes) for row in got)


@given(boxes=boxes, method=st.sampled_from([LINEAR, GAUSSIAN]), iou=st.sampled_from([0.0, 0.3]), most=st.integers(1, 12), any_class=st.integers(0, 1), sigma=st.sampled_from([0.1, 0.5, 2.0]))
def test_soft_scores_are_near_their_definition(e, boxes, method, iou, most, any_class, sigma):
    """Scores 1e-3 apart at first; where two meet on the way their order may be either, so kept scores are compared."""
    got = run(e, "suppress", boxes, to(method, iou, 0.05, most, any_class, sigma)).array
    want = soft(boxes, method, iou, 0.05, most, any_class, sigma)
    near = abs(want[:, 4] - 0.05) < 1e-5
    if not near.any() and len(got) == len(want):
        np.testing.assert_allclose(got[:, 4], want[:, 4], atol=1e-5)
    assert abs(len(got) - len(want)) <= near.sum()
    assert (np.diff(got[:, 4]) <= 0).all()


def test_one_pair_by_hand(e):
    pair = np.array([[0, 0, 2, 1, 0.5, 1], [0, 0, 2, 2, 1.0, 1]], np.float32)  # IoU 2 / 4
    assert run(e, "suppress", pair, to(LINEAR, 0.4)).array[:, 4].tolist() == [1.0, 0.25]
    assert run(e, "suppress", pair, to(LINEAR, 0.5)).array[:, 4].tolist() == [1.0, 0.5]
    np.testing.assert_allclose(run(e, "suppress", pair, to(GAUSSIAN, sigma=0.25)).array[:, 4], [1.0, 0.5 * np.exp(-1)], rtol=1e-6)
    assert run(e, "suppress", pair, to(HARD, 0.4)).array[:, 4].tolist() == [1.0]
    assert run(e, "suppress", pair, to(LINEAR, 0.4, score=0.3)).array[:, 4].tolist() == [1.0]
    other = pair + np.array([0, 0, 0, 0, 0, 1], np.float32) * np.arange(2, dtype=np.float32)[:, None]
    assert run(e, "suppress", other, to(LINEAR, 0.4)).array[:, 4].tolist() == [1.0, 0.5]
    assert run(e, "suppress", other, to(LINEAR, 0.4, any_class=1)).array[:, 4].tolist() == [1.0, 0.25]


@pytest.mark.parametrize("method", [HARD, LINEAR, GAUSSIAN])
def test_boxes_that_cannot_be_judged_are_dropped(e, method):
    inf, nan = float("inf"), float("nan")
    bad = [[0, 0, 1, 1, nan, 0], [nan, 0, 1, 1, 1, 0], [2, 0, 1, 1, 1, 0], [0, 0, inf, 1, 1, 0], [0, 0, 1, 1, 1, nan]]
    good = [0, 0, 1, 1, 0.5, 0]
    assert run(e, "suppress", np.array([*bad, good], np.float32), to(method)).array.tolist() == [good]
    endless = np.array([[0, 0, 1, 1, inf, 0]] * 2, np.float32)
    assert len(run(e, "suppress", endless, to(method)).array) == (1 if method == HARD else 0)


def test_room_and_refusals(e):
    many = np.array([[i, 0, i + 1, 1, 0.5, 0] for i in range(64)], np.float32)
    assert len(run(e, "suppress", many, to(LINEAR)).array) == 64
    assert run(e, "suppress", many, to(LINEAR), room=71).array.tolist() == many[:2].tolist()
    assert run(e, "suppress", np.zeros((65, 6), np.float32), to()).status == Status.INVAL
    assert run(e, "suppress", many.ravel()[:5], to()).status == Status.INVAL
    assert run(e, "suppress", many.view(np.int8), to()).status == Status.INVAL
    assert run(e, "suppress", many[:0], to()).array.shape == (0, 6)
