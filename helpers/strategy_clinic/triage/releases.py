"""Ranges of releases of a package, and the releases that a text names."""

import functools
import re
from dataclasses import dataclass

PACKAGES = {"keras": "Keras", "tensorflow": "TensorFlow"}
SHORT_NAMES = {"tf": "tensorflow"}
WITH_KERAS_3 = (2, 16)  # the first TensorFlow whose `tf.keras` is Keras 3

# As in "keras==3.8.0", "Keras: v3.8", "`keras.__version__` is 3.8.0", "keras-3.8.0.dist-info", "keras 3.6 -> 3.8" and
# "TensorFlow version (use command below): 2.16.1". The text is flat: it has no capital letters and no quotes.
RELEASE = r"\d{1,2}\.\d{1,2}(?:\.\d{1,2})?(?!\w)"
NAMED = re.compile(
    r"\b(tf[-_]keras|keras|tensorflow|tf)(?:[-_](?:cpu|gpu|intel|macos))?"
    r"(?:\.?__version__|[ _]?versions?| ?release)?(?: \([^()]{1,40}\))?(?: is)?"
    rf"[ :=~<>|/_()-]{{1,4}}v?({RELEASE}(?:(?: ?->| ?→| to| and| or|,) ?v?{RELEASE})*)"
)

Release = tuple[int, ...]


@dataclass(frozen=True)
class Releases:
    package: str
    first: str
    last: str = ""  # empty if no later release is known to be another

    def __str__(self) -> str:
        name = PACKAGES[self.package]
        if not self.last:
            return f"{name} {self.first} and newer"
        return f"{name} {self.first}" + (f" to {self.last}" if self.last != self.first else "")

    def has(self, release: str) -> bool:
        """Returns whether a release is one of these; one such as 3.8 is, if a release of 3.8 is."""
        numbers = numbers_of(release)
        after = not self.last or numbers <= numbers_of(self.last)[: len(numbers)]
        return numbers_of(self.first)[: len(numbers)] <= numbers and after

    def in_text(self, text: str) -> bool | None:
        """Returns whether a flat text names one of these; None if it names no release of the package."""
        named = named_in(text).get(self.package, ())
        return any(map(self.has, named)) if named else None


def numbers_of(release: str) -> Release:
    """Returns the numbers that a version begins with: (3, 8, 0) of 3.8.0.dev1."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", release)[0])))


@functools.lru_cache(64)
def named_in(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the releases of each package that a flat text names, or that follow from those of TensorFlow."""
    named: dict[str, tuple[str, ...]] = {}
    for name, found in NAMED.findall(text):
        package = SHORT_NAMES.get(name, name)
        named[package] = *named.get(package, ()), *re.findall(RELEASE, found)
    return {"keras": keras_of(named.get("tensorflow", ()))} | named


def keras_of(tensorflow: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the releases of Keras 2, each of which came with the TensorFlow of its number; none if a later one is named."""
    is_keras_2 = all(numbers_of(release)[:2] < WITH_KERAS_3 for release in tensorflow)
    return tuple(".".join(release.split(".")[:2]) for release in tensorflow if is_keras_2)
