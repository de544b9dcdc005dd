"""Programs under observation: they do what they do alone, and are seen."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from statements import statements
from strategy_clinic.base import files
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer import events
from strategy_clinic.observer.main import remove_own_frames
from strategy_clinic.observer.program_state import attributes_of
from strategy_clinic.processes import python_process

OBSERVER = files.PACKAGE / "observer"


class Watched:
    def __init__(self, status, output, error, path):
        self.status, self.output, self.error = status, output, error
        self.events = [from_json(line) for line in path.read_text().splitlines()]

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def run(tmp_path):
    """Runs a program below an observer, as the examiner does: from a folder with this package alone.

    A program that imports TensorFlow is forked from a process that has imported it.
    """
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "strategy_clinic").symlink_to(files.PACKAGE)
    (tmp_path / "program").mkdir()
    main = packages / "strategy_clinic" / "observer" / "__main__.py"

    def run_program(text, *options, words=("train.py",), **modules):
        for name, code in {"train": text, **modules}.items():
            (tmp_path / "program" / f"{name}.py").write_text(textwrap.dedent(code))
        path = tmp_path / "events.jsonl"
        server = python_process.fork_server() if "tensorflow" in text else None
        observer, environment = [str(main)], {}
        if server:
            observer = ["-m", "strategy_clinic.observer"]
            environment = {"PYTHONPATH": str(packages), "TMPDIR": str(tmp_path)}
        command = [sys.executable, *observer, "--events", str(path), *options, "--", *words]
        with (
            open(os.devnull) as nothing,
            open(tmp_path / "output", "w+") as output,
            open(tmp_path / "error", "w+") as error,
        ):
            streams = nothing.fileno(), output.fileno(), error.fileno()
            folder = str(tmp_path / "program")
            status = python_process.start(command, environment, folder, streams, server).wait()
            for stream in (output, error):
                stream.seek(0)
            return Watched(status, output.read(), error.read(), path)

    return run_program


@pytest.mark.slow
def test_a_program_has_its_name_arguments_and_path(run):
    text = """
        import sys

        import events  # as one of the observer is called

        assert __name__ == "__main__" and sys.modules["__main__"].__dict__ is globals()
        print(__file__, sys.argv, sys.path[0], events.word)
        """
    watched = run(text, words=("train.py", "--events", "none"), events="word = 'mine'")
    folder = Path(watched.output.split()[0]).parent
    assert watched.output.split() == [
        str(folder / "train.py"), "['train.py',", "'--events',", "'none']", str(folder), "mine",
    ]  # fmt: skip
    assert [event.outcome for event in watched.of(events.Ended)] == [events.Outcome.FINISHED]


@pytest.mark.slow
def test_a_program_is_compiled_as_alone(run):
    """The observer's own `from __future__ import annotations` is not the program's."""
    assert run("x: int = 1\nprint(__annotations__)").output == "{'x': <class 'int'>}\n"


@pytest.mark.slow
def test_a_module_is_run_as_a_module(run):
    watched = run(
        "", words=("-m", "package", "1"), package="import sys; print(sys.argv[1:], __spec__.name)"
    )
    assert watched.output == "['1'] package\n"


@pytest.mark.slow
def test_a_program_can_import_this_package(run):
    watched = run("import strategy_clinic\nprint(strategy_clinic.Setup('default', 1).devices)")
    assert (watched.status, watched.output) == (0, "1\n"), watched.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "code, status, outcome",
    [
        ("raise SystemExit", 0, "finished"),
        ("raise SystemExit(0)", 0, "finished"),
        ("raise SystemExit(4)", 4, "exited"),
        ("raise SystemExit('words')", 1, "exited"),
        ("raise ValueError('words')", 1, "raised"),
        ("raise KeyboardInterrupt", 130, "raised"),
    ],
)
def test_a_program_ends_as_alone(code, status, outcome, run):
    watched = run(code)
    (ended,) = watched.of(events.Ended)
    assert (watched.status, ended.outcome.value) == (status, outcome)


def test_a_traceback_is_shown_as_if_nobody_watched(run, tmp_path):
    text = """
        def failing():
            raise KeyError("first")

        try:
            failing()
        except KeyError as error:
            raise ValueError("second") from error
        """
    watched = run(text)
    alone = subprocess.run(
        [sys.executable, tmp_path / "program" / "train.py"], capture_output=True, text=True
    )
    assert watched.error == alone.stderr
    (raised,) = watched.of(events.ExceptionRaised)
    assert (raised.error, raised.location[0].line) == ("ValueError", 8)
    assert raised.traceback == watched.error


def test_frames_of_wrapped_functions_are_removed(monkeypatch, tmp_path):
    from strategy_clinic.observer.context import Context, Settings

    class Owner:
        def failing(self):
            raise KeyError("first")

    Context(Settings(str(tmp_path / "events"))).patches.wrap(Owner, "failing")
    with pytest.raises(KeyError) as caught:
        Owner().failing()
    names = [entry.name for entry in caught.traceback]
    assert "wrapper" in names
    remove_own_frames(caught.value)
    trace, left = caught.value.__traceback__, []
    while trace:
        left.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert left == [name for name in names if name != "wrapper"]


@pytest.mark.slow
def test_a_forked_child_reports_no_end(run):
    text = """
        import os

        if os.fork() == 0:
            raise SystemExit(5)
        os.wait()
        """
    assert [event.status for event in run(text).of(events.Ended)] == [0]


# What it needs


@pytest.mark.parametrize("path", sorted(OBSERVER.glob("*.py")), ids=lambda path: path.name)
def test_a_module_suits_the_oldest_python_that_tensorflow_has(path):
    """TensorFlow 2.18 runs on Python 3.9, where annotations such as `int | None` must not be evaluated."""
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    annotated = [node for node in statements(tree) if isinstance(node, ast.FunctionDef)]
    late = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = [alias.name for node in late if node.module == "__future__" for alias in node.names]
    assert imported == ["annotations"] or not any(node.args.args for node in annotated)


def imports_of(path):
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level != 1:
            names = [alias.name for alias in node.names]
            yield from (
                [f"..{node.module}.{name}" for name in names]
                if node.level
                else [node.module.partition(".")[0]]
            )


def test_the_observer_needs_the_standard_library_and_tensorflow():
    needed = {name for path in OBSERVER.glob("*.py") for name in imports_of(path)}
    others = needed - sys.stdlib_module_names - {"tensorflow", "numpy"}
    own = {"..base.tf_internals", "..base.namespaces", "..setups.described_tpu", "strategy_clinic"}
    own.add("..base.dataset_iterators.turn_off_autotuning")
    own.add("..setups.start_variables.is_read_at_import")
    assert others <= own


# With TensorFlow

KEYWORDS = """
    import numpy as np
    import tensorflow as tf

    class Plain(tf.keras.Model):  # without __init__: Keras 3 inspects that of its base
        def call(self, inputs):
            return inputs

    Plain()(np.ones((1, 1)))
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def train(batch):
        def step(batch):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(inputs=batch) ** 2) / 16.0
            gradients = tape.gradient(target=loss, sources=model.trainable_variables)
            optimizer.apply_gradients(grads_and_vars=zip(gradients, model.trainable_variables))
            return loss
        return strategy.reduce("SUM", strategy.run(fn=step, args=(batch,)), axis=None)

    dataset = tf.data.Dataset.from_tensor_slices(np.ones((32, 3), "float32")).batch(batch_size=16)
    for batch in strategy.experimental_distribute_dataset(dataset=dataset):
        train(batch)
    model.save(filepath="model.keras")
    tf.keras.models.load_model(filepath="model.keras")
"""


@pytest.mark.slow
def test_a_function_that_is_traced_while_a_tape_is_open(run):
    text = """
        import tensorflow as tf

        weight = tf.Variable(2.0)

        @tf.function
        def squared(values):
            if tf.reduce_sum(values) > 0.0:
                values = values * weight
            return values ** 2

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(squared(tf.constant([1.0, 2.0])))
        print(float(tape.gradient(loss, weight)))
    """
    watched = run(text, "--devices", "1")
    assert (watched.status, watched.output) == (0, "20.0\n"), watched.error
    assert watched.of(events.ObserverFailed) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "made, keras, is_early",
    [
        ("Scale()", 3, False),
        ("tf.keras.Sequential([tf.keras.layers.Dense(3)])", 3, False),
        ("tf.keras.Sequential([tf.keras.layers.Dense(3)])", 2, False),
        ("Model()", 3, True),
        ("Model()", 2, False),
    ],
)
def test_a_variable_that_is_made_after_a_restore(made, keras, is_early, run):
    """Some of these get the value of the file when they are made."""
    text = f"""
        import os

        os.environ["TF_USE_LEGACY_KERAS"] = "{int(keras == 2)}"
        import tensorflow as tf

        class Scale(tf.Module):
            weight = None

            def __call__(self, values):
                if self.weight is None:
                    self.weight = tf.Variable(tf.random.normal([3]))
                return self.weight * values

        class Model(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.inner = tf.keras.layers.Dense(3)

            def call(self, values):
                return self.inner(values)

        first, other = {made}, {made}
        first(tf.ones([1, 3]))
        tf.train.Checkpoint(model=first).write("scale")
        tf.train.Checkpoint(model=other).restore("scale")
        other(tf.ones([1, 3]))
    """
    watched = run(text, "--devices", "1")
    (end,) = watched.of(events.Ended)
    assert (watched.of(events.ObserverFailed), bool(end.restored_before_build)) == ([], is_early)


@pytest.mark.slow
@pytest.mark.parametrize("keras", [3, 2])
def test_a_program_that_calls_by_keyword(keras, run):
    legacy = f"import os\nos.environ['TF_USE_LEGACY_KERAS'] = '{int(keras == 2)}'\n"
    watched = run(legacy + textwrap.dedent(KEYWORDS), "--devices", "2", "--seed", "1")
    assert watched.status == 0, watched.error
    assert watched.of(events.ObserverFailed) == []
    assert {event.gradients for event in watched.of(events.GradientsApplied)} == {2}
    # The step is defined in a traced function, and its lines are known in the threads of replicas, too.
    lines = [event.location[0].line for event in watched.of(events.GradientsApplied)]
    numbered = enumerate(f"{legacy}{textwrap.dedent(KEYWORDS)}".splitlines(), 1)
    assert lines == [number for number, line in numbered if "apply_gradients" in line]
    assert [event.number for event in watched.of(events.StepEnded)] == [1, 2]
    assert [event.size for event in watched.of(events.DatasetBatched)] == [16]
    files_seen = [*watched.of(events.Saved), *watched.of(events.Loaded)]
    assert [event.path for event in files_seen] == ["model.keras"] * 2


BATCHED = """
    import tensorflow as tf

    numbers = tf.data.Dataset.range(8)
    batches = [numbers.batch(4)]
    batches += [numbers.padded_batch(batch_size=4, padded_shapes=[])]
    for each in batches:
        print([batch.numpy().tolist() for batch in each.take(1)])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, expected",
    [
        ([], [0, 1, 2, 3]),
        (["--replace", "same_parts"], [0, 0, 0, 0]),
        (["--replace", "one_part"], [0]),
        (["--replace", "one_part", "--devices", "2"], [0, 0]),
    ],
)
def test_batches_of_equal_parts(run, options, expected):
    watched = run(BATCHED, *options)
    assert watched.output.splitlines() == [str([expected])] * 2, watched.error
    assert [event.size for event in watched.of(events.DatasetBatched)] == [4, 4]


BATCHES_OF_FIT = """
    import os
    os.environ["TF_USE_LEGACY_KERAS"] = "{legacy}"
    import numpy as np
    import tensorflow as tf

    rows = np.arange(8.0, dtype="float32")[:, None]

    class Model(tf.keras.Model):
        def train_step(self, data):
            tf.print(tf.reshape(data[0], [-1]), output_stream="file://seen.txt")
            return {{"sum": tf.reduce_sum(data[0])}}

    class Batches(tf.keras.utils.{kind}):
        def __len__(self):
            return 2

        def __getitem__(self, number):
            return rows[4 * number : 4 * number + 4], rows[:4]

    def generated():
        for number in range(2):
            yield rows[4 * number : 4 * number + 4], rows[:4]

    forms = {{
        "arrays": dict(x=rows, y=rows, batch_size=4, shuffle=False),
        "objects": dict(x=Batches(), shuffle=False),
        "generator": dict(x=generated()),
    }}
    open("seen.txt", "w").close()
    model = Model()
    model.compile(loss="mse")
    model.fit(**forms["{form}"], verbose=0)
    print(open("seen.txt").read())
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["arrays", "objects", "generator"])
@pytest.mark.parametrize("legacy, kind", [(0, "PyDataset"), (1, "Sequence")])
def test_batches_of_equal_parts_in_fit(legacy, kind, form, run):
    text = BATCHES_OF_FIT.format(legacy=legacy, kind=kind, form=form)
    seen = {
        parts: run(text, *options).output.split("\n")[:2]
        for parts, options in {
            "plain": (),
            "same": ("--replace", "same_parts"),
            "one": ("--replace", "one_part"),
        }.items()
    }
    assert seen == {
        "plain": ["[0 1 2 3]", "[4 5 6 7]"],
        "same": ["[0 0 0 0]", "[4 4 4 4]"],
        "one": ["[0]", "[4]"],
    }


EXPORTED = """
    import tensorflow as tf

    with tf.distribute.MirroredStrategy().scope():
        module = tf.Module()
        module.weight = tf.Variable([1.0, 2.0])
    tf.saved_model.save(module, "served")
    print(module.weight.numpy().tolist())
"""


@pytest.mark.slow
def test_weights_have_other_last_digits_in_a_program_that_exports_them(run):
    """A SavedModel is written with variables of its own, which have no value."""
    nudged = run(EXPORTED, "--devices", "2", "--replace", "nudged_weights")
    assert nudged.status == 0, nudged.error
    assert nudged.of(events.ObserverFailed) == []
    assert nudged.output.strip() not in ("", "[1.0, 2.0]")


@pytest.mark.slow
def test_weights_that_fit_makes_are_nudged(run):
    text = """
    import tensorflow as tf

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, inputs):
            return self.dense(inputs)

    with tf.distribute.MirroredStrategy().scope():
        model = Model()
        model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    model.fit(tf.ones((4, 2)), tf.ones((4, 1)), batch_size=4, verbose=0)
    print(float(model.weights[0][0, 0]))
    """
    plain = run(text, "--devices", "2")
    nudged = run(text, "--devices", "2", "--replace", "nudged_weights")
    assert (plain.output.strip(), nudged.status) == ("1.0", 0), nudged.error
    assert 0 < abs(float(nudged.output) - 1) < 1e-5


FROM_FUNCTION = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()

    def dataset(context):
        size = context.get_per_replica_batch_size(16)
        return tf.data.Dataset.range(64).batch(size)

    for parts in strategy.distribute_datasets_from_function(dataset):
        print([part.numpy().tolist() for part in strategy.experimental_local_results(parts)])
"""


@pytest.mark.slow
def test_batches_of_equal_parts_from_a_function(run):
    """The replicas together have the examples that one device has."""
    replaced = "--replace", "same_parts"
    part = run(FROM_FUNCTION, "--replace", "one_part", "--devices", "2").output.splitlines()
    assert ast.literal_eval(part[0]) == [[0, 1, 2, 3]] * 2
    one = run(FROM_FUNCTION, *replaced).output.splitlines()
    two = run(FROM_FUNCTION, *replaced, "--devices", "2").output.splitlines()
    assert [ast.literal_eval(line) for line in one[:2]] == [[[0, 1] * 8], [[2, 3] * 8]]
    assert [ast.literal_eval(line) for line in two[:2]] == [[[0, 1] * 4] * 2, [[2, 3] * 4] * 2]


TAKEN_IN_A_GRAPH = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    data = tf.data.Dataset.range(32).batch(8).map(lambda x: x + 1).repeat().prefetch(1)
    other = tf.data.Dataset.range(32).batch(4)
    distribute = strategy.experimental_distribute_dataset
    data = distribute(data)
    {second}
    iterator = iter(data)

    @tf.function
    def train(iterator):
        strategy.run(lambda x: x + 1, args=(next(iterator),))

    train(iterator)
    """


@pytest.mark.slow
@pytest.mark.parametrize(
    "second, sizes",
    [
        ("", [(4, 4)]),
        ("other = distribute(other)", [(4, 4)]),
        ("others = iter(distribute(other))", []),  # one of both
        ("size = tf.constant(2, tf.int64); data = distribute(other.unbatch().batch(size))", []),
    ],
)
def test_the_sizes_of_batches_that_a_graph_takes(run, second, sizes):
    watched = run(TAKEN_IN_A_GRAPH.format(second=second), "--devices", "2")
    assert watched.status == 0, watched.error
    assert watched.of(events.ObserverFailed) == []
    assert [each.sizes for each in watched.of(events.BatchTaken)] == sizes


FITTED = """
    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2)), np.ones((8, 1))
    history = model.fit(x, y, epochs=5, validation_data=(x, y), validation_freq=2, verbose=0)
    print(history.history["loss"])
    """


FITTED_ON_REPLICAS = """
    import tensorflow as tf

    with tf.distribute.MirroredStrategy().scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    ones = tf.ones((16, 2)), tf.ones((16, 1))
    model.fit(tf.data.Dataset.from_tensor_slices(ones).batch(8, drop_remainder=True), verbose=0)
    """


@pytest.mark.slow
def test_calls_are_those_of_the_replicas(run):
    """Before the first step `fit` of Keras 3 calls a model to learn its shapes, outside of them."""
    watched = run(FITTED_ON_REPLICAS, "--devices", "2")
    assert watched.status == 0, watched.error
    assert [(each.examples, each.replicas) for each in watched.of(events.ModelCalled)] == [(4, 2)]


@pytest.mark.slow
def test_the_metrics_of_the_first_epochs(run):
    watched = run(FITTED)
    losses = ast.literal_eval(watched.output)
    reported = [
        {each.name: each.value for each in report.metrics}
        for report in watched.of(events.MetricsReported)
    ]
    assert [each["loss"] for each in reported] == losses[:3], watched.error
    # Nobody has asked for the others.
    assert [sorted(each) for each in reported] == [["loss", "val_loss"]] * 2 + [["loss"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "of_length, asked, steps",
    [
        ("filter(lambda *row: True)", "", [0]),
        ("take(8)", "", []),
        ("take(8)", ", steps_per_epoch=2", [2]),
    ],
)
def test_how_data_end(of_length, asked, steps, run):
    program = FITTED_ON_REPLICAS.replace(".batch(", f".{of_length}.batch(")
    watched = run(program.replace("verbose=0", f"epochs=3, verbose=0{asked}"), "--devices", "2")
    assert [each.steps for each in watched.of(events.DataRanOut)] == steps, watched.error


NUMBERED = """
    import tensorflow as tf

    calls = [tf.function(lambda number: number) for _ in range(3)]
    for number in [1, 2, 3, 1, 4, 5]:  # a schedule that comes back to a number
        calls[0](number)
    for number in [1, 2, 2, 3, 4, 5, 6]:
        calls[1](number)
    for number in [1, 2, 3, 1, 2, 4, 5, 6]:
        calls[2](number)
    """


@pytest.mark.slow
def test_calls_that_use_a_graph_now_and_then(run):
    watched = run(NUMBERED)
    retraced = watched.of(events.FunctionRetraced)
    assert [(each.location[0].line, each.calls) for each in retraced] == [(6, 4)], watched.error


IN_EACH_PASS = """
    import tensorflow as tf

    calls = [tf.function(lambda batch, number: number * batch) for _ in range(4)]
    strategy = tf.distribute.MirroredStrategy()
    data = tf.data.Dataset.range(8).map(lambda n: tf.cast(n, tf.float32)).batch(2)
    for epoch in range(4):
        for batch in strategy.experimental_distribute_dataset(data):
            number = tf.constant(0.0)
            calls[0](number, 1 / (epoch + 1))
            calls[1](number, 0.5)
            calls[2](number, [0.1, 0.2, 0.1, 0.2][epoch])
            calls[3](number, tf.constant(1 / (epoch + 1)))
            calls[1](number, 0.5)  # of this line, no call traces
        for batch in data:
            pass
    """


@pytest.mark.slow
def test_a_number_that_is_new_in_each_pass(run):
    watched = run(IN_EACH_PASS, "--devices", "2")
    retraced = watched.of(events.FunctionRetraced)
    assert [(each.location[0].line, each.calls) for each in retraced] == [(10, 3)], watched.error
    assert watched.of(events.ObserverFailed) == []


BY_HAND = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        weight, count = (tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN) for _ in range(2))

    def step():
        {source}
        with tf.GradientTape() as tape:
            tape.watch(value)
            loss = 3.0 * value
        weight.assign_sub(0.1 * tape.gradient(loss, value))
        count.assign_add(1.0)

    run = tf.function(lambda: strategy.run(step))
    run()
    run()
    """


@pytest.mark.slow
def test_examples_that_are_skipped_are_told_once_for_a_line(run):
    text = """
        import tensorflow as tf

        for count in (0, 2, 3):
            tf.data.Dataset.range(8).skip(count)
        """
    (skipped,) = run(text).of(events.ExamplesSkipped)
    assert skipped.count == 2


@pytest.mark.slow
@pytest.mark.parametrize("used, models", [("other", ["loaded"]), ("loaded", [])])
def test_a_model_that_is_loaded_while_another_one_is_used(run, used, models):
    text = f"""
        import tensorflow as tf

        def made(name):
            return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)], name=name)

        other, loaded = made("other"), made("loaded")
        made("saved").save_weights("saved.weights.h5")
        other.predict(tf.ones((2, 2)), verbose=0)
        loaded.load_weights("saved.weights.h5")
        {used}.predict(tf.ones((2, 2)), verbose=0)
        """
    watched = run(text)
    assert watched.status == 0, watched.error
    assert [each.name for each in watched.of(events.LoadUnused)] == models
    assert [each.path for each in watched.of(events.LookedFor)] == ["saved.weights.h5"]


@pytest.mark.slow
def test_a_metric_that_returns_a_variable(run):
    text = """
        import keras
        import tensorflow as tf

        class Last(keras.metrics.Metric):
            def __init__(self):
                super().__init__(name="last")
                self.value = self.add_weight(shape=(), initializer="zeros", name="value")

            def update_state(self, y, outputs, sample_weight=None):
                self.value.assign(0.25)

            def result(self):
                return self.value

        with tf.distribute.MirroredStrategy().scope():
            model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
            model.compile("sgd", "mse", metrics=[Last()])
        model.evaluate(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0)
        """
    watched = run(text, "--devices", "2")
    assert not watched.of(events.ObserverFailed), watched.error
    (reported,) = watched.of(events.MetricsReported)
    assert {each.name: each.value for each in reported.metrics}["last"] == 0.5  # of both replicas


@pytest.mark.slow
@pytest.mark.parametrize("first_call, early", [("restored(x)", 0), ("", 1)])
def test_layers_that_are_quantized_after_a_restore(run, first_call, early):
    text = f"""
        import keras
        import tensorflow as tf

        def made():
            return keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(3)])

        x = tf.ones((2, 3))
        model, restored = made(), made()
        model(x)
        path = tf.train.Checkpoint(model=model).write("saved")
        {first_call}
        tf.train.Checkpoint(model=restored).read(path)
        restored(x)
        for layer in restored.layers:
            layer.quantize("int8")
        restored(x)
        """
    watched = run(text)
    assert watched.status == 0, watched.error
    assert len(watched.of(events.Ended)[0].restored_before_build) == early


@pytest.mark.slow
def test_a_program_that_tries_to_read_what_it_has_not_saved_yet(run):
    text = """
        import tensorflow as tf

        weight = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(weight=weight)
        for read in (
            lambda: tf.keras.models.load_model("last.keras"),
            lambda: tf.keras.models.load_model(filepath="last.keras"),
            lambda: tf.saved_model.load("exported"),
            lambda: checkpoint.restore("first"),
            lambda: checkpoint.read("second"),
            lambda: checkpoint.restore(None),
        ):
            try:
                read()
            except (OSError, ValueError, tf.errors.NotFoundError):
                pass
        checkpoint.write("second")
        checkpoint.read("second")
        """
    watched = run(text)
    assert watched.status == 0, watched.error
    looked = [each.path for each in watched.of(events.LookedFor)]
    assert looked == ["last.keras", "exported", "first", "second"]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["value = weight", "value = tf.convert_to_tensor(weight)"])
def test_a_program_that_trains_without_an_optimizer(run, source):
    watched = run(BY_HAND.format(source=source), "--devices", "2")
    steps = [step.values for step in watched.of(events.StepEnded)]
    assert [len(values) for values in steps] == [1, 1], watched.error
    assert [value.sample.entries[0] for (value,) in steps] == pytest.approx([0.7, 0.4])
    trained = {(value.number,) for (value,) in steps}
    assert {each.connected for each in watched.of(events.GradientComputed)} == trained
    assert [each.updates for each in watched.of(events.StepsCounted)] == [0]


# What a restart depends on

LOOP = """
    import numpy as np
    import tensorflow as tf
    from helper import Average

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0)
        optimizer = tf.keras.optimizers.SGD(0.1)
    average = Average()
    checkpoint = tf.train.Checkpoint(weight=weight)
    rows = np.arange(16.0, dtype="float32").reshape(4, 4)

    @tf.function
    def step(batch):
        def learn(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(weight * x) / 100.0
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
            return loss
        return strategy.reduce("SUM", strategy.run(learn, args=(batch,)), axis=None)

    def main():
        for epoch, order in enumerate(([0, 1, 2, 3], [0, 1, 2, 3], [2, 0, 1, 3])):
            data = tf.data.Dataset.from_tensor_slices(rows[order]).batch(2)
            for batch in strategy.experimental_distribute_dataset(data):
                average.add(float(step(batch)))
            checkpoint.write(f"saved{epoch}")

    main()
"""
HELPER = """
    class Average:
        def __init__(self):
            self.times, self.mean = 0, 0.0

        def add(self, value):
            self.times += 1
            self.mean += (value - self.mean) / self.times
"""


@pytest.mark.slow
def test_the_examples_of_each_step_and_what_python_remembers(run):
    watched = run(LOOP, helper=HELPER)
    assert watched.status == 0, watched.error
    (taken,) = watched.of(events.ExamplesTaken)
    first, second, third = (taken.checksums[i : i + 2] for i in (0, 2, 4))
    assert (taken.in_fit, taken.begins, taken.batches) == (False, 0, 6)
    assert first == second and third[0] != first[0] and len({*first}) == 2
    states = watched.of(events.ProgramState)
    held = [{(each.holder, each.name): each.value for each in state.values} for state in states]
    # Before the first step, and the first one after each save; what differs from the state before is told.
    assert [state.updates for state in states] == [0, 2, 2, 4, 4, 6]
    assert [state.before_step for state in states] == [True, False] * 3
    saved = held[1::2]
    assert [values["Average", "times"] for values in saved] == ["2", "4", "6"]
    assert [values["main", "epoch"] for values in held[::2]] == ["0", "1", "2"]
    assert held[0]["Average", "times"] == "0" and ("main", "rows") not in held[0]
    assert all(("Average", "mean") in values for values in saved)
    (read,) = [each for each in watched.of(events.NumbersRead) if each.times == 6]
    mean = sum(read.numbers) / 6
    assert held[-1]["Average", "mean"] == f"{mean:.6g}"


HOLDERS = """
    import argparse
    import types
    from typing import NamedTuple

    import numpy as np
    import tensorflow as tf

    class Pair(NamedTuple):
        low: float
        high: int

    class OfClass:
        rate = 0.5

    class Best:
        value = -1.0

    def counter():
        count = 3

        def counted():
            return count
        return counted

    def lengths():
        length = 2
        while True:
            yield length

    def scale():
        return scale.calls

    scale.calls = 4
    counted, numbers, best = counter(), lengths(), Best()
    next(numbers)
    pair, namespace = Pair(0.25, 5), types.SimpleNamespace(seen=6)
    options, table = argparse.Namespace(epochs=7), {"skipped": 8, 9: {"inner": 10}}
    tensor, averages = tf.constant([11.0, 0.0]), [np.array([12.0]), np.array([13.0])]
    shadows = [tf.Variable([14.0, 0.0]), tf.Variable([15.0])]
    state = np.random.RandomState(1)
    weight = tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(0.1)
    with tf.GradientTape() as tape:
        loss = weight * 2.0
    optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
"""


@pytest.mark.slow
def test_what_a_program_keeps_is_seen_wherever_it_keeps_it(run):
    watched = run(HOLDERS)
    assert watched.status == 0, watched.error
    (state,) = watched.of(events.ProgramState)
    assert (state.updates, state.before_step) == (0, True)
    held = {f"{each.holder} {each.name}".strip(): each.value for each in state.values}
    assert held.pop("state").isdecimal()
    expected = {
        "OfClass rate": "0.5",
        "Best value": "-1",
        "counter count": "3",
        "lengths length": "2",
        "scale calls": "4",
        "pair.low": "0.25",
        "pair.high": "5",
        "namespace.seen": "6",
        "options.epochs": "7",
        "table['skipped']": "8",
        "table[9]['inner']": "10",
        "tensor": "(2,) 11 11",
        "averages": "(1,) 12 12 and (1,) 13 13",
        "shadows": "(2,) 14 14; (1,) 15 15",
    }
    assert {name: held.get(name) for name in expected} == expected
    assert not watched.of(events.ObserverFailed)


WITHOUT_OPTIMIZER = """
    import numpy as np
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        average = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
    rows = tf.data.Dataset.from_tensor_slices(np.arange(8.0, dtype="float32")).batch(4)

    def learn(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * batch)
        {use}

    @tf.function
    def step(batch):
        strategy.run(learn, args=(batch,))

    for batch in rows:
        step(batch)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "use, is_update",
    [
        ("weight.assign_sub(0.01 * tape.gradient(loss, weight))", True),
        ("average.assign(tape.gradient(loss, weight))", False),
        ("weight.assign(0.5 * loss)", False),
    ],
)
def test_an_update_without_an_optimizer_is_one(use, is_update, run):
    watched = run(WITHOUT_OPTIMIZER.format(use=use), "--devices", "2")
    assert watched.status == 0, watched.error
    assert not watched.of(events.ObserverFailed)
    shared = [each.sizes for each in watched.of(events.InputShared)]
    taken = [each.batches for each in watched.of(events.ExamplesTaken)]
    assert (shared, taken) == (([(4,)], [2]) if is_update else ([], []))


@pytest.mark.slow
@pytest.mark.parametrize(
    "made, sizes",
    [("rows", (4,)), ("{'x': rows, 'y': rows}", (4, 4)), ("{'x': rows, 'y': rows[:n + 1]}", ())],
)
def test_values_of_all_replicas(made, sizes, run):
    """A function may give each replica several tensors."""
    text = f"""
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    rows = tf.range(4.0)

    def given(context):
        n = context.replica_id_in_sync_group
        return {made}

    strategy.experimental_distribute_values_from_function(given)
    """
    watched = run(text, "--devices", "2")
    assert watched.status == 0 and not watched.of(events.ObserverFailed), watched.error
    assert sum((each.sizes for each in watched.of(events.InputShared)), ()) == sizes


TWO_CALLS = """
    import tensorflow as tf

    weight, level = tf.Variable(1.0), 1
    optimizer = tf.keras.optimizers.SGD(0.1)
    checkpoint = tf.train.Checkpoint(weight=weight)

    @tf.function
    def prepare(x):
        return 2.0 * x

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = weight * x
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    for epoch in range(2):
        prepare(tf.constant(1.0))
        for _ in range(2): step(prepare(tf.constant(1.0)))
        checkpoint.write(f"saved{epoch}")
        level += 1
"""


@pytest.mark.slow
def test_a_call_on_the_line_of_a_step_is_none(run):
    watched = run(TWO_CALLS)
    states = [(each.updates, each.before_step) for each in watched.of(events.ProgramState)]
    assert states == [(0, True), (2, False), (2, True), (4, False)], watched.error
    second = {each.name: each.value for each in watched.of(events.ProgramState)[2].values}
    assert second["level"] == "2"


LATER = """
    import numpy as np
    import tensorflow as tf

    first, weight = np.random.default_rng(1), tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = weight * x
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    step(tf.constant(1.0))
    for seed in (2, None):
        np.random.default_rng(seed).random()
        later = np.random.default_rng(seed)
        later.random()
    {draw}
"""


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["", "first.random()"])
def test_a_later_generator_with_a_seed_draws_the_same_again(draw, run):
    (end,) = run(LATER.format(draw=draw)).of(events.Ended)
    generators = [each for each in end.drawn if each.startswith("generator")]
    expected = [1, 4, 5] if draw else [4, 5]  # the first one, and those without a seed
    assert generators == [f"generator {number} of numpy.random" for number in expected]


OTHER_SEEDS = """
    import tensorflow as tf

    {before}
    given = list(tf.data.Dataset.range(9).shuffle(9, seed=1).as_numpy_iterator())
    drawn = tf.function(lambda: tf.random.uniform([], seed=1))().numpy()
    print([*map(int, given)], drawn, tf.random.uniform([]).numpy(), sep=" | ")
"""


@pytest.mark.slow
@pytest.mark.parametrize("before, is_chosen", [("", False), ("tf.random.set_seed(5)", True)])
def test_what_has_a_seed_of_its_own_draws_the_same_with_another_one_of_the_observer(
    before, is_chosen, run
):
    text = OTHER_SEEDS.format(before=before)
    usual, other = (
        run(text, "--seed", seed).output.strip().splitlines()[-1].split(" | ")
        for seed in ("87654321", "87654322")
    )
    assert usual[:2] == other[:2]
    assert (usual[2] == other[2]) is is_chosen


SEEDS = """
    import random
    import numpy as np
    import tensorflow as tf

    def draw():
        given = {given}
        return str(given)

    print(draw(), draw(), sep=" | ")
"""
DRAWN = {
    "shuffle": "list(tf.data.Dataset.range(9).shuffle(9, seed=1).as_numpy_iterator())",
    "default_rng": "np.random.default_rng(1).random()",
    "seed": "np.random.seed(1) or np.random.random()",
    "seed of Python": "random.seed(1) or random.random()",
    "__init__": "random.Random(1).random()",
    "set_seed": "tf.random.set_seed(1) or tf.random.uniform([]).numpy()",
    "set_random_seed": "tf.keras.utils.set_random_seed(1) or np.random.random()",
}


@pytest.mark.slow
@pytest.mark.parametrize("function", DRAWN)
def test_a_seed_that_is_given_again(run, function):
    program = SEEDS.format(given=DRAWN[function])
    watched, reseeded = run(program), run(program, "--reseed")
    (first, second), (same, other) = (
        each.output.strip().splitlines()[-1].split(" | ") for each in (watched, reseeded)
    )
    assert first == second == same != other, watched.error
    seeds = [(each.function, each.seed) for each in watched.of(events.SeedRepeated)]
    assert seeds == [(function.partition(" ")[0], 1)]


EPOCHS = """
    import numpy as np
    import keras
    import tensorflow as tf

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    x = np.ones((8, 1), "float32")
    rows = iter([(x, x)] * 3)
    once = tf.data.Dataset.from_generator(lambda: rows, output_signature=(tf.TensorSpec((8, 1)),) * 2)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    backup = lambda: keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    {fits}
"""
FITS = {
    "all": ("model.fit(x, x, epochs=3, initial_epoch=1, verbose=0)", []),
    "none asked": ("model.fit(x, x, epochs=3, initial_epoch=3, verbose=0)", []),
    "stopped by a callback": ("model.fit(x, x, epochs=3, verbose=0, callbacks=[Stop()])", []),
    "data that end": ("model.fit(once, epochs=3, verbose=0)", [(3, 1, 0, False)]),
    "a backup that goes on": (
        "for epochs in (2, 4): model.fit(x, x, epochs=epochs, verbose=0, callbacks=[backup()])",
        [],
    ),
    "a fit after it": (
        "for epochs in (2, 4): model.fit(x, x, epochs=epochs, verbose=0, callbacks=[backup()])\n"
        "    model.fit(x, x, epochs=3, verbose=0)",
        [(3, 1, 2, True)],
    ),
    "a fit with an empty backup after it": (
        "for epochs in (2, 4): model.fit(x, x, epochs=epochs, verbose=0, callbacks=[backup()])\n"
        "    own = keras.callbacks.BackupAndRestore('other')\n"
        "    model.fit(x, x, epochs=3, verbose=0, callbacks=[own])",
        [(3, 1, 2, True)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_epochs_that_fit_leaves_out(run, name):
    fits, expected = FITS[name]
    watched = run(EPOCHS.format(fits=fits))
    assert watched.status == 0, watched.error
    left = watched.of(events.EpochsLeftOut)
    assert [(each.asked, each.made, each.first, each.of_backup) for each in left] == expected
    assert not watched.of(events.ObserverFailed)


FIT = """
    import numpy as np
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(1)
    with tf.distribute.MirroredStrategy().scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.arange(16.0, dtype="float32").reshape(8, 2)
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).{order}batch(4)
    history = model.fit(data, epochs=3, verbose=0)
    print([round(loss, 4) for loss in history.history["loss"]])
"""


ALIVE = """
    import gc

    for _ in range(3):
        model.fit(data, verbose=0)
    gc.collect()
    kinds = [type(each).__name__ for each in gc.get_objects()]
    print(kinds.count("OwnedMultiDeviceIterator"))
"""


@pytest.mark.slow
def test_an_iterator_that_is_looked_into_is_not_deleted_while_it_reads_ahead(run):
    """TensorFlow ends the process if it deletes one that a function of Python is a part of."""
    watched = run(FIT.format(order="") + ALIVE, "--devices", "2")
    assert watched.status == 0, watched.error
    assert 0 < int(watched.output.split()[-1]) <= 4


def test_the_attributes_of_an_object_with_slots():
    class Counted:
        __slots__ = "steps"

    class Best(Counted):
        __slots__ = "value", "unset"

        @property
        def asked(self):
            raise AssertionError("a property is not asked")

    best = Best()
    best.steps, best.value = 3, 0.5
    assert dict(attributes_of(best)) == {"steps": 3, "value": 0.5}


def test_the_numbers_that_a_class_has_for_its_objects():
    class Best:
        value, name, step = -1.0, "best", 0

    best = Best()
    best.step = 2
    assert dict(attributes_of(best)) == {"value": -1.0, "step": 2}


@pytest.mark.slow
@pytest.mark.parametrize("order, different", [("", 1), ("shuffle(8, seed=2).", 3)])
def test_the_examples_of_each_epoch_of_fit(run, order, different):
    watched = run(FIT.format(order=order), "--devices", "2")
    assert watched.status == 0, watched.error
    # Each replica's part is one. `fit` makes one more iterator at its beginning, which may yield as much as the first.
    taken = {each.begins: each for each in watched.of(events.ExamplesTaken)}
    assert [(each.in_fit, begins, each.batches) for begins, each in taken.items()] == [
        (True, begins, 4) for begins in (0, 2, 4)
    ]
    assert len({each.checksums for each in taken.values()}) == different
    assert not watched.of(events.ObserverFailed)


INPUTS = """
    import keras
    import numpy as np
    import tensorflow as tf

    x = np.ones((8, 2), "float32")

    class Trained(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs):
            one, other = inputs
            self.add_loss(tf.reduce_mean(self.dense(one - 2 * other) ** 2))
            return other

    model = Trained()
    model.compile("sgd")
    {fit}
"""
WITHOUT_LABELS = [
    "model.fit([x, x], batch_size=4, verbose=0)",
    "model.fit(tf.data.Dataset.from_tensor_slices(((x, x),)).batch(4), verbose=0)",
]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--replace", "same_parts")], ids=["plain", "parts"])
@pytest.mark.parametrize("fit", WITHOUT_LABELS, ids=["arrays", "dataset"])
def test_several_inputs_without_labels_stay_one_element(run, fit, options):
    watched = run(INPUTS.format(fit=fit), "--devices", "2", *options)
    assert watched.status == 0, watched.error
    batches = (
        8 if options and "Dataset" in fit else 2
    )  # of one example each, which they have four times
    assert [each.batches for each in watched.of(events.ExamplesTaken)] == [batches]
    assert not watched.of(events.ObserverFailed)


@pytest.mark.slow
def test_a_layer_with_a_vocabulary_is_saved_and_loaded(run):
    watched = run(
        """
        import os
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow as tf

        class Words(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.lookup = tf.keras.layers.StringLookup()

        for way in ("save_weights", "load_weights"):
            model = Words()
            model.lookup.adapt(["a", "b"])
            getattr(model, way)("kept")
        """
    )
    assert watched.status == 0, watched.error
    assert not watched.of(events.ObserverFailed)


LAYERS = """
    import keras
    import numpy as np
    import tensorflow as tf

    def dense(seed=None):
        return keras.layers.Dense(4, kernel_initializer=keras.initializers.GlorotUniform(seed))

    one, chained = dense(1), dense(2)
    twin = keras.layers.Dense.from_config({**one.get_config(), "name": "twin"})
    after = keras.layers.deserialize(keras.layers.serialize(chained))
    one.trainable = False
    still = type(one).from_config(one.get_config())
    other = keras.layers.Dense.from_config({"units": 4, "name": "other"})
    followed = keras.Sequential([keras.Input((4,)), dense()])
    follows = keras.models.clone_model(followed)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            total = one(x) + twin(x) + after(chained(x)) + still(2.0 * x) + other(x)
            loss = tf.reduce_sum(total + followed(x)) + 0.0 * tf.reduce_sum(follows(x))
        tape.gradient(loss, chained.trainable_variables)
        for old, new in zip(follows.weights, followed.weights):
            old.assign(0.75 * old + 0.25 * new)
        return loss

    for layer in (one, chained, twin, after, still, other):
        layer.build((None, 4))
    x = tf.constant(np.ones((2, 4), "float32"))
    step(x)
    step(x)
    """


@pytest.mark.slow
def test_copies_of_layers(run):
    """A layer is made from the configuration of another one, and a clone follows a model."""
    watched = run(LAYERS)
    assert watched.status == 0, watched.error
    assert not watched.of(events.ObserverFailed)
    copied = {each.location[0].line: each for each in watched.of(events.WeightsCopied)}
    assert [(line, each.function, each.equal) for line, each in sorted(copied.items())] == [
        (10, "from_config", True),
        (11, "from_config", True),
        (13, "from_config", True),
        (16, "clone_model", False),
    ]
    twin, after, still, follows = (copied[line].target for line in (10, 11, 13, 16))
    calls = {each.target: (each.trainable, each.taped) for each in watched.of(events.CopyCalled)}
    assert calls == {
        twin: (True, True),
        after: (True, True),
        still: (False, True),
        follows: (True, True),
    }
    assert {each.target for each in watched.of(events.CalledAlike)} == {twin, follows}
    assert {each.target for each in watched.of(events.CalledApart)} == {twin, still, follows}
    assert [each.target for each in watched.of(events.CalledInTurn)] == [after]
    (moved,) = watched.of(events.CopyMoved)
    assert (moved.target, round(moved.share, 3)) == (follows, 0.25)


@pytest.mark.slow
def test_a_clone_of_a_model_in_a_model_is_one_copy(run):
    text = """
        import keras
        import tensorflow as tf

        inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        model = keras.Sequential([keras.Input((3,)), inner, keras.layers.Dense(1)])
        keras.models.clone_model(model, recursive=True)
        """
    (copied,) = run(text).of(events.WeightsCopied)
    assert (copied.function, len(copied.target)) == ("clone_model", 4)


@pytest.mark.slow
def test_what_a_checkpoint_does_not_follow_is_not_saved(run):
    text = """
        import tensorflow as tf

        class Network(tf.keras.Model):
            def __init__(self):
                super().__init__()
                self.blocks = [tf.keras.layers.Dense(3)]
                self.out = tf.keras.layers.Dense(1)

            def call(self, x):
                return self.out(self.blocks[0](x))

        network = Network()
        network(tf.ones((1, 2)))
        alone, other = tf.Variable(tf.ones(5)), tf.Variable(tf.ones(6))
        alone.assign_add(tf.ones(5))
        tf.train.Checkpoint(network=network).save("saved/ck")
        """
    watched = run(text)
    (save,) = watched.of(events.Saved)
    shapes = {each.number: each.shape for each in watched.of(events.VariableMade)}
    # The checkpoint's own count, and what the attribute holds
    assert sorted(map(shapes.get, save.variables)) == [(), (1,), (3, 1)]
    # Of what it does not follow, what the program has changed
    left_out = {shapes[each.number] for each in save.omitted}
    assert (5,) in left_out and (6,) not in left_out


STEP = """
    import keras
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])

    def penalty(weights):
        return 0.5 * tf.reduce_sum(tf.square(weights))

    def one(x, y):
        with tf.GradientTape() as tape:
            error = tf.square(tf.stop_gradient(model(x)) - y)
            loss = tf.reduce_mean(error) + penalty(model.weights[0])
        return tape.gradient(loss, model.weights[0])

    {how}
    def step(x, y):
        return strategy.run(one, args=(x, y))

    for _ in range(2):
        step(tf.ones((4, 3)), tf.ones((4, 1)))
    """


@pytest.mark.slow
def test_a_loss_is_known_alike_in_a_graph_and_outside(run):
    losses = []
    for how in ("", "@tf.function"):
        watched = run(STEP.replace("{how}", how), "--devices", "2")
        assert watched.status == 0, watched.error
        assert not watched.of(events.ObserverFailed)
        traced = watched.of(events.LossTraced)[0]  # a graph may be traced twice
        assert traced.location[0].line == 16
        lines = {(each.kind, each.location[0].line) for each in traced.operations if each.location}
        losses.append(lines)
    for kind, line in (("Mean", 15), ("StopGradient", 14), ("Sum", 10), ("ReadVariableOp", 10)):
        assert all((kind, line) in each for each in losses), (kind, line, losses)


FROZEN_IN_KERAS_2 = """
    import numpy as np
    import tensorflow as tf
    import tf_keras as keras

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        embedding = keras.layers.Embedding(8, 2, trainable=False)
        model = keras.Sequential([embedding, *{layers}])
        model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones((5, 1)), np.ones((5, 1, 2))))
    model.fit(data.batch(4), verbose=0)
    """


@pytest.mark.slow
def test_a_loss_of_batches_of_which_the_last_may_be_missing_is_one_of_examples(run):
    watched = run(
        FROZEN_IN_KERAS_2.replace("{layers}", "[keras.layers.Dense(2)]"), "--devices", "2"
    )
    assert watched.status == 0, watched.error
    operations = watched.of(events.LossTraced)[0].operations
    assert operations[0].carries is events.Carries.TOTAL
    assert events.Carries.EXAMPLES in [each.carries for each in operations]


@pytest.mark.slow
def test_a_model_that_is_frozen_on_purpose_tracks_its_weights(run):
    watched = run(FROZEN_IN_KERAS_2.replace("{layers}", "[]"), "--devices", "2")
    assert watched.status == 0, watched.error
    assert watched.of(events.NothingTrained) == []


OTHER_KERAS = """
    import os

    os.environ["TF_USE_LEGACY_KERAS"] = {value!r}
    import tensorflow as tf

    tf.keras.layers.Dense(1)
    """


@pytest.mark.slow
@pytest.mark.parametrize("value, versions", [("1", [2]), ("0", [])])
def test_another_keras_than_was_asked_for(run, value, versions):
    watched = run(OTHER_KERAS.format(value=value), "--keras", "3")
    assert [each.version for each in watched.of(events.OtherKerasUsed)] == versions


BUILT_IN_A_REPLICA = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        dense = tf.keras.layers.Dense(1)
        dropout = tf.keras.layers.Dropout(0.5)

    def step():
        return {step}

    strategy.run(tf.function(step))
    """


@pytest.mark.slow
@pytest.mark.parametrize(
    "step, parts",
    [
        ("dense(tf.ones((2, 3)))", []),
        ("dropout(dense(tf.ones((2, 3))), training=True)", [events.Part.RANDOM_NUMBERS]),
    ],
)
def test_first_values_of_a_layer_that_is_built_in_a_replica_are_no_random_numbers(run, step, parts):
    watched = run(BUILT_IN_A_REPLICA.format(step=step), "--devices", "2", "--keras", "2")
    assert [each.part for each in watched.of(events.PartUsed)] == parts, watched.error


FILLED_BY_COMPILE = """
    import tensorflow as tf

    def model():
        return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])

    first = model()
    first.compile(tf.keras.optimizers.SGD(0.5), "mse")
    first.train_on_batch(tf.ones((4, 3)), tf.ones((4, 1)))
    first.save_weights("kept")
    second = model()
    second.load_weights("kept")
    second.compile(tf.keras.optimizers.SGD({rate}), "mse")
    """


@pytest.mark.slow
@pytest.mark.parametrize("rate, told", [(0.25, [(0.25, 0.5)]), (0.5, [])])
def test_a_learning_rate_that_a_checkpoint_replaces_when_the_model_is_compiled(run, rate, told):
    watched = run(FILLED_BY_COMPILE.format(rate=rate), "--keras", "2")
    assert [(e.before, e.after) for e in watched.of(events.LearningRateRestored)] == told, (
        watched.error
    )


SHARES = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        net = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        net.build()

    def step(x):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            values = net(x) - {shared}
            loss = tf.reduce_sum(values) / tf.reduce_sum(values * values)
        tape.gradient(loss, net.trainable_variables)

    @tf.function
    def train(x):
        strategy.run(step, args=(x,))

    data = tf.data.Dataset.from_tensors(tf.ones((4, 3)))
    for x in strategy.experimental_distribute_dataset(data):
        train(x)
    """


@pytest.mark.slow
@pytest.mark.parametrize(
    "shared, whole",
    [
        ("context.all_reduce('MEAN', tf.reduce_mean(x))", False),
        ("context.all_gather(net(x), axis=0)[:2]", True),
    ],
    ids=["a number of all", "examples of all"],
)
def test_what_is_computed_of_a_replica_s_examples_is_its_own(run, shared, whole):
    watched = run(SHARES.format(shared=shared), "--devices", "2")
    (traced,) = watched.of(events.LossTraced)
    sums = [each.whole for each in traced.operations if each.kind == "Sum"]
    assert sums and {*sums} == {whole}, watched.error


FITS_AND_PREDICTS = """
    import numpy as np
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((53, 3))
    count = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda step, logs: print("step"))
    model.fit(x, np.ones(53), verbose=0, callbacks=[count])
    print(len(model.predict(x, verbose=0)))
    """


@pytest.mark.slow
@pytest.mark.parametrize("keras", ["2", "3"])
def test_without_a_smaller_last_batch_all_examples_are_predicted_still(run, keras):
    watched = run(FITS_AND_PREDICTS, "--replace", "full_batches", "--keras", keras)
    assert watched.output.split() == ["step", "53"], watched.error


LAYERS_OF_A_NAME = """
    import keras
    import tensorflow as tf
    from strategy_clinic.observer import stored_values

    stored_values.LARGEST_FILE = {largest}

    @keras.saving.register_keras_serializable()
    class Block(keras.layers.Layer):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.{name} = [keras.layers.Dense(4), keras.layers.Dense(1)]
        def call(self, x):
            for layer in self.{name}:
                x = layer(x)
            return x
        {method}

    keras.Sequential([keras.Input((3,)), Block(), keras.layers.Dense(2)]).save("net.keras")
    keras.models.load_model("net.keras")
    """
BY_ITSELF = """def save_own_variables(self, store):
            store["half"] = keras.ops.convert_to_numpy(self._layers[0].kernel) / 2
        def load_own_variables(self, store):
            self._layers[0].kernel.assign(store["half"][...] * 2)"""  # and not the others


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, method, largest, kept",
    [
        ("_layers", "", 64_000_000, [4]),
        ("_layers", "", 1000, []),
        ("_layers", BY_ITSELF, 64_000_000, []),
        ("blocks", "", 64_000_000, []),
    ],
    ids=["a name of Keras", "a large file", "a class that saves by itself", "another name"],
)
def test_weights_that_a_file_of_keras_lacks(run, name, method, largest, kept):
    watched = run(LAYERS_OF_A_NAME.format(name=name, method=method, largest=largest))
    told = [(each.function, len(each.kept)) for each in watched.of(events.VariablesKept)]
    assert told == [("load_model", number) for number in kept], watched.error


ACCUMULATES = """
    import keras
    import tensorflow as tf

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.5, gradient_accumulation_steps=2), "mse")
    model.fit(tf.ones((16, 3)), tf.ones((16, 1)), batch_size=4, verbose=0)
    """


@pytest.mark.slow
def test_an_optimizer_of_keras_3_that_accumulates_gradients_counts_its_updates(run):
    watched = run(ACCUMULATES, "--keras", "3")
    assert not watched.of(events.ObserverFailed)
    (ended,) = watched.of(events.Ended)
    assert [each.steps for each in ended.optimizers] == [2], watched.error


PARTS = """
import tensorflow as tf

@tf.function
def share(labels, outputs):
    return tf.reduce_mean(labels * outputs)

def scaled(labels, outputs, factor):
    return factor * (labels - outputs) ** 2

def make():
    return tf.keras.optimizers.SGD(0.1, clipnorm=1.0, gradient_accumulation_steps=2)

class Own(tf.keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)
"""
USES_PARTS = """
import functools
import tensorflow as tf
import parts

model = parts.Own([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
loss = functools.partial(parts.scaled, factor=2.0)
model.compile(parts.make(), loss, metrics=["mae", parts.share])
model.fit(tf.ones((4, 2)), tf.ones((4, 1)), verbose=0)
"""


@pytest.mark.slow
def test_what_a_model_uses_is_found_in_another_file(run):
    watched = run(USES_PARTS, parts=PARTS)
    (compiled,) = watched.of(events.ModelCompiled)
    own = [
        (each.use, each.name, each.location.line, each.location.function)
        for each in compiled.definitions
    ]
    assert own == [
        (events.Use.LOSS, "", 8, "scaled"),
        (events.Use.METRIC, "share", 4, "share"),
        (events.Use.STEP, "train_step", 15, "train_step"),
    ]
    assert {Path(each.location.path).name for each in compiled.definitions} == {"parts.py"}
    (update,) = watched.of(events.GradientsApplied)
    assert [(Path(each.path).name, each.line) for each in update.made_at] == [
        ("parts.py", 12),
        ("train.py", 8),
    ]
    assert update.accumulated == 2


ASSIGNS = """
import {module}
import numpy as np
import tensorflow as tf
from pathlib import Path

model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, bias_initializer='ones')])
optimizer = tf.keras.optimizers.SGD(0.1)
path = Path("saved") / "state"
path.parent.mkdir()
{save}
{load}
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(tf.ones((1, 2))))
optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
SAVES = {
    "numpy": 'path = path.with_suffix(".npz"); np.savez(path, *model.get_weights(), step=3)',
    "history": 'path = path.with_suffix(".npz"); np.savez(path, *model.get_weights(), losses=np.arange(6.0))',
    "pickle": "pickle.dump(model.get_weights(), path.open('wb'))",
}
LOADS = {
    "in a loop": """
with np.load(path) as arrays:
    for number, variable in enumerate(model.variables):
        variable.assign(arrays[f"arr_{number}"])
""",
    "one after the other": """
arrays = np.load(path)
model.variables[0].assign(arrays["arr_0"])
str("the kernel is there")
optimizer.learning_rate.assign(0.2)
model.variables[1].assign(arrays["arr_1"])
""",
    "pickle": """
for variable, value in zip(model.variables, pickle.load(path.open("rb"))):
    variable.assign(value)
""",
    "beside other arrays": """
for number, variable in enumerate(model.variables):
    variable.assign(np.load(path)[f"arr_{number}"])
""",
    "one table of two": 'model.variables[0].assign(np.load(path)["arr_0"])',
    "other values": """
for variable, value in zip(model.variables, np.load(path).values()):
    variable.assign(value + 1)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", LOADS)
def test_arrays_of_a_file_that_a_program_assigns(run, how):
    module = "pickle" if how == "pickle" else "numpy"
    save = SAVES["history" if how == "beside other arrays" else module]
    text = ASSIGNS.format(module=module, save=save, load=LOADS[how])
    watched = run(text)
    assert not watched.of(events.ObserverFailed)
    (saved,) = watched.of(events.Saved)
    loads = watched.of(events.Loaded)
    if how in ("one table of two", "other values"):
        assert loads == []
        return
    (load,) = loads
    assert (load.function, load.path) == ("assign", saved.path)
    assert load.path == ("saved/state" if module == "pickle" else "saved/state.npz")
    assert load.variables == saved.variables
    kinds = [type(each) for each in watched.events]
    assert kinds.index(events.Loaded) < kinds.index(events.GradientsApplied)


SETTINGS = """
import tensorflow as tf

@tf.keras.utils.register_keras_serializable()
class Scaled(tf.keras.Model):
    def __init__(self, factor=1.0, name="mine", **kwargs):
        super().__init__(name=name, **kwargs)
        self._factor = factor
        self.drop = tf.keras.layers.Dropout(0.1 * factor)
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(self.drop(inputs))

    def get_config(self):
        return {}

model = Scaled(3.0)
model(tf.ones((1, 2)))
model.save("model.keras")
loaded = tf.keras.models.load_model("model.keras")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["", "loaded._factor = 3.0; loaded.drop.rate = 0.1 * 3.0", "del loaded"]
)
def test_the_settings_of_a_model_that_is_saved_and_loaded(run, change):
    watched = run(SETTINGS + change)
    assert not watched.of(events.ObserverFailed)
    save, load = watched.of(events.ModelSettings)
    assert (save.loaded, load.loaded, load.before) == (False, True, 1)
    saved, again = (
        {(each.layer, each.name): each.value for each in event.settings} for event in (save, load)
    )
    assert saved["Scaled", "factor"] == "3.0" and saved["Dropout", "rate"].startswith("0.3")
    kept = {name for name in saved if saved[name] == again[name]}
    lost = {("Scaled", "factor"), ("Dropout", "rate")}
    assert saved.keys() - kept == (set() if "rate" in change else lost)
    assert {each.constructor.line for each in save.settings} == {6}


COMPILED = """
import tensorflow as tf

@tf.keras.utils.register_keras_serializable()
class Focal(tf.keras.losses.Loss):
    def __init__(self, gamma=2.0, name="focal", **kwargs):
        super().__init__(name=name)
        self.gamma = gamma

    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred) ** self.gamma, -1)

    def get_config(self):
        return {}

@tf.keras.utils.register_keras_serializable()
class Hits(tf.keras.metrics.Mean):
    def __init__(self, threshold=0.5, name="hits", **kwargs):
        super().__init__(name=name, **kwargs)
        self.threshold = threshold

model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile("sgd", Focal(3.0), metrics=["mse", Hits(0.4)])
model.save("model.keras")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "load, lost",
    [
        ("loaded = load('model.keras')", {"gamma", "threshold"}),
        ("loaded = load('model.keras'); loaded.compile('sgd', Focal(4.0))", set()),
        ("load('model.keras', compile=False)", set()),
    ],
)
def test_the_settings_of_a_loss_and_of_a_metric(run, load, lost):
    watched = run(f"{COMPILED}\nload = tf.keras.models.load_model\n{load}")
    assert not watched.of(events.ObserverFailed), watched.error
    saved, *loaded = [
        {each.name: each.value for each in event.compiled}
        for event in watched.of(events.ModelSettings)
    ]
    assert (saved["gamma"], saved["threshold"]) == ("3.0", "0.4")
    again = loaded[0] if loaded else {}
    assert {name for name in again if again[name] != saved[name]} == lost


@pytest.mark.slow
def test_what_keras_does_not_list_is_not_loaded(run):
    text = """
    import tensorflow as tf

    @tf.keras.utils.register_keras_serializable()
    class Scale(tf.keras.layers.Layer):
        def build(self, shape):
            self.listed = self.add_weight(shape=(), initializer="ones")
            self.other = tf.Variable(1.0)

        def call(self, inputs):
            return self.listed * self.other * inputs

    model = tf.keras.Sequential([tf.keras.Input((2,)), Scale()])
    model.save("model.keras")
    tf.keras.models.load_model("model.keras")
    """
    watched = run(text)
    made = [each.number for each in watched.of(events.VariableMade)]
    (save,), (load,) = watched.of(events.Saved), watched.of(events.Loaded)
    assert (save.variables, load.variables) == ((made[0],), (made[2],)), watched.error


@pytest.mark.slow
def test_models_of_keras_alone_have_no_settings_to_lose(run):
    text = """
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dropout(0.5)])
    model.save("model.keras")
    tf.keras.models.load_model("model.keras")
    """
    assert run(text).of(events.ModelSettings) == []


@pytest.mark.slow
def test_a_model_that_is_called_with_a_number(run):
    text = """
    import tensorflow as tf

    class Scale(tf.keras.Model):
        def call(self, inputs):
            return 2.0 * inputs

    Scale()(tf.constant(3.0))
    """
    watched = run(text)
    assert not watched.of(events.ObserverFailed) and watched.of(events.ModelAnswered)


@pytest.mark.slow
def test_a_model_of_keras_2_that_is_loaded_before_it_is_built(run):
    text = """
    import os

    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    def make():
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])

    saved, loaded = make(), make()
    saved(tf.ones((1, 2)))
    saved.save_weights("ck")
    loaded.load_weights("ck")
    loaded(tf.ones((1, 2)))
    """
    watched = run(text)
    loads = {load.function: load.variables for load in watched.of(events.Loaded)}
    assert not watched.of(events.ObserverFailed), watched.error
    assert loads["load_weights"] == ()
