"""Checks fm37: with the same examples, the first update on n devices is n times that on one."""

import ast
import itertools
from collections.abc import Iterator

from ...examiner import blame
from ...examiner.divergence import optimizer_ratio, straight_update_ratio, update_ratio
from ...examiner.findings import Finding
from ...examiner.recording import Recording, Role
from ...examiner.rule import Runs, compared, rule_of_runs
from ...observer.events import Frame, GradientComputed, GradientsApplied, Stack

NEAR = 0.1  # of a factor, which is 1 in a correct program and at least 2 in a broken one
MEANS = "reduce_mean", "reduce_sum", "mean", "sum", "compute_average_loss"


@rule_of_runs("fm37")
def scaled_gradient(runs: Runs) -> Iterator[Finding]:
    whole = [each for each in runs.recordings if each.role in (Role.WATCHED, Role.COMPARED)]
    for one, other in itertools.permutations(whole, 2):
        few, many = one.replicas, other.replicas
        what = grown(one, other, many / few) if many > few and is_same_training(one, other) else ""
        located = [each.location for each in other.of(GradientComputed) if each.location]
        if what and located:
            loss = blame.from_argument(into_step(located[0], "gradient"), ("gradient",))
            message = (
                f"{what} on {many} devices, with the same examples: each divides by its own part"
            )
            seen = [each for each in runs.divergences if (each.one, each.other) == (one, other)]
            proof = (
                str(seen[0]) if seen else f"compared {few} and {many} devices, in the first step"
            )
            yield compared("fm37", (few, many), from_mean(loss), message, proof)
            return


def is_same_training(one: Recording, other: Recording) -> bool:
    """Tells whether both were seen to take in as many examples in a step, with optimizers of the same rate that clip nothing.

    Keras 3 clips the gradients of each replica before it adds them up: then a correct program's updates grow with the replicas.
    """
    updates = [
        update.optimizer for recording in (one, other) for update in recording.of(GradientsApplied)
    ]
    if any(each.clipnorm or each.global_clipnorm or each.clipvalue for each in updates):
        return False
    rates = [
        {update.optimizer.learning_rate for update in each.of(GradientsApplied)}
        for each in (one, other)
    ]
    return rates[0] == rates[1] and one.examples == other.examples > 0


def grown(one: Recording, other: Recording, factor: float) -> str:
    """Returns what has become this many times as much, in words; nothing if nothing has."""
    ratios = {
        "the first update is {:.2f} times as much": update_ratio,
        "the first update of what keeps its direction is {:.2f} times as much": straight_update_ratio,
        "the gradients that the optimizer keeps are {:.2f} times as much": optimizer_ratio,
    }
    for words, ratio_between in ratios.items():
        ratio = ratio_between(one, other)
        if ratio and abs(ratio - factor) < NEAR * factor:
            return words.format(ratio)
    return ""


# The line to blame


def into_step(stack: Stack, method: str) -> Stack:
    """Returns the line that calls a method in the step that is given to `run` here: a traced step has left no frame."""
    if not stack or method in blame.called_at(stack[0]):
        return stack
    name = blame.step_given_at(stack[0])
    calls = [each for each in blame.nodes_of_function(stack[0], name) if isinstance(each, ast.Call)]
    lines = [call.lineno for call in calls if blame.called_name(call) == method]
    return (Frame(stack[0].path, lines[0], name), *stack) if lines else stack


def from_mean(stack: Stack) -> Stack:
    """Returns the line that chose or wrote the mean from which a value comes, maybe in functions that are called on the way."""
    chosen = blame.from_choice(stack)
    if not stack or chosen[0] != stack[0]:
        return chosen
    frames, seen = [stack[0]], []
    while frames:
        frame = frames.pop(0)
        if any(name in MEANS and not returns_of(frame, name) for name in blame.called_at(frame)):
            return stack if frame == stack[0] else (frame, *stack)
        seen.append(frame)
        frames += [each for each in sources_of(frame) if each not in seen]
    return stack


def sources_of(frame: Frame) -> list[Frame]:
    """Returns where the names of a line get their values, the last first, and where the functions that it calls return."""
    names = set(blame.names_in(blame.statement_at(frame)))
    assignments = blame.assignments_before(frame) if blame.function_at(frame) else []
    lines = [each.lineno for each in assignments if names & blame.targets_of(each)]
    returned = [end for name in blame.called_at(frame) for end in returns_of(frame, name)]
    return [*(frame._replace(line=line) for line in lines), *returned]


def returns_of(frame: Frame, name: str) -> list[Frame]:
    """Returns the `return` lines of functions of this name in the same file."""
    functions = [
        node
        for node in blame.nodes_of_file(frame.path)
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    returns = [
        node for each in functions for node in ast.walk(each) if isinstance(node, ast.Return)
    ]
    return [Frame(frame.path, node.lineno, name) for node in returns]
