# %% [markdown]
# # FM47. Only the chief reads a metric or saves, and waits for ever: `if task_id == 0: metric.result()`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: the chief does not return from `result` or `save` | `if task_id == 0: metric.result()`; the other workers wait, too | 2, 3 |
# | `Collective ops is aborted by: … The following tasks are unhealthy` | the same; the other workers have ended: after some seconds | 2, 3 |
# | `Collective ops is aborted by: Shape mismatch in the collective instance` | the same; the other workers continue to train | 2, 3 |
# | `TimeoutError: the chief has waited for five seconds in accuracy.result` | the program below, which gives up | 2, 3 |
#
# A metric has values of its own on each worker. They are added up when it is read, and all workers must take part in that.
#
# *Hangs under `MultiWorkerMirroredStrategy` only: `metric.result()` on Keras 2 and 3; a save of a model with a metric or batch
# normalization on Keras 2; on Keras 3 a save of `ON_READ` variables that you create yourself.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm47",
    slug="chief_saves_alone",
    title="Only the chief reads a metric or saves, and waits for ever: `if task_id == 0: metric.result()`",
    sees="on several workers the chief does not return from `metric.result()` or `save`, and no error is raised",
    fix="read on every worker and print on one; save on every worker, each into a folder of its own",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "TimeoutError",
            r"the chief has waited for five seconds in accuracy\.result",
            strategies=("multi_worker",),
        ),
    ),
    prints="accuracy: 0.5",
    exercise_prints="examples: 8.0",
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm47", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two workers update a metric, and the chief, worker 0, prints its value. `report` reads in a thread, so that the program can give
# up after five seconds; without the thread it waits for ever. As a file that is started once, it has one worker and prints the
# right value. These lines start it on two workers of one machine:
#
# ```sh
# for task in 0 1; do
#   TF_CONFIG='{"cluster": {"worker": ["localhost:12345", "localhost:12346"]},
#     "task": {"type": "worker", "index": '$task'}}' python train.py &
# done; wait
# ```

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call `result` on every worker, and print what it returns on one: `value = float(accuracy.result())`, then
# `if strategy.extended.should_checkpoint: print(value)`. `should_checkpoint` is true on one worker of a cluster, and on the only
# worker of a program that is started once. `task_id` does not tell: it is 0 for a `chief` and for worker 0, and `None` without
# `TF_CONFIG`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Save on every worker, too, with a folder of its own for each:
#
# ```python
# keeps = strategy.extended.should_checkpoint
# folder = "saved" if keeps else f"scratch/worker{strategy.cluster_resolver.task_id}"
# checkpoint.save(f"{folder}/model")
# if not keeps:
#     tf.io.gfile.rmtree(folder)
# ```
#
# ## Why
#
# A variable with `synchronization=ON_READ` has a separate value on each worker. TensorFlow adds up the values, or takes their
# mean, whenever the variable is read outside of `strategy.run`. This is a collective operation: it ends when every worker has
# called it. The chief calls it inside `if task_id == 0`, and the other workers never do.
#
# What happens then depends on the other workers:
#
# - They wait for the chief: it waits for ever.
# - They have ended: after some seconds the chief raises an `UnavailableError`, which says that tasks are unhealthy.
# - They continue to train: the chief's sum meets their next all-reduce, and both raise if the shapes differ.
#
# The variables of a metric are of this kind on Keras 2 and 3. On Keras 2 the moving statistics of batch normalization are,
# too, and a save reads all variables of a model. On Keras 3 a model's files and checkpoints do not contain its metrics, so
# the chief can save a model alone. One `ON_READ` variable of your own in the same checkpoint is enough to hang. A plain
# `tf.Variable` is not.
#
# The table shows what the chief can do alone, for a model with batch normalization and a metric. See [Multi-worker training with
# Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras#model_saving_and_loading).

# %% tags=["figure"]
# The broken program with a model, and other calls by the chief alone.
from strategy_clinic import figures

workers = session.setup.but(strategy="multi_worker", devices=2)
MODEL = """    accuracy = tf.keras.metrics.BinaryAccuracy()
    norm = tf.keras.layers.BatchNormalization()
    model = tf.keras.Sequential([tf.keras.Input((1,)), norm])
    model.compile("sgd", "mse", metrics=["mae"])
    model.accuracy = accuracy
    sum_of_all = {"aggregation": tf.VariableAggregation.SUM, "trainable": False}
    on_read = tf.VariableSynchronization.ON_READ
    seen = tf.Variable(0.0, synchronization=on_read, **sum_of_all)
"""
(with_model,) = session.variants(
    "broken", "    accuracy = tf.keras.metrics.BinaryAccuracy()\n", {"model": MODEL}
).values()
READ = 'print("accuracy:", float(accuracy.result()))'
CALLS = {
    "metric.result()": "accuracy.result()",
    "model.save(path)": 'model.save("chief.keras")',
    "model.save_weights(path)": 'model.save_weights("chief.weights.h5")',
    "Checkpoint(model=model)": 'tf.train.Checkpoint(model=model).write("chief")',
    "Checkpoint(an ON_READ variable)": 'tf.train.Checkpoint(seen=seen).write("chief")',
}
programs = {name: with_model.replace(READ, call) for name, call in CALLS.items()}
BOTH = [workers.but(keras=3), workers.but(keras=2)]
ENDS = {
    name: ["Error" not in words for words in row]
    for name, row in session.prints(programs, BOTH).items()
}
figures.grid(ENDS, ["Keras 3", "Keras 2"], "ends", "hangs", "Does a call by the chief alone end?")

# %% [markdown]
# ## Try other setups
#
# With a strategy of one process there is one worker, which is the chief. Both programs print `0.5`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two workers with both versions of Keras, and on two devices of one process:

# %% tags=["table"]
session.table([*BOTH, workers.but(strategy="mirrored")])

# %% [markdown]
# ## Exercise
#
# Here the chief alone saves a count of all workers, and waits. Change the program so that each worker saves into a folder of its
# own, and it prints `8.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM41](fm41_multi_worker_start.ipynb): the workers do not even start.
# - [FM38](fm38_replica_state_diverges.ipynb): what is saved of a variable whose copies differ.
# - [FM19](fm19_partial_last_batch.ipynb): `Shape mismatch in the collective instance` for another reason.
# - [FM08](fm08_checkpoint_path_wrong.ipynb): the save ends, and the restore finds no file.
