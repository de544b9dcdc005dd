"""Draws programs as `clinic sweep --generate` does, and proves by the repairs in `upstream/repairs` which error each shows.

`python tools/prove_drawn.py MINUTES [--seed N]` prints for each smallest program the repairs with which it no longer differs,
made in a copy of the installed Keras: first that of the report of which its choices tell, and then halves of all repairs.
The exit status is 1 if the choices of a program tell of another report than its repair.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import prove_repairs
from prove_repairs import ROOT, NoRepair, Repair

sys.path.insert(0, str(ROOT / "helpers"))

from strategy_clinic.sweep.differences import DIFFERENT  # noqa: E402 - below the path that it is on
from strategy_clinic.sweep.generated import command  # noqa: E402
from strategy_clinic.sweep.generated.search import Finding, search  # noqa: E402
from strategy_clinic.sweep.generated.worker import worker  # noqa: E402

Differs = Callable[[list[Repair]], bool]  # whether a program differs as before, with these repairs


def with_repairs(finding: Finding, repairs: list[Repair]) -> bool:
    """Returns whether a program differs as before with a copy of Keras that has these repairs."""
    with tempfile.TemporaryDirectory() as folder:
        copy = prove_repairs.copied(prove_repairs.installed_keras(), Path(folder))
        prove_repairs.together(repairs).make(copy)
        paths = [copy.parent, ROOT / "helpers"]
        with worker({"PYTHONPATH": os.pathsep.join(map(str, paths))}) as asked:
            result = asked.result(finding.program)
    return result.outcome in DIFFERENT and result.in_turn == finding.result.in_turn


def proven(report: str, every: list[Repair], differs: Differs) -> list[Repair]:
    """Returns the repairs with which a program no longer differs, that of the report first; none if all together do not help."""
    told = [each for each in every if report in each.reports]
    if told and not differs(told):
        return told
    return [] if differs(every) else fewest(every, differs)


def fewest(some: list[Repair], differs: Differs) -> list[Repair]:
    """Returns one half of a half of some repairs, and so on, as long as that is enough."""
    middle = len(some) // 2
    halves = [some[:middle], some[middle:]] if middle else []
    enough = next((half for half in halves if not differs(half)), None)
    return fewest(enough, differs) if enough else some


def verdict(report: str, found: list[Repair]) -> tuple[str, bool]:
    """Returns what the proof of a program says, and whether that is what its choices tell of."""
    if not found:
        return "no repair takes the difference away", True
    names = ", ".join(each.name for each in found)
    is_told = any(report in each.reports for each in found)
    return f"no longer differs with {names}" + ("" if is_told else ": another error"), is_told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    every, told = [*prove_repairs.repairs().values()], list[bool]()

    def tell(finding: Finding) -> None:
        found = proven(finding.known, every, lambda some: with_repairs(finding, some))
        says, is_told = verdict(finding.known, found)
        print(f"{command.in_words(finding)}\n  {says}", flush=True)
        told.append(is_told)

    try:
        with worker() as asked:
            search(asked.result, options.minutes, options.seed, tell)
    except NoRepair as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(told) else 1


if __name__ == "__main__":
    sys.exit(main())
