"""What each rule is good for: python tools/ablation.py FOLDER ... replays the programs of folders with one rule after the
other left out.

Prints for each rule on how many programs it says anything, on how many the examiner says something else without it, and
what that does to the score: "+2 named" says that two faults more are named without the rule. See tools/score_folder.py for
the folders."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from recordings import NotRecorded
from score_folder import RECORDINGS, Score, Variant, scores_of, variants
from strategy_clinic.examiner.rule import ModeRules, mode_rules

Part = tuple[str, Any]  # a field of ModeRules, and a position or a key in it
Replaced = Callable[[Any, Callable[[], None]], Any]
MEASURES: dict[str, Callable[[Score], bool]] = {
    "named": lambda score: bool(score.named),
    "on the line": lambda score: score.on_line,
    "with a false finding": lambda score: bool(score.false),
}


# A rule that tells when it says something. Each takes the rule and what is called then.


def told_rule(rule: Any, used: Callable[[], None]) -> Any:
    def check(runs: Any) -> Iterator[Any]:
        steps, answer = rule.check(runs), None
        while True:
            try:
                step = next(steps) if answer is None else steps.send(answer)
            except StopIteration:
                return
            used()
            answer = yield step

    return replace(rule, check=check)


def told_blame(choose: Any, used: Callable[[], None]) -> Any:
    def chosen(recording: Any, stack: Any) -> Any:
        found = choose(recording, stack)
        if found and found != stack:
            used()
        return found

    return chosen


def told_reclassification(each: Any, used: Callable[[], None]) -> Any:
    def mode_of(recording: Any, mode: str, *others: Any) -> Any:
        found = each.mode_of(recording, mode, *others)
        if found != mode:
            used()
        return found

    return replace(each, mode_of=mode_of)


def told_if(field: str) -> Replaced:
    """Returns what makes a rule tell when a function of it, which is asked about something, says yes."""

    def told(each: Any, used: Callable[[], None]) -> Any:
        def asked(*about: Any) -> bool:
            found = bool(getattr(each, field)(*about))
            if found:
                used()
            return found

        return replace(each, **{field: asked})

    return told


FIELDS: Mapping[str, Replaced] = {
    "rules": told_rule,
    "blame": told_blame,
    "reclassifications": told_reclassification,
    "namings": told_if("fits"),
    "suspects": told_if("applies"),
}


def parts_of(rules: ModeRules) -> list[Part]:
    found: list[Part] = []
    for field in FIELDS:
        value = getattr(rules, field)
        found += [(field, key) for key in (value if field == "blame" else range(len(value)))]
    return found


def name_of(rules: ModeRules, part: Part) -> str:
    field, key = part
    each = getattr(rules, field)[key]
    inner = getattr(each, "check", getattr(each, "mode_of", getattr(each, "fits", each)))
    cells = getattr(inner, "__closure__", None) or ()
    functions = [cell.cell_contents for cell in cells if callable(cell.cell_contents)]
    function = (functions or [inner])[0]
    mode = key if field == "blame" else getattr(each, "mode", "")
    words = getattr(each, "words", None) or f"{getattr(function, '__name__', '')}"
    return f"{field:17} {mode or '':5} {words}"


@contextmanager
def told(rules: ModeRules, used: Callable[[Part], None]) -> Iterator[None]:
    """Lets every rule tell when it says something."""
    kept = {part: getattr(rules, part[0])[part[1]] for part in parts_of(rules)}
    for part, each in kept.items():
        getattr(rules, part[0])[part[1]] = FIELDS[part[0]](each, lambda part=part: used(part))
    try:
        yield
    finally:
        for (field, key), each in kept.items():
            getattr(rules, field)[key] = each


@contextmanager
def without(rules: ModeRules, part: Part) -> Iterator[None]:
    """Leaves out a rule; the others keep their order."""
    kept: Any = getattr(rules, part[0])
    before = kept.copy()
    del kept[part[1]]
    try:
        yield
    finally:
        kept.clear()
        kept.update(before) if isinstance(before, dict) else kept.extend(before)


def score_of(variant: Variant, folder: Path) -> Score | None:
    """Returns the replayed score; None if a run is asked for that was not recorded."""
    try:
        return next(scores_of([variant], RECORDINGS / folder.name, "replay", 1))
    except NotRecorded:
        return None


def said(score: Score | None) -> object:
    """Returns what is compared: the findings without their sentences, which may name another one."""
    return score and [(each.mode, Path(each.file).name, each.line) for each in score.findings]


def main(words: list[str]) -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    reader.add_argument("folders", type=Path, nargs="+")
    folders = reader.parse_args(words).folders
    rules = mode_rules()
    whole: dict[tuple[Variant, Path], Score | None] = {}
    uses: dict[Part, list[tuple[Variant, Path]]] = defaultdict(list)
    for folder in folders:
        for variant in variants(folder):
            found: set[Part] = set()
            with told(rules, found.add):
                whole[variant, folder] = score_of(variant, folder)
            for part in found:
                uses[part].append((variant, folder))
    for part in parts_of(rules):
        name = name_of(rules, part)
        print(f"{name:70} {ablated(rules, part, uses[part], whole)}", flush=True)
    return 0


def ablated(
    rules: ModeRules,
    part: Part,
    uses: list[tuple[Variant, Path]],
    whole: Mapping[tuple[Variant, Path], Score | None],
) -> str:
    """Returns in words what is different without a rule."""
    with without(rules, part):
        changed = [(whole[use], score_of(*use)) for use in uses]
    differ = [(old, new) for old, new in changed if said(old) != said(new)]
    counts = [
        f"{difference:+d} {name}"
        for name, measure in MEASURES.items()
        if (difference := sum(measure(new) - measure(old) for old, new in differ if old and new))
    ]
    unknown = sum(new is None for _, new in differ)
    counts += [f"{unknown} ask for other runs"] if unknown else []
    return f"says something of {len(uses):3}, matters for {len(differ):3}  {', '.join(counts)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
