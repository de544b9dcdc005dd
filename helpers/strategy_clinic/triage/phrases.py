"""What of a pasted text fits a phrase."""

import functools
import html
import itertools
import re

LONGEST = 200_000  # signs of a text that are read: its beginning and, with the last error, its end
GAP = 500  # signs that `...` stands for, at most
END = 2 * GAP  # signs at the end of a text in which a phrase may be cut off
SHOWN = 100  # signs of what a text says that are told
STUB = 12  # signs with which a phrase must begin before the end of a text cuts it off,
MOST = (0.6, 0.8)  # and how much of it must be left: of one without a gap, of one with gaps
STARTS = 50  # places at which a phrase with a gap is tried,
TRIES = 2000  # and at which a piece is looked for
# What a word may end with and still be the same.
ENDING = re.compile(
    r"(?:e?s|e?d|e|ings?|ions?|e?rs?|ors?|al|ally|ly|able|ables|ments?|[iy]|ies|ied|ying|ous|ously"
    r"|ed|i[sz](?:e[sd]?|ing|ations?)|ted|ting|ped|ping|ged|ging|t)(?![a-z])"
)
# Quotes and emphasis, which pasting changes or loses.
DROPPED = dict.fromkeys(map(ord, "'\"`´‘’“”*"))
# Colours, also as the text of a notebook file spells them, and what is left where only the escape got lost.
ESCAPE = r"(?:\x1b|\\u001b|\\x1b|\\033)"
ANSI = re.compile(
    ESCAPE + r"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|\[[0-9;]{1,8}m"
)
# Marks of quotations, boxes and pytest at the beginning of lines.
MARGIN = re.compile(r"^[ \t>│┃|]*(?:E {2,})?", re.MULTILINE)
# An error that a branch above the line at which IPython points would have raised: it was not.
NOT_RAISED = re.compile(
    r"^\d{1,6} +raise\b.*\n(?:\d{1,6} +[\"'f].*\n){0,4}(?=(?:\d{1,6}(?: .*)?\n){0,8}-{2,}> ?\d)",
    re.MULTILINE,
)
RAISED = re.compile(r"\b[A-Z]\w{1,60}(?:Error|Exception|Failure)\b")
# An error that a sentence mentions and goes on: nothing of it was pasted.
MENTIONED = re.compile(r"[`'\"]?(?:[.,;)]+(?:\s|$)|\s+[a-z]+\b(?![:=(.]))")
WARNED = re.compile(r"^.{0,200}\bWARNING:.*$", re.MULTILINE)
# A frame of Python's own traceback, of a traced function, and of IPython's.
FRAME = re.compile(
    r"File .?([^\s\"']{1,300}?).?, line (\d{1,6}), in (\S{1,80})"
    r"|([^\s\"']{1,300}\.py):(\d{1,6})[:,]? (?:in )?(\w{1,80})"
    r"|([^\s\"']{1,300}\.pyc?) in (\w{1,80})\("
)

# Text


def shortened(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"


def clean(text: str) -> str:
    """Without colours, margins and errors that only stand near a frame, in lines."""
    text = ANSI.sub("", shortened(text).replace("\r", "\n"))
    if "&" in text:
        text = html.unescape(text)
    return NOT_RAISED.sub("", MARGIN.sub("", text))


class Flat(str):
    """A text without case, which still knows where a capital letter began a word."""

    cased = ""


def flat(text: str) -> Flat:
    """In one line, without case and quotes; Windows paths as others, and line breaks that are spelled as breaks."""
    text = text.translate(DROPPED).replace("\\n", " ").replace("\\", "/")
    cased = " ".join(text.split())
    found = Flat(cased.lower())
    found.cased = cased if len(cased) == len(found) else str(found)
    return found


def last_raised(text: str) -> str:
    """The text from its last error on; empty where nothing is raised."""
    places = [
        match.start() for match in RAISED.finditer(text) if not MENTIONED.match(text, match.end())
    ]
    return text[places[-1] :] if places else ""


def without_warnings(text: str) -> str:
    return WARNED.sub("", text)


def is_cut_off(raised: str) -> bool:
    """Whether a text ends in frames, or in the bare name of an error: its message was not pasted."""
    return bool(FRAME.search(raised) or not re.search(r"\w", RAISED.sub("", raised)))


def frame(text: str) -> str:
    """The last line of a traceback that the text still has."""
    found = [match.groups() for match in FRAME.finditer(text)]
    if not found:
        return ""
    path, *line, function = [each for each in found[-1] if each]
    where = [path.replace("\\", "/").split("/")[-1], *(f"line {each}" for each in line)]
    return shown(f"{', '.join(where)}, in {function}")


# Phrases


@functools.cache
def phrases(words: str) -> tuple[tuple[str, ...], ...]:
    """Every way to read a phrase, each as the pieces that follow one another."""
    parts = re.split(r"\{([^{}]*\|[^{}]*)\}", words)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    read = ["".join(chosen) for chosen in itertools.product(*choices)]
    return tuple(tuple(flat(piece) for piece in way.split("...")) for way in read)


def stands(words: str, text: str) -> str:
    """What of a text these words fit; empty where they do not."""
    return next(filter(None, (followed(pieces, text) for pieces in phrases(words))), "")


def begins(words: str, text: str) -> str:
    """The same, where the end of the text has cut the words off."""
    return next(filter(None, (cut_off(pieces, text[-END:]) for pieces in phrases(words))), "")


def followed(pieces: tuple[str, ...], text: Flat) -> str:
    if not all(piece in text for piece in pieces):
        return ""
    for start in itertools.islice(places(pieces[0], text), STARTS):
        if end := reached(pieces, text, start):
            return text[start:end]
    return ""


def places(piece: str, text: Flat, start: int = 0, end: int | None = None):
    """Where a piece stands as words of its own, and not within others."""
    for _ in range(TRIES):
        start = text.find(piece, start, end)
        if start < 0:
            return
        if is_whole(text, start, start + len(piece)):
            yield start
        start += 1


def is_whole(text: Flat, start: int, end: int) -> bool:
    """Whether what stands there begins with a word, and ends with one or before its ending, as in `loaded`."""
    cased = text.cased
    if text[start].isalnum() and not begins_word(cased, start):
        return False
    if not text[end - 1].isalnum() or begins_word(cased, end):
        return True
    ending = ENDING.match(cased, end)
    return bool(ending) and begins_word(cased, ending.end())


def begins_word(cased: str, place: int) -> bool:
    """Whether a word can begin here: after a sign or `_`, and at the capital letters of `TPUStrategy`."""
    if not 0 < place < len(cased) or not (cased[place - 1].isalnum() and cased[place].isalnum()):
        return True
    before, here, after = cased[place - 1], cased[place], cased[place + 1 : place + 2]
    if before.isdigit() or here.isdigit():
        return before.isdigit() != here.isdigit()
    return here.isupper() and (before.islower() or after.islower())


def stub(pieces: tuple[str, ...]) -> str:
    """What is there of a phrase at least, where the end of a text has cut it off."""
    return pieces[0][:STUB]


def cut_off(pieces: tuple[str, ...], end: str) -> str:
    """What is left of a phrase at the end of a text, where most of it stands and the rest was not pasted; a word is whole."""
    start = end.rfind(stub(pieces))
    if start < 0 or len(pieces[0]) < STUB or " " not in pieces[0]:
        return ""
    kept, place = 0, start
    for piece in pieces:
        found = end.find(piece, place)
        if found < 0:
            kept += next((n for n in range(len(piece), 0, -1) if end.endswith(piece[:n], place)), 0)
            break
        kept, place = kept + len(piece), found + len(piece)
    return end[start:] if kept >= MOST[len(pieces) > 1] * sum(map(len, pieces)) else ""


def reached(pieces: tuple[str, ...], text: Flat, start: int) -> int:
    """Where the last piece ends, if each follows the one before; 0 if not."""
    for piece in pieces:
        start = next(places(piece, text, start, start + len(piece) + GAP), -1)
        if start < 0:
            return 0
        start += len(piece)
    return start


@functools.cache
def expression(symptom: str):
    """A symptom as it reads in a flat text; what it repeats is bounded, so no text can keep it busy."""
    anywhere = re.sub(r"(^|\|)\^", r"\1", symptom).translate(dict.fromkeys(map(ord, "'\"`")))
    bounded = re.sub(r"(?<!\\)(\.|\\[a-zA-Z])[*+]", r"\1{1,500}", anywhere)
    return re.compile(
        re.sub(r"\\.|[A-Z]", lambda part: part[0] if part[0][1:] else part[0].lower(), bounded)
    )


def shown(said: str) -> str:
    """As much as fits into a line, without signs that would steer a terminal."""
    kept = "".join(sign for sign in said if sign.isprintable())
    return kept if len(kept) <= SHOWN else f"{kept[: SHOWN // 2]} … {kept[-SHOWN // 2 :]}"
