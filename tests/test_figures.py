"""Pictures say the same without colours as with them, and without eyes as with them."""

import io

from PIL import Image
from strategy_clinic.panel import figures

SHADES = 60  # of 255: two boxes that a person tells apart at a glance


def box_shades(picture) -> list[int]:
    """The shade of grey beside the word in each of two boxes, one above the other, on white paper."""
    drawn = Image.open(io.BytesIO(picture.png)).convert("RGBA")
    paper = Image.new("RGBA", drawn.size, "white")
    paper.alpha_composite(drawn)
    grey = paper.convert("L")
    return [grey.getpixel((int(grey.width * 0.94), int(grey.height * at))) for at in (0.45, 0.85)]


def test_right_and_wrong_differ_without_colours():
    right, wrong = box_shades(figures.grid({"a": [True], "b": [False]}, ["x"], "yes", "no"))
    assert abs(right - wrong) > SHADES
    same = box_shades(figures.grid({"a": [True], "b": [True]}, ["x"], "yes", "no"))
    assert same[0] == same[1]


def test_a_picture_has_its_words():
    picture = figures.numbers({"mean": [1.0, 2.0]}, ["one", "two\ndevices"], [1.0, 1.0])
    assert picture.alt == "mean: one 1.00, two devices 2.00"
    assert picture._repr_mimebundle_()[0]["text/plain"] == picture.alt


def runs_of_ink(picture) -> int:
    """How many pieces a row has in its middle: its name, and its boxes if no word reaches over their edges."""
    drawn = Image.open(io.BytesIO(picture.png)).convert("RGBA").getchannel("A")
    row = drawn.crop((0, int(drawn.height * 0.5), drawn.width, int(drawn.height * 0.62)))
    inked = [bool(row.crop((x, 0, x + 1, row.height)).getbbox()) for x in range(row.width)]
    return sum(now and not before for before, now in zip([False, *inked], inked))


def test_words_stay_in_their_boxes(monkeypatch):
    columns = ["a", "b", "c", "d"]
    words = {"I": ["[-0.226 -0.226 -0.226 -0.226]"] * len(columns)}
    assert runs_of_ink(figures.words(words, columns, "")) == 1 + len(columns)
    monkeypatch.setattr(figures, "LETTER", 0.0)
    assert runs_of_ink(figures.words(words, columns, "")) != 1 + len(columns)
