"""Matching the phrases of wordings against a flat text."""

import functools
import itertools
import re
from collections.abc import Iterator

from .report_text import Flat, flat

GAP = 500  # characters that `...` stands for, at most
END = 2 * GAP  # characters at the end of a text in which a phrase may be cut off
STUB = 12  # characters with which a phrase must begin before the end of a text cuts it off,
LEAST_LEFT = (0.6, 0.8)  # and how much of it must be left: of one without a gap, of one with gaps
STARTS = 50  # places at which a phrase with a gap is tried,
TRIES = 2000  # and at which a piece is searched
# What a word may end with and still be the same.
ENDING = re.compile(
    r"(?:e?s|e?d|e|ings?|ions?|e?rs?|ors?|al|ally|ly|able|ables|ments?|[iy]|ies|ied|ying|ous|ously"
    r"|ed|i[sz](?:e[sd]?|ing|ations?)|ted|ting|ped|ping|ged|ging|t)(?![a-z])"
)
CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")  # one of several, in a phrase
STEM_END = re.compile(rf"(?<=[a-z]{{3}}){ENDING.pattern}$")

Pieces = tuple[Flat, ...]


@functools.cache
def stem(word: str) -> str:
    """Returns a word without its ending, if three letters are left; empty for a number or a letter."""
    if word.isdigit() or len(word) < 2:
        return ""
    rest = STEM_END.sub("", word)
    doubled = rest != word and len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "sl"
    return rest[:-1] if doubled else rest


@functools.cache
def readings(phrase: str) -> tuple[Pieces, ...]:
    """Returns every reading of a phrase, each as the pieces between its gaps."""
    parts = CHOICE.split(phrase)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    texts = ["".join(chosen) for chosen in itertools.product(*choices)]
    return tuple(tuple(flat(piece) for piece in text.split("...")) for text in texts)


def matched(phrase: str, text: Flat) -> str:
    """Returns what in a text fits a phrase; empty if nothing does."""
    for pieces in readings(phrase):
        if pieces[0] in text and (found := matched_pieces(pieces, text)):
            return found
    return ""


def matched_at_end(phrase: str, text: Flat) -> str:
    """Returns what is left of a phrase that the end of a text has cut off."""
    end = text[-END:]
    for pieces in readings(phrase):
        if pieces[0][:STUB] in end and (found := cut_off(pieces, end)):
            return found
    return ""


def matched_pieces(pieces: Pieces, text: Flat) -> str:
    if not all(piece in text for piece in pieces):
        return ""
    for start in itertools.islice(occurrences(pieces[0], text), STARTS):
        if end := end_of_match(pieces, text, start):
            return text[start:end]
    return ""


def end_of_match(pieces: Pieces, text: Flat, start: int) -> int:
    """Returns where the last piece ends, if each follows the one before; 0 if not."""
    for piece in pieces:
        start = next(occurrences(piece, text, start, start + len(piece) + GAP), -1)
        if start < 0:
            return 0
        start += len(piece)
    return start


def occurrences(piece: str, text: Flat, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yields where a piece stands as whole words."""
    for _ in range(TRIES):
        start = text.find(piece, start, end)
        if start < 0:
            return
        if is_whole(text, start, start + len(piece)):
            yield start
        start += 1


def is_whole(text: Flat, start: int, end: int) -> bool:
    """Returns whether a span begins with a word, and ends with one or before its ending, as in `loaded`."""
    cased = text.cased
    if text[start].isalnum() and not begins_word(cased, start):
        return False
    if not text[end - 1].isalnum() or begins_word(cased, end):
        return True
    ending = ENDING.match(cased, end)
    return ending is not None and begins_word(cased, ending.end())


def begins_word(cased: str, place: int) -> bool:
    """Returns whether a word can begin here: after a sign or `_`, and at the capital letters of `TPUStrategy`."""
    if not 0 < place < len(cased) or not (cased[place - 1].isalnum() and cased[place].isalnum()):
        return True
    before, here, after = cased[place - 1], cased[place], cased[place + 1 : place + 2]
    if before.isdigit() or here.isdigit():
        return before.isdigit() != here.isdigit()
    return here.isupper() and (before.islower() or after.islower())


def cut_off(pieces: Pieces, end: str) -> str:
    """Returns what is left of a phrase at the end of a text, if that is most of it."""
    if len(pieces[0]) < STUB or " " not in pieces[0]:
        return ""
    start = place = end.rfind(pieces[0][:STUB])
    length = 0
    for piece in pieces:
        found = end.find(piece, place)
        if found < 0:
            left = left_at_end(piece, end, place)
            if not left and place < len(end):
                return ""
            length += left
            break
        length, place = length + len(piece), found + len(piece)
    least = LEAST_LEFT[len(pieces) > 1] * sum(map(len, pieces))
    return end[start:] if length >= least else ""


def left_at_end(piece: str, text: str, place: int) -> int:
    """Returns how many letters of a piece the end of a text has, from a place on."""
    longest = min(len(piece), len(text) - place)
    return next((n for n in range(longest, 0, -1) if text.endswith(piece[:n])), 0)


@functools.cache
def expression(symptom: str) -> re.Pattern[str]:
    """Returns a symptom as it reads in a flat text; what it repeats is bounded, so no text can keep it busy."""
    anywhere = re.sub(r"(^|\|)\^", r"\1", symptom).translate(dict.fromkeys(map(ord, "'\"`")))
    bounded = re.sub(r"(?<!\\)(\.|\\[a-zA-Z])[*+]", r"\1{1,500}", anywhere)
    return re.compile(
        re.sub(r"\\.|[A-Z]", lambda part: part[0] if part[0][1:] else part[0].lower(), bounded)
    )
