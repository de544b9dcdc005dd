"""Which private names of other packages our files use, found by reading them; and whether the list says the same."""

import ast
import functools
import re
import textwrap
from pathlib import Path

from strategy_clinic.base import private_names
from strategy_clinic.base.private_names import ROWS

ROOT = Path(__file__).parents[1]
PLACES = (
    "helpers/**/*.py",
    "helpers/**/*.ipy",
    "helpers/strategy_clinic/modes/*/page.py",
    "tests/*.py",
)
OWN_TESTS = [f"tests/{name}.py" for name in ("foreign_objects", "private_names", "test_privates")]
# These speak of the names, and lean on none.
SPEAKING = {"helpers/strategy_clinic/base/private_names.py", *OWN_TESTS}
INWARD = r"(?:tensorflow\.(?:python|compiler|core)|(?:tf_)?keras\.src)"
INNER = rf"{INWARD}\b[\w.]*"


@functools.cache
def sources(root: Path) -> dict[str, ast.Module]:
    paths = {path for pattern in PLACES for path in root.glob(pattern)}
    named = {path.relative_to(root).as_posix(): path for path in sorted(paths)}
    return {
        name: ast.parse(without_magics(path.read_text()))
        for name, path in named.items()
        if name not in SPEAKING
    }


def without_magics(text: str) -> str:
    """Python, where a cell has lines that only IPython reads."""
    return re.sub(r"^(\s*)%.*$", r"\1pass", text, flags=re.MULTILINE)


@functools.cache
def private_names_used(root: Path = ROOT) -> set[tuple[str, str]]:
    """Every file of ours with every private name of others that it uses, also in code that it holds as text."""
    modules = {path.stem for path in root.glob("helpers/**/*.py")}
    return {
        (name, found)
        for name, tree in sources(root).items()
        for found in names_in(tree, modules)
        if found not in private_names.DOCUMENTED
    }


def is_private(name: str) -> bool:
    return bool(re.fullmatch(r"_[A-Za-z]\w*", name)) or name == "__internal__"


def names_in(tree, modules: set[str]) -> set[str]:
    own, found = own_names(tree), set()
    texts = [each for each in nodes(tree) if isinstance(each, ast.JoinedStr)]
    parts = {id(each) for text in texts for each in text.values}
    for node in (each for each in nodes(tree) if id(each) not in parts):
        if isinstance(node, ast.Attribute):
            found |= of_attribute(node, own, modules)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= of_import(node) | taken_from(node, tree)
        elif isinstance(node, ast.ClassDef):
            found |= methods_for_others(node, tree)
        elif isinstance(node, (ast.Constant, ast.JoinedStr)):
            found |= of_text(text_of(node), modules)
    return found


def own_names(tree) -> set[str]:
    """What this file defines, and so may use."""
    functions = {each.name for each in nodes(tree) if isinstance(each, ast.FunctionDef)}
    stored = [each for each in attributes(tree) if not isinstance(each.ctx, ast.Load)]
    return functions | {each.attr for each in stored if is_self(each.value)}


@functools.cache
def attributes(tree) -> list:
    return [each for each in nodes(tree) if isinstance(each, ast.Attribute)]


@functools.cache
def nodes(tree) -> list:
    """All of a file: walking takes longer than what is then asked of each."""
    return list(ast.walk(tree))


def dotted(node) -> str:
    """`a.b.c`; what is more than names with dots between has nothing before its first dot."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return getattr(node, "id", "")


def is_self(node) -> bool:
    return getattr(node, "id", "") in ("self", "cls")


def of_attribute(node, own: set, modules: set) -> set[str]:
    if re.fullmatch(INWARD, dotted(node.value)):
        return {dotted(node)}
    ours = (is_self(node.value) and node.attr in own) or getattr(node.value, "id", "") in modules
    return {node.attr} if is_private(node.attr) and not ours else set()


def of_import(node) -> set[str]:
    """Modules, and what is taken out of them: both may be inner ones."""
    start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    if getattr(node, "level", 0) or start.startswith("helpers."):
        return set()
    names = {f"{start}{alias.name}" for alias in node.names}
    return {name for name in names if re.fullmatch(INNER, name) or is_private(name.split(".")[-1])}


def taken_from(node, tree) -> set[str]:
    """What is then read of an inner module, as `module: name`."""
    start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    known = {alias.asname or alias.name: f"{start}{alias.name}" for alias in node.names}
    return {
        f"{known[each.value.id]}: {each.attr}"
        for each in attributes(tree)
        if re.fullmatch(INNER, known.get(getattr(each.value, "id", ""), ""))
    }


def methods_for_others(node, tree) -> set[str]:
    """Private methods that their own file never calls: whoever calls them, by that name, is not us."""
    called = {each.attr for each in attributes(tree)}
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return {name for name in names - called if is_private(name)}


def text_of(node) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = [each.value if isinstance(each, ast.Constant) else "x" for each in node.values]
        return "".join(parts)
    return node.value if isinstance(node.value, str) else ""


def of_text(text: str, modules: set) -> set[str]:
    """A name alone, or code for another process; prose is neither."""
    if is_private(text) or re.fullmatch(INNER, text):
        return {text}
    if not re.search(rf"\._[A-Za-z]|{INNER}", text):
        return set()
    try:
        return names_in(ast.parse(textwrap.dedent(text)), modules)
    except SyntaxError:
        return set(re.findall(rf"(?:from|import) ({INNER})", text))


@functools.cache
def without_comments(root: Path, name: str) -> str:
    tree = sources(root).get(name)
    return ast.unparse(tree) if tree else ""


def allowed(row) -> set[tuple[str, str]]:
    first = f"{row.start}: {row.path.split('.')[0]}"
    return {(file, name) for file in row.used for name in (row.start, first, row.sign)}


def law(rows=ROWS, root: Path = ROOT) -> list[str]:
    """What is used and not listed, and what is listed and not used."""
    unlisted = sorted(private_names_used(root) - {each for row in rows for each in allowed(row)})
    return [f"{file} uses {name}, which is not listed" for file, name in unlisted] + [
        f"{file} no longer uses {row.what}"
        for row in rows
        for file in row.used
        if not re.search(rf"(?<!\w){re.escape(row.sign)}(?!\w)", without_comments(root, file))
    ]
