"""Runs of a program as the examiner has them: what was observed in each, and what rules make of it."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Observation:
    """One run of the program: the facts in their order, and how it ended."""

    role: str  # watched, again, compared, stopped or restarted
    devices: int
    facts: tuple[dict, ...] = ()
    keras: int | None = None
    status: int = 0
    ended: str = "finished"
    output: str = ""
    seconds: float = 0.0

    def of(self, kind: str) -> list[dict]:
        return [each for each in self.facts if each["fact"] == kind]

    def last(self, kind: str) -> dict:
        return next(iter(self.of(kind)[::-1]), {})

    def but(self, **changes) -> "Observation":
        return replace(self, **changes)

    def also(self, *facts: dict) -> "Observation":
        return self.but(facts=(*self.facts, *facts))

    def variable(self, number: int) -> dict:
        return next((each for each in self.of("variable") if each["number"] == number), {})

    def is_spread(self, number: int) -> bool:
        """Whether replicas share a variable: each has a copy, or all read a central one."""
        central = any(each["number"] == number for each in self.of("central"))
        return central or self.variable(number).get("copies", 0) > 1

    def replicas(self) -> int:
        return max((each["replicas"] for each in self.of("strategy")), default=1)

    def processes(self) -> int:
        """Over which the replicas are spread, each process seeing its own part of a batch."""
        parts = max((len(each["sizes"]) for each in self.of("batch")), default=0)
        return max(1, self.replicas() // parts) if parts else 1

    def as_dict(self) -> dict:
        seconds = round(self.seconds, 1)
        told = {"devices": self.devices, "keras": self.keras, "ended": self.ended}
        return told | {"seconds": seconds}


@dataclass(frozen=True)
class Finding:
    """A mode that a run has shown, with the line to blame and what proves it."""

    mode: str
    at: tuple  # frames of the program's own files, the one to blame first
    says: str
    proof: str  # observed, compared or raised, with what it was
    devices: tuple[int, ...] = ()
    cell: int = 0  # of a notebook, in which the line is counted
    code: str = ""  # of a line that no file holds any more

    @property
    def file(self) -> str:
        return self.at[0][0] if self.at else ""

    @property
    def line(self) -> int:
        return self.at[0][1] if self.at else 0


@dataclass
class Examination:
    """All that came of it."""

    program: str
    runs: list[Observation] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what could not be compared, and why
    failure: str = ""  # of a program that fails in a way that is none of the modes
    stopped: bool = False  # by Ctrl-C, so that not all is known


def read_facts(path: Path) -> tuple[dict, ...]:
    """What was written, up to a line that a crash has cut off."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return tuple(found)


def troubles_of(runs: list[Observation]) -> tuple[str, ...]:
    """What the observer could not see, since it met something that it does not know."""
    found = [f"{each['where']}: {each['says']}" for run in runs for each in run.of("trouble")]
    return tuple(dict.fromkeys(found))
