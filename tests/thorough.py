"""Marks cases that `make nightly` runs and `make test` leaves out: each is slow.

Another case tests the same code, or none of the project's is tested: what TensorFlow and Keras do changes with their versions."""

from collections.abc import Iterable

import pytest


def thorough(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.thorough)


def mostly_thorough(cases: Iterable[object], *usual: object) -> list[object]:
    """Returns the cases, of which all but the usual ones are marked. Each usual one must be a case."""
    cases = list(cases)
    assert set(usual) <= set(cases), usual
    return [case if case in usual else thorough(case) for case in cases]
