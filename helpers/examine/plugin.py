"""For pytest: `def test_training(examine): assert not examine("train.py", devices=(1, 2))`. Importing it costs nothing."""

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(name="examine")
def examine_fixture(request):
    """Examines a program as `clinic examine` does. What it gives is true if something was found, and holds the findings.

    A program that fails in a way that is none of the modes fails the test, since nothing was shown of it.
    """

    def examine_program(*words, devices=(1, 2), folder=None, **options):
        from ..base.refusals import Refused

        try:
            found = look_at(words, Path(folder or Path.cwd()).absolute(), devices, options)
        except Refused as reason:
            pytest.fail(str(reason), pytrace=False)
        request.node.add_report_section("call", "examine", found.report)
        return found

    return examine_program


def look_at(words: tuple, folder: Path, devices, options: dict):
    """Options are those of the command: keras, python, restart, steps, limit."""
    from . import brought, inside
    from .launch import Case

    restart = options.pop("restart", False)
    named = {"python": sys.executable} | options
    try:
        program = Case(tuple(map(os.fspath, words)), folder, **named)
    except TypeError:
        pytest.fail(
            f"examine knows keras, python, restart, steps, limit, and not {sorted(options)}."
        )
    found = brought.examine_words_of(program, list(devices), restart, lambda line: None)
    if found.failure and not found.findings:
        said = f"{found.program} failed in a way that is none of the modes: {found.failure}"
        pytest.fail(said, pytrace=False)
    return inside.Found(found)
