"""A doorbell that listens for its name, and looks who is there while nobody says it.

    syn run examples/doorbell/app.py
    syn run examples/doorbell/app.py --mic examples/doorbell/other.wav
    syn run examples/doorbell/app.py --board mps2-an521
    syn check examples/doorbell/app.py --mhz 150

`heard` takes every 30 ms of sound, makes features of it and asks a network whether the word "Alexa" was said; it has
30 ms to answer, or sound is lost. `visitor` looks for a face every three seconds, which takes the emulated board one second of
computing. So the first goes before the second: it waits for one step of it at most, and `max_step` keeps those steps short.
`demo.py` shows what becomes of both with pre-emption and without.
"""

import synapticos as syn
from synapticos import Array, Shaped, Status, exp, f32, i8, i32, ms, u8, u32

app = syn.App("doorbell", ram="128K")
mic = app.microphone("mic", rate=16_000, window=480, file="hello.wav")
front = app.camera("front", 64, 64, "rgb", file="visitor.png")
alexa = app.model("alexa.tflite", outputs=("probability",))
blaze = app.model("face_64.tflite", name="blazeface", outputs=("boxes", "scores"), mean=127.5, std=127.5, max_step=10_000)

MEAN_OF = 5  # windows


@syn.struct
class Word:
    cut_off: f32  # heard, if the mean of the last answers is above this


@syn.struct
class Answers:
    last: Shaped[Array[u8], MEAN_OF]  # the network's own numbers, 256ths
    at: u32  # where the next one goes
    count: u32  # so far, up to MEAN_OF


@syn.stage
def hear(probability: Shaped[Array[u8], 1], cfg: Word, state: Answers, out: Shaped[Array[f32], 2]) -> Status:
    """The mean of the network's last answers, and 1 if that means that the word was said."""
    state.last[state.at] = probability[0]
    state.at = (state.at + 1) % MEAN_OF
    state.count = min(state.count + 1, MEAN_OF)
    total: u32 = 0
    for i in range(MEAN_OF):
        total += state.last[i]
    out[0] = 0.0
    if state.count == MEAN_OF:
        out[0] = f32(total) / (256.0 * f32(MEAN_OF))
    out[1] = 1.0 if out[0] > cfg.cut_off else 0.0
    return Status.OK


@syn.struct
class Settings:
    threshold: f32  # least score of a face, 0..1


@syn.stage
def decode(
    boxes: Shaped[Array[i8], 224, 16],
    scores: Shaped[Array[i8], 224],
    boxes_scale: f32,
    boxes_zero: i32,
    scores_scale: f32,
    scores_zero: i32,
    cfg: Settings,
    out: Shaped[Array[f32], 64, 6],
) -> tuple[Status, u32]:
    """Boxes (x1, y1, x2, y2, score, class) in parts of the picture's side, for the first 64 anchors that see a face.

    Anchors: 8 x 8 cells with two each, then 4 x 4 cells with six. A box's numbers are its centre as seen from the
    anchor, its width and its height, in pixels.
    """
    unit = boxes_scale / 64.0
    rows: u32 = 0
    for i in range(224):
        score = 1.0 / (1.0 + exp(-scores_scale * f32(scores[i] - scores_zero)))
        if score < cfg.threshold or rows == 64:
            continue
        side: u32 = 8
        cell: u32 = i // 2
        if i >= 128:
            side = 4
            cell = (i - 128) // 6
        x = (f32(cell % side) + 0.5) / f32(side) + unit * f32(boxes[i, 0] - boxes_zero)
        y = (f32(cell // side) + 0.5) / f32(side) + unit * f32(boxes[i, 1] - boxes_zero)
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


heard = app.pipeline("heard", mic).features(alexa).model(alexa).stage(hear, cut_off=0.9)
visitor = (
    app.pipeline("visitor", front)
    .fit(blaze)
    .model(blaze)
    .stage(decode, threshold=0.6)
    .nms(iou=0.3, score=0.6, max_boxes=4)
)
app.job(heard, on=mic, deadline=30 * ms, priority=syn.REALTIME)
app.job(visitor, every=3 * syn.seconds, deadline=2500 * ms, late="skip", priority=syn.BEST_EFFORT)
