"""Which parameters the panel and the site offer, and which value a control takes when another one changes."""

import pytest
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.panel import choices
from strategy_clinic.programs.switches import for_setup
from strategy_clinic.records import switches
from strategy_clinic.setups import formats, strategies
from strategy_clinic.setups.parameters import Setup


def programs(mode: str) -> dict[str, str]:
    return {subject: files.program_text(mode, subject) for subject in ("broken", "fixed")}


def saves(text: str) -> bool:
    """Whether a program calls what some format saves or loads with."""
    lines = [line for row in formats.ROWS for line in row.saving + row.loading]
    calls = {line.partition("= ")[2] or line for line in lines if "make_model" not in line}
    words = [call.split("(")[0].split(".")[-1] for call in calls]
    return any(f".{word}(" in text for word in words)


@pytest.mark.parametrize("mode", [mode.id for mode in registry.modes()])
def test_a_format_is_offered_where_a_program_saves(mode):
    texts = programs(mode)
    offered = choices.offered(texts)
    assert "save_format" not in offered or any(map(saves, texts.values()))
    for text in texts.values() if "save_format" not in offered else ():
        setups = [Setup(save_format=name) for name in formats.TABLE]
        assert len({for_setup(text, setup, "CPU") for setup in setups}) == 1


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("fm25", ("strategy", "devices", "save_format", "keras")),
        ("fm37", ("strategy", "devices", "keras")),
        ("fm27", ("save_format", "keras")),
        ("fm18", ("keras",)),
    ],
)
def test_what_changes_nothing_is_not_offered(mode, expected):
    assert choices.offered(programs(mode)) == expected


def test_the_setup_in_words_has_a_format_only_where_something_is_saved():
    assert choices.in_words(Setup(), ("strategy", "devices", "keras")) == "mirrored x2, Keras 3"
    assert choices.in_words(Setup(), ("save_format",)) == str(Setup())


@pytest.mark.parametrize(
    "strategy, wanted, count",
    [("mirrored", 4, 4), ("default", 4, 1), ("tpu_traced", 2, 8), ("tpu", 2, 8), ("tpu", 1, 1)]
    + [("multi_worker", 8, 2), ("multi_worker", 1, 2)],
)
def test_a_strategy_takes_the_number_that_is_wanted_or_the_next(strategy, wanted, count):
    assert choices.count_for(strategy, wanted) == count


def test_a_number_that_nobody_could_choose_is_not_wanted():
    assert choices.wanted_count(Setup("default", 1)) == choices.COUNT == 2
    assert choices.wanted_count(Setup("mirrored", 1)) == 1


def test_every_value_was_recorded_with_every_other():
    """The site relies on it: a value that a reader chooses changes no other but the number of devices."""
    for mode in registry.modes():
        setups = [verdict.setup for _, verdict in switches.recorded_setups(mode)]
        places = {(each.strategy, each.devices) for each in setups}
        others = {(each.save_format, each.keras) for each in setups}
        assert len(setups) == len(places) * len(others)
        for strategy in {name for name, _ in places if len(places) > 1}:
            counts = {count for name, count in places if name == strategy}
            assert counts == set(strategies.TABLE[strategy].counts)
