"""Imports that would take long for nothing."""

import contextlib
import sys
from collections.abc import Iterator

GRAMMARS = "rfc3987_syntax"


@contextlib.contextmanager
def without_grammars() -> Iterator[None]:
    """Lets nbformat and papermill be imported in 0.2 s instead of 1 s.

    What they import makes 38 grammars, where JupyterLab has installed them, for a kind of address that no notebook has.
    """
    hidden = GRAMMARS not in sys.modules
    if hidden:
        sys.modules[GRAMMARS] = None  # type: ignore[assignment] # as if it were not installed
    try:
        yield
    finally:
        if hidden:
            del sys.modules[GRAMMARS]
