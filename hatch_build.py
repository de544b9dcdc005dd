"""Adds the repository's notebooks and settings to a wheel, in the package's folder `shipped`; base/files.py knows both places.

An editable installation refers to this folder, so it gets no copies.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = ("notebooks", "README.md", "hatch_build.py", "pyproject.toml", "requirements.lock")


class Shipped(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            paths = [Path(self.root, name) for name in SHIPPED]
            build_data["force_include"] |= {
                str(path): f"strategy_clinic/shipped/{path.name}"
                for path in paths
                if path.exists()  # a handout for nbgrader has its notebooks elsewhere
            }
