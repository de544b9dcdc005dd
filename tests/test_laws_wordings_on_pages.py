"""Who is sent to a page by a message finds it there. What is still missing is listed, and the list only becomes shorter."""

import json
import sys

from conftest import ROOT, changed, forget
from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.triage import page_messages, wordings

sys.path.insert(0, str(ROOT / "tools"))

import wordings_on_pages

MOST = 325  # messages that are listed as missing: this number is only ever made smaller


def listed() -> dict[str, list[str]]:
    return wordings_on_pages.excepted(files.ROOT / "tests" / "wordings_missing_on_pages.toml")


def law_wordings_stand_on_pages() -> list[str]:
    """A wording of TensorFlow 2.18 to 2.21 and Keras 2 and 3 stands on the page that it leads to, or in the list."""
    forget()
    return [
        f"{mode} has no: {says}"
        for mode, absent in wordings_on_pages.missing().items()
        for says in absent
        if says not in listed().get(mode, ())
    ]


def law_list_only_shrinks() -> list[str]:
    """What stands on its page, or leads to it no longer, is not in the list; the list is not longer than it was."""
    forget()
    now = wordings_on_pages.missing()
    count = sum(map(len, listed().values()))
    problems = [f"{count} messages are listed, and there were {MOST}"] if count > MOST else []
    return problems + [
        f"{mode} needs no exception: {says}"
        for mode, lines in listed().items()
        for says in lines
        if says not in now.get(mode, ())
    ]


def a_wording_that_no_page_has(root):
    path = wordings.words_files()["fm01"]
    new = "\n[[wording]]\nsays = 'The kettle of this replica is empty'\nfrom = '2.21'\n"
    path.write_text(path.read_text() + new)


def one_more_exception(root):
    changed(root / LIST, "\nfm03 = '''\n", "\nfm03 = '''\nThe kettle is empty\n", 1)


def a_page_that_has_it(root):
    mode, (says, *_) = next(iter(listed().items()))
    path = files.notebooks().parent / wordings.declared_modes()[mode].notebook
    said = says.replace("...", "x").replace("`", "").replace('"', "'")
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = f"{said}\n{notebook['cells'][0]['source']}"
    path.write_text(json.dumps(notebook))


LIST = "tests/wordings_missing_on_pages.toml"
MUTATIONS = [
    ("law_wordings_stand_on_pages", a_wording_that_no_page_has),
    ("law_wordings_stand_on_pages", edit(LIST, "\nfm03 = '''\n", "\nfm98 = '''\n")),
    ("law_list_only_shrinks", one_more_exception),
    ("law_list_only_shrinks", a_page_that_has_it),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_the_list_is_made_shorter_and_never_longer(project):
    path = project / LIST
    before = listed()
    one_more_exception(project)
    a_wording_that_no_page_has(project)
    forget()
    wordings_on_pages.shrink(path)
    assert wordings_on_pages.excepted(path) == before


def test_the_beginning_of_a_message_at_the_end_of_a_line_is_enough(project):
    entry = wordings.Wording("fm01", ("The kettle of this replica is empty",), "2.21")
    line = page_messages.flat("ValueError: The kettle of this replica is …")
    assert not page_messages.stands(entry, line, [])
    assert page_messages.stands(entry, line, [page_messages.flat(str(line).strip("… "))])


def test_the_table_counts_what_is_missing_by_page():
    count = sum(map(len, wordings_on_pages.missing().values()))
    head, *rows, total = wordings_on_pages.table().splitlines()
    assert head.startswith("| page |") and any(row.startswith("| fm06 |") for row in rows)
    assert total == f"{count} are missing, {count} may be"
