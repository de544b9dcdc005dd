# %% [markdown]
# # FM62. Out of memory on two GPUs: `MirroredStrategy` keeps all weights and slots on each of them
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ResourceExhaustedError: … OOM when allocating tensor with shape[…]` | a GPU is full: with one device, too | 2, 3 |
# | no message: `nvidia-smi` shows each GPU as full | also without need: `set_memory_growth`, see below | 2, 3 |
#
# A second device does not halve the memory that a model needs. Each device holds all weights and all slots of the optimizer. Only
# the examples of a batch, and what is computed from them, are divided.
#
# *Too much memory, on Keras 2 and 3, under each strategy that copies variables to all devices. On the CPU of this page nothing is
# raised, and it was not run on GPUs.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm62",
    slug="memory_per_device",
    title="Out of memory on two GPUs: `MirroredStrategy` keeps all weights and slots on each of them",
    sees="`OOM when allocating tensor`; with more devices each of them is as full as before",
    fix="plan for one device: all weights, all slots, and its part of the batch; use an optimizer with fewer slots",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'each device holds what was planned: False'",
            strategies=("mirrored", "multi_worker"),
            devices=(2, 4, 8),
        ),
    ),
    prints="each device holds what was planned: True",
    exercise_prints="devices that hold the average: 1",
    unavailable={
        "central_storage": "one device holds all variables, and the others only a part of the batch",
        "tpu_traced": "`strategy.run` outside of a `tf.function` raises there (fm16)",
        "tpu": "`strategy.run` outside of a `tf.function` raises there (fm16)",
        "parameter_server": "its variables are on parameter servers, and its workers take steps of their own",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm62", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The plan is the bytes of weights and slots, divided by the number of devices. The last lines count what each device holds. In
# `strategy.run`, a variable stands for the copy on the device of the replica.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Plan for one device: all weights, all slots, and its part of the batch.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If a step runs out of memory:
#
# - Keep the batch as it was on one device, such as `batch_size=64`. Each replica then gets a smaller part, which needs less
#   memory. `batch_size=64 * strategy.num_replicas_in_sync` keeps the part of each replica, and so its memory, as it was.
# - Take an optimizer with fewer slots: a list below compares them. A moving average of the weights and sums of gradients are
#   slots, too.
# - Keep what only the program reads, such as a moving average, outside of the scope. One device then holds it: see the exercise.
# - A model that does not fit on one device with one example fits on no number of devices under `MirroredStrategy`.
#   `tf.distribute` does not split a model.
#
# By default TensorFlow reserves nearly all memory of each GPU that it sees, whatever the program needs. Call
# `tf.config.experimental.set_memory_growth(gpu, True)` for each of `tf.config.list_physical_devices("GPU")` before anything runs;
# `nvidia-smi` then shows what is used.
#
# ## Why
#
# `MirroredStrategy` creates each variable of its scope once for each device, and all copies get the same updates. Keras creates
# the slots of an optimizer in the same way: `Adam` has two values for each weight, so weights and slots are three times as large
# as the weights.
#
# Virtual devices of a CPU share its memory, so that nothing is raised here. `clinic examine --counts train.py` reports the bytes
# of weights, slots and activations. It does not report them as a finding: most programs are meant so. See
# [Distributed training with TensorFlow](https://www.tensorflow.org/guide/distributed_training#mirroredstrategy).
#
# The picture has the thousands of bytes that each device holds; in a frame is what no number of devices makes smaller. The list
# has the size of the slots, in copies of the weights.

# %% tags=["figure"]
# The program above on one to eight devices: its variables, and two batches.
from strategy_clinic import figures

START = "variables = ["
text = session.texts["broken"]
COUNT = """replicas = strategy.num_replicas_in_sync


def held(*values):
    each = strategy.run(lambda *values: bytes_of(values), args=values)
    return round(max(strategy.experimental_local_results(each)) / 1000)


def part_of(batch):
    data = tf.data.Dataset.from_tensor_slices(tf.ones((batch, 1000))).batch(batch)
    return next(iter(strategy.experimental_distribute_dataset(data)))


print(held(*model.variables))
print(held(*optimizer.variables))
print(held(part_of(64)))
print(held(part_of(64 * replicas)))
"""
ROWS = [
    "the weights",
    "the slots of Adam",
    "its part of 64 examples",
    "its part of 64 * replicas examples",
]
mirrored = session.setup.but(strategy="mirrored")
PLACES = [mirrored.but(devices=count) for count in (1, 2, 4, 8)]
columns = session.prints({"Adam": text[: text.index(START)] + COUNT}, PLACES)["Adam"]
BYTES = dict(zip(ROWS, map(list, zip(*(words.split("\n") for words in columns)))))
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
UNDIVIDED = {*BYTES["the weights"], *BYTES["the slots of Adam"]}
figures.words(BYTES, COLUMNS, UNDIVIDED, "How many thousands of bytes does each device hold?")

# %% tags=["figure"]
# The slots of other optimizers on each device, in copies of the weights.
OPTIMIZERS = [
    "SGD()",
    "SGD(momentum=0.9)",
    "SGD(use_ema=True)",
    "SGD(gradient_accumulation_steps=4)",
    "RMSprop()",
    "Adam()",
    "Adam(amsgrad=True)",
    "Adam(use_ema=True)",
    "Adafactor()",
    "Lion()",
]
SLOTS = f"""weights = sum(bytes_of([variable]) for variable in model.variables)
for name in {OPTIMIZERS}:
    try:
        with strategy.scope():
            optimizer = eval("tf.keras.optimizers." + name)
            optimizer.build(model.trainable_variables)
    except (TypeError, ValueError):
        print("not there")
        continue
    each = strategy.run(lambda: bytes_of(optimizer.variables))
    print(round(max(strategy.experimental_local_results(each)) / weights))
"""
two = mirrored.but(devices=2)
program = text[: text.index(START)] + SLOTS
columns = session.prints({"slots": program}, [two.but(keras=3), two.but(keras=2)])["slots"]
print(f"{'copies of the weights':<40}Keras 3     Keras 2")
for name, *copies in zip(OPTIMIZERS, *(words.split("\n") for words in columns)):
    print(f"{name:<40}{copies[0]:<12}{copies[1]}")

# %% [markdown]
# ## Try other setups
#
# On one device the wrong line is right.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two, four and eight devices, with two processes, and with the other version of Keras:

# %% tags=["table"]
ALONE = two.but(strategy="default", devices=1)
MORE = [two, *(two.but(devices=count) for count in (4, 8)), two.but(strategy="multi_worker")]
session.table([ALONE, *MORE, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# A callback keeps a moving average of the weights in a second model, and each device has a copy of it. Change the program so that
# one device holds the average, and it prints `1`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM15](fm15_accumulation_under_strategy.ipynb): gradients of small batches are added up where a large batch does not fit.
# - [FM53](fm53_same_work_on_every_replica.ipynb): each device gets the whole batch, and so needs the memory for it.
# - [FM25](fm25_load_outside_scope.ipynb): only one device is used.
# - [FM43](fm43_retracing_every_step.ipynb): memory grows with each step.
