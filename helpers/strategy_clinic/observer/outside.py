"""Lets nothing outside of the program's folder change: what the program writes there goes to a view of its own, or is refused.

For systems that permit no mount namespace. Without a view, nothing is redirected and nothing is refused.
"""

from __future__ import annotations

from .context import Context
from .python_paths import PythonPaths
from .redirection import Redirection
from .refusals import Refusals
from .tensorflow_paths import TensorFlowPaths
from .view import View


class Outside:
    def __init__(self, context: Context) -> None:
        settings = context.settings
        self.is_on = bool(settings.view)
        redirection = Redirection(View(settings.view, settings.own))
        self.python, self.tensorflow = PythonPaths(redirection), TensorFlowPaths(redirection)
        self.refusals = Refusals(context, redirection)

    def start(self) -> None:
        """Is called before the program begins, in the only thread that there is."""
        if self.is_on:
            self.python.start()
            self.refusals.start()

    def watch_sqlite(self) -> None:
        if self.is_on:
            self.python.watch_sqlite()

    def watch_h5py(self) -> None:
        if self.is_on:
            self.python.watch_h5py()

    def watch_tensorflow(self) -> None:
        if self.is_on:
            self.tensorflow.watch()

    def exception_raised(self, error: BaseException) -> None:
        if self.is_on:
            self.refusals.exception_raised(error)
