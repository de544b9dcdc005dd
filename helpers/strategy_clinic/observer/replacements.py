"""Replaces a part of a program's step, so that another run shows whether the replicas differ through it.

Each part of which a replica has its own is reported the first time that it is used: random numbers, statistics of its part
of a batch, clipped gradients. A run with a replacement has one of them as if there were no replicas.
"""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from ..base import tf_internals
from .context import BATCHES, Context
from .events import Frame, Owner, Part, PartUsed, Stack
from .gradient_changes import GradientChanges
from .patching import Call, as_plain, defining_class, is_of_keras
from .provenance import outer_frame
from .repeated_numbers import RepeatedNumbers
from .stopped_gradients import is_symbolic
from .variables import Variables, arrays_of, copies_of, outside_graphs, replicas_now

NUDGE = 1e-6  # relative: about what another order of a sum changes
HALF = "float16", "bfloat16"
USUAL_BATCH = 32  # of Keras
DRAWING = "normal", "uniform", "gamma", "poisson", "binomial", "shuffle", "multinomial"
INTEGERS = "uniform_int", "uniform_int_v2", "multinomial"  # functions that draw integers
DRAWN = 0.999  # in place of random numbers from 0 to 1, so that a dropout keeps everything
USUAL = 0.5  # in place of other random numbers; 0 is where a ReLU bends
# Keras's own losses that are one number for a whole batch, and no mean over its examples.
WHOLE_BATCH = "Dice", "Tversky", "Circle"


class Replacement(enum.Enum):
    """What a run has instead of a part of the program's step."""

    NUDGED_WEIGHTS = "nudged_weights"  # weights that differ from the program's in the last digits
    CONSTANT_NUMBERS = "constant_numbers"  # instead of random numbers in replicas
    SHARED_STATISTICS = "shared_statistics"  # of the whole batch, in BatchNormalization
    FULL_PRECISION = "full_precision"  # float32 instead of half precision
    NO_CLIPPING = "no_clipping"  # by optimizers
    NO_OWN_CLIPPING = "no_own_clipping"  # by the program, in replicas
    DENSE_GRADIENTS = "dense_gradients"  # of embeddings, whose rows may repeat
    SHARED_OVERFLOW = "shared_overflow"  # a step is left out if any replica overflows
    FULL_BATCHES = "full_batches"  # no last batch that is smaller than the others
    NO_MASK = "no_mask"  # in losses of Keras
    WHOLE_BATCH_LOSS = "whole_batch_loss"  # of a loss of Keras that is no mean over examples
    DIVIDED_LOSS = "divided_loss"  # by the replicas, of a loss that returns one number
    SAME_EXAMPLES = "same_examples"  # several times in a batch, where it is that of more devices
    SAME_PARTS = "same_parts"  # of a batch, for each replica
    ONE_PART = "one_part"  # of a batch, for each replica, which is all that one device has
    ONE_STEP = "one_step"  # in a call of a traced function, which makes several in a loop
    REDUCTION_TO_ONE_DEVICE = "reduction_to_one_device"  # instead of another way to add up replicas


class Replacements:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.chosen = {Replacement(name) for name in context.settings.replace}
        self.returned_scalar = False  # by the loss of Keras that is being computed
        self.reductions = 0  # of losses, by Keras
        self.predicts = False
        self.repeated = RepeatedNumbers(context, variables)
        self.changes = GradientChanges(context)

    def watch(self) -> None:
        import tensorflow as tf

        wrap = self.context.patches.wrap
        for module in (
            tf_internals.random_ops,
            tf_internals.stateful_random_ops,
            tf_internals.stateless_random_ops,
            tf_internals.stateless_random_ops_v2,
        ):
            for name in [name for name in vars(module) if is_drawing(name)]:
                self.watch_drawing(module, name)
        for name in [
            each for each in vars(tf_internals.candidate_sampling_ops) if is_sampler(each)
        ]:
            self.watch_sampling(tf_internals.candidate_sampling_ops, name)
        for name in ("clip_by_norm", "clip_by_global_norm", "clip_by_value"):
            self.watch_own_clipping(tf, name)
        if Replacement.FULL_BATCHES in self.chosen:
            for name in BATCHES:
                wrap(tf.data.Dataset, name, before=drop_remainder)
        self.changes.watch()
        wrap(tf.distribute.MirroredStrategy, "__init__", before=self.reduction_chosen)
        if Replacement.NUDGED_WEIGHTS in self.chosen:
            wrap(tf_internals.resource_variables.BaseResourceVariable, "__init__", after=self.nudge)
            wrap(tf_internals.values.DistributedVariable, "__init__", after=self.nudge_copies)

    def watch_keras(self, package: str, keras: Any) -> None:
        """Watches Keras 3, which is `keras`, or Keras 2, which is `tf_keras`."""
        wrap = self.context.patches.wrap
        self.watch_statistics(keras.layers.BatchNormalization)
        policies = getattr(keras, "dtype_policies", keras.mixed_precision)
        self.watch_precision(getattr(policies, "DTypePolicy", None) or policies.Policy)
        if package == "keras":
            self.watch_losses(keras)
            self.repeated.watch_keras(keras)
            self.replace_in_optimizers(keras)
            wrap(keras.optimizers.Optimizer, "apply", before=self.gradients_given, listed="grads")
            adapter = tf_internals.array_data_adapter.ArrayDataAdapter
        else:
            self.watch_mask_of_keras_2()
            kind = keras.optimizers.Optimizer
            wrap(kind, "apply_gradients", before=self.pairs_given, listed="grads_and_vars")
            adapter = tf_internals.adapters_of_keras_2.TensorLikeDataAdapter
        if Replacement.FULL_BATCHES in self.chosen:
            wrap(
                keras.Model,
                "predict",
                before=self.predict_begins,
                after=self.predict_ended,
                here=True,
            )
            wrap(adapter, "__init__", before=self.examples_given)

    def predict_begins(self, _: Call) -> None:
        self.predicts = True

    def predict_ended(self, _: Any, __: Call) -> None:
        self.predicts = False

    def examples_given(self, call: Call) -> None:
        """Leaves out the last examples; a program needs a prediction for each."""
        if not self.predicts:
            leave_out_partial_batch(call)

    def used(self, part: Part, *frames: Frame) -> None:
        if self.context.is_first("part", part):
            stack: Stack = (*frames, *self.context.provenance.stack())
            self.context.emit(PartUsed(stack, part))

    # Random numbers

    def watch_drawing(self, module: Any, name: str) -> None:
        plain, guard = vars(module)[name], self.context.guard
        signature = inspect.signature(plain)
        constant = Replacement.CONSTANT_NUMBERS in self.chosen

        def draw(*args: Any, **kwargs: Any) -> Any:
            drawn = plain(*args, **kwargs)
            if not (drawn.dtype.is_floating or "shuffle" in name or name.endswith(INTEGERS)):
                return drawn
            in_replica = guard(self.drawn)
            if in_replica and not constant and "shuffle" not in name:
                guard(self.repeated.drawn, drawn)
            if not (in_replica and constant):
                return drawn
            return constant_for(drawn, name, Call(signature, args, kwargs))

        self.context.patches.replace(module, name, as_plain(draw, plain))

    def watch_sampling(self, module: Any, name: str) -> None:
        """Watches the functions that draw classes for a loss: they return the classes, and how often each is expected."""
        plain, guard = vars(module)[name], self.context.guard
        constant = Replacement.CONSTANT_NUMBERS in self.chosen

        def sample(*args: Any, **kwargs: Any) -> Any:
            sampled = plain(*args, **kwargs)
            return first_classes(sampled) if guard(self.drawn) and constant else sampled

        self.context.patches.replace(module, name, as_plain(sample, plain))

    def drawn(self) -> bool:
        """Returns whether a replica draws numbers for its step; first values of variables are drawn once for all."""
        in_replica = replicas_now() > 0 and not makes_weight()
        if in_replica:
            self.used(Part.RANDOM_NUMBERS)
        return in_replica

    # Statistics of a part of a batch, and precision

    def watch_statistics(self, kind: Any) -> None:
        """Makes `synchronized` a property, since Keras inspects the methods of layers. Its value stays where it was."""
        shared = Replacement.SHARED_STATISTICS in self.chosen

        def read(layer: Any) -> Any:
            if "synchronized" not in vars(layer):  # Keras asks before it sets the attribute
                raise AttributeError("synchronized")
            value = vars(layer)["synchronized"]
            if not value:
                self.context.guard(self.used, Part.BATCH_STATISTICS)
            return shared or value

        def write(layer: Any, value: Any) -> None:
            vars(layer)["synchronized"] = value

        self.context.patches.replace(kind, "synchronized", property(read, write))

    def watch_precision(self, policy: Any) -> None:
        plain = tf_internals.read(policy, "_parse_name")

        def parse(instance: Any, name: Any) -> Any:
            compute, stored = plain(instance, name)
            if compute not in HALF:
                return compute, stored
            self.context.guard(self.used, Part.HALF_PRECISION)
            full = Replacement.FULL_PRECISION in self.chosen
            return ("float32", "float32") if full else (compute, stored)

        self.context.patches.replace(policy, "_parse_name", as_plain(parse, plain))

    # Gradients

    def watch_own_clipping(self, tf: Any, name: str) -> None:
        plain = vars(tf)[name]
        signature = inspect.signature(plain)
        first = next(iter(signature.parameters))

        def clip(*args: Any, **kwargs: Any) -> Any:
            clipped = plain(*args, **kwargs)
            in_replica = self.context.guard(self.clipped_by_program)
            if not in_replica or Replacement.NO_OWN_CLIPPING not in self.chosen:
                return clipped
            given = Call(signature, args, kwargs)[first]
            return (given, clipped[1]) if name == "clip_by_global_norm" else given

        self.context.patches.replace(tf, name, as_plain(clip, plain))

    def clipped_by_program(self) -> bool:
        """Tells whether a line of the program clips in a replica, after gradients were computed: a loss may clip, too."""
        after = self.context.thread.has_gradients and replicas_now() > 0
        is_own = after and self.context.provenance.call_site()[1] is Owner.USER
        if is_own:
            self.used(Part.CLIPPING)
        return is_own

    def replace_in_optimizers(self, keras: Any) -> None:
        replace = self.context.patches.replace
        if Replacement.NO_CLIPPING in self.chosen:
            owner = defining_class(keras.optimizers.Optimizer, "_clip_gradients")
            replace(owner, "_clip_gradients", lambda _, grads: grads)
        if Replacement.SHARED_OVERFLOW in self.chosen:
            owner = keras.mixed_precision.LossScaleOptimizer
            replace(owner, "check_finite", everywhere_finite(owner.check_finite))

    def gradients_given(self, call: Call) -> None:
        import tensorflow as tf

        gradients = self.unchanged(call["grads"], call["trainable_variables"] or ())
        if any(isinstance(each, tf.IndexedSlices) for each in gradients):
            self.used(Part.SPARSE_GRADIENTS)
            if Replacement.DENSE_GRADIENTS in self.chosen:
                gradients = [
                    each if each is None else tf.convert_to_tensor(each) for each in gradients
                ]
        if gradients is not call["grads"]:
            call.replace("grads", gradients)

    def pairs_given(self, call: Call) -> None:
        """Does the same for an optimizer of Keras 2, as far as its replicas are concerned."""
        gradients = [pair[0] for pair in call["grads_and_vars"]]
        variables = [pair[1] for pair in call["grads_and_vars"]]
        computed = self.unchanged(gradients, variables)
        if computed is not gradients:
            call.replace("grads_and_vars", list(zip(computed, variables)))

    def unchanged(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Sequence[Any]:
        """Returns gradients as a replica has computed them, if it has clipped them itself and another run shall not.

        Without the variables nobody knows which are theirs.
        """
        if not self.changes.are_changed(gradients):
            return gradients
        self.used(Part.CLIPPING)
        is_replaced = variables and Replacement.NO_OWN_CLIPPING in self.chosen
        return self.changes.as_computed(gradients, variables) if is_replaced else gradients

    # Losses

    def watch_losses(self, keras: Any) -> None:
        plain = vars(keras.losses.Loss)["__call__"]
        whole = Replacement.WHOLE_BATCH_LOSS in self.chosen
        unmasked = Replacement.NO_MASK in self.chosen
        divided = Replacement.DIVIDED_LOSS in self.chosen
        self.watch_reduction()

        def loss(instance: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            if self.context.guard(self.has_mask, y_pred) and unmasked:
                tf_internals.replace(y_pred, "_keras_mask", None)
            if self.context.guard(self.takes_whole_batch, instance) and whole:
                return of_whole_batch(plain, instance, y_true, y_pred)
            value = plain(instance, y_true, y_pred, sample_weight)
            is_scalar = self.context.guard(self.is_scalar, instance)
            return value / replicas_now() if is_scalar and divided else value

        self.context.patches.replace(keras.losses.Loss, "__call__", as_plain(loss, plain))
        self.context.patches.wrap(keras.losses.Loss, "__init__", after=self.loss_made)

    def loss_made(self, _: Any, call: Call) -> None:
        """Watches the `__call__` of a class of the program's own, which does the reduction itself."""
        kind = defining_class(type(call.owner), "__call__")
        if is_of_keras(kind) or not self.context.is_first("own loss", kind):
            return
        plain = vars(kind)["__call__"]
        divided = Replacement.DIVIDED_LOSS in self.chosen

        def loss(instance: Any, *args: Any, **kwargs: Any) -> Any:
            before = self.reductions
            value = plain(instance, *args, **kwargs)
            is_scalar = self.context.guard(self.is_own_scalar, plain, value, before)
            return value / replicas_now() if is_scalar and divided else value

        self.context.patches.replace(kind, "__call__", as_plain(loss, plain))

    def is_own_scalar(self, function: Any, value: Any, reductions_before: int) -> bool:
        """Tells whether the program's own loss has returned one number in a replica that Keras has not reduced."""
        is_reduced = self.reductions > reductions_before
        found = replicas_now() > 0 and tuple(value.shape) == () and not is_reduced
        line = last_line(function)
        if found and line:
            self.used(Part.SCALAR_LOSS, line)
        return found

    def watch_mask_of_keras_2(self) -> None:
        module = tf_internals.losses_of_keras_2
        plain = module.get_mask
        unmasked = Replacement.NO_MASK in self.chosen

        def get_mask(y_p: Any) -> Any:
            is_masked = self.context.guard(self.has_mask, y_p)
            return None if is_masked and unmasked else plain(y_p)

        self.context.patches.replace(module, "get_mask", as_plain(get_mask, plain))

    def has_mask(self, outputs: Any) -> bool:
        is_masked = getattr(outputs, "_keras_mask", None) is not None
        if is_masked and replicas_now() > 0:
            self.used(Part.MASK)
        return is_masked

    def takes_whole_batch(self, loss: Any) -> bool:
        kind = type(loss)
        is_such = kind.__name__ in WHOLE_BATCH and kind.__module__.startswith("keras.")
        if is_such and replicas_now() > 0:
            self.used(Part.WHOLE_BATCH_LOSS)
        return is_such

    def watch_reduction(self) -> None:
        """Notes whether a loss returns one number, which Keras 3 takes as it is."""
        module = tf_internals.keras_loss
        plain = module.reduce_weighted_values
        signature = inspect.signature(plain)

        def reduce(*args: Any, **kwargs: Any) -> Any:
            self.context.guard(self.reduced, Call(signature, args, kwargs))
            return plain(*args, **kwargs)

        self.context.patches.replace(module, "reduce_weighted_values", as_plain(reduce, plain))

    def reduced(self, call: Call) -> None:
        self.reductions += 1
        weighted = call["sample_weight"] is not None or call["mask"] is not None
        is_mean = call["reduction"] not in (None, "none", "sum")
        self.returned_scalar = is_mean and not weighted and tuple(call["values"].shape) == ()

    def is_scalar(self, loss: Any) -> bool:
        """Tells whether the program's own loss has returned one number, in a replica."""
        line = last_line(getattr(loss, "fn", None) or type(loss).call)
        is_own = line is not None and self.context.provenance.is_own(line.path)
        if not is_own or not line or replicas_now() == 0:
            return False
        self.used(Part.SCALAR_LOSS if self.returned_scalar else Part.OWN_LOSS, line)
        return self.returned_scalar

    # The sum over replicas

    def reduction_chosen(self, call: Call) -> None:
        import tensorflow as tf

        chosen = call["cross_device_ops"]
        if chosen is None:
            return
        is_own = type(chosen).__module__.partition(".")[0] != "tensorflow"
        self.used(Part.OWN_REDUCTION if is_own else Part.REDUCTION)
        if Replacement.REDUCTION_TO_ONE_DEVICE in self.chosen:
            call.replace("cross_device_ops", tf.distribute.ReductionToOneDevice())

    # Weights

    def nudge(self, _: Any, call: Call) -> None:
        """Changes the last digits of a new weight; what is 0, or a single number, stays as it is."""
        record = self.variables.record_of(call.owner)
        makers = (
            Owner.LAYER,
            Owner.TRAINER,
            Owner.USER,
        )  # `fit` makes weights that it is the first to use
        is_weight = record is not None and record.maker in makers
        if not is_weight or is_symbolic(call.owner.handle):  # that of a SavedModel has no value
            return
        if call.owner.dtype.is_floating and call.owner.shape.rank:
            (value,) = arrays_of(call.owner)
            if value.shape == tuple(call.owner.shape):  # one made in a trace has no value yet
                with outside_graphs():
                    call.owner.assign(value * nudges_of(value))

    def nudge_copies(self, _: Any, call: Call) -> None:
        """Gives all copies the value of the first."""
        first, *others = copies_of(call.owner)
        with outside_graphs():
            value = first.numpy()
            for other in others:
                if other.shape.is_compatible_with(value.shape):
                    other.assign(value)


def is_drawing(name: str) -> bool:
    """Tells whether a function draws numbers or an order: not TensorFlow's own helpers beside it, and not what seeds."""
    return (
        any(word in name for word in DRAWING)
        and not name.startswith("_")
        and not name.endswith(("_fallback", "_grad", "full_int", "full_int_v2"))
    )


def makes_weight() -> bool:
    """Tells whether a layer makes a weight now, as one does that is built in a replica."""
    frame = outer_frame()
    while frame is not None and frame.f_code.co_name != "add_weight":
        frame = frame.f_back
    return frame is not None


def is_sampler(name: str) -> bool:
    return name.endswith("_candidate_sampler") and not name.startswith("_")


def first_classes(sampled: Any) -> Any:
    """Returns the first classes in place of those that were sampled, each as likely as the others."""
    import tensorflow as tf

    classes = tf.range(tf.size(sampled[0], tf.int64))
    return type(sampled)(classes, tf.ones_like(sampled[1]), tf.ones_like(sampled[2]))


def constant_for(drawn: Any, name: str, call: Call) -> Any:
    """Returns what stands for random numbers: one number, or what was to be shuffled as it is."""
    import tensorflow as tf

    if "shuffle" in name:
        return call["value"]
    is_integer = "uniform_int" in name
    number = call["minval"] if is_integer else DRAWN if "uniform" in name else USUAL
    return tf.fill(tf.shape(drawn), tf.cast(number, drawn.dtype))


def nudges_of(value: Any) -> Any:
    import numpy as np

    pattern = np.cos(np.arange(value.size)).reshape(value.shape)
    return (1 + NUDGE * pattern).astype(value.dtype)


def drop_remainder(call: Call) -> None:
    call.replace("drop_remainder", True)


def leave_out_partial_batch(call: Call) -> None:
    """Leaves out the last arrays of examples if they fill no batch."""
    import tensorflow as tf

    size = call["batch_size"] or USUAL_BATCH
    for name in call.bound.arguments.keys() & {"x", "y", "sample_weight", "sample_weights"}:
        if call[name] is not None:
            whole = tf.nest.map_structure(
                lambda array: array[: len(array) // size * size or len(array)], call[name]
            )
            call.replace(name, whole)


def everywhere_finite(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the check of gradients over all replicas, instead of in each."""

    def check(instance: Any, grads: Any) -> Any:
        import tensorflow as tf

        finite = plain(instance, grads)
        if replicas_now() < 2:
            return finite
        context = tf.distribute.get_replica_context()
        overflows = context.all_reduce("SUM", tf.cast(tf.logical_not(finite), tf.float32))
        return overflows < 0.5

    checked: Callable[..., Any] = as_plain(check, plain)
    return checked


def last_line(function: Any) -> Frame | None:
    """Returns the last line of a function's code, which returns its result in most; None if it is not Python's."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        function = vars(type(function)).get("__call__")
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    lines = [line for _, line in dis.findlinestarts(code) if line]
    return Frame(os.path.abspath(code.co_filename), max(lines), code.co_name)


def of_whole_batch(plain: Callable[..., Any], loss: Any, y_true: Any, y_pred: Any) -> Any:
    """Returns the part of a replica of the loss of all examples; those of the other replicas are gathered."""
    import tensorflow as tf

    replicas = replicas_now()
    if replicas < 2:
        return plain(loss, y_true, y_pred)
    context = tf.distribute.get_replica_context()
    labels = context.all_gather(tf.convert_to_tensor(y_true), axis=0)
    return plain(loss, labels, context.all_gather(y_pred, axis=0)) / replicas
