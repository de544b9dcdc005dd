"""Checks fm56: all replicas draw the same random numbers for their parts of a batch."""

from ...examiner import blame
from ...examiner.findings import Note
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import BatchTaken, ModelCalled, NumbersRepeated, Owner, Stack

OF_KERAS = (
    "layers of Keras 3, and its `SeedGenerator`, give every replica the same random numbers, such as the masks of "
    "`Dropout`; your program is right (fm56)"
)


@rule("fm56", explains_divergence=False, finds_own_program=False)
def same_numbers(recording: Recording) -> Steps:
    repeated = recording.of(NumbersRepeated)
    for each in repeated:
        is_own = not is_of_keras(each) and each.location
        if is_own and is_of_examples(recording, each) and (each.changes or trains(each.location)):
            yield observed(
                "fm56",
                recording,
                each.location,
                f"each of {each.replicas} replicas draws the same random numbers for its part of the batch",
                "others in each step, from one seed for all replicas",
            )
    if any(is_of_keras(each) and each.changes for each in repeated):
        yield Note(OF_KERAS)


def is_of_keras(repeated: NumbersRepeated) -> bool:
    """Tells whether a layer of Keras draws, or its generator of seeds has chosen the seed, as in layers that Keras documents."""
    return repeated.drawer is Owner.LAYER or repeated.of_generator


def trains(stack: Stack) -> bool:
    """Tells whether this is in a step that trains: elsewhere the same numbers each time may be wanted, to evaluate alike."""
    return any(
        {"fit", *blame.GRADIENTS} & {*blame.called_at(frame)} or blame.computes_gradient(frame)
        for frame in stack
    )


def is_of_examples(recording: Recording, repeated: NumbersRepeated) -> bool:
    """Tells whether there are numbers for each example of a replica; one for a whole step may be meant to be the same."""
    called = {each.examples for each in recording.of(ModelCalled)}
    taken = {size for each in recording.of(BatchTaken) for size in each.sizes}
    return bool(repeated.shape) and repeated.shape[0] in {None, *(called or taken)}
