"""Errors of single releases of Keras and TensorFlow, from `known_errors.toml`: no fault of a reader's program.

An [[error]] of that file has

    id        a name of its own
    title     what goes wrong, as a sentence without its full stop
    package   keras or tensorflow
    first     the first release that is known to have it,
    last      and the last one that is; absent if all later ones have it, too
    repaired  the first release that is right, if one is known
    instead   what to do without another release, if anything helps
    issues    public threads about it, such as keras-team/keras#21467
    proof     how it is known: one of PROOFS
    shown     what the run printed, or what the thread says
    wording   tables with `says`, `unless`, `proof` and `alone` as in `wordings.py`: how it shows in a pasted text. With
              `named` it counts only where the text names one of the releases; without, where it names no other one
"""

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base import files
from ..base.errors import UserError
from ..base.package_versions import version_of
from .releases import PACKAGES, Releases

FILE = "known_errors.toml"
NO_FAULT = "no fault of your program"
# How an error is known, and what a reader is told about that.
PROOFS = {
    "run": "seen in a run of that release",
    "lane": "seen in a run of a recorded version",
    "read": "read in the issue, and not run here",
}


@dataclass(frozen=True)
class KnownError:
    id: str
    title: str
    releases: Releases
    issues: tuple[str, ...]
    proof: str
    shown: str
    wordings: tuple[Mapping[str, Any], ...]
    repaired: str = ""
    instead: str = ""

    @property
    def kind(self) -> str:
        return f"an error of {self.releases}: {self.title}"

    @property
    def repair(self) -> str:
        """Returns what to do: another release, or what helps without one."""
        name = PACKAGES[self.releases.package]
        install = f"install {name} {self.repaired} or newer" if self.repaired else ""
        return ", or ".join(filter(None, [install, self.instead])) or "no repair is known"

    @property
    def url(self) -> str:
        return url_of(self.issues[0])


def url_of(issue: str) -> str:
    repository, _, number = issue.partition("#")
    return f"https://github.com/{repository}/issues/{number}"


@functools.cache
def known_errors() -> dict[str, KnownError]:
    """Returns all errors by their ids; raises UserError if the file is not as the docstring of this module describes it."""
    path = files.package() / "triage" / FILE
    try:
        read = [known_error(entry) for entry in files.toml(path.read_text())["error"]]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserError(f"triage/{FILE} cannot be read: {error}.") from None
    return {each.id: each for each in read}


def known_error(written: Mapping[str, Any]) -> KnownError:
    entry = dict(written)
    releases = Releases(entry.pop("package"), entry.pop("first"), entry.pop("last", ""))
    issues, worded = tuple(entry.pop("issues")), tuple(entry.pop("wording"))
    return KnownError(releases=releases, issues=issues, wordings=worded, **entry)


def installed() -> dict[str, str]:
    """Returns the version of each package that is installed."""
    found = {package: version_of(package) for package in PACKAGES}
    return {package: version for package, version in found.items() if version}


def with_installed(text: str) -> str:
    """Returns a text that comes from this environment, with its versions named above it."""
    named = [f"{package}=={version}\n" for package, version in installed().items()]
    return "".join([*named, text])


def of_installed() -> dict[str, KnownError]:
    """Returns the errors of the versions that are installed, by their ids."""
    versions = installed()
    return {
        name: each
        for name, each in known_errors().items()
        if (version := versions.get(each.releases.package)) and each.releases.has(version)
    }


def about(error: str) -> str:
    """Returns a sentence about an error, if a version that is installed has it; it begins as an answer of triage does."""
    found = of_installed().get(error)
    return f"{NO_FAULT.capitalize()}: {found.kind} ({found.repair}; {found.url})" if found else ""


def about_installed() -> Iterator[str]:
    """Yields a sentence for each error of the versions that are installed."""
    versions = installed()
    for each in of_installed().values():
        package = each.releases.package
        name = f"{PACKAGES[package]} {versions[package]}"
        yield f"known error of {name}: {each.title} ({each.repair}; {each.url})"
