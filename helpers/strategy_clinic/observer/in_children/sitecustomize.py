"""Starts the observer in each Python that an observed program starts: PYTHONPATH has this folder.

Any Python may read this file, also one that is too old for the observer.
"""

import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))


def start() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import spec_from_file_location

    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]
    place = os.path.join(PACKAGE, "__init__.py")
    execute(spec_from_file_location("strategy_clinic", place, submodule_search_locations=[PACKAGE]))
    from strategy_clinic.observer.main import observe_child

    observe_child()
    theirs = PathFinder.find_spec("sitecustomize", sys.path)
    if theirs is not None:
        execute(theirs)


def execute(spec: Any) -> None:
    """Imports a module from where a spec says, also one of a name that is being imported."""
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 9):  # noqa: UP036
    start()
