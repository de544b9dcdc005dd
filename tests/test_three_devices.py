"""The repaired programs and the solutions on three devices, which share no batch of eight evenly.

`fit` of Keras 3 refuses such a batch, so each program gets its data three times: see `tripled.py`.
"""

import dataclasses
import re
from unittest import mock

import numpy as np
import pytest
from conftest import ROOT
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.programs.run import Job, run_programs
from strategy_clinic.setups import strategies
from strategy_clinic.setups.parameters import Setup
from test_mode_programs import own_setup
from thorough import thorough

TRIPLED = (ROOT / "tests" / "tripled.py").read_text()
SUBJECTS = "fixed", "solution"
COUNTS = 1, 3
NUMBER = re.compile(r"\d+\.?\d*(?:e-?\d+)?")
# What is another one on three devices. The page of each names the numbers of devices for which it holds.
OTHERS = {("fm21", "fixed"), ("fm21", "solution"), ("fm23", "solution"), ("fm38", "solution")}


def programs() -> dict[tuple[str, str], str]:
    """Returns the programs that are run: those of pages that need neither several processes nor a TPU."""
    return {
        (mode.id, subject): TRIPLED + files.program_text(mode.id, subject)
        for mode in registry.modes()
        if own_setup(mode.id).strategy in ("default", "mirrored")
        for subject in SUBJECTS
    }


def printed(texts: list[str], count: int, keras: int) -> list[str]:
    """Returns what each program prints on so many devices, or its error."""
    row = strategies.TABLE["mirrored"]
    with mock.patch.dict(strategies.TABLE, mirrored=dataclasses.replace(row, counts=COUNTS)):
        setup = Setup("mirrored", count, keras=keras)
        runs = run_programs([Job(text, setup) for text in texts])
    return [repr(run.error) if run.error else run.printed for run in runs]


def nearly_equal(one: str, other: str) -> bool:
    """Returns whether two texts differ in the last digits of numbers only."""
    pair = [[float(each) for each in NUMBER.findall(text)] for text in (one, other)]
    words = [NUMBER.sub("", text) for text in (one, other)]
    return words[0] == words[1] and np.allclose(*pair, rtol=1e-5)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("bias: [0.5]", "bias: [0.49999997]", True),
        ("bias: [0.5]", "bias: [0.51]", False),
        ("bias: [0.5]", "kernel: [0.5]", False),
    ],
)
def test_only_last_digits_may_differ(one, other, equal):
    assert nearly_equal(one, other) == equal


@pytest.mark.slow
@pytest.mark.parametrize("keras", [thorough(3), thorough(2)])
def test_repaired_programs_and_solutions_are_right_on_three_devices(keras):
    texts = programs()
    results = [printed(list(texts.values()), count, keras) for count in COUNTS]
    differ = {key: pair for key, *pair in zip(texts, *results) if not nearly_equal(*pair)}
    assert differ.keys() == OTHERS, differ
