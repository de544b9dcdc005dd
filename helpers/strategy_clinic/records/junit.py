"""JUnit XML, which every CI service reads: a suite for each kind of check, a case for each thing that was compared."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ..base.errors import UserError
from ..base.files import write_whole

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def case(group: str, name: str, **ended: str) -> Element:
    """One thing that was compared; `failure`, `error` or `skipped` says in words why it did not pass."""
    made = Element("testcase", classname=legal(group), name=legal(name), time="0")
    for kind, words in ended.items():
        if words:
            SubElement(made, kind, message=legal(words))
    return made


def legal(words: str) -> str:
    """XML has no place for control characters, not even escaped."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in words)


def suite(name: str, cases: list[Element]) -> Element:
    counts = {
        many: str(sum(each.find(one) is not None for each in cases))
        for many, one in COUNTED.items()
    }
    made = Element("testsuite", name=name, tests=str(len(cases)), time="0", **counts)
    made.extend(cases)
    return made


def read_suites(path: Path) -> list[Element]:
    """The suites in a report of pytest's; one that was never written is an error, not a success."""
    if path.exists():
        return list(ElementTree.parse(path).getroot())
    return [suite("outputs", [case("nbval", "run", error="nbval ended before it had a report")])]


def passed(suites: list[Element], excused: set[str]) -> bool:
    """Whether every page says what is stored; what an excused mode's page says is told, and is no failure."""
    for each in suites:
        for made in each:
            mode = re.search(r"(fm\d+)_\w+\.ipynb$", made.get("classname"))
            if mode and mode[1] in excused:
                for ended in made.findall("failure"):
                    ended.tag = "skipped"
        counts = {
            many: sum(made.find(one) is not None for made in each) for many, one in COUNTED.items()
        }
        each.attrib |= {many: str(count) for many, count in counts.items()}
    return all(each.get("failures") == each.get("errors") == "0" for each in suites)


def require_place(path: Path | None):
    """Refuses a report that could not be written, before the work begins and not after it."""
    if path and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK)):
        raise UserError(f"{str(path)!r} cannot be written; give a file in a folder that can be.")


def write_suites(path: Path, suites: list[Element]):
    whole = Element("testsuites")
    whole.extend(suites)
    ElementTree.indent(whole)
    write_whole(path, f"{HEAD}{ElementTree.tostring(whole, 'unicode')}\n")
