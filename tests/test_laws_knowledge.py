"""What modes declare and what triage knows of them. Each law holds for the project, and each is broken on purpose below."""

import functools
import importlib.util
import mmap
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import pytest
from conftest import changed, forget
from law import all_tests_of, edit
from strategy_clinic import Claim
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import registry, statements
from strategy_clinic.records import store
from strategy_clinic.rendering import sources
from strategy_clinic.setups import parameters, runtime
from strategy_clinic.triage import classify, phrases, report_text, wordings

ORIGIN = re.compile(r"\d\.\d+|(Keras|TensorFlow|NumPy|Python)( \d[\d.]*)?|MODE|words|seen|other")


# How many statements each document makes.
STATEMENTS = {"000": 18, "001": 17, "002": 10, "003": 54, "004": 13}


def law_symptoms() -> list[str]:
    """No two modes declare the same symptom; every mode has one, in one version or another."""
    seen, problems = {}, []
    for mode in registry.modes():
        if not mode.symptoms:
            problems.append(f"{mode.id} has no symptom: one that is gone has `until`")
        for symptom in {(each.raises, each.says) for each in mode.symptoms}:
            if symptom in seen:
                problems.append(f"{mode.id} and {seen[symptom]} declare the same symptom {symptom}")
            seen[symptom] = mode.id
    return problems


def law_statements() -> list[str]:
    """Each statement of a document is decided by claims that exist, or is not judged for a reason; each claim decides one."""
    answered = statements.statements()
    problems = [f"{each.id}: {each.reason!r}" for each in answered if not is_answered(each)]
    made = Counter(each.id.partition(".")[0] for each in answered)
    if made != STATEMENTS or len({each.id for each in answered}) != len(answered):
        problems.append(f"the documents make {dict(made)} statements")
    named = {claim for each in answered for claim in each.claims}
    tested = {claim.id for document in registry.documents() for claim in document.claims}
    problems += [f"no notebook tests {claim}" for claim in sorted(named - tested)]
    return problems + [f"{claim} decides no statement" for claim in sorted(tested - named)]


def is_answered(statement) -> bool:
    return bool(statement.claims) or len(statement.reason.split()) > 5


def law_decided() -> list[str]:
    """Each claim of a document is decided by one cell, below its statement and the heading of its mode."""
    problems = []
    for source in files.document_pages():
        declared = [(each.id, each.mode) for each in registry.read_document(source).claims]
        named, judged = decided_in(source)
        problems += [f"{source.stem}: {each} is not decided" for each in set(declared) - set(named)]
        if len(set(named)) < len(named) or set(named) > set(declared) or named != judged:
            problems.append(f"{source.stem}: {named} are announced, and {judged} are judged")
    return problems


def decided_in(source: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns the claims, each with its mode, that the text above a cell names, and those that the cells judge."""
    mode, named, judged = "", [], []
    for cell in sources.percent_notebook(source.read_text()).cells:
        if "section" in sources.tags(cell):
            mode = cell.source
        elif "decided" in sources.tags(cell):
            named += [(claim, mode) for claim in cell.source.split(", ")]
        elif "document.judges" in cell.source:
            claims = re.findall(r'^        "(\d{3}-C\d+)":', cell.source, re.MULTILINE)
            judged += [(claim, mode) for claim in claims]
    return named, judged


def law_wordings() -> list[str]:
    """Each wording narrows only symptoms that its MODE declares, and says what has a meaning."""
    forget()
    problems, told = [], {}
    for each in wordings.wordings():
        name = f"{each.mode or 'not_a_mode'}: {each.says}"
        declaration = wordings.declared_modes().get(each.mode)
        symptoms = [symptom.says for symptom in declaration.symptoms] if declaration else []
        if each.symptom and each.symptom not in symptoms:
            problems.append(f"{name}: MODE declares no such symptom")
        if not all((each.says, each.origin, each.proof in classify.PROOF, each.mode or each.kind)):
            problems.append(f"{name}: says, from, proof or kind is missing or unknown")
        if not ORIGIN.fullmatch(each.origin):
            problems.append(f"{name}: from is no version, and none of the words for what has none")
        if (each.origin == "seen") != bool(each.seen):
            problems.append(f"{name}: what is known from reports only, and no more, names them")
        if told.setdefault((each.says, each.unless), each.mode) != each.mode:
            problems.append(f"{name}: another mode has the same words")
    return problems


def law_triage() -> Iterator[str]:
    """What a mode raises, by its symptoms and in the records, leads to that mode and to no other."""
    forget()
    lines = recorded_lines()
    return (problem for mode in registry.modes() for problem in astray(mode, lines[mode.id]))


def recorded_lines() -> dict[str, list[dict]]:
    """What the records of a plain machine hold of each mode."""
    found = defaultdict(list)
    for keras in runtime.KERAS_VERSIONS:
        record = store.read_record(f"cpu-keras{keras}")
        for verdict in record.verdicts if record else ():
            found[verdict.mode].append(asdict(verdict))
    return found


def astray(mode, lines):
    """What a mode says and does not lead to it, pasted as errors are: with the code that goes wrong above."""
    code = files.program_text(mode.id, "broken")
    for raises, says in sayings(mode, lines):
        found = classify.triage(f"{code}\n\n{raises}: {says}").mode
        if found not in leads(mode, says):
            yield f"{mode.id}: {says!r} leads to {found}"


def leads(mode, says: str) -> set:
    """The mode; or none of them, for a symptom that is no more than a hint."""
    hints = [
        each.symptom
        for each in wordings.wordings()
        if each.mode == mode.id and each.symptom and each.proof == "hint"
    ]
    return {mode.id, None} if any(re.search(hint, says) for hint in hints) else {mode.id}


def sayings(mode, lines: list[dict]) -> list[tuple]:
    """Each recorded message that a symptom explains, and in full those symptoms that no record shows."""
    said = []
    for line in lines:
        symptom = mode.symptom(
            parameters.Setup(**{name: line[name] for name in parameters.PARAMETERS})
        )
        if symptom and symptom.outcome == "raises" and re.search(symptom.says, line["says"]):
            said.append((symptom.raises, line["says"], symptom.says))
    shown = {says for _, _, says in said}
    unshown = [
        (each.raises, spelled(each.says))
        for each in mode.symptoms
        if each.outcome == "raises" and each.says not in shown
    ]
    return list(dict.fromkeys([(raises, says) for raises, says, _ in said] + unshown))


def spelled(says: str) -> str:
    """A text that a symptom's regular expression describes: its first alternative, with something for each wildcard."""
    says = re.sub(r"\((\w+)\|[^)]*\)", r"\1", says).split("|")[0]
    says = (
        says.replace(r"\d+", "2").replace(r"\w+", "name").replace(r"\S+", "name").replace(".*", "x")
    )
    return re.sub(r"\\(.)|\?", r"\1", says)


def law_drift() -> list[str]:
    """Every wording that is said to be TensorFlow 2.21's is found in its source, its libraries, or a record."""
    if not metadata.version("tensorflow").startswith("2.21"):
        return []  # nothing is claimed about any other
    forget()
    claimed = [each for each in wordings.wordings() if each.origin == "2.21"]
    files = {each.file for each in claimed}
    problems = [f"{each.says} says no file" for each in claimed if not each.file]
    for file in sorted(files - {""}):
        here = [each.says[0] for each in claimed if each.file == file]
        problems += [f"{words!r} is not in {file}" for words in here if not is_in(file, words)]
    return problems


PACKAGES = Path(importlib.util.find_spec("tensorflow").origin).parents[1]


JOINED = re.compile(
    r"""['"]\s*\+?\s*\n\s*[frbFRB]{0,2}['"]"""
)  # where a string goes on in the next line


def is_in(file: str, words: str) -> bool:
    if ".so" in file:
        return in_library(PACKAGES / file, longest(words).encode())
    return any(
        all(piece in source(file) for piece in pieces if piece)
        for pieces in phrases.readings(words)
    )


def longest(words: str) -> str:
    """A library keeps the pieces of a message apart, so its longest has to do."""
    return max((piece.strip(" `'\"") for piece in re.split(r"\.\.\.|[{}|]", words)), key=len)


@functools.cache
def source(file: str) -> str:
    if file == "records":
        return report_text.flat("\n".join(map(said_in, store.RUNTIMES)))
    return report_text.flat(JOINED.sub("", (PACKAGES / file).read_text()))


def said_in(name: str) -> str:
    record = store.read_record(name)
    return "\n".join(verdict.says for verdict in record.verdicts) if record else ""


@functools.cache
def in_library(path: Path, words: bytes) -> bool:
    return library(path).find(words) >= 0


@functools.cache
def library(path: Path):
    """Bytes of a library, which is too large to be read."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


SOURCE = "helpers/strategy_clinic/modes/fm25_load_outside_scope/page.py"


DOCUMENT = "helpers/strategy_clinic/pages/documents/004_load_model.py"
MODES = "helpers/strategy_clinic/modes"
STATEMENTS_FILE = f"{MODES}/statements.toml"


def the_words_of_another(root):
    """One mode's own message, given to another with greater certainty."""
    path = root / MODES / "fm05_untracked_variable" / "words.toml"
    entry = "[[wording]]\nsays = 'filename must end in'\nfrom = '1.0'\nproof = 'certain'\n\n"
    changed(path, "[[wording]]", entry + "[[wording]]", 1)


MUTATIONS = [
    (
        "law_symptoms",
        edit(
            SOURCE,
            "it prints 'idle devices: [137]', and right is 'idle devices: 0'",
            r"it prints 'after the restart: \[\[1\.\]\]'",
        ),
    ),
    ("law_statements", edit(DOCUMENT, '"004-C5"', '"004-C50"')),
    ("law_decided", edit(DOCUMENT, '        "004-C5": [', '        "004-C1": [')),
    ("law_decided", edit(DOCUMENT, "# 004-C5\n", "# 004-C1\n")),
    ("law_decided", edit(DOCUMENT, '"004-C5", "fm25"', '"004-C5", "fm26"')),
    (
        "law_decided",
        edit(
            DOCUMENT,
            '# %% [markdown] tags=["section"]\n# fm25',
            '# %% [markdown] tags=["section"]\n# fm26',
        ),
    ),
    ("law_statements", edit(STATEMENTS_FILE, '["004-C2", "004-C15"]', '["004-C2"]')),
    ("law_statements", edit(STATEMENTS_FILE, 'id = "004.1"', 'id = "004.2"')),
    ("law_statements", edit(STATEMENTS_FILE, "It recommends a book", "A book' #")),
    (
        "law_wordings",
        edit(
            f"{MODES}/fm04_weights_path_refused/words.toml",
            "[[wording]]",
            '[[wording]]\nsymptom = "x"',
        ),
    ),
    (
        "law_wordings",
        edit(f"{MODES}/fm03_scope_mismatch/words.toml", "from = '2.21'", "from = 'seen'"),
    ),
    (
        "law_wordings",
        edit(
            f"{MODES}/fm07_python_in_traced_step/words.toml", "proof = 'likely'", "proof = 'maybe'"
        ),
    ),
    (
        "law_triage",
        edit(
            f"{MODES}/fm28_ragged_weights_file/words.toml",
            "says = '{get_weights",
            "says = 'no {get_weights",
        ),
    ),
    ("law_triage", the_words_of_another),
    (
        "law_drift",
        edit(
            f"{MODES}/fm04_weights_path_refused/words.toml",
            "must end in `.weights.h5`",
            "must end in `.h5`",
        ),
    ),
    (
        "law_drift",
        edit(
            f"{MODES}/fm06_architecture_changed/words.toml",
            "says = 'Assign requires shapes",
            "says = 'Assign wants shapes",
        ),
    ),
    (
        "law_drift",
        edit(
            f"{MODES}/fm36_replica_group_resized/words.toml",
            "says = 'is joining a group",
            "says = 'is leaving a group",
        ),
    ),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_a_mode_that_is_gone_keeps_its_symptom_and_says_until_when(project):
    begin, end = "    symptoms=(\n        Symptom(", "    prints="
    text = (project / SOURCE).read_text()
    (project / SOURCE).write_text(
        text[: text.index(begin)] + "    symptoms=(),\n" + text[text.index(end) :]
    )
    assert any("has no symptom" in problem for problem in law_symptoms())


def test_a_statement_has_claims_or_a_reason(project):
    path = project / STATEMENTS_FILE
    text = path.read_text()
    for old, new in (('claims = ["004-C1"]', ""), ('claims = ["004-C1"]', "reason = 1\nsay = 2")):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(UserError, match=r"004\.1 needs claims|statements\.toml cannot be read"):
            statements.statements()


def test_a_statement_is_half_true_if_its_claims_differ():
    claims = {word: Claim(word, "fm25", "it loads", word) for word in ("true", "half", "false")}
    verdicts = {("true",): "true", ("true", "false"): "half", ("half",): "half", (): "not judged"}
    for names, verdict in verdicts.items():
        made = statements.Statement("004.1", "it loads", names, "" if names else "why")
        assert statements.verdict(made, 3, claims) == verdict
