"""HTML from the Jinja templates of the package's folders; values are escaped."""

import re
from functools import cache
from typing import Any

from .files import PACKAGE


def from_template(name: str, /, **values: Any) -> str:
    """Returns the template of that name, such as `panel/templates/card.html`, with these values in it."""
    page: str = environment().get_template(name).render(values)
    return page


@cache
def environment() -> Any:
    """Returns the one environment, so that templates can include those of other folders."""
    import jinja2  # here, since most importers never draw a page

    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Cut at `backticks`, every second piece of a text is code.
    jinja.filters["cut_at_code"] = lambda text: re.split(r"`([^`]+)`", text)
    return jinja
