"""For pytest: `def test_training(examine): assert not examine("train.py", devices=(1, 2))`. Importing it costs nothing."""

import os
import sys
from pathlib import Path

import pytest

OPTIONS = ("keras", "python", "restart", "steps", "limit")  # as the command has them


@pytest.fixture(name="examine")
def examine_fixture(request):
    """Examines a program as `clinic examine` does. What it gives is true if something was found, and holds the findings.

    A program that fails in a way that is none of the modes fails the test, since nothing was shown of it.
    """

    def examine_program(*words, devices=(1, 2), folder=None, **options):
        from ..base.errors import UserError

        try:
            found = look_at(words, Path(folder or Path.cwd()).absolute(), devices, options)
        except UserError as reason:
            pytest.fail(str(reason), pytrace=False)
        request.node.add_report_section("call", "examine", found.report)
        return found

    return examine_program


def look_at(words: tuple, folder: Path, devices, options: dict):
    from ..base.errors import UserError
    from .frontends import in_process, program_input
    from .runs.sandbox import Case

    for name in set(options) - set(OPTIONS):
        raise UserError(f"examine knows {', '.join(OPTIONS)}, and not {name!r}.")
    restart = options.pop("restart", False)
    program = Case(tuple(map(os.fspath, words)), folder, **{"python": sys.executable} | options)
    found = program_input.examine_words_of(program, list(devices), restart, lambda line: None)
    if found.failure and not found.findings:
        said = f"{found.program} failed in a way that is none of the modes: {found.failure}"
        pytest.fail(said, pytrace=False)
    return in_process.Found(found)
