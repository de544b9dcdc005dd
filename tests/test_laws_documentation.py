"""The documentation outside of the notebooks: its messages, its groups, its addresses. Each law is broken on purpose below."""

import functools
import json
import re
from collections import Counter

from conftest import changed, forget
from law import all_tests_of, edit
from strategy_clinic.base import files, project
from strategy_clinic.modes import groups, kinds, registry
from strategy_clinic.rendering import frequent, sources
from strategy_clinic.triage import page_messages, wordings
from strategy_clinic.triage.classify import triage
from strategy_clinic.triage.report_text import flat

MESSAGE = re.compile(r"^\| `(.+?)` \| (?:.+ \| )?\[(fm\d\d)\]\((?:notebooks/)?\2_", re.MULTILINE)


def law_messages() -> list[str]:
    """README and first notebook have the same ten messages of ten modes; triage names each, and it stands on its page."""
    frequent.frequent_messages.cache_clear()
    listed = [(each.says, each.mode) for each in frequent.frequent_messages()]
    start = json.loads((files.notebooks() / "00_start_here.ipynb").read_text())["cells"]
    pages = [(files.ROOT / "README.md").read_text(), "\n".join(cell["source"] for cell in start)]
    problems = [f"{text[:20]!r} has other messages" for text in pages if shown(text) != listed]
    problems += [] if len({mode for _, mode in listed}) == 10 else [f"{len(listed)} messages"]
    problems += [says for says, mode in listed if triage(says).mode != mode]
    return problems + [
        f"{mode} has not: {says}" for says, mode in listed if not on_page(says, mode)
    ]


def shown(text: str) -> list[tuple[str, str]]:
    """The messages of the first table that has some."""
    return MESSAGE.findall(
        re.split(r"\n(?:\| --- )+\|\n", text, maxsplit=1)[1].partition("\n\n")[0]
    )


def on_page(says: str, mode: str) -> bool:
    """Whether a message stands on a page, whatever its numbers and names are there."""
    words = re.split(r"filepath=\S+|'\w+'(?!:)|\b\d+\b", says)
    text = page_messages.page_text(wordings.declared_modes()[mode])
    return all(flat(part) in text for part in words)


def law_frequent_order() -> list[str]:
    """The messages stand in the order of their counts."""
    frequent.frequent_messages.cache_clear()
    counts = [each.reports + each.threads for each in frequent.frequent_messages()]
    return [] if counts == sorted(counts, reverse=True) else [f"{counts} are not in order"]


# What a finding begins with after its place, and its last line.
FINDING = re.compile(r"^\S+\.py:\d+ +(fm\d\d .+)$|^ +(fix .+)$", re.MULTILINE)


def law_finding() -> list[str]:
    """The README shows a finding as the notebook that examines a program does."""
    notebook = files.notebooks() / "examine_your_code.ipynb"
    cells = sources.stored_notebook(notebook).cells
    told = "".join(str(cell.get("outputs", "")) for cell in cells)
    shown = FINDING.findall((files.ROOT / "README.md").read_text())
    lines = ["".join(found) for found in shown]
    problems = [] if len(lines) == 2 else [f"the README shows {len(lines)} lines of a finding"]
    return problems + [line for line in lines if line not in told]


SHOWN = re.compile(r"^```\{generated\} shown_as (\w+)$", re.MULTILINE)


def law_kinds() -> list[str]:
    """A page of the site lists each kind of failure, and what a mode's program shows is told in the first cell of its page."""
    forget()
    pages = sorted((files.ROOT / "book" / "errors").glob("*.md"))
    listed = [name.replace("_", " ") for page in pages for name in SHOWN.findall(page.read_text())]
    problems = [] if sorted(listed) == sorted(kinds.KINDS) else [f"the pages list {listed}"]
    for mode in registry.modes():
        unknown = set(kinds.kinds_of(mode)) - set(kinds.KINDS)
        problems += [f"{mode.id} {kind}, which is no kind" for kind in sorted(unknown)]
        untold = set(kinds.shown_kinds(mode)) - set(kinds.told_kinds(mode))
        problems += [f"{mode.id} {kind}, and its page does not tell it" for kind in sorted(untold)]
    return problems


GROUPS = "helpers/strategy_clinic/modes/groups.toml"


def law_one_group_each() -> list[str]:
    """Every mode is in one group of pages, each of which says in one sentence what is in it."""
    forget()
    listed = Counter(mode for group in groups.groups() for mode in group.modes)
    known = {mode.id for mode in registry.modes()}
    problems = [f"{mode} is in {listed[mode]} groups" for mode in known if listed[mode] != 1]
    problems += [f"{mode} is in a group, and is no mode" for mode in listed.keys() - known]
    return problems + [
        f"{group.name} is told in more or less than a sentence: {group.about!r}"
        for group in groups.groups()
        if group.about.find(". ") >= 0 or not group.about.endswith(".")
    ]


# What names a repository on GitHub, and the registry's package of our name, which is not ours.
REPOSITORY = re.compile(
    r"(?:github\.com|google\.com/github|mybinder\.org/v2/gh)/([\w.-]+/[\w-]+)"
    r"|\buses: ([\w.-]+/[\w-]+)/\.github|\brepository: ([\w.-]+/[\w-]+)"
)
PACKAGE = re.compile(r"pip install (?:-\S+ )*[\"']?strategy[-_]clinic(?![^\n]* @ file:)")
KERAS = {"keras-team/keras", "keras-team/tf-keras"}
ISSUES = {"tensorflow/tensorflow", "googlecolab/colabtools"} | KERAS
OTHERS = {"oasis-tcs/sarif-spec", "OWNER/NAME"} | ISSUES


def law_addresses() -> list[str]:
    """Nothing names an address but that of the settings, and none while it is empty: somebody else could register it."""
    own = project.setting()["repository"]
    problems = []
    for path in sorted(files.ROOT.rglob("*")):
        if path.suffix in (".ipynb", ".ipy", ".md", ".toml", ".yml"):
            text = path.read_text()
            repositories, packages = addresses_in(text)
            problems += [f"{path.name}: {name}" for name in sorted(repositories - {own})]
            problems += [f"{path.name}: {found}" for found in packages]
            if own and path.suffix == ".md" and "not published yet" in text:
                problems.append(f"{path.name}: it is published as {own}")
    return problems


@functools.cache  # of many files a mutation changes one
def addresses_in(text: str) -> tuple[set[str], list[str]]:
    named = {name for match in REPOSITORY.findall(text) for name in match if name}
    return named - OTHERS, PACKAGE.findall(text)


def another_address(root):
    """An owner has set an address, and a page has another."""
    changed(root / "pyproject.toml", 'repository = ""', 'repository = "owner/clinic"')
    for path in root.rglob("*.md"):
        path.write_text(path.read_text().replace("not published yet", "published"))
    changed(root / "README.md", "## More", "[Open](https://github.com/other/clinic)\n\n## More")


def a_page_that_does_not_tell(root):
    page = root / "helpers/strategy_clinic/modes/fm37_loss_scaled_per_replica/page.py"
    changed(page, "# | no message: `bias", "# | `bias")
    changed(page, "# *Wrong result", "# *Result")


def a_message_that_leaves_its_page(root):
    path = root / "notebooks" / "fm34_no_gradients.ipynb"
    changed(path, "No gradients provided for any", "No gradient for any")


FREQUENT = "helpers/strategy_clinic/modes/frequent.toml"
MUTATIONS = [
    ("law_messages", edit("README.md", "Could not locate class", "Could not find class")),
    ("law_messages", edit("README.md", "[fm24](notebooks/fm24", "[fm25](notebooks/fm25")),
    ("law_messages", edit(FREQUENT, 'mode = "fm24"', 'mode = "fm15"')),
    ("law_messages", a_message_that_leaves_its_page),
    ("law_frequent_order", edit(FREQUENT, "reports = 10", "reports = 2")),
    ("law_finding", edit("README.md", "each divides by its own part", "each has its own part")),
    ("law_finding", edit("README.md", "    fix       divide", "    divide")),
    ("law_kinds", edit("book/errors/warns.md", "shown_as warns", "shown_as raises")),
    ("law_kinds", edit("book/errors/slow.md", "shown_as hangs", "shown_as waits")),
    ("law_kinds", edit(GROUPS, 'without = "hangs"', 'without = "waits"')),
    ("law_kinds", a_page_that_does_not_tell),
    ("law_one_group_each", edit(GROUPS, '"fm37", ', "")),
    ("law_one_group_each", edit(GROUPS, '"fm37", ', '"fm37", "fm03", ')),
    ("law_one_group_each", edit(GROUPS, '"fm37", ', '"fm37", "fm99", ')),
    ("law_one_group_each", edit(GROUPS, "devices, and nothing is", "devices. Nothing is")),
]

INSTALL, BOOTSTRAP = "book/how_to/install.md", "helpers/strategy_clinic/rendering/bootstrap.ipy"
CLONE = "[notebooks,fast] @ file:"
MUTATIONS += [
    ("law_addresses", another_address),
    ("law_addresses", edit("pyproject.toml", 'repository = ""', 'repository = "owner/clinic"')),
    ("law_addresses", edit(BOOTSTRAP, 'default="ADDRESS"', 'default="git+https://github.com/a/b"')),
    ("law_addresses", edit("book/how_to/check_in_ci.md", "OWNER/NAME", "strategy-clinic/clinic")),
    (
        "law_addresses",
        edit(".github/workflows/clinic-check.yml", "${{ job.workflow_repository }}", "a/b"),
    ),
    ("law_addresses", edit(INSTALL, CLONE, "[notebooks,fast]' # file:")),
    ("law_addresses", edit("pyproject.toml", "[project.scripts]", 'x = "https://github.com/a/b"')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
