"""The clinic under a name that no project of yours has: `%load_ext strategy_clinic`, whatever `helpers` is there."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_folder = Path(__file__).with_name("helpers")
_spec = spec_from_file_location(
    __name__, _folder / "__init__.py", submodule_search_locations=[str(_folder)]
)
sys.modules[__name__] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[__name__])
