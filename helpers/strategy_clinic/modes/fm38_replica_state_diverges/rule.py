"""Checks fm38: a variable that is one for whoever reads it has another value on each replica, or in each process."""

import ast
import itertools
import re
from collections.abc import Iterator, Sequence

from ...examiner.blame import (
    called_at,
    calls_at,
    from_choice,
    from_only,
    from_partial,
    from_parting,
    nodes_of_file,
)
from ...examiner.copies import fitted_only, last_difference, state_of_schedule
from ...examiner.divergence import (
    EXACT,
    SAME,
    SAME_UPDATE,
    Divergence,
    by_key,
    distance,
    update_ratio,
)
from ...examiner.findings import Evidence, Finding, Location, Note, Text, counted, once_more
from ...examiner.history import updates_of, values_at_end
from ...examiner.recording import Recording, Role
from ...examiner.rule import (
    Runs,
    Steps,
    compared,
    observed,
    reclassify,
    rule,
    rule_of_runs,
    same_batches,
)
from ...examiner.suspects import Side, Suspect, gradient_line
from ...observer.events import (
    DataRanOut,
    DivergedCopies,
    ExceptionRaised,
    ModelCalled,
    Owner,
    Stack,
    VariableMade,
    VariableWritten,
)
from ...observer.replacements import Replacement

COUNTED_APART = (
    "at the end of data of unknown length Keras 3 counts a step that it does not make, on one replica sooner than on "
    "another, and the optimizer's updates depend on that count; your program is right"
)
KNOWN_LENGTH = (
    "declare the length of the dataset, `dataset.apply(tf.data.experimental.assert_cardinality(batches))`, or "
    "repeat it and give `steps_per_epoch`"
)
ASSIGNED = (
    'assign the same value in all replicas: its mean, `tf.distribute.get_replica_context().all_reduce("MEAN", value)`, '
    "outside of `tf.cond`; or assign it before the training, within `strategy.scope()`"
)
FITTED = (
    "give the optimizer the same gradients, rate and first values in all replicas: what a step computes in Python, "
    "such as a rate, is another number in each replica"
)
# Functions by which a program makes a variable; layers of Keras make theirs where they are called first.
MAKES = "add_weight", "Variable"
STEPS = {"run", "fit"}
VARIANCE = re.compile(r"/moving_variance(:0)?$")
RAISED_IN = re.compile(r'File "([^"]+)", line \d+')


@rule("fm38")
def replicas_differ(recording: Recording) -> Steps:
    when, diverged = last_difference(recording)
    # Weights that an optimizer outside the scope trains differ, too, or a program by what all replicas write: that is fm23.
    explained = {n for update in recording.shared_slots.values() for n in update.optimizer.trains}
    if recording.written_outside:
        explained |= recording.trained
    fitted = fitted_only(recording)
    if state_of_schedule(recording):  # that is fm07
        explained |= fitted
    diverged = [each for each in diverged if each.number not in explained]
    if any(not each.steps for each in recording.of(DataRanOut)):
        for first in [each for each in diverged if each.number in fitted][:1]:
            name = recording.name_of(first.number)
            proof = f"the copies of {name} are {first.distance:.2g} of their size apart {when}"
            words = COUNTED_APART, proof
            yield observed("fm38", recording, (), *words, fix=KNOWN_LENGTH, by_framework=True)
        diverged = [each for each in diverged if each.number not in fitted]
    for first in diverged[:1]:
        made = recording.variables[first.number]
        more = counted(len(diverged) - 1, "other variable")
        others = f", like {more}" if len(diverged) > 1 else ""
        if made.location:
            message = f"{made.name} has another value on each of {made.copies} replicas{others}"
            proof = f"the copies are {first.distance:.2g} of their size apart {when}"
            assigned = assigned_at(recording, made)
            location = from_parting(located(made, first), agreeing(recording, made, diverged))
            location = assigned or from_partial(from_choice(location))
            fix = ASSIGNED if assigned else FITTED if first.number in fitted else ""
            yield observed("fm38", recording, location, message, proof, fix=fix)


@rule("fm38")
def statistics_stay(recording: Recording) -> Steps:
    """Notes a normalization that is trained, and whose moving variance is 1 at the end: it is called for inference."""
    if recording.role is not Role.WATCHED or not recording.finished:
        return
    trained = {layer_of(recording.name_of(number)) for number in recording.trained}
    values = recording.ended.values
    for number in sorted(each.number for each in values if {*each.sample.entries} == {1.0}):
        made = recording.variable(number)
        if made and made.location and VARIANCE.search(made.name) and layer_of(made.name) in trained:
            words = "is trained, and its moving variance is 1 still: without `training=True` in the call of the model, it "
            words += "normalizes nothing"
            yield Note(Text(f"{layer_of(made.name)} of ", Location(made.location), f" {words}"))
            return


def layer_of(name: str) -> str:
    return name.rpartition("/")[0]


def assigned_at(recording: Recording, made: VariableMade) -> Stack:
    """Returns where replicas assign a variable that an optimizer trains or Keras has made: no aggregation helps there."""
    is_own = calls_at(made.location, *MAKES)
    if is_own and not updates_of(recording, [made.number]):
        return ()
    writes = [each for each in recording.of(VariableWritten) if each.number == made.number]
    own = [each for each in writes if each.writer is Owner.USER and each.replicas > 1]
    return own[0].location if own else ()


def written_in_step(divergence: Divergence) -> list[Stack]:
    """Returns where a step writes variables of a model that no optimizer trains, if the first updates agree.

    A loss that combines examples changes the first update; what such a variable gets shows one step later.
    """
    one, other = divergence.one, divergence.other
    ratio = update_ratio(one, other, divergence.training, EXACT)
    if ratio is None or abs(ratio - 1) > SAME_UPDATE:
        return []
    steps = {frame for frame in gradient_line(divergence) if STEPS & {*called_at(frame)}}
    of_models = {number for call in other.of(ModelCalled) for number in call.variables}
    return [
        write.location
        for write in other.of(VariableWritten)
        if write.writer in (Owner.USER, Owner.LAYER) and steps & {*write.location}
        if write.number in of_models - other.trained
    ]


follows_from_part = Suspect(
    Replacement.SAME_PARTS,
    "with the same examples in all replicas",
    Side.PROGRAM,
    lambda divergence: bool(written_in_step(divergence)),
    "a variable of the model that the step writes follows from the part of the batch that each replica has",
    "compute what it gets from the whole batch, with `all_reduce`",
    lambda divergence: written_in_step(divergence)[0],
    mode="fm38",
    last=True,
)


def located(made: VariableMade, copies: DivergedCopies) -> Stack:
    """Returns where the program makes a variable, or else the layer that has it."""
    is_own = calls_at(made.location, *MAKES)
    return made.location if is_own else copies.layer_location or made.location


def agreeing(
    recording: Recording, made: VariableMade, diverged: Sequence[DivergedCopies]
) -> list[Stack]:
    """Returns where the variables of the same kind are made whose copies agree, as those of another layer."""
    apart, kind = {each.number for each in diverged}, made.name.rpartition("/")[2]
    alike = [each for each in recording.variables.values() if each.name.endswith(f"/{kind}")]
    return [each.location for each in alike if each.copies > 1 and each.number not in apart]


@rule_of_runs("fm38")
def processes_differ(runs: Runs) -> Steps:
    workers = [
        each for each in runs.recordings if each.task.startswith("worker ") and each.finished
    ]
    for one, other in itertools.pairwise(workers):
        for made, apart in differences(one, other):
            if is_one_for_all(made) and apart > SAME:
                yield Finding(
                    "fm38",
                    Location(from_choice(made.location)),
                    Evidence.COMPARED,
                    Text(f"{made.name} has another value in each of {len(workers)} processes"),
                    Text(
                        f"compared {one.task} and {other.task}: {apart:.2g} of its size apart at the end"
                    ),
                    (one.devices,),
                )
                return


@rule_of_runs("fm38")
def first_replica_alone(runs: Runs) -> Steps:
    """Checks what each replica computes of its part of the batch while only the value of the first one is stored.

    Where weights differ, too, it may follow from them.
    """
    finished = [] if runs.divergences else [each for each in runs.whole if each.finished]
    for one, other in (yield from same_batches(finished)):
        apart = {
            made.number: distance
            for made, distance in differences(other, one)
            if is_of_first_replica(other, made) and distance > SAME
        }
        again = (yield once_more(other)) if apart else None
        changes = {made.number: each for made, each in differences(other, again)} if again else {}
        for number in [each for each in apart if changes.get(each, SAME) < SAME][:1]:
            made = other.variables[number]
            message = f"each replica computes {made.name} of its part of the batch, and that of the first is stored"
            counts = one.devices, other.devices
            proof = "compared {} and {} devices: ".format(*counts)
            proof += f"{apart[number]:.2g} of its size apart at the end"
            yield compared("fm38", counts, from_aggregation(made.location), message, proof)
            return


def from_aggregation(stack: Stack) -> Stack:
    """Returns the only line of a file that chooses the first replica, or else the line that made a variable."""
    given: list[ast.expr] = [each.value for each in nodes_of_file(stack[0].path, ast.keyword)]
    chosen = [each for each in given if "only_first_replica" in ast.unparse(each).lower()]
    return from_only(stack, (each.lineno for each in chosen))


def is_of_first_replica(recording: Recording, made: VariableMade) -> bool:
    """Tells whether the program writes a number that is not trained, and of those of all replicas the first is stored."""
    is_own = made.maker in (Owner.USER, Owner.LAYER) and bool(made.location)
    is_first = made.aggregation == "ONLY_FIRST_REPLICA" and "float" in made.dtype
    is_state = made.number in recording.written - recording.trained
    return is_first and is_own and is_state and recording.is_distributed(made.number)


def differences(one: Recording, other: Recording) -> Iterator[tuple[VariableMade, float]]:
    """Yields how far the variables of two runs or processes are apart at the end."""
    values, other_values = (by_key(each, values_at_end(each)) for each in (one, other))
    for key, (number, sample) in values.items():
        if key in other_values:
            yield one.variables[number], distance(sample, other_values[key][1])


def is_one_for_all(made: VariableMade) -> bool:
    kept = made.copies and made.synchronization != "ON_READ"
    return bool(kept and made.location and "float" in made.dtype)


@reclassify("fm38")
def unless_by_optimizer(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str | None:
    """An optimizer of Keras writes there to what it keeps for itself: the program has not chosen that."""
    files = [path for path in RAISED_IN.findall(raised.traceback) if "/tensorflow/" not in path]
    by_optimizer = ["keras" in path and "/optimizers/" in path for path in files[-1:]]
    return None if any(by_optimizer) else mode
