"""A pasted text, and the parts of it that the steps of triage read. All normalisation of a text is here."""

import functools
import html
import re
from collections.abc import Iterator

from . import wordings

LONGEST = (
    200_000  # characters of a text that are read: its beginning and, with the last error, its end
)
SHOWN = 100  # characters of a text that an answer quotes
CODE_READ = 5000  # characters at the beginning of a text in which code is searched
PROSE_READ = 1500  # characters that similarity reads of the beginning of a text, and of its end
LEAST_PROSE = 40  # words: below that, code counts as prose too
# Quotes and emphasis, which pasting changes or loses, and signs that have no width.
DROPPED = dict.fromkeys(map(ord, "'\"`´‘’“”*\u200b\u200c\u200d\u2060\ufeff\u00ad"))
# What Markdown and JSON write before a sign.
ESCAPED = re.compile(r"\\{1,8}(?=[_*\[\]<>()`~{}|#!\"'])")
# Colours, also as the text of a notebook file spells them, and what is left where only the escape got lost.
ESCAPE = r"(?:\x1b|\\u001b|\\x1b|\\033)"
ANSI = re.compile(
    ESCAPE + r"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|\[[0-9;]{1,8}m"
)
# What a runner of programs writes before each line: its name, a process, a rank or a time.
RUNNER = (
    r"[\w.-]{1,60}[ \t]{0,60}\|[ \t]|\([^()\n]{0,60}\bpid=\d{1,9}[^()\n]{0,60}\)[ \t]"
    r"|\[\d{1,6}(?:,\d{1,6})?\]<std(?:err|out)>:?[ \t]?|\[[a-z]{1,20}[-_/]?\d{1,6}\]:?[ \t]|\d{1,4}:[ \t]"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,+:Z-]{0,16}\]?[ \t]+(?:(?:DEBUG|INFO|WARNING|ERROR)[ \t]+)?"
    r"|[A-Z][a-z]{2}[ \t]{1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,60} \S{1,60}\[\d{1,9}\]:[ \t]"
)
# That, and marks of quotations, boxes, comments, lists and pytest, at the beginning of lines; and boxes at their end.
MARGIN = re.compile(rf"^(?:[ \t>│┃|]|(?:#|//|[*-])[ \t]|{RUNNER})*(?:E {{2,}})?", re.MULTILINE)
BOX = re.compile(r"(?<![ \t])[ \t]{1,200}[│┃|][ \t]{0,9}$", re.MULTILINE)
BREAK = re.compile(r"</?(?:br|p|div|li|pre)\b[^<>]{0,100}>", re.IGNORECASE)
# How wide a window is that may have cut a line within a word, and usual widths; a longer text than that is not pasted from one.
WIDTH, WIDTHS, PASTED = (40, 300), (80, 100, 120), 50_000
# A `raise` in a branch above the line at which IPython points: it was not executed.
NOT_RAISED = re.compile(
    r"^\d{1,6} +raise\b.*\n(?:\d{1,6} +[\"'f].*\n){0,4}(?=(?:\d{1,6}(?: .*)?\n){0,8}-{2,}> ?\d)",
    re.MULTILINE,
)
RAISED = re.compile(r"\b[A-Z]\w{1,60}(?:Error|Exception|Failure)\b")
# An error that a sentence only mentions.
MENTIONED = re.compile(r"[`'\"]?(?:[.,;)]+(?:\s|$)|\s+[a-z]+\b(?![:=(.]))")
WARNED = re.compile(r"^.{0,200}\bWARNING:.*$", re.MULTILINE)
# A frame of Python's own traceback, of a traced function, and of IPython's.
FRAME = re.compile(
    r"File .?([^\s\"']{1,300}?).?, line (\d{1,6}), in (\S{1,80})"
    r"|([^\s\"']{1,300}\.py):(\d{1,6})[:,]? (?:in )?(\w{1,80})"
    r"|([^\s\"']{1,300}\.pyc?) in (\w{1,80})\("
)
BLANK = re.compile(r"\n\s*\n")
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# A line of Python: an import, a definition, a block's head, an assignment, a call, or what closes one.
CODE_LINE = re.compile(
    r"\s*(?:import [\w.]+(?: as \w+)?$|from [\w.]+ import\b|(?:def|class) \w+\s*[(:]|@\w+|>>>|return\b"
    r"|(?:for|if|elif|else|with|while|try|except)\b.{0,200}:$|[\w.\[\], ]{1,60}[-+*]?=[^=]|[\w.]{1,80}\(.*[\])},({]$"
    r"|[\])}]+[,:]?$)"
)
FOLDERS = re.compile(r"(?:[^\s/\\]*[/\\])+")


class Flat(str):
    """A text in one line and in lower case; `cased` has the capital letters, where words of a name begin."""

    cased: str


def flat(text: str) -> Flat:
    """Returns a text without case, quotes and line breaks, and with `/` in Windows paths."""
    text = ESCAPED.sub("", text).translate(DROPPED).replace("\\n", " ").replace("\\", "/")
    cased = " ".join(text.split())
    found = Flat(cased.lower())
    found.cased = cased if len(cased) == len(found) else str(found)
    return found


def with_whole_words(text: str) -> str:
    """Returns a text, and once more with the words whole that the width of a window has cut, if there are any."""
    lines = text.split("\n")
    cut = [is_cut(*three) for three in zip(["", *lines], lines, [*lines[1:], ""], strict=False)]
    if not any(cut) or len(text) > PASTED:
        return text
    ends = ("" if is_one else "\n" for is_one in cut)
    return f"{text}\n{''.join(map(str.__add__, lines, ends))}"


def is_cut(before: str, line: str, after: str) -> bool:
    """Returns whether a line may end within a word: it is as long as its neighbour, or as a window is wide."""
    width = len(line)
    is_full = width in (len(before), len(after), *WIDTHS) and WIDTH[0] <= width <= WIDTH[1]
    return is_full and len(after) <= width and is_in_word(line[-1:]) and is_in_word(after[:1])


def is_in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def frames_in(text: str) -> Iterator[re.Match[str]]:
    """Yields the frames of tracebacks; a text without the words of one, which may be long to search, has none."""
    return FRAME.finditer(text) if ".py" in text or "File " in text else iter(())


def first_frame(text: str) -> re.Match[str] | None:
    return next(frames_in(text), None)


class ReportText:
    def __init__(self, pasted: str):
        self.pasted = pasted

    @functools.cached_property
    def lines(self) -> str:
        """The text without colours, margins and errors that were not raised."""
        text, half = self.pasted, LONGEST // 2
        if len(text) > LONGEST:
            text = f"{text[:half]}\n{text[-half:]}"
        text = BREAK.sub("\n", ANSI.sub("", text.replace("\r", "\n")))
        if "&" in text:
            text = html.unescape(text)
        text = BOX.sub("", MARGIN.sub("", with_whole_words(text)))
        return NOT_RAISED.sub("", text)

    @functools.cached_property
    def raised(self) -> str:
        """The lines from the last error on; empty where nothing is raised."""
        starts = [
            match.start()
            for match in RAISED.finditer(self.lines)
            if not MENTIONED.match(self.lines, match.end())
        ]
        return self.lines[starts[-1] :] if starts else ""

    @functools.cached_property
    def flat(self) -> Flat:
        return flat(self.lines)

    @functools.cached_property
    def flat_raised(self) -> Flat:
        return flat(self.raised)

    @functools.cached_property
    def last_frame(self) -> str:
        """File, line and function of the last frame of a traceback."""
        frames = [match.groups() for match in frames_in(self.lines)]
        if not frames:
            return ""
        path, *line, function = [part for part in frames[-1] if part]
        where = [path.replace("\\", "/").split("/")[-1], *(f"line {number}" for number in line)]
        return displayed(f"{', '.join(where)}, in {function}")

    @property
    def is_description(self) -> bool:
        """Whether the text has neither an error nor a frame of a traceback."""
        return not self.raised and not self.last_frame

    @property
    def is_cut_off(self) -> bool:
        """Whether the text ends in frames, or in the bare name of an error: its message was not pasted."""
        return bool(first_frame(self.raised) or not re.search(r"\w", RAISED.sub("", self.raised)))

    @property
    def code(self) -> str:
        """The beginning of the text with its indentation, up to the first frame of a traceback."""
        text = BLANK.sub("\n", ANSI.sub("", self.pasted[:CODE_READ]).replace("\r", ""))
        frame = first_frame(text)
        return text[: frame.start()] if frame else text

    @property
    def prose(self) -> str:
        """The sentences at the beginning and at the end: no code, lines of forms, folders and, beside an error, warnings."""
        text = self.lines if self.is_description else WARNED.sub("", self.lines)
        lines = FENCED.sub("", text).splitlines()
        prose = "\n".join(
            line for line in lines if not (CODE_LINE.match(line) or form_line().match(line))
        )
        if len(prose.split()) < LEAST_PROSE:
            prose = text
        if len(prose) > 2 * PROSE_READ:
            prose = f"{prose[:PROSE_READ]}\n{prose[-PROSE_READ:]}"
        return FOLDERS.sub("", prose)


@functools.cache
def form_line() -> re.Pattern[str]:
    starts = wordings.read_vocabulary()["form"].split(",")
    return re.compile(
        rf"\W*(?:{'|'.join(re.escape(start.strip()) for start in starts)})", re.IGNORECASE
    )


def displayed(text: str) -> str:
    """Returns as much of a text as fits into a line, without characters that would steer a terminal."""
    printable = "".join(character for character in text if character.isprintable())
    if len(printable) <= SHOWN:
        return printable
    return f"{printable[: SHOWN // 2]} … {printable[-SHOWN // 2 :]}"
