"""An exception that is at hand: its traceback, and what the names on the reader's last line stand for."""

import itertools
import linecache
import re
import traceback
from inspect import ismodule

IDENTIFIERS = re.compile(r"[A-Za-z_]\w*")
LOOKED_AT = 20  # elements of a list whose types are told
OTHERS = ("site-packages", "dist-packages")  # code that is not the reader's


def text_of(error: BaseException) -> str:
    """The traceback, and before it the types of what was handed over, which no traceback says."""
    lines = [f"{name} is {kind_of(value)}\n" for name, value in variables(error).items()]
    return "".join(lines + traceback.format_exception(error))


def variables(error: BaseException) -> dict:
    """What is on the last line of the reader's own code, by name."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [
        each for each in frames if not any(name in each[0].f_code.co_filename for name in OTHERS)
    ]
    if not own:
        return {}
    frame, number = own[-1]
    names = IDENTIFIERS.findall(linecache.getline(frame.f_code.co_filename, number))
    known = frame.f_globals | frame.f_locals
    there = {name: known[name] for name in names if name in known}
    return {
        name: value for name, value in there.items() if not callable(value) and not ismodule(value)
    }


def kind_of(value) -> str:
    """The type, and for a list those of its elements; no value, for that may be long, or secret."""
    name = type(value).__name__
    if not isinstance(value, list | tuple) or not value:
        return name
    inner = {type(each).__name__ for each in itertools.islice(value, LOOKED_AT)}
    return f"a {name} of {' and '.join(sorted(inner))}"
