"""Checks fm63: a Python generator makes one example after the other, and runs nearly all the time while the program trains."""

from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import DatasetBatched, GeneratorRead

LEAST_STEPS, LEAST_SECONDS = 10, 0.5  # what takes less is not worth a word
BUSY = 0.8  # of the time between the first step and the last
AHEAD = 2  # batches: a generator that makes more than the steps take is not waited for


@rule("fm63", explains_divergence=False)
def waits_for_generator(recording: Recording) -> Steps:
    for read in recording.of(GeneratorRead):
        if read.at_once == 1 and read.location and is_slow(read) and keeps_pace(read, recording):
            message = (
                "the steps wait for this generator, which makes one element after the other; more devices do "
                "not help"
            )
            proof = f"it ran {read.share:.0%} of the time of {read.steps} steps, and was never ahead of them"
            yield observed("fm63", recording, read.location, message, proof)


def is_slow(read: GeneratorRead) -> bool:
    enough = read.steps >= LEAST_STEPS and read.seconds >= LEAST_SECONDS
    return enough and read.share >= BUSY


def keeps_pace(read: GeneratorRead, recording: Recording) -> bool:
    """Tells whether the generator made about what the steps took. An element is a batch, or an example of one."""
    batched = {each.size for each in recording.of(DatasetBatched)}
    sizes = {1, recording.examples, *batched} - {0}
    return any(
        size * read.steps <= 2 * read.elements and read.elements <= size * (read.steps + AHEAD)
        for size in sizes
    )
