"""What of a report is told in sentences."""

import functools
import re

from . import wordings

# A line of Python: an import, a definition, a block's head, an assignment, a call, or what closes one.
CODE = re.compile(
    r"\s*(?:import [\w.]+(?: as \w+)?$|from [\w.]+ import\b|(?:def|class) \w+\s*[(:]|@\w+|>>>|return\b"
    r"|(?:for|if|elif|else|with|while|try|except)\b.{0,200}:$|[\w.\[\], ]{1,60}[-+*]?=[^=]|[\w.]{1,80}\(.*[\])},({]$"
    r"|[\])}]+[,:]?$)"
)
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
LEFT = 40  # words


def in_prose(text: str) -> str:
    """What is told, without code and what a form asks for; all of it where that is too little."""
    rest = FENCED.sub("", text)
    own = [line for line in rest.splitlines() if not (CODE.match(line) or form().match(line))]
    left = "\n".join(own)
    return left if len(left.split()) >= LEFT else text


@functools.cache
def form():
    """How a line begins that stands in every report of a tracker, whatever it is about."""
    begins = "|".join(
        re.escape(each.strip()) for each in wordings.read_vocabulary()["form"].split(",")
    )
    return re.compile(rf"\W*(?:{begins})", re.IGNORECASE)
