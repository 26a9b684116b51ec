"""A quarter of a second that asks a lot of a front end, made from whole numbers so that it is the same everywhere."""

import numpy as np


def clip(n: int = 4000) -> np.ndarray:
    """i16 samples: a rising square-ish chirp, noise, digital silence, and a full-scale square wave."""
    t = np.arange(n)
    chirp = ((t * t // 40) % 256 - 128) * 100
    noise = ((t * 1103515245 + 12345) >> 8) % 8192 - 4096
    square = np.where(t // 20 % 2 == 0, 32767, -32768)
    part = t * 8 // n
    return np.select([part < 3, part < 4, part < 6], [chirp, noise, 0], square).astype(np.int16)
