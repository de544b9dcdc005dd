"""Which modes a text is like, by its words: a description, or a message that no wording knows.

Each mode is known by short texts: its title, what it sees and its fix, its wordings, and what described.toml tells of it. A
text is compared with each of them by what they share, which counts the more the fewer texts have it: stems of words, pairs of
neighbours, and the ideas of vocabulary.toml, so that "two GPUs" and "MirroredStrategy" have something in common. To that comes
what learned.json adds for each of them, which labelled reports have taught (tests/fit_triage.py writes it).
"""

import functools
import itertools
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from . import strip_code, wordings

READ = 1500  # signs that are read of the beginning of a text, and of its end
WORD = re.compile(r"[A-Z]{2,}s?(?![a-z])|NaN|[A-Z]?[a-z]+|[A-Z]+|\d+")
FOLDERS = re.compile(r"(?:[^\s/\\]*[/\\])+")
# Who tells something, also where no capital is written.
SPEAKER = re.compile(
    r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]ur)\b|\?"
    r"|\bi(?:'m|'ve|'d| am| have| had| was| get| got| want| need| use| used| can| do| did| tried| train| think)\b"
)
IDEA = "~"  # begins the name of an idea
PAIR = 0.6  # how much a pair of neighbours counts, and
UNSEEN = 3.0  # how much a word that is in no text of ours
DIGITS = 7  # to which a weight is worked out
SHORT = 20.0  # a text of less weight than that is not taken for more,
BEST = (1, 0.5, 0.25)  # what the texts of a mode that are nearest count
ALWAYS = ""  # names what is learned of a mode whatever a text says
NO_MODE = "none"
TOLD_WORDS = 4  # words that an answer says it went by
# How much the kinds of texts weigh by which a mode is known.
TITLE, FIX, TELLS, WORDING = 1, 0.5, 1, 0.7


@dataclass(frozen=True, eq=False)
class Index:
    """All texts by which modes are known: where those of each mode begin and end, how much each text weighs, and which
    have a trait; one that has it twice stands there twice."""

    spans: dict[str | None, tuple[int, int]]
    weights: list[float]
    holders: dict[str, list[int]]

    @functools.cached_property
    def rarity(self) -> dict[str, float]:
        return rarity_of(self.holders, len(self.weights))

    @functools.cached_property
    def counted(self) -> dict[str, dict[int, float]]:
        return {}

    def shares(self, trait: str) -> dict[int, float]:
        """How much of a trait each text has that has it."""
        if trait not in self.counted:
            often = Counter(self.holders.get(trait, ()))
            self.counted[trait] = {
                number: self.rarity[trait] * times(n) * self.weights[number]
                for number, n in often.items()
            }
        return self.counted[trait]


@dataclass(frozen=True)
class Likeness:
    mode: str | None
    score: float
    nearest: int  # the text of ours that is nearest,
    shared: int  # how many words there are in common with it,
    index: Index  # where it stands,
    weights: dict[str, float]  # the traits of what was asked,
    said: dict[str, str]  # and in which words it says them

    @property
    def words(self) -> tuple[str, ...]:
        """The words that have counted most."""
        learned, name = wordings.learned(), self.mode or NO_MODE
        counts = {
            trait: weight
            * (self.index.shares(trait).get(self.nearest, 0) + learned.get(trait, {}).get(name, 0))
            for trait, weight in self.weights.items()
        }
        speaking = {trait: count for trait, count in counts.items() if count > 0}
        return telling_words(speaking, self.said)


def likest(text: str, index: Index) -> list[Likeness]:
    """Every mode, and none of them, the likeliest first."""
    words = words_in(read_part(strip_code.in_prose(text)))
    traits = traits_of(words)
    said = {trait: " ".join(words[begin:end]) for trait, begin, end in traits}
    weights = weighed(tallied(traits), index.rarity)
    taught, (shares, shared) = taught_of(weights), in_common(weights, index)
    near = []
    for mode, (begin, end) in index.spans.items():
        mine = shares[begin:end]
        best = sorted(mine, reverse=True)[: len(BEST)]
        score = sum(part * one for part, one in zip(BEST, best, strict=False))
        nearest = begin + mine.index(best[0])
        about = (nearest, shared[nearest], index, weights, said)
        near.append(Likeness(mode, score + taught[mode or NO_MODE], *about))
    return sorted(near, key=lambda each: -each.score)


def in_common(weights: dict[str, float], index: Index) -> tuple[list[float], list[int]]:
    """How much a text has in common with each of ours, and how many words."""
    found, words = [0.0] * len(index.weights), [0] * len(index.weights)
    for trait, weight in weights.items():
        is_word = " " not in trait and trait[0] != IDEA
        for number, holds in index.shares(trait).items():
            found[number] += weight * holds
            words[number] += is_word
    return found, words


def spoken_for(text: str, index: Index) -> dict[str, float]:
    """How much the words of a text speak for each mode, and for none of them, as far as that is learned."""
    return taught_of(weights_in(text, index.rarity))


def weights_in(text: str, rarity: dict[str, float]) -> dict[str, float]:
    """The traits of what is read of a text, each with its share of it."""
    return weighed(tallied(traits_of(words_in(read_part(text)))), rarity)


def taught_of(weights: dict[str, float]) -> dict[str, float]:
    """What is learned of the traits of a text, for each mode."""
    found, learned = defaultdict(float), wordings.learned()
    for trait, weight in ((ALWAYS, 1), *weights.items()):
        for mode, speaks in learned.get(trait, {}).items():
            found[mode] += weight * speaks
    return found


def telling_words(traits: dict, said: dict) -> tuple[str, ...]:
    """The words of a text that have counted most."""
    words = dict.fromkeys(said[trait] for trait in sorted(traits, key=lambda each: -traits[each]))
    parts = [each for each in words if not any(each != other and each in other for other in words)]
    return tuple(parts[:TOLD_WORDS])


def read_part(text: str) -> str:
    """The beginning and the end, without folders."""
    part = text if len(text) <= 2 * READ else f"{text[:READ]}\n{text[-READ:]}"
    return FOLDERS.sub("", part)


def says_trouble(text: str) -> bool:
    """Whether a text says that something is not as it should be, or asks."""
    return "?" in text or any(stem(word) in trouble() for word in words_in(read_part(text)))


def is_told(text: str) -> bool:
    """Whether somebody tells it, or asks: documentation says neither I nor we."""
    return bool(SPEAKER.search(text))


@functools.cache
def trouble() -> set[str]:
    return {stem(each) for each in wordings.read_vocabulary()["trouble"].split()}


# What a text has


def words_in(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text.replace("'", ""))]


def traits_of(words: list[str]) -> list[tuple[str, int, int]]:
    """Stems, pairs and ideas, each with where the words begin and end that say it."""
    stop, ideas = vocabulary()
    stems = [stem(word) for word in words]
    telling = [place for place, each in enumerate(stems) if each not in stop]
    found = ideas_in(stems, range(len(stems)), ideas)
    if len(telling) < len(stems):
        found += ideas_in([stems[place] for place in telling], telling, ideas)
    found += [(stems[place], place, place + 1) for place in telling]
    pairs = itertools.pairwise(telling)
    return found + [(f"{stems[one]} {stems[two]}", one, two + 1) for one, two in pairs]


def ideas_in(stems: list[str], places, ideas: dict) -> list[tuple[str, int, int]]:
    """Phrases that name an idea; `places` says where in the text each stem stands."""
    found = []
    for number, first in enumerate(stems):
        for phrase, name in ideas.get(first, ()):
            end = number + len(phrase)
            if stems[number:end] == phrase:
                found.append((name, places[number], places[end - 1] + 1))
    return found


@functools.cache
def stem(word: str) -> str:
    """A word without its ending, where three letters are left, and without the second of two equal ones before it; empty
    for a number or a letter."""
    if word.isdigit() or len(word) < 2:
        return ""
    rest = endings().sub("", word)
    twice = rest != word and len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "sl"
    return rest[:-1] if twice else rest


@functools.cache
def endings():
    return re.compile(
        rf"(?<=[a-z]{{3}})(?:{'|'.join(wordings.read_vocabulary()['endings'].split())})$"
    )


@functools.cache
def vocabulary() -> tuple[set, dict]:
    """The stems that say nothing, and by their first stem the phrases that name an idea."""
    written, ideas = wordings.read_vocabulary(), defaultdict(list)
    for name, phrases in written["ideas"].items():
        for phrase in phrases.split(","):
            stems = [stem(word) for word in phrase.split()]
            ideas[stems[0]].append((stems, IDEA + name))
    return {"", *(stem(each) for each in written["stop"].split())}, dict(ideas)


# What is known of all modes


def index_of(texts_told: list[tuple]) -> Index:
    texts = [tallied(traits_of(words_in(text))) for _, text, _ in texts_told]
    holders = defaultdict(list)
    for number, traits in enumerate(texts):
        for trait, n in traits.items():
            holders[trait] += [number] * n
    rarity = rarity_of(holders, len(texts))
    lengths = [length_of(rarity[each] * times(n) for each, n in text.items()) for text in texts]
    weights = [
        round(weight / length, DIGITS)
        for (*_, weight), length in zip(texts_told, lengths, strict=True)
    ]
    modes = [mode for mode, *_ in texts_told]
    spans = {mode: (modes.index(mode), modes.index(mode) + n) for mode, n in Counter(modes).items()}
    return Index(spans, weights, dict(holders))


def rarity_of(holders: dict[str, list[int]], texts: int) -> dict[str, float]:
    """How much each trait counts: the more, the fewer texts have it."""
    return {
        trait: math.log((texts + 1) / (len(set(those)) + 0.5)) * (PAIR if " " in trait else 1)
        for trait, those in holders.items()
    }


def all_texts(entries: tuple[wordings.Wording, ...]) -> list[tuple]:
    """By mode."""
    return sorted(texts_of(entries), key=lambda each: each[0] or "")


def texts_of(entries):
    """Everything that says what a mode looks like, and how much it weighs."""
    for mode, facts in wordings.declared_modes().items():
        yield from ((mode, facts[name], TITLE) for name in ("title", "sees"))
        yield mode, facts["fix"], FIX
    for mode, facts in wordings.described().items():
        yield from ((None if mode == "none" else mode, each, TELLS) for each in facts["tells"])
    for each in entries:
        if each.proof != "hint":
            yield each.mode, re.sub(r"\W+", " ", " ".join(each.says)), WORDING


def tallied(traits) -> dict[str, int]:
    """How often each trait is there; an idea counts once, in however many words it is said."""
    found = {}
    for trait, _, _ in traits:
        found[trait] = 1 if trait[0] == IDEA else found.get(trait, 0) + 1
    return found


def weighed(traits: dict[str, int], rarity: dict[str, float]) -> dict[str, float]:
    """Each trait's share of a text, so that long and short texts compare; a few words do not make one sure."""
    weights = {}
    for trait, n in traits.items():
        if worth := rarity.get(trait, 0 if " " in trait else UNSEEN):
            weights[trait] = worth * times(n)
    length = length_of(weights.values())
    return {trait: weight / length for trait, weight in weights.items()}


def times(n: int) -> float:
    """How much more a trait counts that a text has n times."""
    return 1 if n == 1 else 1 + math.log(n)


def length_of(weights) -> float:
    return max(SHORT, math.sqrt(sum(weight * weight for weight in weights)))
