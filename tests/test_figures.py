"""Pictures say the same without colours as with them, and without eyes as with them."""

import io

import pytest
from PIL import Image, ImageChops, ImageColor
from strategy_clinic.panel import figures

SHADES = 60  # of 255: two boxes that a person tells apart at a glance


def box_shades(picture) -> list[int]:
    """The shade of grey beside the word in each of two boxes, one above the other, on white paper."""
    grey = Image.open(io.BytesIO(picture.png)).convert("L")
    return [grey.getpixel((int(grey.width * 0.94), int(grey.height * at))) for at in (0.45, 0.85)]


def test_right_and_wrong_differ_without_colours():
    right, wrong = box_shades(figures.grid({"a": [True], "b": [False]}, ["x"], "yes", "no"))
    assert abs(right - wrong) > SHADES
    same = box_shades(figures.grid({"a": [True], "b": [True]}, ["x"], "yes", "no"))
    assert same[0] == same[1]


def luminance(colour: tuple[int, ...]) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in colour[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    "words, ground",
    [(figures.INK, figures.PAPER), (figures.LACK, figures.PAPER), ("white", figures.HAVE)],
)
def test_words_have_the_contrast_that_reading_needs(words, ground):
    assert contrast(ImageColor.getrgb(words), ImageColor.getrgb(ground)) >= 4.5


PICTURES = {
    "grid": lambda: figures.grid({"a row": [True], "b": [False]}, ["x"], "yes", "no", "A title"),
    "timeline": lambda: figures.timeline({"a": [1.0, 2.0, 1.0]}, 2, "restart", "loss"),
}


@pytest.mark.parametrize("made", PICTURES.values(), ids=list(PICTURES))
def test_a_picture_is_as_readable_on_a_dark_page(made):
    """It brings its own paper, so its words have their contrast on a page of any colour."""
    drawn = Image.open(io.BytesIO(made().png)).convert("RGBA")
    paper = ImageColor.getrgb(figures.PAPER)
    assert drawn.getchannel("A").getextrema() == (255, 255)
    assert drawn.getpixel((0, 0))[:3] == paper
    names = drawn.crop((0, 0, int(drawn.width * 0.2), drawn.height))  # of rows, or of the axis
    ink = min((colour for _, colour in names.getcolors(1 << 24)), key=luminance)
    assert contrast(ink, paper) >= 4.5


def test_a_picture_has_its_words():
    picture = figures.numbers({"mean": [1.0, 2.0]}, ["one", "two\ndevices"], [1.0, 1.0])
    assert picture.alt == "mean: one 1.00, two devices 2.00"
    assert picture._repr_mimebundle_()[0]["text/plain"] == picture.alt


def runs_of_ink(picture) -> int:
    """How many pieces a row has in its middle: its name, and its boxes if no word reaches over their edges."""
    drawn = Image.open(io.BytesIO(picture.png)).convert("RGB")
    drawn = ImageChops.difference(drawn, Image.new("RGB", drawn.size, figures.PAPER))
    row = drawn.crop((0, int(drawn.height * 0.5), drawn.width, int(drawn.height * 0.62)))
    inked = [bool(row.crop((x, 0, x + 1, row.height)).getbbox()) for x in range(row.width)]
    return sum(now and not before for before, now in zip([False, *inked], inked))


def test_words_stay_in_their_boxes(monkeypatch):
    monkeypatch.setattr(figures, "PAPER", "#888888")  # on which white words show, too
    columns = ["a", "b", "c", "d"]
    words = {"I": ["[-0.226 -0.226 -0.226 -0.226]"] * len(columns)}
    assert runs_of_ink(figures.words(words, columns, "")) == 1 + len(columns)
    monkeypatch.setattr(figures, "LETTER", 0.0)
    assert runs_of_ink(figures.words(words, columns, "")) != 1 + len(columns)
