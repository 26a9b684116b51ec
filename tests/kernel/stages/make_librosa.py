"""Writes librosa_features.json: what librosa itself makes of `signals.clip`. Run it where librosa is installed."""

import json
from pathlib import Path

import librosa
import numpy as np
from signals import clip

CASES = [
    dict(sr=16000, n_fft=512, hop_length=160, n_mels=40, n_mfcc=13),
    dict(sr=16000, n_fft=512, hop_length=200, n_mels=40, n_mfcc=13, win_length=400, center=False, top_db=None),
    dict(sr=22050, n_fft=1024, hop_length=512, n_mels=128, n_mfcc=20, htk=True, pad_mode="reflect"),
    dict(sr=8000, n_fft=256, hop_length=128, n_mels=26, n_mfcc=0, norm=None, power=1.0, fmin=100.0, fmax=3800.0, top_db=60.0),
]


def features(sr, n_mels, n_mfcc, top_db=80.0, amin=1e-10, **arguments):
    """librosa.feature.mfcc, with the arguments that it hands to power_to_db."""
    samples = clip().astype(np.float32) / 32768
    arguments.setdefault("pad_mode", "constant")
    mel = librosa.feature.melspectrogram(y=samples, sr=sr, n_mels=n_mels, **arguments)
    decibels = librosa.power_to_db(mel, amin=amin, top_db=top_db)
    return (librosa.feature.mfcc(S=decibels, n_mfcc=n_mfcc) if n_mfcc else decibels).T


if __name__ == "__main__":
    made = [{"arguments": c, "features": [[round(float(v), 3) for v in row] for row in features(**c)]} for c in CASES]
    text = json.dumps({"librosa": librosa.__version__, "cases": made}, separators=(",", ":"))
    Path(__file__).with_name("librosa_features.json").write_text(text.replace("],[", "],\n[") + "\n")
