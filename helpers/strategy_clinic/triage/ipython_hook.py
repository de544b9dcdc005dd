"""The line below an uncaught exception in IPython that names its mode and notebook."""

import logging
from typing import Any

from ..base import files
from . import classify, exception_text, known_errors, wordings
from .answer_text import full_name, notebook_name

LOG = logging.getLogger(__name__)
LOG.addHandler(logging.NullHandler())  # quiet, unless a program asks


def register(shell: Any) -> None:
    """From now on an uncaught exception of a shell ends with the line; IPython registers a function once."""
    shell.events.register("post_run_cell", print_mode)


def unregister(shell: Any) -> None:
    shell.events.unregister("post_run_cell", print_mode)


def print_mode(result: Any) -> None:
    """Prints the line for a cell's exception; a failure of triage is logged, and the reader's error stays as it is."""
    error = result.error_in_exec or result.error_before_exec
    if isinstance(error, BaseException):
        try:
            line = line_for(error)
        except Exception as failure:
            LOG.warning("Triage cannot say which mode this error is of: %r", failure)
        else:
            if line:
                print(line)


def line_for(error: BaseException) -> str:
    answer = classify.triage(known_errors.with_installed(exception_text.text_of(error)))
    mode = answer.mode
    if mode is None:
        return known_errors.about(answer.candidates[0].error) if answer.candidates else ""
    title = wordings.declared_modes()[mode].title
    return f"{full_name(mode)}: {title}. See {files.shown_notebook(notebook_name(mode))}"
