"""The notebook that checks the runtime it is open on: a real check in a process of its own, and a record to take away."""

import base64
import re

import pytest
from conftest import changed
from strategy_clinic import Setup
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.records import runtime_check, store
from strategy_clinic.setups import runtime

pytestmark = pytest.mark.slow


def test_a_check_says_what_it_finds_and_gives_its_record(capsys):
    record = runtime_check.run("fm28", 3)
    said = capsys.readouterr().out
    assert "[1/1] fm28: 1 setup" in said and "every output and every verdict is as stored" in said
    assert not re.search(r"\d\.\d+s|\x1b", said)
    assert list(record.modes) == ["fm28"] and len(record.verdicts) == 1
    assert record.versions == runtime.versions()


def test_a_difference_is_shown_and_still_kept(project, monkeypatch, capsys):
    changed(project / "notebooks/fm28_ragged_weights_file.ipynb", "FM28 fixed (", "FM28 mended (")
    record = runtime_check.run("fm28", 3)
    assert "stored outputs differ" in capsys.readouterr().out and len(record.verdicts) == 1


def test_the_link_holds_the_record():
    setup = Setup("mirrored", 2).as_dict()
    values = {"broken": "raises", "fixed": "works", "evidence": "executed", "says": "<b>ü</b>"}
    verdict = store.RecordedVerdict("fm01", **setup, agrees=True, **values)
    modes = {"fm01": store.RecordedMode("0")}
    record = store.Record("gpu-keras3", "2026-01-01", {}, modes, [verdict])
    shown = runtime_check.offer(record)
    data = re.search(r"base64,([^\"]+)\"", shown._repr_html_()).group(1)
    assert store.parse_record(base64.b64decode(data).decode()) == record
    assert repr(shown) == "gpu-keras3.json: verdicts: 1, modes: 1"
    with pytest.raises(UserError, match="nothing to download"):
        runtime_check.offer(None)


@pytest.mark.parametrize("modes", ["--save /tmp", "fm01; ls", "../fm01"])
def test_modes_are_names(modes):
    with pytest.raises(UserError, match="give ids"):
        runtime_check.chosen(modes)


def test_the_word_all_and_commas():
    assert runtime_check.chosen("all") == []
    assert runtime_check.chosen("fm01, fm25") == ["fm01", "fm25"]


def test_packages_are_installed_on_hosted_machines_only(monkeypatch):
    monkeypatch.setattr(runtime_check, "NEEDED", ("a_package_of_nobody",))
    monkeypatch.setattr(runtime, "host", lambda: "local")
    with pytest.raises(UserError, match="pip install a_package_of_nobody"):
        runtime_check.run("fm16", 3)


def test_an_installation_that_fails_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime_check, "NEEDED", ("a_package_of_nobody",))
    monkeypatch.setattr(runtime, "host", lambda: "colab")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UserError, match="could not be installed: "):
        runtime_check.run("fm16", 3)


def test_the_notebook_is_stored_with_its_result():
    text = (files.notebooks() / "check_this_runtime.ipynb").read_text()
    assert (
        "every output and every verdict is as stored" in text and "verdicts: 15, modes: 1" in text
    )
