"""The panel without a browser: its button is a plain function, so a click is a call."""

import jinja2
import pytest
from sessions import MODE
from strategy_clinic import Setup
from strategy_clinic.base import files, outcomes, templates
from strategy_clinic.modes.registry import mode_by_id
from strategy_clinic.panel import cards, figures, widgets
from strategy_clinic.programs.verdicts import Verdict
from strategy_clinic.session import Session
from strategy_clinic.setups import strategies

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]


@pytest.fixture
def made():
    session = Session(mode_by_id("fm25"), Setup())
    session.texts |= {each: files.program_text("fm25", each) for each in ("broken", "fixed")}
    both = session.both()
    return widgets.Panel(
        session.mode, Setup(), both, lambda setup: session.run(both, [setup], again=True)
    )


def click(made, **choices):
    for name, value in choices.items():
        made.controls[name].value = value
    made.button.click()
    return made.runs[-1]


def test_devices_go_back_and_forth(made):
    outcomes = [click(made, devices=count)[0].outcome for count in (2, 4, 1, 8, 2)]
    assert outcomes == ["silent", "silent", "works", "silent", "silent"]
    assert all(found[1].outcome == "works" for found in made.runs)
    assert made.history.value.count("<tr>") == 6
    assert "data-clinic-runs='5'" in made.status.value


def test_every_dropdown_matters(made):
    assert click(made, save_format="npz")[0].setup.save_format == "npz"
    assert click(made, strategy="default")[0].outcome == "works"
    assert made.controls["devices"].options == (1,)
    assert click(made, strategy="central_storage", devices=2)[0].outcome == "silent"
    assert click(made, strategy="mirrored", keras=2)[0].setup.keras == 2
    assert made.runs[-1][0].outcome == "silent"


def test_a_strategy_that_cannot_run_gives_its_reason(made):
    found = click(made, strategy="tpu")
    assert {each.outcome for each in found} == {"unavailable"}
    assert "cannot run here" in made.card.value and "has no TPU" in made.card.value


def test_a_tpu_that_is_described_is_called_emulated(made):
    found = click(made, strategy="tpu_traced")
    assert [each.outcome for each in found] == ["silent", "works"]
    assert "(emulated)" in made.card.value and "executed" not in made.card.value


def test_the_card_and_the_figure_say_what_was_found(made):
    click(made)
    assert "data-clinic-outcome='silent'" in made.card.value and "(executed)" in made.card.value
    assert (
        "<img alt=" in made.figure.value
        and "loaded, broken: kernel 0, bias 1: 1 copy" in made.figure.value
    )


def test_switching_strategies_keeps_the_device_count_where_it_can(made):
    made.controls["devices"].value = 4
    made.controls["strategy"].value = "central_storage"
    assert made.controls["devices"].value == 4
    made.controls["strategy"].value = "one_device"
    assert made.controls["devices"].value == 1


def test_the_programs_are_those_of_the_chosen_setup(made):
    assert "MirroredStrategy([&#34;CPU:0&#34;, &#34;CPU:1&#34;])" in made.programs.value
    made.controls["strategy"].value = "central_storage"
    made.controls["devices"].value = 4
    made.controls["save_format"].value = "h5"
    shown = made.programs.value
    assert shown.count("[tf.config.LogicalDeviceConfiguration()] * 4)") == 2
    assert shown.count("CentralStorageStrategy(") == 2 and shown.count("model.h5") == 4
    assert shown.count(">Copy</button>") == 2
    made.controls["strategy"].value = "multi_worker"
    assert made.mode.unavailable["multi_worker"] in made.programs.value


def test_every_strategy_is_offered(made):
    assert list(made.controls["strategy"].options) == list(strategies.TABLE)


EVIL = "<script>alert('x')</script> ' onload='y' `<b>` \""


def test_what_an_error_says_is_escaped(made):
    evil = Verdict(EVIL, Setup(), "raises", "executed", EVIL, "ValueError")
    made.say(EVIL, "refused")
    pages = [cards.card_html(made.mode, [evil, evil]), made.status.value]
    pages += [figures.Picture(b"", EVIL).as_html()]
    pages += [templates.from_template("panel/templates/note.html", note=EVIL)]
    for page in pages:
        assert "&lt;script&gt;" in page and "&lt;b&gt;" in page
        assert not any(sign in page for sign in ("<script", "' onload", "<b>`"))


def test_backticks_mark_code():
    page = templates.from_template("panel/templates/note.html", note="`a` and `<b>`, ` alone")
    assert "><code>a</code> and <code>&lt;b&gt;</code>, ` alone<" in page


def test_a_value_that_a_template_lacks_is_an_error():
    for name in ("panel/templates/status.html", "triage/templates/card.html"):
        with pytest.raises(jinja2.UndefinedError):
            templates.from_template(name, words="", state="")


@pytest.mark.parametrize("look", outcomes.LOOKS.values(), ids=list(outcomes.LOOKS))
def test_words_in_the_colour_of_an_outcome_can_be_read(look):
    light, dark = brightness(look.light), brightness(look.dark)
    assert 1.05 / (light + 0.05) >= 4.5 and (dark + 0.05) / 0.05 >= 4.5


def brightness(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear))


def test_a_program_that_fails_ends_in_a_card():
    session, texts = Session(MODE, Setup("default", 1)), {"broken": "1 / 0", "fixed": "print(3)"}
    made = widgets.Panel(
        MODE, Setup("default", 1), texts, lambda setup: session.run(texts, [setup])
    )
    made.button.click()
    assert "division by zero" in made.card.value and not made.button.disabled
