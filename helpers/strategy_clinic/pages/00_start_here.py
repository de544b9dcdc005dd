# %% [markdown]
# # Start here
#
# A TensorFlow model works until it is distributed, checkpointed or loaded again. Each notebook here makes one such failure
# happen on the machine in front of you, says why it happens, proves a fix by values, and tests what documents say about it.

# %% [markdown]
# ## Which of them is your error?
#
# Paste it with its traceback, from any version of TensorFlow and Keras, whole or in part, and press the button. The card names
# the notebook, the fix and the words that gave the mode away; *none of the modes* is an answer too. Nothing leaves this
# machine.
#
# After `%load_ext strategy_clinic`, an exception that nobody catches ends with the same answer in one line, in any notebook.

# %% tags=["panel"]
from strategy_clinic import desk, finder, machine

error, button, answer = desk.box()

# %% [markdown]
# ## Or a program that goes wrong without a word?
#
# [Examine your code](examine_your_code.ipynb) runs a program of yours on virtual devices, compares, and marks the line to
# blame. After `%load_ext strategy_clinic`, `%%examine` above a cell does the same in any notebook.

# %% [markdown]
# ## No message to paste?
#
# Say what you see, or choose a document that you have read or the strategy that you use. The list holds what is left.

# %% tags=["panel"]
boxes, found = finder.narrow()

# %% [markdown] tags=["map"]
# ## The map of failure modes
#
# *Loud* modes raise an error; *silent* ones do something else than you meant, without a word. The switches are the
# parameters that make the failure come and go.

# %% [markdown]
# [The atlas](atlas.ipynb) shows the same modes as a map of what breaks under which strategy, format and Keras.

# %% [markdown]
# ## What this machine offers
#
# No accelerator is needed: one CPU is split into eight virtual devices, and TensorFlow's own strategies run on them.

# %% tags=["machine"]
machine.show()

# %% [markdown]
# ## How to read a notebook
#
# - Run all cells. A failure that a notebook shows is a failure that has just happened: the cell fails if it does not.
# - Four parameters at the top decide what runs: `strategy`, `devices`, `save_format` and `keras`. The panel below the fix
#   switches them without another run of the notebook.
# - `clinic` is the page, opened with these four. `session.reproduces(broken)` runs the failing code and requires it to fail as
#   told; `session.proves(fixed)` runs the repaired one.
# - `@experiment` marks a function that runs wherever its `setup`, the four parameters, needs it: here, in worker processes, or
#   under the other Keras. It returns a `Proof`: two lists of values that must be equal. A failure without an exception is a
#   proof that does not hold.
# - Every verdict says how it was obtained. *executed*: the code ran on the named devices, virtual CPUs unless you have better.
#   *traced*: TensorFlow's own `TPUStrategy` refused the program while it wrote down its graph, with no TPU attached.
#   *emulated*: it accepted the program, and all replicas of that graph ran on CPU devices. *compiled* is a compiler's word, and
#   *recorded* another machine's.
# - `print(pasted(checks.assert_tracked))`, with `from strategy_clinic import checks, pasted`, prints a health check with all
#   that it needs, for a project that has nothing but TensorFlow.
# - The exercise starts red. The solution is folded away below it.
#
# Five documents give advice about these failures, and each of their claims is put to the test in one of the notebooks: it is
# *true*, *half* or *false*. They are numbered, and a claim has a number within its document, such as 001-C4:
#
# | number | title |
# |---|---|
# | 000 | What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`? |
# | 001 | Why am I getting a Checkpointing error with apply_gradients()? |
# | 002 | How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow? |
# | 003 | tf.distribute.TPUStrategy, TensorFlow's reference |
# | 004 | Does `keras.models.load_model` function correctly with MirroredStrategy? |

# %%
machine.show_switches()

# %% [markdown]
# ## Without a browser
#
# `clinic triage error.txt` names the mode of an error.
# `clinic run fm25 --strategy mirrored --devices 1,2,4 --save-format keras,h5` runs one notebook over a grid of parameters;
# `papermill notebooks/fm25_load_outside_scope.ipynb out.ipynb -p devices 4` runs it once. Both fail when the failure does not
# behave as its notebook declares.
