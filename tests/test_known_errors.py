"""Errors of single releases: which releases a text names, which are installed, and what is said of both."""

import importlib

import pytest
from conftest import ROOT
from strategy_clinic.base.errors import UserError
from strategy_clinic.triage import answer_text, classify, ipython_hook, known_errors, releases
from strategy_clinic.triage.report_text import flat

NAN = "the loss is nan after 60 batches with MirroredStrategy"


@pytest.mark.parametrize(
    "text, keras",
    [
        ("keras==3.8.0", ["3.8.0"]),
        ("Keras version: 3.8", ["3.8"]),
        ("`keras.__version__` is '3.8.0'", ["3.8.0"]),
        ("print(keras.__version__)\n3.8.0", ["3.8.0"]),
        ("- **Keras**: v3.8.0", ["3.8.0"]),
        ("| keras | 3.8.0 |", ["3.8.0"]),
        ('{"keras_version": "2.13.1"}', ["2.13.1"]),
        ("/usr/lib/python3.11/site-packages/keras-3.8.0.dist-info", ["3.8.0"]),
        ("worked with keras 3.6.0, fails with keras 3.7.0", ["3.6.0", "3.7.0"]),
        ("Keras bump 3.6 -> 3.7", []),
        ("upgraded keras (3.6.0 -> 3.8.0)", ["3.6.0", "3.8.0"]),
        ("from Keras 3.6 to 3.7, and then Keras 3.8", ["3.6", "3.7", "3.8"]),
        ("tf.keras 2.15.0", ["2.15.0"]),
        ("TensorFlow 2.13.0", ["2.13"]),
        ("TensorFlow version (use command below): v2.13.0-rc2 2.13.0", ["2.13"]),
        ("TF 2.15 and TF 2.16", []),
        ("tf-keras 2.16.0", []),
        ("Keras 3 on Python 3.11", []),
        ("keras/src/saving/saving_lib.py:456", []),
        ("/opt/keras/3.11/bin", ["3.11"]),
    ],
)
def test_releases_of_keras_that_a_text_names(text, keras):
    assert list(releases.named_in(flat(text))["keras"]) == keras


@pytest.mark.parametrize(
    "release, is_one",
    [("3.7.0", True), ("3.7", True), ("3.9.1", True), ("3.9", True), ("3.9.3", False)]
    + [("3.10.0", False), ("3.10", False), ("3.6.9", False), ("3.6", False), ("2.15.0", False)],
)
def test_a_release_is_compared_by_its_numbers(release, is_one):
    assert releases.Releases("keras", "3.7.0", "3.9.2").has(release) is is_one


def test_without_a_last_release_every_later_one_has_it():
    open_end = releases.Releases("keras", "3.0.0")
    assert open_end.has("3.15.1") and not open_end.has("2.15.0")
    assert str(open_end) == "Keras 3.0.0 and newer"


def lines(text: str) -> list[str]:
    return answer_text.lines_of(classify.triage(text))


def test_the_answer_has_releases_repair_and_issue():
    first, why, fix, see = lines(f"keras 3.8.0: {NAN}")
    assert first.endswith("no fault of your program") and "Keras 3.7.0 to 3.9.2" in why
    assert "install Keras 3.10.0 or newer" in fix
    assert see.strip() == "see https://github.com/keras-team/keras/issues/21467"


def test_a_description_is_less_sure_than_a_message():
    message = "AttributeError: 'ResourceVariable' object has no attribute 'path'"
    assert lines(f"keras 3.8.0: {NAN}")[0].endswith(": perhaps no fault of your program")
    assert lines(message)[0].endswith("): no fault of your program")


@pytest.mark.parametrize("where", ["keras 3.10.0: ", "keras 3.15.1: ", "", "TF 2.15: "])
def test_another_release_or_none_is_not_answered_so(where):
    assert not any("no fault" in line for line in lines(where + NAN))


def test_a_newer_release_has_the_mode_and_not_the_error():
    message = "ValueError: Layer 'lstm_cell' expected 3 variables, but received 0 variables during loading."
    assert classify.triage(message).candidates[0].error == "recurrent-in-bidirectional"
    assert classify.triage(f"keras 3.15.1\n{message}").mode == "fm06"


def test_a_mode_names_the_error_as_second_with_its_repair():
    text = "tensorflow 2.16.1\nValueError: Arguments target and output must have the same shape"
    assert classify.triage(text).mode is None
    both = "keras 3.6.0\nFileNotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ck"
    both += "\nAttributeError: 'x' object has no attribute 'overwrite_with_gradient'"
    said = lines(both)
    assert "  see https://github.com/keras-team/keras/issues/20517" in said


def test_a_program_gets_repair_and_issue_too():
    candidate = classify.triage(f"keras 3.8.0: {NAN}").as_dict()["candidates"][0]
    assert set(candidate) == {"mode", "score", "because", "error", "fix", "issue"}
    assert candidate["error"] == "metrics-summed" and candidate["issue"].endswith("/21467")


def test_the_site_lists_each_error_with_its_issues(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book" / "extensions")
    table = importlib.import_module("release_errors").tables()
    rows = [line for line in table.splitlines() if line.startswith(("| Keras", "| TensorFlow"))]
    assert len(rows) == len(known_errors.known_errors())
    assert all(row.count("|") == 6 and "](https://github.com/" in row for row in rows)


def test_the_card_links_the_issue():
    card = answer_text.card(classify.triage(f"keras 3.8.0 <b>: {NAN}"))
    assert "<a href='https://github.com/keras-team/keras/issues/21467'>" in card
    assert "<b>" not in card.partition("</style>")[2]


@pytest.fixture
def installed(monkeypatch):
    def install(**versions):
        monkeypatch.setattr(known_errors, "version_of", versions.get)

    return install


def test_what_is_installed_is_named_with_its_errors(installed):
    installed(keras="3.8.0", tensorflow="2.18.0")
    said = list(known_errors.about_installed())
    assert said[0].startswith("known error of Keras 3.8.0: `fit` under `MirroredStrategy` adds up")
    assert "install Keras 3.10.0 or newer" in said[0] and "issues/21467" in said[0]
    assert not any("_get_save_spec" in line or "TFLite converter" in line for line in said)


def test_a_development_version_and_nothing_are_no_problem(installed):
    installed(keras="3.16.0.dev2026102704")
    assert "list-named-layers" in known_errors.of_installed()
    installed()
    assert known_errors.of_installed() == {}


def test_an_exception_ends_with_the_error_of_the_installed_release(installed):
    error = AttributeError("'ResourceVariable' object has no attribute 'overwrite_with_gradient'")
    installed(keras="3.6.0")
    assert ipython_hook.line_for(error).startswith("No fault of your program: an error of Keras")
    installed(keras="3.15.1")
    assert ipython_hook.line_for(error) == ""


def test_a_table_that_is_not_as_described_is_one_sentence(monkeypatch):
    known_errors.known_errors.cache_clear()
    monkeypatch.setattr(known_errors.files, "toml", lambda text: {"error": [{"id": "x"}]})
    with pytest.raises(UserError, match="known_errors.toml cannot be read: 'package'"):
        known_errors.known_errors()
    known_errors.known_errors.cache_clear()
