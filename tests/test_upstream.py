"""The reports of errors in Keras and TensorFlow, in `upstream/`: what each has, and that each error shows on every lane."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import ROOT, changed
from law import all_tests_of, edit
from packaging import version
from strategy_clinic.base import files

HEADINGS = [
    "Current behavior",
    "Expected behavior",
    "Standalone code",
    "Output",
    "System information",
    "Cause",
    "Known issues",
]
MOST_LINES = 25  # of a program
LEAST_UNKNOWN = 10
RESULTS = {"wrong", "right", "not there"}
COMPARED = re.compile(r": got (.+), expected (.+)")
ROW = re.compile(
    r"^\| (\d[\w.-]*) \| (Keras|Keras 2: tf_keras) (\d[\w.]*) \| (.+) \|$", re.MULTILINE
)
SOURCE = re.compile(
    r"https://github\.com/(keras-team/keras|tensorflow/tensorflow)/blob/[0-9a-f]{40}/\S+#L\d+"
)


class Version(NamedTuple):
    keras_2: bool
    tensorflow: version.Version
    keras: version.Version

    def __str__(self) -> str:
        name = "tf_keras" if self.keras_2 else "Keras"
        return f"TensorFlow {self.tensorflow}, {name} {self.keras}"


def version_of(tensorflow: str, keras: str, keras_2: bool) -> Version:
    return Version(keras_2, version.parse(tensorflow), version.parse(keras))


def reports() -> list[Path]:
    return sorted(path for path in (files.ROOT / "upstream").glob("*.md") if path.stem != "README")


def sections(report: Path) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", report.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def block(text: str, language: str) -> str:
    """Returns the text of the only block in this language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


def result(output: str) -> str:
    """Returns whether a program's output shows the error: each line of it compares what is got with what is expected."""
    compared = [COMPARED.search(line) for line in output.splitlines()]
    if not compared or not all(compared):
        return "not there"
    return "wrong" if any(found[1] != found[2] for found in compared if found) else "right"


def declared(report: Path) -> dict[Version, str]:
    """Returns the result that a report gives for each version."""
    rows = ROW.findall(sections(report)["System information"])
    return {version_of(tf, keras, kind != "Keras"): is_ for tf, kind, keras, is_ in rows}


def newest(report: Path) -> Version:
    """Returns the newest released version that shows the error: the one whose output the report has."""
    shown = [each for each, is_ in declared(report).items() if is_ == "wrong" and not each.keras_2]
    return max(each for each in shown if not each.keras.is_prerelease)


def expected(report: Path, running: Version) -> str:
    """Returns the result that is declared for this version, or for the last one before it."""
    results = declared(report)
    same = sorted(each for each in results if each.keras_2 == running.keras_2)
    return results[max((each for each in same if each <= running), default=same[0])]


def law_programs() -> list[str]:
    """Each report has its program, word for word, of at most 25 lines; each program has its report."""
    programs = {path.stem for path in (files.ROOT / "upstream").glob("*.py")}
    problems = [
        f"{name}.py and {name}.md go together"
        for name in programs ^ {each.stem for each in reports()}
    ]
    for report in reports():
        if (program := report.with_suffix(".py")).exists():
            text = program.read_text()
            if len(text.splitlines()) > MOST_LINES:
                problems.append(f"{program.name} has more than {MOST_LINES} lines")
            if block(sections(report).get("Standalone code", ""), "python") != text:
                problems.append(f"{report.name} has another program than {program.name}")
    return problems


def law_sections() -> list[str]:
    """Each report has the same sections: what is got, on which versions, which line is the cause, and what was searched for."""
    problems = []
    for report in reports():
        found = sections(report)
        if list(found) != HEADINGS:
            problems.append(f"{report.name} has the sections {list(found)}")
            continue
        results = declared(report)
        output = block(found["Output"], "text")
        if result(output) != "wrong" or "wrong" not in results.values():
            problems.append(f"{report.name} shows nothing wrong")
        if set(results.values()) - RESULTS:
            problems.append(f"{report.name} has other results than {sorted(RESULTS)}")
        if not SOURCE.search(found["Cause"]):
            problems.append(f"{report.name} links no line of the source")
        if not re.search(r"^- \w.+", found["Known issues"], re.MULTILINE):
            problems.append(f"{report.name} does not say what was searched for")
    return problems


def law_unknown() -> list[str]:
    """At least ten of the reports are of errors for which no issue was found."""
    unknown = [
        each for each in reports() if sections(each)["Known issues"].strip().startswith("None")
    ]
    return (
        [] if len(unknown) >= LEAST_UNKNOWN else [f"{len(unknown)} reports are of unknown errors"]
    )


def replace_all(old: str, new: str):
    return lambda root: changed(root / f"{CLIPPING}.md", old, new)


def without_searches(report: Path):
    report.write_text(re.sub(r"^- .*\n", "", report.read_text(), flags=re.MULTILINE))


CLIPPING = "upstream/clipping_before_all_reduce"
MUTATIONS = [
    ("law_programs", lambda root: (root / f"{CLIPPING}.py").unlink()),
    ("law_programs", lambda root: (root / f"{CLIPPING}.md").unlink()),
    ("law_programs", edit(f"{CLIPPING}.py", "SGD(1.0,", "SGD(0.5,")),
    (
        "law_programs",
        edit(
            f"{CLIPPING}.py", "import tensorflow as tf\n", "import tensorflow as tf\n" + "\n" * 25
        ),
    ),
    ("law_sections", edit(f"{CLIPPING}.md", "## Cause", "## Source")),
    ("law_sections", replace_all("| wrong |", "| right |")),
    ("law_sections", replace_all("| wrong |", "| odd |")),
    ("law_sections", replace_all("got 0.1414", "got 0.1")),
    ("law_sections", edit(f"{CLIPPING}.md", "/3422977a", "/master/")),
    ("law_sections", lambda root: without_searches(root / f"{CLIPPING}.md")),
    (
        "law_unknown",
        lambda root: [
            each.write_text(each.read_text().replace("None", "Known")) for each in reports()
        ],
    ),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


@pytest.mark.parametrize(
    "output, is_",
    [
        ("a, norm: got 0.1414, expected 0.1\nb: got 1, expected 1\n", "wrong"),
        ("a: got 0.1, expected 0.1\nb: got [1, 2], expected [1, 2]\n", "right"),
        ("a: got nan, expected 1.0\n", "wrong"),
        ("a: got 1, expected 1\nAttributeError: no attribute 'b'\n", "not there"),
        ("", "not there"),
    ],
)
def test_result_of_an_output(output, is_):
    assert result(output) == is_


def surprises(ran: dict) -> list[str]:
    """Returns a sentence for each program whose output, on the versions that ran it, is not what its report says."""
    keras_2 = "tf_keras" in ran
    running = version_of(ran["tensorflow"], ran["tf_keras" if keras_2 else "keras"], keras_2)
    sentences = []
    for path, output in ran["outputs"].items():
        report = Path(path).with_suffix(".md")
        if (shown := result(output)) != expected(report, running):
            shows = {"wrong": "shows", "right": "no longer shows"}.get(shown, "cannot be run")
            change = f"{shows} on {running}: say so"
        elif running == newest(report) and output != block(sections(report)["Output"], "text"):
            change = f"prints something else on {running}: correct the output"
        else:
            continue
        sentences.append(f"{report.stem} {change} in upstream/{report.name}\n{output}")
    return sentences


RAN = {"tensorflow": "2.99.0", "keras": "3.99.0"}
REPAIRED, BROKEN = "a: got 0.1, expected 0.1\n", "a: got 0.2, expected 0.1\n"


def test_repaired_error_is_reported():
    path = str(ROOT / f"{CLIPPING}.py")
    (sentence,) = surprises(RAN | {"outputs": {path: REPAIRED}})
    assert sentence.startswith(
        "clipping_before_all_reduce no longer shows on TensorFlow 2.99.0, Keras 3.99.0: "
        "say so in upstream/clipping_before_all_reduce.md"
    )
    assert not surprises(RAN | {"outputs": {path: BROKEN}})


def test_error_that_returns_is_reported():
    path = str(ROOT / "upstream" / "zero_for_unconnected_gradients.py")
    (sentence,) = surprises(RAN | {"outputs": {path: BROKEN}})
    assert sentence.startswith("zero_for_unconnected_gradients shows on TensorFlow 2.99.0")
    assert not surprises(RAN | {"outputs": {path: REPAIRED}})


def test_program_that_cannot_be_run_is_reported():
    raised = {str(ROOT / f"{CLIPPING}.py"): "TypeError: no\n"}
    (sentence,) = surprises(RAN | {"outputs": raised})
    assert "cannot be run on TensorFlow 2.99.0" in sentence


def test_other_output_on_the_newest_version_is_reported():
    report = ROOT / f"{CLIPPING}.md"
    of = newest(report)
    ran = {"tensorflow": str(of.tensorflow), "keras": str(of.keras)}
    (sentence,) = surprises(ran | {"outputs": {str(report.with_suffix(".py")): BROKEN}})
    assert "prints something else" in sentence


@pytest.mark.parametrize(
    "tensorflow, keras, is_",
    [
        ("2.1.0", "3.0.0", "wrong"),  # older than all rows: as the first
        ("2.20.5", "3.14.0", "wrong"),
        ("2.21.0", "3.15.1", "wrong"),
        ("2.99.0-dev20990101", "3.99.0.dev2099010100", "right"),
    ],
)
def test_version_without_a_row_is_as_the_last_one_before_it(tensorflow, keras, is_):
    report = ROOT / "upstream" / "zero_for_unconnected_gradients.md"
    assert expected(report, version_of(tensorflow, keras, False)) == is_


def pythons() -> dict[str, str]:
    """Returns the Python of this environment and of each lane that is there."""
    lanes = sorted((ROOT / ".venv-lanes").glob("*/bin/python"))
    return {"this": sys.executable} | {lane.parts[-3]: str(lane) for lane in lanes}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("legacy", ["0", "1"], ids=["keras 3", "keras 2"])
@pytest.mark.parametrize("lane", pythons())
def test_errors_show_as_reported(lane, legacy):
    """A report is of what its program prints; if a program prints something else, the report is to be changed."""
    programs = [
        str(report.with_suffix(".py"))
        for report in reports()
        if legacy == "0" or any(each.keras_2 for each in declared(report))
    ]
    environment = os.environ | {"TF_USE_LEGACY_KERAS": legacy, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [pythons()[lane], str(ROOT / "tests" / "run_forked.py"), *programs]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    assert set(ran["outputs"]) == set(programs)
    assert not (sentences := surprises(ran)), "\n".join(sentences)
