"""What is saved, what is restored and what is loaded. Runs in the reader's process."""

import os
import signal

from . import training, variables
from .notes import SETTINGS, count, flush, note, once, way, where
from .patching import hook, hook_everywhere

BEFORE: list = []  # how far the optimizers had come before the last restore
ARRAYS: dict = {}  # by the samples of arrays that were written by NumPy, the file
MADE_AT: dict = {}  # by the id of a Checkpoint, where it was made
RESTORES: list = []  # the last restore of each object, looked at once more at the end
MOST_SAVES = 60  # that are told, of each kind
OPTIMIZERS: dict = {}  # by id, those that have been used: the optimizer and the numbers of what it trains


def watch_checkpoints():
    import tensorflow as tf

    hook(tf.train.Checkpoint, "__init__", None, checkpoint_made)
    for name in ("save", "write"):
        hook(tf.train.Checkpoint, name, None, checkpoint_saved, "save")
    for name in ("restore", "read"):
        hook(tf.train.Checkpoint, name, restoring, checkpoint_restored, "restore")
    hook(tf.train.CheckpointManager, "save", None, manager_saved, "save")
    hook_everywhere("tensorflow", tf.saved_model.load, loaded_anything)


def checkpoint_made(_, args, options):
    MADE_AT[id(args[0])] = where()


def checkpoint_saved(path, args, options):
    saved("checkpoint", path, held_by(args[0]), args[0])


def manager_saved(path, args, options):
    if path:
        saved("checkpoint", path, held_by(args[0].checkpoint), args[0].checkpoint)


def held_by(root) -> list:
    """The numbers of the variables that saving this object puts into the file."""
    import tensorflow as tf

    found = list(tf.train.TrackableView(root).descendants())
    for each in list(found):
        # Keras 3 tells all of its variables, and servers tell parts of one, only when they are asked for them.
        listed = getattr(each, "variables", None) if is_keras(each) or is_sharded(each) else None
        found += list(listed() if callable(listed) else listed or [])
    return variables.numbers_of([each for each in found if hasattr(each, "value")])


def is_keras(thing) -> bool:
    return any(
        kind.__module__.split(".")[0] in ("keras", "tf_keras") for kind in type(thing).__mro__
    )


def is_sharded(thing) -> bool:
    return any(kind.__name__ == "ShardedVariableMixin" for kind in type(thing).__mro__)


def saved(what: str, path, held: list, root=None):
    left = [each for each in variables.alive() if is_left(each, held)]
    if SETTINGS.die or once("saved", what, path) and count("saves", what) <= MOST_SAVES:
        note(
            "saved",
            what=what,
            path=str(path),
            made=MADE_AT.get(id(root), []),
            held=held,
            left=[lost(each) for each in left],
            optimizers=states(),
            at=where(),
        )
    for each in left if what == "checkpoint" else ():
        if each.number == SETTINGS.reset:
            variables.give_value(each, each.start)
            SETTINGS.reset = 0
        variables.keep_for_another(each)
    if SETTINGS.die and what == "checkpoint":
        flush()
        os.kill(os.getpid(), signal.SIGKILL)


def is_left(record, held: list) -> bool:
    changed = record.written or record.trained
    return changed and record.number not in held and record.maker in ("user", "layer")


def lost(record) -> dict:
    """What a variable that is not saved holds: whether anybody reads it, and what it was before it was written."""
    now = variables.samples_of(record)
    return {
        "number": record.number,
        "trained": record.trained,
        "read": record.read,
        "changed": bool(now) and any(now) and now != record.first,
        "now": now[1] if len(now) == 2 else None,
    }


# Optimizers


def states() -> list:
    """How far every optimizer has come, and how many variables it has."""
    return [state_of(each, trains) for each, trains in list(OPTIMIZERS.values())]


def state_of(optimizer, trains: list) -> dict:
    """Also asked while a graph is being made, in which numbers cannot be read."""
    listed = optimizer.variables
    listed = listed() if callable(listed) else listed
    with variables.outside_graphs():
        rate = str(optimizer.get_config().get("learning_rate"))[:80]
    return {
        "kind": type(optimizer).__name__,
        "trains": trains,
        "steps": steps_of(optimizer),
        "variables": variables.numbers_of(listed),
        "at": rate,
    }


def steps_of(optimizer) -> int:
    return int(variables.arrays_of(variables.variable_in(optimizer.iterations))[0])


# Restoring


def restoring(args, options):
    BEFORE[:] = states()


def checkpoint_restored(status, args, options):
    import tensorflow as tf

    root, at = args[0], where()
    path = args[1] if len(args) > 1 else options.get("save_path") or options.get("path")
    facts = {"holds": held_by(root), "made": MADE_AT.get(id(root), []), "optimizers": list(BEFORE)}
    if path is None:
        return note("restored", path=None, unmatched="", at=at, **facts)
    shapes = [shape for _, shape in tf.train.list_variables(str(path))]
    RESTORES[:] = [each for each in RESTORES if each["root"] is not root]
    seen = {"root": root, "status": status, "shapes": shapes, "had": facts["holds"]}
    RESTORES.append({**seen, "path": str(path), "at": at})
    note("restored", path=str(path), unmatched=unmatched(status), at=at, **facts)
    loaded(facts["holds"], str(path), "restore")


def unmatched(status) -> str:
    """TensorFlow's own words for objects that exist and got no value from the file; nothing if there are none."""
    try:
        status.assert_existing_objects_matched()
        return ""
    except AssertionError as error:
        return str(error).splitlines()[0][:300] or "not all objects were matched"


def late() -> list:
    """Restores that left alone what was made after them, though the file has values of these shapes for it."""
    found = []
    for each in RESTORES:
        new = set(held_by(each["root"])) - set(each["had"])
        words = unmatched(each["status"]) if new else ""
        made = [r for r in variables.alive() if r.number in new and r.maker in ("layer", "user")]
        fit = [r.number for r in made if r.ref().shape.as_list() in each["shapes"]]
        if words and fit:
            found.append({"at": each["at"], "path": each["path"], "numbers": fit, "says": words})
    return found


# Loading


def loaded(numbers: list, path: str, how: str):
    """What was loaded, and from now on whether it is used."""
    import tensorflow as tf

    records = [each for each in variables.alive() if each.number in numbers]
    for each in records:
        each.used = False
    note(
        "loaded",
        how=how,
        path=path,
        numbers=numbers,
        single=[each.number for each in records if not hasattr(each.ref(), "values")],
        scope=tf.distribute.has_strategy(),
        replicas=training.most_replicas(),
        at=where(),
    )


def loaded_anything(thing, args, options):
    held = held_by(thing)
    if once("loaded", way()[0], tuple(held)):
        loaded(held, str(args[0] if args else ""), "load")


# Arrays in files of NumPy's


def watch_numpy():
    import numpy

    hook(numpy, "savez", None, arrays_saved)


def arrays_saved(_, args, options):
    """Weights that are taken out of a model by hand: told as saved if they are the values of variables."""
    told = [variables.samples(array) for array in map(as_array, args[1:])]
    known = {str(samples): number for number, samples in variables.values().items()}
    held = [known[str(each)] for each in told if str(each) in known]
    if held and len(held) == len(told):
        ARRAYS[str(told)] = str(args[0])
        saved("arrays", args[0], held)


def as_array(value):
    import numpy

    return numpy.asarray(value)


def arrays_put_in(_, args, options):
    """The same arrays, put into a model again."""
    given = args[1] if len(args) > 1 else options.get("weights", ())
    path = ARRAYS.get(str([variables.samples(as_array(each)) for each in given]))
    if path:
        loaded(variables.numbers_of(args[0].variables), path, "set_weights")
