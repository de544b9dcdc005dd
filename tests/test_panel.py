"""The panel without a browser: its button is a plain function, so a click is a call."""

import jinja2
import pytest
from sessions import MODE
from strategy_clinic import Setup
from strategy_clinic.base import files, outcomes, templates
from strategy_clinic.modes.registry import mode_by_id
from strategy_clinic.panel import cards, figures, mode_finder, widgets
from strategy_clinic.programs.verdicts import Verdict
from strategy_clinic.session import Session
from strategy_clinic.setups import strategies
from test_inside import tables

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]


def panel_of(mode: str, setup: Setup) -> widgets.Panel:
    session = Session(mode_by_id(mode), setup)
    session.texts |= {each: files.program_text(mode, each) for each in ("broken", "fixed")}
    both = session.both()
    return widgets.Panel(
        session.mode, setup, both, lambda setup: session.run(both, [setup], again=True)
    )


@pytest.fixture
def made():
    return panel_of("fm25", Setup())


def test_the_tables_of_steps_follow_the_controls_once_for_each_choice():
    asked = []
    setup, both = Setup(), {"broken": "", "fixed": ""}
    texts = {each: files.program_text("fm37", each) for each in both}

    def look(subject, setup):
        asked.append((subject, str(setup)))
        return tables([], [])

    panel = widgets.Panel(mode_by_id("fm37"), setup, texts, lambda _: [], look)
    panel.controls["devices"].value = 4
    assert asked == []
    panel.steps.switch.value = True
    panel.controls["strategy"].value = "default"
    panel.controls["strategy"].value = "central_storage"
    setups = ["mirrored x4", "default x1", "central_storage x4"]
    assert asked == [("broken", f"{each}, saved as keras, Keras 3") for each in setups]


def test_only_a_page_that_shows_steps_has_them_in_its_panel(monkeypatch):
    given = []
    monkeypatch.setattr(widgets, "show_panel", lambda *parts: given.append(parts[-1]))
    session = Session(mode_by_id("fm25"), Setup())
    session.texts |= {each: files.program_text("fm25", each) for each in ("broken", "fixed")}
    monkeypatch.setattr(session, "run", lambda *_: [])
    session.panel()
    session.shows_inside = True
    session.panel()
    assert given[0] is None and given[1] == session._look


def click(made, **choices):
    for name, value in choices.items():
        made.controls[name].value = value
    made.button.click()
    return made.runs[-1]


def test_devices_go_back_and_forth(made):
    outcomes = [click(made, devices=count)[0].outcome for count in (2, 1, 8, 2)]
    assert outcomes == ["wrong", "works", "wrong", "wrong"]
    assert all(found[1].outcome == "works" for found in made.runs)
    assert made.history.value.count("<tr>") == 5
    assert "data-clinic-runs='4'" in made.status.value


def test_every_dropdown_matters(made):
    assert click(made, save_format="npz")[0].setup.save_format == "npz"
    assert click(made, strategy="default")[0].outcome == "works"
    assert made.controls["devices"].options == (1,)
    assert click(made, strategy="central_storage", devices=2)[0].outcome == "wrong"
    assert click(made, strategy="mirrored", keras=2)[0].setup.keras == 2
    assert made.runs[-1][0].outcome == "wrong"


def test_a_strategy_that_cannot_run_gives_its_reason(made):
    found = click(made, strategy="tpu")
    assert {each.outcome for each in found} == {"unavailable"}
    assert "cannot run on this machine" in made.card.value and "has no TPU" in made.card.value
    without_evidence(made)


def without_evidence(made):
    """What did not run has no evidence to name, and nothing to repair."""
    assert "none" not in made.card.value and "<b>Fix</b>" not in made.card.value
    assert ">none<" not in made.history.value


def test_a_setup_without_a_program_says_what_rules_it_out(made):
    click(made, save_format="saved_model")
    assert "unavailable: no program for this setup" in made.card.value
    sentence = "Not run with saved_model: the loaded object has functions to call, and no <code>fit"
    assert made.card.value.count(sentence) == 1
    without_evidence(made)


def test_only_a_failure_has_a_fix(made):
    click(made, devices=1)
    assert "works: no failure" in made.card.value and "<b>Fix</b>" not in made.card.value
    click(made, devices=2)
    assert "<b>Fix</b>: load and compile the model" in made.card.value


def test_a_tpu_that_is_described_is_called_emulated(made):
    found = click(made, strategy="tpu_traced")
    assert [each.outcome for each in found] == ["wrong", "works"]
    assert "(emulated)" in made.card.value and "executed" not in made.card.value


def test_the_card_and_the_figure_say_what_was_found(made):
    click(made)
    assert "data-clinic-outcome='wrong'" in made.card.value and "(executed)" in made.card.value
    assert (
        "<img alt=" in made.figure.value
        and "loaded, broken: kernel 0, bias 1: 1 copy" in made.figure.value
    )


def test_the_device_count_that_was_chosen_comes_back(made):
    made.controls["devices"].value = 4
    for strategy, count in {"central_storage": 4, "one_device": 1, "tpu_traced": 8}.items():
        made.controls["strategy"].value = strategy
        assert made.controls["devices"].value == count
    made.controls["strategy"].value = "mirrored"
    assert made.controls["devices"].value == 4


def test_one_device_is_not_kept_unless_it_was_chosen():
    made = panel_of("fm24", Setup("default", 1))
    made.controls["strategy"].value = "mirrored"
    assert made.controls["devices"].value == 2
    made.controls["devices"].value = 1
    made.controls["strategy"].value = "multi_worker"
    made.controls["strategy"].value = "mirrored"
    assert made.controls["devices"].value == 1


def test_nothing_is_said_of_saving_where_nothing_is_saved():
    made = panel_of("fm37", Setup())
    assert list(made.controls) == ["strategy", "devices", "keras"]
    click(made)
    shown = made.card.value + made.status.value + made.history.value
    assert "mirrored x2, Keras 3" in shown and "aved as" not in shown


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
    pages = [cards.card_html(made.mode, [evil, evil], EVIL), made.status.value]
    pages += [figures.Picture(b"", EVIL).as_html()]
    pages += [templates.from_template("panel/templates/note.html", note=EVIL)]
    for page in pages:
        assert "&lt;script&gt;" in page and "&lt;b&gt;" in page
        assert not any(sign in page for sign in ("<script", "' onload", "<b>`"))


def test_backticks_mark_code():
    page = templates.from_template("panel/templates/note.html", note="`a` and `<b>`, ` alone")
    assert "><code>a</code> and <code>&lt;b&gt;</code>, ` alone<" in page


def test_the_finder_shows_code_and_links_as_what_they_are():
    """Its rows are those of the modes with all words, and no row has the signs that mark code in a declaration."""
    _, found = mode_finder.narrow()
    assert "`" not in found.value and "<code>get_weights()</code>" in found.value
    assert found.value.count("text-decoration:underline") == found.value.count("<a ") > 50


def test_a_value_that_a_template_lacks_is_an_error():
    for name in ("panel/templates/status.html", "triage/templates/card.html"):
        with pytest.raises(jinja2.UndefinedError):
            templates.from_template(name, words="", state="")


def test_the_panel_shows_the_verdicts_of_its_page_before_the_first_run(made, monkeypatch):
    """They stand once: in the panel where widgets work, and in its place in viewers without them."""
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw=False: shown.append(data))
    verdicts = made.run(Setup())
    panel = widgets.show_panel(made.mode, made.texts, verdicts, made.run)
    (data,) = shown
    assert "application/vnd.jupyter.widget-view+json" in data
    for words in (data["text/plain"], data["text/html"], panel.card.value):
        assert "the failure shows, the fix works" in words
    assert "loaded, broken: kernel 0, bias 1: 1 copy" in data["text/plain"]
    assert data["text/html"].count("<img alt=") == panel.figure.value.count("<img alt=") == 1
    assert panel.history.value == "" and "data-clinic-runs='0'" in panel.status.value


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
