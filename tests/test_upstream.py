"""The reports of errors in Keras and TensorFlow, in `upstream/`: what each has, that each error shows, and its repair."""

import ast
import importlib.metadata
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import prove_repairs
import pytest
from conftest import ROOT, changed
from law import all_tests_of, edit
from packaging import version
from strategy_clinic.base import files

HEADINGS = [
    "Current behavior",
    "Expected behavior",
    "Documentation",
    "Standalone code",
    "Output",
    "Cause",
    "Since",
    "Repair",
    "Size",
    "What may be answered",
]
FAIRNESS = ("Documentation", "Size", "What may be answered")
MEASURED = "tools/measure_sizes.py"
# Their sizes depend on what runs at the same time, so that they are not the same again.
VARYING = {
    "distributed_generator_overwrites_arrays",
    "generator_loses_batches",
    "iterator_deletion_waits",
}
# What an object of the package says, in its docstring.
QUOTED = re.compile(r"^(?:and )?`([\w.]+)`(?: says)?:\n\n((?:>.*\n)+)", re.MULTILINE)
SIZE = re.compile(
    r"^(\d devices?, .+): got (\S+)(?: ± \S+)?, right (\S+?)(?: ± [^\s:]+)?(?:: (\S+)(?: ± \S+)? %)?$",
    re.MULTILINE,
)
MOST_LINES = 30  # of a program
SHOWN_ON = ("2.21.0", "3.15.1")  # whose output the reports have, and whose Keras the repairs change
RESULTS = {"wrong", "right", "not there"}
COMPARED = re.compile(r": got (.+), expected (.+)")
SOURCE = re.compile(
    r"https://github\.com/(keras-team/keras|tensorflow/tensorflow)/blob/[0-9a-f]{40}/\S+"
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
    return sorted((files.ROOT / "upstream").glob("*.md"))


def tables() -> dict[str, dict]:
    """Returns what is known of each report besides its text."""
    return tomllib.loads((files.ROOT / "upstream" / "reports.toml").read_text())


def repairs() -> dict[str, prove_repairs.Repair]:
    return prove_repairs.repairs(files.ROOT / "upstream" / "repairs")


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
    """Returns the result of each version that changed it."""
    table = tables()[report.stem]
    return {
        version_of(tensorflow, keras, column == "keras_2"): is_
        for column in ("keras_3", "keras_2")
        for tensorflow, keras, is_ in table.get(column, ())
    }


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
    """Each report has the same sections: what is got and expected, which line is the cause, since when, and the repair."""
    problems = []
    for report in reports():
        found = sections(report)
        if list(found) != HEADINGS:
            problems.append(f"{report.name} has the sections {list(found)}")
        elif result(block(found["Output"], "text")) != "wrong":
            problems.append(f"{report.name} shows nothing wrong")
        elif not SOURCE.search(found["Cause"]):
            problems.append(f"{report.name} links no file of the source")
    return problems


def law_fairness() -> list[str]:
    """Each report has what is documented, its size on ordinary data, and an answer that a maintainer may give."""
    measured = set(re.findall(r"^@case\(.*?^def (\w+)", (ROOT / MEASURED).read_text(), re.M | re.S))
    problems = [
        f"{report.stem} is not measured" for report in reports() if report.stem not in measured
    ]
    for report in reports():
        found = sections(report)
        documented, size, answer = (found.get(name, "") for name in FAIRNESS)
        if not QUOTED.search(documented):
            problems.append(f"{report.name} quotes no documentation")
        if f"`python {MEASURED} {report.stem}` on virtual devices" not in words(size):
            problems.append(f"{report.name} does not say where its size was measured")
        if not SIZE.search(size):
            problems.append(f"{report.name} does not say how large the effect is")
        if not re.match(r'\s*".+?" \S', answer, re.DOTALL):
            problems.append(f"{report.name} has no answer of a maintainer, or none to it")
    return problems


def words(text: str) -> str:
    """Returns a text without its line breaks, and without the signs of a quotation."""
    return " ".join(re.sub(r"^> ?", "", text, flags=re.MULTILINE).split())


def law_filed_text() -> list[str]:
    """A report is what is filed: its program imports Keras by its name, and it has one line of versions, and no searches."""
    problems = []
    for report in reports():
        text = report.read_text()
        if "tf.keras" in text:
            problems.append(f"{report.name} says tf.keras, and not keras")
        if "Searched" in text or re.search(r"^\|", text, re.MULTILINE):
            problems.append(f"{report.name} has searches or a table")
        if len(sections(report).get("Since", "").strip().split("\n\n")) != 1:
            problems.append(f"{report.name} has more than a line about versions")
    return problems


def law_results() -> list[str]:
    """Each report has the results of its program, of which one is wrong."""
    found = tables()
    problems = [f"{name} is not known" for name in found.keys() ^ {each.stem for each in reports()}]
    for report in reports():
        results = set(declared(report).values()) if report.stem in found else {"wrong"}
        if results - RESULTS or "wrong" not in results:
            problems.append(f"{report.stem} has the results {sorted(results)}")
    return problems


def law_repairs() -> list[str]:
    """Each report has one repair and a test of it, or says why it has none."""
    path = files.ROOT / "upstream" / "repairs" / prove_repairs.OUR_TESTS.name
    tests = prove_repairs.names_of_tests(path)
    repaired = [report for each in repairs().values() for report in each.reports]
    problems = []
    for name, table in tables().items():
        if repaired.count(name) != ("without_repair" not in table):
            problems.append(f"{name} has {repaired.count(name)} repairs")
        if name in repaired and not any(prove_repairs.is_of(test, (name,)) for test in tests):
            problems.append(f"{name} has no test of its repair")
    return problems + [f"{name} is no report" for name in set(repaired) - tables().keys()]


def law_lines_of_keras() -> list[str]:
    """Each repair finds the lines that it changes, and leaves Python, also after all the other repairs."""
    if importlib.metadata.version("keras") != SHOWN_ON[1]:
        return []
    every = repairs()
    problems = [broken for each in every.values() for broken in broken_edits(each)]
    return problems + broken_edits(prove_repairs.together([*every.values()]))


def broken_edits(repair: prove_repairs.Repair) -> list[str]:
    sources: dict[str, str] = {}
    keras = prove_repairs.installed_keras()
    try:
        for edit in repair.edits:
            source = sources.get(edit.file) or (keras / "src" / edit.file).read_text()
            sources[edit.file] = edit.made_in(source)
        for source in sources.values():
            ast.parse(source)
    except (prove_repairs.NoRepair, SyntaxError) as error:
        return [f"{repair.name}: {error}"]
    return []


def replace_all(old: str, new: str):
    return lambda root: changed(root / f"{CLIPPING}.md", old, new)


CLIPPING = "upstream/clipping_before_all_reduce"
REPAIR = "upstream/repairs/reduce_before_clipping.toml"
MUTATIONS = [
    ("law_programs", lambda root: (root / f"{CLIPPING}.py").unlink()),
    ("law_programs", lambda root: (root / f"{CLIPPING}.md").unlink()),
    ("law_programs", edit(f"{CLIPPING}.py", "SGD(1.0,", "SGD(0.5,")),
    ("law_programs", edit(f"{CLIPPING}.py", "import keras\n", "import keras\n" + "\n" * 25)),
    ("law_sections", edit(f"{CLIPPING}.md", "## Cause", "## Source")),
    ("law_sections", replace_all("got 0.1414", "got 0.1")),
    ("law_sections", edit(f"{CLIPPING}.md", "/3422977a", "/master/")),
    ("law_fairness", edit(f"{CLIPPING}.md", "> clipnorm", "clipnorm")),
    ("law_fairness", replace_all(" on virtual devices", " on GPUs")),
    ("law_fairness", replace_all(" devices, norm", " devices: norm")),
    ("law_fairness", edit(f"{CLIPPING}.md", '"Each replica clips', "Each replica clips")),
    ("law_filed_text", edit(f"{CLIPPING}.md", "keras.layers", "tf.keras.layers")),
    ("law_filed_text", edit(f"{CLIPPING}.md", "## Since", "| 2.21.0 | wrong |\n\n## Since")),
    ("law_filed_text", edit(f"{CLIPPING}.md", "## Repair", "Also elsewhere.\n\n## Repair")),
    ("law_results", edit("upstream/reports.toml", "[clipping_before_all_reduce]", "[clipping]")),
    ("law_results", edit("upstream/reports.toml", '"wrong"', '"odd"')),
    ("law_repairs", lambda root: (root / REPAIR).unlink()),
    ("law_repairs", edit(REPAIR, "clipping_before_all_reduce", "clipping")),
    (
        "law_repairs",
        edit("upstream/repairs/replica_test.py", "test_clipping_before", "test_before"),
    ),
    ("law_lines_of_keras", edit(REPAIR, 'line = "grads_and_vars', 'line = "grads')),
    ("law_lines_of_keras", edit(REPAIR, "super()._clip", "super(._clip")),
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
            change = f"{shows} on {running}: say so in upstream/reports.toml, and"
        elif running == version_of(*SHOWN_ON, False) and output != block(
            sections(report)["Output"], "text"
        ):
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
        "say so in upstream/reports.toml, and in upstream/clipping_before_all_reduce.md"
    )
    assert not surprises(RAN | {"outputs": {path: BROKEN}})


def test_error_that_is_there_again_is_reported():
    path = str(ROOT / "upstream" / "moving_statistics_of_first_replica.py")
    right = {"tensorflow": "2.18.1", "keras": "3.7.0"}
    (sentence,) = surprises(right | {"outputs": {path: BROKEN}})
    assert sentence.startswith("moving_statistics_of_first_replica shows on TensorFlow 2.18.1")
    assert not surprises(right | {"outputs": {path: REPAIRED}})


def test_program_that_cannot_be_run_is_reported():
    raised = {str(ROOT / f"{CLIPPING}.py"): "TypeError: no\n"}
    (sentence,) = surprises(RAN | {"outputs": raised})
    assert "cannot be run on TensorFlow 2.99.0" in sentence


def test_other_output_on_the_newest_version_is_reported():
    report = ROOT / f"{CLIPPING}.md"
    ran = dict(zip(("tensorflow", "keras"), SHOWN_ON))
    (sentence,) = surprises(ran | {"outputs": {str(report.with_suffix(".py")): BROKEN}})
    assert "prints something else" in sentence


@pytest.mark.parametrize(
    "tensorflow, keras, is_",
    [
        ("2.1.0", "3.0.0", "right"),  # older than all rows: as the first
        ("2.18.1", "3.9.0", "right"),
        ("2.20.5", "3.14.0", "wrong"),
        ("2.99.0-dev20990101", "3.99.0.dev2099010100", "wrong"),
    ],
)
def test_version_without_a_row_is_as_the_last_one_before_it(tensorflow, keras, is_):
    report = ROOT / "upstream" / "moving_statistics_of_first_replica.md"
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


DOCUMENTED = """
import inspect, json, operator, sys
import keras
import tensorflow as tf
names = json.load(sys.stdin)
found = {name: inspect.getdoc(operator.attrgetter(name)(sys.modules[__name__])) for name in names}
json.dump(found, sys.__stdout__)
"""


@pytest.mark.slow
def test_quotations_are_in_the_docstrings():
    """What a report quotes is asked of the installed packages."""
    quoted = {report.name: QUOTED.findall(report.read_text()) for report in reports()}
    names = sorted({name for each in quoted.values() for name, _ in each})
    done = subprocess.run(
        [sys.executable, "-c", DOCUMENTED], input=json.dumps(names), capture_output=True, text=True
    )
    says = json.loads(done.stdout)
    missing = [
        f"{report}: {name} does not say: {quotation}"
        for report, each in quoted.items()
        for name, quotations in each
        for quotation in re.split(r"^>\n", quotations, flags=re.MULTILINE)
        if words(quotation) not in words(says[name])
    ]
    assert not missing, "\n".join(missing)


def otherwise(before: str, now: str) -> list[str]:
    """Returns the lines that are printed otherwise now: of something else, or another number than other last digits make."""
    pairs = itertools.zip_longest(SIZE.findall(before), SIZE.findall(now), fillvalue=())
    return [f"{one}, {two}" for one, two in pairs if not alike(one, two)]


def alike(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    try:
        (*means, change), (*others, other) = (
            [float(each or 0) for each in row[1:]] for row in (one, two)
        )
    except ValueError:  # an error, or nothing
        return one == two
    same = one[0] == two[0] and change == pytest.approx(other, abs=3)
    return same and means == pytest.approx(others, rel=0.05, nan_ok=True)


@pytest.mark.parametrize(
    "old, new, is_other",
    [
        ("0.769", "0.768", False),
        ("-12.0", "-12.4", False),
        ("0.769", "0.669", True),
        ("-12.0", "-22.0", True),
        ("test loss", "reported loss", True),
        ("got 0.769 ± 0.018", "got RuntimeError", True),
        ("2 devices", "no devices", True),
    ],
)
def test_other_size_is_seen(old, new, is_other):
    line = "2 devices, test loss: got 0.769 ± 0.018, right 0.9 ± 0.1: -12.0 ± 1.2 %"
    assert bool(otherwise(line, line.replace(old, new))) == is_other


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(tables()) - VARYING))
def test_size_is_as_reported(name):
    """On the versions that the reports were measured on."""
    if importlib.metadata.version("keras") != SHOWN_ON[1]:
        pytest.skip(f"the sizes are of Keras {SHOWN_ON[1]}")
    command = [sys.executable, str(ROOT / MEASURED), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    report = ROOT / "upstream" / f"{name}.md"
    assert not (lines := otherwise(block(sections(report)["Size"], "text"), done.stdout)), lines


def results_of(*outcomes: str) -> prove_repairs.Tests:
    """Returns results such as "ours passed" and "own failed"."""
    names = {"ours": "replica_test::test_clipping_before_all_reduce", "own": "sgd_test::test_own"}
    passed = {names[each.split()[0]] for each in outcomes if each.endswith("passed")}
    failed = {names[each.split()[0]] for each in outcomes if each.endswith("failed")}
    return prove_repairs.Tests(frozenset(passed), frozenset(failed))


@pytest.mark.parametrize(
    "before, after, says",
    [
        (["ours failed"], ["ours passed", "own passed"], ""),
        (["ours failed"], ["ours failed", "own passed"], "is not repaired"),
        (["ours failed"], ["own passed"], "no test was run"),
        (["ours passed"], ["ours passed"], "has no test that fails before"),
        (["ours failed", "own passed"], ["ours passed", "own failed"], "breaks Keras's own tests"),
        (["ours failed", "own failed"], ["ours passed", "own failed"], ""),
    ],
)
def test_what_is_not_proven_is_said(before, after, says):
    repair = repairs()["reduce_before_clipping"]
    report = "clipping_before_all_reduce"
    said = prove_repairs.failures(repair, report, results_of(*before), results_of(*after))
    assert (says in said) if says else not said


def test_test_of_keras_that_asserts_the_error_may_fail():
    repair = repairs()["shorten_the_last_execution"]
    test = frozenset({f"trainer_test::{repair.changed_tests[0]}_multi"})
    before = prove_repairs.Tests(test, frozenset())
    assert not prove_repairs.broken(repair, before, prove_repairs.Tests(frozenset(), test))


def test_line_that_is_there_twice_is_no_anchor():
    edit_ = prove_repairs.Edit("a.py", "x = 1", "before", "\ny = 2\n")
    assert edit_.made_in("x = 1\n") == "y = 2\nx = 1\n"
    with pytest.raises(prove_repairs.NoRepair, match="2 times, and not once"):
        edit_.made_in("x = 1\nx = 1\n")


@pytest.mark.slow
@pytest.mark.thorough
def test_repair_that_does_not_repair_is_found(tmp_path, capsys):
    """The cheapest report: one line of an optimizer, which the second repair changes to what it was."""
    name = "copy_the_old_momentum.toml"
    text = (ROOT / "upstream" / "repairs" / name).read_text()
    statuses = []
    for repair in (text, text.replace("ops.copy(momentum.value)", "momentum.value")):
        (tmp_path / name).write_text(repair)
        every = [*prove_repairs.repairs(tmp_path).values()]
        statuses.append(prove_repairs.prove(every, prove_repairs.installed_keras(), True))
    assert statuses == [0, 1]
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("schedule_free_adamw_alias: fails before, passes after.")
    assert second.startswith("schedule_free_adamw_alias: is not repaired")
