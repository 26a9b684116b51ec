"""Find faces in a photograph.

    syn run examples/face_detection/app.py
    syn run examples/face_detection/app.py --front examples/face_detection/coffee.png
    syn run examples/face_detection/app.py --board mps2-an521

The network is BlazeFace (short range, int8). It answers for 896 anchors, places in the picture where a face may be
centred, with a score and a box each. `decode` makes boxes of the answers above a threshold, and `nms` keeps the best
of those that overlap.
"""

import synapticos as syn
from synapticos import Array, Shaped, Status, exp, f32, i8, i32, u32

app = syn.App("faces")
front = app.camera("front", 128, 128, "rgb", file="astronaut.png")
blaze = app.model("face_blazeface_int8.tflite", name="blazeface", outputs=("boxes", "scores"), mean=127.5, std=127.5)


@syn.struct
class Settings:
    threshold: f32  # least score of a face, 0..1


@syn.fn(pure=True)
def grid_centre(cell: u32, side: u32) -> f32:
    """The middle of a cell of a grid with `side` cells, where the whole side is 1."""
    return (f32(cell) + 0.5) / f32(side)


@syn.stage
def decode(
    boxes: Shaped[Array[i8], 896, 16],
    scores: Shaped[Array[i8], 896],
    boxes_scale: f32,
    boxes_zero: i32,
    scores_scale: f32,
    scores_zero: i32,
    cfg: Settings,
    out: Shaped[Array[f32], 64, 6],
) -> tuple[Status, u32]:
    """Boxes (x1, y1, x2, y2, score, class) in parts of the picture's side, for the first 64 anchors that see a face.

    Anchors: 16 x 16 cells with two each, then 8 x 8 cells with six. A box's numbers are its centre as seen from the
    anchor, its width and its height, in 128ths of the side.
    """
    unit = boxes_scale / 128.0
    rows: u32 = 0
    for i in range(896):
        score = 1.0 / (1.0 + exp(-scores_scale * f32(scores[i] - scores_zero)))
        if score < cfg.threshold or rows == 64:
            continue
        side: u32 = 16
        cell: u32 = i // 2
        if i >= 512:
            side = 8
            cell = (i - 512) // 6
        x = grid_centre(cell % side, side) + unit * f32(boxes[i, 0] - boxes_zero)
        y = grid_centre(cell // side, side) + unit * f32(boxes[i, 1] - boxes_zero)
        half_width = 0.5 * unit * f32(boxes[i, 2] - boxes_zero)
        half_height = 0.5 * unit * f32(boxes[i, 3] - boxes_zero)
        out[rows, 0] = x - half_width
        out[rows, 1] = y - half_height
        out[rows, 2] = x + half_width
        out[rows, 3] = y + half_height
        out[rows, 4] = score
        out[rows, 5] = 0.0
        rows += 1
    return Status.OK, rows


faces = (
    app.pipeline("faces", front)
    .fit(blaze)
    .model(blaze)
    .stage(decode, threshold=0.6)
    .nms(iou=0.3, score=0.6, max_boxes=10)
)
app.job(faces, priority=syn.REALTIME, deadline=5 * syn.seconds)
