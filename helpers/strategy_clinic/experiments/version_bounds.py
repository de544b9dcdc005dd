"""Lifetimes: from which version on something holds, and until which. A bound is a package and a version: "keras 3.16"."""

import re

from packaging.version import Version

from ..base.errors import UserError, choose
from ..base.package_versions import version_of

PACKAGES = ("tensorflow", "keras", "tf_keras")


def holds_here(what) -> bool:
    """Whether the versions here lie between `since`, which belongs to it, and `until`, which no longer does."""
    return (not what.since or is_reached(what.since)) and not (
        what.until and is_reached(what.until)
    )


def is_reached(bound: str) -> bool:
    """Whether the version here is at least this one; a nightly counts as the release that it is to become."""
    package, version = bound.split()
    here = version_of(package)
    return here is not None and Version(Version(here).base_version) >= Version(version)


def bounds_told(what) -> str:
    """'since keras 3.14, until keras 3.16', as far as there are bounds."""
    bounds = {"since": what.since, "until": what.until}
    return ", ".join(f"{word} {bound}" for word, bound in bounds.items() if bound)


def check_bounds(name: str, what):
    for bound in filter(None, (what.since, what.until)):
        package, _, version = bound.partition(" ")
        choose(f"package in a bound of {name}", package, PACKAGES)
        if not re.fullmatch(r"\d+(\.\d+)+", version):
            raise UserError(
                f"{name} has the bound {bound!r}; write a release, such as 'keras 3.16'."
            )
