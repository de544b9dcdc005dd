# %% [markdown]
# # FM59. `Collective has timed out`, or no message: one worker leaves the loop, and the others wait for ever
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: the other workers wait in their next step | the worker that left is still running | 2, 3 |
# | `DeadlineExceededError: … Collective has timed out during execution.` | a time limit is set, as below | 2, 3 |
# | `UnavailableError: … Collective ops is aborted by: … The following tasks are unhealthy (stopped sending heartbeats), or Socket closed` | the worker that left has ended: after some seconds | 2, 3 |
# | `InvalidArgumentError: … Shape mismatch in the collective instance` | the worker that left evaluates; uneven parts say so, too: FM19 | 2, 3 |
#
# One worker has left its loop: its data ended first, or it decided to stop by a value that only this worker has. The others
# wait for its gradients.
#
# *Hangs on Keras 2 and 3, under `MultiWorkerMirroredStrategy` only.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm59",
    slug="worker_leaves_early",
    title="`Collective has timed out`, or no message: one worker leaves the loop, and the others wait for ever",
    sees="on several workers training waits in a step for ever, or raises `Collective has timed out`",
    fix="let all workers take the same number of steps: decide with `strategy.reduce`, and distribute the dataset",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "DeadlineExceededError",
            r"Collective has timed out during execution",
            strategies=("multi_worker",),
        ),
    ),
    prints="steps: 5",
    exercise_prints="sum of all examples: 45",
    unavailable={
        "mirrored": "one loop runs the steps of all replicas, so that none of them can leave it alone",
        "central_storage": "one loop runs the steps of all replicas, so that none of them can leave it alone",
        "tpu_traced": "one loop runs the steps of all replicas, so that none of them can leave it alone",
        "parameter_server": "its workers do not wait for each other",
    },
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm59", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two workers train until the loss is small, and each has one of two examples. Started once, the program has one worker and ends;
# [FM47](fm47_chief_saves_alone.ipynb) has the lines of shell that set `TF_CONFIG` and start two. With `timeout_seconds=5` the
# worker that waits raises after five seconds. Without it, it waits for ever.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Stop all workers in the same step. What decides must have the same value on all of them: `strategy.reduce` returns the mean of
# all workers to each. This holds for early stopping, a limit of time, a loss that is `nan` and a signal, too.
#
# - If the data end first on one worker, distribute them with `experimental_distribute_dataset` or
#   `distribute_datasets_from_function`. Or write `dataset.repeat()`, and give every worker the same number of steps.
# - In `fit` of Keras 2, `steps_per_epoch` must be the same on all workers, and a callback must not set `stop_training` on one
#   only.
# - Keep a time limit that is longer than the slowest step.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# The gradients are added up by a collective operation, which ends when every worker has called it. Here worker 0 has a loss below
# 0.1 after four steps and leaves. Worker 1 has not, and waits in its fifth step.
#
# What happens then depends on worker 0:
#
# - It is still running: worker 1 waits for ever.
# - It has ended: worker 1 raises an `UnavailableError` within about ten seconds. The message may say that worker 0 has crashed.
#   Compare the numbers of steps in the logs.
# - It continues with another sum, as in an evaluation: this meets the sum of worker 1. If the shapes differ, both raise. If they
#   are equal, both get a wrong sum.
#
# The loop over a distributed dataset ends on all workers together: while one has data, the others take part in its steps with
# empty batches. With `MirroredStrategy` one Python loop runs the steps of all devices.
#
# The table shows which loops end if worker 1 has fewer batches, or leaves by a `break` of its own. See
# [Multi-worker training with Keras](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras).

# %% tags=["figure"]
# Two loops over ten numbers, on two workers. Worker 1 has fewer batches, or leaves after its first one.
from strategy_clinic import figures

workers = session.setup.but(strategy="multi_worker", devices=2)
PROGRAM = """import tensorflow as tf

limit = tf.distribute.experimental.CommunicationOptions(timeout_seconds=5)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=limit)
number = strategy.cluster_resolver.task_id


def part(context=None):
    return tf.data.Dataset.range(10).batch(2).shard(2, number)


@tf.function
def add(batch):
    return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)


batches = {batches}
for batch in batches:
    add(batch)
    {leave}
print("ended")
"""
BATCHES = {
    "own dataset": "part()",
    "distributed dataset": "strategy.distribute_datasets_from_function(part)",
}
LEAVE = {"fewer batches": "pass", "break": "if number == 1: break"}
programs = {
    (row, column): PROGRAM.format(batches=batches, leave=leave)
    for row, batches in BATCHES.items()
    for column, leave in LEAVE.items()
}
printed = session.prints(programs, [workers])
ENDED = {"ended": True, "DeadlineExceededError": False}
ENDS = {row: [ENDED[printed[row, column][0]] for column in LEAVE] for row in BATCHES}
figures.grid(
    ENDS, list(LEAVE), "ends", "waits", "Worker 1 ends first: does the loop end on worker 0?"
)

# %% [markdown]
# ## Try other setups
#
# Without a strategy there is one worker, and both programs print `5`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two workers with both versions of Keras, with a strategy for one device, and without a strategy:

# %% tags=["table"]
BOTH = [workers.but(keras=3), workers.but(keras=2)]
ONE = [workers.but(strategy=name, devices=1) for name in ("one_device", "default")]
session.table(BOTH + ONE)

# %% [markdown]
# ## Exercise
#
# Each worker reads its own part of five batches here. Worker 0 has three of them and worker 1 has two. Change the program so
# that all workers end together, and the sum has all examples. It should print `45`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM47](fm47_chief_saves_alone.ipynb): the chief waits in a save, or where it reads a value, and not in a step.
# - [FM48](fm48_file_sharding.ipynb): the files are divided unevenly among the workers.
# - [FM42](fm42_input_runs_out.ipynb): the input ends too early on all workers.
# - [FM41](fm41_multi_worker_start.ipynb): the workers do not even start.
