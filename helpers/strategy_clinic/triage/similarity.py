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
# How much the kinds of texts weigh.
TITLE, FIX, DESCRIPTION, WORDING = 1, 0.5, 1, 0.7

Text = tuple[str | None, str, float]  # a text that says what a mode looks like: mode, text, weight
Trait = tuple[str, int, int]  # a stem, a pair or an idea, and where its words begin and end


@dataclass(frozen=True, eq=False)
class Index:
    """All texts, sorted by mode: the span of each mode, the weight of each text, and the texts that have a trait.

    A text that has a trait twice stands there twice.
    """

    spans: dict[str | None, tuple[int, int]]
    weights: list[float]
    holders: dict[str, list[int]]
    rarity: dict[str, float]

    def shares(self, trait: str) -> Iterator[tuple[int, float]]:
        """Yields the texts that have a trait, and how much of each it is."""
        for number, n in Counter(self.holders.get(trait, ())).items():
            yield number, self.rarity[trait] * times(n) * self.weights[number]


@dataclass(frozen=True)
class NearMode:
    id: str | None
    score: float
    words: tuple[str, ...]  # those that count most


def nearest_modes(text: str, index: Index) -> list[NearMode]:
    """Returns every mode, and None for what is not a mode, the nearest first."""
    words = words_in(text)
    traits = traits_of(words)
    said = {trait: " ".join(words[begin:end]) for trait, begin, end in traits}
    scores = [0.0] * len(index.weights)
    counts: list[dict[str, float]] = [{} for _ in scores]
    for trait, weight in weighed(tallied(traits), index.rarity).items():
        for number, share in index.shares(trait):
            scores[number] += weight * share
            counts[number][trait] = weight * share
    near = []
    for mode, (begin, end) in index.spans.items():
        best = sorted(range(begin, end), key=scores.__getitem__, reverse=True)
        score = sum(part * scores[number] for part, number in zip(BEST, best, strict=False))
        near.append(NearMode(mode, score, telling_words(counts[best[0]], said)))
    return sorted(near, key=lambda mode: -mode.score)


def telling_words(counts: dict[str, float], said: dict[str, str]) -> tuple[str, ...]:
    ordered = sorted(counts, key=lambda trait: -counts[trait])
    words = dict.fromkeys(said[trait] for trait in ordered)
    longest = [
        each for each in words if not any(each != other and each in other for other in words)
    ]
    return tuple(longest[:QUOTED])


# The traits of a text


def words_in(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text.replace("'", ""))]


def traits_of(words: list[str]) -> list[Trait]:
    stop, ideas = vocabulary()
    stems = [stem(word) for word in words]
    telling = [place for place, word in enumerate(stems) if word not in stop]
    found = ideas_in(stems, range(len(stems)), ideas)
    if len(telling) < len(stems):
        found += ideas_in([stems[place] for place in telling], telling, ideas)
    found += [(stems[place], place, place + 1) for place in telling]
    pairs = itertools.pairwise(telling)
    return found + [(f"{stems[one]} {stems[two]}", one, two + 1) for one, two in pairs]


Ideas = dict[str, list[tuple[list[str], str]]]  # by their first stem: all stems, and the idea


def ideas_in(stems: list[str], places: range | list[int], ideas: Ideas) -> list[Trait]:
    """Returns the ideas that stems name; `places` says where in the text each of them stands."""
    found = []
    for number, first in enumerate(stems):
        for phrase, name in ideas.get(first, ()):
            end = number + len(phrase)
            if stems[number:end] == phrase:
                found.append((name, places[number], places[end - 1] + 1))
    return found


@functools.cache
def vocabulary() -> tuple[set[str], Ideas]:
    """Returns the stems that say nothing, and the phrases that name an idea."""
    written, ideas = wordings.read_vocabulary(), defaultdict(list)
    for name, phrases in written["ideas"].items():
        for phrase in phrases.split(","):
            stems = [stem(word) for word in phrase.split()]
            ideas[stems[0]].append((stems, IDEA + name))
    return {"", *(stem(word) for word in written["stop"].split())}, dict(ideas)


def tallied(traits: list[Trait]) -> dict[str, int]:
    """Returns how often each trait is there; an idea counts once, however many words say it."""
    found: dict[str, int] = {}
    for trait, _, _ in traits:
        found[trait] = 1 if trait[0] == IDEA else found.get(trait, 0) + 1
    return found


def weighed(traits: dict[str, int], rarity: dict[str, float]) -> dict[str, float]:
    """Returns each trait's share of a text, so that long and short texts compare."""
    weights = {}
    for trait, n in traits.items():
        if worth := rarity.get(trait, 0 if " " in trait else UNSEEN):
            weights[trait] = worth * times(n)
    length = length_of(weights.values())
    return {trait: weight / length for trait, weight in weights.items()}


def times(n: int) -> float:
    """Returns how much more a trait counts that a text has n times."""
    return 1 + math.log(n)


def length_of(weights: Iterable[float]) -> float:
    return max(SHORT, math.hypot(*weights))


# The texts of all modes


def index_of(entries: tuple[wordings.Wording, ...]) -> Index:
    texts = sorted(texts_of(entries), key=lambda text: text[0] or "")
    tallies = [tallied(traits_of(words_in(words))) for _, words, _ in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    for number, traits in enumerate(tallies):
        for trait, n in traits.items():
            holders[trait] += [number] * n
    rarity = {
        trait: math.log((len(texts) + 1) / (len(set(those)) + 0.5)) * (PAIR if " " in trait else 1)
        for trait, those in holders.items()
    }
    lengths = (length_of(rarity[trait] * times(n) for trait, n in one.items()) for one in tallies)
    weights = [weight / length for (_, _, weight), length in zip(texts, lengths, strict=True)]
    modes = [mode for mode, _, _ in texts]
    spans = {mode: (modes.index(mode), modes.index(mode) + n) for mode, n in Counter(modes).items()}
    return Index(spans, weights, dict(holders), rarity)


def texts_of(entries: tuple[wordings.Wording, ...]) -> Iterator[Text]:
    for mode in wordings.declared_modes().values():
        yield from ((mode.id, text, TITLE) for text in (mode.title, mode.sees))
        yield mode.id, mode.fix, FIX
    for words in wordings.mode_words().values():
        yield from ((words.mode, text, DESCRIPTION) for text in words.descriptions)
    for entry in entries:
        if entry.proof != "hint":
            yield entry.mode, re.sub(r"\W+", " ", " ".join(entry.says)), WORDING
