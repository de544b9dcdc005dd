"""Which notebooks `make test` runs: `python tools/changed_pages.py` prints them, with `--state` the state of all.

The state is a line for each notebook, with a hash of its inputs. `make pages` runs all notebooks and, once all have passed,
keeps the state from before the run in tests/pages_passed.txt. A notebook whose hash is another now is run, and so are
the eight of ALWAYS. What all notebooks have in common is no input of them; for that the eight stand:

| what has changed                                                       | what is run                      |
|------------------------------------------------------------------------|----------------------------------|
| the notebook, a file in the folder of its mode but those of OF_MODULES | that notebook                    |
| a file in the folder of a mode whose page a document's notebook uses   | that notebook, too               |
| a module that its cells import, the data that this reads               | these notebooks                  |
| a module that only such a module imports                               | these notebooks                  |
| another module that the session imports, panel/figures.py              | the eight                        |
| the version of a package in PACKAGES                                   | all notebooks                    |
"""

import ast
import functools
import hashlib
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from module_graph import imports, reachable
from statements import statements
from strategy_clinic.base import files, public_api

ALWAYS = {
    "00_start_here": "a page without a session: the machine, the finder of modes, triage as a widget",
    "000_weights_in_run": "a document's notebook: claims and their verdicts, pages' programs and code; one device",
    "fm09_optimizer_slots_missing": "the figure of a timeline",
    "fm18_logical_devices": "the devices of a TPU, looked up by the page itself",
    "fm23_variable_outside_scope": "workers, the figure of copies, a check's source",
    "fm27_format_not_loadable": "every other save format, and a page's own table",
    "fm30_custom_object_unknown": "files in HDF5, classes of the program",
    "fm39_per_replica_on_host": "the figures of a grid and of numbers, programs with replaced lines, a described TPU",
}
PACKAGES = ("tensorflow", "keras", "tf_keras", "numpy", "matplotlib", "ipython", "ipykernel")
# Modules that a module starts by their name, which no import shows.
STARTED = {
    "programs.run": {"programs.child"},
    "examiner.runs.sandbox": {"observer.main"},
    "records.runtime_check": {"records.check"},  # `clinic check`
}
# What no cell uses of what all notebooks import: how a page's first cell is written.
RENDERED = "rendering.first_screen"
# What the session imports only for pages that call this.
TABLES, SHOWS = "examiner.frontends.page_tables", "session.inside("
FOR_ALL = "panel.figures"  # which all pages of modes import but one
# What modules read of all modes, or of the records.
MODES = "helpers/strategy_clinic/modes/fm*"
RECORDS = "notebooks/records/*.json"
DATA = {
    "compiler.programs": (RECORDS,),
    "examiner.repair": (f"{MODES}/repair.py",),
    "examiner.rule": (f"{MODES}/rule.py",),
    "modes.statements": ("helpers/strategy_clinic/modes/statements.toml",),
    "panel.mode_finder": (f"{MODES}/page.py", "helpers/strategy_clinic/modes/groups.toml"),
    "records.atlas": (f"{MODES}/page.py", RECORDS),
    "records.runtime_check": (RECORDS,),
    "triage.wordings": (f"{MODES}/words.toml", "helpers/strategy_clinic/triage/*.toml"),
}

# Files in the folder of a mode that only these modules read, which few pages import.
OF_MODULES = {"repair.py", "rule.py", "words.toml"}


def passed_file() -> Path:
    return files.ROOT / "tests" / "pages_passed.txt"


def chosen() -> list[str]:
    """Returns the names of the notebooks to be run."""
    passed = dict(line.split() for line in lines_of(passed_file()))
    return [name for name, state in states().items() if name in ALWAYS or passed.get(name) != state]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def states() -> dict[str, str]:
    """Returns a hash of the inputs of each notebook."""
    edges = graph()
    everywhere = closure(edges, {"session"})
    versions = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    read = functools.cache(named_contents)  # most files are inputs of many notebooks
    return {
        files.page_name(source): digest(inputs(source, edges, everywhere), versions, read)
        for source in files.page_sources()
    }


def named_contents(path: Path) -> bytes:
    return f"{path.relative_to(files.ROOT)}\n".encode() + path.read_bytes()


def graph() -> dict[str, set[str]]:
    edges = imports()
    left_out = {RENDERED, TABLES}
    return {one: (others - left_out) | STARTED.get(one, set()) for one, others in edges.items()}


def closure(edges: dict[str, set[str]], starts: set[str]) -> set[str]:
    return starts.union(*(reachable(edges, start) for start in starts))


def inputs(source: Path, edges: dict[str, set[str]], everywhere: set[str]) -> set[Path]:
    """Returns the files of one notebook that not all notebooks of modes have in common."""
    used = pages_used(source)
    named = set().union(*(imported_by_page(page, set(edges)) for page in [source, *used]))
    named |= {"document_session", "modes.statements"} if files.is_of_document(source) else set()
    named |= {TABLES} if SHOWS in source.read_text() else set()
    modules = (closure(edges, named) - everywhere) | named - {FOR_ALL}
    paths = {files.package() / f"{module.replace('.', '/')}.py" for module in modules}
    for pattern in {each for module in modules for each in DATA.get(module, ())}:
        paths |= set(files.ROOT.glob(pattern))
    own = {path for page in [source, *used] for path in files_of_page(page)}
    return paths | own | {files.notebook(source)}


def pages_used(source: Path) -> list[Path]:
    """Returns the pages of modes whose programs and code a document's notebook uses."""
    modes = re.findall(r'document\.page\("(fm\d\d)"\)', source.read_text())
    pages = files.mode_pages() if modes else {}
    return [pages[mode] for mode in modes]


def files_of_page(source: Path) -> list[Path]:
    if source.name != "page.py":
        return [source]
    return [path for path in source.parent.glob("*.*") if path.name not in OF_MODULES]


def imported_by_page(source: Path, modules: set[str]) -> set[str]:
    """Returns the modules of the package that the cells of a page import."""
    return {module_named(*words, modules) for words in words_from_package(source.read_text())}


@functools.cache
def words_from_package(text: str) -> set[tuple[str, str]]:
    """Returns each `from package import name` of a text, where the package is ours."""
    nodes = statements(ast.parse(text))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {
        (str(node.module), alias.name)
        for node in found
        if str(node.module).split(".")[0] == "strategy_clinic"
        for alias in node.names
    }


def module_named(package: str, name: str, modules: set[str]) -> str:
    """Returns the module that `from package import name` imports; a public name stands for the module that defines it."""
    base = package.partition(".")[2]
    if not base and name in (defined := public_api.WORDS | public_api.MODULES):
        return defined[name]
    words = (f"{base}.{name}".lstrip("."), base, f"{name}.__init__")
    return next(word for word in words if word in modules)


def digest(paths: set[Path], versions: list[str], read: Callable[[Path], bytes]) -> str:
    """Returns a hash of files, with their names, and of versions."""
    result = hashlib.sha256("\n".join(versions).encode())
    for path in sorted(paths):
        result.update(read(path))
    return result.hexdigest()[:16]


def main() -> None:
    if sys.argv[1:] == ["--state"]:
        print("\n".join(f"{name} {state}" for name, state in states().items()))
        return
    names = chosen()
    print(f"{len(names)} of {len(files.page_sources())} notebooks are run.", file=sys.stderr)
    paths = {files.page_name(source): files.notebook(source) for source in files.page_sources()}
    print(*[paths[name].relative_to(files.ROOT) for name in names])


if __name__ == "__main__":
    main()
