"""What the tables say of records that are written here: what is compared with what, what is marked, and how it is shown."""

import base64
import io
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.runs.inside import around_first, with_source
from strategy_clinic.inside import html, text
from strategy_clinic.inside.excerpt import Excerpt, excerpt_of
from strategy_clinic.inside.main import line_of
from strategy_clinic.inside.message import words_of
from strategy_clinic.inside.printed import MOST, LastLine
from strategy_clinic.inside.record import END, TOGETHER, UNSEEN, Seen, read_record
from strategy_clinic.inside.stages import (
    COMPARISON_OF,
    COMPARISONS,
    TABLE,
    ends_alike,
    equals_alone,
    nothing_is_said,
)
from strategy_clinic.inside.tables import NORMS, TURNS, tables_of
from strategy_clinic.inside.values import BLOCKS, value_of, value_of_words
from strategy_clinic.observer.events import Frame
from strategy_clinic.panel import step_figure
from strategy_clinic.panel.changed_lines import changed_lines
from strategy_clinic.panel.figures import HAVE, INK, LACK, PAPER, QUIET, few_colours
from strategy_clinic.panel.live_steps import steps_html
from strategy_clinic.rendering import sources

LINE = (Frame("/program/train.py", 17, "step"),)
KERNEL = "dense/kernel"


def seen(stage, *values, name=KERNEL, how="", step=1, turn=0, first=0):
    """What replicas held of one tensor."""
    rows = stage == "examples"
    return [
        Seen(step, turn, stage, name, first + i, value_of(value, with_rows=rows), how, LINE)
        for i, value in enumerate(values)
    ]


def tables(several, one, replicas=2):
    return tables_of("train.py", several, one, replicas)


def mark(several, one):
    """What the last row of the only step differs in."""
    return tables(several, one).steps[0].rows[-1].mark


A, B = np.array([1.0, 2.0]), np.array([3.0, -1.0])
# A stage, how its values are aggregated, what two replicas hold, what one device holds, and the mark.
CASES = [
    ("gradient", "", (A, B), A + B, ""),
    ("gradient", "", (A, B), (A + B) / 2, "their sum is 2 times that of one device"),
    ("gradient", "", (A, B), A, "their sum differs from one device"),
    ("loss", "", (1.0, 1.0), 2.0, ""),
    ("loss", "", (np.nan, 1.0), 2.0, "their sum is nan, on one device 2"),
    ("sent", "SUM", (A, B), A + B, ""),
    ("sent", "MEAN", (A, B), (A + B) / 2, ""),
    ("sent", "MEAN", (A, B), A + B, "their mean is 0.5 times that of one device"),
    ("aggregated", "SUM", (A, A), A, ""),
    ("aggregated", "SUM", (A, B), A, "the copies differ"),
    ("aggregated", "SUM", (A, A), B, "it differs from one device"),
    ("variable", "", (A, A * (1 + 1e-6)), A, ""),
    ("variable", "", (A, A * 1.1), A, "the copies differ"),
    ("state", "MEAN", (A, B), (A + B) / 2, ""),
    ("state", "MEAN", (A, B), A, "their mean differs from one device"),
    ("metric", "SUM", (8.0, 8.0), 16.0, ""),
    ("counter", "", (2, 2), 1, "it is 2 times that of one device"),
    ("slot", "", (np.ones(3), np.ones(3)), np.ones(2), "its shape is 3, on one device 2"),
    ("drawn", "", (A, A), A, "all replicas drew the same numbers"),
    ("drawn", "", (A, B), A, ""),
    ("examples", "", ([[1], [2]], [[3]]), [[1], [2], [3]], ""),
    ("examples", "", ([[1], [3]], [[2], [4]]), [[1], [2], [3], [4]], ""),
    ("examples", "", ([[1], [2]], [[1], [2]]), [[1], [2]], "each replica holds all examples"),
    ("examples", "", ([[1]], [[2]]), [[1], [9]], "other examples than on one device"),
    ("examples", "", ([[1]], [[2]]), [[1]], "2 examples, on one device 1"),
    ("examples", "", ([[1]],), [[1]], "only replica 0 has examples"),
]


@pytest.mark.parametrize("stage, how, values, alone, words", CASES)
def test_what_is_marked(stage, how, values, alone, words):
    found = mark(seen(stage, *values, how=how), seen(stage, alone, how=how))
    assert found.startswith(words) if words else found == ""


def test_every_rule_has_a_case():
    rules = {TABLE[stage].rule for stage, *_ in CASES}
    assert rules >= {stage.rule for stage in TABLE.values()} - {
        equals_alone,
        ends_alike,
        nothing_is_said,
    }


def test_parts_are_averaged_where_gradients_are():
    means = [*seen("gradient", A, B), *seen("aggregated", (A + B) / 2, (A + B) / 2, how="MEAN")]
    one = [*seen("gradient", (A + B) / 2), *seen("aggregated", (A + B) / 2, how="MEAN")]
    assert tables(means, one).first is None
    sums = [each for each in means if each.stage == "gradient"]
    assert tables(sums, one).first


def test_a_large_tensor_is_compared_by_sums_of_blocks():
    large = np.random.default_rng(1).normal(size=(1000, 10))
    assert len(value_of(large).entries) == BLOCKS
    assert mark(seen("gradient", large, -large * 2), seen("gradient", -large)) == ""
    assert (
        mark(seen("variable", large, large[:, ::-1]), seen("variable", large))
        == "the copies differ"
    )


def test_what_adam_makes_of_rounding_is_not_compared():
    def run(rounding, update):
        return [
            *seen("gradient", A, A),
            *seen("gradient", rounding, rounding, name="bias"),
            *seen("update", update, update, name="bias"),
        ]

    def alone(rounding, update):
        return [
            *seen("gradient", 2 * A),
            *seen("gradient", rounding, name="bias"),
            *seen("update", update, name="bias"),
        ]

    assert tables(run(1e-8, 0.001), alone(-1e-8, -0.001)).first is None
    assert tables(run(0.5, 0.001), alone(1.0, -0.001)).first[1].stage.key == "update"


def test_the_first_row_is_the_first_in_the_order_of_a_step():
    several = [*seen("variable", A, A), *seen("loss", 2.0, 2.0), *seen("gradient", B, B)]
    one = [*seen("variable", B), *seen("loss", 2.0), *seen("gradient", B)]
    step, row = tables(several, one).first
    assert (step.number, row.stage.key) == (1, "loss")
    assert tables(several, one).place == LINE[0]


def test_steps_in_one_call_are_steps_and_its_variables_are_in_the_last():
    turns = [each for turn in (0, 1) for each in seen("loss", 1.0, 1.0, turn=turn)]
    steps = tables([*turns, *seen("variable", A, A)], []).steps
    assert [[row.stage.key for row in step.rows] for step in steps] == [
        ["loss"],
        ["loss", "variable"],
    ]
    assert [step.title for step in steps] == ["step 1", "step 1, part 2"]


def test_what_is_reported_is_held_together():
    several, one = seen("reported", 3.0, first=TOGETHER), seen("reported", 2.0, first=TOGETHER)
    row = tables(several, one).steps[0].rows[0]
    assert len(row.cells) == 1 and row.mark == "it is 1.5 times that of one device"


def test_a_record_is_read_as_it_was_written():
    record = [*seen("loss", np.inf, 1.0), *seen("examples", [["a"], ["b"]])]
    written = "\n".join(each.to_json() for each in record)
    assert list(read_record(f"{written}\n[1, 2")) == record  # the last line was cut off


def test_the_lines_of_a_program_are_those_of_python(tmp_path):
    """For which a form feed and the like end no line."""
    (tmp_path / "train.py").write_text("import os\n\f\nx = 'a\u2028b'\r\ny = 1\n", newline="")
    spec = SimpleNamespace(listing=None, folder=tmp_path, arguments=["train.py"])
    shown = with_source(tables([], []), SimpleNamespace(program=spec))
    assert shown.source == ("import os", "\f", "x = 'a\u2028b'", "y = 1")


def test_where_nothing_differs_it_says_so():
    same = tables(seen("loss", 1.0, 1.0), seen("loss", 2.0))
    assert same.headline == "nothing differs in 1 step" and same.place is None
    assert tables([], []).headline == "no step was seen"
    for empty in (same, tables([], [])):
        assert empty.headline in html.page(empty).lower()
        assert empty.headline in text.in_words(empty)


def example(name=KERNEL):
    several = [*seen("loss", 1.0, 1.0, name="loss"), *seen("gradient", A, A, name=name)]
    large = np.linspace(-1, 1, 300)
    several += [*seen("variable", large, large), Seen(1, 0, UNSEEN, "most of it", 0, value_of(0))]
    one = [
        *seen("loss", 2.0, name="loss"),
        *seen("gradient", A, name=name),
        *seen("variable", large),
    ]
    return tables(several, one)


def test_the_text_has_numbers_norms_and_words():
    words = text.in_words(example())
    assert "the runs part in step 1, at gradient: dense/kernel" in words
    assert "made by train.py, line 17" in words
    assert "300 numbers, norm 10.03" in words and "Not seen: most of it." in words
    (marked,) = [line for line in words.splitlines() if line.startswith("≠  ")]
    assert marked.split()[3:9] == ["1", "2", "1", "2", "sum", "1"]


def test_of_a_long_name_the_end_is_shown():
    (row,) = tables(seen("loss", 1.0, name=f"{'a' * 90}/bias"), []).steps[0].rows
    assert text.label(row).startswith("loss: …aa") and text.label(row).endswith("/bias")
    assert len(text.label(row)) == text.LONGEST


def test_the_page_escapes_names_and_marks_by_sign_word_and_colour():
    page = html.page(example("<b>kernel</b>"))
    assert "<b>kernel" not in page and "&lt;b&gt;kernel" in page
    assert page.count("class='inside-differs'") == 1 and "≠" in page
    assert "their sum is 2 times that of one device" in page
    assert "http" not in page


def test_the_page_names_each_row_and_column():
    page = html.page(example())
    for column in ("stage and name", "replica 0", "replica 1", "one device"):
        assert f"<th scope='col'>{column}</th>" in page
    assert (
        f"<th scope='row'>gradient: {KERNEL}<br><b>≠ their sum is 2 times that of one device</b></th>"
        in page
    )


ROWS = {  # some with a word in the column of what is compared, one without, and one that is held together
    "gradient": (A, A, A),
    "returned": (A, B, A),
}


def of_each_kind():
    several = [each for key, held in ROWS.items() for each in seen(key, *held[:2])]
    one = [each for key, held in ROWS.items() for each in seen(key, held[2])]
    together = seen("reported", 3.0, first=TOGETHER), seen("reported", 3.0, first=TOGETHER)
    return tables([*several, *together[0]], [*one, *together[1]])


def drawn_rows(shown):
    """The words that a picture of all rows has beside each other, from the top to the bottom."""
    (step,) = shown.steps
    sheet = step_figure.Sheet([Excerpt("broken", shown, step, step.rows, 0)])
    places: dict[float, list[tuple[float, str]]] = {}
    for each in sheet.axes.texts:
        places.setdefault(each.get_position()[1], []).append(
            (each.get_position()[0], each.get_text())
        )
    return [[word for _, word in sorted(row)] for _, row in sorted(places.items()) if len(row) > 2]


def test_each_form_has_the_same_columns_in_the_same_order():
    shown = of_each_kind()
    heads = ["replica 0", "replica 1", "compared", "one device"]
    first, *_ = text.table_of(shown.steps[0], shown)
    assert re.split(r"  +", first.strip())[1:-1] == heads
    compared = ["sum", text.NOTHING, "same"]
    assert [text.cells_of(row, shown)[-3] for row in shown.steps[0].rows] == compared
    for page in (html.page(shown), html.card(shown), steps_html(shown, shown.steps[0])):
        assert re.findall("<th scope='col'>(.*?)</th>", page) == ["stage and name", *heads]
        cells = [re.findall("<td.*?>(.*?)</td>", row, re.DOTALL) for row in page.split("<tr")]
        cells = [[cell.strip() for cell in row] for row in cells if row]
        assert [row[-2] for row in cells] == compared and all(row[-1] for row in cells)
    _, head, *boxes = drawn_rows(shown)
    assert head == heads and [row[-2] for row in boxes] == compared


def test_each_form_says_what_its_words_mean():
    shown = of_each_kind()
    for page in (html.page(shown), html.card(shown), steps_html(shown, shown.steps[0])):
        assert f"<dt>sum</dt><dd>{COMPARISONS['sum'].replace(chr(39), '&#39;')}</dd>" in page
        assert text.FITS in page and "<dt>distinct</dt>" not in page
    assert "<dl></dl>" not in html.card(tables([], [])) and text.FITS not in html.card(
        tables([], [])
    )


def test_a_picture_has_the_text_of_its_step():
    picture = step_figure.draw({"broken": example()})
    assert picture.png.startswith(b"\x89PNG") and "≠" in picture.alt


NARROW, LEAST_LETTER = 370, 9  # pixels of a column on a page of 400, and of a letter in it
POINTS = 8.5  # of the smallest letters, those of code
MOST_BYTES = 60_000


def test_the_letters_of_a_picture_are_read_on_a_narrow_page():
    """A picture is as narrow as its boxes: names stand above them, and long lines of code are broken."""
    line = f"loss = {' + '.join(['tf.reduce_mean(errors)'] * 9)}"
    named = example(f"{'a' * 40}/kernel")
    shown = replace(named, path=LINE[0].path, source=("",) * 16 + (line,))
    picture = step_figure.draw({"broken": shown})
    with Image.open(io.BytesIO(picture.png)) as image:
        width = image.width
    assert letter_in(width) >= LEAST_LETTER


def letter_in(width):
    """Pixels of the smallest letter of a picture of so many pixels, on a narrow page."""
    return POINTS * 110 / 72 * min(1, NARROW / width)  # at 110 dots to the inch


def test_the_pictures_of_pages_are_small_and_their_letters_are_read_on_a_narrow_page():
    """The site's page loads a picture as a file, and has its content as text: both are what a reader downloads of a view."""
    found = pictures_of_pages()
    assert len(found) == 20
    for page, (picture, alt) in found.items():
        png = base64.b64decode(picture)
        with Image.open(io.BytesIO(png)) as image:
            assert letter_in(image.width) >= LEAST_LETTER, page
        assert len(png) + len(alt.encode()) <= MOST_BYTES, page


def test_a_small_picture_has_the_colours_of_its_words_and_boxes():
    assert len(few_colours()) <= 16, "half a byte for a dot"
    picture = step_figure.draw({"broken": example()})
    with Image.open(io.BytesIO(picture.png)) as image:
        drawn = {colour for _, colour in image.convert("RGB").getcolors()}
    assert drawn <= set(few_colours())
    assert {to_hex([part / 255 for part in each]) for each in drawn} >= {PAPER, INK, LACK, QUIET}


def pictures_of_pages():
    """The stored pictures of what replicas hold, with their texts, by page."""
    return {
        path.stem: (output.data["image/png"].replace("\n", ""), output.data["text/plain"])
        for path in files.stored_notebooks()
        for cell in sources.read_notebook(path).cells
        if cell.source.endswith("session.inside(two)")
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    }


def test_of_words_that_do_not_fit_a_box_the_end_is_shown():
    several, one = "the array has ones only: False", "the array has ones only: True"
    shown = tables([*seen("loss", 1.0, 1.0), *ended(several)], [*seen("loss", 2.0), *ended(one)])
    assert step_figure.words_in(shown.first[1], shown) == [several, one]
    sheet = step_figure.Sheet(step_figure.excerpts_of({"broken": shown}))
    drawn = [each.get_text() for each in sheet.axes.texts]
    assert several in drawn, "one box for all replicas"
    assert "the array has\nones only: True" in drawn, "two lines"


@pytest.mark.parametrize(
    "words, lines",
    [
        ("0.5", "0.5"),
        ("8×3, norm 4.899", "8×3, norm 4.899"),
        ("16×16, norm 4.899", "16×16, norm\n4.899"),
        ("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1\n1 1 1 1 1 1 1 1"),
        ("a sentence that has so many words: True", "a sentence that\nhas so m…: True"),
        ("", ""),
    ],
)
def test_a_box_has_two_lines_and_of_what_does_not_fit_the_end(words, lines):
    assert step_figure.in_lines(words, 15 * step_figure.LETTER + 0.16) == lines


def test_the_box_of_one_device_is_quiet_since_others_are_compared_with_it():
    sheet = step_figure.Sheet(
        step_figure.excerpts_of({"broken": tables(seen("loss", 1.0, 1.0), seen("loss", 1.0))})
    )
    frames = [to_hex(each.get_edgecolor()) for each in sheet.axes.patches]
    assert frames == [HAVE, LACK, QUIET, LACK, LACK, QUIET], "three samples and a row"


def test_the_picture_says_what_none_means_where_it_is_shown():
    without = tables(seen("loss", 1.0, 1.0), seen("loss", 1.0))
    for given, word in ((seen("loss", 1.0), "none"), (seen("state", 1.0), "no copy"), (None, "")):
        shown = tables(given, seen(given[0].stage, 3.0)) if given else without
        legend = step_figure.legend_of(step_figure.excerpts_of({"broken": shown}))
        known = [line.split(":")[0] for line in legend if line.split(":")[0] in step_figure.ABOUT]
        assert known == [word] * bool(word)


def test_one_number_is_in_brackets_where_it_is_no_scalar():
    """Such as one example, whose number might be read as how many there are."""
    (row,) = (
        tables(seen("examples", [[0]], np.zeros((0, 1))), seen("examples", [[0]])).steps[0].rows
    )
    assert text.words_of(row) == ["[0]", "none (0×1)", "[0]"]
    assert any(line.startswith("[0]: a tensor") for line in text.legend_of([row]))
    (row,) = tables(seen("loss", 0.5, 0.5), seen("loss", 1.0)).steps[0].rows
    assert text.words_of(row) == ["0.5", "0.5", "1"]
    (said,) = tables([*seen("loss", 0.5, 0.5), *ended("[1.0] norm")], []).steps
    assert not any("[" in line or "norm" in line for line in text.legend_of([row, *said.rows]))


def test_all_numbers_of_a_row_are_shown_if_they_are_short():
    few = np.arange(8.0)
    (row,) = tables(seen("gradient", few, 8 + few), seen("gradient", few)).steps[0].rows
    assert text.words_of(row) == ["0 1 2 3 4 5 6 7", "8 9 10 11 12 13 14 15", "0 1 2 3 4 5 6 7"]
    (row,) = tables(seen("gradient", few, few / 3), seen("gradient", few)).steps[0].rows
    assert text.words_of(row)[0] == "8 numbers, norm 11.83", "no number, or all of them"
    assert html.page(tables(seen("gradient", few), [])).count("class='inside-strip'") == 0
    assert html.page(tables(seen("gradient", few / 3), [])).count("class='inside-strip'") == 1


def test_a_view_without_steps_cannot_be_drawn():
    with pytest.raises(UserError, match="no step was seen"):
        step_figure.draw({"broken": tables([], [])})


# A stage, how its values are aggregated, what two replicas and one device hold, and the word for what is compared.
COMPARED = [
    ("gradient", "", (A, B), A + B, "sum"),
    ("sent", "MEAN", (A, B), A, "mean"),
    ("gradient", "", (A, B), None, ""),
    ("aggregated", "SUM", (A, A), None, "same"),
    ("variable", "", (A,), None, ""),
    ("state", "SUM", (A, B), A + B, "sum"),
    ("drawn", "", (A, B), A, "distinct"),
    ("examples", "", ([[1]], [[2]]), [[1], [2]], "together"),
    ("returned", "", (A, A), A, ""),
]


@pytest.mark.parametrize("stage, how, values, alone, word", COMPARED)
def test_a_row_says_what_is_compared(stage, how, values, alone, word):
    one = [] if alone is None else seen(stage, alone, how=how)
    (row,) = tables(seen(stage, *values, how=how), one).steps[0].rows
    assert row.compared == word
    assert text.cells_of(row, tables([], []))[-3] == (word or text.NOTHING)
    assert not word or any(line.startswith(f"{word}: ") for line in text.legend_of([row]))


def test_every_rule_says_what_it_compares():
    assert {stage.rule for stage in TABLE.values()} == set(COMPARISON_OF)


def test_the_legend_has_only_words_that_are_shown():
    few = tables(seen("loss", 1.0, 1.0), seen("loss", 2.0)).steps[0].rows
    assert list(text.legend_of(few)) == [f"sum: {COMPARISONS['sum']}"]
    many = tables(seen("variable", [A] * 9, [A] * 9), seen("variable", [A] * 9)).steps[0].rows
    assert [line.split(":")[0] for line in text.legend_of(many)] == ["same", "norm"]
    assert (
        f"norm: the root of the sum of squares, shown of more than {text.MOST_NUMBERS}"
        in "".join(text.legend_of(many))
    )
    assert text.FITS in text.in_words(example()) and text.FITS not in text.in_words(tables([], []))


def ended(words):
    return [Seen(END, 0, "end", "printed last, or raised", TOGETHER, value_of_words(words))]


ENDS = [
    ("steps: 8", "steps: 4", ""),  # numbers are compared in other rows
    ("took 0.31 s", "took 1e-05 s", ""),
    ("right: True", "right: False", "it is “right: True”, on one device “right: False”"),
    ("TypeError: no", "loss: 1.0", "it is “TypeError: no”, on one device “loss: 1.0”"),
]


@pytest.mark.parametrize("mine, alone, words", ENDS)
def test_the_end_of_a_program_is_the_last_row_of_its_last_step(mine, alone, words):
    several = [*seen("loss", 1.0, 1.0), *seen("loss", 1.0, 1.0, step=2), *ended(mine)]
    one = [*seen("loss", 2.0), *seen("loss", 2.0, step=2), *seen("loss", 2.0, step=3)]
    shown = tables(several, [*one, *ended(alone)])
    assert [[row.stage.key for row in step.rows] for step in shown.steps] == [
        ["loss"],
        ["loss", "end"],
    ]
    row = shown.steps[1].rows[-1]
    assert row.mark == words and row.compared == "same"
    assert text.values_in(row, shown) == [mine, text.NOTHING, alone]
    stopped = tables(several, one).steps[1].rows[-1]
    assert stopped.mark == stopped.compared == "", "one device was stopped before its end"


def test_an_error_has_a_line_and_is_compared_with_what_is_printed():
    raised = replace(ended("TypeError: no")[0], lines=LINE)
    shown = tables([*seen("loss", 1.0, 1.0), raised], [*seen("loss", 2.0), *ended("loss: 1")])
    row = shown.first[1]
    assert row.stage.key == "end" and row.lines == LINE and row.alone.words == "loss: 1"


def test_before_an_end_that_differs_stands_what_the_replicas_return_or_came_to_last():
    several, one = seen("returned", 1.0, 2.0), seen("returned", 3.0)
    broken = tables([*several, *ended("TypeError: no")], [*one, *ended("loss: 1")])
    assert [row.stage.key for row in excerpt_of("a", broken).rows] == ["returned", "end"]
    several, one = seen("loss", 1.0) + seen("sent", 1.0), seen("loss", 2.0) + seen("sent", 2.0)
    for how, stages in (("in a step", ["loss", "sent", "end"]), ("", ["loss", "end"])):
        end = replace(ended("TypeError: no")[0], how=how)
        record = [*several, end], [*one, *ended("loss: 1")]
        failed = tables_of("train.py", *record, 2, is_cut=True)
        assert [row.stage.key for row in excerpt_of("a", failed).rows] == stages
    several, one = seen("returned", 1.0, 2.0), seen("returned", 3.0)
    state = tables(
        [*several, *seen("reported", 1.0, first=TOGETHER)], [*one, *seen("reported", 2.0)]
    )
    assert [row.stage.key for row in excerpt_of("a", state).rows] == ["reported"]


def test_a_program_that_ends_before_its_first_step_has_a_row_only_if_that_differs():
    assert tables(ended("1 / 0"), ended("loss: 1")).headline.startswith("the runs part in step 1")
    assert tables(ended("loss: 2"), ended("loss: 1")).headline == "no step was seen"


def test_long_words_are_cut_in_a_cell_and_whole_in_the_mark():
    words = "ValueError: " + "what is wrong here " * 4
    shown = tables([*seen("loss", 1.0, 1.0), *ended(words)], [*seen("loss", 2.0), *ended("1")])
    assert text.values_in(shown.first[1], shown)[0] == f"{words[: text.MOST_WORDS - 1]}…"
    assert words in shown.first[1].mark
    assert excerpt_of("broken", shown).headline == f"broken, step 1: it ends with “{words.strip()}”"


def test_the_last_line_that_is_printed_is_kept_and_printed():
    stream = io.StringIO()
    last = LastLine(stream)
    assert last.words == ""
    print("loss", 1.0, file=stream)
    print("  done ", 2, "\n\n", file=stream)
    assert last.words == "done  2" and stream.getvalue().startswith("loss 1.0\n  done  2")
    stream.write("x" * 5000)
    assert len(last.words) == MOST


MESSAGES = [
    ("float() takes no list", "ValueError: float() takes no list"),
    ("in user code:\n\n    File 'a.py'\n\n    TypeError: no", "ValueError: TypeError: no"),
    ("in user code:\n\n    File 'a.py'\n\n    ValueError: no", "ValueError: no"),
    (
        "Graph execution error:\n\nAt node x\nno value [[{{node x}}]] [Op:f_12]",
        "ValueError: no value",
    ),
    (
        "Graph execution error:\n\n  (0) INVALID_ARGUMENT:  no value\n0 derived errors ignored.",
        "ValueError: no value",
    ),
    ("", "ValueError: "),
]


@pytest.mark.parametrize("message, words", MESSAGES)
def test_of_a_message_the_line_that_says_what_is_wrong_is_shown(message, words):
    assert line_of(ValueError(message)) == words


def test_what_is_gathered_may_have_a_part_for_each_replica():
    def of(several, alone):
        one = seen("reported", alone, first=TOGETHER, how="GATHER")
        return tables(seen("reported", several, first=TOGETHER, how="GATHER"), one).steps[0].rows[0]

    assert (of([1.0, 2.0], [1.0]).mark, of([1.0, 2.0], [1.0]).compared) == ("", "")
    assert of([1.0, 2.0], [1.0, 3.0]).mark == "it differs from one device"


def three_steps(part):
    """Tables of three steps; in one of them the gradient differs."""
    several, one = [], []
    for step in (1, 2, 3):
        several += [*seen("loss", 1.0, 1.0, step=step), *seen("gradient", A, A, step=step)]
        one += [
            *seen("loss", 2.0, step=step),
            *seen("gradient", B if step == part else 2 * A, step=step),
        ]
    return tables(several, one)


def test_the_fixed_program_is_shown_in_the_step_of_the_broken_one():
    broken = excerpt_of("broken", three_steps(2))
    assert excerpt_of("fixed", three_steps(0), broken).headline == "fixed, step 2: nothing differs"
    later = excerpt_of("fixed", three_steps(3), broken)
    assert later.step.number == 2 and later.headline == "fixed, step 2: nothing differs"
    one_step = tables(seen("loss", 1.0, 1.0), seen("loss", 2.0))
    words = excerpt_of("fixed", one_step, broken).headline
    assert words == "fixed, which makes no step 2, step 1: nothing differs"


def test_the_fixed_program_is_shown_with_rows_of_the_same_stage_and_name():
    gradients = seen("gradient", A, A) + seen("gradient", 1.0, 1.0, name="dense/bias")
    alone = seen("gradient", 2 * A) + seen("gradient", 2.0, name="dense/bias")
    broken = excerpt_of(
        "broken", tables([*gradients, *seen("sent", A, A)], [*alone, *seen("sent", A)])
    )
    sent = seen("sent", A, A, name="other/kernel") + seen("sent", 1.0, 1.0, name="other/bias")
    fixed = excerpt_of("fixed", tables([*gradients, *sent], alone), broken)
    kinds = [(row.stage.key, row.name) for row in fixed.rows]
    assert kinds == [("gradient", KERNEL), ("gradient", "dense/bias"), ("sent", "other/kernel")]


def test_the_lines_that_differ_are_below_the_rows():
    known = replace(tables(seen("loss", 1.0, 1.0), seen("loss", 1.0)), path="p.py")
    broken = replace(known, source=("a = 1", "b = 2  # wrong: not 3", "c = 4"))
    fixed = replace(known, source=("a = 1", "with a:  # fixed", "    b = 3  # fixed", "c = 4"))
    assert changed_lines(broken) == ["Lines that the fixed program changes:", " 2  b = 2"]
    assert changed_lines(fixed) == ["Changed lines:", " 2  with a:", " 3      b = 3"]
    assert changed_lines(known) == []
    long = replace(known, source=tuple(f"x = {i}  # fixed" for i in range(12)))
    assert len(changed_lines(long)) == 11 and changed_lines(long)[-1] == "and 3 more"
    alt = step_figure.draw({"broken": broken, "fixed": fixed}).alt
    assert " 2  b = 2\n\nfixed, step 1" in alt and alt.endswith(" 3      b = 3")
    assert alt.startswith(text.FITS)


def test_in_a_picture_a_box_is_quiet_where_nothing_is_compared_or_held():
    rows = tables(seen("returned", A, B), seen("returned", A)).steps[0].rows
    assert step_figure.verdict_on(rows[0]) is None
    (lost,) = tables(seen("state", A), seen("state", A)).steps[0].rows
    assert step_figure.words_in(lost, tables([], []))[1] == "no copy"
    (loss,) = tables(seen("loss", 1.0), seen("loss", 1.0)).steps[0].rows
    assert step_figure.words_in(loss, tables([], []))[1] == "none"
    assert step_figure.verdict_on(loss) is True


def mean_of(total, count):
    """The two variables of a metric on two replicas, and on one device."""
    several = [*seen("metric", *total[:2], name="loss/total", how="SUM")]
    several += seen("metric", *count[:2], name="loss/count", how="SUM")
    one = [
        *seen("metric", total[2], name="loss/total"),
        *seen("metric", count[2], name="loss/count"),
    ]
    return [row.mark for row in tables(several, one).steps[0].rows]


def test_of_a_total_and_a_count_only_the_quotient_is_compared():
    assert mean_of((2.0, 2.0, 2.0), (1.0, 1.0, 1.0)) == ["", ""]
    assert mean_of((2.0, 2.0, 4.0), (1.0, 1.0, 1.0)) == ["total / count is 2, on one device 4"] * 2
    assert mean_of((2.0, 2.0, 4.0), (0.0, 0.0, 1.0)) != ["", ""], "compared one by one"


def test_an_excerpt_has_the_first_row_that_differs_and_some_before_and_after_it():
    names = [f"kernel_{letter}" for letter in "abcdefghijklm"]
    several, one = (
        [*seen("examples", [[1]], [[2]], name="argument 1")],
        seen("examples", [[1], [2]], name="argument 1"),
    )
    for name in names:
        several += seen("gradient", A, B, name=name)
        one += seen("gradient", A + B if name < "kernel_j" else A, name=name)
    cut = excerpt_of("broken", tables(several, one))
    assert [row.name for row in cut.rows] == names[2:]
    assert [bool(row.mark) for row in cut.rows] == [False] * 7 + [True] * 4
    assert cut.left_out == 0 and cut.headline.startswith("broken, step 1, at gradient: kernel_j: ")
    right = [each for name in names for each in seen("gradient", A + B, name=name)]
    alike = excerpt_of("fixed", tables(several, right), cut)
    assert [row.name for row in alike.rows] == names[2:] and not alike.more


def test_a_step_of_which_only_random_numbers_are_seen_is_drawn_with_all_rows():
    alone = tables(seen("returned", A, B, name="result 1"), seen("returned", A, name="result 1"))
    cut = excerpt_of("broken", alone)
    assert [row.name for row in cut.rows] == ["result 1"]


def test_rows_stand_under_the_line_that_makes_them_without_its_comment():
    lines = ("",) * 16 + ("gradient = tape.gradient(loss, weight)  # wrong: twice",)
    known = replace(tables(seen("gradient", A, A), seen("gradient", A)), source=lines)
    shown = replace(known, path=LINE[0].path)
    ((code, rows),) = excerpt_of("broken", shown).groups
    assert code == "17  gradient = tape.gradient(loss, weight)" and len(rows) == 1
    assert f"line {code}" in text.excerpt_in_words(excerpt_of("broken", shown))
    ((code, _),) = excerpt_of("broken", known).groups
    assert code == "train.py, line 17", "the file of another line"


def test_of_random_numbers_it_is_said_which_are_the_same():
    (row,) = tables(seen("drawn", A, B), seen("drawn", A)).steps[0].rows
    assert text.values_in(row, tables([], [])) == ["numbers A", "numbers B", "numbers A"]


def test_many_numbers_and_steps_in_one_call_are_said_to_be_shown_in_part():
    weight = np.zeros((1000, 1000))
    assert tables(seen("variable", weight, weight), []).notes == (NORMS.format(1_000_000),)
    assert tables(seen("variable", weight[1:], weight[1:]), []).notes == ()
    assert tables(seen("loss", 1.0, 1.0, turn=1), []).notes == (TURNS,)


def test_of_several_workers_each_has_its_name():
    known = replace(tables(seen("loss", 1.0, 1.0), seen("loss", 2.0)), workers=2)
    assert known.columns == ["replica 0, worker 0", "replica 1, worker 1", "one device"]


def test_a_failure_comes_first_in_the_headline():
    known = replace(tables([], []), ends=("on 2 devices it ended with ValueError: <b>",))
    assert known.headline == "on 2 devices it ended with ValueError: <b>; no step was seen"
    for page in (html.page(known), html.card(known)):
        assert "On 2 devices it ended with ValueError: &lt;b&gt;.<br>" in page


def test_rows_of_a_page_stand_under_a_link_to_their_line():
    lines = ("",) * 16 + ("loss = <b>",)
    shown = replace(example(), path=LINE[0].path, source=lines)
    page = html.page(shown)
    assert "<a href='#line-17'><code>17  loss = &lt;b&gt;</code></a>" in page
    assert "<span id='line-17' class='part'>" in page and "≠ here the runs part" in page
    assert "<a " not in html.card(shown), "a notebook does not show the lines"


def test_in_a_notebook_the_step_in_which_the_runs_part_is_open():
    several = [*seen("loss", 1.0, 1.0), *seen("loss", 2.0, 2.0, step=2)]
    card = html.card(tables(several, [*seen("loss", 2.0), *seen("loss", 2.0, step=2)]))
    assert card.count("<details") == 2 and "<details open><summary>step 2" in card
    assert "<script" not in card


def test_lines_that_were_added_to_cells_are_not_shown():
    known = replace(tables([], []), source=("begin", "x", "y", "y"))
    known = replace(known, places=("", "cell 1, line 1", "cell 2, line 1", "cell 2, line 1"))
    assert [line.code for line in html.listing(known)] == ["x", "y"]


def test_of_many_steps_those_around_the_first_that_differs_are_kept():
    several = [each for step in range(1, 11) for each in seen("loss", 1.0, 1.0, step=step)]

    def kept(first):
        one = [
            each for n in range(1, 11) for each in seen("loss", 2.0 if n < first else 3.0, step=n)
        ]
        return [step.number for step in around_first(tables(several, one)).steps]

    assert kept(99) == kept(1) == kept(5) == [1, 2, 3, 4, 5, 6]
    assert kept(8) == [4, 5, 6, 7, 8, 9] and kept(10) == [5, 6, 7, 8, 9, 10]
    assert around_first(tables([], [])).steps == ()


@pytest.mark.parametrize(
    "said, words",
    [
        ("`merge_call` called\nsecond line", "`merge_call` called"),
        (
            "Graph execution error:\n\nDetected at\nassertion failed: [x]\n\t [[{{node y}}]]",
            "assertion failed: [x]",
        ),
        (
            "Graph execution error:\n\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  feed it\n\t [[z]]\n  (1) x",
            "feed it",
        ),
        ("{{function_node __inference_<lambda>_503}} assertion failed: 1", "assertion failed: 1"),
        ("", ""),
    ],
)
def test_of_a_message_the_words_that_say_what_failed_are_kept(said, words):
    assert words_of(said) == words


HALF = "their sum is 0.2 times that of one device"
ONE = "only replica 0 has examples"
MARKS, COMPARED_WITH = (ONE, HALF, "the copies differ"), ("together", "sum", "same")


@pytest.mark.parametrize(
    "is_cut, marks, compared",
    [
        (False, MARKS, COMPARED_WITH),
        (True, ("", "", "the copies differ"), ("", "", "same")),
    ],
)
def test_in_a_step_that_a_failure_ends_only_what_all_came_to_is_compared(is_cut, marks, compared):
    """Replica 1 has no examples and no loss, and the copies of the variable differ, in each of two steps."""
    several, one = [], []
    for step in (1, 2):
        several += seen("examples", [[1]], step=step) + seen("loss", 1.0, step=step)
        one += seen("examples", [[1]], step=step) + seen("loss", 5.0, step=step)
        several += seen("variable", A, B, step=step)
        one += seen("variable", A, step=step)
    record = [*several, *ended("TypeError: no")], [*one, *ended("loss: 1")]
    whole, last = tables_of("train.py", *record, 2, is_cut=is_cut).steps
    assert tuple(row.mark for row in whole.rows) == MARKS
    assert tuple(row.mark for row in last.rows[:3]) == marks
    assert tuple(row.compared for row in last.rows[:3]) == compared
    assert last.rows[3].mark.startswith("it is “TypeError: no”"), "how it ends is always compared"


def test_where_a_failure_ends_the_first_step_early_there_may_be_none():
    assert tables_of("train.py", [], [], 2, is_cut=True).steps == ()


def test_what_all_replicas_hold_is_one_cell():
    several, one = seen("reported", 3.0, first=TOGETHER), seen("reported", 2.0, first=TOGETHER)
    page = html.page(tables(several, one))
    assert "<td colspan='2'>3</td>" in page.replace("\n", "")
