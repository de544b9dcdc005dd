# %% [markdown]
# # Start here
#
# A TensorFlow model works until it is distributed, checkpointed or loaded again. Each notebook here makes one such failure
# happen on the machine in front of you, says why it happens, proves a fix by values, and tests what documents say about it.

# %% [markdown]
# ## What this machine offers
#
# No accelerator is needed: one CPU is split into eight virtual devices, and TensorFlow's own strategies run on them.

# %% tags=["machine"]
from helpers import machine

machine.show()

# %% [markdown] tags=["map"]
# ## The map of failure modes
#
# *Loud* modes raise an error; *silent* ones do something else than you meant, without a word. The switches are the
# parameters that make the failure come and go.

# %% [markdown]
# [The atlas](atlas.ipynb) shows the same modes as a map of what breaks under which strategy, format and Keras.

# %% [markdown]
# ## Which of them is your error?
#
# Paste it with its traceback, from any version of TensorFlow and Keras, whole or in part, and press the button. The card names
# the notebook, the fix and the words that gave the mode away; *none of the modes* is an answer too. Nothing leaves this machine.
#
# After `%load_ext helpers`, an exception that nobody catches ends with the same answer in one line, in any notebook.

# %% tags=["panel"]
from helpers import desk

error, button, answer = desk.box()

# %% [markdown]
# ## How to read a notebook
#
# - Run all cells. A failure that a notebook shows is a failure that has just happened: the cell fails if it does not.
# - Four parameters at the top decide what runs: `strategy`, `devices`, `save_format` and `keras`. The panel near the end switches
#   them without another run of the notebook.
# - Every verdict says how it was obtained. *executed*: the code ran on the named devices, virtual CPUs unless you have better.
#   *traced*: TensorFlow's own `TPUStrategy` refused the program while it wrote down its graph, with no TPU attached.
#   *emulated*: it accepted the program, and all replicas of that graph ran on CPU devices. *compiled* is a compiler's word, and
#   *recorded* another machine's.
# - The exercise starts red. The solution is folded away below it.
# - The documents, 000 to 004, are five pages of advice about these failures: on reading weights in `strategy.run`, on checkpoints
#   around `apply_gradients`, on gradient accumulation, the reference of `TPUStrategy`, and on loading under `MirroredStrategy`.
#   Each claim that they make is put to the test in one of the notebooks: *true*, *half* or *false*.

# %%
machine.show_switches()

# %% [markdown]
# ## Without a browser
#
# `clinic triage error.txt` names the mode of an error.
# `clinic run fm25 --strategy mirrored --devices 1,2,4 --save-format keras,h5` runs one notebook over a grid of parameters;
# `papermill notebooks/fm25_load_outside_scope.ipynb out.ipynb -p devices 4` runs it once. Both fail when the failure does not
# behave as its notebook declares.
