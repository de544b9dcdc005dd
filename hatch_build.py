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
            build_data["force_include"] |= {
                str(Path(self.root, name)): f"strategy_clinic/shipped/{name}" for name in SHIPPED
            }
