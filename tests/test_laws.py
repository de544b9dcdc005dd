"""The laws of the collection. Each holds for the project as it stands, and each is broken on purpose below."""

import ast
import functools
import importlib.util
import json
import mmap
import re
import statistics
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT, changed, forget

from helpers import atlas, catalog, compiler, records, render, runtime, setups, sources, triage

HEADINGS = [
    "What goes wrong",
    "Why",
    "The fix",
    "What you may have read",
    "Exercise",
    "Switch and run",
    "See also",
]
CELL_TAGS = ["badges", "bootstrap", "parameters", "exercise", "solution", "panel"]
WRONG = ("## What goes wrong", "## Why")
ORIGIN = re.compile(r"\d\.\d+|(Keras|NumPy|Python)( \d[\d.]*)?|MODE|words|seen|other")
CLAIMS = {"000": 9, "001": 13, "002": 8, "003": 33, "004": 14}  # how many each document makes
MACHINE_BOUND = re.compile(
    r"(?<![\w.])/\w+/\w+|site-packages|[CGT]PU:\d|0x[0-9a-f]{6}|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d"
)


def mode_sources() -> list[Path]:
    return [source for source in sources.sources() if catalog.read_mode(source)]


def law_names() -> list[str]:
    """Ids are unique, file names are made of id and slug, and the title is the mode's."""
    problems, ids = [], []
    for source in mode_sources():
        mode = catalog.read_mode(source)
        ids.append(mode.id)
        if source.stem != f"{mode.id}_{mode.slug}":
            problems.append(f"{source.name}: MODE says {mode.id}_{mode.slug}")
        if f"# # {mode.name}. {mode.title}\n" not in source.read_text():
            problems.append(f"{source.name}: the first heading is not the mode's title")
    return problems + [f"{each} is declared twice" for each in set(ids) if ids.count(each) > 1]


def law_rendered() -> list[str]:
    """Every source has its executed notebook, catalog entry and README row, all up to date; nothing is left over."""
    return render.check()


def law_symptoms() -> list[str]:
    """No two modes declare the same symptom; a mode without any says since which version."""
    seen, problems = {}, []
    for mode in catalog.modes():
        if not mode.symptoms and not mode.since:
            problems.append(f"{mode.id} has no symptom and does not say since when")
        for symptom in {(each.raises, each.says) for each in mode.symptoms}:
            if symptom in seen:
                problems.append(f"{mode.id} and {seen[symptom]} declare the same symptom {symptom}")
            seen[symptom] = mode.id
    return problems


def law_claims() -> list[str]:
    """No claim of a document is left without a notebook that puts it to the test."""
    judged = {claim.id for mode in catalog.modes() for claim in mode.claims}
    made = [f"{name}-C{i}" for name, count in CLAIMS.items() for i in range(1, count + 1)]
    return [each for each in made if each not in judged]


def law_anatomy() -> list[str]:
    """Headings and tagged cells stand in the agreed order, between 16 and 22 cells."""
    problems = []
    for source in mode_sources():
        cells = sources.read(source).cells
        headings = [
            line[3:]
            for cell in cells
            for line in cell.source.splitlines()
            if line.startswith("## ")
        ]
        tagged = [
            tag for cell in cells for tag in cell.metadata.get("tags", []) if tag in CELL_TAGS
        ]
        if headings != HEADINGS or tagged != CELL_TAGS or not 16 <= len(cells) <= 22:
            problems.append(f"{source.name}: {headings}, {tagged}, {len(cells)} cells")
    return problems


def law_parameters() -> list[str]:
    """Exactly one parameters cell, with the same four names in the same order, all of them literals."""
    return [
        source.name for source in mode_sources() if parameters(source) != list(setups.PARAMETERS)
    ]


def parameters(source: Path) -> list[str]:
    names = []
    for cell in sources.read(source).cells:
        if "parameters" in cell.metadata.get("tags", []):
            body = ast.parse(cell.source).body
            names += [node.targets[0].id for node in body if isinstance(node.value, ast.Constant)]
    return names


def law_markers() -> list[str]:
    """Each notebook marks the line that is guilty and the line that repairs it, so that controls can swap them."""
    return [source.name for source in mode_sources() if not marked(source.read_text())]


def marked(text: str) -> bool:
    """Once each, and on a line that is a statement of its own."""
    lines = [line.strip() for line in text.splitlines() if "# guilty" in line or "# repair" in line]
    return len(lines) == 2 and "# guilty" in lines[0] and all(is_statement(line) for line in lines)


def is_statement(line: str) -> bool:
    code = line.split("#")[0].strip()
    try:
        tree = ast.parse(f"def function():\n {code}{' pass' if code.endswith(':') else ''}")
    except SyntaxError:
        return False
    return bool(tree.body)


def law_outputs() -> list[str]:
    """Stored text says nothing that belongs to one machine, and no notebook carries widget state."""
    problems = []
    for path in sorted(sources.NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if "widgets" in notebook.metadata or MACHINE_BOUND.search(compared_text(notebook)):
            problems.append(path.name)
    return problems


def compared_text(notebook) -> str:
    """What nbval compares: all text of the cells that are not excused."""
    kept = [
        cell
        for cell in notebook.cells
        if "nbval-ignore-output" not in cell.metadata.get("tags", [])
    ]
    outputs = [output for cell in kept for output in cell.get("outputs", [])]
    return "\n".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs
    )


def law_links() -> list[str]:
    """A link from one notebook to another, or from the README, leads to a file that exists."""
    pages = [*sorted(sources.NOTEBOOKS.glob("*.py")), sources.ROOT / "README.md"]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^):#]+)\)", page.read_text())
    ]
    return [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]


def law_records() -> list[str]:
    """The records of a plain machine hold every mode as its notebook is now, under all of its setups, as declared."""
    return [
        problem
        for keras in runtime.GENERATIONS
        for mode in catalog.modes()
        for problem in recorded(mode, keras)
    ]


def recorded(mode, keras: int) -> list[str]:
    record = records.read(f"cpu-keras{keras}") or {"modes": {}, "verdicts": []}
    notebook = nbformat.read(sources.ROOT / mode.notebook, as_version=4)
    lines = {records.key(line): line for line in record["verdicts"] if line["mode"] == mode.id}
    wanted = records.grid_of(mode, records.base_of(notebook, keras))
    stale = record["modes"].get(mode.id, {}).get("code") != records.code_of(notebook)
    problems = ["is not in the record as it is now"] if stale else []
    if set(lines) != {records.key(setup.as_dict()) for setup in wanted}:
        problems.append("is recorded under other setups than those that matter to it")
    problems += [f"disagrees: {line}" for line in lines.values() if not line["agrees"]]
    return [f"{mode.id}, Keras {keras}: {each}; run: clinic record" for each in problems]


def law_compiled() -> list[str]:
    """What a notebook shows of the TPU compiler was recorded for the notebook as it is now."""
    record = compiler.stored()
    shown = [mode for mode in catalog.modes() if "COMPILED" in source_of(mode).read_text()]
    return [
        f"{mode.id} was not compiled as it is now; run: clinic compile {mode.id} --tpu all"
        for mode in shown
        if record["modes"].get(mode.id, {}).get("code")
        != records.code_of(nbformat.read(sources.ROOT / mode.notebook, as_version=4))
        or {line["tpu"] for line in record["lines"] if line["mode"] == mode.id}
        != set(compiler.TOPOLOGIES)
    ]


def source_of(mode) -> Path:
    return (sources.ROOT / mode.notebook).with_suffix(".py")


def law_atlas() -> list[str]:
    """The stored picture of the records says in words what the records hold."""
    stored = nbformat.read(sources.NOTEBOOKS / "atlas.ipynb", as_version=4)
    return [line for line in atlas.sentences(atlas.rows()) if line not in compared_text(stored)]


def law_sizes() -> list[str]:
    """Helpers read at a glance: a median function body of at most 6 lines, none over 40."""
    bodies = function_sizes(sources.ROOT / "helpers")
    long = [f"{name} has {lines} lines" for name, lines in bodies.items() if lines > 40]
    return long + (
        [f"median {statistics.median(bodies.values())}"]
        if statistics.median(bodies.values()) > 6
        else []
    )


def function_sizes(folder: Path) -> dict[str, int]:
    """Lines of each function's body, without its docstring."""
    sizes = {}
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                sizes[f"{path.stem}.{node.name}:{node.lineno}"] = (
                    body[-1].end_lineno - body[0].lineno + 1 if body else 0
                )
    return sizes


def law_wordings() -> list[str]:
    """Each file of wordings is that of a mode, narrows only symptoms that its MODE declares, and says what has a meaning."""
    forget()
    problems, told = [], {}
    for each in triage.wordings():
        name = f"{each.mode or 'none'}.toml: {each.says}"
        declared = [s["says"] for s in triage.catalog().get(each.mode, {}).get("symptoms", ())]
        if each.mode and each.mode not in triage.catalog():
            problems.append(f"{name}: there is no such mode")
        if each.symptom and each.symptom not in declared:
            problems.append(f"{name}: MODE declares no such symptom")
        if not all((each.says, each.origin, each.proof in triage.PROOF, each.mode or each.kind)):
            problems.append(f"{name}: says, from, proof or kind is missing or unknown")
        if not ORIGIN.fullmatch(each.origin):
            problems.append(f"{name}: from is no version, and none of the words for what has none")
        if (each.origin == "seen") != bool(each.seen):
            problems.append(f"{name}: what is known from reports only, and no more, names them")
        if told.setdefault((each.says, each.unless), each.mode) != each.mode:
            problems.append(f"{name}: another mode has the same words")
    return problems


def law_triage() -> list[str]:
    """What a mode says, by its symptoms and in the records, leads to that mode and to no other."""
    forget()
    return [
        f"{mode.id}: {says!r} leads to {found}"
        for mode in catalog.modes()
        for raises, says in sayings(mode)
        if (found := triage.triage(pasted(mode, raises, says)).mode) not in leads(mode, says)
    ]


def leads(mode, says: str) -> set:
    """The mode; or none of them, for a symptom that is no more than a hint."""
    hints = [
        each.symptom
        for each in triage.wordings()
        if each.mode == mode.id and each.symptom and each.proof == "hint"
    ]
    return {mode.id, None} if any(re.search(hint, says) for hint in hints) else {mode.id}


def sayings(mode) -> list[tuple]:
    """Each recorded message that a symptom explains, and in full those symptoms that no record shows."""
    said = []
    for keras in runtime.GENERATIONS:
        for line in (records.read(f"cpu-keras{keras}") or {"verdicts": ()})["verdicts"]:
            symptom = mode.symptom(setups.Setup(**{name: line[name] for name in setups.PARAMETERS}))
            if line["mode"] == mode.id and symptom and re.search(symptom.says, line["says"]):
                said.append((symptom.raises, line["says"], symptom.says))
    shown = {says for _, _, says in said}
    unshown = [
        (each.raises, spelled(each.says)) for each in mode.symptoms if each.says not in shown
    ]
    return list(dict.fromkeys([(raises, says) for raises, says, _ in said] + unshown))


def spelled(says: str) -> str:
    """A text that a symptom's regular expression describes: its first alternative, with something for each wildcard."""
    says = re.sub(r"\((\w+)\|[^)]*\)", r"\1", says).split("|")[0]
    says = (
        says.replace(r"\d+", "2").replace(r"\w+", "name").replace(r"\S+", "name").replace(".*", "x")
    )
    return re.sub(r"\\(.)|\?", r"\1", says)


def pasted(mode, raises: str, says: str) -> str:
    """An error as it is pasted: with the code that goes wrong above it."""
    cells = sources.read(sources.NOTEBOOKS / f"{mode.id}_{mode.slug}.py").cells
    texts = [cell.source for cell in cells]
    first, last = (next(i for i, text in enumerate(texts) if name in text) for name in WRONG)
    code = [cell.source for cell in cells[first:last] if cell.cell_type == "code"]
    return "\n".join([*code, "", f"{raises}: {says}"])


def law_drift() -> list[str]:
    """Every wording that is said to be TensorFlow 2.21's is found in its source, its libraries, or a record."""
    if not metadata.version("tensorflow").startswith("2.21"):
        return []  # nothing is claimed about any other
    forget()
    claimed = [each for each in triage.wordings() if each.origin == "2.21"]
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
        return longest(words).encode() in library(PACKAGES / file)
    return any(
        all(piece in source(file) for piece in pieces if piece) for pieces in triage.phrases(words)
    )


def longest(words: str) -> str:
    """A library keeps the pieces of a message apart, so its longest has to do."""
    return max((piece.strip(" `'\"") for piece in re.split(r"\.\.\.|[{}|]", words)), key=len)


@functools.cache
def source(file: str) -> str:
    if file == "records":
        return triage.flat("\n".join(map(said_in, records.RUNTIMES)))
    return triage.flat(JOINED.sub("", (PACKAGES / file).read_text()))


def said_in(name: str) -> str:
    return "\n".join(line["says"] for line in (records.read(name) or {"verdicts": ()})["verdicts"])


class Library:
    """Bytes of a library, which is too large to be read."""

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __contains__(self, words: bytes) -> bool:
        return self.bytes.find(words) >= 0


library = functools.cache(Library)
LAWS = {name: law for name, law in list(globals().items()) if name.startswith("law_")}


@pytest.mark.parametrize("law", LAWS)
def test_law(law):
    assert LAWS[law]() == []


FM25 = "notebooks/fm25_load_outside_scope"


def strip_counts(root):
    edit_notebook(root, lambda cell: cell.update(execution_count=None))


def strip_outputs(root):
    edit_notebook(root, lambda cell: cell.update(outputs=[]))


def edit_notebook(root, edit):
    path = root / f"{FM25}.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            edit(cell)
    path.write_text(json.dumps(notebook))


def keep_widget_state(root):
    path = root / f"{FM25}.ipynb"
    notebook = json.loads(path.read_text())
    notebook["metadata"]["widgets"] = {}
    path.write_text(json.dumps(notebook))


def print_a_device(root):
    changed(root / f"{FM25}.ipynb", "FM25 reproduced (", "FM25 reproduced on CPU:0 (")


def print_a_path(root):
    changed(root / f"{FM25}.ipynb", "FM25 reproduced (", "FM25 reproduced in /home/me (")


def second_parameters_cell(root):
    changed(
        root / f"{FM25}.py",
        "# %%\nfrom helpers",
        '# %% tags=["parameters"]\nepochs = 1\n\n# %%\nfrom helpers',
    )


def a_long_function(root):
    body = "\n".join(f"    x = {i}" for i in range(41))
    (root / "helpers" / "long.py").write_text(f"def long():\n{body}\n")


def many_middling_functions(root):
    body = "\n".join(f"    x = {i}" for i in range(9))
    (root / "helpers" / "long.py").write_text(
        "\n".join(f"def f{i}():\n{body}\n" for i in range(300))
    )


def edit(name: str, old: str, new: str):
    def mutation(root):
        changed(root / name, old, new, 1)

    mutation.__name__ = f"{old.strip()[:30]} -> {new.strip()[:30]}"
    return mutation


def copied_notebook(root):
    text = (root / f"{FM25}.py").read_text()
    (root / "notebooks" / "fm25_again.py").write_text(text)


def orphan(root):
    (root / "notebooks" / "fm99_orphan.ipynb").write_text((root / f"{FM25}.ipynb").read_text())


CPU3 = "notebooks/records/cpu-keras3.json"


def lose_a_verdict(root):
    path = root / CPU3
    record = json.loads(path.read_text())
    record["verdicts"].pop()
    path.write_text(json.dumps(record))


WORDS = "notebooks/wordings"


def wordings_of_no_mode(root):
    (root / WORDS / "fm99.toml").write_text('[[wording]]\nsays = "all is lost"\nfrom = "1.0"\n')


def the_words_of_another(root):
    """One mode's own message, given to another with greater certainty."""
    path = root / WORDS / "fm05.toml"
    entry = "[[wording]]\nsays = 'filename must end in'\nfrom = '1.0'\nproof = 'certain'\n\n"
    path.write_text(entry + path.read_text())


MUTATIONS = [
    ("law_claims", edit(f"{FM25}.py", '"004-C5"', '"004-C50"')),
    ("law_records", edit(f"{FM25}.ipynb", r"\ndevices = 2", r"\ndevices = 4")),
    ("law_records", edit(CPU3, '"agrees": true', '"agrees": false')),
    ("law_records", edit(CPU3, '"fm25": {"code": "', '"fm25": {"code": "0')),
    ("law_records", lose_a_verdict),
    ("law_compiled", edit("notebooks/fm24_xla_refuses.ipynb", "60000, 60000", "60001, 60000")),
    (
        "law_compiled",
        edit("notebooks/records/compiled.json", '"fm24": {"code": "', '"fm24": {"code": "0'),
    ),
    ("law_atlas", edit(CPU3, '"broken": "silent"', '"broken": "works"')),
    ("law_names", edit(f"{FM25}.py", 'id="fm25"', 'id="fm26"')),
    ("law_names", edit(f"{FM25}.py", "# # FM25. Loading", "# # FM25. On loading")),
    ("law_names", copied_notebook),
    (
        "law_rendered",
        edit(f"{FM25}.py", "You train on several devices", "You train on many devices"),
    ),
    ("law_rendered", edit(f"{FM25}.py", 'sees="a loaded model works', 'sees="a loaded model runs')),
    ("law_rendered", edit("README.md", "[fm25 load_outside_scope]", "[fm25 loaded_outside_scope]")),
    ("law_rendered", edit("pyproject.toml", 'tag = "v', 'tag = "w')),
    ("law_rendered", strip_counts),
    ("law_rendered", strip_outputs),
    ("law_rendered", orphan),
    (
        "law_symptoms",
        edit(
            f"{FM25}.py",
            r'r"\d+ of \d+ variables live outside the scope of \w+"',
            'r"the predictions differ after the restart"',
        ),
    ),
    ("law_anatomy", edit(f"{FM25}.py", "# ## Why\n", "# ## Cause\n")),
    ("law_anatomy", edit(f"{FM25}.py", '# %% tags=["solution"]', "# %%")),
    ("law_parameters", edit(f"{FM25}.py", "devices = 2\n", "devices = 1 + 1\n")),
    ("law_parameters", edit(f"{FM25}.py", "devices = 2\n", "replicas = 2\n")),
    ("law_parameters", second_parameters_cell),
    ("law_markers", edit(f"{FM25}.py", "# repair", "# mend")),
    (
        "law_markers",
        edit(
            f"{FM25}.py",
            "setup.save_format, make_model)  # guilty",
            "setup.save_format,\n make_model)  # guilty",
        ),
    ),
    ("law_outputs", keep_widget_state),
    ("law_outputs", print_a_device),
    ("law_outputs", print_a_path),
    ("law_links", edit(f"{FM25}.py", "(fm05_untracked", "(fm55_untracked")),
    ("law_wordings", edit(f"{WORDS}/fm04.toml", "[[wording]]", '[[wording]]\nsymptom = "x"')),
    ("law_wordings", edit(f"{WORDS}/fm03.toml", "from = '2.21'", "from = 'seen'")),
    ("law_wordings", edit(f"{WORDS}/fm07.toml", "proof = 'likely'", "proof = 'maybe'")),
    ("law_wordings", wordings_of_no_mode),
    ("law_triage", edit(f"{WORDS}/fm28.toml", "says = '{get_weights", "says = 'no {get_weights")),
    ("law_triage", the_words_of_another),
    ("law_drift", edit(f"{WORDS}/fm04.toml", "must end in `.weights.h5`", "must end in `.h5`")),
    ("law_drift", edit(f"{WORDS}/fm06.toml", "Assign requires shapes", "Assign wants shapes")),
    ("law_drift", edit(f"{WORDS}/fm36.toml", "joining a group", "leaving a group")),
    ("law_sizes", a_long_function),
    ("law_sizes", many_middling_functions),
]


@pytest.mark.parametrize(
    "law, mutation", MUTATIONS, ids=lambda value: getattr(value, "__name__", value)
)
def test_mutation_breaks_law(project, law, mutation):
    assert LAWS[law]() == []
    mutation(project)
    assert LAWS[law]() != []


def test_every_law_has_a_mutation():
    assert {law for law, _ in MUTATIONS} == set(LAWS)


def test_a_mode_without_symptoms_says_since_when(project):
    begin, end = "    symptoms=(\n        Symptom(", "    claims=("
    text = (project / f"{FM25}.py").read_text()
    (project / f"{FM25}.py").write_text(
        text[: text.index(begin)] + "    symptoms=(),\n" + text[text.index(end) :]
    )
    assert any("since when" in problem for problem in law_symptoms())
    changed(
        project / f"{FM25}.py",
        "    symptoms=(),\n",
        '    symptoms=(),\n    since="TensorFlow 2.30",\n',
    )
    assert law_symptoms() == []


def test_helpers_do_not_import_tensorflow():
    assert "tensorflow" not in modules_after("import helpers, helpers.cli, helpers.panel")


def test_the_check_of_imports_can_fail():
    assert "tensorflow" in modules_after("import tensorflow")


def modules_after(statement: str) -> set[str]:
    import subprocess
    import sys

    script = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())
