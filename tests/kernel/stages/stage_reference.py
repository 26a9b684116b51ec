"""The processors in NumPy and plain Python, one float32 operation at a time."""

import numpy as np

f32 = np.float32


def resize(image: np.ndarray, w: int, h: int) -> np.ndarray:
    """image is [1, H, W, C]."""
    source = image[0].astype(f32)
    rows, columns = source.shape[:2]

    def places(n: int, source_n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        step = f32(source_n - 1) / f32(n - 1) if n > 1 else f32(0)
        at = np.arange(n, dtype=f32) * step
        first = np.minimum(np.floor(at).astype(int), source_n - 1)
        return first, np.minimum(first + 1, source_n - 1), at - first.astype(f32)

    x0, x1, fx = places(w, columns)
    y0, y1, fy = places(h, rows)
    fx, fy = fx[None, :, None], fy[:, None, None]

    def across(row: np.ndarray) -> np.ndarray:
        a, b = source[row][:, x0], source[row][:, x1]
        return a + fx * (b - a)

    upper, lower = across(y0), across(y1)
    value = upper + fy * (lower - upper)
    return np.floor(value + f32(0.5)).astype(image.dtype)[None]


def normalize(image: np.ndarray, mean: list[float], std: list[float]) -> np.ndarray:
    c = image.shape[3]
    return (image.astype(f32) - np.array(mean[:c], f32)) / np.array(std[:c], f32)


def quantize(x: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    """In Python's integers, so nothing can overflow."""
    out = []
    with np.errstate(all="ignore"):
        steps = np.ravel(x) / f32(scale)
    for q in steps:
        if np.isnan(q):
            total = zero_point
        elif np.isinf(q):
            total = 1000 if q > 0 else -1000
        else:
            magnitude = int(abs(float(q)))
            if abs(float(q)) - magnitude >= 0.5:
                magnitude += 1
            total = (magnitude if q > 0 else -magnitude) + zero_point
        out.append(max(-128, min(127, total)))
    return np.array(out, np.int8).reshape(x.shape)


def dequantize(q: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return (q.astype(np.int64) - zero_point).astype(f32) * f32(scale)


def top_k(values: np.ndarray, k: int) -> list[tuple[int, float]]:
    numbers = [(i, float(v)) for i, v in enumerate(np.ravel(values)) if not np.isnan(v)]
    return sorted(numbers, key=lambda pair: (-pair[1], pair[0]))[:k]


def iou(a: np.ndarray, b: np.ndarray) -> np.float32:
    with np.errstate(all="ignore"):
        width = min(a[2], b[2]) - max(a[0], b[0])
        height = min(a[3], b[3]) - max(a[1], b[1])
        if not (width > 0 and height > 0):
            return f32(0)
        intersection = width * height
        union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - intersection
        if not (union > 0 and np.isfinite(union)):
            return f32(0)
        return intersection / union


def nms(boxes: np.ndarray, iou_threshold: float, score_threshold: float, most: int) -> np.ndarray:
    """Suppression as the rule states it: mark the later ones after each box that is kept."""
    usable = [
        b for b in boxes
        if np.isfinite(b[:4]).all() and not np.isnan(b[4:]).any() and b[0] <= b[2] and b[1] <= b[3] and b[4] >= f32(score_threshold)
    ]  # fmt: skip
    order = sorted(usable, key=lambda b: -float(b[4]))
    gone = [False] * len(order)
    kept: list[np.ndarray] = []
    for i, box in enumerate(order):
        if gone[i]:
            continue
        if len(kept) == most:
            break
        kept.append(box)
        for j in range(i + 1, len(order)):
            if order[j][5] == box[5] and iou(box, order[j]) > f32(iou_threshold):
                gone[j] = True
    return np.array(kept, f32).reshape(-1, 6)
