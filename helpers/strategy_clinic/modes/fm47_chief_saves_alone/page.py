# %% [markdown]
# # FM47. Only the chief saves, and waits for ever: `if task_id == 0: checkpoint.save(...)`
#
# ```text
# (no message: the chief does not return from save)                           the other workers wait, too
# Collective ops is aborted by: … The following tasks are unhealthy           they have ended: after some seconds
# Collective ops is aborted by: Shape mismatch in the collective instance     they continue to train
# TimeoutError: the chief has waited for five seconds in checkpoint.write     the program below, which gives up
# ```
#
# A variable with a value of its own on each worker is added up when it is saved, and all workers must take part in that.
#
# *Hangs under `MultiWorkerMirroredStrategy` only. On Keras 2 any model with a metric or batch normalization hangs; on Keras 3
# only variables with `ON_READ` that you create yourself.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm47",
    slug="chief_saves_alone",
    title="Only the chief saves, and waits for ever: `if task_id == 0: checkpoint.save(...)`",
    sees="on several workers the chief does not return from `save`, and no error is raised",
    fix="save on every worker, each into a folder of its own",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "TimeoutError",
            r"the chief has waited for five seconds in checkpoint\.write",
            strategies=("multi_worker",),
        ),
    ),
    claims=(),
    prints="examples: 8.0",
    exercise_prints="correct: 8.0",
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
# Two workers count their examples, and the chief, worker 0, saves the count. The same program runs in two processes on this
# machine. `save` writes in a thread, so that the program can give up after five seconds; without the thread it waits for ever.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call `save` on every worker, with a folder of its own for each, and delete the folders of the other workers at the end. Two
# workers that write to the same path disturb each other. This is right for every model and both versions of Keras. The tutorial
# below has functions for the names of the folders.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# A variable with `synchronization=ON_READ` has a separate value on each worker. TensorFlow adds up the values, or takes their
# mean, whenever the variable is read outside of `strategy.run`, and a save reads all variables. This sum is a collective
# operation: it ends when every worker has called it. The chief calls it inside `if task_id == 0`, and the other workers never do.
#
# What happens then depends on the other workers:
#
# - They wait for the chief: it waits for ever.
# - They have ended: after some seconds the chief raises an `UnavailableError`, which says that tasks are unhealthy.
# - They continue to train: the chief's sum meets their next all-reduce, and both raise if the shapes differ.
#
# On Keras 2, metrics and the moving statistics of batch normalization are such variables. On Keras 3 no variable of a layer, a
# metric or an optimizer is, so the chief can save a Keras model alone. Do not rely on it: a counter of your own in the same
# checkpoint is enough to hang.
#
# Not only saves hang. Everything that the chief alone does with all workers' values does, such as
# `print(seen.numpy())`.
#
# The table shows which saves the chief can do alone, for a model with batch normalization and a metric. See
# [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras#model_saving_and_loading).

# %% tags=["figure"]
# The broken program with a model, saved in three ways by the chief alone.
from strategy_clinic import figures

workers = session.setup.but(strategy="multi_worker", devices=2)
MODEL = """    norm = tf.keras.layers.BatchNormalization()
    model = tf.keras.Sequential([tf.keras.Input((1,)), norm])
    model.compile("sgd", "mse", metrics=["mae"])
checkpoint = tf.train.Checkpoint(model=model)
"""
(with_model,) = session.variants(
    "broken", "checkpoint = tf.train.Checkpoint(seen=seen)\n", {"model": MODEL}
).values()
PRINTED = 'print("examples:", tf.train.load_variable(path, "seen/.ATTRIBUTES/VARIABLE_VALUE"))'
with_model = with_model.replace(PRINTED, 'print("saved")')
CALLS = {
    'model.save(".keras")': ("model.save", "chief.keras"),
    'save_weights(".weights.h5")': ("model.save_weights", "chief.weights.h5"),
    "Checkpoint(model=model)": ("checkpoint.write", "chief"),
}
programs = {
    name: with_model.replace("target=checkpoint.write", f"target={call}").replace(
        'save("chief")', f'save("{path}")'
    )
    for name, (call, path) in CALLS.items()
}
BOTH = [workers.but(keras=3), workers.but(keras=2)]
ENDS = {
    name: ["Error" not in words for words in row]
    for name, row in session.prints(programs, BOTH).items()
}
figures.grid(ENDS, ["Keras 3", "Keras 2"], "ends", "hangs", "Does a save by the chief alone end?")

# %% [markdown]
# ## Try other setups
#
# With a strategy of one process there is one worker, which is the chief. Both programs print `8.0`.

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
# Nothing is saved here. The chief alone prints how many examples were classified correctly, and waits. Change the program so that
# it prints `8.0`.

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
