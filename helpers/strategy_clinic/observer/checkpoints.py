"""Observes what is saved, restored and loaded."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from .context import Context
from .events import (
    CheckpointRestored,
    CheckpointSought,
    Loaded,
    OldValueSaved,
    OmittedVariable,
    Owner,
    RestoredBeforeBuild,
    Sample,
    Saved,
    SavedAgain,
    SaveKind,
    Stack,
    VariablesKept,
    VariableValue,
)
from .identity_map import IdentityMap
from .kills import SAVES, Kills
from .optimizers import Optimizers, variables_of
from .patching import Call, is_of_keras
from .program_state import ProgramStates
from .stored_values import (
    Stored,
    attributes_of,
    files_near,
    last_shape,
    own_variables,
    stored_in,
    stored_in_keras,
    stored_values,
    weights_to_fill,
)
from .variables import (
    Record,
    Variables,
    arrays_of,
    assign,
    is_on_read,
    outside_graphs,
    sample,
    sample_of,
)

MOST_SAVES = 60  # of each kind that are reported
MOST_MESSAGE = 300
LARGEST_ARRAY, LARGEST_ARCHIVE = 20_000_000, 64_000_000  # entries, and bytes
MOST_CONTENTS = 20  # of files that are read and compared with what they were restored into


@dataclass(frozen=True)
class Restore:
    """A restore of an object, which is looked at once more at the end."""

    root: Any
    status: Any
    stored: list[Stored]  # what is in the file, if it was read
    variables: tuple[int, ...]  # that the object had
    path: str
    location: Stack


@dataclass(frozen=True)
class SetAttribute:
    """An attribute of a tf.train.Checkpoint that was a variable, and that the program has set to a number or tensor."""

    record: Record  # of the variable, which the checkpoint still holds
    sample: Sample  # its value then
    location: Stack


class Checkpoints:
    def __init__(
        self,
        context: Context,
        variables: Variables,
        optimizers: Optimizers,
        kills: Kills,
        program_states: ProgramStates,
        most_replicas: Callable[[], int],
    ) -> None:
        self.context, self.variables, self.optimizers = context, variables, optimizers
        self.kills, self.program_states, self.most_replicas = kills, program_states, most_replicas
        self.made_at: IdentityMap[Stack] = IdentityMap()
        self.attributes: IdentityMap[dict[str, SetAttribute]] = IdentityMap()  # by checkpoint
        self.restores: list[Restore] = []  # the last one of each object
        self.model_files: dict[
            str, list[Stored]
        ] = {}  # by path, what `save` and `save_weights` wrote
        self.checked: set[int] = set()  # serial numbers of objects whose first checkpoint was read
        self.unsaved: dict[int, set[int]] = {}  # by serial number, variables that it did not have
        self.array_files: dict[tuple[Sample, ...], str] = {}  # by the arrays that are in a file
        self.archives: list[str] = []  # of NumPy, which the program has opened
        self.files_of_values: dict[Sample, str] = {}  # by an array, the file in which it is
        # By file, the variables that got arrays of it, with these.
        self.assigned: dict[str, dict[int, Sample]] = {}
        variables.set_by_program = self.value_set
        self.reset = context.settings.reset

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        wrap(tf.train.Checkpoint, "__init__", after=self.checkpoint_made)
        wrap(tf.train.Checkpoint, "__setattr__", before=self.attribute_set, here=True)
        for name in ("save", "write"):
            self.watch_saving(tf.train.Checkpoint, name, self.checkpoint_saved)
        for name in ("restore", "read"):
            wrap(
                tf.train.Checkpoint,
                name,
                before=self.restore_begins,
                after=self.checkpoint_restored,
                group="restore",
            )
        self.watch_saving(tf.train.CheckpointManager, "save", self.manager_saved)
        everywhere = self.context.patches.wrap_everywhere
        everywhere(
            "tensorflow", tf.saved_model.save, self.object_saved, self.kills.save_begins, SAVES
        )
        everywhere("tensorflow", tf.saved_model.load, self.saved_model_loaded)
        everywhere("tensorflow", tf.train.latest_checkpoint, self.latest_sought)
        self.context.patches.wrap_property(
            tf.train.CheckpointManager, "latest_checkpoint", self.manager_asked
        )
        wrap(tf.train.CheckpointManager, "restore_or_initialize", after=self.manager_restored)

    def watch_numpy(self) -> None:
        import numpy

        wrap = self.context.patches.wrap
        for owner, names in ((numpy, ("savez", "savez_compressed", "save")), (pickle, ("dump",))):
            for name in names:
                wrap(owner, name, before=self.arrays_begin, after=self.arrays_saved, group=SAVES)
            wrap(owner, "load", after=self.arrays_read)

    def watch_keras(self, package: str, keras: Any) -> None:
        wrap = self.context.patches.wrap
        for name in ("save", "save_weights"):
            self.watch_saving(keras.Model, name, self.model_saved)
        wrap(keras.Model, "set_weights", after=self.arrays_set)
        wrap(
            keras.Model, "load_weights", before=self.weights_load_begins, after=self.weights_loaded
        )
        self.context.patches.wrap_everywhere(package, keras.models.load_model, self.model_loaded)

    # Saving

    def watch_saving(self, owner: Any, name: str, after: Callable[[Any, Call], None]) -> None:
        before = self.kills.save_begins
        self.context.patches.wrap(owner, name, before=before, after=after, group=SAVES)

    def checkpoint_made(self, _: Any, call: Call) -> None:
        self.made_at[call.owner] = self.context.provenance.stack()

    def attribute_set(self, call: Call) -> None:
        """Remembers that a number or tensor takes the place of a variable: TensorFlow goes on saving the variable."""
        import tensorflow as tf

        old = vars(call.owner).get(call["name"])
        if is_plain(call["value"]):
            record = self.variables.record_of(old) if isinstance(old, tf.Variable) else None
            if record is not None:
                stack = self.context.provenance.stack()
                replaced = SetAttribute(record, sample_of(record), stack)
                self.attributes.setdefault(call.owner, dict)[call["name"]] = replaced
        elif known := self.attributes.get(call.owner):
            known.pop(call["name"], None)

    def report_old_values(self, path: str, root: Any) -> None:
        """Reports attributes with other values than the variables that the checkpoint has in their places."""
        for name, each in (self.attributes.get(root) or {}).items():
            apart = difference(each.record.variable, vars(root).get(name))
            is_old = apart is not None and sample_of(each.record) == each.sample
            if apart and is_old and self.context.is_first("old", self.context.serial(root), name):
                self.context.emit(OldValueSaved(each.location, name, path, *apart))

    def checkpoint_saved(self, path: Any, call: Call) -> None:
        self.save_checkpoint(path, call.owner)

    def manager_saved(self, path: Any, call: Call) -> None:
        if path:
            self.save_checkpoint(path, call.owner.checkpoint)

    def save_checkpoint(self, path: Any, root: Any) -> None:
        made_at = self.made_at.get(root) or ()
        numbers = self.without_unsaved(root, str(path), self.reachable(root))
        unsaved = self.unsaved[self.context.serial(root)]
        omitted = self.saved(SaveKind.CHECKPOINT, path, numbers, made_at, unsaved)
        self.report_old_values(str(path), root)
        self.change_if_asked(omitted)
        self.kills.save_ended()

    def change_if_asked(self, omitted: Iterable[Record]) -> None:
        for record in omitted:
            if record.number == self.reset:
                assign(record, record.start)
                self.reset = 0
            self.variables.carry(record)

    def without_unsaved(self, root: Any, path: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the numbers without the variables that are not in the first checkpoint of this object.

        Checkpoints follow attributes. A model of Keras 3 lists the variables of layers in its lists, too, which none has.
        """
        serial = self.context.serial(root)
        self.unsaved.setdefault(serial, set())
        if serial not in self.checked:
            self.checked.add(serial)
            doubtful = {*numbers} - {*self.reachable(root, listed=False)}
            # A file has the sum or mean of such copies, so that no copy need have its value.
            records = [each for each in self.fillable(doubtful) if not is_on_read(each.variable)]
            found = {each.sample for each in stored_in(path)} if records else set()
            missing = {each.number for each in records if sample_of(each) not in found}
            self.unsaved[serial] = missing
        return tuple(number for number in numbers if number not in self.unsaved[serial])

    def fillable(self, numbers: Iterable[int]) -> list[Record]:
        """Returns the variables of layers and of the program, which a file should fill."""
        wanted = {*numbers}
        return [
            record
            for record in self.variables.alive()
            if record.number in wanted and record.maker in (Owner.LAYER, Owner.USER)
            if record.variable.dtype.is_floating
        ]

    def model_saved(self, _: Any, call: Call) -> None:
        weights = call.owner.variables
        numbers = self.variables.numbers_of(weights)
        path = str(call["filepath"])
        records = self.fillable(numbers)
        self.model_files[path] = stored_values(
            (record.variable, sample_of(record)) for record in records
        )
        attributes = {*self.variables.numbers_of(attributes_of(call.owner))} - {*numbers}
        self.change_if_asked(self.saved(SaveKind.MODEL, path, numbers, of_saved=attributes))
        self.kills.save_ended()

    def object_saved(self, _: Any, call: Call) -> None:
        self.saved(SaveKind.MODEL, call["export_dir"], self.reachable(call["obj"]))
        self.kills.save_ended()

    def arrays_begin(self, call: Call) -> None:
        """Counts the save of weights; other arrays and objects are none."""
        if self.context.settings.die_in_save and self.weights_among(call):
            self.kills.save_begins(call)

    def arrays_saved(self, _: Any, call: Call) -> None:
        """Reports weights that are taken out of a model by hand: arrays that are the values of variables."""
        weights, path = self.weights_among(call), name_of(call["file"])
        if weights:
            if path != call["file"]:
                self.kills.save_not_flushed()
            self.array_files[tuple(each for each, _ in weights)] = path
            self.saved(SaveKind.ARRAYS, path, tuple(number for _, number in weights))
            self.kills.save_ended()

    def weights_among(self, call: Call) -> list[tuple[Sample, int]]:
        """Returns the arrays that a call gets which have the values of variables: all of them, or several beside others."""
        arguments = call.bound.arguments
        given = [arguments[name] for name in ("args", "kwds", "arr", "obj") if name in arguments]
        samples = samples_in(given)
        known = {each.sample: each.number for each in self.variables.values()} if samples else {}
        found = [(each, known[each]) for each in samples if each in known]
        is_telling = any(len({*each.entries}) > 1 for each, _ in found)  # other arrays are 0, too
        return found if len(found) == len(samples) or is_telling and len(found) > 1 else []

    def arrays_read(self, content: Any, call: Call) -> None:
        """Remembers what a file contains; archives of NumPy are not read before it matters."""
        path = name_of(next(iter(call.bound.arguments.values())))
        if hasattr(content, "files"):
            self.archives.append(path)
        elif samples := samples_in(content):
            self.arrays_known(samples, path)

    def saved(
        self,
        kind: SaveKind,
        path: Any,
        numbers: tuple[int, ...],
        made_at: Stack = (),
        of_saved: Collection[int] = (),
    ) -> list[Record]:
        """Reports a save, and returns the variables that are not in it: those that have changed, or are of what was saved."""
        omitted = [
            record
            for record in self.variables.alive()
            if is_omitted(record, numbers, record.number in of_saved)
        ]
        self.context.guard_always(self.program_states.saved)
        is_new, dies = self.context.is_first("saved", kind, str(path)), self.context.settings.dies
        few = self.context.count("saves", kind, is_new) <= MOST_SAVES
        iterators = self.context.counts[("iterators",)]
        if few and not is_new and not dies:
            self.context.emit(SavedAgain(str(path), self.context.steps.count, iterators))
        elif few or dies:
            self.context.emit(
                Saved(
                    location=self.context.provenance.stack(),
                    kind=kind,
                    path=str(path),
                    made_at=made_at,
                    variables=numbers,
                    omitted=tuple(
                        omitted_variable(record, record.number in of_saved) for record in omitted
                    ),
                    optimizers=self.optimizers.states(),
                    steps=self.context.steps.count,
                    iterators=iterators,
                    values=self.values_of(numbers) if dies else (),
                )
            )
        return omitted

    def values_of(self, numbers: tuple[int, ...]) -> tuple[VariableValue, ...]:
        return tuple(value for value in self.variables.values() if value.number in numbers)

    def reachable(self, root: Any, *, listed: bool = True) -> tuple[int, ...]:
        """Returns the numbers of the variables that a save of this object puts into the file.

        Without `listed`, only those that attributes lead to.
        """
        import tensorflow as tf

        things = list(tf.train.TrackableView(root).descendants())
        # Keras 3 lists all of its variables, and parameter servers list the parts of one, only if they are asked.
        for thing in list(things):
            if listed and is_keras(thing) or is_sharded(thing):
                things += variables_of(thing)
        return self.variables.numbers_of(thing for thing in things if hasattr(thing, "value"))

    # Restoring

    def restore_begins(self, call: Call) -> None:
        call.state = self.optimizers.states()

    def checkpoint_restored(self, status: Any, call: Call) -> None:
        root, path, location = call.owner, call["save_path"], self.context.provenance.stack()
        numbers = self.reachable(root)
        unmatched = "" if path is None else unmatched_objects(status)
        restored = CheckpointRestored(
            location=location,
            path=None if path is None else str(path),
            made_at=self.made_at.get(root) or (),
            variables=numbers,
            optimizers=call.state or (),
            unmatched=unmatched,
        )
        if path is None:
            self.context.emit(restored)
            return
        is_read = self.context.count("contents") <= MOST_CONTENTS
        stored = stored_in(str(path)) if is_read else []
        self.restores = [restore for restore in self.restores if restore.root is not root]
        self.restores.append(Restore(root, status, stored, numbers, str(path), location))
        self.context.emit(restored)
        self.loaded("restore", path, numbers)
        if stored:
            numbers = self.reachable(root)
            referred = {*numbers} - {*self.variables.numbers_of(named_by(root))}
            self.report_kept("restore", str(path), numbers, stored, referred=referred)

    def restored_before_build(self) -> tuple[RestoredBeforeBuild, ...]:
        """Returns the restores that did not reach what was made after them, although the file has values of its shapes.

        A variable that is made as an attribute later begins with the value of the file.
        """
        early = []
        for restore in self.restores:
            new = {*self.reachable(restore.root)} - {*restore.variables}
            new -= self.added_to_layers(restore.root, {*restore.variables})
            message = unmatched_objects(restore.status) if new else ""
            shapes, samples = ({each[i] for each in restore.stored} for i in range(2))
            fitting = tuple(
                record.number
                for record in self.variables.alive()
                if record.number in new and record.maker in (Owner.LAYER, Owner.USER)
                if record.variable.dtype.is_floating and tuple(record.variable.shape) in shapes
                if (record.first or sample_of(record)) not in samples
            )
            if message and fitting:
                early.append(RestoredBeforeBuild(restore.path, fitting, message, restore.location))
        return tuple(early)

    def added_to_layers(self, root: Any, before: Collection[int]) -> set[int]:
        """Returns the variables of layers that had others before: such a layer was built, and got more of them afterwards."""
        import tensorflow as tf

        layers = filter(is_keras, tf.train.TrackableView(root).descendants())
        own = [{*self.variables.numbers_of(own_variables(layer))} for layer in layers]
        return {number for numbers in own if numbers & {*before} for number in numbers}

    def report_kept(
        self,
        function: str,
        path: str,
        numbers: Iterable[int],
        stored: list[Stored],
        skipped: bool = False,
        referred: Collection[int] = (),
    ) -> None:
        """Reports the variables whose values are not in the file that was read.

        Values in `referred` went to variables that only an optimizer refers to, since it has trained them.
        """
        records = [record for record in self.fillable(numbers) if not is_on_read(record.variable)]
        samples = {record.number: sample_of(record) for record in records}
        in_file = {each.sample for each in stored}
        kept = [record for record in records if samples[record.number] not in in_file]
        if not kept:
            return
        placed = {value for number, value in samples.items() if number not in referred}
        free = [each for each in stored if not each.of_others and each.sample not in placed]
        unplaced = {each.shape for each in free if each.shape}
        fitting = [record for record in kept if tuple(record.variable.shape) in unplaced]
        self.context.emit(
            VariablesKept(
                location=self.context.provenance.stack(),
                function=function,
                path=path,
                kept=tuple(record.number for record in kept),
                fitting=tuple(record.number for record in fitting),
                filled=len(records) - len(kept),
                other_output=last_shape(stored) != tuple(records[-1].variable.shape),
                skipped=skipped,
            )
        )

    def latest_sought(self, path: Any, call: Call) -> None:
        self.sought(call["checkpoint_dir"], path)

    def manager_asked(self, path: Any, manager: Any) -> None:
        self.sought(manager.directory, path, manager.checkpoint)

    def manager_restored(self, path: Any, call: Call) -> None:
        self.sought(call.owner.directory, path, call.owner.checkpoint)

    def sought(self, folder: Any, path: Any, root: Any = None) -> None:
        """Reports where the program itself looks for its latest checkpoint."""
        if self.context.provenance.called_by_program():
            nearby = files_near(str(folder)) if path is None else ()
            site, _ = self.context.provenance.call_site()
            if self.context.is_first("sought", site, str(folder), path, nearby):
                found = None if path is None else str(path)
                stack = self.context.provenance.stack()
                numbers = self.reachable(root) if root is not None and path is None else ()
                self.context.emit(CheckpointSought(stack, str(folder), found, nearby, numbers))

    # Loading

    def weights_load_begins(self, call: Call) -> None:
        """Keeps the present values where the call allows that a part of them is kept."""
        if is_partial(call) and call.owner.built:
            records = self.fillable(self.variables.numbers_of(call.owner.variables))
            call.state = {record.number: sample_of(record) for record in records}

    def weights_loaded(self, _: Any, call: Call) -> None:
        # A model of Keras 2 that is not built gets its values when it makes its variables.
        variables = call.owner.variables if call.owner.built else ()
        numbers, path = self.variables.numbers_of(variables), str(call["filepath"])
        self.loaded("load_weights", path, numbers)
        stored = self.model_files.get(path)
        if stored:
            self.report_kept("load_weights", path, numbers, stored, is_partial(call))
        elif call.state:
            self.report_unchanged(path, call.state)

    def report_unchanged(self, path: str, before: dict[int, Sample]) -> None:
        """Reports the variables that a file from elsewhere has not changed, and that nobody has trained or set."""
        records = self.fillable(before)
        kept = [
            record.number
            for record in records
            if sample_of(record) == before[record.number]
            and len({*before[record.number].entries}) > 1
            if not (record.written or record.trained)
        ]
        if kept:
            filled = len(records) - len(kept)
            stack = self.context.provenance.stack()
            self.context.emit(
                VariablesKept(stack, "load_weights", path, tuple(kept), (), filled, True, True)
            )

    def saved_model_loaded(self, loaded: Any, call: Call) -> None:
        self.object_loaded(loaded, call["export_dir"])

    def model_loaded(self, model: Any, call: Call) -> None:
        """Reports a model that a file of Keras has filled, but for the attributes that it does not list."""
        unlisted = set[int]()
        if os.path.isfile(call["filepath"]):
            listed = self.variables.numbers_of(model.variables)
            unlisted = {*self.variables.numbers_of(attributes_of(model))}.difference(listed)
        own = {each.number for each in self.variables.alive() if each.maker is Owner.USER}
        path = call["filepath"]
        self.object_loaded(model, path, unlisted & own)
        stored = stored_in_keras(path) if zipfile.is_zipfile(path) else None
        if stored is not None:
            self.report_kept("load_model", str(path), self.in_whole(model, stored), stored)

    def in_whole(self, model: Any, stored: list[Stored]) -> list[int]:
        """Returns the variables of the layers that are in a file with all that they have, or with nothing."""
        in_file, numbers = {each.sample for each in stored}, []
        for weights in weights_to_fill(model):
            records = self.variables.numbered(self.variables.numbers_of(weights))
            samples = {record.number: sample_of(record) for record in records}
            telling = [each for each in samples.values() if len({*each.entries}) > 1]
            if len({each in in_file for each in telling}) == 1:
                numbers += [*samples]
        return numbers

    def object_loaded(self, thing: Any, path: Any, unlisted: Collection[int] = ()) -> None:
        numbers = tuple(each for each in self.reachable(thing) if each not in unlisted)
        if self.context.is_first("loaded", self.context.provenance.call_site()[0], numbers):
            self.loaded("load", path, numbers)

    def arrays_set(self, _: Any, call: Call) -> None:
        """Reports arrays from a file of NumPy's that are put into a model again."""
        self.read_archives()
        samples = samples_in(list(call["weights"])) if self.array_files else ()
        if samples in self.array_files:
            numbers = self.variables.numbers_of(call.owner.variables)
            self.loaded("set_weights", self.array_files[samples], numbers)

    def read_archives(self) -> None:
        while self.archives:
            path = self.archives.pop()
            self.arrays_known(samples_in(arrays_of_archive(path)), path)

    def arrays_known(self, samples: tuple[Sample, ...], path: str) -> None:
        self.array_files[samples] = path
        self.files_of_values.update((each, path) for each in samples)

    def value_set(self, record: Record, value: Any) -> None:
        """Looks whether the program gives a variable an array of a file, as it may do with all variables of a model."""
        self.read_archives()
        samples = samples_in(plain_array(value)) if self.files_of_values else ()
        path = self.files_of_values.get(samples[0]) if samples else None
        if path is not None:
            given = self.assigned.setdefault(path, {})
            if not given:
                stack = self.context.provenance.stack()
                self.context.together = lambda: self.report_assigned(path, stack)
            given[record.number] = samples[0]

    def report_assigned(self, path: str, stack: Stack) -> None:
        """Reports a file of which several arrays were given to variables: one table of numbers is no saved training."""
        given = self.assigned.pop(path)
        if len(given) > 1:
            self.loaded("assign", path, sorted(given), stack)

    def loaded(
        self, function: str, path: Any, numbers: Iterable[int], location: Stack = ()
    ) -> None:
        """Reports what was loaded; from now on, it has not been read."""
        import tensorflow as tf

        numbers = tuple(numbers)
        records = self.variables.numbered(numbers)
        for record in records:
            record.read_since_load = False
        self.variables.something_loaded = True
        single = (record.number for record in records if not hasattr(record.variable, "values"))
        self.context.emit(
            Loaded(
                location=location or self.context.provenance.stack(),
                function=function,
                path=str(path),
                variables=numbers,
                undistributed=tuple(single),
                in_scope=bool(tf.distribute.has_strategy()),
                replicas=self.most_replicas(),
                optimizers=self.optimizers.states(),
            )
        )


def is_plain(value: Any) -> bool:
    """Tells whether a value is a number, an array, or a tensor that has a value now."""
    import numpy
    import tensorflow as tf

    is_tensor = isinstance(value, tf.Tensor) and hasattr(value, "numpy")
    is_number = isinstance(value, (int, float, numpy.generic, numpy.ndarray))
    return (is_tensor or is_number) and not isinstance(value, tf.Variable)


def difference(variable: Any, value: Any) -> tuple[float, float] | None:
    """Returns the first entries in which a variable and a value of its shape differ; None if there are none."""
    import numpy

    if variable is None or not is_plain(value):
        return None
    held = numpy.asarray(arrays_of(variable)[0])
    with outside_graphs():
        now = numpy.asarray(value)
    is_numeric = held.dtype.kind in "fiu" and now.dtype.kind in "fiub"
    if held.shape != now.shape or not is_numeric:
        return None
    with numpy.errstate(all="ignore"):
        now = now.astype(held.dtype)  # a float32 is not 0.1
    apart = numpy.flatnonzero(held.ravel() != now.ravel())
    return (float(held.flat[apart[0]]), float(now.flat[apart[0]])) if len(apart) else None


def is_omitted(record: Record, saved: tuple[int, ...], of_saved: bool) -> bool:
    changed = record.written or record.trained or of_saved
    return changed and record.number not in saved and record.maker in (Owner.USER, Owner.LAYER)


def omitted_variable(record: Record, of_saved: bool) -> OmittedVariable:
    now = sample_of(record)
    return OmittedVariable(
        number=record.number,
        trained=record.trained,
        read=record.read,
        changed=any((now.norm, *now.entries)) and now != record.first,
        scalar=now.entries[0] if len(now.entries) == 1 else None,
        of_saved=of_saved,
    )


def is_partial(call: Call) -> bool:
    """Tells whether a call of `load_weights` allows that variables keep their values."""
    arguments = call.bound.arguments
    given = {**arguments, **arguments.get("kwargs", {})}
    return bool(given.get("skip_mismatch") or given.get("by_name"))


def unmatched_objects(status: Any) -> str:
    """Returns TensorFlow's message on objects that exist and got no value from the file; nothing if there are none."""
    try:
        status.assert_existing_objects_matched()
        return ""
    except AssertionError as error:
        return str(error).splitlines()[0][:MOST_MESSAGE] or "not all objects were matched"


def named_by(root: Any) -> list[Any]:
    """Returns the variables to which other attributes lead than those of optimizers."""
    import tensorflow as tf

    view, found = tf.train.TrackableView(root), {id(root): root}
    waiting = [root]
    while waiting:
        for child in view.children(waiting.pop()).values():
            if id(child) not in found and not hasattr(child, "apply_gradients"):
                found[id(child)] = child
                waiting.append(child)
    things = list(found.values())
    for thing in list(things):
        if is_keras(thing) or is_sharded(thing):
            things += variables_of(thing)
    return [thing for thing in things if hasattr(thing, "value")]


def is_keras(thing: Any) -> bool:
    return any(map(is_of_keras, type(thing).__mro__))


def is_sharded(thing: Any) -> bool:
    return any(kind.__name__ == "ShardedVariableMixin" for kind in type(thing).__mro__)


def samples_in(value: Any) -> tuple[Sample, ...]:
    """Returns the samples of the arrays in lists, tuples, dictionaries and arrays of objects; none of very large ones."""
    import numpy

    if isinstance(value, dict):
        value = list(value.values())
    if (
        isinstance(value, (list, tuple))
        or getattr(getattr(value, "dtype", None), "kind", "") == "O"
    ):
        return tuple(each for part in value for each in samples_in(part))
    is_small = isinstance(value, (numpy.ndarray, numpy.generic)) and value.size <= LARGEST_ARRAY
    return (sample(numpy.asarray(value)),) if is_small else ()


def plain_array(value: Any) -> Any:
    """Returns a value as an array; nothing if it is of a graph that is being made."""
    import numpy

    return numpy.asarray(value) if not hasattr(value, "graph") else None


def arrays_of_archive(path: str) -> list[Any]:
    import numpy

    if os.path.getsize(path) > LARGEST_ARCHIVE:
        return []
    with numpy.load(path) as content:
        return [content[name] for name in content.files]


def name_of(file: Any) -> str:
    """Returns the path of a file that is open or named; of a `Path`, the attribute `name` is the last part."""
    is_path = isinstance(file, os.PathLike)
    return str(os.fspath(file) if is_path else getattr(file, "name", file))
