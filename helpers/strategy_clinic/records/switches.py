"""The recorded verdicts of a mode, and its programs under every recorded setup, as data for a page without a kernel."""

import json
from dataclasses import dataclass, field
from typing import Any

from ..base import files
from ..base.outcomes import ROWS
from ..base.templates import from_template
from ..modes.failure_mode import FailureMode
from ..panel import choices
from ..panel.cards import headline_of, why_not
from ..panel.widgets import LABELS
from ..programs.text import FIXED, WRONG
from ..setups import runtime
from ..setups.parameters import Setup
from .store import Record, RecordedVerdict, stored_record

RECORDED = [f"cpu-keras{keras}" for keras in runtime.KERAS_VERSIONS]
SHOWN = ("broken", "fixed")


@dataclass
class Texts:
    """Texts, each once: a text that is added again has the number of the first one."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def recorded_setups(mode: FailureMode) -> list[tuple[Record, RecordedVerdict]]:
    """Returns each verdict that a plain machine has recorded of a mode, with its record."""
    records = [record for name in RECORDED if (record := stored_record(name))]
    return [(record, each) for record in records for each in record.of_mode(mode.id).values()]


def switch_data(mode: FailureMode, chosen: Setup) -> dict[str, Any]:
    """Returns what a page needs to show every recorded setup: programs are lists of the numbers of their lines."""
    programs = {subject: files.program_text(mode.id, subject) for subject in SHOWN}
    lines, texts, says, versions = Texts(), Texts(), Texts(), Texts()
    setups = []
    for record, verdict in recorded_setups(mode):
        numbers = [
            texts.number(choices.program_text(mode, verdict.setup, text, "CPU"))
            for text in programs.values()
        ]
        setups.append(
            {
                "setup": list(verdict.setup.as_dict().values()),
                "outcomes": [verdict.broken, verdict.fixed],
                "evidence": verdict.evidence,
                "headline": headline(mode, verdict),
                "says": says.number(says_of(mode, verdict)),
                "programs": numbers,
                "versions": versions.number(versions_in_words(record)),
            }
        )
    return {
        "mode": mode.name,
        "parameters": LABELS,
        "offered": choices.offered(programs),
        "count": choices.COUNT,
        "subjects": SHOWN,
        "icons": {row.name: row.icon for row in ROWS},
        "marks": (WRONG, FIXED),
        "chosen": list(chosen.as_dict().values()),
        "setups": setups,
        "programs": [[lines.number(line) for line in text.splitlines()] for text in texts.numbers],
        "lines": list(lines.numbers),
        "says": list(says.numbers),
        "prints": mode.prints,
        "versions": list(versions.numbers),
    }


def headline(mode: FailureMode, verdict: RecordedVerdict) -> str:
    outcomes = [verdict.broken, verdict.fixed]
    return headline_of(outcomes, verdict.agrees, mode.reason_against(verdict.setup))


def says_of(mode: FailureMode, verdict: RecordedVerdict) -> str:
    """Returns what the broken program says, or why it was not run."""
    missing = verdict.broken == "unavailable"
    return why_not(mode, verdict.setup, verdict.says) if missing else verdict.says


def versions_in_words(record: Record) -> str:
    keras = "tf_keras" if record.runtime.endswith("2") else "Keras"
    versions = record.versions
    return f"TensorFlow {versions['tensorflow']} and {keras} {versions[keras.lower()]} on a CPU, {record.date}"


def switch_html(mode: FailureMode, chosen: Setup) -> str:
    """Returns the controls and their data; a script of the site shows the chosen setup."""
    text = json.dumps(switch_data(mode, chosen), ensure_ascii=False, separators=(",", ":"))
    # In a script element nothing but "<" could end the data.
    return from_template("records/templates/switches.html", data=text.replace("<", "\\u003c"))
