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
# *Wrong result without an error, on Keras 2 and 3, under every strategy with several replicas in one process. Several workers
# and TPUs differ.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

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
# The `aggregation` of a variable outside the scope is ignored. All n replicas write to that copy in turn. Nothing is raised,
# because each write is valid.
#
# With several processes (`multi_worker`) each process has a variable of its own. A counter is then right, and a moving average
# covers only the examples of its own process. On a TPU, TensorFlow's compiler passes read the variable once, give its value to
# all replicas, and write back the value of the *first* replica. The emulation here does the same, and no TPU has run it. The
# counter is right, and a moving average knows one replica's examples.
#
# A Keras metric outside the scope stays right under `MirroredStrategy`, because it adds up the values of all replicas. Under
# `TPUStrategy`, Keras 3 counts one replica only, and Keras 2 raises.
#
# A model without an input shape creates its weights in its first call. Make this call in the scope, or in `strategy.run`, which
# enters the scope itself.

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
two = session.setup.but(strategy="mirrored", devices=2)
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device it does not matter where the variable was created. With more devices the count grows.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, with the other version of Keras, with two processes, and on an emulated TPU:

# %% tags=["table"]
several = [two.but(strategy="multi_worker"), two.but(strategy="tpu_traced", devices=8)]
places = [two.but(devices=1), two, two.but(devices=4), two.but(keras=session.setup.other_keras)]
session.table([*places, *several])

# %% [markdown]
# ## Exercise
#
# The running mean moves halfway towards the mean of each batch. It has an `aggregation`, and on two devices it prints `8.28125`.
# Change the program so that it prints `5.625` on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests what each `aggregation` under "The fix" does.
import tensorflow as tf
from strategy_clinic import build_strategy, figures


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

# %% [markdown]
# ## Read next
#
# - [FM38](fm38_replica_state_diverges.ipynb): a variable in the scope whose copies drift apart.
# - [FM25](fm25_load_outside_scope.ipynb): the same mistake where a model is loaded.
# - [FM03](fm03_scope_mismatch.ipynb): the model outside the scope, and the optimizer inside.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
