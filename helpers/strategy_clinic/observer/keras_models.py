"""Models and optimizers of Keras 2 and 3. Runs in the reader's process."""

import functools
import sys
import weakref

from . import checkpoints, training, variables
from .keras_logs import watch_reports
from .learning_rates import watch_model_rates
from .notes import asked_by_program, chain, note, once, way, where
from .patching import definer, hook, hook_everywhere, hook_new, hook_property, replace_in

MADE: dict = {}  # by the id of a model, where it was made
LAYERS: dict = {}  # by its id, a layer and where it was made
ANSWERS: dict = {}  # by the way to a model, how often it has been asked
MOST_ANSWERS = 4


def watch_keras(package: str):
    """Keras 3 is `keras`, Keras 2 is `tf_keras`."""
    keras = sys.modules[package]
    model, optimizer = keras.Model, keras.optimizers.Optimizer
    hook(definer(model, "__init__"), "__init__", None, model_made)
    calling = definer(model, "__call__")
    replace_in(
        model, "__call__", passed_on(calling)
    )  # of models alone, not of each of their layers
    hook(model, "__call__", None, model_called)
    hook_property(definer(model, "trainable_variables"), "trainable_variables", asked_for_weights)
    for name in {"apply", "apply_gradients"}:
        if hasattr(optimizer, name):
            listen_to_updates(definer(optimizer, name), name)
    hook(definer(model, "compile"), "compile", None, compiled)
    hook(definer(model, "predict"), "predict", None, told_answer)
    hook_new(keras.layers.Layer, layer_made)
    for name in ("save", "save_weights"):
        hook(definer(model, name), name, None, model_saved, "save")
    hook(definer(model, "set_weights"), "set_weights", None, checkpoints.arrays_put_in)
    hook(definer(model, "load_weights"), "load_weights", None, weights_loaded)
    watch_model_rates(model)
    watch_reports(model)
    hook_everywhere(package, keras.models.load_model, checkpoints.loaded_anything)


def listen_to_updates(owner, name: str):
    """Pairs of gradients and variables often come as `zip`, which only one of us can read: so it is passed on as a list."""
    hook(owner, name, updated)
    watched = vars(owner)[name]

    def listed(self, first, *args, **options):
        return watched(self, list(first) if isinstance(first, zip) else first, *args, **options)

    made = functools.wraps(watched)(listed)
    made.autograph_info__ = {}
    replace_in(owner, name, made)


def passed_on(calling):
    plain = vars(calling)["__call__"]

    @functools.wraps(plain)
    def call(self, *args, **options):
        return plain(self, *args, **options)

    return call


def told_answer(result, args, options):
    """What a model says, the first times on this way to it; what stands for an input of a model to be says nothing."""
    import numpy as np
    import tensorflow as tf

    said = [each for each in tf.nest.flatten(result) if hasattr(each, "dtype")]
    arrays = [each.numpy() if hasattr(each, "numpy") else each for each in said[:1]]
    known = arrays and isinstance(arrays[0], (np.ndarray, np.generic))
    if not known or ANSWERS.get(led_here := chain(), 0) >= MOST_ANSWERS:
        return
    ANSWERS[led_here] = ANSWERS.get(led_here, 0) + 1
    note("answered", values=variables.samples(arrays[0]), at=where())


def model_called(result, args, options):
    """How many examples each replica gives to a model, and what it says outside of graphs."""
    import tensorflow as tf

    if training.on_the_outside():
        told_answer(result, args, options)
    inputs = tf.nest.flatten(args[1] if len(args) > 1 else options)
    size = inputs[0].shape[0] if inputs and getattr(inputs[0], "shape", None) else None
    replicas = max(1, variables.replicas_now())
    if size is not None and once("called", id(args[0]), size, replicas):
        numbers = variables.numbers_of(args[0].variables)
        note("called", size=int(size), replicas=replicas, numbers=numbers, at=where())


def model_made(_, args, options):
    MADE[id(args[0])] = where()


def layer_made(layer):
    LAYERS[id(layer)] = weakref.ref(layer), where()


def layer_of(number: int) -> list:
    """Where the innermost layer was made that has this variable."""
    known = [(each(), at) for each, at in LAYERS.values()]
    found = [
        (len(layer.variables), at)
        for layer, at in known
        if layer is not None and number in variables.numbers_of(layer.variables)
    ]
    return min(found, default=(0, []), key=lambda each: each[0])[1]


def compiled(_, args, options):
    """An optimizer that has been used, for a model with more than it was used for."""
    model = args[0]
    _, known = checkpoints.OPTIMIZERS.get(id(model.optimizer), (None, None))
    new = set(variables.numbers_of(model.trainable_variables)) - set(known or [])
    if known and new:
        note("compiled", new=sorted(new), at=where())


def asked_for_weights(found, model):
    if not found and not getattr(model, "built", True) and asked_by_program():
        at = where()
        if at and once("unbuilt", tuple(map(tuple, at))):
            note("unbuilt", name=model.name, made=MADE.get(id(model), []), at=at)


def updated(args, options):
    """Gradients as an optimizer gets them: as pairs with their variables, or as two lists of which the second may lack."""
    optimizer, *given = args
    first, *others = [*given, *options.values()]
    pairs = [each if isinstance(each, (tuple, list)) else (each, None) for each in first]
    gradients = [each[0] for each in pairs]
    trained = (
        others[0] if others and not isinstance(others[0], str) else [each[1] for each in pairs]
    )
    numbers = variables.numbers_of([each for each in trained or [] if each is not None])
    _, known = checkpoints.OPTIMIZERS.get(id(optimizer), (optimizer, []))
    checkpoints.OPTIMIZERS[id(optimizer)] = optimizer, sorted({*numbers, *known})
    if once("updated", id(optimizer), way()[0], len(gradients)):
        state = checkpoints.state_of(optimizer, numbers or known)
        missing = sum(each is None for each in gradients)
        note("updated", gradients=len(gradients), missing=missing, state=state, at=where())


def model_saved(_, args, options):
    checkpoints.saved("model", file_in(args, options), variables.numbers_of(args[0].variables))


def weights_loaded(_, args, options):
    path = str(file_in(args, options))
    checkpoints.loaded(variables.numbers_of(args[0].variables), path, "load_weights")


def file_in(args, options):
    return args[1] if len(args) > 1 else options.get("filepath", "")
