# %% [markdown]
# # FM23. A variable created outside `strategy.scope()` takes the update of every replica
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `steps: 6` | two devices; 3 on one, 12 on four | 2, 3 |
# | `ValueError: Trying to run metric.update_state in replica context when the metric was not created in TPUStrategy scope. …` | `TPUStrategy`, a metric | 2 |
#
# A variable that is created outside `strategy.scope()` is an ordinary `tf.Variable`. It has one copy, and each replica writes to
# it. Typical cases are a step counter and a moving average.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy with more than one replica; what a TPU does differs.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm23",
    slug="variable_outside_scope",
    title="A variable created outside `strategy.scope()` takes the update of every replica",
    sees="a step counter or a moving average that replicas write is wrong, by more with every device",
    fix="create the variable in `strategy.scope()`, with an `aggregation` if replicas write to it",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'steps: (6|12|24)'",
            strategies=("mirrored", "central_storage"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim("003-C26", "variables in the scope are replicated, outside it they are not", "true"),
        Claim("003-C27", "`run` and `reduce` enter the scope themselves", "true"),
        Claim("003-C29", "calling `model(x)` does not enter the scope", "true"),
        Claim("003-C30", "variables of the scope are read and written outside it", "true"),
        Claim(
            "003-C55",
            "`get_strategy` returns the strategy in its scope, and the default outside",
            "true",
        ),
        Claim("003-C56", "`ParameterServerStrategy` creates variables on the servers", "true"),
        Claim(
            "003-C57",
            "the scope of `MultiWorkerMirroredStrategy` enters the CPU of the worker",
            "true",
        ),
        Claim(
            "003-C58", "datasets, `tf.function`s and saving may be in the scope or outside", "true"
        ),
        Claim("003-C60", "the scope enters the cross-replica context", "true"),
        Claim("003-C59", "all-reduce algorithms keep the copies of a variable equal", "true"),
    ),
    prints="steps: 3",
    exercise_prints="running mean: 5.625",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so a step has one replica"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm23", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The model is in the scope. The step counter stands with the other variables of the script, above the scope.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create the variable in the scope, and say with `aggregation` what to do with the values that the replicas write:
# `ONLY_FIRST_REPLICA` for a counter, `MEAN` for an average. Not `SUM` for a counter: `assign_add(1.0)` then raises `A
# non-DistributedValues value 1.0 cannot be reduced`. In a layer write `self.add_weight(..., aggregation="only_first_replica")`,
# on Keras 2 `tf.VariableAggregation.ONLY_FIRST_REPLICA`.
#
# Without `aggregation`, `MirroredStrategy` raises nothing, and each copy keeps what its replica wrote. That is right for a
# counter. For an average it is [FM38](fm38_replica_state_diverges.ipynb). `CentralStorageStrategy` raises `You must specify an
# aggregation method`.
#
# The folded cell after the program prints a check. Call it once, before the training loop, with the variables that your step
# writes to. It tests where they were created; `assert_replicas_agree` of FM38 compares the copies.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_scope_of_writers))

# %% [markdown]
# ## Why
#
# While [`strategy.scope()`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope) is open, the strategy
# creates every new variable. `MirroredStrategy` gives it one copy on each device. When replicas write to such a variable, the
# strategy combines their values by its `aggregation` and writes the result to every copy.
#
# The `aggregation` of a variable outside the scope is ignored. All n replicas write to that one copy, one after another.
# Nothing is raised, because each write is valid. On one device the result is right, so the mistake shows only on the second.
#
# With several processes (`multi_worker`) each process has a variable of its own. A counter is then right, and a moving average
# covers only the examples of its own process. On a TPU, TensorFlow's compiler passes read the variable once, give its value to
# all replicas, and write back the value of the *first* replica. The emulation here does the same, and no TPU has run it. Again
# the counter is right, and a moving average knows only the examples of one replica.
#
# A Keras metric outside the scope stays right under `MirroredStrategy`, because it adds up the values of all replicas. Under
# `TPUStrategy`, Keras 3 counts one replica only, and Keras 2 raises.

# %% tags=["figure"]
# The two programs above, on one, two and four devices.
from strategy_clinic import figures

two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
WAYS = {"outside the scope": "broken", "in the scope": "fixed"}
printed = session.prints({way: session.texts[name] for way, name in WAYS.items()}, PLACES)
COUNTS = {way: [words.split()[-1] for words in row] for way, row in printed.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
wrong = {word for row in COUNTS.values() for word in row} - {"3"}
figures.words(COUNTS, COLUMNS, wrong, "How many steps are counted in three steps?")

# %% [markdown]
# ## Try other setups
#
# With one device it does not matter where the variable was created. With more devices the count grows.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one device and on two, with the other version of Keras, with two processes, and on an emulated TPU:

# %% tags=["table"]
several = [two.but(strategy="multi_worker"), two.but(strategy="tpu_traced", devices=8)]
session.table([PLACES[0], two, two.but(keras=session.setup.other_keras), *several])

# %% [markdown]
# ## Exercise
#
# The running mean moves halfway towards the mean of each batch. It has an `aggregation`, and on two devices it prints `8.28125`.
# Change the program so that it prints `5.625` on any number of devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## What documents say
#
# The [reference of `TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy) warns of performance:
#
# > Any variable that is created outside scope will not be distributed and may have performance implications.
#
# Its value can be wrong too. Another sentence is right: "Simply calling model(..) does not automatically enter the captured
# scope". A model without an input shape creates its weights when it is first called, outside the scope if it is called outside.
# `run` and `reduce` do enter the scope. Datasets, `tf.function`s and saving need no scope.

# %% tags=["claims"]
# Tests what the reference says about the scope, with variables and models that are created in it and outside.
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import build_strategy
from strategy_clinic.programs import run as programs

replicas = build_strategy(two)


def make_mean():
    return tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN)


def knows(weight):
    return replicas.extended.variable_created_in_scope(checks.variable_of(weight))


def unbuilt():
    with replicas.scope():
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])


def trained_and_saved(in_scope):
    """What a variable sums up, and its loaded copies, if data, step and saving are in the scope, or are not."""
    place = replicas.scope if in_scope else contextlib.nullcontext
    with replicas.scope():
        module = tf.Module()
        module.total = tf.Variable(0, aggregation=tf.VariableAggregation.SUM, dtype=tf.int64)
    with place():
        batches = replicas.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))

        @tf.function
        def add(batch):
            replicas.run(lambda part: module.total.assign_add(tf.reduce_sum(part)), args=(batch,))

    for batch in batches:
        add(batch)
    with tempfile.TemporaryDirectory() as folder:
        with place():
            tf.saved_model.save(module, f"{folder}/saved")
            path = tf.train.Checkpoint(module=module).save(f"{folder}/checkpoint")
        with replicas.scope():
            loaded = tf.saved_model.load(f"{folder}/saved")
        names = [name for name, _ in tf.train.list_variables(path)]
    return [int(each) for each in figures.values_of(loaded.total)], sum("total" in n for n in names)


def kept_equal(reduction):
    """The copies of a variable to which the replicas assign 1 and 2, if this algorithm adds what they assign."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=reduction)
    with strategy.scope():
        variable = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        variable.assign(tf.cast(number, tf.float32) + 1.0)

    strategy.run(step)
    return [float(each) for each in figures.values_of(variable)]


def assigned(place, how):
    """The copies of a variable to which the replicas assign 1 and 2, or the message of an error."""
    strategy = build_strategy(place)
    with strategy.scope():
        variable = tf.Variable(0.0, aggregation=tf.VariableAggregation[how])

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        variable.assign(tf.cast(number, tf.float32) + 1.0)

    try:
        strategy.run(step)
    except ValueError as error:
        return str(error)
    return [float(each) for each in figures.values_of(variable)]


# The sentences on `aggregation` under "The fix".
assert assigned(two, "NONE") == [1.0, 2.0]
assert assigned(two, "MEAN") == [1.5, 1.5]
assert assigned(two, "ONLY_FIRST_REPLICA") == [1.0, 1.0]
assert "must specify an aggregation" in assigned(two.but(strategy="central_storage"), "NONE")

PLACES = """from tensorflow.python.eager import context

with strategy.scope():
    variable, device = tf.Variable(1.0), context.context().device_name
print("job:ps" in variable.device, device.endswith("device:CPU:0"))
"""
before = session.texts["broken"].partition("steps = ")[0]
PROCESSES = [two.but(strategy=name) for name in ("parameter_server", "multi_worker", "mirrored")]
jobs = [programs.Job(before + PLACES, place) for place in PROCESSES]
servers, workers, alone = [run.printed.strip() for run in programs.run_programs(jobs)]
default = tf.distribute.get_strategy()
with replicas.scope():
    current, crosses = tf.distribute.get_strategy(), tf.distribute.in_cross_replica_context()
with replicas.scope():
    inside = make_mean()
outside, called, in_run = make_mean(), unbuilt(), unbuilt()
called(tf.ones((16, 3)))
replicas.run(lambda: in_run(tf.ones((16, 3))))
inside.assign([1.0, 2.0, 3.0])
total = replicas.reduce("SUM", replicas.run(lambda: tf.ones(())), axis=None)
session.judges(
    {
        "003-C26": [len(figures.copies(inside)) == 2, len(figures.copies(outside)) == 1],
        "003-C27": [*map(knows, in_run.variables), total == 2.0],
        "003-C29": [not knows(weight) for weight in called.variables],
        "003-C30": [np.array_equal(each, [1, 2, 3]) for each in figures.values_of(inside)],
        "003-C60": [crosses, not tf.distribute.in_cross_replica_context()],
        "003-C55": [current is replicas, default is not replicas],
        "003-C56": [servers.startswith("True"), workers.startswith("False")],
        "003-C57": [workers.endswith("True"), alone.endswith("False")],
        "003-C58": [trained_and_saved(place) == ([28, 28], 1) for place in (True, False)],
        "003-C59": [
            kept_equal(make()) == [3, 3]
            for make in (
                tf.distribute.ReductionToOneDevice,
                tf.distribute.HierarchicalCopyAllReduce,
            )
        ],
    },
)

# %% [markdown]
# ## Read next
#
# - [FM38](fm38_replica_state_diverges.ipynb): a variable in the scope whose copies drift apart.
# - [FM25](fm25_load_outside_scope.ipynb): the same mistake where a model is loaded.
# - [FM03](fm03_scope_mismatch.ipynb): the model outside the scope, and the optimizer inside.
