"""Observes weights that are copied from one model or layer to another, and copies that are used when they are outdated."""

from __future__ import annotations

import copy as copy_module
import weakref
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ..base import tf_internals
from .context import Context
from .events import (
    CalledAlike,
    CalledApart,
    CalledInTurn,
    CopiedToItself,
    CopyCalled,
    CopyMoved,
    ModelUsed,
    OutdatedCopyUsed,
    Sample,
    Stack,
    WeightsCopied,
)
from .identity_map import IdentityMap
from .patching import Call
from .provenance import HERE, outer_frame
from .stopped_gradients import Ways, is_symbolic, key_of
from .training import outside_replicas
from .variables import Variables, copies_of, variable_in, weights_of

MOST_COPIES = 3  # of one pair that are reported
MOST_CALLS = 100  # of one copy whose lines are looked at
MOST_USES = 20  # of one model whose lines are looked at, after something was trained
MOST_CONFIGS = 64  # the last ones that the program has asked for
MOST_INPUTS = 8  # the last ones of a copy or its source
MOST_COMPARED = 12  # calls of one of them whose inputs are looked at
MOST_LOOKS = 24  # at a copy that has other values than its source, each after a step
LEAST_ENTRIES = 8  # by which a copy is seen to move
SAME_SHARE = 1e-3  # of two entries that move
# What makes a layer from a configuration, and what writes one; a layer's own function may call that of its base.
MAKES = {"from_config", "deserialize", "deserialize_keras_object", "model_from_json"}
WRITES = {"get_config", "serialize", "serialize_keras_object", "to_json"}


@dataclass
class Copy:
    """The last copy that an object got."""

    source: weakref.ref[Any]
    location: Stack
    function: str
    values: dict[int, Sample]  # if they are those of the source
    target: tuple[int, ...] = ()  # its variables
    times: int = 1
    used: Stack = ()  # where it was last used after its source was trained
    in_training: bool = False  # it is called while something else is trained, as a teacher
    looks: int = 0  # after steps, while it has not moved
    # What it and its source had at the last look; nothing if the copy has the values of its source
    own: tuple[Sample, ...] = ()
    of_source: tuple[Sample, ...] = ()
    given: tuple[int, ...] = ()  # the variables of its source


class Copies:
    def __init__(self, context: Context, variables: Variables, made_at: IdentityMap[Stack]) -> None:
        self.context, self.variables = context, variables
        self.made_at = made_at  # of each model
        self.taken: tuple[int, weakref.ref[Any], weakref.ref[Any]] | None = (
            None  # the place of an array among the weights, the array, and their owner
        )
        # Whose they are, and their names of arguments
        self.configs: deque[tuple[weakref.ref[Any], set[str]]] = deque(maxlen=MOST_CONFIGS)
        # Layers that were made from the configuration of others, until they have weights
        self.pending: IdentityMap[tuple[weakref.ref[Any], Stack]] = IdentityMap()
        self.inputs: IdentityMap[deque[Any]] = IdentityMap()  # of copies and their sources
        self.copies: IdentityMap[Copy] = IdentityMap()
        self.trained: IdentityMap[bool] = (
            IdentityMap()
        )  # and, since then, not used: models after `fit`
        self.fitting = 0
        # Keras's class, of each Keras that is imported
        self.layers: tuple[type, ...] = ()
        self.models: tuple[type, ...] = ()

    def watch_keras(self, package: str, keras: Any) -> None:
        wrap = self.context.patches.wrap
        for kind in (keras.layers.Layer, keras.Model):
            for name, after in (
                ("get_weights", self.weights_taken),
                ("set_weights", self.weights_set),
            ):
                if name in vars(kind):
                    wrap(kind, name, after=after)
        wrap(keras.Model, "fit", before=self.fit_begins, after=self.fitted, group="copies")
        for name in ("predict", "save"):
            wrap(keras.Model, name, after=self.used, group="copies")
        wrap(keras.Model, "evaluate", after=self.evaluated, group="copies")
        wrap(keras.Model, "__call__", after=self.called, here=True)
        self.context.patches.wrap_everywhere(
            package, keras.models.clone_model, self.cloned, group="clone"
        )
        self.layers += (keras.layers.Layer,)
        self.models += (keras.Model,)
        wrap(keras.layers.Layer, "get_config", after=self.config_taken)
        is_keras_3 = package == "keras"
        module = tf_internals.functional if is_keras_3 else tf_internals.functional_of_keras_2
        for kind in (module.Functional, keras.Sequential):
            wrap(kind, "get_config", after=self.config_taken)
        self.context.patches.wrap_new(keras.layers.Layer, self.layer_made)
        for kind in (keras.Model, keras.Sequential):
            wrap(kind, "from_config", after=self.made_from_config)

    def watch(self) -> None:
        self.context.patches.wrap(
            copy_module,
            "deepcopy",
            after=self.deepcopied,
            unless=lambda value: not isinstance(value, self.layers),
        )
        self.context.after_step.append(self.look_at_copies)

    # Copying

    def weights_taken(self, weights: Any, call: Call) -> None:
        import numpy as np

        arrays = [i for i, each in enumerate(weights) if isinstance(each, np.ndarray)]
        if arrays:  # a single number may be no array
            place = arrays[0]
            self.taken = place, weakref.ref(weights[place]), weakref.ref(call.owner)

    def weights_set(self, _: Any, call: Call) -> None:
        weights = call["weights"]
        if self.taken is None:
            return
        place, array, owner = self.taken
        if len(weights) > place and weights[place] is array():
            source = owner()
            if source is call.owner:
                self.copied_to_itself()
            elif source is not None:
                self.copied("set_weights", source, call.owner)

    def copied_to_itself(self) -> None:
        stack = self.context.provenance.stack()
        if stack and self.context.is_first("copied to itself", stack):
            self.context.emit(CopiedToItself(stack))

    def cloned(self, clone: Any, call: Call) -> None:
        self.copied("clone_model", call["model"], clone)

    def config_taken(self, config: Any, call: Call) -> None:
        """Remembers whose configuration a line of the program asks for, not what Keras asks for when it saves."""
        if asked_for_config(self.context.provenance.is_own):
            self.configs.append((weakref.ref(call.owner), {*config} - {"name"}))

    def layer_made(self, layer: Any) -> None:
        """Notes a layer or model that a line of the program makes from the configuration of one that exists."""
        config = self.configs and config_given(self.context.provenance.is_own)
        if not isinstance(config, dict):
            return
        known = [(ref(), arguments) for ref, arguments in self.configs]
        alike: list[Any] = [each for each in known if type(each[0]) is type(layer)]
        named = [each for each, _ in alike if each.name == config.get("name")]
        # With another name it is made from what was asked for last; a functional model has emptied it
        is_whole = not config or known[-1][1] <= {*config}
        last = [each for each, _ in alike if each is known[-1][0] and is_whole]
        if source := next(reversed(named or last), None):
            self.pending[layer] = weakref.ref(source), self.context.provenance.stack()
            self.watch_calls(layer)

    def watch_calls(self, layer: Any) -> None:
        """Watches the calls of all layers, once there is a copy of one; those of models are watched anyway."""
        kind = next(each for each in self.layers if isinstance(layer, each))
        if not isinstance(layer, self.models) and self.context.is_first("calls", kind):
            self.context.patches.wrap(kind, "__call__", after=self.layer_called)

    def made_from_config(self, model: Any, _: Call) -> None:
        self.settle(model)

    def settle(self, layer: Any) -> None:
        """Reports a layer that was made from a configuration, once it and its source have weights of the same shapes."""
        known = self.pending.get(layer)
        source: Any = known[0]() if known else None
        if not known or source is None:
            return
        made = [self.variables.numbers_of(weights_of(thing)) for thing in (source, layer)]
        if all(made):  # a layer may have weights without values yet
            shapes = [
                [tuple(each.shape) for each in weights_of(thing)] for thing in (source, layer)
            ]
            del self.pending[layer]
            if shapes[0] == shapes[1]:
                self.copied("from_config", source, layer, known[1])

    def deepcopied(self, result: Any, call: Call) -> None:
        if isinstance(call["x"], self.layers):
            self.copied("deepcopy", call["x"], result)

    def copied(self, function: str, source: Any, target: Any, made_at: Stack = ()) -> None:
        numbers = [self.variables.numbers_of(trained_or_all(each)) for each in (source, target)]
        known, stack = self.copies.get(target), made_at or self.context.provenance.stack()
        if (
            known and known.function == function
        ):  # it is kept up to date: its values are of no matter
            known.times += 1
            equal = False
        else:
            before, after = map(self.variables.values_of, numbers)
            equal = bool(before) and list(before.values()) == list(after.values())
            values = self.variables.trained_values(target) if equal else {}
            copy = Copy(weakref.ref(source), stack, function, values, numbers[1])
            copy.given = numbers[0]
            if not equal and len(numbers[0]) == len(numbers[1]):
                copy.own, copy.of_source = map(self.samples_of, (copy.target, copy.given))
            self.copies[target] = copy
        if self.context.count("copied", self.context.serial(target)) <= MOST_COPIES:
            self.context.emit(WeightsCopied(stack, function, numbers[0], numbers[1], equal))

    # Copies that follow their sources

    def samples_of(self, numbers: tuple[int, ...]) -> tuple[Sample, ...]:
        values = self.variables.values_of(numbers)
        return tuple(values.get(number, Sample()) for number in numbers)

    def look_at_copies(self) -> None:
        """Reports the first step after which a copy with other values than its source has moved towards it."""
        for _, copy in self.copies.items():
            if not copy.own or copy.looks == MOST_LOOKS:
                continue
            copy.looks += 1
            own, of_source = self.samples_of(copy.target), self.samples_of(copy.given)
            if own != copy.own:
                shares = (share_moved(copy.own, own, each) for each in (of_source, copy.of_source))
                if share := next(filter(None, shares), None):
                    self.context.emit(CopyMoved(copy.target, share))
                copy.own = ()
            copy.of_source = of_source

    # Use

    def fit_begins(self, call: Call) -> None:
        self.fitting += 1

    def fitted(self, _: Any, call: Call) -> None:
        self.fitting -= 1
        self.trained[call.owner] = True

    def called(self, _: Any, call: Call) -> None:
        self.layer_called(None, call)
        if not self.fitting:
            self.source_used(None, call)
            if outside_replicas():
                self.report_use(call.owner)

    def layer_called(self, _: Any, call: Call) -> None:
        self.settle(call.owner)
        copy = self.copies.get(call.owner)
        if copy is not None:
            copy.in_training |= bool(self.fitting)
            self.report_call(copy, call.owner)
        self.compare_inputs(call)

    def compare_inputs(self, call: Call) -> None:
        """Reports a copy that is called with the same tensors as its source, beside it, or with what comes from it."""
        owner = call.owner
        copies = [(each, copy.source(), copy) for each, copy in self.copies.items()]
        pairs = [each for each in copies if any(owner is one for one in each[:2])]
        waiting = [(each, known[0]()) for each, known in self.pending.items()]
        if not pairs and not any(owner is one for each in waiting for one in each):
            return
        if self.context.count("inputs", self.context.serial(owner)) > MOST_COMPARED:
            return
        known = self.inputs.setdefault(owner, lambda: deque(maxlen=MOST_INPUTS))
        known.append(given := inputs_of(call))
        for target, source, copy in pairs:
            other = source if owner is target else target
            earlier = [each for each in self.inputs.get(other) or () if each.graph == given.graph]
            if any(given.keys & each.keys for each in earlier):
                self.report_first(CalledAlike(copy.target))
            if earlier and given.graph:
                is_led = handles_of(other) & given.handles
                self.report_first((CalledInTurn if is_led else CalledApart)(copy.target))

    def report_first(self, event: CalledAlike | CalledApart | CalledInTurn) -> None:
        if self.context.is_first(event):
            self.context.emit(event)

    def report_use(self, model: Any) -> None:
        serial = self.context.serial(model)
        if not self.variables.something_trained or self.context.count("used", serial) > MOST_USES:
            return
        stack = self.context.provenance.stack()
        if stack and self.context.is_first("used", serial, stack):
            numbers = self.variables.numbers_of
            made_at = self.made_at.get(model) or ()
            self.context.emit(
                ModelUsed(stack, numbers(model.variables), numbers(trained_or_all(model)), made_at)
            )

    def report_call(self, copy: Copy, owner: Any) -> None:
        if self.context.count("copy called", copy.target) <= MOST_CALLS:
            stack = self.context.provenance.stack()
            if stack and self.context.is_first("copy called", copy.target, stack):
                trainable = bool(owner.trainable_variables)
                taped = bool(tf_internals.record.could_possibly_record())
                self.context.emit(CopyCalled(stack, copy.target, trainable, taped))

    def source_used(self, _: Any, call: Call) -> None:
        if self.trained.get(call.owner):
            self.trained[call.owner] = False

    def evaluated(self, _: Any, call: Call) -> None:
        self.source_used(None, call)
        if not self.fitting:
            self.report_use(call.owner)

    def used(self, _: Any, call: Call) -> None:
        self.evaluated(None, call)
        copy = self.copies.get(call.owner)
        is_old = copy is not None and copy.values and self.trained.get(copy.source())
        if copy is not None and is_old and self.variables.trained_values(call.owner) == copy.values:
            copy.used = self.context.provenance.stack()

    def report_outdated(self) -> None:
        """Reports at the end the copies that were used instead of what they were copied from."""
        for _, copy in self.copies.items():
            is_unused = self.trained.get(copy.source())
            if copy.used and is_unused and copy.times == 1 and not copy.in_training:
                event = OutdatedCopyUsed(
                    copy.used, copy.function, copy.location, tuple(copy.values)
                )
                self.context.emit(event)


def trained_or_all(thing: Any) -> Any:
    """Returns what is trained of a layer or a model; all of its weights if the program has frozen them."""
    return thing.trainable_variables or thing.weights


def asked_for_config(is_own: Any) -> bool:
    """Tells whether a line of the program asks for the configuration that is being made now."""
    frame: FrameType | None = outer_frame()
    outermost = "get_config"  # which has returned, and is on no stack
    while frame is not None:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name != "get_config" and is_own(path):
            return outermost in WRITES
        outermost = outermost if path.startswith(HERE) else name
        frame = frame.f_back
    return False


def config_given(is_own: Any) -> Any:
    """Returns what a line of the program makes the layer from that is being made now; None if that is done otherwise.

    Layers that this one consists of are made from configurations within its own; a class may call the function of its base.
    """
    frame: FrameType | None = outer_frame()
    configs: list[Any] = []
    outermost = ""
    while frame is not None:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name != "from_config" and is_own(path):
            break
        if not path.startswith(HERE):
            if name == "from_config":
                configs[len(configs) - (outermost == name) :] = [frame.f_locals.get("config")]
            outermost = name
        frame = frame.f_back
    return configs[0] if len(configs) == 1 and outermost in MAKES else None


@dataclass(frozen=True)
class Inputs:
    """What a layer is called with: the graph, what tells the tensors apart, and the variables that lead to them."""

    graph: int  # 0 outside of graphs
    keys: frozenset[Any]
    handles: frozenset[int]  # nothing outside of graphs


def inputs_of(call: Call) -> Inputs:
    import tensorflow as tf

    given = [
        each for each in tf.nest.flatten((call.args[1:], call.kwargs)) if hasattr(each, "dtype")
    ]
    symbolic = [each for each in given if is_symbolic(each)]
    graph = id(symbolic[0].graph) if symbolic else 0
    keys = frozenset(key_of(each) if is_symbolic(each) else id(each) for each in given)
    return Inputs(graph, keys, frozenset(id(each) for each in Ways(()).leading_to(symbolic)))


def handles_of(layer: Any) -> set[int]:
    return {
        id(getattr(copy, "handle", None))
        for weight in layer.weights
        for copy in copies_of(variable_in(weight))
    }


def share_moved(
    before: tuple[Sample, ...], after: tuple[Sample, ...], source: tuple[Sample, ...]
) -> float | None:
    """Returns which share of the way to other values all entries have gone; None if they have not gone the same share."""
    import numpy as np

    arrays = [
        np.array([entry for each in samples for entry in each.entries])
        for samples in (before, after, source)
    ]
    if len({array.shape for array in arrays}) != 1:
        return None
    old, new, goal = arrays
    apart = np.abs(goal - old) > SAME_SHARE
    if np.sum(apart) < LEAST_ENTRIES:
        return None
    shares = (new - old)[apart] / (goal - old)[apart]
    share = float(np.median(shares))
    is_same = np.allclose(shares, share, rtol=0, atol=10 * SAME_SHARE)
    return share if is_same and share > SAME_SHARE else None
