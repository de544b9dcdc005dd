"""Programs made from others by edits: what the examiner finds in them, and the repairs that it writes."""

import textwrap

from recorded import stack
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.examiner.repair import written_repairs
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process


def edited(text, edits):
    """Replaces texts, each of which the program contains once."""
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def examined(folder, text, keras=3) -> Examination:
    """Examines a program on this version of Keras in a folder, which it is written to."""
    (folder / "train.py").write_text(text)
    server = python_process.fork_server()
    return plan.examine(ProgramSpec(("train.py",), folder, keras=keras, fork_server=server))


def repaired(mode, head, text, line):
    """Returns what the repairs of a mode make of a text below the imports in `head`, for a finding on a line of both."""
    finding = Finding(mode, Location(stack("a.py", line)), Evidence.OBSERVED, Text(""), Text(""))
    found = written_repairs(finding, line, head + textwrap.dedent(text))
    return [each.after.removeprefix(head) for each in found]
