"""The code itself: its directions, its sizes, its names. Each law holds for the project, and each is broken below."""

import ast
import functools
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from conftest import ROOT, changed
from law import all_tests_of
from strategy_clinic.base import files

# Each folder may import those above it; entry points, the modules that lie in no folder, may import all of them.
ROOMS = [
    "base",
    "setups",
    "processes",
    "experiments",
    "modes",
    "panel",
    "rendering",
    "triage",
    "records",
    "compiler",
    "workshop",
    "observer",
    "examiner",
]
# The same inside of a folder that has folders; what lies loose in it may be imported by all of them.
INNER = {"examiner": ["rules", "runs", "report", "benchmark", "frontends"]}
DOORS = {"__init__", "__main__", "book", "cli", "commands", "session"}
APART = [  # neither of the two imports the other, though one stands above
    ("rendering", "panel"),
    ("triage", "rendering"),
    ("records", "triage"),
    ("compiler", "triage"),
    ("workshop", "triage"),
    ("workshop", "compiler"),
    ("examiner", "rendering"),
    ("examiner", "records"),
    ("examiner", "compiler"),
    ("examiner", "workshop"),
    *[("observer", other) for other in ("experiments", "modes", "panel", "triage", "examiner")],
]
ONE_PATTERN = {"Row", "ROWS", "TABLE", "__all__", "main"}  # names that say what is alike
LONGEST_FILE, LONGEST_BODY, USUAL_BODY, MOST_IN_A_ROOM = 300, 40, 6, 12


def python_files() -> list[Path]:
    """Of this project's package; the set-up cell is a notebook's, and no module."""
    found = sorted(files.package().rglob("*.py"))
    return [path for path in found if path not in files.page_sources()]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(files.package()).with_suffix("").parts)


def imports() -> dict[str, set[str]]:
    """What each module imports of the others, at its top or inside a function."""
    known = {module_of(path) for path in python_files()}
    return {module_of(path): imported(path, known) for path in python_files()}


@functools.cache
def walked(text: str) -> list:
    """All nodes of a file, its module first; of many copies of a file, one is read."""
    return list(ast.walk(ast.parse(text)))


def imported(path: Path, known: set[str]) -> set[str]:
    own, found = module_of(path).split("."), set()
    for node in walked(path.read_text()):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = own[: len(own) - node.level] + (node.module or "").split(".")
            base = ".".join(part for part in start if part)
            inner = {f"{base}.{alias.name}".lstrip(".") for alias in node.names} & known
            found |= inner or {base if base in known else f"{base}.__init__".lstrip(".")}
    return found


def law_direction() -> list[str]:
    """Rooms import downwards only, and none imports a door."""
    pairs = [(one, other) for one, others in imports().items() for other in sorted(others)]
    return [f"{one} imports {other}" for one, other in pairs if not may_import(one, other)]


def may_import(one: str, other: str) -> bool:
    here, there = one.split(".")[0], other.split(".")[0]
    if here in DOORS:
        return True
    if not {here, there} <= set(ROOMS) or apart(here, there):
        return False
    if here == there and here in INNER:
        return may_import_inside(one, other)
    return ROOMS.index(there) <= ROOMS.index(here)


def may_import_inside(one: str, other: str) -> bool:
    order = ["", *INNER[one.split(".")[0]]]
    here, there = inner_room(one), inner_room(other)
    if one.endswith("plugin"):  # pytest's door
        return True
    if apart(f"{one.split('.')[0]}.{here}", f"{other.split('.')[0]}.{there}"):
        return False
    return order.index(there) <= order.index(here)


def inner_room(module: str) -> str:
    """Which room of its house a module lies in; nothing for what lies loose there."""
    return ".".join(module.split(".")[1:-1])


def apart(here: str, there: str) -> bool:
    return bool({(here, there), (there, here)} & set(APART))


def law_circles() -> list[str]:
    """No module is imported by what it imports, however far around."""
    edges = imports()
    return [
        f"{one} and {other}"
        for one, others in edges.items()
        for other in others
        if one in closure(edges, other)
    ]


def closure(edges: dict, start: str) -> set:
    found, left = set(), [start]
    while left:
        new = edges.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def law_rooms() -> list[str]:
    """Every folder with modules is a room whose first line says what is in it, and small; every other module is a door."""
    folders = {path.parent for path in python_files()} - {files.package()}
    named = {files.package() / name for name in ROOMS}
    named |= {files.package() / house / name for house in INNER for name in INNER[house]}
    problems = [f"{each.name} is no room" for each in folders - named]
    problems += [f"{each.name} holds too much" for each in folders if crowded(each)]
    problems += [
        f"{each.name} does not say what it is for" for each in folders if not purpose(each)
    ]
    loose = [path.stem for path in files.package().glob("*.py") if path.stem not in DOORS]
    return problems + [f"{name} lies in no room" for name in loose]


def crowded(folder: Path) -> bool:
    return len(list(folder.glob("*.py"))) > MOST_IN_A_ROOM


def purpose(folder: Path) -> str:
    file = folder / "__init__.py"
    return (ast.get_docstring(ast.parse(file.read_text())) or "") if file.exists() else ""


def law_names_of_their_own() -> list[str]:
    """No name is defined at the top of two modules, so that a name that is read somewhere is known."""
    where = defaultdict(set)
    for path in python_files():
        for name in defined(path):
            where[name].add(module_of(path))
    return [
        f"{name} is defined in {', '.join(sorted(modules))}"
        for name, modules in sorted(where.items())
        if len(modules) > 1 and name not in ONE_PATTERN
    ]


def defined(path: Path) -> set[str]:
    names = set()
    for statement in walked(path.read_text())[0].body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = getattr(statement, "targets", None) or [statement.target]
            names |= {
                each.id for t in targets for each in ast.walk(t) if isinstance(each, ast.Name)
            }
    return names


def law_sizes() -> list[str]:
    """Files and functions read at a glance: at most 300 lines, a body of at most 6 in the median, none over 40."""
    lines = {path: len(path.read_text().splitlines()) for path in python_files()}
    lines |= {
        path: len(path.read_text().splitlines()) for path in (files.ROOT / "tests").glob("*.py")
    }
    problems = [f"{path.name} has {n} lines" for path, n in lines.items() if n > LONGEST_FILE]
    bodies = function_sizes()
    problems += [f"{name} has {n} lines" for name, n in bodies.items() if n > LONGEST_BODY]
    median = statistics.median(bodies.values())
    return problems + ([f"the median body has {median} lines"] if median > USUAL_BODY else [])


def function_sizes() -> dict[str, int]:
    """Lines of each function's body, without its docstring."""
    sizes = {}
    for path in python_files():
        for node in walked(path.read_text()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                sizes[f"{module_of(path)}.{node.name}:{node.lineno}"] = lines
    return sizes


# Mutations


def adding(name: str, text: str):
    def mutation(root):
        with open(root / "helpers" / "strategy_clinic" / name, "a") as file:
            file.write(f"\n\n{text}\n")

    mutation.__name__ = f"{name} with {text.splitlines()[-1].strip()[:40]}"
    return mutation


def body_of(lines: int) -> str:
    return "\n".join(f"    x = {i}" for i in range(lines))


def a_room_without_a_word(root):
    changed(root / "helpers" / "strategy_clinic" / "panel" / "__init__.py", '"""', "# ", 2)


def a_folder_that_is_no_room(root):
    (root / "helpers" / "strategy_clinic" / "misc").mkdir()
    (root / "helpers" / "strategy_clinic" / "misc" / "__init__.py").write_text('"""Whatever."""\n')


def a_crowded_room(root):
    for number in range(12):
        (root / "helpers" / "strategy_clinic" / "panel" / f"more_{number}.py").write_text("")


MIDDLING = "\n".join(f"def f{i}():\n{body_of(9)}\n" for i in range(400))
MUTATIONS = [
    ("law_direction", adding("base/files.py", "from ..modes import failure_mode")),
    ("law_direction", adding("processes/pool.py", "def late():\n    from ..records import grid")),
    ("law_direction", adding("triage/desk.py", "from ..rendering import sources")),
    ("law_direction", adding("modes/failure_mode.py", "from .. import cli")),
    ("law_direction", adding("examiner/rules/silent.py", "from ..report import serialize")),
    ("law_direction", adding("examiner/runs/process.py", "from ...observer import notes")),
    ("law_direction", adding("examiner/recording.py", "from .rules import silent")),
    ("law_circles", adding("experiments/workers.py", "def late():\n    from . import experiment")),
    ("law_circles", adding("base/errors.py", "from . import files")),
    ("law_rooms", a_room_without_a_word),
    ("law_rooms", a_folder_that_is_no_room),
    ("law_rooms", adding("loose.py", "x = 1")),
    ("law_rooms", a_crowded_room),
    ("law_names_of_their_own", adding("panel/cards.py", "def write_whole():\n    pass")),
    ("law_names_of_their_own", adding("panel/cards.py", "PARAMETERS = ()")),
    ("law_sizes", adding("modes/failure_mode.py", f"def long():\n{body_of(41)}")),
    ("law_sizes", adding("doors.py", MIDDLING)),
    ("law_sizes", adding("panel/long.py", "\n".join(["x = 1"] * 301))),
    ("law_sizes", adding("../tests/test_long.py", "\n".join(["x = 1"] * 301))),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_helpers_do_not_import_tensorflow():
    """Nor does anything that a quick command, or the import of a word, needs."""
    words = "from strategy_clinic import *"
    assert "tensorflow" not in modules_after(
        f"{words}\nimport helpers.cli, strategy_clinic.panel.widgets"
    )


def test_importing_helpers_costs_nothing():
    ours = [
        name
        for name in modules_after("import strategy_clinic")
        if name.startswith("strategy_clinic")
    ]
    assert sorted(ours) == [
        "strategy_clinic",
        "strategy_clinic.base",
        "strategy_clinic.base.public_api",
    ]


def test_the_check_of_imports_can_fail(tmp_path):
    (tmp_path / "tensorflow.py").touch()  # the real one takes seconds
    place = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    assert "tensorflow" in modules_after(f"{place}\nimport helpers\nimport tensorflow")


def modules_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())
