# %% [markdown]
# # FM16. A TPU refuses a step that is run eagerly
#
# A training loop that calls `strategy.run(step)` works on CPUs and GPUs, and raises on a TPU. So does a finished program in
# which somebody has left the debugging switch on.
#
# ```text
# NotImplementedError: TPUStrategy.run(fn, ...) does not support pure eager execution. please make sure the function
# passed into `strategy.run` is a `tf.function` or `strategy.run` is called inside a `tf.function` if eager behavior
# is enabled.
# ```
#
# *Loud, on a TPU only. TensorFlow's own `TPUStrategy` refuses the call before it needs hardware, so no TPU is needed to see it.
# The document is the reference of `tf.distribute.TPUStrategy` (003).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm16",
    slug="tpu_eager_run",
    title="A TPU refuses a step that is run eagerly",
    sees="`strategy.run` raises on a TPU: it does not support pure eager execution",
    fix="call `strategy.run` inside one `tf.function`, defined once, and leave `run_functions_eagerly` off",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"TPUStrategy\.run\(fn, \.\.\.\) does not support pure eager execution",
            strategies=("tpu_traced", "tpu"),
        ),
    ),
    claims=(
        Claim("003-C1", "a TPU refuses `strategy.run` in pure eager execution", "true"),
        Claim("003-C3", "the strategy says how many replicas it has and who found them", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "tpu_traced"
devices = 8
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm16", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You have tried the step on your own machine, and kept `tf.function` for the day when it has to be fast. You believe that it
# changes the speed and nothing else. Then the program moves to a TPU.

# %%
import contextlib

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

BATCH, RATE, STEPS = 16, 0.1, 3


def examples():
    return np.random.default_rng(0).normal(size=(BATCH, 3)).astype("float32")


def make_weights():
    return tf.Variable(tf.zeros((3, 1)), aggregation=tf.VariableAggregation.SUM)


def step_for(weights):
    """The step of one replica: its part of the batch, its part of the gradient."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        with tf.GradientTape() as tape:
            error = tf.matmul(mine, weights.read_value()) - 1.0
            loss = tf.reduce_sum(tf.square(error)) / BATCH
        weights.assign_sub(RATE * tape.gradient(loss, weights))

    return step


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        weights = make_weights()
    step = step_for(weights)
    for _ in range(STEPS):
        strategy.run(step)  # guilty: nothing is traced, so there is no program to compile
    return Proof("the weights have moved", [bool(np.any(weights.numpy()))], [True])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A GPU executes one operation after the other, and Python may run between them. A TPU executes one *program*, compiled for all of
# its cores. `TPUStrategy.run` builds that program from the graph of the `tf.function` around it. In eager execution there is no
# graph, so it raises. Other strategies run the step operation by operation.
#
# A `tf.function` is not enough while `tf.config.run_functions_eagerly(True)` is set. People set it to reach a breakpoint, and it
# runs every `tf.function` as plain Python.
#
# The picture calls one step in four ways. See
# [`tf.distribute.TPUStrategy`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy).


# %%
@contextlib.contextmanager
def debugging():
    """Every `tf.function` runs as plain Python, which makes breakpoints work."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def as_it_is(strategy, step):
    strategy.run(step)


def given_a_function(strategy, step):
    strategy.run(tf.function(step))


def inside_a_function(strategy, step):
    @tf.function
    def train_step():
        strategy.run(step)

    train_step()


def while_debugging(strategy, step):
    with debugging():
        inside_a_function(strategy, step)


def works(call, setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        weights = make_weights()
    try:
        call(strategy, step_for(weights))
    except NotImplementedError:
        return False
    return bool(np.any(weights.numpy()))


WAYS = {
    "run(step)": as_it_is,
    "run(tf.function(step))": given_a_function,
    "run(step) in a tf.function": inside_a_function,
    "the same while debugging": while_debugging,
}
one = session.setup.but(strategy="default", devices=1)
mirrored, traced = (one.but(strategy=name, devices=8) for name in ("mirrored", "tpu_traced"))
PLACES = [one, mirrored, traced]
COLUMNS = ["no strategy", "mirrored x8", "TPU x8"]
FOUND = {way: [works(call, place) for place in PLACES] for way, call in WAYS.items()}
figures.grid(FOUND, COLUMNS, "runs", "raises", "Which call does which strategy take?")

# %% [markdown]
# ## The fix
#
# Decorate one `train_step` with `tf.function`, outside of the loop, and call it in the loop. Then every strategy takes it.
# Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver.connect("local"))
#
#
# def step():
#     return tf.distribute.get_replica_context().all_reduce("SUM", 1.0)
#
#
# for _ in range(3):
#     strategy.run(step)  # NotImplementedError: does not support pure eager execution
# ```
#
# After, on a TPU with eight cores:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver.connect("local"))
#
#
# @tf.function
# def train_step():
#     def step():
#         return tf.distribute.get_replica_context().all_reduce("SUM", 1.0)
#
#     return strategy.run(step)
#
#
# for _ in range(3):
#     sums = train_step()
# print(strategy.experimental_local_results(sums)[0].numpy())  # 8.0
# ```
#
# `tf.function(strategy.run)(step)` in the loop is accepted as well, and slow: it makes a new function in every call. The second
# cell counts the traces, each of which is a compilation on a TPU. The proof compares the weights of all replicas with those of
# one device.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        weights = make_weights()
    step = step_for(weights)

    @tf.function  # repair: traced once, before the loop, so there is a program to compile
    def train_step():
        strategy.run(step)

    for _ in range(STEPS):
        train_step()
    alone = make_weights()
    for _ in range(STEPS):
        step_for(alone)()
    got = [part.numpy() for part in strategy.experimental_local_results(weights)]
    return Proof("every copy of the weights is that of one device", got, [alone.numpy()] * len(got))


session.proves(fixed)

# %%
traced_steps = []


def counted():
    """Python runs only while a step is traced."""
    traced_steps.append(1)


plain = build_strategy(one)
for _ in range(STEPS):
    tf.function(plain.run)(counted)
in_the_loop = len(traced_steps)


@tf.function
def train_step():
    plain.run(counted)


for _ in range(STEPS):
    train_step()
once = len(traced_steps) - in_the_loop
print(f"traces in {STEPS} steps: {in_the_loop} if made in the loop, {once} if made before it")

# %%
SETUPS = [
    traced,
    traced.but(keras=session.setup.other_keras),
    mirrored.but(devices=2),
    one,
]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch between `tpu_traced` and `mirrored`: only a TPU refuses. `tpu_traced` needs no hardware. What it refuses is *traced*;
# what it accepts is *emulated*, with all replicas on CPU devices.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003):
#
# > Note that TPUStrategy doesn't support pure eager execution, so please make sure the function passed into strategy.run is a
# > tf.function or strategy.run is called inside a tf.function if eager behavior is enabled.
#
# > cluster_resolver Returns the cluster resolver associated with this strategy.
#
# > num_replicas_in_sync Returns number of replicas over which gradients are aggregated.
#
# The run confirms all three, on TensorFlow's own class for a described TPU with eight cores.

# %% tags=["claims"]
tpu = build_strategy(traced)
resolver = tf.distribute.cluster_resolver.TPUClusterResolver
session.judges(
    {
        "003-C1": [not works(as_it_is, traced), not works(while_debugging, traced)],
        "003-C3": [tpu.num_replicas_in_sync == 8, isinstance(tpu.cluster_resolver, resolver)],
    },
    evidence="traced",
)

# %% [markdown]
# ## Exercise
#
# This loop is traced, and counts how many examples each replica has seen. Yesterday somebody looked for a mistake in it with a
# debugger. Change it so that a TPU takes it again.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)

    def count():
        return tf.constant(BATCH // tf.distribute.get_strategy().num_replicas_in_sync)

    @tf.function
    def counts():
        return strategy.run(count)

    tf.config.run_functions_eagerly(True)
    try:
        got = strategy.experimental_local_results(counts())
    finally:
        tf.config.run_functions_eagerly(False)
    return Proof("the replicas have seen the whole batch", [sum(map(int, got))], [BATCH])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)

    def count():
        return tf.constant(BATCH // tf.distribute.get_strategy().num_replicas_in_sync)

    @tf.function
    def counts():
        return strategy.run(count)

    got = strategy.experimental_local_results(counts())
    return Proof("the replicas have seen the whole batch", [sum(map(int, got))], [BATCH])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): what else changes when a step is traced.
# - [fm24 xla_refuses](fm24_xla_refuses.ipynb): a traced step that cannot be compiled.
# - [fm01 host_read_in_replica](fm01_host_read_in_replica.ipynb): a step that reads its weights, which a TPU refuses as well.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): a step that is called without `strategy.run`.
