"""What every notebook has, and what none has. Each law holds for the project, and each is broken on purpose below."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from conftest import changed
from law import all_tests_of, compared_text, edit
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.rendering import render, sources
from strategy_clinic.setups import parameters

HEADINGS = [
    "The program",
    "The fix",
    "Why",
    "Try other setups",
    "Results",
    "Exercise",
    "Read next",
]

CELL_TAGS = [
    "bootstrap",
    "parameters",
    "open",
    "broken",
    "fixed",
    "panel",
    "table",
    "exercise",
    "solution",
    "onward",
    "badges",  # at the end, as long as the project has no address
]

MACHINE_BOUND = re.compile(
    r"(?<![\w.])/\w+/\w+|site-packages|[CGT]PU:\d|0x[0-9a-f]{6}|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d"
)


def mode_sources() -> list[Path]:
    return [source for source in sources.sources() if registry.read_mode(source)]


def law_names() -> list[str]:
    """Ids are unique, file names are made of id and slug, and the title is the mode's."""
    problems, ids = [], []
    for source in mode_sources():
        mode = registry.read_mode(source)
        ids.append(mode.id)
        if files.page_name(source) != f"{mode.id}_{mode.slug}":
            problems.append(f"{files.page_name(source)}: MODE says {mode.id}_{mode.slug}")
        if f"# # {mode.name}. {mode.title}\n" not in source.read_text():
            problems.append(f"{files.page_name(source)}: the first heading is not the mode's title")
    return problems + [f"{each} is declared twice" for each in set(ids) if ids.count(each) > 1]


def law_rendered() -> Iterator[str]:
    """Every source has its executed notebook, and the README the picture of its page, up to date; nothing is left over."""
    return render.stale()


def law_anatomy() -> Iterator[str]:
    """Headings and tagged cells stand in the agreed order."""
    for source in mode_sources():
        cells = sources.notebook_of(source).cells
        headings = [
            line[3:]
            for cell in cells
            for line in cell.source.splitlines()
            if line.startswith("## ")
        ]
        tagged = [
            tag for cell in cells for tag in cell.metadata.get("tags", []) if tag in CELL_TAGS
        ]
        if headings != HEADINGS or tagged != CELL_TAGS:
            yield f"{files.page_name(source)}: {headings}, {tagged}"


def law_parameters() -> list[str]:
    """Exactly one parameters cell, with the same four names in the same order, all of them literals."""
    return [
        files.page_name(source)
        for source in mode_sources()
        if parameter_names(source) != list(parameters.PARAMETERS)
    ]


def parameter_names(source: Path) -> list[str]:
    names = []
    for cell in sources.percent_notebook(source.read_text()).cells:
        if "parameters" in cell.metadata.get("tags", []):
            body = ast.parse(cell.source).body
            names += [node.targets[0].id for node in body if isinstance(node.value, ast.Constant)]
    return names


def law_outputs() -> list[str]:
    """Stored text says nothing that belongs to one machine, and no notebook carries widget state."""
    problems = []
    for path in files.stored_notebooks():
        notebook = sources.stored_notebook(path)
        everywhere = " at 0x" in path.read_text()  # of an object, in any output
        if (
            everywhere
            or "widgets" in notebook.metadata
            or MACHINE_BOUND.search(compared_text(notebook))
            or "site-packages" in path.read_text()  # also in what is stored for programs
        ):
            problems.append(path.name)
    return problems


def law_lambdas() -> list[str]:
    """No lambda is in another with the same arguments: on Python 3.13 AutoGraph cannot tell them apart, and prints a warning."""
    return [
        f"{files.page_name(source)}: {ast.unparse(outer)}"
        for source in [*mode_sources(), *files.document_pages()]
        for outer in lambdas(ast.parse(source.read_text()))
        if ast.dump(outer.args) in map(ast.dump, (each.args for each in lambdas(outer.body)))
    ]


def lambdas(tree: ast.AST) -> list[ast.Lambda]:
    return [each for each in ast.walk(tree) if isinstance(each, ast.Lambda)]


def law_unnamed() -> Iterator[str]:
    """A page says that the examiner does not name its mode only where no rule does."""
    for source in mode_sources():
        text = " ".join(source.read_text().replace("\n#", " ").split())
        if (
            "`clinic examine` does not name this mode" in text
            and (source.parent / "rule.py").exists()
        ):
            yield f"{files.page_name(source)}: it has a rule"


def law_links() -> list[str]:
    """A link from one notebook to another, or from a page beside the README, leads to a file that exists."""
    pages = [*files.stored_notebooks(), *sorted(files.ROOT.glob("*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^):#]+)\)", prose(page))]
    return [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]


def prose(page: Path) -> str:
    if page.suffix == ".md":
        return page.read_text()
    cells = sources.stored_notebook(page).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


FM25 = "notebooks/fm25_load_outside_scope"
DOCUMENT = "notebooks/documents/002_gradient_accumulation"
SOURCE = "helpers/strategy_clinic/modes/fm25_load_outside_scope/page.py"


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
    changed(root / f"{FM25}.ipynb", "FM25 broken (", "FM25 broken on CPU:0 (")


def print_a_path(root):
    changed(root / f"{FM25}.ipynb", "FM25 broken (", "FM25 broken in /home/me (")


def show_an_object(root):
    """In the one cell of which nbval compares nothing."""
    changed(root / f"{FM25}.ipynb", "need a running kernel", "<Panel object at 0x7f>", 1)


def second_parameters_cell(root):
    changed(
        root / SOURCE,
        '# %% tags=["open"]',
        '# %% tags=["parameters"]\nepochs = 1\n\n# %% tags=["open"]',
    )


def copied_notebook(root):
    text = (root / SOURCE).read_text()
    folder = root / "helpers/strategy_clinic/modes/fm25_again"
    folder.mkdir()
    (folder / "page.py").write_text(text)


def orphan(root):
    (root / "notebooks" / "fm99_orphan.ipynb").write_text((root / f"{FM25}.ipynb").read_text())


MUTATIONS = [
    ("law_outputs", edit(f"{FM25}.ipynb", '"FM25 setup', '"/lib/site-packages')),
    ("law_names", edit(SOURCE, 'id="fm25"', 'id="fm26"')),
    ("law_names", edit(SOURCE, "# # FM25. ", "# # FM25. On ")),
    ("law_names", copied_notebook),
    (
        "law_rendered",
        edit(SOURCE, "# ## Why\n", "# ## Why\n#\n# One sentence more.\n"),
    ),
    ("law_rendered", edit(SOURCE, 'sees="', 'sees="again, ')),
    ("law_rendered", edit("README.md", "mirrored x2 2.00", "mirrored x2 3.00")),
    ("law_rendered", edit("pyproject.toml", 'repository = "', 'repository = "a/b')),
    ("law_rendered", strip_counts),
    ("law_rendered", strip_outputs),
    ("law_rendered", orphan),
    ("law_anatomy", edit(SOURCE, "# ## Why\n", "# ## Cause\n")),
    ("law_anatomy", edit(SOURCE, '# %% tags=["solution"]', "# %%")),
    ("law_parameters", edit(SOURCE, "devices = 2\n", "devices = 1 + 1\n")),
    ("law_parameters", edit(SOURCE, "devices = 2\n", "replicas = 2\n")),
    ("law_parameters", second_parameters_cell),
    ("law_lambdas", edit(SOURCE, "devices = 2\n", "devices = 2\nget = lambda: lambda: 0\n")),
    ("law_outputs", keep_widget_state),
    ("law_outputs", print_a_device),
    ("law_outputs", print_a_path),
    ("law_outputs", show_an_object),
    (
        "law_unnamed",
        edit(SOURCE, "# ## Why\n", "# `clinic examine` does not\n# name this mode.\n#\n# ## Why\n"),
    ),
    ("law_links", edit(f"{FM25}.ipynb", "](fm", "](fn")),
    ("law_links", edit(f"{FM25}.ipynb", "](documents/", "](document/")),
    ("law_links", edit(f"{DOCUMENT}.ipynb", "](../fm", "](fm")),
    ("law_outputs", edit(f"{DOCUMENT}.ipynb", "002-C5 is true (", "002-C5 on CPU:0 is true (")),
    ("law_rendered", edit(f"{DOCUMENT}.ipynb", "](../fm13", "](../fm12")),
    (
        "law_rendered",
        edit("helpers/strategy_clinic/modes/statements.toml", "read forums", "read in forums"),
    ),
    ("law_links", edit("README.md", "](book/how_to/", "](book/how_too/")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
