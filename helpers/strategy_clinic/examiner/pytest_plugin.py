"""For pytest: `def test_training(clinic_examine): assert not clinic_examine("train.py")`. Importing it costs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .findings import Examination
    from .frontends.in_process import Findings

OPTIONS = (
    "keras",
    "python",
    "restart",
    "steps",
    "limit",
    "partly",
)  # mostly as the command has them


@pytest.fixture
def clinic_examine(request: pytest.FixtureRequest) -> Callable[..., Findings]:
    """Examines a program as `clinic examine` does, when it is called; returns findings, which are true if there are any.

    A program that fails in a way that is none of the modes fails the test, since nothing was shown of it. So does one of
    which nothing was found and not everything was seen, unless `partly=True` accepts that.
    """

    def examine(*arguments: str, devices: tuple[int, ...] = (1, 2), **options: Any) -> Findings:
        from ..base.errors import UserError

        try:
            findings = findings_in(arguments, devices, options)
        except UserError as reason:
            pytest.fail(str(reason), pytrace=False)
        request.node.add_report_section("call", "clinic examine", findings.report)
        return findings

    return examine


def findings_in(
    arguments: tuple[str, ...], devices: tuple[int, ...], options: dict[str, Any]
) -> Findings:
    from ..base.errors import UserError
    from .frontends.in_process import Findings
    from .frontends.program_input import with_notebook
    from .runs import plan
    from .runs.program_spec import ProgramSpec

    folder = Path(options.pop("folder", None) or Path.cwd()).absolute()
    for name in set(options) - set(OPTIONS):
        raise UserError(f"clinic_examine knows {', '.join(OPTIONS)}, and not {name!r}.")
    restart, partly = options.pop("restart", None), options.pop("partly", False)
    program = ProgramSpec(tuple(map(os.fspath, arguments)), folder, **options)
    examination = plan.examine(with_notebook(program), devices, restart)
    if reason := refusal(examination, partly):
        pytest.fail(f"{examination.program}: {reason}", pytrace=False)
    return Findings(examination)


def refusal(examination: Examination, partly: bool) -> str:
    """Returns why an examination without findings is no clean bill; an empty string if it is one."""
    from .report import text

    if examination.findings:
        return ""
    if examination.failure:
        return f"it failed in a way that is none of the modes: {text.failure_of(examination)}"
    if examination.unseen and not partly:
        return f"{text.nothing_found(examination)}: {'; '.join(examination.unseen)}"
    return ""
