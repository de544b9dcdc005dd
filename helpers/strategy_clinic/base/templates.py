"""Pages and parts of pages, made from the templates that lie in the rooms. Values are escaped on their way in."""

import re
from functools import cache

from .files import PACKAGE


def from_template(name: str, /, **values) -> str:
    """The template of that name, such as `panel/templates/card.html`, with these values in it."""
    return environment().get_template(name).render(values)


@cache
def environment():
    """One for all rooms, so that a template can include one of a room below."""
    import jinja2  # here, since most importers never draw a page

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["cut_at_code"] = cut_at_code
    return made


def cut_at_code(text: str) -> list[str]:
    """Text cut at its `backticks`: every second piece is code."""
    return re.split(r"`([^`]+)`", text)
