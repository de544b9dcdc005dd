# %% [markdown]
# # FM17. `Please provide a TPU Name to connect to`, `TPUs not found in the cluster`: no TPU is found
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: Please provide a TPU Name to connect to.` | `TPUClusterResolver(tpu="")`, or without a name | 2, 3 |
# | `NotFoundError: TPUs not found in the cluster. Failed in initialization: No OpKernel was registered to support Op 'ConfigureDistributedTPU' …` | `initialize_tpu_system` after `tpu="local"` | 2, 3 |
# | `RuntimeError: Cannot find any TPU cores in the system …` | the TPU at this address has no cores | 2, 3 |
# | `IndexError: index 0 is out of bounds for axis 0 with size 0` | `TPUStrategy(resolver)` without `initialize_tpu_system` | 2, 3 |
# | `KeyError: 'COLAB_TPU_ADDR'` | a script that reads the address of a TPU from a variable that is not set | 2, 3 |
#
# The first lines of a TPU program find the TPU, connect to it and initialise it. Here there is none, or none that this
# TensorFlow can use.
#
# *Raises on Keras 2 and 3, under every strategy, on a machine without a TPU that TensorFlow can use.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm17",
    slug="tpu_not_initialised",
    title="`Please provide a TPU Name to connect to`, `TPUs not found in the cluster`: no TPU is found",
    sees="`Please provide a TPU Name to connect to`, or no OpKernel for `ConfigureDistributedTPU`",
    fix='pass `tpu="local"`, and use another strategy after a `NotFoundError`',
    document="003",
    switches=("strategy",),
    symptoms=(Symptom("ValueError", r"Please provide a TPU Name to connect to"),),
    prints="cores of a TPU: 0\nmean over the replicas: 6.0",
    exercise_prints="no TPU is used\ntotal: 6.0",
    unavailable={
        "tpu": "the program is for machines without a TPU",
        "tpu_traced": "the program is for machines without a TPU",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm17", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It uses a TPU if there is one, and otherwise the strategy of its first line. This page runs it without a TPU.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Pass `tpu="local"` where the TPU is part of the machine, as on a TPU VM. For a TPU elsewhere pass its name or address. Then a
# machine without a TPU raises a `NotFoundError`, and the program continues with another strategy.
#
# Print the number of cores in each case; this program does it without a TPU. Otherwise a program on a TPU machine may train on
# its CPU and say nothing. If the number is 0 although there is a TPU, install a TensorFlow that can use it. There is none for
# TensorFlow 2.21:
#
# ```text
# pip install tensorflow-tpu==2.20.0 "libtpu<0.0.22"     Python up to 3.13
# pip install tensorflow-tpu==2.19.1                     Python up to 3.12, with the libtpu that fits it
# ```
#
# We know this from the packages. Nothing on this page has been run on a TPU, in Colab or in Kaggle.
#
# The images of TPU runtimes have changed. In Colab they have had no TensorFlow since
# [March 2025](https://github.com/googlecolab/colabtools/issues/5228), so that people install the plain `tensorflow`, which has no
# kernel for a TPU. Since [June 2025](https://github.com/googlecolab/colabtools/issues/5419) version 2.18 finds no TPU
# [there](https://github.com/tensorflow/tensorflow/issues/96203), with `tensorflow-tpu`, either; another `libtpu` may be why.
# Install the versions above together, and restart the session. This is only read in the issues.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `TPUClusterResolver` was written for TPUs in a network, which have names. With an empty name it reads the environment
# variables `KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS`, `TPU_NAME` and `TPU_CONFIG`. If none is set, it raises. With `TPU_NAME=local` it
# looks for a TPU of this name in the network.
#
# With `"local"` the resolver searches for nothing, and there is nothing to connect to. Only `initialize_tpu_system` needs the
# TPU. The ordinary `tensorflow` package knows its operation, `ConfigureDistributedTPU`, and has no kernel for it. The
# `NotFoundError` is therefore the same without a TPU and without `tensorflow-tpu`.
#
# The picture runs the four lines in order. See
# [`TPUClusterResolver`](https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TPUClusterResolver).

# %% tags=["figure"]
# The four lines in order with each name, up to the first that raises.
import tensorflow as tf

from strategy_clinic import figures

REFUSALS = (ValueError, IndexError, tf.errors.NotFoundError)


def each_line(name):
    """What becomes of each line: it passes, it raises, or it is not reached."""
    outcomes = []
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        outcomes.append("passes")
        tf.config.experimental_connect_to_cluster(resolver)
        outcomes.append("passes")
        tf.tpu.experimental.initialize_tpu_system(resolver)
        outcomes.append("passes")
        tf.distribute.TPUStrategy(resolver)
        outcomes.append("passes")
    except REFUSALS:
        outcomes.append("raises")
    return outcomes + ["not reached"] * (4 - len(outcomes))


LINES = ["TPUClusterResolver", "connect_to_cluster", "initialize_tpu_system", "TPUStrategy"]
NAMES = ["", "local"]
FOUND = dict(zip(LINES, map(list, zip(*map(each_line, NAMES)))))
COLUMNS = [f'tpu="{name}"' for name in NAMES]
BAD = ["raises", "not reached"]
figures.words(FOUND, COLUMNS, BAD, "Which line raises first?")

# %% [markdown]
# ## Try other setups
#
# The broken program raises under every strategy. The fixed program uses the strategy of its first line.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a TPU, with two strategies and two versions of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
two = one.but(strategy="mirrored", devices=2)
session.table([one, one.but(keras=session.setup.other_keras), two])

# %% [markdown]
# ## Exercise
#
# The `except` of this program was written for `tpu=""`. With `tpu="local"` the program stops on a machine without a TPU. Let it
# continue there. It should print `no TPU is used` and `total: 6.0`. Do not write `except Exception`, which would hide other
# errors.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM16](fm16_tpu_eager_run.ipynb): the next thing that a TPU refuses, once it is found.
# - [FM18](fm18_logical_devices.ipynb): the mesh of cores that `initialize_tpu_system` returns.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
