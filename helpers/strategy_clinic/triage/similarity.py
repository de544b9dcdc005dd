"""Which modes a text is like, by its words.

Each mode is known by short texts: its title, what it sees and its fix, its descriptions and its wordings. A text is compared
with each of them by what they share, which counts the more the fewer texts have it: stems of words, pairs of neighbours, and the
ideas of vocabulary.toml, so that "two GPUs" and "MirroredStrategy" have something in common.
"""

import functools
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import wordings
from .phrases import stem

WORD = re.compile(r"[A-Z]{2,}s?(?![a-z])|NaN|[A-Z]?[a-z]+|[A-Z]+|\d+")
IDEA = "~"  # begins the name of an idea
PAIR = 0.6  # how much a pair of neighbours counts, and
UNSEEN = 3.0  # how much a word that is in no text of ours
SHORT = 20.0  # a text of less weight than that counts as if it had this weight
BEST = (1, 0.5, 0.25)  # how much the texts of a mode count that are nearest
QUOTED = 4  # words that an answer names as its reason

Traits = dict[str, str]  # stems, pairs and ideas, and the words of the text that say them
Ideas = dict[str, list[tuple[list[str], str]]]  # by their first stem: all stems, and the idea


@dataclass(frozen=True, eq=False)
class Index:
    """All texts, sorted by mode: the span of each mode, the length of each text, and the texts that have a trait."""

    spans: dict[str | None, tuple[int, int]]
    lengths: list[float]
    holders: dict[str, list[int]]
    rarity: dict[str, float]


@dataclass(frozen=True)
class NearMode:
    id: str | None
    score: float
    nearest: int  # the number of the text of the mode that is nearest
    worth: dict[str, float]  # of each trait
    traits: Traits
    index: Index

    @property
    def words(self) -> tuple[str, ...]:
        """The words that count most."""
        shared = [each for each in self.traits if self.nearest in self.index.holders.get(each, ())]
        return telling_words(sorted(shared, key=lambda one: -self.worth[one]), self.traits)


def nearest_modes(text: str, index: Index) -> list[NearMode]:
    """Returns every mode, and None for what is not a mode, the nearest first."""
    traits = traits_of(text)
    worth = {trait: index.rarity.get(trait, 0 if " " in trait else UNSEEN) for trait in traits}
    length = length_of(worth.values())
    lengths = index.lengths
    scores = [0.0] * len(lengths)
    for trait in traits:
        shared = worth[trait] ** 2
        for number in index.holders.get(trait, ()):
            scores[number] += shared / (length * lengths[number])
    near = []
    for mode, (begin, end) in index.spans.items():
        own = scores[begin:end]
        best = sorted(own, reverse=True)
        score = sum(part * each for part, each in zip(BEST, best, strict=False))
        near.append(NearMode(mode, score, begin + own.index(best[0]), worth, traits, index))
    return sorted(near, key=lambda mode: -mode.score)


def telling_words(shared: list[str], traits: Traits) -> tuple[str, ...]:
    words = dict.fromkeys(traits[trait] for trait in shared)
    longest = [
        each for each in words if not any(each != other and each in other for other in words)
    ]
    return tuple(longest[:QUOTED])


def traits_of(text: str) -> Traits:
    words = [word.lower() for word in WORD.findall(text.replace("'", ""))]
    stop, ideas = vocabulary()
    stems = [stem(word) for word in words]
    telling = [place for place, word in enumerate(stems) if word not in stop]
    spans = [
        (idea, place, place + len(phrase))
        for place, first in enumerate(stems)
        for phrase, idea in ideas.get(first, ())
        if stems[place : place + len(phrase)] == phrase
    ]
    spans += [(stems[place], place, place + 1) for place in telling]
    spans += [(f"{stems[a]} {stems[b]}", a, b + 1) for a, b in itertools.pairwise(telling)]
    return {trait: " ".join(words[begin:end]) for trait, begin, end in spans}


@functools.cache
def vocabulary() -> tuple[set[str], Ideas]:
    """Returns the stems that say nothing, and the phrases that name an idea."""
    written, ideas = wordings.read_vocabulary(), defaultdict(list)
    for name, phrases in written["ideas"].items():
        for phrase in phrases.split(","):
            stems = [stem(word) for word in phrase.split()]
            ideas[stems[0]].append((stems, IDEA + name))
    return {"", *(stem(word) for word in written["stop"].split())}, dict(ideas)


def length_of(worth: Iterable[float]) -> float:
    return max(SHORT, math.hypot(*worth))


@functools.lru_cache(8)
def index_of(entries: tuple[wordings.Wording, ...]) -> Index:
    """Returns the index of the texts of all modes, with these wordings; it takes 0.1 s."""
    texts = sorted(texts_of(entries), key=lambda text: text[0] or "")
    all_traits = [traits_of(text) for _, text in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, traits in enumerate(all_traits):
        for trait in traits:
            holders[trait].append(number)
    rarity = {
        trait: math.log((len(texts) + 1) / (len(numbers) + 0.5)) * (PAIR if " " in trait else 1)
        for trait, numbers in holders.items()
    }
    lengths = [length_of(rarity[trait] for trait in traits) for traits in all_traits]
    modes = [mode for mode, _ in texts]
    spans = {mode: (modes.index(mode), modes.index(mode) + n) for mode, n in Counter(modes).items()}
    return Index(spans, lengths, dict(holders), rarity)


def texts_of(entries: tuple[wordings.Wording, ...]) -> Iterator[tuple[str | None, str]]:
    """Yields every text that says what a mode looks like, with the mode."""
    for mode in wordings.declared_modes().values():
        yield from ((mode.id, text) for text in (mode.title, mode.sees, mode.fix))
    for words in wordings.mode_words().values():
        yield from ((words.mode, text) for text in words.descriptions)
    for entry in entries:
        if entry.proof != "hint" and not entry.error:
            yield entry.mode, re.sub(r"\W+", " ", " ".join(entry.says))
