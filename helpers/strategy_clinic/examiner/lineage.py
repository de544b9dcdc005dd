"""What a traced loss is computed from: which operation reduces the examples of a part, joins something, or divides.

It follows the operations that ran, so a function in another file, a closure or an alias makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ..observer.events import Carries, LossTraced, Operation, Stack
from ..observer.stopped_gradients import STOPS
from .recording import Recording

QUOTIENTS = {"RealDiv", "Div", "DivNoNan"}
FACTORS = {*QUOTIENTS, "Mul"}
SUMS = {"AddV2", "Add", "AddN", "Sub"}
# Operations whose result for a sum is not the sum of their results.
BENDS = {"Sqrt", "Rsqrt", "Square", "Pow", "Exp", "Log", "Log1p", "Sigmoid", "Tanh", "Softplus"}
# Operations of examples without a gradient: those that return no floating-point numbers, and those that round.
ENDS = {"Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual", "ArgMax", "ArgMin"}
ENDS |= {"Round", "Rint", "Floor", "Ceil"}
NEAR = 1e-6  # of two constants that are equal


@dataclass(frozen=True)
class Loss:
    """The operations that lead to a loss, by their numbers; the first is the loss."""

    location: Stack
    operations: tuple[Operation, ...]

    @cached_property
    def top(self) -> list[Operation]:
        """The operations on values of all examples through which the loss comes from the examples, those near the loss first."""
        return self.reached(self.operations[0], lambda _, source: source.carries is Carries.TOTAL)

    def sources(self, operation: Operation) -> list[Operation]:
        return [self.operations[number] for number in operation.inputs]

    def behind(self, operation: Operation) -> list[Operation]:
        """Returns an operation and all that lead to it."""
        return self.reached(operation, lambda *_: True)

    def reached(
        self, start: Operation, leads_on: Callable[[Operation, Operation], bool]
    ) -> list[Operation]:
        """Returns an operation and those that lead to it, as far as each operation leads on to its source."""
        found = [start]
        for each in found:
            sources = [source for source in self.sources(each) if leads_on(each, source)]
            found += [source for source in sources if source not in found]
        return found

    # What makes one value of the examples of a part

    def is_reduction(self, operation: Operation) -> bool:
        return operation.carries is Carries.TOTAL and any(
            source.carries is Carries.EXAMPLES and source.whole >= operation.whole
            for source in self.sources(operation)
        )

    @cached_property
    def reductions(self) -> list[Operation]:
        return [each for each in self.top if self.is_reduction(each)]

    @property
    def parts(self) -> list[Operation]:
        """The operations on values of all examples, and those whose values of examples are reduced."""
        return [*self.top, *(part for each in self.reductions for part in self.sources(each))]

    @property
    def means(self) -> list[Operation]:
        """What divides by the number of examples of the part: a mean, or a quotient by a size of theirs."""
        return [
            each
            for each in self.parts
            if (each.kind == "Mean" and self.is_reduction(each))
            or self.divides_by(each, Carries.SIZE)
        ]

    @property
    def divisions(self) -> list[Operation]:
        """What divides values of examples by a constant."""
        return [each for each in self.parts if each.kind in QUOTIENTS and self.numbers_in(each)]

    def divides_by(self, operation: Operation, carried: Carries) -> bool:
        divisors = self.sources(operation)[1:] if operation.kind in QUOTIENTS else []
        return any(each.carries is carried and not each.whole for each in divisors)

    def cuts(self) -> list[Operation]:
        """Returns what stops gradients, the first on each way from the loss."""
        return [each for each in self.down_to(STOPS) if each.kind in STOPS]

    def ends(self) -> list[Operation]:
        """Returns the operations without a gradient through which all examples reach the loss; none if some come otherwise."""
        examples = [each for each in self.down_to(ENDS) if each.carries is Carries.EXAMPLES]
        return examples if all(each.kind in ENDS for each in examples) else []

    def down_to(self, kinds: Collection[str]) -> list[Operation]:
        """Returns the operations that lead to the loss, without those behind one of these kinds."""
        return self.reached(self.operations[0], lambda each, _: each.kind not in kinds)

    # Numbers

    def numbers_in(self, operation: Operation) -> list[float]:
        return [each.value for each in self.sources(operation) if each.value is not None]

    @cached_property
    def scalings(self) -> list[Operation]:
        """What multiplies or divides by a constant."""
        return [each for each in self.operations if each.kind in FACTORS and self.numbers_in(each)]

    def others_than(self, other: Loss, *, grows: bool) -> Iterator[Operation]:
        """Yields what multiplies or divides by another number than in another run, so that the result is larger, or smaller."""
        known = [(each.kind, each.location[:1], other.numbers_in(each)) for each in other.scalings]
        for each in self.scalings:
            mine = self.numbers_in(each)
            theirs = [
                n for kind, line, n in known if (kind, line) == (each.kind, each.location[:1])
            ]
            if theirs and not any(are_near(mine, n) for n in theirs):
                is_more = sum(mine) > sum(theirs[0])
                if grows == (is_more is not (each.kind in QUOTIENTS)):
                    yield each

    # What is joined

    def penalties(self) -> Iterator[Operation]:
        """Yields what adds what is computed from weights alone to what comes from examples, or what another function computes."""
        for each in self.top:
            for source in self.sources(each) if each.kind in SUMS else ():
                if source.carries is Carries.WEIGHTS and self.reads_weights(source):
                    yield each if is_of_one_function(each, source) else source

    def reads_weights(self, operation: Operation) -> bool:
        return any(each.kind == "ReadVariableOp" for each in self.behind(operation))

    # What combines examples otherwise than by a sum

    def ratios(self) -> Iterator[tuple[Operation, Operation]]:
        """Yields what divides a loss, with what reduces the examples of a part to the number by which it does."""
        for each in self.operations:
            if not self.divides_by(each, Carries.TOTAL):
                continue
            for divisor in self.sources(each)[1:]:
                parts = [part for part in self.behind(divisor) if self.is_reduction(part)]
                yield from [(each, part) for part in parts[:1]]

    def joins(self) -> Iterator[Operation]:
        """Yields what is no sum of values that each example has: what bends a sum, or joins examples with each other.

        A line that reads weights calls a layer, which joins examples to normalize them. Its products with weights are told only
        where they are reduced.
        """
        layers = {each.location[:1] for each in self.operations if each.kind == "ReadVariableOp"}
        for each in self.operations:
            carried = [source.carries for source in self.sources(each) if not source.whole]
            is_bent = each.kind in BENDS and carried == [Carries.TOTAL] and each in self.top
            is_joined = each.carries is Carries.EXAMPLES and Carries.TOTAL in carried
            is_product = each.kind == "MatMul" and each.carries is Carries.EXAMPLES
            is_own = each.location[:1] not in layers or is_product and each not in self.parts
            if (is_product or is_bent or is_joined) and is_own and not each.whole:
                yield each

    def written(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        """Returns those that the program wrote: what `fit` computes is all on the line that calls it, as the gradient is."""
        return (each for each in operations if each.location[:1] != self.location[:1])


def is_of_one_function(one: Operation, other: Operation) -> bool:
    scopes = [[frame.scope for frame in each.location[:1]] for each in (one, other)]
    return scopes[0] == scopes[1]


def are_near(some: list[float], others: list[float]) -> bool:
    near = [abs(a - b) <= NEAR * max(abs(a), abs(b)) for a, b in zip(some, others)]
    return len(some) == len(others) and all(near)


def loss_at(recording: Recording, location: Stack) -> Loss | None:
    """Returns what leads to the loss of which this line computes the gradients."""
    for traced in recording.of(LossTraced):
        if traced.location[:1] == location[:1]:
            return Loss(traced.location, traced.operations)
    return None
