# %% [markdown]
# # FM18. A tensor is split for more logical devices than a replica has
#
# A model is too large for one core of a TPU, so each replica gets several, and its tensors are split over them. The split
# copied from the reference raises before anything runs, although the strategy was copied from the same example.
#
# ```text
# ValueError: The product of `partition_dimensions` should be the same as the number of logical devices (=2). Received `partition_dimensions`=[1, 2, 4, 1],and their product is 8.
# ```
#
# *Loud, while the step is traced. Only a TPU has logical devices, and none is needed to see it. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm18",
    slug="logical_devices",
    title="A tensor is split for more logical devices than a replica has",
    sees="a ValueError about `partition_dimensions` while a TPU's step is traced",
    fix="make the product of `partition_dimensions` that of `computation_shape`, and divide evenly",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"product of `partition_dimensions` should be the same as the number of logical devices",
            strategies=("tpu_traced", "tpu"),
        ),
    ),
    claims=(
        Claim("003-C19", "a logical device that does not exist is a ValueError", "true"),
        Claim("003-C20", "with SPMD, to assign to a logical device is a ValueError", "true"),
        Claim("003-C21", "rank, divisibility and product of a split are checked", "true"),
        Claim("003-C22", "computation shape [1, 2, 2, 2] gives 8 logical devices", "half"),
        Claim("003-C23", "a split or replicated tensor keeps its value", "true"),
        Claim("003-C24", "the default is logical device 0", "true"),
        Claim("003-C25", "with SPMD every input must be split or replicated", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "tpu_traced"
devices = 8
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm18", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The reference explains a split of images over 2 x 4 logical devices. Its example of
# `experimental_replicate_to_logical_devices` makes this split as well, under a strategy whose replicas have two. It is the
# example that you have found.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, runner, tpu


def spread(setup, block, spmd=True):
    """A strategy whose replicas own `block` cores each; strategies other than a TPU's have no such thing."""
    if setup.strategy == "tpu_traced":
        return tpu.strategy("v2-8", block, spmd)
    if setup.strategy != "tpu":
        return build_strategy(setup)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    placed = tf.tpu.experimental.DeviceAssignment.build(topology, list(block), num_replicas=1)
    return tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=placed, experimental_spmd_xla_partitioning=spmd
    )


def annotate(strategy, how, tensor, *arguments):
    """Tells the compiler where a tensor belongs, if the strategy knows of such places."""
    method = getattr(strategy, f"experimental_{how}", None)
    return method(tensor, *arguments) if method else tensor


def image():
    return np.random.default_rng(0).normal(size=(1, 4, 8, 1)).astype("float32")


def edges(data):
    return tf.nn.conv2d(data, tf.constant([1.0, -1.0], shape=(1, 2, 1, 1)), 1, "SAME")


def find_edges(strategy):
    """Every replica splits the image two ways by four and looks for edges."""

    def step(data):
        parts = annotate(strategy, "split_to_logical_devices", data, [1, 2, 4, 1])
        return edges(parts)

    found = strategy.experimental_local_results(runner(strategy)(step, args=(image(),)))
    return Proof("every replica finds the edges of the whole", found, [edges(image())] * len(found))


# %%
@experiment
def broken(setup):
    strategy = spread(setup, (1, 1, 1, 2))  # guilty: two logical devices, for a split that needs 8
    return find_edges(strategy)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The *computation shape* says which block of the TPU's mesh one replica gets: x, y and z of the chips, and the cores of a chip.
# The product of its four numbers is how many logical devices the replica has. `partition_dimensions` is about something else:
# into how many parts each axis of a *tensor* is cut. Its length is the tensor's rank, each size must be divisible, and its
# product must be the same number again.
#
# Nothing derives one from the other, and the four numbers that look alike mean different things. With SPMD, which runs one
# program on all of a replica's cores, `assign` is refused whatever it asks for.
#
# The picture asks for everything, from replicas with two logical devices. See
# [`tf.distribute.TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy#experimental_split_to_logical_devices).


# %%
def traces(how, *arguments, spmd=False, size=(3, 4)):
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd)
    try:
        runner(strategy)(lambda: annotate(strategy, how, tf.ones(size), *arguments))
    except ValueError:
        return False
    return True


ASSIGN = "assign_to_logical_device"
SPLIT = "split_to_logical_devices"
COPY = "replicate_to_logical_devices"
ASKED = {
    "assign to 0": (ASSIGN, 0),
    "assign to 1": (ASSIGN, 1),
    "assign to 2": (ASSIGN, 2),
    "assign to -1": (ASSIGN, -1),
    "split 3 x 4 by [1, 2]": (SPLIT, [1, 2]),
    "by [2]: rank": (SPLIT, [2]),
    "by [1, 4]: product": (SPLIT, [1, 4]),
    "by [2, 1]: not divisible": (SPLIT, [2, 1]),
    "replicate": (COPY,),
}
FOUND = {row: [traces(*call, spmd=spmd) for spmd in (False, True)] for row, call in ASKED.items()}
figures.grid(FOUND, ["plain", "SPMD"], "traces", "ValueError", "Two logical devices per replica")

# %% [markdown]
# ## The fix
#
# Begin with the split that the tensor needs, take its product, and choose a block of so many cores: all 2 x 2 x 1 x 2 of a TPU
# v2-8 are eight. The replicas become fewer as they become larger; here one is left, so the global batch is its batch.
#
# The proof compares the result of the split image with that of the whole.


# %%
@experiment
def fixed(setup):
    strategy = spread(setup, (2, 2, 1, 2))  # repair
    return find_edges(strategy)


clinic.proves(fixed)

# %%
traced = clinic.setup.but(strategy="tpu_traced", devices=8)
one = clinic.setup.but(strategy="default", devices=1)
SETUPS = [
    traced,
    traced.but(keras=clinic.setup.other_keras),
    one,
    one.but(strategy="mirrored", devices=2),
]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# The TPU's rows fail. All others have no logical devices, keep the tensor whole, and find the same edges.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The rules of the reference, document 003, are checked as it says; a size that is unknown while tracing is not checked at all.
# Its shape [1, 2, 2, 2] makes eight logical devices on a mesh that is two chips deep, and fits no TPU v2-8, where most will try
# it. And with SPMD, a tensor about which nothing is said is accepted.
#
# All this was seen while tracing. Whether SPMD saves memory and time, as the reference says, only a compiler can tell.


# %% tags=["claims"]
def fits(mesh, block):
    """How many logical devices a replica has, or 0 if the block does not fit the mesh."""
    places = [[list(place) for place in np.ndindex(*mesh)]]
    described = tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=places)
    try:
        placed = tf.tpu.experimental.DeviceAssignment.build(described, block, num_replicas=1)
    except ValueError:
        return 0
    return placed.num_cores_per_replica


def kept(how, *arguments):
    """Whether an annotated tensor has the value that it had."""
    strategy, data = tpu.strategy("v2-8", (1, 1, 1, 2), True), np.ones((3, 4), "float32") * 5
    found = runner(strategy)(lambda: annotate(strategy, how, tf.constant(data), *arguments) + 1)
    return all(
        np.array_equal(each, data + 1) for each in strategy.experimental_local_results(found)
    )


def cores_of_a_variable(core=None):
    """The cores on which the copies of a variable lie."""
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2))
    with strategy.scope():
        if core is None:
            variable = tf.Variable(1.0)
        else:
            with strategy.extended.experimental_logical_device(core):
                variable = tf.Variable(1.0)
    return {part.device for part in strategy.experimental_local_results(variable)}


def accepts_what_is_not_annotated():
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd=True)
    found = runner(strategy)(lambda data: data + 1, args=(tf.ones(3),))
    return len(strategy.experimental_local_results(found)) == 4


DEFAULT = cores_of_a_variable()
clinic.judges(
    {
        "003-C19": [FOUND["assign to 1"][0]] + [not FOUND[f"assign to {i}"][0] for i in (2, -1)],
        "003-C20": [not FOUND[f"assign to {i}"][1] for i in (0, 1)],
        "003-C21": [FOUND["split 3 x 4 by [1, 2]"][0]]
        + [not any(FOUND[row]) for row in FOUND if row.startswith("by")],
        "003-C22": [fits((1, 2, 2, 2), [1, 2, 2, 2]) == 8, fits((2, 2, 1, 2), [1, 2, 2, 2]) == 8],
        "003-C23": [kept(SPLIT, [1, 2]), kept(COPY)],
        "003-C24": [cores_of_a_variable(0) == DEFAULT, not DEFAULT & cores_of_a_variable(1)],
        "003-C25": [not accepts_what_is_not_annotated()],
    },
    evidence="traced",
)

# %% [markdown]
# ## Exercise
#
# A model of two stages, one on each of a replica's two cores. Somebody who counts from one has written it. Change it so that
# both stages have a place, and the result is what it was on one device.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = spread(setup, (1, 1, 1, 2), spmd=False)

    def stages(data):
        first = annotate(strategy, "assign_to_logical_device", data * 2.0, 1)
        return annotate(strategy, "assign_to_logical_device", first + 1.0, 2)

    got = strategy.experimental_local_results(runner(strategy)(stages, args=(tf.constant(3.0),)))
    return Proof("both stages have run", got, [7.0] * len(got))


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = spread(setup, (1, 1, 1, 2), spmd=False)

    def stages(data):
        first = annotate(strategy, "assign_to_logical_device", data * 2.0, 0)
        return annotate(strategy, "assign_to_logical_device", first + 1.0, 1)

    got = strategy.experimental_local_results(runner(strategy)(stages, args=(tf.constant(3.0),)))
    return Proof("both stages have run", got, [7.0] * len(got))


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): what else a TPU refuses before anything runs.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): what it means to have fewer replicas than before.
