"""The cells of a document's notebook that follow from its statements, its claims, and the pages of the modes."""

import ast
import functools
import re
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..base.free_names import binds, needed, union
from ..modes import registry, statements
from ..modes.statements import Statement

WORDS = {"true": "true", "half": "true in part", "false": "false", "not judged": "not judged"}
ORDER = list(WORDS)
TAGS = ("statements", "section", "decided")  # of the cells that get their text here
BORROWED = re.compile(r"^# from (fm\d\d): (.+)$", re.MULTILINE)
END = "# up to here"
WITHOUT_CODE = {"declaration", "parameters", "open", "panel"}


class DocumentText:
    """What is written about the statements of one document."""

    def __init__(self, source: Path) -> None:
        self.id = files.page_id(source)
        self.pages, self.statements = files.mode_pages(), statements.of_document(self.id)
        self.documents = {files.page_id(path): path for path in files.document_pages()}
        claims = [claim for document in registry.documents() for claim in document.claims]
        # Where a version has changed a verdict, the one before: the text is the same on every version.
        self.claims = {claim.id: claim for claim in claims if not claim.since}

    def filled(self, tag: str, text: str) -> str:
        """Returns the text of a cell: a table below it, or what stands for the mode or the claims that it names."""
        if tag == "statements":
            return f"{text}\n\n{self.table()}"
        return self.section(text) if tag == "section" else self.decided(text)

    # The table at the top

    def table(self) -> str:
        """Returns a table of all statements by verdict, each with links to what decides it."""
        made = sorted(self.statements, key=lambda each: ORDER.index(self.verdict(each)))
        lines = ["| verdict | statement | says | decided by | page |", "|---" * 5 + "|"]
        return "\n".join([*lines, *map(self.row, made)])

    def row(self, statement: Statement) -> str:
        modes = dict.fromkeys(self.claims[claim].mode for claim in statement.claims)
        where = ", ".join(map(self.link, statement.claims)) or statement.reason
        cells = self.words(statement), statement.id, statement.says, where
        return f"| {' | '.join(cells)} | {', '.join(map(self.page_link, modes))} |"

    def link(self, claim: str) -> str:
        """Returns a link to the cell that decides a claim, which may be in another document's notebook."""
        document = claim.split("-")[0]
        if document == self.id:
            return f'<a href="#{claim}">{claim}</a>'
        return f"[{claim}]({files.notebook(self.documents[document]).name})"

    def page_link(self, mode: str) -> str:
        return f"[{mode.upper()}](../{files.notebook(self.pages[mode]).name})"

    def verdict(self, statement: Statement, keras: int = 3) -> str:
        return statements.verdict(statement, keras, self.claims)

    def words(self, statement: Statement) -> str:
        """Returns the verdict on Keras 3, and that on Keras 2 where it differs."""
        now, before = (WORDS[self.verdict(statement, keras)] for keras in (3, 2))
        return now if now == before else f"{now}; Keras 2: {before}"

    # The heading of a mode, and the text above a cell that decides

    def section(self, mode: str) -> str:
        declared = registry.read_mode(self.pages[mode])
        assert declared
        return f"## {declared.name}. {declared.title}\n\nThe page: {self.page_link(mode)}."

    def decided(self, text: str) -> str:
        """Returns what the document says and the verdict, for the claims that the cell below decides."""
        names = text.split(", ")
        made = [each for each in self.statements if set(each.claims) & set(names)]
        anchors = "".join(f'<a id="{name}"></a>' for name in names)
        parts = [(each.id, as_sentence(each.says), self.judged(each, names)) for each in made]
        if len(parts) == 1:
            return "### {}{}. {}\n\n{}".format(anchors, *parts[0])
        head = f"### {anchors}{', '.join(name for name, _, _ in parts)}"
        return "\n\n".join([head, *(f"{said}. {judged}" for _, said, judged in parts)])

    def judged(self, statement: Statement, names: list[str]) -> str:
        """Returns the verdict, and the claims of other cells that it follows from."""
        others = [self.link(each) for each in statement.claims if each not in names]
        more = f" The rest: {', '.join(others)}." if others else ""
        return f"**{as_sentence(self.words(statement))}.**{more}"


def as_sentence(words: str) -> str:
    return words[0].upper() + words[1:]


# Back from a notebook


def as_written(tag: str, text: str) -> str:
    """Returns the text of a cell as its author has written it."""
    if tag == "section":
        return text.split(".")[0].removeprefix("## ").lower()
    if tag == "decided":
        return ", ".join(re.findall(r'<a id="(.+?)"></a>', text))
    return text.split("\n\n|")[0]


# Code that a page has, too


def with_borrowed(code: str) -> str:
    """Returns a cell's code with the statements of pages that it names."""
    return BORROWED.sub(lambda found: f"{found[0]}\n{borrowed(found[1], found[2])}\n{END}", code)


def without_borrowed(code: str) -> str:
    return re.sub(rf"^(# from fm\d\d: .+)\n(?:.*\n)*?{END}$", r"\1", code, flags=re.MULTILINE)


def borrowed(mode: str, names: str) -> str:
    """Returns the statements of a page that bind these names, and all that those need; raises UserError if one is missing."""
    return statements_of(mode, files.mode_pages()[mode].read_text(), names)


@functools.cache
def statements_of(mode: str, page: str, names: str) -> str:
    """Returns what is borrowed from the text of a page; the same text is parsed once."""
    text, wanted = page_code(page), set(names.split(", "))
    body = needed(ast.parse(text).body, wanted)
    if missing := sorted(wanted - union(binds, body)):
        raise UserError(
            f"No cell of {mode} defines {', '.join(missing)}, which a document's notebook asks for."
        )
    parts = [source_of(text, each) for each in body]
    return "".join(map(spaced, [""] + parts[:-1], parts))


def source_of(text: str, node: ast.stmt) -> str:
    """Returns the lines of a statement, with those of its decorators."""
    decorators = getattr(node, "decorator_list", [])
    first = min(each.lineno for each in [node, *decorators])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def spaced(before: str, part: str) -> str:
    """Returns a statement after another, with two empty lines around a definition."""
    defines = re.compile(r"@|def |class ")
    apart = "\n\n\n" if defines.match(before) or defines.match(part) else "\n"
    return f"{apart}{part}" if before else part


def page_code(page: str) -> str:
    """Returns the code of a page's cells, but for its programs, its declaration, and what opens it."""
    cells = re.split(r"^# %%(.*)\n", page, flags=re.MULTILINE)[1:]
    return "\n".join(text for head, text in zip(cells[::2], cells[1::2]) if is_code(head))


def is_code(head: str) -> bool:
    return "[markdown]" not in head and not WITHOUT_CODE & set(re.findall(r'"(\w+)"', head))
