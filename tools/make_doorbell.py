"""Make the files of examples/doorbell, and the answers that the tests hold it to.

    pip install pymicro-wakeword==2.5.0 tflite-micro numpy pillow tflite      # and: apt-get install espeak-ng
    python tools/make_doorbell.py

alexa.tflite            microWakeWord's network for the word "Alexa", as pymicro-wakeword ships it
alexa.features.json     the front end that it was trained with
hello.wav, other.wav    somebody at the door, spoken by espeak-ng: one says the word, one does not
face_64.tflite          the network of examples/face_detection for pictures of 64 x 64
visitor.png             a visitor, cut from examples/face_detection/astronaut.png
tests/examples/doorbell.npz    what pymicro-features, tflite-micro and pymicro-wakeword make of these and of other sounds
"""

import hashlib
import importlib.metadata
import io
import json
import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from PIL import Image

ROOT = Path(__file__).parent.parent
HERE = ROOT / "examples" / "doorbell"
FACES = ROOT / "examples" / "face_detection"
ANSWERS = ROOT / "tests" / "examples" / "doorbell.npz"
RATE = 16_000
WORD = "Alexa"
SHA256 = "9011a8155b04de858c48038529235cbc0e42e9fca05a55bf588cb80a653a723b"
SPOKEN = {"hello": "Good morning! Is anybody there? Alexa! Ring the bell.", "other": "Good evening, I have a parcel for your neighbour."}
VOICES = ["en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp+m3", "en-us+f2", "en-us+f3"]
SPEEDS = [120, 150, 180]  # words a minute
# Silence of the room around what is said; seconds.
BEFORE, AFTER = 0.3, 0.6


def speak(text: str, voice: str = "en-gb", speed: int = 150) -> np.ndarray:
    """i16 at RATE, with silence around."""
    out = subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "--stdout", text], check=True, capture_output=True).stdout
    data = bytearray(out)
    data[4:8] = data[40:44] = (len(data) - 44).to_bytes(4, "little")  # a pipe leaves the lengths open
    with wave.open(io.BytesIO(data)) as file:
        rate, x = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(float)
    n = len(x) * RATE // rate
    spectrum = np.fft.rfft(x)[: n // 2 + 1]
    x = np.fft.irfft(spectrum, n) * (n / len(x))
    silence = [np.zeros(int(RATE * s)) for s in (BEFORE, AFTER)]
    return np.concatenate([silence[0], x, silence[1]]).round().clip(-32768, 32767).astype(np.int16)


def whole_windows(x: np.ndarray, window: int = 480) -> np.ndarray:
    return np.concatenate([x, np.zeros(-len(x) % window, np.int16)])


def noisy(x: np.ndarray, ratio_db: float) -> np.ndarray:
    """With white noise so many dB below the speech."""
    power = np.mean(x[x != 0].astype(float) ** 2) * 10 ** (-ratio_db / 10)
    noise = np.random.default_rng(1).normal(0, power**0.5, len(x))
    return (x + noise).round().clip(-32768, 32767).astype(np.int16)


def write_wav(path: Path, x: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(x.tobytes())


def hard() -> np.ndarray:
    """What speech is not: silence, full scale, a click, clipped tones, noise of all levels."""
    rng = np.random.default_rng(2)
    t = np.arange(RATE // 4)
    parts = [np.zeros(1600), np.where(t[:3200] % 32 < 16, 32767, -32768), np.zeros(1600), np.full(1600, -32768), np.eye(1, 1600, 5)[0] * 32767]
    parts += [40000 * np.sin(t * 2 * np.pi * f / RATE) for f in (100, 1000, 7400)]
    parts += [rng.normal(0, level, 1600) for level in (1, 30, 1000, 20000)]
    return whole_windows(np.concatenate(parts).clip(-32768, 32767).astype(np.int16))


def rows_of(x: np.ndarray) -> np.ndarray:
    """What pymicro-features makes of sound after 20 ms of silence, counted in 10/256: u16 [rows, 40], a row each 10 ms."""
    from pymicro_features import MicroFrontend

    front, rows, data = MicroFrontend(), [], bytes(640) + x.tobytes()
    while len(data) >= 320:
        got = front.process_samples(data[:320])
        data = data[got.samples_read * 2 :]
        if got.features:
            rows.append(got.features)
    return np.round(np.array(rows) * 25.6).astype(np.uint16)


def outputs_of(rows: np.ndarray) -> np.ndarray:
    """For every three rows, u8: what the network answers in tflite-micro, what in pymicro-wakeword, whose arithmetic is that
    of desktops, and whether the latter says that it heard the word."""
    from pymicro_wakeword import MicroWakeWord, Model
    from tflite_micro.python.tflite_micro import runtime

    word = MicroWakeWord.from_builtin(Model.ALEXA)
    judge = runtime.Interpreter.from_file(str(HERE / "alexa.tflite"), arena_size=1 << 20)
    answers = []
    for i in range(0, len(rows) // 3 * 3, 3):
        reals = rows[i : i + 3] * (10 / 256)
        for row in reals:
            said = word.process_streaming(row.reshape(1, 1, -1))
        judge.set_input(np.round(reals / word.input_scale + word.input_zero_point).astype(np.int8)[None], 0)
        judge.invoke()
        answers.append([int(judge.get_output(0).item()), round(word._probabilities[-1] * 256), bool(said)])
    return np.array(answers, np.uint8).T


def halved(data: bytes) -> bytes:
    """The face detector for pictures half as wide and high: convolutions do not mind, so only shapes change."""
    changed = bytearray(data)
    model: Any = tflite.Model.GetRootAs(changed, 0)
    graph: Any = model.Subgraphs(0)
    anchors = {512: 128, 384: 96, 896: 224}
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        shape = tensor.ShapeAsNumpy()  # the file's own bytes
        if model.Buffers(tensor.Buffer()).DataLength() == 0:
            if len(shape) == 4 and shape[1] == shape[2] > 1:
                shape[1:3] //= 2
            elif len(shape) == 3:
                shape[1] = anchors[int(shape[1])]
    return bytes(changed)


def main() -> None:
    package = importlib.metadata.distribution("pymicro-wakeword")
    network = Path(str(package.locate_file("pymicro_wakeword/models/alexa.tflite"))).read_bytes()
    if hashlib.sha256(network).hexdigest() != SHA256:
        raise SystemExit("alexa.tflite is not the one that this was made with: pip install pymicro-wakeword==2.5.0")
    (HERE / "alexa.tflite").write_bytes(network)
    from synapticos import micro_frontend  # the project itself

    (HERE / "alexa.features.json").write_text(json.dumps(micro_frontend(), indent=1) + "\n")
    (HERE / "face_64.tflite").write_bytes(halved((FACES / "face_blazeface_int8.tflite").read_bytes()))
    Image.open(FACES / "astronaut.png").crop((20, 2, 84, 66)).save(HERE / "visitor.png", optimize=True)

    answers: dict[str, np.ndarray] = {"hard": hard()}
    for name, text in SPOKEN.items():
        sound = whole_windows(speak(text))
        write_wav(HERE / f"{name}.wav", sound)
        answers[f"{name}/rows"] = rows_of(sound)
    answers["hard/rows"] = rows_of(answers["hard"])
    for voice in VOICES:
        for speed in SPEEDS:
            said = speak(WORD, voice, speed)
            answers[f"{voice} {speed}/rows"] = rows_of(whole_windows(said))
            if speed == 150:
                answers[f"{voice} {speed}, noise 10 dB below/rows"] = rows_of(whole_windows(noisy(said, 10)))
    for name in [n for n in answers if n.endswith("/rows")]:
        answers[name[:-5] + "/outputs"] = out = outputs_of(answers[name])
        off = abs(out[0].astype(int) - out[1]).max()
        print(f"{name[:-5]:40} highest output {out[0].max():3} (the two differ by up to {off}), heard in {out[2].sum()} windows")
    np.savez_compressed(ANSWERS, **answers)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
