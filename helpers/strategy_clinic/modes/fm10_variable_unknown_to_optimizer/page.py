# %% [markdown]
# # FM10. `Unknown variable`, `This optimizer can only be called for the variables it was originally built with`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: Unknown variable: <Variable path=…>. This optimizer can only be called for the variables it was originally built with. …` | `fit` and `apply_gradients` | 3 |
# | `KeyError: The optimizer cannot recognize variable dense/kernel:0. This usually means you are trying to call the optimizer to update different parts of the model separately. …` | `fit` and `apply_gradients` | 2 |
# | no message: the unfrozen layers keep their weights | `fit` after `trainable = True`, without `compile` | 2, 3 |
# | no message: `base.trainable = True` unfreezes nothing | each training, where its layers were frozen one by one | 3 |
#
# The optimizer gets a variable that was not trainable, or did not exist, in its first step. If the model is not compiled again,
# nothing raises and the unfrozen layers do not train.
#
# *Raises on Keras 2 and 3, under every strategy. Without `compile` it is a wrong result without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm10",
    slug="variable_unknown_to_optimizer",
    title="`Unknown variable`, `This optimizer can only be called for the variables it was originally built with`",
    sees="`fit` or `apply_gradients` raises once the optimizer gets a variable that its first step did not have",
    fix="compile again with a new optimizer, or build the optimizer with all weights before the first step",
    document="001",
    switches=("keras", "strategy"),
    symptoms=(
        Symptom(
            "ValueError",
            r"This optimizer can only be called for the variables it was originally built with",
            keras=(3,),
        ),
        Symptom("KeyError", r"The optimizer cannot recognize variable", keras=(2,)),
    ),
    prints="kernel of the base: [[1.15625]]",
    exercise_prints="biases: [0.25] [0.25]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run there",
        "parameter_server": "`fit` does not run there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm10", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It trains a new head on a frozen base, unfreezes the base, compiles the model again and trains both: one step each time.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Compile again with a new optimizer. A string such as `"adam"` creates one in each `compile`, too.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# The new optimizer starts without momentum and with a step count of zero. To keep both, build the optimizer before the first
# step, while all weights are trainable:
#
# ```python
# base.trainable = True
# with strategy.scope():
#     optimizer.build(model.trainable_variables)
# base.trainable = False
# model.compile(optimizer, loss="mse")
# ```
#
# Keras 3 on TensorFlow ignores `base.trainable = True` if it is True already: layers that were frozen one by one stay frozen. Set
# it to False first. This is a bug, which is not reported yet: `upstream/trainable_set_again.md` is a report.
#
# A step may update fewer variables than the optimizer knows. Do not pass `model.variables`: they include moving means and the
# state of random generators.

# %% [markdown]
# ## Why
#
# An optimizer has a state. For each variable it keeps slots, such as the momentum, and an index from the variable to its slots.
# It creates both when it is built: in its first step, unless you call `build` yourself. A variable that was frozen then is in
# neither. New slots would be new variables in the middle of training, often inside a traced step, so Keras raises. Plain SGD has
# no slots, but it keeps the index and raises too. `compile` does not reset the optimizer that it gets.
#
# Without `compile`, `fit` continues with the training step that it traced before, in which the base is frozen. So does a custom
# loop: give it a new optimizer, built in the scope (`optimizer.build(model.trainable_variables)`), and a new `tf.function`.
#
# On Keras 3.7 and 3.10 `fit` says `numpy() is only available when eager execution is enabled`, as in
# [FM01](fm01_host_read_in_replica.ipynb), in place of the first message.
#
# The same error follows if one optimizer trains two models, if a layer is added after the first step, or if LoRA is enabled
# after it.
#
# The table shows what the second `fit` does. See
# [fine-tuning](https://www.tensorflow.org/guide/keras/transfer_learning#fine-tuning) in TensorFlow's guide.

# %% tags=["figure"]
# The program above with other lines before the second fit, and whether base and head train in it.
from strategy_clinic import figures

LINE = (
    '    model.compile(optimizer, loss="mse")  # wrong: this optimizer was built without the base'
)
SAME, NEW = 'model.compile(optimizer, loss="mse")', 'model.compile("sgd", loss="mse")'
WAYS = {
    "no compile": "    pass",
    "compile,\nsame optimizer": f"    {SAME}",
    "compile,\nnew optimizer": f"    {NEW}",
    "compile, optimizer\nbuilt with all": f"    {SAME}",
}
texts = session.variants("broken", LINE, WAYS)
FIRST = f"    {SAME}\ndata"
BUILT = "    base.trainable = True\n    optimizer.build(model.trainable_variables)\n"
BUILT += f"    base.trainable = False\n{FIRST}"
last = "compile, optimizer\nbuilt with all"
texts[last] = texts[last].replace(FIRST, BUILT)
PRINT = 'print("kernel of the base:", base.get_weights()[0])'
MOVED = (
    "print(*[bool(a != b) for a, b in zip(before, [base.get_weights()[0], head.get_weights()[0]])])"
)
BEFORE = "\nbefore = [base.get_weights()[0], head.get_weights()[0]]\nbase.train"
texts = {
    name: text.replace(PRINT, MOVED).replace("\nbase.train", BEFORE) for name, text in texts.items()
}


def outcome(printed):
    if "Error" in printed:
        return ["raises", "raises"]
    return ["trains" if "True" in word else "frozen" for word in printed.split()]


alone = session.setup.but(strategy="default", devices=1)
AFTER = {name: outcome(words) for name, (words,) in session.prints(texts, [alone]).items()}
figures.words(
    AFTER, ["base", "head"], ["frozen", "raises"], "What does fit train after unfreezing?"
)

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the exception has another class and another message. The strategy does not matter.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
session.table([*SETUPS, alone.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# A generator and a critic are compiled with one optimizer object, as in many first attempts at adversarial training. Change the
# program so that both train. It should print the same bias twice.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM12](fm12_variables_recreated.ipynb): the variable is unknown because each call creates another one.
# - [FM09](fm09_optimizer_slots_missing.ipynb): a checkpoint is restored into an optimizer that is not built.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): an optimizer is built inside a traced step.
# - [FM34](fm34_no_gradients.ipynb): an update that has no gradients.
