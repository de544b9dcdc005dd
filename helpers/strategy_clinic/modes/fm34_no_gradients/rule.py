"""Checks fm34: no gradient reaches a variable on which the training depends; blames the loss if none reaches any."""

import ast
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeGuard

from ...examiner import blame
from ...examiner.divergence import effect_of
from ...examiner.findings import BeginWith, FollowUp
from ...examiner.lineage import loss_at
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, line_of, observed, rule
from ...observer.events import (
    GradientComputed,
    GradientsApplied,
    ModelAnswered,
    ModelCalled,
    Owner,
    Stack,
    StepEnded,
    StepsCounted,
    Use,
    VariableRead,
)

# Operations without a derivative.
ENDS = {"round", "rint", "floor", "ceil", "argmax", "numpy_function", "stop_gradient"}
MAY_END = ENDS | {"cast"}  # most casts are to floats
MOST_TRIED = 3  # variables of a recording, with which it is run again
OTHER_VALUE = 0.5


@rule("fm34", explains_divergence=False)
def not_trained(recording: Recording) -> Steps:
    """Checks whether variables that never get a gradient matter to what is trained: the program is run with others."""
    for number, computed in candidates(recording)[:MOST_TRIED]:
        name = recording.name_of(number)
        words = f"with {name} beginning at {OTHER_VALUE:g}"
        effect = yield from effect_of(
            FollowUp(recording, BeginWith(number, OTHER_VALUE), words),
            on_answers=trains_nothing(recording),
            besides=number,
        )
        if effect:
            what = "a model's answer" if isinstance(effect, ModelAnswered) else "the training"
            yield observed(
                "fm34",
                recording,
                line_of_cut(recording, computed, number),
                f"no gradient reaches {name}: it is never trained",
                f"{computed.missing} of {computed.total} gradients were None at ",
                line_of(computed.location, "a tape"),
                f"; with {OTHER_VALUE:g} in {name} {what} differs",
            )
            return


def trains_nothing(recording: Recording) -> bool:
    """Tells whether a loop with an optimizer makes no update, and gets gradients only of copies that are gone at the end.

    A program that makes no steps, or gets other gradients, may ask for these only to see that they are None.
    """
    called = Counter(each.location for each in recording.of(ModelAnswered))
    is_loop = any(times > 1 for times in called.values())
    connected = {n for each in recording.of(GradientComputed) for n in each.connected}
    kept = {each.number for each in recording.ended.values}
    is_trained = connected - recording.written or connected & kept or recording.of(GradientsApplied)
    return recording.finished and bool(recording.optimizer_made_at) and is_loop and not is_trained


@rule("fm34", explains_divergence=False)
def nothing_changes(recording: Recording) -> Steps:
    """Checks for updates that have changed no weight: what was differentiated is 0, such as a penalty of weight 0."""
    counted, updates = recording.last(StepsCounted), recording.of(GradientsApplied)
    made = counted.updates if counted else 0
    missing = [each for each in updates if each.missing and each.location]
    if any(made_again(recording) & {*each.disconnected} for each in recording.of(GradientComputed)):
        return
    if recording.finished and missing and made > 1 and not recording.of(StepEnded):
        located = recording.last_incomplete_gradient or missing[0].location
        message = "no gradient of the loss reaches a weight: the optimizer changes nothing"
        without = f"{missing[0].missing} of {missing[0].gradients} gradients are None"
        proof = f"{made} updates have changed no weight, and {without}"
        line = line_of_stop(recording, located) or from_cut(located)
        yield observed("fm34", recording, line, message, proof)


def made_again(recording: Recording) -> set[int]:
    """Returns what was made again after a restore, so that the model uses another one: that is fm35."""
    return {n for early in recording.ended.restored_before_build for n in early.numbers}


def candidates(recording: Recording) -> list[tuple[int, GradientComputed]]:
    """Returns the variables of layers that got no gradient where others did, though nobody stops it or writes to them."""
    read = {each.number for each in recording.of(VariableRead)}
    all_computed, updates = recording.of(GradientComputed), recording.of(GradientsApplied)
    reached = {number for each in all_computed for number in (*each.stopped, *each.connected)}
    # Some programs put zeros where a gradient is None.
    reached |= {n for each in updates if not each.missing for n in each.optimizer.trains}
    found = {
        number: computed for computed in reversed(all_computed) for number in computed.disconnected
    }
    return [
        (number, computed)
        for number, computed in sorted(
            found.items(), key=lambda pair: kernels_first(recording, pair[0])
        )
        if number in read - recording.written - reached - made_again(recording)
        and recording.maker_of(number) in (Owner.LAYER, Owner.USER)
        and computed.location
    ]


def kernels_first(recording: Recording, number: int) -> tuple[bool, int]:
    made = recording.variable(number)
    return made is None or len(made.shape) < 2, number


def line_of_cut(recording: Recording, computed: GradientComputed, number: int) -> Stack:
    """Returns the line to blame for a variable without a gradient; a call of `fit` says less than where the variable is made."""
    cut = from_cut(computed.location)
    return (blame.calls_at(cut, "fit") and recording.location_of(number)) or cut


def from_cut(stack: Stack) -> Stack:
    """Returns the only line of the file with an operation that has no derivative, or else the one of the gradient."""
    return blame.from_only(stack, lines_of(blame.calls_in_file(stack[0].path), ENDS))


def lines_of(calls: Sequence[ast.Call], names: Collection[str]) -> list[int]:
    return [each.lineno for each in calls if blame.called_name(each) in names]


@blames("fm34")
def loss_without_gradient(recording: Recording, stack: Stack) -> Stack:
    located = recording.last_incomplete_gradient or stack
    if stop := line_of_stop(recording, located):
        return stop
    if blame.calls_at(located, "fit"):
        return (*line_of_loss(recording), *located)
    differentiated = [blame.argument_name(frame, ("gradient",)) for frame in located[:1]]
    return (
        blame.from_leading(
            located, differentiated, lambda value: any(lines_of(blame.calls_in(value), ENDS))
        )
        or call_outside_tape(recording, located)
        or blame.from_argument(located, ("gradient",))
    )


def line_of_stop(recording: Recording, stack: Stack) -> Stack:
    """Returns the only line that ends all gradients of what is differentiated here; nothing if others are missing, too."""
    last = [each for each in recording.of(GradientComputed) if each.missing][-1:]
    is_stopped = any(each.stopped == each.disconnected for each in last)
    is_whole = is_stopped or any(each.missing == each.total for each in last)
    loss = loss_at(recording, stack) if is_whole else None
    found = (loss.cuts() if is_stopped else loss.ends()) if loss else []
    cuts = [each.location for each in found if each.location]
    return cuts[0] if len({each[0] for each in cuts}) == 1 else ()


def call_outside_tape(recording: Recording, stack: Stack) -> Stack:
    """Returns the last call of a model in the function of this line that none of its tapes sees; nothing if one sees a call."""
    if not stack:
        return ()
    tapes = [each for each in blame.nodes_under(blame.function_at(stack[0])) if is_tape(each)]
    frames = [frame for each in recording.of(ModelCalled) for frame in each.location]
    calls = [frame for frame in frames if tapes and frame.scope == stack[0].scope]
    if any(blame.spans(tape, frame.line) for frame in calls for tape in tapes):
        return ()
    return (calls[-1], *stack) if calls else ()


def is_tape(node: ast.AST) -> TypeGuard[ast.With]:
    return isinstance(node, ast.With) and any(
        "GradientTape" in ast.unparse(each) for each in node.items
    )


def line_of_loss(recording: Recording) -> Stack:
    """Returns the line with such an operation in the function that a model has as its loss; none if there is none."""
    losses = [each.location for each in recording.definitions(Use.LOSS)]
    return tuple(
        loss._replace(line=line)
        for loss in losses
        for line in lines_of(blame.calls_in(blame.function_defined(loss)), MAY_END)
    )[:1]
