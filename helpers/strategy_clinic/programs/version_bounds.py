"""Bounds of versions: a bound is a package and a release, such as "keras 3.16"."""

import re
from typing import Protocol

from packaging.version import Version

from ..base.errors import UserError, choose
from ..base.package_versions import version_of

PACKAGES = ("tensorflow", "keras", "tf_keras")


class Bounded(Protocol):
    """A declaration for the versions from `since` on and before `until`; an empty bound is none."""

    @property
    def since(self) -> str: ...
    @property
    def until(self) -> str: ...


def holds_here(declared: Bounded) -> bool:
    """Returns whether the versions of this environment are within the bounds."""
    return (not declared.since or is_reached(declared.since)) and not (
        declared.until and is_reached(declared.until)
    )


def is_reached(bound: str) -> bool:
    """Returns whether the version here is at least this one; a nightly counts as the release that it becomes."""
    package, version = bound.split()
    here = version_of(package)
    return here is not None and Version(Version(here).base_version) >= Version(version)


def bounds_in_words(declared: Bounded) -> str:
    """Returns the bounds that there are in words: 'since keras 3.14, until keras 3.16'."""
    bounds = {"since": declared.since, "until": declared.until}
    return ", ".join(f"{word} {bound}" for word, bound in bounds.items() if bound)


def check_bounds(mode: str, declared: Bounded) -> None:
    """Raises a UserError unless each bound is a known package and a release."""
    for bound in filter(None, (declared.since, declared.until)):
        package, _, version = bound.partition(" ")
        choose(f"package in a bound of {mode}", package, PACKAGES)
        if not re.fullmatch(r"\d+(\.\d+)+", version):
            raise UserError(
                f"{mode} has the bound {bound!r}; write a release, such as 'keras 3.16'."
            )
