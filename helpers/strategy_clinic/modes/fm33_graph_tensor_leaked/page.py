# %% [markdown]
# # FM33. `is out of scope and cannot be used here`: a tensor that a `tf.function` stored is used outside it
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `TypeError: <tf.Tensor 'Mean:0' shape=() dtype=float32> is out of scope and cannot be used here. Use return values, … cannot be accessed from here, because it was defined in FuncGraph(name=…), which is out of scope.` | `stored + 1.0` or `stored > 0.0` outside of the `tf.function`; `print(stored)` raises nothing | 2, 3 |
# | `InaccessibleTensorError: <tf.Tensor …> is out of scope and cannot be used here. …` | after a `tf.range` loop or a `tf.cond` of the same `tf.function`, or around a nested one | 2, 3 |
# | `AttributeError: 'SymbolicTensor' object has no attribute 'numpy'` | `stored.numpy()`; FM07 has this message, too | 2, 3 |
# | `TypeError: float() argument must be a string or a real number, not 'SymbolicTensor'` | `float(stored)`; FM07 has this message, too | 2, 3 |
#
# Code in a `tf.function` stored a tensor in `self.something`, a list or a dictionary, and it is used outside. It is a symbolic
# tensor: it has no value there.
#
# *Raises on Keras 2 and 3, under every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm33",
    slug="graph_tensor_leaked",
    title="`is out of scope and cannot be used here`: a tensor that a `tf.function` stored is used outside it",
    sees="a tensor `is out of scope and cannot be used here`: TypeError or InaccessibleTensorError",
    fix="return the tensor from its function, or keep its value in a `tf.Variable`",
    document="000",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "TypeError",
            r"is out of scope and cannot be used here\. Use return values",
        ),
    ),
    prints="mean above zero: True",
    exercise_prints="minus the first mean: [-1.  1.]\nminus the first mean: [3. 5.]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` needs a dataset that each worker creates",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm33", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A layer keeps the mean of its last batch in an attribute, and the program reads it after `fit`. TensorFlow raises where the
# tensor is used. The line to change is the one that stores it.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# In a layer, create a variable with `add_weight` and assign to it: it keeps the value, and it is saved with the model. A
# `tf.Variable` in an attribute keeps the value too, but Keras 3 does not save it: [FM05](fm05_untracked_variable.ipynb).
# `aggregation` says how the values of several replicas become one. Keras 3, which has `tf.keras.Variable`, takes a string, and
# Keras 2 a constant. `evaluate` and `predict` call the layer, too, and so replace the value.
#
# In a function of your own, return the tensor and pass it on as an argument. In a `tf.range` loop, use a `tf.TensorArray` in
# place of a Python list.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `tf.function` runs your Python function once for each new input signature and records a graph. This run is the *trace*; later
# calls run the graph only. `model.fit` does this with the whole step, so your `call` and `train_step` are traced.
#
# In the trace `tf.reduce_mean` returns a symbolic tensor. It stands for a result inside this graph. The attribute keeps this
# tensor when the trace has ended. Eager code and other graphs cannot use it.
#
# A caller gets the values of what a function *returns*. A variable keeps a value from one call to the next.
#
# With several replicas, each one overwrites the attribute during the trace. The message then names a tensor such as
# `replica_1/…/Mean:0`.
#
# A function may use a *variable* of the code around it, also with several replicas. A *tensor* of another graph raises.
#
# The table keeps a mean in four ways and uses it in two places. See the guide on [outputs of a
# `tf.function`](https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values).

# %% tags=["figure"]
# Where can a kept mean be used? Each row is a way to keep it.
import tensorflow as tf

from strategy_clinic import figures


class Holder:
    pass


DATA = tf.constant([1.0, 3.0])


def attribute():
    holder = Holder()
    keep = tf.function(lambda data: setattr(holder, "mean", tf.reduce_mean(data)))
    keep(DATA)
    return holder.mean


def in_list():
    kept = []
    keep = tf.function(lambda data: kept.append(tf.reduce_mean(data)))
    keep(DATA)
    return kept[0]


def returned():
    return tf.function(lambda data: tf.reduce_mean(data))(DATA)


def variable():
    kept = tf.Variable(0.0)
    tf.function(lambda data: kept.assign(tf.reduce_mean(data)))(DATA)
    return kept


def error_of(use, kept):
    """Returns the name of the error that a use of the kept mean raises, or the value."""
    try:
        return f"{float(use(kept)):.1f}"
    except (TypeError, ValueError) as error:  # an InaccessibleTensorError is a ValueError
        return type(error).__name__


def in_function(kept):
    return tf.function(lambda: kept + 0.0)()


WAYS = {
    "self.mean = tensor": attribute,
    "list.append(tensor)": in_list,
    "return tensor": returned,
    "variable.assign(tensor)": variable,
}
USES = {"eager code": lambda kept: kept + 0.0, "tf.function": in_function}
FOUND = {name: [error_of(use, keep()) for use in USES.values()] for name, keep in WAYS.items()}
figures.words(FOUND, list(USES), "TypeError", "Can the mean be used afterwards?")

# %% tags=["figure"]
# The mean is 1.0. The layer keeps it in a variable, and the model is saved and loaded.
LAST = 'print("mean above zero:", bool(centre.mean > 0.0))'
LOADED = """model.save("centre.keras")
loaded = tf.keras.models.load_model("centre.keras", custom_objects={"Centre": Centre})
print(float(loaded.layers[0].mean.numpy()))"""
(weight,) = session.variants("fixed", LAST, {"add_weight": LOADED}).values()
plain = weight.replace('self.add_weight(initializer="zeros",', "tf.Variable(0.0,")
KEPT = {"self.add_weight": weight, "tf.Variable": plain.replace(", aggregation=how", "")}
alone = session.setup.but(strategy="default", devices=1)
MEANS = session.prints(KEPT, [alone.but(keras=3), alone.but(keras=2)])
figures.words(MEANS, ["Keras 3", "Keras 2"], "0.0", "The mean after load_model")

# %% [markdown]
# ## Try other setups
#
# With `mirrored` and two devices the message names a tensor of the second replica. The error is the same under every setup.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies with two devices, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
session.table([*SETUPS, alone.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This function should subtract the mean of the first batch from every batch. There is one function and one trace, so nothing is
# raised. Instead, each batch loses its own mean. It should print `[-1.  1.]` and `[3. 5.]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM07](fm07_python_in_traced_step.ipynb): Python that runs once per trace, where every step was meant, as in the exercise.
# - [FM01](fm01_host_read_in_replica.ipynb): `.numpy()` during the trace.
# - [FM12](fm12_variables_recreated.ipynb): where to create a variable that has to last.
# - [FM38](fm38_replica_state_diverges.ipynb): statistics that each replica keeps from its own part of a batch.
# - What an answer on `get_weights()` says: [document 000](documents/000_weights_in_run.ipynb).
