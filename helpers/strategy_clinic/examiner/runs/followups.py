"""What one run leaves open and another run can tell: the same run with one thing changed in it, or shown by it."""

from collections.abc import Callable
from dataclasses import dataclass

from ..recording import Observation
from ..rules import divergence, silent

MOST_OF_A_KIND = 3


@dataclass(frozen=True)
class Question:
    """How the run is to be made, and what facts its outcome adds to those of the first run."""

    words: str
    options: tuple[str, ...]
    answer: Callable[[Observation, Observation], list[dict]]
    compared: bool = (
        True  # an answer that rests on a difference holds only if the program repeats itself
    )


def questions_of(run: Observation) -> list[Question]:
    if run.ended != "finished":
        return []
    return [*missed_at_once(run), *missed_after_loading(run), *means(run)]


def missed_at_once(run: Observation) -> list[Question]:
    """A variable that no checkpoint holds begins again at the first save."""
    return [
        Question(
            f"with {silent.named(run, number)} as it was at first, from the first save on",
            ("--reset", str(number)),
            misses(number, "with its first value from there on"),
        )
        for number in silent.in_question(run)[:MOST_OF_A_KIND]
    ]


def missed_after_loading(run: Observation) -> list[Question]:
    """What takes its place after loading gets the value that was not saved."""
    pairs = [(number, silent.remade(run, number)) for number in silent.in_question(run)]
    return [
        Question(
            f"with {silent.named(run, number)} after loading as it was when it was not saved",
            ("--give", f"{number}:{other}"),
            misses(number, "where what takes its place after loading gets its value"),
        )
        for number, other in pairs[:MOST_OF_A_KIND]
        if other
    ]


def misses(number: int, when: str):
    def answer(first: Observation, other: Observation) -> list[dict]:
        said = divergence.answers_part(first, other)
        if divergence.parting(first, other):
            why = f"{when}, the training goes elsewhere"
        elif said:
            line = f" at line {said['at'][0][1]}" if said["at"] else ""
            why = f"{when}, the model says something else{line}"
        else:
            return []
        return [{"fact": "missed", "numbers": [number], "why": why}]

    return answer


def means(run: Observation) -> list[Question]:
    """Numbers that a graph reduces over replicas are told, by an operation that is put beside."""
    if not silent.means_in_question(run):
        return []
    return [
        Question("with the numbers told that are reduced in graphs", ("--tell",), means_told, False)
    ]


def means_told(first: Observation, other: Observation) -> list[dict]:
    return [each for each in other.of("reduced") if each["values"]]
