# %% [markdown]
# # FM13. `None values not supported` when gradients are accumulated
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: None values not supported.` | `total + gradient` with one that is None, traced in `fit` or a `tf.function` | 2, 3 |
# | `ValueError: Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.` | the same, not traced | 2, 3 |
# | `TypeError: unsupported operand type(s) for +: 'NoneType' and 'NoneType'` | `first + second`, both gradients are None | 2, 3 |
# | `TypeError: unsupported operand type(s) for *: 'NoneType' and 'float'` | `gradient * 0.5` | 2, 3 |
# | `TypeError: unsupported operand type(s) for +: 'IndexedSlices' and 'IndexedSlices'` | the sum of gradients of an embedding; with `*`, too | 2, 3 |
# | `Gradients do not exist for variables ['dense_1/kernel', …] when minimizing the loss.` | a warning of an optimizer: harmless if the layer is meant to rest, else see FM34 | 2, 3 |
#
# `tape.gradient` returns `None` for a variable on which the loss does not depend, for example a layer that this batch did
# not call. An optimizer skips a `None`. Your sum, scaling or clipping does not.
#
# *Raises on Keras 2 and 3, under every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm13",
    slug="gradients_inconsistent",
    title="`None values not supported` when gradients are accumulated",
    sees="`None values not supported` when gradients are added up, or sums that belong to other variables",
    fix="put zeros where a gradient is None, and keep its place in the list",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"None values not supported|Attempt to convert a value \(None\)",
        ),
    ),
    prints="kernels after one step: [[0.9]] [[0.8]]",
    exercise_prints="gradients of kernel and bias: 2.0 1.0",
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm13", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two tasks take turns, each with its own head, and the gradients of both turns are added before one update. In each turn one
# head is not called.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Put zeros where a gradient is `None`. Do not filter the `None`s out: then the list is shorter, and `zip` pairs the gradients of
# one head with the sums of the other head. If the shapes are equal, or broadcast, nothing is raised.
#
# `unconnected_gradients=tf.UnconnectedGradients.ZERO` does the same for `tf.Variable`s and for variables of Keras 2. For
# variables of Keras 3 it raises an AttributeError; there it needs `[weight.value for weight in weights]`.
#
# Gradients of an embedding are `IndexedSlices`: call `tf.convert_to_tensor(gradient)` before you add or scale them. For weights
# that are not `float32` write `tf.zeros(w.shape, w.dtype)`.
#
# The check below the program raises for a `None`, a missing gradient or a wrong shape. Call it after the `None`s are replaced
# and before you add: `assert_gradients_fit(gradients, weights)`.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_gradients_fit))

# %% [markdown]
# ## Why
#
# The tape records operations and applies the chain rule from the loss back to the variables. From the loss of the first task no
# path leads to the second head. `None` means "not connected", which is different from zero: Adam, or SGD with momentum, moves
# a variable whose gradient is zero, and skips one whose gradient is `None`.
#
# The picture shows four ways to handle it. See [getting a gradient of
# None](https://www.tensorflow.org/guide/autodiff#getting_a_gradient_of_none).

# %% tags=["figure"]
# The program above with other lines for the gradients, with both versions of Keras.
from strategy_clinic import figures

LINE = "gradients = tape.gradient(loss, weights)  # wrong: None for the head that was not called"
ZERO = "unconnected_gradients=tf.UnconnectedGradients.ZERO"
FOUND = "found = tape.gradient(loss, weights)\n        gradients = "
WAYS = {
    "None is kept": "gradients = tape.gradient(loss, weights)",
    "None is filtered out": f"{FOUND}[g for g in found if g is not None]",
    "unconnected_gradients=ZERO": f"gradients = tape.gradient(loss, weights, {ZERO})",
    "zeros for None": f"{FOUND}[tf.zeros(w.shape) if g is None else g for g, w in zip(found, weights)]",
}
alone = session.setup.but(strategy="default", devices=1)
PLACES = [alone.but(keras=3), alone.but(keras=2)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
RIGHT, SHIFTED = session.mode.prints, "kernels after one step: [[0.7]] [[1.]]"
WORDS = {RIGHT: "right", SHIFTED: "wrong head", "AttributeError": "raises", "ValueError": "raises"}
GOT = {way: [WORDS.get(word, word) for word in row] for way, row in printed.items()}
BAD = {word for row in GOT.values() for word in row} - {"right"}
figures.words(GOT, ["Keras 3", "Keras 2"], BAD, "Which sum is right?")

# %% [markdown]
# ## Try other setups
#
# Switch the strategy: the outcome stays the same. The `None` is there before any gradient is added over replicas.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs under three strategies, and with the other version of Keras:

# %% tags=["table"]
two = alone.but(strategy="mirrored", devices=2)
SETUPS = [alone, alone.but(keras=session.setup.other_keras), two]
session.table([*SETUPS, two.but(strategy="central_storage")])

# %% [markdown]
# ## Exercise
#
# The gradients of a penalty on the kernel are added to those of the loss. The penalty has no gradient for the bias. Change the
# program so that it prints `2.0 1.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM34](fm34_no_gradients.ipynb): `None` for every variable.
# - [FM15](fm15_accumulation_under_strategy.ipynb): an accumulated update under a strategy.
# - [FM11](fm11_unbuilt_model.ipynb): a list of sums that is too short from the start.
# - [FM12](fm12_variables_recreated.ipynb): variables that are created again in every batch.
# - [FM14](fm14_weights_not_shared.ipynb): a gradient for each variable, and one variable too many.
# - What an answer on accumulated gradients says: [document 002](documents/002_gradient_accumulation.ipynb).
