"""The directive `{generated}`: a part of a page that is made from the project, as Markdown or as HTML."""

from collections.abc import Callable

import command_line
import course
import documents
import error_index
import overview
import python_api
import release_errors
import reports
import sweep_tables
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PARTS: dict[str, Callable[..., str]] = {
    "api": python_api.names,
    "badges": overview.badges,
    "command_line": command_line.commands,
    "course": course.course,
    "course_length": course.length,
    "group": error_index.group,
    "group_pages": error_index.group_pages,
    "groups": error_index.groups,
    "known_errors": release_errors.tables,
    "messages": error_index.messages,
    "modes": overview.modes,
    "records": overview.records,
    "report_table": reports.table,
    "reports": reports.sections,
    "versions": overview.versions,
    "search_field": error_index.search_field,
    "shown_as": error_index.shown_as,
    "sweep": sweep_tables.tables,
    "statement_counts": documents.counts,
    "document_pages": documents.pages,
}


class Generated(SphinxDirective):
    """Inserts the part that the first argument names; the others are passed to its function."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        name, *arguments = self.arguments
        text = PARTS[name](*arguments)
        if text.startswith("<"):
            return [nodes.raw("", text, format="html")]
        parent = nodes.section()
        self.state.nested_parse(StringList(text.splitlines()), self.content_offset, parent, True)
        return parent.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("generated", Generated)
    course.connect(app)
    return {"parallel_read_safe": True}
