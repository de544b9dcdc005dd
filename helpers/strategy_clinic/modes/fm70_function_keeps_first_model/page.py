# %% [markdown]
# # FM70. A new model is never trained: `tf.function` keeps the first one
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `kernel in fold 1: 1.0` | the function, in place of 1.5: it trains the model of fold 0 again, and the loss goes on falling | 2, 3 |
# | `ValueError: tf.function only supports singleton tf.Variables …` | the function, if the model is its argument: see FM12 | 2, 3 |
#
# A traced function looks up a global name such as `model` once, when it is traced. If the name gets another model later, the
# function does not notice.
#
# *Wrong result without an error, on Keras 2 and 3, with every strategy or none.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm70",
    slug="function_keeps_first_model",
    title="A new model is never trained: `tf.function` keeps the first one",
    sees="in a loop over folds, or in a cell that is run again, only the first model changes, and nothing was raised",
    fix="create the `tf.function` again for each model, or pass the model as an argument",
    document="002",
    switches=("strategy", "devices"),
    symptoms=(Symptom("SilentFailure", r"it prints 'kernel in fold 1: 1\.0'"),),
    prints="kernel in fold 0: 1.5\nkernel in fold 1: 1.5",
    exercise_prints="new model: 1.0\nbest model: 5.0",
    unavailable={"parameter_server": "its workers take their steps one by one"},
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm70", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two models are trained for a step each, as in a cross-validation. The step should move both kernels from 1 to 1.5.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create the function where you create the model. It is traced once for each model, which takes a moment.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In a notebook, run the cell with `@tf.function` again whenever you have run the one that makes the model.
#
# Other ways:
#
# - Pass the model and the optimizer: `train_step(model, optimizer, x, y)`. TensorFlow traces again for another object. Build
#   the optimizer before, by `optimizer.build(model.trainable_variables)`, or the second one can raise: see
#   [FM12](fm12_variables_recreated.ipynb).
# - Put the step, as a method with `@tf.function`, into a class whose objects hold a model, and make a new object for each
#   model. Giving another model to the same object fails in the same way.
# - `fit` has no such failure, since each model makes a function of its own.
#
# A Python number by a global name, such as a learning rate, stays as it was, too. Put it into a `tf.Variable`, and `assign` to
# it.
#
# ## Why
#
# `tf.function` runs Python once for each new combination of types and shapes of its arguments, and afterwards the graph. A
# name that is not an argument is no part of this combination. The graph has the variables of the first model, and keeps them,
# even if no name leads to this model any more. So all folds train the first model. Its loss looks like a good start in each
# later fold, and the scores of later folds are those of a model with its initial weights.
#
# The table shows the second kernel. See [the guide to
# `tf.function`](https://www.tensorflow.org/guide/function#depending_on_python_global_and_free_variables), which warns of free
# variables of Python.

# %% tags=["figure"]
# The program above with other ways to give the function its model, on both versions of Keras.
from strategy_clinic import figures

text = session.texts["broken"]
MADE = "train_step = tf.function(lambda: strategy.run(step))  # wrong: it keeps the first model\n"
ARGUMENTS = text.replace("def step():", "def step(model, optimizer):")
GIVEN = "lambda *of: strategy.run(step, of)"
ARGUMENTS = ARGUMENTS.replace("lambda: strategy.run(step)", GIVEN)
ARGUMENTS = ARGUMENTS.replace("    train_step()\n", "    train_step(model, optimizer)\n")
BUILD = "        optimizer.build(model.trainable_variables)\n"
TRAINER = """

class Trainer:
    @tf.function
    def step(self):
        strategy.run(step, (self.model, self.optimizer))


"""
METHOD = ARGUMENTS.replace(MADE.replace("lambda: strategy.run(step)", GIVEN), TRAINER)
CALL = """    trainer = {}
    trainer.model, trainer.optimizer = model, optimizer
    trainer.step()
"""
METHODS = {
    name: METHOD.replace("    train_step(model, optimizer)\n", CALL.format(maker))
    for name, maker in (
        ("a method, a new object", "Trainer()"),
        ("a method, the same object", "trainer if fold else Trainer()"),
    )
}
FIT = text.replace(
    "    train_step()\n",
    '    model.compile(optimizer, "mse")\n    model.fit(x, y, batch_size=8, verbose=0)\n',
)
WAYS = {
    "a global name": text,
    "a new function": session.texts["fixed"],
    "arguments": ARGUMENTS,
    "arguments, optimizer is not built": ARGUMENTS.replace(BUILD, ""),
    **METHODS,
    "without tf.function": text.replace("tf.function(lambda: strategy.run(step))", "step"),
    "fit": FIT,
}
here = session.setup.but(strategy="default", devices=1)
printed = session.prints(WAYS, [here.but(keras=3), here.but(keras=2)])
KERNELS = {
    way: ["raises" if "Error" in words else words.split()[-1] for words in row]
    for way, row in printed.items()
}
figures.words(KERNELS, ["Keras 3", "Keras 2"], ("1.0", "raises"), "The kernel of the second model")

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy and on both versions of Keras: tracing belongs to TensorFlow.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
session.table([here, two, here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# A new model predicts first, and then the best one is loaded. Change `predict` and its calls so that the last line prints
# `5.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM12](fm12_variables_recreated.ipynb): the same function raises, since the second model creates its variables in it.
# - [FM07](fm07_python_in_traced_step.ipynb): NumPy and counters of Python in a traced function.
# - [FM43](fm43_retracing_every_step.ipynb): a function that is created in each step, and traced each time.
# - [FM25](fm25_load_outside_scope.ipynb): a loaded model that uses one device only.
