"""Strategies, steps, batches, gradients and sums over replicas. Runs in the reader's process."""

import os
import weakref

from . import variables
from .notes import RUN_FROM, SETTINGS, asked_by_program, chain, flush, note, once, way, where
from .patching import definer, hook, hook_property

STRATEGIES: list = []  # weak references to those that the program has made
RUNS: dict = {}  # by the way to a `strategy.run`, the lines on it, innermost first
SIZES: list = []  # how many examples each replica got last
RESULT: list = []  # what the last `strategy.run` gave
LOOKED = {"looks": 0, "told": 0}
# Calls after which trained variables are looked at, and steps that are told.
MOST_LOOKS, MOST_TOLD = 24, 3
AT_END: list = []  # what to do before the program is ended early


def watch_training():
    import tensorflow as tf

    strategy = tf.distribute.Strategy
    hook(definer(strategy, "__init__"), "__init__", None, strategy_made)
    hook(definer(strategy, "run"), "run", run_begins, step_ends, "step")
    for kind, made in (
        ("multi_worker", tf.distribute.MultiWorkerMirroredStrategy),
        ("parameter_server", tf.distribute.ParameterServerStrategy),
    ):
        hook(definer(made, "__init__"), "__init__", cluster_asked_for(kind))
    hook(definer(strategy, "reduce"), "reduce", None, reduced)
    name = "experimental_distribute_dataset"
    hook(definer(strategy, name), name, None, distributed)
    name = "distribute_datasets_from_function"
    hook(definer(strategy, name), name, None, distributed_by_function)
    for kind in (strategy, tf.distribute.ReplicaContext, tf.distribute.InputContext):
        name = "num_replicas_in_sync"
        hook_property(definer(kind, name), name, counted)
    hook(tf.distribute.InputContext, "get_per_replica_batch_size", None, divided)
    hook(tf.data.Dataset, "batch", None, batched)
    hook(tf.GradientTape, "gradient", None, differentiated)
    hook(type(tf.function(lambda: None)), "__call__", None, step_ends, "step")


def cluster_asked_for(kind: str):
    def asked(args, options):
        note("cluster", strategy=kind, at=where())

    return asked


def strategy_made(_, args, options):
    made = args[0]
    name, replicas = type(made).__name__, made.num_replicas_in_sync
    if name.startswith("_"):
        return  # the one that stands for none
    STRATEGIES.append(weakref.ref(made))
    running = definer(type(made), "run")
    if once("run of", running):  # a strategy may have one of its own, around that of its class
        hook(running, "run", None, run_ended)
    note("strategy", name=name, replicas=replicas, at=where())


def most_replicas() -> int:
    """Of the strategies that the program still has."""
    here = [each() for each in STRATEGIES]
    return max((each.num_replicas_in_sync for each in here if each is not None), default=1)


def counted(_, __):
    """Asked for by what could decide how large a batch is; a replica gets its batch, and scales its loss at most."""
    import tensorflow as tf

    if tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
        return
    if asked_by_program() and once("asked", way()[0]):
        note("asked", at=where())


def divided(_, args, options):
    if once("asked", way()[0]):
        note("asked", at=where())


# Steps: calls of strategy.run or of a traced function from outside, after which weights are others


def run_begins(args, options):
    led_here = chain()
    if led_here not in RUNS:
        RUNS[led_here] = where()
    RUN_FROM[:] = RUNS[led_here]


def run_ended(result, args, options):
    import tensorflow as tf

    RESULT[:] = tf.nest.flatten(result)


def step_ends(_, args, options):
    if LOOKED["looks"] < MOST_LOOKS and LOOKED["told"] < MOST_TOLD and on_the_outside():
        look()
    if SETTINGS.steps:
        SETTINGS.steps -= 1
        if SETTINGS.steps == 0:
            for action in AT_END:
                action("stopped")
            flush()
            os._exit(0)


def on_the_outside() -> bool:
    import tensorflow as tf

    outside = not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context()
    return outside and tf.executing_eagerly()


def look():
    """Tells the values of trained variables, if they are others than at the last look."""
    trained = [each for each in variables.alive() if each.trained]
    LOOKED["looks"] += bool(trained)
    found = {each.number: variables.samples_of(each) for each in trained}
    variables.keep(trained)
    if found and found != LOOKED.get("last"):
        LOOKED["last"], LOOKED["told"] = found, LOOKED["told"] + 1
        before = {each.number: each.first for each in trained if each.first}
        kept, apart = slots(), variables.apart()
        note("step", number=LOOKED["told"], values=found, before=before, slots=kept, apart=apart)


def slots() -> dict:
    """What optimizers keep of the first gradients: some divide their updates by it, so that no update shows a factor."""
    if LOOKED["told"] > 1:
        return {}
    kept = [each for each in variables.alive() if each.maker == "optimizer"]
    return {each.number: variables.samples_of(each) for each in kept if each.ref().shape.rank}


# Data


def distributed(dataset, args, options):
    """Batches are seen where the program takes them one by one."""
    kind = type(dataset)
    if once("dataset", kind):
        hook(definer(kind, "__iter__"), "__iter__", None, iterated)


def distributed_by_function(dataset, args, options):
    if once("by function", way()[0]):
        note("by_function", at=where())
    distributed(dataset, args, options)


def iterated(iterator, args, options):
    kind = definer(type(iterator), "get_next")
    if once("iterator", kind):
        hook(kind, "get_next", None, batch_taken)


def batch_taken(batch, args, options):
    import tensorflow as tf

    parts = variables.copies_of(tf.nest.flatten(batch)[0])
    sizes = [int(each.shape[0]) for each in parts if each.shape.rank and each.shape[0] is not None]
    SIZES[:] = sizes if len(sizes) == len(parts) else []
    if SIZES and once("batch", tuple(sizes)):
        note("batch", sizes=sizes, at=where())


def batched(_, args, options):
    size = args[1] if len(args) > 1 else options.get("batch_size")
    if isinstance(size, int) and once("batched", way()[0], size):
        note("batched", size=size, at=where())


def reduced(result, args, options):
    """A mean over replicas of numbers that they gave in a step: what each gave, and how many examples it had.

    What `fit` does with its logs is Keras's own.
    """
    import tensorflow as tf

    spot, part = way()
    given = dict(zip(("self", "reduce_op", "value", "axis"), args)) | options
    value, how = given["value"], str(given["reduce_op"]).upper()
    asked = part == "user" and any(value is each for each in RESULT)
    if not asked or "MEAN" not in how or given.get("axis") is not None:
        return
    parts, at = variables.copies_of(value), where()
    if len(parts) < 2 or not all(part.shape.rank == 0 for part in parts):
        return
    if all(hasattr(part, "numpy") for part in parts):
        told_mean(at, *parts)
    elif SETTINGS.tell:  # an operation more in a graph, in a run that is made for it
        tf.py_function(lambda *values: told_mean(at, *values), parts, [])
    elif once("reduced", spot):
        note("reduced", sizes=[], values=[], at=at)


def told_mean(at, *parts):
    if len(SIZES) == len(parts) and len(set(SIZES)) > 1:
        values = [float(each) for each in parts]
        if once("reduced", str(at), tuple(SIZES)):
            note("reduced", sizes=list(SIZES), values=values, at=at)


def differentiated(result, args, options):
    import tensorflow as tf

    found = tf.nest.flatten(result)
    missing = sum(each is None for each in found)
    if once("gradient", way()[0], missing):
        note("gradient", missing=missing, of=len(found), at=where())
