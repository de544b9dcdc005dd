"""JUnit XML, which every CI service reads: a suite for each kind of check, and a case for each comparison."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ..base.errors import UserError
from ..base.files import write_whole

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def case(group: str, name: str, **reasons: str) -> Element:
    """Returns a case; `failure`, `error` or `skipped` says why it did not pass, unless it is empty."""
    element = Element("testcase", classname=legal(group), name=legal(name), time="0")
    for kind, reason in reasons.items():
        if reason:
            SubElement(element, kind, message=legal(reason))
    return element


def legal(words: str) -> str:
    """Replaces control characters, which XML does not permit even if they are escaped."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in words)


def suite(name: str, cases: list[Element]) -> Element:
    element = Element("testsuite", name=name, tests=str(len(cases)), time="0")
    element.extend(cases)
    count_cases(element)
    return element


def count_cases(suite: Element) -> None:
    for name, kind in COUNTS.items():
        suite.set(name, str(sum(case.find(kind) is not None for case in suite)))


def read_suites(path: Path) -> list[Element]:
    """Returns the suites in a report of pytest's; a report that was not written is an error."""
    if path.exists():
        return list(ElementTree.parse(path).getroot())
    return [suite("outputs", [case("nbval", "run", error="nbval ended before it had a report")])]


def passed(suites: list[Element], excused: set[str]) -> bool:
    """Returns whether no case has failed; failures of excused modes are made skipped cases."""
    for suite in suites:
        for case in suite:
            mode = re.search(r"(fm\d+)_\w+\.ipynb$", case.get("classname", ""))
            if mode and mode[1] in excused:
                for failure in case.findall("failure"):
                    failure.tag = "skipped"
        count_cases(suite)
    return all(suite.get("failures") == suite.get("errors") == "0" for suite in suites)


def require_writable(path: Path | None) -> None:
    """Raises UserError for a report that cannot be written, before the work begins."""
    if path and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK)):
        raise UserError(f"{str(path)!r} cannot be written; give a file in a folder that can be.")


def write_suites(path: Path, suites: list[Element]) -> None:
    root = Element("testsuites")
    root.extend(suites)
    ElementTree.indent(root)
    write_whole(path, f"{HEAD}{ElementTree.tostring(root, 'unicode')}\n")
