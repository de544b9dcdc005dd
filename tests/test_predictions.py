"""What readers predict, compared with tables that are written here and with a run."""

import numpy as np
import pytest
from strategy_clinic import prediction
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.inside.record import END, TOGETHER, Seen
from strategy_clinic.inside.values import value_of_words
from strategy_clinic.panel.predictions import NOBODY, Fields, Predictions
from test_inside import A, seen, tables


def of_losses():
    """A step in which the losses do not add up, and the bias differs."""
    several = [*seen("loss", 1.0, 0.5, name="loss"), *seen("gradient", A, A)]
    several += seen("variable", 0.2, 0.2, name="bias")
    one = [*seen("loss", 1.0, name="loss"), *seen("gradient", 2 * A)]
    return tables(several, [*one, *seen("variable", 0.1, name="bias")])


def of_parts():
    several = seen("examples", [[1.0]] * 3, name="argument 1")
    return tables(several, seen("examples", [[1.0]] * 3, name="argument 1"))


def test_each_column_of_the_first_and_the_last_row_is_asked_about():
    questions = Predictions(of_losses()).questions
    assert [each.held for each in questions] == [1.0, 0.5, 1.0, 0.2, 0.2, 0.1]
    assert questions[1].words == "Which number does replica 1 hold in step 1 (loss: loss)?"
    assert "one device" in questions[2].words and "bias" in questions[3].words


def test_a_replica_without_examples_gets_none():
    assert [each.held for each in Predictions(of_parts()).questions] == [3.0, 0.0, 3.0]


def test_where_only_the_end_differs_the_other_rows_are_asked_about():
    end = Seen(END, 0, "end", "printed last, or raised", TOGETHER, value_of_words("a"))
    other = Seen(END, 0, "end", "printed last, or raised", TOGETHER, value_of_words("b"))
    several = [*seen("start", 1.0, 1.0), *seen("returned", 0.5, 0.25), end]
    shown = tables(several, [*seen("start", 1.0), *seen("returned", 0.75), other])
    assert shown.first[1].stage.key == "end"
    assert [each.held for each in Predictions(shown).questions] == [0.5, 0.25, 0.75]


def test_a_replica_without_a_copy_is_not_asked_about():
    shown = tables(seen("state", 2.0), seen("state", 1.0))
    assert [each.held for each in Predictions(shown).questions] == [2.0, 1.0]
    assert all("replica 1" not in each.words for each in Predictions(shown).questions)


def test_two_arguments_with_as_many_examples_are_asked_about_once():
    several = [
        *seen("examples", [[1.0]] * 3, name="argument 1"),
        *seen("examples", [1.0] * 3, name="argument 2"),
    ]
    one = [
        *seen("examples", [[1.0]] * 3, name="argument 1"),
        *seen("examples", [1.0] * 3, name="argument 2"),
    ]
    assert len(Predictions(tables(several, one)).questions) == 3


def test_what_is_predicted_is_compared_with_the_run():
    lines = Predictions(of_losses()).compared(["1", "1", "0.995", "", "0.19"]).splitlines()
    ends = [line.partition("? ")[2] for line in lines]
    assert ends == [
        "You predicted 1: as in the run.",
        "You predicted 1: the run holds 0.5.",
        "You predicted 0.995: as in the run.",
        "The run holds 0.2.",
        "You predicted 0.19: the run holds 0.2.",
        "The run holds 0.1.",
    ]


def test_the_numbers_of_the_run_are_not_shown_before_anybody_has_predicted():
    asked = Predictions(of_losses())
    assert asked.compared(["", " "]) == NOBODY
    assert "0.5" not in asked.asked() and "0.2" not in asked.asked()


BAD = [
    (["a half"], "'a half' is no number. Write one number for each question"),
    (["1"] * 7, "There are 6 questions and 7 answers"),
]


@pytest.mark.parametrize("answers, words", BAD)
def test_answers_that_cannot_be_read_get_one_sentence(answers, words):
    with pytest.raises(UserError, match=words):
        Predictions(of_losses()).compared(answers)


def test_what_is_shown_after_an_answer_has_the_legend():
    shown = Predictions(of_losses()).shown()
    assert "≠  loss: loss" in shown and shown.splitlines()[-2].startswith("sum: ")


def test_a_run_of_which_nothing_can_be_asked_is_refused():
    with pytest.raises(UserError, match="no step was seen"):
        Predictions(tables([], []))
    large = tables(seen("variable", np.ones(9), np.ones(9)), seen("variable", np.ones(9)))
    with pytest.raises(UserError, match="Nothing can be asked"):
        Predictions(large)


def test_the_fields_show_the_step_after_an_answer_and_not_before():
    fields = Fields(Predictions(of_losses()))
    fields.click()
    assert "Nobody has predicted" in fields.status.value and fields.view.value == ""
    fields.answers[1].value = "0.5"
    fields.click()
    assert "as in the run" in fields.status.value and "step 1</caption>" in fields.view.value
    fields.answers[1].value = "<b>"
    fields.click()
    assert "&lt;b&gt;" in fields.status.value and fields.view.value == ""


def test_a_program_is_asked_about_without_what_is_said_of_its_lines():
    plain = prediction.without_remarks(files.program_text("fm37", "broken"))
    assert "wrong" not in plain and "loss = tf.reduce_mean(errors)\n" in plain


@pytest.mark.slow
def test_the_questions_of_a_mode_are_about_its_run(capsys):
    page = prediction.ask("fm37", 2, 3)
    assert [each.held for each in page.questions[:3]] == [1.0, 1.0, 1.0]
    assert [round(each.held, 3) for each in page.questions[3:]] == [0.2, 0.2, 0.1]
    page.compare("1, 0.5, 1")
    printed = capsys.readouterr().out
    assert printed.count("as in the run") == 2 and "≠  loss: loss" in printed
