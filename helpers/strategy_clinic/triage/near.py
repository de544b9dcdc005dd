"""Wordings that a text has nearly: with a letter wrong, without the signs, or only a part of one.

Signs count for nothing here. What is compared is what an exact match has not found, so most texts never come here. A text is
compared with those wordings alone that the index names: some twenty of a thousand.
"""

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from . import phrases
from .report_text import RAISED, Flat
from .wordings import Wording

READ = 10_000  # characters that are read of the end of a text,
PLACES = 10  # and places of it where a part of a wording is compared
PER_EDIT = 12  # letters for each of which one may be wrong,
MOST_EDITS = 2  # and how many in a wording
NAME = 3  # letters at most of a last word of which none may be wrong: with one it is another name
LEAST, LEAST_OF_WORDS = (
    20,
    13,
)  # letters that a wording must have for a wrong one, if it is one word or several
SHORT, PART = 300, 12  # characters at most, and at least, of a text that can be a part of a message
HALF = 0.4  # about half of a message names its mode,
LITTLE = 0.25  # and so much of it is a hint
MINE = 0.6  # of a short text must be of the message, and of a piece whose beginning is cut off
CLUE = 8  # letters of the beginning of a part that the index has

SIGNS = re.compile(r"[^a-z0-9]+")
# What is left of an expression without its signs, and what says that it is no plain sentence.
ANYTHING = re.compile(r"(?:\\[dw]|\.)[*+]")
CHOICE = re.compile(r"(?<!\\)\(([\w |]+)\)")
NO_SENTENCE = re.compile(r"(?<!\\)[\[\]()*+?^$]")


def plain(text: str) -> str:
    """Returns the words of a flat text, with one space between them."""
    return SIGNS.sub(" ", text).strip()


def plain_readings(wording: Wording) -> tuple[tuple[str, ...], ...]:
    """Returns the readings of the first phrase of a wording without signs; none of an expression that is no sentence."""
    return plain_readings_of(phrase_of(wording))


@functools.cache
def plain_readings_of(phrase: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(filter(None, map(plain, pieces))) for pieces in phrases.readings(phrase) if phrase
    )


def phrase_of(wording: Wording) -> str:
    """Returns what may be nearly said; nothing of a frame, where the number of a line is no letter."""
    phrase = sentence(wording.symptom) if wording.symptom else wording.says[0]
    return "" if ".py" in phrase else phrase


def sentence(symptom: str) -> str:
    """Returns an expression as a phrase; empty if it is not one sentence with gaps."""
    phrase = CHOICE.sub(r"{\1}", ANYTHING.sub("...", symptom))
    return "" if NO_SENTENCE.search(phrase) else re.sub(r"\\(.)", r"\1", phrase)


@dataclass(frozen=True, eq=False)
class Index:
    """Names the wordings that a text may nearly have: no other wording needs to be compared with it."""

    entries: tuple[Wording, ...]
    pieces: list[tuple[int, str]]  # with the number of the wording that has each,
    clues: dict[str, list[int]]  # the beginnings of their parts, with the numbers,
    lengths: set[int]  # and how long these are

    def wordings_for(self, words: str, part: str) -> list[Wording]:
        """Returns what to compare with the words of a text, and with the part of a message that a short one may be."""
        numbers = self.found_in(words) | self.found_in(part) | self.found_around(part)
        return [self.entries[number] for number in sorted(numbers)]

    def found_in(self, words: str) -> set[int]:
        """Returns the numbers of the wordings of which these words have a part."""
        spans = {
            words[place : place + length] for length in self.lengths for place in range(len(words))
        }
        return {number for clue in self.clues.keys() & spans for number in self.clues[clue]}

    def found_around(self, words: str) -> set[int]:
        """Returns the numbers of the wordings that have half of these words."""
        halves = [half for _, half in cuts(words, 1)]
        return {number for half in halves for number, piece in self.pieces if half in piece}


@functools.lru_cache(8)
def index_of(entries: tuple[Wording, ...]) -> Index:
    """Returns the index of these wordings; it takes 0.01 s."""
    pieces = [
        (number, piece)
        for number, entry in enumerate(entries)
        for piece in itertools.chain(*plain_readings(entry))
    ]
    clues = defaultdict(list)
    for number, piece in pieces:
        for _, part in cuts(piece, allowed(piece)):
            clues[part[:CLUE]].append(number)
    return Index(entries, pieces, dict(clues), set(map(len, clues)))


def allowed(piece: str) -> int:
    """Returns how many errors a piece may have."""
    return min(MOST_EDITS, len(piece) // PER_EDIT)


def cuts(piece: str, most: int) -> Iterator[tuple[int, str]]:
    """Yields the parts of a piece, of which one has no error if the piece has at most so many, and where each begins."""
    size = max(1, -(-len(piece) // (most + 1)))
    for cut in range(0, len(piece), size):
        yield cut, piece[cut : cut + size]


def with_errors(wording: Wording, text: str) -> str:
    """Returns what in a plain text is the wording with a few letters wrong; empty if nothing is."""
    for pieces in plain_readings(wording):
        found = nearly(pieces, text) if may_have_errors(pieces) else ""
        if found and ends_alike(pieces[-1], found):
            return found
    return ""


def ends_alike(piece: str, found: str) -> bool:
    """Returns whether what was found ends in the last word of a piece, if this is so short that it may be a name."""
    last = piece.split()[-1]
    return len(last) > NAME or found.split()[-1] == last


def may_have_errors(pieces: tuple[str, ...]) -> bool:
    least = LEAST_OF_WORDS if any(" " in piece for piece in pieces) else LEAST
    return sum(map(len, pieces)) >= least


def nearly(pieces: tuple[str, ...], text: str) -> str:
    """Returns what fits the pieces, each after the one before; empty if nothing does."""
    begin, place, left = -1, 0, MOST_EDITS
    for piece in pieces:
        end = place + len(piece) + phrases.GAP if begin >= 0 else len(text)
        most = min(left, allowed(piece))
        found = next(matches(piece, text[place:end], most), None)
        if found is None:
            return ""
        start, stop, errors = found
        begin = place + start if begin < 0 else begin
        place, left = place + stop, left - errors
    return text[max(begin, 0) : place]


def matches(piece: str, text: str, most: int) -> Iterator[tuple[int, int, int]]:
    """Yields where a piece stands with at most so many errors, and how many: one part of it has none."""
    for cut, part in cuts(piece, most):
        for place in itertools.islice(places(part, text), PLACES):
            before, length = edits(
                piece[:cut][::-1], text[max(0, place - cut - most) : place][::-1], most
            )
            stop = place + len(part)
            rest = piece[cut + len(part) :]
            after, further = edits(rest, text[stop : stop + len(piece)], most)
            if before + after <= most:
                yield place - length, stop + further, before + after


def places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def edits(piece: str, text: str, most: int) -> tuple[int, int]:
    """Returns with how many errors a piece begins a text, and how much of the text it takes; more than allowed if it does not."""
    same = 0
    while same < min(len(piece), len(text)) and piece[same] == text[same]:
        same += 1
    piece, text = piece[same:], text[same:]
    if not piece or not most:
        return (1 if piece else 0), same
    ways = [(piece[1:], text[1:], 1), (piece[1:], text, 0), (piece, text[1:], 1)]
    if piece[:2] == text[1::-1]:
        ways.append((piece[2:], text[2:], 2))
    tried = [(edits(rest, other, most - 1), taken) for rest, other, taken in ways]
    (errors, length), taken = min(tried, key=lambda each: each[0][0])
    return errors + 1, same + taken + length


def short(text: Flat) -> str:
    """Returns the words of a text that is short enough to be a part of a message, without the name of an error; else nothing."""
    if len(text) > SHORT:
        return ""
    words = plain(RAISED.sub(" ", text.cased).lower())
    return words if len(words) >= PART and " " in words else ""


def part(wording: Wording, words: str) -> float:
    """Returns how much of a wording these words are a part of; 0 if they are of none, or need what else a wording says."""
    shares = (
        share(pieces, words, len(wording.says) == 1) for pieces in plain_readings(wording) if pieces
    )
    return max(shares, default=0)


def share(pieces: tuple[str, ...], words: str, may_go_on: bool) -> float:
    covered = 0
    if any(next(matches(words, piece, 1), None) for piece in pieces):
        covered = len(words)
    elif may_go_on:
        covered = max(run(pieces[n:], words) for n in range(len(pieces)))
    is_mostly = covered >= max(PART, MINE * len(words))
    return covered / sum(map(len, pieces)) if is_mostly else 0


def run(pieces: tuple[str, ...], words: str) -> int:
    """Returns how many letters of the pieces stand in these words, one after the other, the first and the last cut off."""
    place = length = left_at_start(pieces[0], words) if pieces[0] not in words else 0
    for piece in pieces[1:] if length else pieces:
        found = words.find(piece, place)
        if found < 0:
            return length + phrases.left_at_end(piece, words, place)
        place, length = found + len(piece), length + len(piece)
    return length


def left_at_start(piece: str, words: str) -> int:
    """Returns how many letters of the end of a piece begin these words, if they are most of it."""
    longest = min(len(piece), len(words))
    least = max(CLUE, int(MINE * len(piece)))
    return next((n for n in range(longest, least, -1) if words.startswith(piece[-n:])), 0)
