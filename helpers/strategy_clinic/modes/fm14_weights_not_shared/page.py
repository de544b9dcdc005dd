# %% [markdown]
# # FM14. A copied layer does not share its weights
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `encoder of the questions: [[0.94]], of the answers: [[0.88]]` | training; with one encoder both are 0.82 | 2, 3 |
# | `ValueError: The name "sequential" is used 2 times in the model. All operation names should be unique.` | a functional model with a copy of the same name | 3 |
# | `ValueError: The name "sequential" is used 2 times in the model. All layer names should be unique.` | the same | 2 |
#
# A copy has its own variables, so the model has twice as many weights, and the two encoders drift apart.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm14",
    slug="weights_not_shared",
    title="A copied layer does not share its weights",
    sees="two layers that should stay one drift apart in training, and nothing was raised",
    fix="call the same layer object twice, instead of copying it",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(Symptom("SilentFailure", r"it prints 'encoder of the questions: \[\[0\.94\]\]'"),),
    prints="encoder of the questions: [[0.82]]\nencoder of the answers: [[0.82]]",
    exercise_prints="kernel of the encoder: [0.82 0.82]\nkernel of the decoder: [0.82 0.82]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run in several workers",
        "parameter_server": "its `fit` needs a dataset for each worker",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm14", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One encoder should read both the questions and the answers, and the second part of the model gets a copy of it. `fit` trains
# the model for one step. With one encoder it prints `[[0.82]]` twice.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Use the same object in both places. A layer or a model may be called as often as you like. In a functional model the copy
# raises at first, because two layers have one name; another name for the copy removes the message, but not the second set of
# weights.
#
# The check below the program compares the variables of two layers or models by identity. Call it before training.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_shared))

# %% [markdown]
# ## Why
#
# Two layers share weights if both use the same variable objects. The usual ways to copy a layer create new variables.
# `clone_model` and `from_config` copy the configuration and initialise the weights again. `copy.deepcopy` and `set_weights` copy
# the present values, too, so a look at the values before training shows no difference.
#
# Two variables are two entries in `trainable_variables`, with two gradients. Each gradient is right for its own part of the
# model, so TensorFlow has nothing to report. `model.summary()` shows the difference: it counts twice as many parameters.
#
# Files separate what was shared. A generator, and the model of generator and discriminator, that are loaded from two files have
# two sets of weights, and `fit` of the model trains one: load the parts, and make the whole model of them. A copy keeps the values
# that it was given: a target network that is copied before `load_weights` begins with random ones. Copy it after the load.
#
# The picture trains the model with six ways to get the second encoder. See [shared
# layers](https://www.tensorflow.org/guide/keras/functional_api#shared_layers) in TensorFlow's guide.

# %% tags=["figure"]
# The program above with other lines for the second encoder, with both versions of Keras.
from strategy_clinic import figures

LINE = "answers = tf.keras.models.clone_model(questions)  # wrong: the same layers with new weights"
CLONE = "answers = tf.keras.models.clone_model(questions)"
WAYS = {
    "questions": "answers = questions",
    "Sequential of its layers": "answers = tf.keras.Sequential(questions.layers)",
    "clone_model": CLONE,
    "clone_model, set_weights": f"{CLONE}\n    answers.set_weights(questions.get_weights())",
    "copy.deepcopy": "import copy\n    answers = copy.deepcopy(questions)",
    "copy.copy of a layer": "import copy\n    answers = copy.copy(dense)",
}
alone = session.setup.but(strategy="default", devices=1)
PLACES = [alone.but(keras=3), alone.but(keras=2)]
printed = session.prints(session.variants("broken", LINE, WAYS), PLACES)
APART = "encoder of the questions: [[0.94]]\nencoder of the answers: [[0.88]]"
WORDS = {session.mode.prints: "shared", APART: "apart"}
SHARED = {way: [WORDS.get(word, word) for word in row] for way, row in printed.items()}
figures.words(SHARED, ["Keras 3", "Keras 2"], "apart", "Does it share weights?")

# %% [markdown]
# ## Try other setups
#
# Switch the strategy: the outcome stays the same. `MirroredStrategy` copies each variable to every device and keeps these copies
# equal, for each of the two encoders by itself.

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
# The decoder of this autoencoder should use the transposed kernel of the encoder. Both are equal before the step and differ
# after it. Change the program so that both kernels stay tied.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM12](fm12_variables_recreated.ipynb): variables that are created again in every batch.
# - [FM13](fm13_gradients_inconsistent.ipynb): gradients that are missing for a layer.
# - [FM25](fm25_load_outside_scope.ipynb): the copies that you want, one for each device.
# - What an answer on accumulated gradients says: [document 002](documents/002_gradient_accumulation.ipynb).
