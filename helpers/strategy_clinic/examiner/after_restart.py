"""What a program that was started again has lost: the place in its examples, and what it remembered in Python.

It compares the restarted program with the whole run after as many updates: the checksums of the batches that steps were given,
and the values of the program's names and objects before its first step and at its saves. How the program spells it makes no
difference.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass

from ..observer.events import (
    Event,
    ExamplesTaken,
    Frame,
    GradientsApplied,
    Held,
    Owner,
    Part,
    ProgramState,
    Stack,
    StepEnded,
    VariableMade,
)
from .blame import (
    Assignment,
    called_name,
    function_at,
    height,
    loops_around,
    name_of,
    nodes_of_file,
    nodes_under,
    parts_of_targets,
    spans,
)
from .history import steps_at_end
from .printed import is_comparable
from .recording import Recording

ENOUGH = 4  # batches that are compared
LAST_LINES = 4  # of the output
SIZES = ast.Lt | ast.Gt | ast.LtE | ast.GtE
NEAR = 2e-3  # the largest relative difference of two numbers that are taken for equal
SMALL = 2e-6  # the same of two numbers near 0
GENERATORS = {"default_rng", "Generator", "RandomState", "Random"}
FLAGS = {"True", "False", "None"}
LIST = re.compile(r"\d+: ")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")
Key = tuple[str, str, str]  # of a value: the file, the class or function, and the name
State = dict[Key, str]
States = list[tuple[int, State]]  # by the updates that optimizers had made
OF_MODEL = ";"  # between the variables of a layer
SUMS = "ON_READ", "SUM"  # how a metric has its variables synchronized and aggregated
# Before what is not the name itself: an item, or the number of an equal object.
PART = re.compile(r"[.\[]| of number ")


# The examples


@dataclass(frozen=True)
class OtherExamples:
    """A restarted program goes on with other examples than the whole run takes then."""

    location: Stack
    updates: int  # after which it goes on
    taken: int | None  # after which the whole run took these examples; None: they are others


def other_examples(
    run: Recording, whole: Recording, others: Sequence[Recording]
) -> OtherExamples | None:
    """Returns what a restart takes a second time; or that it takes others, where all whole runs take the same.

    Updates are counted from the beginning of one training: a restart may begin with the next one, such as that of a fold.
    """
    if updates_at_start(run) == 0 or trains_in_turn(whole):
        return None
    for taken in trained_on(run):
        theirs = sequences_like(taken, whole)
        first = taken.checksums[:ENOUGH]
        if len({*first}) < 2 or goes_on(taken, theirs, run.devices):
            continue
        if taken.in_fit and is_unknown_after(taken.begins, theirs, whole):
            continue
        if 0 < max(steps_at_end(whole), default=0) <= taken.begins:
            continue  # the whole run has ended by then, such as by a callback
        if have_one_order(theirs):
            continue  # it may be in the middle of an epoch
        same = [each.begins for each in theirs if each.checksums[: len(first)] == first]
        if same and same[0] < taken.begins:
            return OtherExamples(taken.location, taken.begins, same[0])
        # The batches of `fit` are parts for the replicas: on another number of devices they are others.
        if taken.in_fit or any(is_repeated(each, others) for each in theirs):
            return OtherExamples(taken.location, taken.begins, None)
    return None


def trains_alike_models(run: Recording) -> bool:
    """Tells whether one line trains several models of the same shapes."""
    trained = {(each.location, each.optimizer.trains) for each in run.of(GradientsApplied)}
    shapes = [(line, tuple(run.shapes_of(numbers))) for line, numbers in trained]
    return len(shapes) > len({*shapes})


def trains_in_turn(run: Recording) -> bool:
    """Tells whether a line trains by an optimizer, and after its first steps by another one."""
    steps = run.of(StepEnded)
    begun = optimizers_by_line(run, until=steps[0]) if steps else set()
    later = optimizers_by_line(run, after=steps[0]) - begun if steps else set()
    return bool({line for line, _ in begun} & {line for line, _ in later}) or trains_alike_models(
        run
    )


def optimizers_by_line(run: Recording, **when: Event) -> set[tuple[Stack, tuple[int, ...]]]:
    """Returns the lines of updates, each with the first variable of the optimizer that makes it."""
    updates = run.of(GradientsApplied, **when)
    return {(each.location[:1], each.optimizer.variables[:1]) for each in updates}


def repeats_after(run: Recording) -> int:
    """Returns the number of updates whose batches are those of all later ones, in the same order; 0 if others follow."""
    by_line: dict[Stack, list[object]] = {}
    epochs: dict[int, object] = {}
    for each in trained_on(run):
        if each.in_fit:
            epochs[each.begins] = each.checksums[:ENOUGH]
        else:
            by_line.setdefault(each.location, []).extend(each.checksums)
    begins = sorted(epochs)
    period = period_of([epochs[each] for each in begins], 1)
    if len(begins) > period > 0:
        return begins[period]
    batches = max(by_line.values(), key=len, default=[])
    period = period_of(batches, ENOUGH)
    return period if len({*batches}) > 1 else 0


def period_of(items: Sequence[object], least: int) -> int:
    """Returns after how many items they begin again, and go on so to their end; 0 if they do not, or if fewer items follow."""
    periods = range(1, len(items) - least + 1)
    return next((each for each in periods if items[each:] == items[:-each]), 0)


def trained_on(run: Recording) -> list[ExamplesTaken]:
    """Returns the batches that were trained on: iterators of `evaluate` yield some, too, and no update follows from these.

    Of the iterators of `fit` that begin after as many updates the last one is trained on: others are read for the shapes alone,
    or by the evaluation before.
    """
    every, made = run.of(ExamplesTaken), steps_at_end(run)
    last = max([*made, *(each.begins for each in every)], default=0)
    of_fit = {each.begins: each for each in every if each.in_fit}
    return [
        each
        for each in every
        if not each.in_fit or (of_fit[each.begins] is each and not (made and each.begins == last))
    ]


def have_one_order(sequences: Sequence[ExamplesTaken]) -> bool:
    """Tells whether each pass over the data has the same order, so that a restart can lose none.

    `fit` makes an iterator for each epoch, and a line of a loop has all passes one after the other.
    """
    begun = [each.checksums[:ENOUGH] for each in sequences]
    is_one = len(begun) > 1 and len({*begun}) == 1
    return is_one or any(map(repeats_its_begin, sequences))


def repeats_its_begin(taken: ExamplesTaken) -> bool:
    first, every = taken.checksums[:ENOUGH], taken.checksums
    return any(every[i : i + len(first)] == first for i in range(1, len(every) - len(first)))


def sequences_like(taken: ExamplesTaken, recording: Recording) -> list[ExamplesTaken]:
    """Returns the batches of the same line."""
    key = taken.location[:1], taken.in_fit
    every = recording.of(ExamplesTaken)
    return [each for each in every if (each.location[:1], each.in_fit) == key]


def is_repeated(taken: ExamplesTaken, others: Sequence[Recording]) -> bool:
    """Tells whether another whole run gives its steps the same batches."""
    known = [each.checksums for other in others for each in sequences_like(taken, other)]
    return taken.checksums in known


def goes_on(taken: ExamplesTaken, theirs: Sequence[ExamplesTaken], devices: int) -> bool:
    """Tells whether the whole run takes the same examples after as many updates, or as many before its end.

    Of a long run only the first batches are known: what comes later may be the same.
    """
    first = taken.checksums[:ENOUGH]
    return any(
        each.checksums[place : place + len(first)] == first
        or each.batches >= place + len(first) > len(each.checksums)
        for each in theirs
        for place in places_in(each, taken, devices)
    )


def is_unknown_after(updates: int, theirs: Sequence[ExamplesTaken], whole: Recording) -> bool:
    """Tells whether the whole run goes on after as many updates with batches that are not known, of later iterators."""
    return max(steps_at_end(whole), default=0) > updates and all(
        each.begins + each.batches // whole.devices <= updates for each in theirs
    )


def places_in(other: ExamplesTaken, taken: ExamplesTaken, devices: int) -> Iterator[int]:
    """Yields where in the whole run's batches those of a restart should be; in `fit` each replica's part is one.

    The whole run may have begun them after the updates of another optimizer.
    """
    parts = devices if taken.in_fit else 1
    yield (taken.begins - other.begins) * parts
    yield taken.begins * parts
    if not taken.in_fit:
        yield other.batches - taken.batches


# What Python remembers


@dataclass(frozen=True)
class Lost:
    """A value that a restart has lost."""

    held: Key
    updates: int
    value: str
    right: str  # the value in the whole run after as many updates
    is_reset: bool  # it is what the whole run had as many updates after its own start

    @property
    def is_tensor(self) -> bool:
        """Whether it is a variable or an array, or the variables of a layer."""
        return self.value.startswith("(")


def lost_values(run: Recording, whole: Recording, read: Collection[Key] = ()) -> list[Lost]:
    """Returns what a restart has lost, the likeliest first: what the whole run changes, and what differs then from it.

    That is before its first step, and is not set again until the next save, or has been `read` before that. Where weights
    differ, much else may have been computed from them: only what has its first value is sure.
    """
    updates, state, rights = first_common(starts_of(run), starts_of(whole))
    if not rights:
        return []
    _, later, usual = first_common(states_of(run), states_of(whole))
    first, changed = starts_of(whole)[0][1], changed_values(whole)
    known = every_state(whole)
    differ = without_other_names(differing(state, rights), state, known)
    lost = [
        Lost(key, updates, state[key], rights[key], are_alike(state[key], first.get(key, "")))
        for key in differ
        if key in changed
        and (key in read or not (key in later and are_alike(later[key], usual.get(key, ""))))
        and is_own(key, state[key])  # the last two, since they read source code
        and is_carried_on(run, key, state[key], known)
        and stays(key, state[key], later.get(key, ""))
        and not is_of_pass(run, whole, key)
    ]
    models = [key for key in changed & rights.keys() & state.keys() if OF_MODEL in state[key]]
    apart = {*differ}.intersection(models)
    # Of several models, such as an average of weights and what it follows, one alone may be lost.
    is_sure = len(apart) < len(models) or not apart
    lost = lost if is_sure else [each for each in lost if each.is_reset]
    return sorted(lost, key=lambda each: (not each.is_reset, each.is_tensor))


def differing(state: State, rights: State) -> list[Key]:
    return [
        key for key, value in state.items() if key in rights and not are_alike(value, rights[key])
    ]


def without_other_names(differ: list[Key], state: State, known: States) -> list[Key]:
    """Leaves out names of a model that the whole run has under another name, too, which a restart has filled.

    A script may make a model, and an object of it load another one where there is a file.
    """

    def history(key: Key) -> list[str]:
        return [each.get(key, "") for _, each in known]

    filled = [history(key) for key in state if OF_MODEL in state[key] and key not in differ]
    return [key for key in differ if OF_MODEL not in state[key] or history(key) not in filled]


def models_agree(run: Recording, whole: Recording) -> bool:
    """Tells whether a restart has the models of the whole run at the first save that both have made."""
    _, state, rights = first_common(states_of(run), states_of(whole))
    differ = without_other_names(differing(state, rights), state, every_state(whole))
    return not any(OF_MODEL in state[key] for key in differ)


def is_steady(run: Recording, whole: Recording) -> bool:
    """Tells whether the steps of a restart have the examples of the whole run, and draw nothing at random."""
    draws = any(each.uses(Part.RANDOM_NUMBERS) for each in (run, whole))
    seeds = [number for number in run.written if run.maker_of(number) is Owner.RANDOM]
    return not (seeds or draws) and all(
        goes_on(taken, sequences_like(taken, whole), run.devices) for taken in run.of(ExamplesTaken)
    )


def is_carried_on(run: Recording, held: Key, value: str, known: States) -> bool:
    """Tells whether a program goes on with a value: not with the arrays of a batch, or the time, which each start gets anew."""
    if OF_MODEL in value or follows_from_itself(held) or is_copy_of_model(value, known):
        return True
    if not value.startswith("("):
        return any(are_alike(value, state.get(held, "")) for _, state in known)
    made = {frame[:2] for frame in made_at(held)}
    return any(made & {frame[:2] for frame in each.location[:1]} for each in run.of(VariableMade))


def is_copy_of_model(value: str, known: States) -> bool:
    """Tells whether a list of arrays is what a model's variables were once."""
    copied = value.replace(" and ", OF_MODEL + " ")
    return OF_MODEL in copied and any(
        are_alike(copied, other)
        for _, state in known
        for other in state.values()
        if OF_MODEL in other
    )


def stays(held: Key, value: str, later: str) -> bool:
    """Tells whether a restart uses a value that it begins with: a mean that is shown, say, may be set before it is read."""
    is_number = not value.startswith("(")
    return (
        not is_number or follows_from_itself(held) or is_compared(held) or are_alike(value, later)
    )


def is_of_pass(run: Recording, whole: Recording, held: Key) -> bool:
    """Tells whether each pass of a loop around the steps gives a name its first value: a batch, or the sum of an epoch.

    A restart that makes other steps than the whole run begins a pass, and so does a function that is called for each.
    """
    name = plain(held)[2]
    given = [each for each in assignments_of(held) if not goes_on_with(name, each)]
    begins_pass = steps_at_end(run) != steps_at_end(whole)
    stacks = [each.location for each in run.of(GradientsApplied)]
    places = [(frame, stack[i:]) for stack in stacks for i, frame in enumerate(stack, 1)]
    return not is_compared(held) and any(
        is_first_in_loop(name, each, frame)
        or begins_pass
        and is_called_for_pass(each, frame, callers)
        for each in given
        for frame, callers in places
        if frame.path == held[0]
    )


def is_first_in_loop(name: str, given: Assignment, step: Frame) -> bool:
    """Tells whether the smallest loop around a step and what gives a name its value reads the name only after that."""
    around = [each for each in loops_around(step) if spans(each, given.lineno)]
    loop = min(around, key=height, default=None)
    reads = [
        node.lineno
        for node in nodes_under(loop)
        if isinstance(node, ast.Name | ast.Attribute) and name_of(node) == name
        if isinstance(node.ctx, ast.Load)
    ]
    return loop is not None and min(reads, default=given.lineno) >= given.lineno


def is_called_for_pass(given: Assignment, step: Frame, callers: Stack) -> bool:
    """Tells whether a loop calls the function in which a name gets its value before the steps."""
    function = function_at(step)
    is_local = function is not None and spans(function, given.lineno) and given.lineno < step.line
    return is_local and any(map(loops_around, callers))


def follows_from_itself(held: Key) -> bool:
    """Tells whether an assignment computes the next value of a name from the one that it has, or writes into it.

    What is written into an array is of one step if another assignment fills all of it, as with the examples of a batch.
    """
    name, given = plain(held)[2], assignments_of(held)
    parts = [
        part for each in given for part in parts_of_targets(each) if isinstance(part, ast.Subscript)
    ]
    is_kept = bool(parts) and not any(map(is_whole, parts))
    return is_kept or any(goes_on_with(name, each) for each in given)


def goes_on_with(name: str, given: Assignment) -> bool:
    """Tells whether an assignment computes a value from the one that the name has."""
    return isinstance(given, ast.AugAssign) or name in map(name_of, nodes_under(given.value))


def is_whole(part: ast.Subscript) -> bool:
    """Tells whether a subscript means all of an array, such as `a[:]`, `a[:, :]` or `a[...]`."""
    indices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    return all(ast.unparse(each) in (":", "...") for each in indices)


def kept_values(runs: Sequence[Recording]) -> set[Key]:
    """Returns what restarts begin with as the whole run has it then, whatever file it is in."""
    return {
        key
        for run in runs
        if run.whole and updates_at_start(run)
        for key in alike_at_first_save(run, run.whole)
    }


def alike_at_first_save(run: Recording, whole: Recording) -> set[Key]:
    _, state, rights = first_common(starts_of(run), starts_of(whole))
    if not state:
        _, state, rights = first_common(states_of(run), states_of(whole))
    common = changed_values(whole) & state.keys()
    return {key for key in common if are_alike(state[key], rights.get(key, ""))}


def first_common(mine: States, theirs: States) -> tuple[int, State, State]:
    """Returns after how many updates both are known first, and what is known then of the restart and of the whole run."""
    usual = dict(theirs)
    common = ((updates, state) for updates, state in mine if updates in usual)
    updates, state = next(common, (0, {}))
    return updates, state, usual.get(updates, {})


def has_consequence(
    run: Recording, whole: Recording, lost: Sequence[Lost], others: Sequence[Recording] = ()
) -> bool:
    """Tells whether more follows from what is lost than the value itself: other values, or what the program prints."""
    keys = [each.held for each in lost if each.is_reset]
    if len(keys) < len(lost):
        return True
    if is_steady(run, whole) and not models_agree(run, whole):
        return True
    return prints_otherwise(run, whole, keys, others)


def prints_otherwise(
    run: Recording, whole: Recording, keys: Sequence[Key], others: Sequence[Recording]
) -> bool:
    """Tells whether a restart ends with other lines than the whole run, besides those that show what is lost.

    A program may count what it does since its start, and print that. If it does, and draws its examples at random, nobody knows
    what the other numbers follow from. A number that another whole run does not repeat, such as a time, says nothing.
    """
    least = min(len(lines_of(each)) for each in (run, whole))
    mine, theirs, *repeated = (last_lines(each, least) for each in (run, whole, *others))
    if NUMBER.sub("#", mine) != NUMBER.sub("#", theirs):
        return True
    usual = [NUMBER.findall(each) for each in repeated]
    numbers = [*zip(NUMBER.findall(mine), NUMBER.findall(theirs))]
    apart = [
        (place, one, other)
        for place, (one, other) in enumerate(numbers)
        if not are_alike(one, other)
        and all(len(each) != len(numbers) or are_alike(each[place], other) for each in usual)
    ]
    shown = [
        place
        for place, one, other in apart
        if any(is_value_of(key, run, one) and is_value_of(key, whole, other) for key in keys)
    ]
    is_known = not shown or is_steady(run, whole)
    return any(
        place not in shown and (is_known or is_count(one) and is_count(other))
        for place, one, other in apart
    )


def is_value_of(key: Key, run: Recording, number: str) -> bool:
    """Tells whether a number is one that a value has had in a run, or one beside these: it may be printed between saves.

    A count is a whole number, and the first of other values may stand for none, such as -1e9.
    """
    known = [state[key] for _, state in every_state(run) if key in state]
    counts = bool(known) and all(map(is_count, known))
    first = [state.get(key) for _, state in starts_of(run)[:1]]
    later = known if counts else [each for each in known if each not in first] or known
    values = sorted(filter(math.isfinite, (float(e) for e in later if NUMBER.fullmatch(e))))
    steps = [after - before for before, after in itertools.pairwise(values)]
    step = max([float(counts), *steps])
    is_near = bool(values) and values[0] - step <= float(number) <= values[-1] + step
    return is_near and (is_count(number) or not counts)


def lines_of(run: Recording) -> list[str]:
    return [*filter(is_comparable, run.output.strip().splitlines())]


def last_lines(run: Recording, least: int) -> str:
    """Returns what a program prints last: a restart may print fewer lines."""
    return "\n".join(lines_of(run)[-min(LAST_LINES, least) :]) if least else ""


def without_unstable(lost: Sequence[Lost], others: Sequence[Recording]) -> list[Lost]:
    """Leaves out what another whole run does not repeat, such as times; a value that begins again does so by no chance."""
    known = [each for other in others for each in every_state(other)]
    return [
        each
        for each in lost
        if each.is_reset
        or any(
            updates == each.updates and are_alike(each.right, state.get(each.held, ""))
            for updates, state in known
        )
    ]


# What metrics have counted


def is_metric(run: Recording, lost: Lost) -> bool:
    """Tells whether a restart begins a metric again."""
    return lost.is_reset and lost.is_tensor and bool(metric_variables(run, lost))


def metric_variables(run: Recording, lost: Lost) -> list[VariableMade]:
    """Returns the variables of a metric that has this name; none if it is none.

    Each replica has sums of its own in them, which are added up when they are read.
    """
    made = variables_made_at(run, lost.held)
    is_one = all((each.synchronization, each.aggregation) == SUMS for each in made)
    return made if is_one and not any(each.maker is Owner.USER for each in made) else []


def variables_made_at(run: Recording, held: Key) -> list[VariableMade]:
    """Returns the variables that are made where a name gets its value, in their order."""
    lines = {frame[:2] for frame in made_at(held)}
    made = [run.variables[each] for each in sorted(run.variables.keys() - run.copies)]
    return [each for each in made if any(frame[:2] in lines for frame in each.location)]


def first_number(value: str) -> float:
    """Returns the mean of the first array of a value."""
    shape, _, numbers = value.partition(") ")
    size = math.prod(map(int, re.findall(r"\d+", shape)))
    return float(numbers.split(OF_MODEL)[0].split()[-1]) / size


def keeps_otherwise(run: Recording, other: Recording, lost: Collection[Key]) -> bool:
    """Tells whether two restarts come to other values in names from which the program goes on, or by which it decides.

    A number that is set again each time, such as a mean that is printed, follows from what is `lost` and decides nothing.
    """
    mine, theirs = states_of(run), states_of(other)
    if [updates for updates, _ in mine] != [updates for updates, _ in theirs]:
        return True
    known = every_state(run)
    return any(
        is_carried_on(run, key, state[key], known) and stays(key, state[key], "")
        for (_, state), (_, usual) in zip(mine, theirs)
        for key in differing(state, usual)
        if key not in lost and is_own(key, state[key])
    )


# Where a value of Python is made, and what it decides


def plain(held: Key) -> Key:
    """Returns the place of a value by the name that the program gives it, or that which it is an item of."""
    path, holder, name = held
    return path, holder, PART.split(name)[0]


def made_at(held: Key) -> Stack:
    """Returns the first line on which an object, a class or a function gives a name its value."""
    path, holder, _ = held
    return tuple(Frame(path, each.lineno, holder) for each in assignments_of(held)[:1])


def is_given_anew(held: Key) -> bool:
    """Tells whether a name gets its value on several lines: at first, and later."""
    return len(assignments_of(held)) > 1


def is_generator(held: Key) -> bool:
    """Tells whether a name has a generator of random numbers."""
    values = [each.value for each in assignments_of(held)[:1]]
    return any(isinstance(each, ast.Call) and called_name(each) in GENERATORS for each in values)


def counts_in_loop(held: Key) -> bool:
    """Tells whether a `for` loop gives a name its values."""
    path, _, name = plain(held)
    loops = [each.target for each in nodes_of_file(path, ast.For)]
    return any(name_of(part) == name for target in loops for part in ast.walk(target))


def assignments_of(held: Key) -> list[Assignment]:
    """Returns what gives a name of a class, a function or a module its value; an attribute may get it elsewhere, too."""
    own, name = nodes_of_holder(held), plain(held)[2]
    given = [each for each in nodes_of_file(held[0], Assignment) if name in named(each)]
    of_objects = [*filter(is_of_object, given)]
    if own.isdisjoint(of_objects):
        return [each for each in given if each in own]
    return sorted(of_objects, key=lambda each: each not in own)


def nodes_of_holder(held: Key) -> Set[ast.AST]:
    """Returns the nodes of the class or the function that has a name, or of the module."""
    path, holder, _ = held
    return nodes_in(nodes_of_file(path), holder.rpartition(".")[2])


@functools.lru_cache(maxsize=64)
def nodes_in(nodes: tuple[ast.AST, ...], holder: str) -> Set[ast.AST]:
    """Returns those of a file's nodes that are in the classes and functions of a name; all if there is no name."""
    if not holder:
        return {*nodes}
    found = [each for each in nodes if getattr(each, "name", None) == holder]
    return {inner for each in found for inner in nodes_under(each)}


def is_of_object(assignment: Assignment) -> bool:
    return any(isinstance(part, ast.Attribute) for part in parts_of_targets(assignment))


def named(assignment: Assignment) -> list[str]:
    """Returns the names and attributes that get a value."""
    return [name_of(part) for part in parts_of_targets(assignment)]


def is_best_value(lost: Lost) -> bool:
    """Tells whether a program compares a value with another one, as it does with the best one so far.

    A variable that begins again is missing in a checkpoint, whatever the program does with it.
    """
    return not (lost.is_tensor and lost.is_reset) and is_compared(lost.held)


def is_compared(held: Key) -> bool:
    """Tells whether the program compares a value: an attribute anywhere, another name where it is one."""
    path, _, name = plain(held)
    everywhere = any(map(is_of_object, assignments_of(held)))
    own = set[ast.AST]() if everywhere else nodes_of_holder(held)
    return any(
        isinstance(node.ops[0], SIZES)
        and name in map(name_of, ast.walk(node))
        and not any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
        for node in nodes_of_file(path, ast.Compare)
        if everywhere or node in own
    )


def is_own(key: Key, value: str) -> bool:
    """Tells whether the program keeps a value that goes on: no flag, no list of what has happened, and nothing of Keras."""
    is_kept = bool(key[0]) and not LIST.match(value) and value not in FLAGS
    is_given = bool(made_at(key)) or not nodes_of_file(key[0])
    return is_kept and is_given and not counts_in_loop(key)


def is_count(value: str) -> bool:
    return value.removeprefix("-").isdecimal()


def updates_at_start(run: Recording) -> int:
    """Returns how many updates the program had made when it was started again."""
    return min((each.begins for each in run.of(ExamplesTaken)), default=0)


def states_of(run: Recording) -> States:
    """Returns all that is known at each save, the last one after as many updates."""
    return states_when(run, before_step=False)


def starts_of(run: Recording) -> States:
    """Returns all that is known before the first step, and before the first one after each save."""
    return states_when(run, before_step=True)


def every_state(run: Recording) -> States:
    return [*states_of(run), *starts_of(run)]


def states_when(run: Recording, *, before_step: bool) -> States:
    known: State = {}
    found: dict[int, State] = {}
    for event in run.of(ProgramState):
        known = {**known, **{key_of(held): held.value for held in event.values}}
        if event.before_step == before_step:
            found[event.updates] = known
    return [*found.items()]


def key_of(held: Held) -> Key:
    return held.path, held.holder, held.name


def changed_values(run: Recording) -> set[Key]:
    """Returns what changes from one save, or first step, to another."""
    states = [state for _, state in every_state(run)]
    return {
        key
        for one, other in zip(states, states[1:])
        for key, value in other.items()
        if key in one and one[key] != value
    }


def are_alike(one: str, other: str) -> bool:
    """Tells whether two values are the same but for their last digits."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other))
    return all(
        a == b or math.isclose(float(a), float(b), rel_tol=NEAR, abs_tol=SMALL) for a, b in pairs
    )
