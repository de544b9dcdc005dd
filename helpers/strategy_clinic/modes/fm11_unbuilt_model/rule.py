"""Checks fm11: an optimizer was given no gradients at all, for a model that had been asked for its variables too early."""

from ...examiner.blame import called_at, from_maker
from ...examiner.findings import Note, counted
from ...examiner.recording import Recording, stack_of
from ...examiner.rule import Steps, blames, line_of, names, observed, rule
from ...observer.events import (
    ExceptionRaised,
    GradientsApplied,
    ModelCalled,
    ModelCompiled,
    Stack,
    StrategyMade,
    UnbuiltModelRead,
    Use,
)

# What `tf.add_n`, and `all_reduce` of a replica's context, say of an empty list.
NOTHING_TO_ADD = (
    "Inputs must be an iterable of at least one Tensor",
    "'NoneType' object has no attribute 'batch_reduce'",
)
# What Keras says of a model, or of a loss, that was called with something else than it takes.
CALLED_IN_VAIN = (
    "is incompatible with the layer",
    "Exception encountered when calling",
    "None values not supported",
)


@rule("fm11", explains_divergence=False)
def nothing_applied(recording: Recording) -> Steps:
    early = last_empty(recording)
    empty = [update for update in recording.of(GradientsApplied) if not update.gradients]
    if early and empty:
        yield observed(
            "fm11",
            recording,
            from_maker(early.location, early.made_at),
            f"{early.name} has no variables here, since it was never called: what is made of them is empty",
            line_of(empty[0].location, "a step"),
            " gave the optimizer 0 gradients",
        )


@rule("fm11", explains_divergence=False)
def rest_untrained(recording: Recording) -> Steps:
    """Checks whether only those layers are trained that had variables when the program asked a model for them."""
    changed = recording.trained | recording.written | recording.loaded
    for early in recording.of(UnbuiltModelRead):
        had = {*early.variables} & recording.trained
        calls = [e for e in recording.of(ModelCalled) if e.model == early.model != 0]
        trainable = {number for call in calls for number in call.trainable}
        left = sorted(trainable - {*early.variables} - changed)
        if had and left and recording.finished:
            yield observed(
                "fm11",
                recording,
                from_maker(early.location, early.made_at),
                f"{early.name} was never called before this line, and has the variables of only some layers here",
                f"no update has {counted(len(left), 'variable')} of other layers, such as "
                f"{recording.name_of(left[0])}",
            )
            return


def last_empty(recording: Recording) -> UnbuiltModelRead | None:
    empty = [each for each in recording.of(UnbuiltModelRead) if not each.variables]
    return next(reversed(empty), None)


@rule("fm11", explains_divergence=False)
def called_before_its_step(recording: Recording) -> Steps:
    """Notes that a model raised when `fit` of Keras 3 built it under a strategy, and before its own step has run."""
    raised, compiled = recording.last(ExceptionRaised), recording.last(ModelCompiled)
    steps = {each.name for each in recording.definitions(Use.STEP)}
    if not (raised and compiled and recording.of(StrategyMade)) or recording.keras_used == 2:
        return
    inner = lines_in_fit(stack_of(raised))
    is_early = "train_step" in steps and not recording.of(GradientsApplied, after=compiled)
    is_called = any(frame.function == "call" for frame in inner or ())
    is_called |= inner == () and any(text in raised.traceback for text in CALLED_IN_VAIN)
    if is_early and is_called and not any(frame.function == "train_step" for frame in inner or ()):
        yield Note(
            "this was raised before `train_step` ran: under a strategy `fit` of Keras 3 first calls the model on the whole `x`, "
            "and the compiled loss, to build them. If `train_step` takes `x` apart, let `call` take the whole `x`; compile no "
            "loss where there are no labels (fm11)"
        )


def lines_in_fit(stack: Stack) -> Stack | None:
    """Returns the lines that ran within the innermost `fit`; None if none was called."""
    for i, frame in enumerate(stack):
        if "fit" in called_at(frame):
            return stack[:i]
    return None


@names("fm11")
def nothing_to_add(recording: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether a sum over the variables of a model or their gradients, such as a penalty, has found none."""
    is_empty = any(text in raised.traceback for text in NOTHING_TO_ADD)
    return is_empty and last_empty(recording) is not None


@blames("fm11")
def unbuilt(recording: Recording, stack: Stack) -> Stack:
    early = last_empty(recording)
    return from_maker(early.location, early.made_at) if early else stack
