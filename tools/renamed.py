"""Whether findings follow from names: python tools/renamed.py FOLDER examines the programs with faults of a folder once more
with other names, and prints where the findings are not those of the recorded runs, which stand beside them.

Variables, parameters and functions get names that mean nothing. What others know keeps its name: classes with their methods
and attributes, what is imported, what is given by keyword, what a text contains, and in a program of several files whatever a
module has. `--every 10` takes each tenth fault. See tools/score_folder.py for the folders."""

from __future__ import annotations

import argparse
import ast
import builtins
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import score_folder
from score_folder import COUNTS, LIMIT, RECORDINGS, Variant
from strategy_clinic.examiner.findings import Finding
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Place = tuple[
    str, str, int
]  # of a finding: its mode, the file, and the number of the statement in it


# Names


def bound_in(tree: ast.AST) -> set[str]:
    """Returns the names that a program gives to variables, parameters and functions."""
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and is_bound(each)}
    names |= {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    return names | {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}


def is_bound(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def known_to_others(tree: ast.AST) -> Iterator[str]:
    """Yields the names that a program may not change: others use them, too, or its texts do."""
    for each in ast.walk(tree):
        match each:
            case ast.ClassDef(name=name, body=body):
                yield name
                for part in body:
                    yield from names_of_member(part)
            case ast.Call(keywords=keywords):
                yield from (word.arg for word in keywords if word.arg)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((each.asname or each.name).partition(".")[0] for each in names)
            case ast.Constant(value=str() as text):
                yield text


def names_of_member(part: ast.stmt) -> Iterator[str]:
    """Yields what a class declares: attributes, and methods with their parameters, by which Keras may call them."""
    if isinstance(part, ast.FunctionDef):
        yield part.name
        yield from (each.arg for each in ast.walk(part.args) if isinstance(each, ast.arg))
    else:
        yield from (each.id for each in ast.walk(part) if isinstance(each, ast.Name))


def of_module(tree: ast.Module) -> Iterator[str]:
    """Yields the names of a module, which the other files of a program may import."""
    inside = {
        part for each in ast.walk(tree) if isinstance(each, Function) for part in ast.walk(each)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each in tree.body:
            yield each.name
        elif isinstance(each, ast.Name) and each not in inside:
            yield each.id


class Renamed(ast.NodeTransformer):
    def __init__(self, names: Iterable[str]) -> None:
        self.names = {name: f"q{number}" for number, name in enumerate(sorted(names))}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        node.names = [self.names.get(each, each) for each in node.names]
        return node

    visit_Nonlocal = visit_Global


def renamed(texts: Collection[str]) -> list[str]:
    """Returns the files of a program with other names; the layout of the code and its comments are lost."""
    trees = [*map(ast.parse, texts)]
    kept = {
        "self",
        "cls",
        *dir(builtins),
        *(name for tree in trees for name in known_to_others(tree)),
    }
    if len(trees) > 1:
        kept |= {name for tree in trees for name in of_module(tree)}
    return [ast.unparse(Renamed(bound_in(tree) - kept).visit(tree)) for tree in trees]


# Examinations


def changed(variant: Variant) -> tuple[set[Place], set[Place]]:
    """Returns what is found in a program by its recorded runs, and what in the same one with other names."""
    recorded = next(
        score_folder.scores_of([variant], RECORDINGS / variant.folder.parent.name, "replay", 1)
    )
    with tempfile.TemporaryDirectory() as place:
        plain, other = (
            variant.lay_out(Path(place).resolve() / name) for name in ("plain", "other")
        )
        files = sorted(other.rglob("*.py"))
        for path, text in zip(files, renamed([path.read_text() for path in files])):
            path.write_text(text)
        server = python_process.fork_server()
        spec = ProgramSpec(variant.command, other, keras=3, limit=LIMIT, fork_server=server)
        found = plan.examine(spec, COUNTS).findings
        return places(recorded.findings, plain), places(found, other)


def places(findings: Iterable[Finding], folder: Path) -> set[Place]:
    return {(each.mode, Path(each.file).name, statement_of(each, folder)) for each in findings}


def statement_of(finding: Finding, folder: Path) -> int:
    """Returns the number of the innermost statement of a line, which no layout of the code changes; -1 outside of the program."""
    found = [path for path in folder.rglob("*.py") if path.name == Path(finding.file).name]
    statements = [each for path in found for each in ast.walk(ast.parse(path.read_text()))]
    spanning = [
        ((each.end_lineno or each.lineno) - each.lineno, -number)
        for number, each in enumerate(statements)
        if isinstance(each, ast.stmt) and each.lineno <= finding.line <= (each.end_lineno or 0)
    ]
    return -min(spanning)[1] if spanning else -1


def main(words: list[str]) -> int:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    reader.add_argument("folder", type=Path)
    reader.add_argument("--every", type=int, default=1, help="examine each so many of the faults")
    options = reader.parse_args(words)
    chosen = [
        each
        for each in score_folder.variants(options.folder)
        if each.fault and not [*each.folder.rglob("*.ipynb")]
    ][:: options.every]
    differing = 0
    for variant in chosen:
        before, after = changed(variant)
        differing += before != after
        if before != after:
            print(f"{variant.name}: {sorted(before)} became {sorted(after)}", flush=True)
    print(f"{len(chosen) - differing} of {len(chosen)} have the same findings with other names")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
