import numpy as np
import stage_reference as reference
from hypothesis import given
from hypothesis import strategies as st
from stage_calls import config_bytes, run

from synapticos.kernel.status import Status


def config(iou=0.5, score=0.1, most=8):
    return config_bytes("nms", iou_threshold=iou, score_threshold=score, max_boxes=most)


def boxes(*rows):
    return np.array(rows, np.float32).reshape(-1, 6)


def kept(e, rows, **fields):
    result = run(e, "nms", rows, config(**fields))
    assert result.tensor["shape"] == [result.tensor["size"] // 24, 6, 0, 0]
    return result.array


THREE = boxes((0, 0, 10, 10, 0.9, 0), (1, 1, 11, 11, 0.8, 0), (0, 0, 10, 10, 0.7, 1))


def test_a_box_suppresses_those_of_its_class_that_overlap_it(e):
    np.testing.assert_array_equal(kept(e, THREE), THREE[[0, 2]])


def test_the_threshold_itself_does_not_suppress_and_an_equal_score_stays(e):
    two = boxes((0, 0, 2, 1, 0.5, 0), (1, 0, 2, 1, 0.5, 0))  # IoU exactly 0.5
    assert len(kept(e, two, iou=0.5, score=0.5)) == 2
    assert len(kept(e, two, iou=0.49999997, score=0.5)) == 1


def test_a_suppressed_box_suppresses_nobody(e):
    chain = boxes((0, 0, 10, 10, 0.9, 0), (4, 0, 14, 10, 0.8, 0), (8, 0, 18, 10, 0.7, 0))
    np.testing.assert_array_equal(kept(e, chain, iou=0.4), chain[[0, 2]])


def test_equal_scores_keep_their_order(e):
    rows = boxes(*[(20 * i, 0, 20 * i + 5, 5, 0.5, 0) for i in range(5)])
    np.testing.assert_array_equal(kept(e, rows), rows)


def test_it_stops_at_the_most_boxes_and_where_the_result_is_full(e):
    rows = boxes(*[(20 * i, 0, 20 * i + 5, 5, i / 10, 0) for i in range(5)])
    np.testing.assert_array_equal(kept(e, rows, most=2), rows[[4, 3]])
    short = run(e, "nms", rows, config(), room=24 * 3 - 1)
    np.testing.assert_array_equal(short.array, rows[[4, 3]])
    assert run(e, "nms", rows, config(), room=23).tensor["size"] == 0


def test_boxes_that_cannot_be_judged_are_dropped(e):
    nan, inf = np.nan, np.inf
    bad = [(0, 0, 1, 1, nan, 0), (1, 0, 0, 1, 1, 0), (0, 1, 1, 0, 1, 0), (nan, 0, 1, 1, 1, 0), (0, 0, inf, 1, 1, 0), (0, 0, 1, 1, 1, nan)]
    assert len(kept(e, boxes(*bad))) == 0
    np.testing.assert_array_equal(kept(e, boxes(*bad, (0, 0, 1, 1, 0.5, 0))), boxes((0, 0, 1, 1, 0.5, 0)))


def test_areas_past_f32_and_empty_boxes_overlap_nothing(e):
    huge = boxes((-3e38, -3e38, 3e38, 3e38, 0.9, 0), (-3e38, -3e38, 3e38, 3e38, 0.8, 0))
    assert len(kept(e, huge, iou=0)) == 2
    empty = boxes((-3e38, 1, 3e38, 1, 0.9, 0), (0, 0, 2, 2, 0.8, 0), (1, 1, 1, 1, 0.7, 0))
    assert len(kept(e, empty, iou=0)) == 3
    tiny = boxes((0, 0, 1e-30, 1e-30, 0.9, 0), (0, 0, 1e-30, 1e-30, 0.8, 0))
    assert len(kept(e, tiny, iou=0)) == 2  # their areas are 0 in f32


def test_no_candidates_give_no_boxes(e):
    result = run(e, "nms", THREE[:0], config())
    assert result.status == Status.OK and result.tensor["shape"] == [0, 6, 0, 0] and result.tensor["size"] == 0
    assert len(kept(e, THREE, score=0.95)) == 0


def test_what_it_refuses(e):
    assert run(e, "nms", THREE, None).status == Status.INVAL
    assert run(e, "nms", THREE, config(most=0)).status == Status.INVAL
    assert run(e, "nms", THREE, config(iou=float("nan"))).status == Status.INVAL
    assert run(e, "nms", THREE, config(score=float("nan"))).status == Status.INVAL
    assert run(e, "nms", THREE.ravel()[:17], config()).status == Status.INVAL
    assert run(e, "nms", THREE.astype(np.int8), config()).status == Status.INVAL
    assert run(e, "nms", np.zeros((65, 6), np.float32), config()).status == Status.INVAL
    assert run(e, "nms", THREE, config(), shape=(100, 6), size=72).status == Status.INVAL


def test_sixty_four_boxes_are_taken(e):
    rows = np.zeros((64, 6), np.float32)
    rows[:, 0] = rows[:, 1] = np.arange(64)
    rows[:, 2] = rows[:, 3] = np.arange(64) + 0.5
    rows[:, 4] = np.arange(64) / 64 + 0.5
    np.testing.assert_array_equal(kept(e, rows, most=255), rows[::-1])


corners = st.integers(-3, 6).map(float) | st.floats(width=32)
box = st.tuples(corners, corners, corners, corners, st.sampled_from([0.1, 0.5, 0.9]) | st.floats(width=32), st.sampled_from([0.0, 1.0, 2.0]))


@given(
    rows=st.lists(box, max_size=12),
    iou=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    score=st.sampled_from([float("-inf"), 0.1, 0.5]),
    most=st.integers(1, 14),
)
def test_nms_equals_the_reference(e, rows, iou, score, most):
    x = boxes(*rows)
    assert kept(e, x, iou=iou, score=score, most=most).tobytes() == reference.nms(x, iou, score, most).tobytes()
