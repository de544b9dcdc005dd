"""Every function that the observer wraps, called by position and by keyword: it does what it does, and is seen alike."""

import argparse
import copy
import importlib
import inspect
import io
import logging
import optparse
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from absl import flags
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer import events
from strategy_clinic.observer.context import Settings
from strategy_clinic.observer.observer import Observer
from strategy_clinic.observer.patching import INHERITED, Call
from strategy_clinic.observer.replacements import is_drawing, is_sampler

pytestmark = pytest.mark.slow

NUMBERS = np.ones((4, 3), "float32")
TARGETS = np.ones((4, 1), "float32")


@dataclass
class Case:
    """A call, what the observer has then seen, and the errors where this process lacks what the call needs."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    seen: Callable[[Observer, list[events.Event]], Any]
    may_raise: tuple[type[Exception], ...] = ()


def told(kind, *fields):
    """Reads fields of the events of one kind; of a path its name."""

    def seen(_, all_events):
        chosen = [event for event in all_events if type(event) is kind]
        values = [[getattr(event, field) for field in fields] for event in chosen]
        return [[Path(v).name if isinstance(v, str) else v for v in row] for row in values]

    return seen


# Cases by the name of the hook; each gets the objects below and returns a new call.


def variable_cases():
    def new_variable(t, kind, *names):
        v = t.tf.Variable(1.0)
        given = {name: getattr(v, name, None) for name in names}
        return Case(kind, given, told(events.VariableMade, "dtype"))

    def write(t, owner, name, variable):
        function = partial(getattr(owner, name), variable)
        amount = "value" if name == "assign" or "TPU" in owner.__name__ else "delta"
        return Case(function, {amount: 1.0}, told(events.VariableWritten, "writer"))

    inner = ("trainable", "shape", "dtype", "handle")
    cases = {
        "tensorflow.BaseResourceVariable.__init__": lambda t: new_variable(
            t, t.internals.resource_variables.BaseResourceVariable, *inner
        ),
        "tensorflow.BaseResourceVariable._read_variable_op": lambda t: Case(
            t.tf.Variable(1.0)._read_variable_op,
            {"no_copy": False},
            told(events.VariableRead),
        ),
        "tensorflow.DistributedVariable.__init__": lambda t: Case(
            type(t.mirrored),
            {
                "strategy": t.strategy,
                "values": t.mirrored.values,
                "aggregation": t.mirrored.aggregation,
            },
            told(events.VariableMade, "copies"),
        ),
        "tensorflow.AggregatingVariable.__init__": lambda t: Case(
            t.internals.ps_values.AggregatingVariable,
            {
                "strategy": t.strategy,
                "v": t.tf.Variable(1.0),
                "aggregation": t.tf.VariableAggregation.SUM,
            },
            lambda _, seen: any(type(e) is events.VariableSharedCentrally for e in seen),
        ),
        "tensorflow.CachingVariable.__init__": lambda t: Case(
            t.internals.ps_values.CachingVariable,
            {"v": t.tf.Variable(1.0)},
            lambda _, seen: any(type(e) is events.VariableSharedCentrally for e in seen),
        ),
    }
    for module, kind, variable in (
        ("resource_variables", "BaseResourceVariable", "plain"),
        ("resource_variables", "ResourceVariable", "plain"),
        ("tpu_values", "TPUDistributedVariable", "on_tpu"),
        ("tpu_values", "TPUMirroredVariable", "mirrored_on_tpu"),
    ):
        for name in ("assign", "assign_add", "assign_sub"):
            cases[f"tensorflow.{kind}.{name}"] = (
                lambda t, module=module, kind=kind, name=name, variable=variable: write(
                    t, getattr(getattr(t.internals, module), kind), name, getattr(t, variable)
                )
            )
    return cases


def strategy_cases():
    return {
        "tensorflow.StrategyBase.__init__": lambda t: Case(
            t.tf.distribute.Strategy,
            {"extended": t.strategy.extended},
            told(events.StrategyMade, "name"),
        ),
        "tensorflow.StrategyBase.run": lambda t: Case(
            t.strategy.run,
            {"fn": lambda x: x, "args": (3,), "kwargs": None, "options": None},
            lambda o, _: (bool(o.context.provenance.replica_caller), o.training.run_result[:1]),
        ),
        "tensorflow.CollectiveAllReduceStrategy.__init__": lambda t: Case(
            t.tf.distribute.MultiWorkerMirroredStrategy,
            {"cluster_resolver": "none", "communication_options": None},
            told(events.ClusterStrategyRequested, "strategy"),
            (ValueError,),  # a real one would set this process up for a cluster
        ),
        "tensorflow.ParameterServerStrategyV2.__init__": lambda t: Case(
            t.tf.distribute.ParameterServerStrategy,
            {"cluster_resolver": None},
            told(events.ClusterStrategyRequested, "strategy"),
            (AttributeError,),  # there are no servers
        ),
        "tensorflow.StrategyBase.reduce": mean_reduced,
        "tensorflow.StrategyBase.experimental_distribute_dataset": lambda t: Case(
            t.strategy.experimental_distribute_dataset,
            {"dataset": t.dataset, "options": None},
            lambda o, _: ("dataset", type(t.distributed)) in o.context.seen,
        ),
        "tensorflow.StrategyBase.distribute_datasets_from_function": lambda t: Case(
            t.strategy.distribute_datasets_from_function,
            {"dataset_fn": lambda _: t.dataset, "options": None},
            told(events.DatasetFromFunction),
        ),
        "tensorflow.Strategy.experimental_distribute_values_from_function": lambda t: Case(
            t.strategy.experimental_distribute_values_from_function,
            {"value_fn": lambda _: t.tf.ones((4, 3))},
            told(events.InputShared, "sizes"),
        ),
        "tensorflow.StrategyBase.num_replicas_in_sync": lambda t: counted(t.strategy),
        "tensorflow.ReplicaContextBase.num_replicas_in_sync": lambda t: counted(
            t.tf.distribute.get_replica_context(), None
        ),
        "tensorflow.InputContext.num_replicas_in_sync": lambda t: counted(t.input_context),
        "tensorflow.InputContext.get_per_replica_batch_size": lambda t: Case(
            t.input_context.get_per_replica_batch_size,
            {"global_batch_size": 4},
            told(events.ReplicaCountRead),
        ),
        "tensorflow.DatasetV2.batch": lambda t: Case(
            t.tf.data.Dataset.range(4).batch,
            {"batch_size": 2, "drop_remainder": True},
            told(events.DatasetBatched, "size"),
        ),
        "tensorflow.DatasetV2.padded_batch": lambda t: Case(
            t.tf.data.Dataset.range(4).padded_batch,
            {"batch_size": 2, "padded_shapes": []},
            told(events.DatasetBatched, "size"),
        ),
        "tensorflow.DatasetV2.skip": lambda t: Case(
            t.tf.data.Dataset.range(4).skip, {"count": 2}, told(events.ExamplesSkipped, "count")
        ),
        "tensorflow.DatasetV2.shard": lambda t: Case(
            t.tf.data.Dataset.range(4).shard,
            {"num_shards": 2, "index": 1},
            told(events.DatasetSharded, "shards", "index"),
        ),
        "tensorflow.while_loop": lambda t: Case(
            in_a_graph(t.tf, t.internals.while_v2.while_loop),
            {
                "cond": lambda number: number < 3,
                "body": lambda number: (one_update(t), number + 1)[1:],
                "loop_vars": (0,),
            },
            told(events.TrainedInLoop),
        ),
        "tensorflow.DatasetV2.map": lambda t: Case(
            t.tf.data.Dataset.range(2).map,
            {"map_func": lambda _: np.random.uniform()},
            told(events.RandomNumberFrozen, "function"),
        ),
        "tensorflow.DatasetV2.flat_map": lambda t: Case(
            t.tf.data.Dataset.range(2).flat_map,
            {"map_func": lambda _: t.tf.data.Dataset.from_tensors(np.random.uniform())},
            told(events.RandomNumberFrozen, "function"),
        ),
        "tensorflow.DatasetV2.interleave": lambda t: Case(
            t.tf.data.Dataset.range(2).interleave,
            {"map_func": lambda _: t.tf.data.Dataset.from_tensors(np.random.uniform())},
            told(events.RandomNumberFrozen, "function"),
        ),
        "tensorflow.DatasetV2.filter": lambda t: Case(
            t.tf.data.Dataset.range(2).filter,
            {"predicate": lambda number: number > int(2 * np.random.uniform())},
            told(events.RandomNumberFrozen, "function"),
        ),
        "tensorflow.DatasetV2.scan": lambda t: Case(
            t.tf.data.Dataset.range(2).scan,
            {
                "initial_state": np.int64(0),
                "scan_func": lambda state, number: (state, np.random.uniform()),
            },
            told(events.RandomNumberFrozen, "function"),
        ),
        "tensorflow.DistributedDataset.__iter__": lambda t: Case(
            t.distributed.__iter__, {}, lambda o, _: len(o.context.patches.replaced) > 0
        ),
        "tensorflow.DistributedIteratorBase.get_next": lambda t: Case(
            iter(t.distributed).get_next, {}, told(events.BatchTaken, "sizes")
        ),
        "tensorflow.Function.__init__": lambda t: Case(
            (made := object.__new__(type(t.tf.function(lambda: 0)))).__init__,
            {"python_function": lambda x: x, "name": "made"},
            lambda o, _: made in o.tracing.made_at,
        ),
        "tensorflow.Function.__call__": lambda t: Case(
            t.tf.function(lambda x, y: x + y),
            {"x": t.tf.constant(1.0), "y": t.tf.constant(1.0)},
            lambda o, _: len(o.tracing.sites) > 0,
        ),
        "tensorflow.GradientTape.gradient": gradient,
        "tensorflow.GradientTape.__enter__": tape_opened,
        "tensorflow.GradientTape.__exit__": tape_closed,
    }


def count_cases():
    """What is counted: values that the program reads on the host, generators, and waiting for a batch."""

    def read(name, value=1.0, **arguments):
        def seen(observer, _):
            times = sum(observer.counts.reads.values())
            observer.counts.reads.clear()
            return times

        return lambda t: Case(getattr(t.tf.constant(value), name), arguments, seen)

    def given(observer, _):
        generators = len(observer.counts.generators)
        observer.counts.generators.clear()
        return generators

    def waited(observer, _):
        seconds, observer.counts.waited_for = observer.counts.waited_for, 0.0
        return seconds > 0

    def watched_iterators(observer, _):
        sequences = observer.examples.sequences
        watched = sum(each.in_fit for each in sequences.values())
        sequences.clear()
        return watched  # how many batches each reads ahead is by chance

    tensor = {
        "numpy": read("numpy"),
        "__array__": read("__array__", dtype=None),
        "__float__": read("__float__"),
        "__int__": read("__int__"),
        "__index__": read("__index__", 1),
        "__bool__": read("__bool__", True),
        "__str__": read("__str__"),
        "__repr__": read("__repr__"),
        "__format__": read("__format__", format_spec=".1f"),
    }
    return {f"tensorflow._EagerTensorBase.{name}": case for name, case in tensor.items()} | {
        "tensorflow.DatasetV2.from_generator": lambda t: Case(
            t.tf.data.Dataset.from_generator,
            {"generator": lambda: iter([1.0]), "output_types": t.tf.float32},
            given,
        ),
        "tensorflow.OwnedIterator.__init__": lambda t: Case(
            t.internals.iterator_ops.OwnedIterator,
            {"dataset": t.dataset},
            lambda o, _: o.context.counts[("iterators",)] > 0,
        ),
        "tensorflow.OwnedIterator.__next__": lambda t: Case(iter(t.dataset).__next__, {}, waited),
        "tensorflow.OwnedMultiDeviceIterator.__init__": lambda t: Case(
            called_by_trainer(t.internals.multi_device_iterator_ops.OwnedMultiDeviceIterator),
            {"dataset": t.dataset, "devices": ["/cpu:0"]},
            watched_iterators,
        ),
        "tensorflow.create_source_map": lambda t: Case(
            t.internals.origin_info.create_source_map,
            {"nodes": line_of_copy(t), "code": "x = 1", "filepath": "copy.py"},
            lambda o, _: o.context.provenance.sources.get(("copy.py", 1)),
        ),
    }


def called_by_trainer(kind):
    """Returns a function that makes an iterator as a line of Keras's `fit` does."""
    names = {"kind": kind}
    path = importlib.import_module("keras.src.trainers.trainer").__file__
    source = "def make(dataset, devices): iterator = kind(dataset, devices); iterator.get_next(); return iterator"
    exec(compile(source, path, "exec"), names)
    return names["make"]


def line_of_copy(things):
    """Returns a line as AutoGraph has copied it, which knows where it comes from."""
    from tensorflow.python.autograph.pyct import parser

    node = parser.parse("x = 1")
    things.internals.origin_info.resolve(node, "x = 1", "program.py", 7, 0)
    return [node]


def counted(owner, expected=events.ReplicaCountRead):
    def read():
        return owner.num_replicas_in_sync

    return Case(
        read, {}, told(expected) if expected else lambda o, _: o.context.thread.busy is False
    )


def mean_reduced(t):
    losses = t.strategy.run(lambda: t.tf.constant(1.0))
    t.observer.training.batch_sizes = (3, 1)
    arguments = {"reduce_op": "MEAN", "value": losses, "axis": None}
    return Case(t.strategy.reduce, arguments, told(events.MeanReduced, "sizes"))


def gradient(t):
    with t.tf.GradientTape() as tape:
        loss = t.plain * 2.0
    arguments = {"target": loss, "sources": [t.plain]}
    return Case(tape.gradient, arguments, told(events.GradientComputed, "total"))


def tape_opened(t):
    tape = t.tf.GradientTape()

    def seen(observer, _):
        is_recorded = observer.lineage.eager.records.get(tape) is not None
        tape.__exit__(None, None, None)
        return is_recorded

    return Case(tape.__enter__, {}, seen)


def tape_closed(t):
    tape = t.tf.GradientTape()
    tape.__enter__()
    arguments = {"typ": None, "value": None, "traceback": None}
    return Case(tape.__exit__, arguments, lambda o, _: not o.lineage.eager.open)


def message_cases():
    """What Keras says of data that end; a message that no loop of Keras's gives is not reported."""
    text = "Your input ran out of data; interrupting training."

    class EpochIterator:
        steps_per_epoch = 6

        def __init__(self, show=None):
            self.show = show

        def warn(self, *given, **named):
            self.show(*given, **named)

        def log(self, *given, **named):
            logging.getLogger("quiet").warning(*given, **named)

    logging.getLogger("quiet").setLevel(logging.ERROR)
    nowhere = io.StringIO()
    warning = {
        "message": UserWarning(text),
        "category": UserWarning,
        "filename": "file.py",
        "lineno": 7,
        "file": nowhere,
        "line": "",
    }
    said = told(events.DataRanOut, "steps")

    def shown(t):
        """While a test runs, pytest has a function of its own in this place."""
        replaced = t.observer.context.patches.replaced
        return next(new for _, name, _, new in replaced if name == "showwarning")

    return {
        "warnings.showwarning": lambda t: Case(EpochIterator(shown(t)).warn, warning, said),
        "logging.Logger.warning": lambda t: Case(EpochIterator().log, {"msg": text}, said),
    }


def file_cases():
    def manager(t):
        return t.tf.train.CheckpointManager(checkpoint(t), t.new_path(), max_to_keep=1)

    def checkpoint(t):
        return t.tf.train.Checkpoint(plain=t.plain)

    def saved(t):
        return checkpoint(t).write(t.new_path("ck"))

    def asked(made):
        return Case(lambda: made.latest_checkpoint, {}, sought)

    restored = told(events.CheckpointRestored, "path")
    sought = told(events.CheckpointSought, "folder", "path")
    return {
        "tensorflow.Checkpoint.__init__": lambda t: Case(
            t.tf.train.Checkpoint,
            {"root": t.module},
            lambda o, _: len(o.checkpoints.made_at.entries) > 0,
        ),
        "tensorflow.Checkpoint.__setattr__": lambda t: Case(
            (made := checkpoint(t)).__setattr__,
            {"name": "plain", "value": 3.0},
            lambda o, _: [*(o.checkpoints.attributes.get(made) or {})],
        ),
        "tensorflow.Checkpoint.save": lambda t: Case(
            checkpoint(t).save,
            {"file_prefix": t.new_path("ck")},
            told(events.Saved, "kind", "path"),
        ),
        "tensorflow.Checkpoint.write": lambda t: Case(
            checkpoint(t).write,
            {"file_prefix": t.new_path("ck")},
            told(events.Saved, "kind", "path"),
        ),
        "tensorflow.Checkpoint.restore": lambda t: Case(
            checkpoint(t).restore, {"save_path": saved(t)}, restored
        ),
        "tensorflow.Checkpoint.read": lambda t: Case(
            checkpoint(t).read, {"save_path": saved(t)}, restored
        ),
        "tensorflow.CheckpointManager.save": lambda t: Case(
            manager(t).save, {"checkpoint_number": 7}, told(events.Saved, "path")
        ),
        "tensorflow.latest_checkpoint": lambda t: Case(
            t.tf.train.latest_checkpoint,
            {"checkpoint_dir": t.new_path(), "latest_filename": None},
            sought,
        ),
        "tensorflow.CheckpointManager.latest_checkpoint": lambda t: asked(manager(t)),
        "tensorflow.CheckpointManager.restore_or_initialize": lambda t: Case(
            manager(t).restore_or_initialize, {}, sought
        ),
        "tensorflow.rename_v2": lambda t: moved(t, t.tf.io.gfile.rename),
        "tensorflow.copy_v2": lambda t: moved(t, t.tf.io.gfile.copy),
        "copy.deepcopy": lambda t: Case(
            copy.deepcopy,
            {"x": t.models["keras"].layers[-1]},
            told(events.WeightsCopied, "function", "equal"),
        ),
        "tensorflow.load": lambda t: Case(
            t.tf.saved_model.load, {"export_dir": t.saved_model}, told(events.Loaded, "path")
        ),
        "tensorflow.save": lambda t: Case(
            t.tf.saved_model.save,
            {"obj": t.module, "export_dir": t.new_path()},
            told(events.Saved, "kind", "path"),
        ),
        "numpy.savez": lambda t: arrays_saved(t, np.savez, "kernel"),
        "numpy.savez_compressed": lambda t: arrays_saved(t, np.savez_compressed, "kernel"),
        "numpy.save": lambda t: arrays_saved(t, np.save, "arr"),
        "pickle.dump": lambda t: Case(
            pickle.dump,
            {"obj": [t.plain.numpy()], "file": open(t.new_path("weights.pickle"), "wb")},  # noqa: SIM115
            told(events.Saved, "kind", "path"),
        ),
        "numpy.load": lambda t: arrays_read(t, np.load, lambda path: path),
        "pickle.load": lambda t: arrays_read(t, pickle.load, lambda path: open(path, "rb")),
    }


def option_cases():
    def parser():
        made = argparse.ArgumentParser()
        made.add_argument("--out")
        return made

    def old_parser():
        made = optparse.OptionParser()
        made.add_option("--out")
        return made

    def flag_values():
        made = flags.FlagValues()
        flags.DEFINE_string("out", "here", "a folder", flag_values=made)
        return made

    def options_of_ours(_, all_events):
        """Without what the standard library looks for in the environment, as `gettext` does once."""
        read = [event for event in all_events if isinstance(event, events.OptionRead)]
        return [event for event in read if event.name in ("out", "NOT_SET_BY_ANYBODY")]

    def read_case(function, arguments, *may_raise):
        return Case(function, arguments, options_of_ours, may_raise)

    words = ["--out", "there"]
    click = importlib.import_module("click")  # of distributed, which has it for its own commands
    command = click.Command("train", params=[click.Option(["--out"])])
    return {
        "click.Command.make_context": lambda t: read_case(
            command.make_context, {"info_name": "train", "args": [*words]}
        ),
        "argparse._ActionsContainer.add_argument": lambda t: read_case(
            argparse.ArgumentParser().add_argument, {"dest": "out"}
        ),
        "argparse.ArgumentParser.parse_known_args": lambda t: read_case(
            parser().parse_known_args, {"args": words}
        ),
        "optparse.OptionParser.parse_args": lambda t: read_case(
            old_parser().parse_args, {"args": words}
        ),
        "absl.FlagValues.__call__": lambda t: read_case(
            flag_values().__call__, {"argv": ["train.py", *words]}
        ),
        "os._Environ.__getitem__": lambda t: read_case(
            os.environ.__getitem__, {"key": "NOT_SET_BY_ANYBODY"}, KeyError
        ),
    }


def seed_cases():
    def taken(observer, _):
        return vars(observer.replacements.repeated.of_generator).pop("value", False)

    def stopped(observer, _):
        return vars(observer.optimizers.stopped_gradients.thread).pop("stops", False)

    return {
        "keras.SeedGenerator.next": lambda t: Case(
            t.packages["keras"].random.SeedGenerator(1).next, {"ordered": True}, taken
        ),
        "tensorflow.stop_gradient": lambda t: Case(
            t.tf.stop_gradient, {"input": t.tf.ones(3)}, stopped
        ),
    }


def arrays_saved(t, function, name):
    arguments = {"file": t.new_path("weights.npz"), name: t.plain.numpy()}
    return Case(function, arguments, told(events.Saved, "kind", "path"))


def moved(t, function):
    """Of a file with a name that no other case has seen."""
    Path(source := t.new_path("old")).touch()
    arguments = {"src": source, "dst": t.new_path("new")}
    return Case(function, arguments, told(events.FileMoved, "source", "target"))


def arrays_read(t, function, file_of):
    path = t.new_path("weights")
    with open(path, "wb") as file:
        if function is pickle.load:
            pickle.dump(t.plain.numpy(), file)
        else:
            np.save(file, t.plain.numpy())
    t.observer.checkpoints.array_files.clear()
    known = t.observer.checkpoints.array_files
    return Case(function, {"file": file_of(path)}, lambda *_: path in known.values())


def keras_cases(package):
    def model(t):
        return t.new_model(package)

    def saved(t):
        path = t.new_path("w.weights.h5")
        t.models[package].save_weights(path)
        return path

    def apply(t, name, arguments):
        optimizer = t.packages[package].optimizers.SGD(0.1)
        weights = t.models[package].trainable_variables
        optimizer.build(weights)
        gradients = [t.tf.zeros_like(weight) for weight in weights]
        given = arguments(gradients, weights)
        return Case(getattr(optimizer, name), given, told(events.GradientsApplied, "gradients"))

    def unfrozen(t):
        """A layer that becomes trainable after another one was trained."""
        one, other = t.new_compiled(package), t.new_model(package)
        one.fit(NUMBERS, TARGETS, verbose=0)
        other.trainable = False

        def set_trainable():
            other.trainable = True

        return Case(
            set_trainable,
            {},
            lambda o, _: {*o.variables.numbers_of(other.weights)} <= {*o.unfrozen.found},
        )

    def with_file(name, path, event, *fields):
        return lambda t: Case(
            getattr(t.models[package], name), {"filepath": path(t)}, told(event, *fields)
        )

    training = {"x": NUMBERS, "y": TARGETS, "batch_size": 2}
    cases = {
        "Model.__init__": lambda t: Case(
            t.packages[package].Model,
            {"inputs": (x := t.packages[package].Input((3,))), "outputs": x},
            lambda o, _: len(o.models.made_at.entries) > 0,
        ),
        "Model.__call__": lambda t: Case(
            model(t), {"inputs": t.tf.ones((4, 3))}, told(events.ModelCalled, "examples")
        ),
        **{
            f"{t_or_m(package, 'Layer') if name == 'weights' else 'Layer'}.{name}": lambda t, name=name: (
                Case(
                    lambda: getattr(t.lazy_model(package), name), {}, told(events.UnbuiltModelRead)
                )
            )
            for name in ("trainable_variables", "variables", "weights")
        },
        "Layer.__setattr__": unfrozen,
        "Layer.__new__": lambda t: Case(
            t.packages[package].layers.Dense,
            {"units": 2},
            lambda o, _: len(o.models.layers.entries) > 0,
        ),
        f"{t_or_m(package, 'TensorFlowTrainer')}.predict": lambda t: Case(
            t.models[package].predict,
            {"x": NUMBERS, "batch_size": 2, "verbose": 0},
            told(events.ModelAnswered, "output"),
        ),
        f"{t_or_m(package, 'Trainer')}.compile": lambda t: Case(
            (m := model(t)).compile,
            {"optimizer": "sgd", "loss": "mse"},
            lambda o, _: bool(o.models.compiled_at.get(m)),
        ),
        f"{t_or_m(package, 'TensorFlowTrainer')}.fit": lambda t: Case(
            t.new_compiled(package).fit, training, told(events.MetricsReported, "metrics")
        ),
        f"{t_or_m(package, 'TensorFlowTrainer')}.evaluate": lambda t: Case(
            t.new_compiled(package).evaluate, training, told(events.MetricsReported, "metrics")
        ),
        "Model.save": with_file("save", lambda t: t.new_path("m.keras"), events.Saved, "path"),
        "Model.save_weights": with_file(
            "save_weights", lambda t: t.new_path("m.weights.h5"), events.Saved, "path"
        ),
        "Model.load_weights": with_file("load_weights", saved, events.Loaded, "function", "path"),
        "Layer.set_weights": lambda t: weights_set(t, package),
        "Model.export": lambda t: used(t, t.models[package].export, {"filepath": t.new_path()}),
        "Model.summary": lambda t: used(t, t.models[package].summary, {"line_length": 80}),
        "clone_model": lambda t: Case(
            t.packages[package].models.clone_model,
            {"model": t.models[package]},
            told(events.WeightsCopied, "function", "equal"),
        ),
        "Functional.get_config": lambda t: config_taken(functional(t, package)),
        "Sequential.get_config": lambda t: config_taken(t.models[package]),
        "Layer.get_config": lambda t: config_taken(t.models[package].layers[-1]),
        "Model.from_config": lambda t: from_config(functional(t, package)),
        "Sequential.from_config": lambda t: from_config(t.models[package]),
        "Layer.get_weights": lambda t: weights_taken(t.models[package].layers[-1]),
        "load_model": lambda t: Case(
            t.packages[package].models.load_model,
            {"filepath": t.saved_models[package]},
            told(events.Loaded, "function", "path"),
        ),
        f"{t_or_m(package, 'TFOptimizer', 'Optimizer')}.__init__": lambda t: Case(
            t.packages[package].optimizers.SGD,
            {"learning_rate": 0.1, "momentum": 0.9},
            lambda o, _: len(o.optimizers.made_at.entries) > 0,
        ),
        f"{t_or_m(package, 'BaseOptimizer', 'Optimizer')}.apply_gradients": lambda t: apply(
            t, "apply_gradients", lambda g, w: {"grads_and_vars": zip(g, w)}
        ),
    }
    batch = {"x": NUMBERS, "y": TARGETS}
    for name, arguments in (
        ("train_on_batch", batch),
        ("test_on_batch", batch),
        ("predict_on_batch", {"x": NUMBERS}),
    ):
        cases[f"{t_or_m(package, 'TensorFlowTrainer')}.{name}"] = (
            lambda t, name=name, arguments=arguments: used(
                t, getattr(t.new_compiled(package), name), arguments
            )
        )
    if package == "tf_keras":
        cases["Model.get_weights"] = lambda t: weights_taken(t.models[package])
    if package == "keras":
        cases["BaseOptimizer.apply"] = lambda t: apply(
            t, "apply", lambda g, w: {"grads": g, "trainable_variables": w}
        )
        cases["set_distribution"] = lambda t: Case(
            (keras := t.packages[package]).distribution.set_distribution,
            {"value": keras.distribution.DataParallel(devices=["cpu:0"])},
            told(events.KerasDistributionSet, "kind", "devices"),
        )
    return {f"{package}.{name}": case for name, case in cases.items()}


def t_or_m(package, keras_3, keras_2="Model"):
    """The class that defines a method, in Keras 3 or in Keras 2."""
    return keras_3 if package == "keras" else keras_2


def used(t, method, arguments):
    """A use of a model that a load has filled, if it is the latest."""
    model = method.__self__
    return Case(method, arguments, lambda o, _: o.unused_loads.used_at.get(model) is not None)


def mask_function():
    from tf_keras.src.utils import losses_utils

    return losses_utils.get_mask


def masked(t):
    outputs = t.tf.constant([[1.0]])
    outputs._keras_mask = t.tf.constant([True])
    return outputs


def functional(t, package):
    inputs = t.packages[package].Input((3,))
    return t.packages[package].Model(inputs, t.packages[package].layers.Dense(1)(inputs))


def config_taken(model):
    return Case(model.get_config, {}, lambda o, _: o.copies.configs[-1][0]() is model)


def from_config(model):
    copied = told(events.WeightsCopied, "function", "equal")

    def seen(observer, new):
        assert model.built  # it must exist until here: the observer refers to it weakly
        return copied(observer, new)

    arguments = {"config": model.get_config(), "custom_objects": None}
    return Case(type(model).from_config, arguments, seen)


def weights_taken(owner):
    kept = []  # what refers to the arrays weakly has them for as long as this list

    def call():
        kept.append(owner.get_weights())

    def seen(observer, _):
        return bool(observer.copies.taken) and observer.copies.taken[2]() is owner

    return Case(call, {}, seen)


def weights_set(t, package):
    weights = t.models[package].get_weights()
    np.savez(t.new_path("w.npz"), *weights)
    return Case(
        t.models[package].set_weights, {"weights": weights}, told(events.Loaded, "function", "path")
    )


def part_cases():
    part = told(events.PartUsed, "part")

    def in_replicas(things, function, /, **arguments):
        def call(*args, **kwargs):
            things.strategy.run(lambda: function(*args, **kwargs))

        return Case(call, arguments, part)

    def clips(things, clip, /, **arguments):
        def after_gradients(*args, **kwargs):
            with things.tf.GradientTape() as tape:
                loss = things.tf.reduce_sum(things.mirrored)
            tape.gradient(loss, things.mirrored)
            clip(*args, **kwargs)

        return in_replicas(things, after_gradients, **arguments)

    def policy(t, package):
        made = t.packages[package].mixed_precision
        made = getattr(made, "DTypePolicy", None) or made.Policy
        return Case(made("float32")._parse_name, {"name": "mixed_bfloat16"}, part)

    def statistics(t, package):
        layer = t.packages[package].layers.BatchNormalization()
        return Case(lambda: layer.synchronized, {}, part)

    def scalar_loss(t):
        def fn(labels, outputs):
            return t.tf.reduce_mean(t.tf.square(labels - outputs))

        loss = t.packages["keras"].losses.MeanSquaredError()
        loss.fn = fn
        return in_replicas(t, loss, y_true=TARGETS, y_pred=TARGETS)

    def own_loss(t):
        """A loss of the program's own class, with a `__call__` of its own, is watched from when it is made."""
        keras_loss = t.packages["keras"].losses.Loss

        class Own(keras_loss):
            def __call__(self, y_true, y_pred, sample_weight=None):
                return 1.0

        plain, loss = vars(Own)["__call__"], Own.__new__(Own)
        return Case(loss.__init__, {"name": "own"}, lambda *_: vars(Own)["__call__"] is not plain)

    norms = {"t": NUMBERS, "clip_norm": 1.0}, {"t_list": [NUMBERS], "clip_norm": 1.0}
    ends = {"t": NUMBERS, "clip_value_min": 0.0, "clip_value_max": 0.5}
    return {
        "tensorflow.clip_by_norm": lambda t: clips(t, t.tf.clip_by_norm, **norms[0]),
        "tensorflow.clip_by_global_norm": lambda t: clips(t, t.tf.clip_by_global_norm, **norms[1]),
        "tensorflow.clip_by_value": lambda t: clips(t, t.tf.clip_by_value, **ends),
        "tensorflow.MirroredStrategy.__init__": lambda t: Case(
            t.tf.distribute.MirroredStrategy,
            {"devices": ["CPU:0"], "cross_device_ops": t.tf.distribute.ReductionToOneDevice()},
            part,
        ),
        "keras.Loss.__call__": lambda t: in_replicas(
            t, t.packages["keras"].losses.Dice(), y_true=TARGETS, y_pred=TARGETS
        ),
        "keras.Loss.__init__": lambda t: own_loss(t),
        "keras.reduce_weighted_values": lambda t: scalar_loss(t),
        "tf_keras.get_mask": lambda t: in_replicas(t, mask_function(), y_p=masked(t)),
        "keras.DTypePolicy._parse_name": lambda t: policy(t, "keras"),
        "tf_keras.Policy._parse_name": lambda t: policy(t, "tf_keras"),
        "keras.BatchNormalization.synchronized": lambda t: statistics(t, "keras"),
        "tf_keras.BatchNormalization.synchronized": lambda t: statistics(t, "tf_keras"),
    }


CASES = (
    variable_cases()
    | strategy_cases()
    | count_cases()
    | message_cases()
    | file_cases()
    | option_cases()
    | seed_cases()
    | keras_cases("keras")
    | keras_cases("tf_keras")
    | part_cases()
)


# The objects


@pytest.fixture(scope="module")
def observer(started, tmp_path_factory):
    import keras  # noqa: F401
    import tf_keras  # noqa: F401

    observer = Observer(Settings(str(tmp_path_factory.mktemp("events") / "events.jsonl")))
    observer.start()
    yield observer
    observer.stop()


@pytest.fixture(scope="module")
def things(observer, tmp_path_factory):
    import keras
    import tensorflow as tf
    import tf_keras
    from strategy_clinic.base import tf_internals
    from strategy_clinic.setups import strategies, tpu

    folder = tmp_path_factory.mktemp("files")
    packages = {"keras": keras, "tf_keras": tf_keras}
    paths = map(str, range(10**6))

    def new_path(name="folder"):
        place = folder / next(paths)
        place.mkdir()
        return str(place / name)

    def new_model(package):
        layers = packages[package].layers
        return packages[package].Sequential(
            [packages[package].Input((3,)), layers.Dense(1, kernel_initializer="ones")]
        )

    def new_compiled(package):
        model = new_model(package)
        model.compile("sgd", "mse")
        return model

    def lazy_model(package):
        class Lazy(packages[package].Model):
            pass

        return Lazy()

    strategy = strategies.mirrored(2)
    dataset = tf.data.Dataset.range(4).batch(2)
    distributed = strategy.experimental_distribute_dataset(dataset)
    iter(distributed).get_next()
    with strategy.scope():
        mirrored = tf.Variable(1.0)
    with (on_cores := tpu.strategy()).scope():
        on_tpu = tf.Variable(1.0)
        mirrored_on_tpu = tf_internals.tpu_values.TPUMirroredVariable(
            on_cores, on_tpu.values, on_tpu.aggregation
        )
    module = tf.Module()
    module.plain = plain = tf.Variable(5.5)
    tf.saved_model.save(module, saved_model := new_path("saved"))
    trained, optimizer = tf.Variable(1.0), keras.optimizers.SGD()
    optimizer.build([trained])
    models = {package: new_model(package) for package in packages}
    saved_models = {package: new_path("m.keras") for package in packages}
    for package, model in models.items():
        model.save(saved_models[package])
    return SimpleNamespace(
        tf=tf,
        internals=tf_internals,
        input_context=tf.distribute.InputContext(1, 0, 2),
        **{
            name: value
            for name, value in locals().items()
            if name not in ("tf", "keras", "tf_keras")
        },
    )


def in_a_graph(tf, function):
    return lambda *args, **kwargs: tf.function(lambda: function(*args, **kwargs))()


def one_update(t):
    t.optimizer.apply_gradients([(t.tf.ones([]), t.trained)])


# The tests


def hook_name(owner, name, new):
    if inspect.ismodule(owner):
        return f"{owner.__name__.partition('.')[0]}.{new.__name__}"
    return f"{owner.__module__.partition('.')[0]}.{owner.__name__}.{name}"


def test_every_hook_has_a_case(observer, things):
    replaced = observer.context.patches.replaced
    hooks = {hook_name(owner, name, new) for owner, name, _, new in replaced}
    # Those that draw random numbers pass on their arguments unread.
    names = {hook: hook.rpartition(".")[2] for hook in hooks}
    drawing = {hook for hook, name in names.items() if is_drawing(name) or is_sampler(name)}
    assert hooks - drawing - {"strategy_clinic.EmulatedTPUStrategy.run"} == set(CASES)
    assert {"tensorflow.random_uniform", "tensorflow.log_uniform_candidate_sampler"} <= drawing


def test_random_numbers_that_a_replica_draws_are_seen(observer, things):
    path, tf = Path(observer.context.settings.events), things.tf
    labels = tf.ones((2, 1), tf.int64)
    for draw in (
        tf.random.normal,
        tf.random.Generator.from_seed(1).uniform,
        lambda _: tf.random.log_uniform_candidate_sampler(labels, 1, 2, True, 9),
    ):
        start = len(path.read_bytes())
        observer.context.seen.clear()
        draw([2])
        assert "PartUsed" not in path.read_text()[start:]
        things.strategy.run(lambda draw=draw: draw([2]))
        new = [from_json(line) for line in path.read_text()[start:].splitlines()]
        parts = [event.part for event in new if isinstance(event, events.PartUsed)]
        assert parts == [events.Part.RANDOM_NUMBERS]


def test_weights_that_begin_with_a_single_number(observer, things):
    owner, weights = things.models["keras"], [np.float32(1.0), np.ones(3, "float32")]
    observer.copies.weights_taken([np.float32(1.0)], Call(None, (owner,), {}))
    observer.copies.weights_taken(weights, Call(None, (owner,), {}))
    place, array, source = observer.copies.taken
    assert (place, source()) == (1, owner) and array() is weights[1]


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_only_statistics_of_parts_are_a_part_of_the_step(observer, things, package):
    path = Path(observer.context.settings.events)
    for synchronized, parts in ((True, 0), (False, 1)):
        start = len(path.read_bytes())
        observer.context.seen.clear()
        layer = things.packages[package].layers.BatchNormalization(synchronized=synchronized)
        layer.build((None, 3))
        assert layer.synchronized is synchronized
        assert path.read_text()[start:].count('"PartUsed"') == parts


def test_what_a_loss_clips_is_no_clipping_of_gradients(observer, things):
    """Losses clip probabilities, before gradients are computed and after they were applied."""
    path = Path(observer.context.settings.events)
    start = len(path.read_bytes())
    observer.context.seen.clear()
    optimizer = things.packages["keras"].optimizers.SGD()
    variable = things.mirrored

    def step():
        things.tf.clip_by_value(NUMBERS, 0.0, 0.5)
        optimizer.apply_gradients([(things.tf.ones_like(variable), variable)])
        things.tf.clip_by_value(NUMBERS, 0.0, 0.5)

    observer.context.thread.has_gradients = False
    with things.strategy.scope():
        optimizer.build([variable])
    things.strategy.run(step)
    new = [from_json(line) for line in path.read_text()[start:].splitlines()]
    assert [event for event in new if isinstance(event, events.GradientsApplied)]
    assert not [event for event in new if isinstance(event, events.PartUsed)]


@pytest.mark.parametrize("name", CASES)
def test_a_call_by_keyword_is_seen_as_one_by_position(name, observer, things):
    seen = []
    for by_keyword in (False, True):
        case = CASES[name](things)
        path = Path(observer.context.settings.events)
        start = len(path.read_bytes())
        observer.context.seen.clear()
        observer.context.counts.clear()
        with suppress(*case.may_raise):
            if by_keyword:
                case.function(**case.arguments)
            else:
                case.function(*case.arguments.values())
        new = [from_json(line) for line in path.read_text()[start:].splitlines()]
        assert [event for event in new if isinstance(event, events.ObserverFailed)] == []
        seen.append(case.seen(observer, new))
    assert seen[0] and seen[0] == seen[1]


def test_a_wrapped_function_keeps_its_signature(observer, things):
    for _, name, plain, new in observer.context.patches.replaced:
        if plain is not INHERITED and inspect.isfunction(plain):
            assert inspect.signature(new) == inspect.signature(plain), name
            assert (new.__name__, new.__doc__) == (plain.__name__, plain.__doc__)


def test_pickle_finds_every_wrapped_function(observer, things):
    """A process that is not observed then finds the plain function by the same name."""
    not_found = []
    for owner, name, _, _ in observer.context.patches.replaced:
        function = getattr(owner, name)
        is_local = "<locals>" in getattr(owner, "__qualname__", "")  # which no process finds
        if is_local or not inspect.isfunction(function):
            continue  # such as a property; a method of a class is found by its class
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with suppress(pickle.PicklingError, AttributeError):
                if pickle.loads(pickle.dumps(function, protocol)) is function:
                    continue
            not_found.append((owner, name, protocol))
    assert not not_found


def test_stop_puts_every_function_back(started, tmp_path):
    observer = Observer(Settings(str(tmp_path / "events.jsonl")))
    observer.start()
    replaced = observer.context.patches.replaced[::-1]
    observer.stop()
    assert len(replaced) > 50
    originals = {(id(owner), name): (owner, plain) for owner, name, plain, _ in replaced}
    for (_, name), (owner, plain) in originals.items():
        assert vars(owner).get(name, INHERITED) is plain
