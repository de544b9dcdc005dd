"""All that is known, laid out so that a text is held only against the wordings of which it has a piece."""

import functools
from collections import defaultdict
from dataclasses import dataclass

from . import phrases, similarity, stored_index, wordings


@dataclass(frozen=True, eq=False)
class Knowledge:
    entries: tuple[wordings.Wording, ...]

    @functools.cached_property
    def index(self) -> similarity.Index:
        return stored_index.index_for(self.entries)

    @functools.cached_property
    def pieces(self) -> dict[str, list[int]]:
        """For each piece without which a wording does not stand, the wordings that need it."""
        return self.by(lambda pieces: max(pieces, key=len))

    @functools.cached_property
    def stubs(self) -> dict[str, list[int]]:
        """The same for wordings that the end of a text may have cut off."""
        return self.by(phrases.stub)

    @functools.cached_property
    def symptoms(self) -> list[int]:
        return [number for number, each in enumerate(self.entries) if each.symptom]

    def by(self, key) -> dict[str, list[int]]:
        needed = defaultdict(list)
        for number, each in enumerate(self.entries):
            if not each.symptom:
                for pieces in phrases.phrases(each.says[0]):
                    needed[key(pieces)].append(number)
        return dict(needed)

    def near(self, text: str) -> list[wordings.Wording]:
        """The wordings that may stand in a text, in their order."""
        end = text[-phrases.END :]
        there = set(self.symptoms)
        for piece, numbers in self.pieces.items():
            if piece in text:
                there.update(numbers)
        for stub, numbers in self.stubs.items():
            if stub in end:
                there.update(numbers)
        return [self.entries[number] for number in sorted(there)]


@functools.cache
def everything() -> Knowledge:
    return Knowledge(wordings.wordings())
