"""Observes optimizers: the gradients that they get, how many steps they have taken, and their learning rates."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from .context import Context
from .events import (
    GradientComputed,
    GradientsApplied,
    LearningRateRestored,
    NothingTrained,
    OptimizerReplaced,
    OptimizerState,
    Sample,
    Stack,
    TrainableLeftOut,
    UsedOptimizerCompiled,
)
from .identity_map import IdentityMap
from .patching import Call, defining_class, is_of_keras
from .stopped_gradients import StoppedGradients
from .stored_values import attributes_of
from .variables import Variables, arrays_of, outside_graphs, variable_in, weights_of

SAME_RATE = 1e-6  # relative
BRANCHES = "cond_", "switch_case_", "while_"  # how TensorFlow names such graphs
LONGEST_RATE = 400  # characters of a schedule's text
Rates = list[tuple[Any, float]]


class Used:
    """An optimizer that has been used. It is not kept, since a search over models would keep all of them with it.

    Its number of steps is, so that a save can tell how far it had come when it is gone.
    """

    def __init__(self, optimizer: Any) -> None:
        self.reference, self.kind = weakref.ref(optimizer), type(optimizer).__name__
        self.trains: tuple[int, ...] = ()
        self.iterations: Any = iterations_of(optimizer)
        self.variables: tuple[int, ...] = ()  # numbers
        self.config: dict[str, Any] = {}
        self.is_known = False  # its variables, as they are after a step

    @property
    def steps(self) -> int:
        optimizer = self.reference()
        if optimizer is not None:
            self.iterations = iterations_of(optimizer)
        return steps_in(self.iterations)


class Optimizers:
    def __init__(self, context: Context, variables: Variables) -> None:
        self.context, self.variables = context, variables
        self.stopped_gradients = StoppedGradients(context, variables)
        self.used: dict[int, Used] = {}  # by serial number
        self.before: dict[int, dict[int, Sample]] = {}  # values of what they train, before they did
        self.made_at: IdentityMap[Stack] = IdentityMap()
        self.first_steps: dict[int, int] = {}  # that they had taken when they were first used
        self.before_update: list[Callable[[], None]] = []  # called before gradients are applied
        self.after_training: IdentityMap[dict[int, Sample]] = IdentityMap()  # values by model

    def watch(self) -> None:
        import tensorflow as tf

        self.context.patches.wrap(tf.GradientTape, "gradient", after=self.differentiated)
        self.stopped_gradients.watch()
        for name in ("restore", "read"):
            self.context.patches.wrap(
                tf.train.Checkpoint,
                name,
                before=self.restore_begins,
                after=self.rates_restored,
                group="rates",
            )

    def watch_keras(self, keras: Any) -> None:
        wrap = self.context.patches.wrap
        kind = keras.optimizers.Optimizer
        wrap(kind, "__init__", after=self.made)
        wrap(kind, "apply_gradients", before=self.pairs_applied, listed="grads_and_vars")
        if hasattr(kind, "apply"):
            wrap(kind, "apply", before=self.gradients_applied)
        wrap(keras.Model, "compile", before=self.compile_begins, after=self.compiled)
        wrap(keras.Model, "compile", before=self.rate_given, after=self.rates_restored)
        wrap(keras.Model, "fit", after=self.fitted, group="fit")
        wrap(
            keras.Model,
            "load_weights",
            before=self.load_begins,
            after=self.rates_restored,
            group="rates",
        )

    def made(self, _: Any, call: Call) -> None:
        self.made_at[call.owner] = self.context.provenance.stack()

    # States

    def states(self) -> tuple[OptimizerState, ...]:
        return tuple(self.state_of_used(used) for used in list(self.used.values()))

    def state_of(self, optimizer: Any, trains: tuple[int, ...]) -> OptimizerState:
        """Returns how far an optimizer has come."""
        used = self.used.get(self.context.serial(optimizer)) or Used(optimizer)
        return replace(self.state_of_used(used), trains=trains)

    def look_at(self, used: Used) -> None:
        """Keeps what is known of an optimizer that exists; also while a graph is being made, in which values cannot be read."""
        optimizer = used.reference()
        if optimizer is None:
            return
        with outside_graphs():
            # The one in a LossScaleOptimizer is what clips, and has the learning rate.
            used.config = config_of(getattr(optimizer, "inner_optimizer", optimizer))
            used.config["learning_rate"] = str(used.config.get("learning_rate"))[:LONGEST_RATE]
        used.variables = self.variables.numbers_of(variables_of(optimizer))

    def state_of_used(self, used: Used) -> OptimizerState:
        self.look_at(used)
        config = used.config
        return OptimizerState(
            kind=used.kind,
            trains=used.trains,
            steps=used.steps,
            variables=used.variables,
            learning_rate=config["learning_rate"],
            clipnorm=float_or_none(config.get("clipnorm")),
            global_clipnorm=float_or_none(config.get("global_clipnorm")),
            clipvalue=float_or_none(config.get("clipvalue")),
        )

    def updates(self) -> int:
        """Returns the number of updates by the optimizer that made most of them, since it was first used."""
        for used in self.used.values():
            if not used.is_known and used.steps:
                self.look_at(used)
                used.is_known = True
        return max(
            (used.steps - self.first_steps.get(serial, 0) for serial, used in self.used.items()),
            default=0,
        )

    def trained_by(self, optimizer: Any) -> tuple[int, ...]:
        serial = self.context.serials.get(optimizer)
        return self.used[serial].trains if serial in self.used else ()

    def variables_of(self, serials: Iterable[int]) -> tuple[int, ...]:
        """Returns the numbers of the variables that belong to used optimizers."""
        for serial in serials:
            self.look_at(self.used[serial])
        return tuple(sorted({n for serial in serials for n in self.used[serial].variables}))

    def values_before(self, serials: Iterable[int]) -> dict[int, Sample]:
        """Returns the values of what used optimizers train, before their first steps."""
        return {
            number: value for serial in serials for number, value in self.before[serial].items()
        }

    # Gradients

    def differentiated(self, result: Any, call: Call) -> None:
        import tensorflow as tf

        self.context.gradients_computed()
        gradients = tf.nest.flatten(result)
        sources = tf.nest.flatten(call["sources"])
        paired = list(zip(sources, gradients)) if len(sources) == len(gradients) else []
        disconnected, connected = (
            self.variables.differentiated(
                source for source, gradient in paired if (gradient is None) == is_none
            )
            for is_none in (True, False)
        )
        missing = sum(gradient is None for gradient in gradients)
        site, _ = self.context.provenance.call_site()
        if self.context.is_first("gradient", site, missing, disconnected):
            targets = tf.nest.flatten(call["target"])
            among = self.stopped_gradients.among
            stopped = self.context.guard_always(among, disconnected, targets) or ()
            stack, total = self.context.provenance.stack(), len(gradients)
            self.context.emit(
                GradientComputed(stack, missing, total, disconnected, connected, stopped)
            )

    def pairs_applied(self, call: Call) -> None:
        pairs = call["grads_and_vars"]
        self.applied(call.owner, [pair[0] for pair in pairs], [pair[1] for pair in pairs])

    def gradients_applied(self, call: Call) -> None:
        if not isinstance(call["grads"], Iterator):  # which Keras refuses
            self.applied(call.owner, list(call["grads"]), call["trainable_variables"] or ())

    def applied(self, optimizer: Any, gradients: list[Any], trained: Iterable[Any]) -> None:
        self.context.update_made()
        serial, known = self.context.serial(optimizer), self.trained_by(optimizer)
        numbers = self.variables.numbers_of(trained)
        if serial not in self.used:
            self.before[serial] = self.variables.values_of(numbers)
            self.used[serial] = Used(optimizer)
        self.used[serial].trains = tuple(sorted({*numbers, *known}))
        for react in self.before_update:
            react()
        site, _ = self.context.provenance.call_site()
        if self.context.is_first("applied", serial, site, len(gradients)):
            state = self.state_of(optimizer, numbers or known)
            self.first_steps.setdefault(serial, state.steps)
            missing = sum(gradient is None for gradient in gradients)
            stack = self.context.provenance.stack()
            made_at = self.made_at.get(optimizer) or ()
            accumulated = getattr(optimizer, "gradient_accumulation_steps", None) or 1
            self.context.emit(
                GradientsApplied(
                    stack, len(gradients), missing, state, made_at, accumulated, is_in_branch()
                )
            )

    def fitted(self, _: Any, call: Call) -> None:
        self.after_training[call.owner] = self.variables.trained_values(call.owner)
        if not call.owner.trainable_variables:
            tracked = self.variables.numbers_of(weights_of(call.owner))
            weights = [each for each in attributes_of(call.owner) if each.dtype.is_floating]
            attributes = self.variables.numbers_of(weights)  # Keras 2 keeps counters there
            if attributes := tuple(each for each in attributes if each not in tracked):
                self.context.emit(NothingTrained(self.context.provenance.stack(), attributes))

        self.report_left_out(call.owner)

    def report_left_out(self, model: Any) -> None:
        """Reports what became trainable after `fit` had made its graph; a step of the program's own may leave out others."""
        step = defining_class(type(model), "train_step")
        trained = self.trained_by(getattr(model, "optimizer", None))
        left = {*self.variables.numbers_of(model.trainable_variables)} - {*trained}
        if trained and left and is_of_keras(step):
            stack = self.context.provenance.stack()
            self.context.emit(TrainableLeftOut(stack, tuple(sorted(left))))

    def compile_begins(self, call: Call) -> None:
        optimizer = getattr(call.owner, "optimizer", None)
        if optimizer is not None and hasattr(optimizer, "iterations"):
            trainable = call.owner.trainable_variables
            slots = variables_of(optimizer)
            # A loaded optimizer may have trained less: layers that were frozen before the file was saved.
            known = trainable if has_slots_for(slots, trainable) else ()
            numbers = self.trained_by(optimizer) or self.variables.numbers_of(known)
            loss = described(getattr(call.owner, "loss", None))
            call.state = optimizer, self.state_of(optimizer, numbers), loss

    def report_replaced(self, model: Any, before: Any, state: OptimizerState, loss: str) -> None:
        new = model.optimizer
        if new is before or not state.steps or not hasattr(new, "iterations"):
            return
        values = self.variables.trained_values(model)
        unchanged = self.after_training.get(model) in (None, values)
        now = self.state_of(new, tuple(sorted(values)))
        same_task = described(model.loss) == loss and {*values} == {*state.trains}
        stack = self.context.provenance.stack()
        self.context.emit(
            OptimizerReplaced(
                stack, state, now.kind, now.learning_rate, unchanged and same_task, now.trains
            )
        )

    def compiled(self, _: Any, call: Call) -> None:
        """Reports an optimizer that is compiled into a model with more variables than it has trained."""
        if call.state:
            self.report_replaced(call.owner, *call.state)
        known = self.trained_by(call.owner.optimizer)
        trainable = call.owner.trainable_variables if call.owner.built else ()
        new = {*self.variables.numbers_of(trainable)} - {*known}
        if known and new:
            stack = self.context.provenance.stack()
            self.context.emit(UsedOptimizerCompiled(stack, tuple(sorted(new))))

    # Learning rates

    def restore_begins(self, call: Call) -> None:
        import tensorflow as tf

        call.state = rates_of(tf.train.TrackableView(call.owner).descendants())

    def rate_given(self, call: Call) -> None:
        """Looks at the optimizer that a model gets: a checkpoint that the model was loaded from before may fill it, too."""
        call.state = rates_of([call["optimizer"]])

    def load_begins(self, call: Call) -> None:
        call.state = rates_of([getattr(call.owner, "optimizer", None)])

    def rates_restored(self, _: Any, call: Call) -> None:
        for optimizer, before in call.state or ():
            after = rate_of(optimizer)
            if after is not None and abs(before - after) > SAME_RATE * abs(before):
                stack = self.context.provenance.stack()
                numbers = self.variables.numbers_of(variables_of(optimizer))
                self.context.emit(LearningRateRestored(stack, before, after, numbers))


def is_in_branch() -> bool:
    """Tells whether the graph of a condition or of a loop is being made."""
    import tensorflow as tf

    name = getattr(tf.compat.v1.get_default_graph(), "name", "")
    return not tf.executing_eagerly() and name.startswith(BRANCHES)


def config_of(optimizer: Any) -> dict[str, Any]:
    """Returns the settings of an optimizer; of a schedule that cannot be saved, its class."""
    try:
        return dict(optimizer.get_config())
    except NotImplementedError:
        names = ("clipnorm", "global_clipnorm", "clipvalue")
        config = {name: getattr(optimizer, name, None) for name in names}
        return {**config, "learning_rate": type(schedule_of(optimizer)).__name__}


def schedule_of(optimizer: Any) -> Any:
    rate = "_learning_rate"
    return vars(optimizer).get(rate) or getattr(optimizer, "learning_rate", None)


def iterations_of(optimizer: Any) -> Any:
    """Returns the count of steps: a variable, or of a Keras 3 optimizer that accumulates gradients a tensor of the count now."""
    with outside_graphs():
        return optimizer.iterations


def steps_in(iterations: Any) -> int:
    return int(arrays_of(variable_in(iterations))[0])


def variables_of(thing: Any) -> list[Any]:
    """Returns the variables of a layer or an optimizer; none of a model of Keras 2 that is not built."""
    try:
        listed = getattr(thing, "variables", None)
        return list((listed() if callable(listed) else listed) or ())
    except ValueError:
        return []


def has_slots_for(slots: list[Any], trained: Iterable[Any]) -> bool:
    """Tells whether an optimizer keeps as much for each of these variables, by their shapes, and no more; or nothing yet."""
    kept = Counter(tuple(slot.shape) for slot in slots if len(slot.shape))
    needed = Counter(tuple(each.shape) for each in trained if len(each.shape))
    of_each = sum(kept.values()) // sum(needed.values()) if needed else 0
    return not kept or kept == Counter({shape: of_each * needed[shape] for shape in needed})


def described(loss: Any) -> str:
    """Returns a text that is the same for losses that are."""
    if hasattr(loss, "get_config") and not isinstance(loss, type):
        return f"{type(loss).__name__} {loss.get_config()}"
    return str(getattr(loss, "__qualname__", loss))


def float_or_none(value: Any) -> float | None:
    return None if value is None else float(value)


def rates_of(things: Iterable[Any]) -> Rates:
    optimizers = [thing for thing in things if hasattr(thing, "apply_gradients")]
    rates = [(optimizer, rate_of(optimizer)) for optimizer in optimizers]
    return [(optimizer, rate) for optimizer, rate in rates if rate is not None]


def rate_of(optimizer: Any) -> float | None:
    """Returns the learning rate that is kept in a variable; None for a schedule, which no file can replace."""
    with outside_graphs():
        rate = config_of(optimizer).get("learning_rate")
    is_number = isinstance(rate, (int, float)) or hasattr(rate, "dtype")
    return float(rate) if rate is not None and is_number else None
