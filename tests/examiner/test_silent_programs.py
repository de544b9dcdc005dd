"""The examiner on programs that lose a value without an error, and on right programs that look like them.

silent_programs.txt has them, divided by lines such as `### fm08 name` or `### right name`. Lines marked `# wrong` may be blamed.
"""

import re
from pathlib import Path

import pytest
from strategy_clinic.examiner.recording import observer_failures
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

pytestmark = pytest.mark.replayed

TEXT = Path(__file__).with_name("silent_programs.txt").read_text()
PROGRAMS = dict(part.split("\n", 1) for part in re.split("(?m)^### ", TEXT)[1:])


def examined(text, folder, keras):
    (folder / "train.py").write_text(text)
    fork_server = python_process.fork_server()
    return plan.examine(
        ProgramSpec(("train.py",), folder, keras=keras, limit=120, fork_server=fork_server), [1]
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_found(name, tmp_path):
    keras = 2 if name.endswith("Keras 2") else 3
    examination = examined(PROGRAMS[name], tmp_path, keras)
    assert observer_failures(examination.recordings) == ()
    assert examination.recordings[0].finished
    found = {(finding.mode, finding.line) for finding in examination.findings}
    lines = PROGRAMS[name].splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    mode = name.split()[0]
    assert {each for each, _ in found} == ({mode} if wrong else set())
    assert {line for _, line in found} <= wrong
