# %% [markdown]
# # FM58. `You must feed a value for placeholder tensor` in `fit`: `steps_per_execution` under `MirroredStrategy`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: … You must feed a value for placeholder tensor 'while/body/_10/while/cond/then/_152/while/cond/Placeholder' with dtype int32` | `fit`, two or more mirrored devices | 3 |
# | no message: an epoch of 10 steps takes 12 | `steps_per_execution=4`, also without a strategy | 3 |
# | `TypeError: 'str' object cannot be interpreted as an integer` | `steps_per_execution="auto"` | 3 |
#
# Keras 3 runs several steps in a loop within one graph, and the all-reduce of `MirroredStrategy` fails in this loop.
#
# *Raises on Keras 3 under `MirroredStrategy` with more than one device. Keras 2 works.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm58",
    slug="steps_per_execution",
    title="`You must feed a value for placeholder tensor` in `fit`: `steps_per_execution` under `MirroredStrategy`",
    sees="`fit` with `steps_per_execution` raises `You must feed a value for placeholder tensor`, or takes too many steps",
    fix="leave out `steps_per_execution`, or let the strategy use `ReductionToOneDevice()`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"You must feed a value for placeholder tensor '\S*while/\S*cond/Placeholder",
            strategies=("mirrored",),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    prints="steps: 8",
    exercise_prints="steps: 20",
    unavailable={
        "multi_worker": "`fit` of Keras 3 raises under it for another reason",
        "parameter_server": "its `fit` needs a dataset for each worker",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm58", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The program asks for four steps in each call of the graph, and prints how many updates the optimizer has made.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Leave out `steps_per_execution`. The results are the same, because it only decides how often Python calls the graph.
#
# To keep it, choose another way to add up the gradients when you create the strategy:
#
# ```python
# strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())
# ```
#
# `HierarchicalCopyAllReduce()` works, too. Both copy gradients through one device, so measure whether you gain anything. A third
# way is a custom loop: call `strategy.run` several times within one `tf.function`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Each call of a graph from Python costs time, which small models notice. With `steps_per_execution=4` one call takes four steps.
# Keras 3 builds a `tf.while_loop` for them, with a `tf.cond` in it that stops when the data ends, and calls the step in this
# condition. By default `MirroredStrategy` adds up gradients with a collective operation, and in this place its graph has an input
# without a value. Why it has none was not found. Keras 2 has a loop without the condition, and works. The code is
# `multi_step_on_iterator` in `keras/src/backend/tensorflow/trainer.py`. `evaluate` and `predict` add up no gradients and work.
#
# These pages run on devices of one CPU. On GPUs the collective operation is another one, and this was not run there.
#
# Keras 3 also takes too many steps, and says nothing: `steps_per_epoch=10` with `steps_per_execution=4` takes 12, since the last
# call of an epoch is not cut short. The documentation of `compile` says: "At most, one full epoch will be run each execution." This
# is a bug in `keras/src/trainers/epoch_iterator.py`, and it needs no strategy. It is not reported yet;
# `upstream/steps_per_execution_overruns.md` is ready. Choose a number that divides the steps of an epoch.
#
# The tables show which strategies work with `steps_per_execution=4`, and how many steps an epoch of ten takes.

# %% tags=["figure"]
# The program above with other ways to add up the gradients on two devices.
from strategy_clinic import figures

two = session.setup.but(strategy="mirrored", devices=2)
BOTH = [two.but(keras=3), two.but(keras=2)]
WITH = 'tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.{}())'
START = "with strategy.scope():\n"
WAYS = {
    "the default": START,
    **{
        f"{name}()": f"strategy = {WITH.format(name)}\n{START}"
        for name in ("ReductionToOneDevice", "HierarchicalCopyAllReduce")
    },
}
printed = session.prints(session.variants("broken", START, WAYS), BOTH)
WORKS = {way: [words == session.mode.prints for words in row] for way, row in printed.items()}
figures.grid(WORKS, ["Keras 3", "Keras 2"], "works", "raises", "Which all-reduce works?")

# %% tags=["figure"]
# The program above without a strategy, with an epoch of ten steps and other numbers of steps in one call.
OPTION, FIT = "steps_per_execution=4", "batch_size=8, verbose=0"
ten = {
    f"steps_per_execution={number}": text.replace(FIT, f"{FIT}, steps_per_epoch=10").replace(
        "np.ones((64", "np.ones((128"
    )
    for number in (1, 4, 5)
    for text in session.variants("broken", OPTION, {"": f"steps_per_execution={number}"}).values()
}
alone = [each.but(strategy="default", devices=1) for each in BOTH]
TAKEN = {
    name: [words.split()[-1] for words in row] for name, row in session.prints(ten, alone).items()
}
figures.words(TAKEN, ["Keras 3", "Keras 2"], "12", "How many steps does an epoch of 10 take?")

# %% tags=["figure"]
# What each replica held in a step of both programs and how they ended, beside one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device, or under central storage, nothing has to be added up by a collective operation, and both programs print `8`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
PLACES = [two.but(devices=count) for count in (1, 2, 4)]
session.table(
    [*PLACES, two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
)

# %% [markdown]
# ## Exercise
#
# This program asks for two epochs of ten steps, without a strategy, and takes more. Change the program so that it still takes
# several steps in each call, and prints `20`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM24](fm24_xla_refuses.ipynb): `jit_compile=True` under `MirroredStrategy` raises `Trying to access resource`.
# - [FM42](fm42_input_runs_out.ipynb): the data ends before the steps that were asked for.
# - [FM43](fm43_retracing_every_step.ipynb): each step is slow for another reason.
# - [FM40](fm40_merge_call_in_nested_graph.ipynb): an update in a condition of your own.
