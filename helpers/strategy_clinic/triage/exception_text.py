"""The text of an exception that is at hand: its traceback, and the types of the variables on the reader's last line."""

import itertools
import linecache
import re
import traceback
from inspect import ismodule

IDENTIFIERS = re.compile(r"[A-Za-z_]\w*")
ELEMENTS = 20  # of a list, whose types are named
PACKAGES = ("site-packages", "dist-packages")  # folders of code that is not the reader's


def text_of(error: BaseException) -> str:
    types = [f"{name} is {type_of(value)}\n" for name, value in variables(error).items()]
    return "".join(types + traceback.format_exception(error))


def variables(error: BaseException) -> dict[str, object]:
    """Returns the variables on the last line of the reader's own code, by name."""
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not any(folder in frame.f_code.co_filename for folder in PACKAGES)
    ]
    if not frames:
        return {}
    frame, number = frames[-1]
    names = IDENTIFIERS.findall(linecache.getline(frame.f_code.co_filename, number))
    scope = frame.f_globals | frame.f_locals
    return {
        name: scope[name]
        for name in names
        if name in scope and not callable(scope[name]) and not ismodule(scope[name])
    }


def type_of(value: object) -> str:
    """Returns the type, and for a list those of its elements; never a value, which may be long, or secret."""
    name = type(value).__name__
    if not isinstance(value, list | tuple) or not value:
        return name
    inner = {type(element).__name__ for element in itertools.islice(value, ELEMENTS)}
    return f"a {name} of {' and '.join(sorted(inner))}"
