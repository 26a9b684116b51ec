"""Make the photographs of examples/face_detection from those in scikit-image (pip install scikit-image).

    python tools/make_photos.py

astronaut.png: Eileen Collins, NASA, public domain. coffee.png: Pikolo Espresso Bar, CC0.
"""

from pathlib import Path

from PIL import Image
from skimage import data

FOLDER = Path(__file__).parent.parent / "examples" / "face_detection"
SIDE = 128  # what the example's camera gives


def make(name: str, picture: Image.Image) -> None:
    side = min(picture.size)
    left, top = (picture.width - side) / 2, (picture.height - side) / 2
    square = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
    square.save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    make("astronaut.png", Image.fromarray(data.astronaut()))
    make("coffee.png", Image.fromarray(data.coffee()))
