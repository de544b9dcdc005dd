"""The sentence of an error that says what happened, without what differs from run to run."""

import re

# Addresses in memory, and TensorFlow's names of graphs and nodes.
RUN_NAMES = (
    (r", id=\d+| at 0x[0-9a-f]+| \[Op:__inference\w+\]", ""),
    (r"__inference_(\w+?)_\d+\[[^\]]*\]", r"\1"),
    (r"^\{\{function_node [^}]*\}+\s*", ""),
    (r" compatible with node \{\{\w*node [^}]*\}*|(\{\{\w*node [^}]*\}\})+$", ""),
)

COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # with which Keras begins some messages
NUMBERS = re.compile(r"\[[\[\]\s\d.,e+-]*\]")  # the values of an array that a message quotes
ON_NEXT_LINE = re.compile(r"\n\s*(?=array\(|\[\.\.\.\])")
# A value for each replica that a message quotes takes several lines, of which the last goes on with the message.
OF_REPLICAS = re.compile(r"PerReplica:\{\n(?:(?!PerReplica:).)*?\n\s*\}", re.DOTALL)
# After what happened, some messages list arguments, objects, values, nodes of a graph, or the code that is meant.
APPENDIX = re.compile(
    r"\n\s*\n\s*(?:Call a|A)rguments received by|\n\s*with strategy\.scope\(\):\n\s*model|\n\s*From merging shape "
    r"| Provided weights: \["
)
# What TensorFlow says of functions that it has ended since another one has failed.
CANCELLED = "Function was cancelled"
# Reasons after which a message goes on to say where, for each replica, or what to look at.
REASON = re.compile(
    r"Detected unsupported operations .+|Input \d+ to node .+|Trying to access resource"
    r"|No OpKernel was registered to support Op '\w+'"
    r"|Unsuccessful TensorSliceReader constructor: .+"
    r"|A total of \d+ objects could not be loaded\. .+:"
    r"|Unresolved object in checkpoint \S+(?=: attributes \{)"
    r"|Shape mismatch in the collective instance .+"
    r"|Value for attr '\w+' of \w+ is not in the list of allowed values"
)


def last_line(error: Exception) -> str:
    """Returns the useful line of an error's message."""
    # The text of a KeyError is the repr of its argument, in which line breaks are escaped.
    argument = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
    text = argument if "\n" in argument else str(error)
    return without_names(useful_line(text).removeprefix(f"{type(error).__name__}: "))


def useful_line(text: str) -> str:
    """Returns the reason that TensorFlow gives in a message or a traceback, or else the last line with words.

    Errors of traced code begin with 'in user code:' and end with what happened.
    """
    text = APPENDIX.split(COLOURS.sub("", text), maxsplit=1)[0]
    text = OF_REPLICAS.sub("PerReplica:{…}", ON_NEXT_LINE.sub("", NUMBERS.sub(without_lines, text)))
    lines = [line.strip() for line in text.splitlines()]
    for i, line in enumerate(lines):
        if reason := REASON.search(line):
            example = next(filter(None, lines[i + 1 :]), "") if line.endswith(">:") else ""
            return f"{reason.group()} {example}".strip()
    if roots := [root for root in map(root_error, lines) if root]:
        return min([root for root in roots if not root.startswith(CANCELLED)] or roots)
    # A line that begins with [[ only names the node of a graph.
    plain = [line for line in map(without_names, lines) if re.search(r"\w", line)]
    return next((line for line in reversed(plain) if not line.startswith("[[")), "")


def without_lines(numbers: re.Match[str]) -> str:
    """Returns an array that takes one line as it is, and another as three dots."""
    return "[...]" if "\n" in numbers.group() else numbers.group()


def root_error(line: str) -> str:
    """Returns a root error that a graph lists, without the names of nodes, or "" for another line."""
    root = re.match(r"\(\d+\) [A-Z_]+:\s+(.+)", line)
    return re.sub(r" '[\w/]+'", "", root.group(1)) if root else ""


def without_names(text: str) -> str:
    """Returns a line without addresses and without TensorFlow's names of graphs and nodes."""
    for pattern, instead in RUN_NAMES:
        text = re.sub(pattern, instead, text)
    return text.strip()
