"""Checks fm53: each replica takes in the same examples, since nobody has distributed them."""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence, Set

from ...examiner import blame
from ...examiner.findings import Note, counted, with_full_batches
from ...examiner.printed import printed_difference, program_files
from ...examiner.recording import Recording, Role
from ...examiner.rule import (
    Runs,
    Steps,
    blames,
    compared,
    least_and_most,
    names,
    observed,
    rule,
    rule_of_runs,
)
from ...examiner.whole_batches import whole_batch_counted
from ...observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    ExceptionRaised,
    Frame,
    GradientsApplied,
    InputShared,
    ModelCalled,
    ReplicaCountRead,
    Stack,
)
from ...programs.error_text import useful_line

Taking = ast.For | ast.comprehension
# Methods of a Keras model that give one batch to all replicas, and what distributes one.
ON_BATCH = {"train_on_batch": "fit", "test_on_batch": "evaluate", "predict_on_batch": "predict"}

DISTRIBUTED = (
    "take the batches from `strategy.experimental_distribute_dataset(dataset)`, of which `strategy.run` gives each replica its "
    "own part"
)


@rule("fm53")
def same_batch_everywhere(recording: Recording) -> Steps:
    """Checks for tensors that a training step gives to all replicas.

    In a graph their sizes are not known if the last batch may be smaller: then a run is looked at that has none.
    """
    shared = same_for_all(recording)
    is_unseen = recording.examples and not recording.examples_seen
    if not shared and is_unseen and recording.replicas > 1 and recording.role is Role.WATCHED:
        full = yield with_full_batches(recording)
        shared = same_for_all(full) if full else None
    if shared:
        given, examples = shared
        message = (
            f"the input is not distributed: each of {recording.replicas} replicas takes the same "
            f"{examples} examples"
        )
        proof = f"`{given.function}` gave {recording.replicas} replicas the same tensors"
        location = from_data(given.location, program_files(recording))
        fix = fix_for(given.location[0])
        yield observed("fm53", recording, location, message, proof, fix=fix)


def same_for_all(recording: Recording) -> tuple[InputShared, int] | None:
    """Returns the first batch that all replicas were given, and how many examples it has."""
    # What is taken after the first step may be for an evaluation.
    taken = recording.of(BatchTaken, until=recording.first(GradientsApplied))
    for shared in recording.of(InputShared):
        examples = examples_given(recording, shared)
        is_input = shared.function == "run" or not taken
        if examples and is_input and shared.location:
            return shared, examples
    return None


def examples_given(recording: Recording, shared: InputShared) -> int:
    """Returns the examples of shared tensors, which are as many as a trained model is called with; 0 if they are no batch.

    Where no model of Keras is called, or with several rows for each example, they are as many as the batches of a dataset have.
    """
    calls = recording.of(ModelCalled)
    called = [
        each.examples
        for each in calls
        if each.replicas > 1 and recording.trained & {*each.variables}
    ]
    sizes = [each.size for each in recording.of(DatasetBatched)]
    batched = [
        size for size in sizes if not calls or any(rows and rows % size == 0 for rows in called)
    ]
    return next((size for size in (*called, *batched) if size in shared.sizes), 0)


@rule_of_runs("fm53")
def whole_batch_in_keras(runs: Runs) -> Steps:
    """Checks for a method of Keras that gives each replica as many examples as one device gets alone."""
    pair = least_and_most(runs.whole, lambda each: each.finished)
    if pair is None:
        return
    (one, other), (few, many) = pair, (each.replicas for each in pair)
    for call in on_batch(other):
        alone = [
            each
            for each in on_batch(one)
            if (each.location[0], each.examples) == (call.location[0], call.examples)
        ]
        if alone and call.replicas == many:
            message = f"each of {many} replicas takes all {call.examples} examples"
            proof = f"compared {few} and {many} devices: each replica takes {call.examples} examples on both"
            fix = fix_for(call.location[0])
            yield compared("fm53", (few, many), call.location, message, proof, fix=fix)
            return


@rule_of_runs("fm53")
def whole_batch_of_dataset(runs: Runs) -> Steps:
    """Checks for batches of one size of which a step on more devices has more examples: each replica has all of them.

    Where batches were not seen, and the program does not read the number of replicas, this is a note.
    """
    pair = least_and_most(runs.whole, lambda each: each.finished and not each.task)
    if pair is None or given_otherwise(pair[1]):
        return
    (one, other), (few, many) = pair, (each.replicas for each in pair)
    if not other.examples * few == one.examples * many > 0:
        return
    batched = other.of(DatasetBatched)
    sizes = {each.size for each in one.of(DatasetBatched)}
    made = [each.location for each in batched if each.size == one.examples]
    if made and sizes == {each.size for each in batched}:
        message = f"the input is not distributed: each of {many} replicas takes all {one.examples} examples of a batch"
        proof = f"compared {few} and {many} devices: a step has {one.examples} and {other.examples} examples"
        yield compared("fm53", (few, many), made[-1], message, proof, fix=DISTRIBUTED)
    elif not batched and not other.of(ReplicaCountRead):
        yield Note(
            f"a step takes in {one.examples} examples on {counted(few, 'replica')} and {other.examples} on {many}, and the "
            "program does not read their number: either its batch grows with the devices in another way, "
            "or each replica takes the whole batch (fm53)"
        )


@rule_of_runs("fm53", last=True)
def counted_on_each_replica(runs: Runs) -> Steps:
    """Checks for a printed number that is so many times as large, since a step that trains nothing takes whole batches."""
    difference = yield from printed_difference(runs)
    call = (yield from whole_batch_counted(runs, difference)) if difference else None
    if difference and call:
        given = blame.from_first(call.location, lambda frame: "run" in blame.called_at(frame))
        location = from_data(given or call.location, program_files(difference.many))
        message = (
            f"the input is not distributed: each of {call.replicas} replicas takes all {call.examples} examples of a batch, and "
            f"{difference}"
        )
        yield compared("fm53", difference.counts, location, message, fix=DISTRIBUTED)


def given_otherwise(recording: Recording) -> bool:
    """Tells whether it is known already how examples reach the replicas: from functions, as tensors, or by methods of Keras."""
    known = [*recording.of(DatasetFromFunction), *recording.of(InputShared)]
    return bool(known or on_batch(recording))


@names("fm53")
def raised_by_repeated_result(recording: Recording, raised: ExceptionRaised) -> bool:
    return bool(repeated_result(recording, raised))


@blames("fm53")
def method_with_repeated_result(recording: Recording, stack: Stack) -> Stack:
    return repeated_result(recording, recording.last(ExceptionRaised)) or stack


def repeated_result(recording: Recording, raised: ExceptionRaised | None) -> Stack:
    """Returns the last call of such a method if the exception names its examples, and as many for each replica."""
    sizes = {*map(int, re.findall(r"\d+", useful_line(raised.traceback)))} if raised else set()
    for call in reversed(on_batch(recording)):
        if call.replicas > 1 and {call.examples, call.examples * call.replicas} <= sizes:
            return call.location
    return ()


def on_batch(recording: Recording) -> list[ModelCalled]:
    calls = recording.of(ModelCalled)
    return [each for each in calls if each.location and instead_of(each.location[0])]


def fix_for(frame: Frame) -> str:
    instead = instead_of(frame)
    return (
        f"use one `{instead}` for the whole dataset, which distributes it"
        if instead
        else DISTRIBUTED
    )


def instead_of(frame: Frame) -> str:
    """Returns what distributes a batch in place of the method that a line calls; nothing if it calls another one."""
    called = [ON_BATCH[name] for name in blame.called_at(frame) if name in ON_BATCH]
    return next(iter(called), "")


# The line to blame


def from_data(stack: Stack, paths: Sequence[str] = ()) -> Stack:
    """Returns the line that makes what a loop takes which is given to `run` here, maybe in a caller.

    That is the `for` line itself if no function of these files makes it; and the same line if no loop takes it.
    """
    names = given_names(stack[0], "run")
    for i, frame in enumerate(stack):
        names = with_sources(frame, names)
        loops = [loop for loop in iterations_around(frame) if takes(loop, names)]
        if loops:
            start = frame._replace(line=loops[-1].target.lineno)
            return maker_of_data((start, *callers_of(stack[i:])), loops[-1].iter, paths)
        function = blame.function_at(frame)
        if function is None or i + 1 == len(stack):
            break
        # A function that another one has returned is called by another name.
        called = blame.called_at(stack[i + 1])
        name = function.name if function.name in called else next(iter(called), "")
        names = given_names(stack[i + 1], name)
    return stack


def callers_of(stack: Stack) -> Iterator[Frame]:
    """Returns the frames of those that called a function: in a graph, the line of a loop has one of its own."""
    function = blame.function_at(stack[0])
    return itertools.dropwhile(lambda frame: blame.function_at(frame) is function, stack[1:])


def iterations_around(frame: Frame) -> list[Taking]:
    """Returns the loops around a line in its function, and the comprehensions in its statement."""
    loops: list[Taking] = [
        node
        for node in blame.nodes_in_scope(frame)
        if isinstance(node, ast.For) and blame.spans(node, frame.line)
    ]
    inside = blame.nodes_under(blame.statement_at(frame))
    return loops + [node for node in inside if isinstance(node, ast.comprehension)]


def maker_of_data(stack: Stack, taken: ast.expr, paths: Sequence[str]) -> Stack:
    """Returns the line that calls a function of the program for what is taken, or what this returns if it knows a strategy.

    Without a strategy it cannot distribute. What is a parameter comes from the caller.
    """
    frame, names = stack[0], blame.names_in(taken)
    assigned = list(filter(None, (blame.last_assignment(frame, name) for name in names)))
    for line in (frame, *assigned):
        value = taken if line is frame else blame.assigned_value(line)
        for function in functions_called(value, [frame.path, *paths]):
            return (returned_by(*function, paths) or line, *stack)
    around = blame.function_at(frame)
    for name in {*names} & {*blame.given_to(around)} if not assigned else ():
        if passed := blame.argument_passed(stack, name):
            return maker_of_data(stack[1:], passed, paths)
    return stack


def functions_called(
    value: ast.expr | None, paths: Sequence[str]
) -> Iterator[tuple[str, blame.Function]]:
    """Yields the functions of these files that an expression calls."""
    names = map(blame.called_name, blame.calls_in(value))
    for path, name in itertools.product(dict.fromkeys(paths), names):
        yield from blame.functions_in([path], name)


def returned_by(
    path: str,
    function: blame.Function,
    paths: Sequence[str],
    known: Set[blame.Function] = frozenset(),
) -> Frame | None:
    """Returns the line on which a function that knows a strategy returns, or one that it calls for this and is not known."""
    known |= {function}
    ends = blame.returns_in(function)[-1:] if knows_strategy(path, function) else []
    for end in ends:
        called = functions_called(end.value, [path, *paths])
        inner = (returned_by(*each, paths, known) for each in called if each[1] not in known)
        return next(filter(None, inner), Frame(path, end.lineno, function.name))
    return None


def knows_strategy(path: str, function: blame.Function) -> bool:
    """Tells whether a function names a strategy, or its class does."""
    classes = blame.nodes_of_file(path, ast.ClassDef)
    is_known = any(blame.knows_strategy(each) for each in classes if function in each.body)
    return is_known or blame.knows_strategy(function)


def with_sources(frame: Frame, names: set[str]) -> set[str]:
    """Returns these names and those from which they get their values, in the function of a line."""
    leading = blame.leading_assignments(frame, names)
    return names | {name for each in leading for name in blame.names_in(each.value)}


def given_names(frame: Frame, function: str) -> set[str]:
    """Returns the names of what a line gives to a function."""
    calls = blame.calls_in(blame.statement_at(frame))
    named = [call for call in calls if blame.called_name(call) == function]
    given = [each for call in named for each in blame.arguments_of(call)]
    return {name for each in given for name in blame.names_in(each)}


def takes(loop: Taking, names: set[str]) -> bool:
    """Tells whether a loop takes one of these from a dataset; a loop that counts takes none."""
    counts = isinstance(loop.iter, ast.Call) and blame.called_name(loop.iter) == "range"
    return bool(names & {*blame.names_in(loop.target)}) and not counts
