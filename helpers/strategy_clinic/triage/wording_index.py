"""The wordings by the pieces that a text must have for them, so that a text is compared with few of them."""

import functools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from . import phrases, similarity
from .report_text import Flat
from .wordings import Wording, wordings


@dataclass(frozen=True, eq=False)
class WordingIndex:
    wordings: tuple[Wording, ...]

    @functools.cached_property
    def similarity(self) -> similarity.Index:
        """The index of all texts; it is made where a text is first compared by its words, in 0.1 s."""
        return similarity.index_of(self.wordings)

    @functools.cached_property
    def by_piece(self) -> dict[str, list[int]]:
        return self.by(phrases.longest_piece)

    @functools.cached_property
    def by_stub(self) -> dict[str, list[int]]:
        """The wordings that the end of a text may have cut off."""
        return self.by(phrases.stub)

    def by(self, key: Callable[[phrases.Pieces], str]) -> dict[str, list[int]]:
        numbers = defaultdict(list)
        for number, wording in enumerate(self.wordings):
            if not wording.symptom:
                for pieces in phrases.readings(wording.says[0]):
                    numbers[key(pieces)].append(number)
        return dict(numbers)

    def candidates(self, text: Flat) -> list[Wording]:
        """Returns the wordings that may stand in a text, in their order."""
        end = text[-phrases.END :]
        numbers = {number for number, wording in enumerate(self.wordings) if wording.symptom}
        for part, by in ((text, self.by_piece), (end, self.by_stub)):
            numbers.update(*(found for piece, found in by.items() if piece in part))
        return [self.wordings[number] for number in sorted(numbers)]


@functools.cache
def all_wordings() -> WordingIndex:
    return WordingIndex(wordings())
