# %% [markdown]
# # Start here
#
# Many TensorFlow programs that work on one device fail, or silently train something else, once they are distributed, saved or
# loaded. Each notebook here shows one such failure as a short program that you can run and copy, the fixed program, and why.

# %% [markdown] tags=["frequent"]
# These are the ten most frequent messages in 448 reports and 158 threads.

# %% [markdown]
# These failures have no message:
#
# | what you see | cause | page |
# |---|---|---|
# | updates grow with the number of devices | the loss is averaged on each replica | [FM37](fm37_loss_scaled_per_replica.ipynb) |
# | training on one device after `load_model` | the model was loaded outside the scope | [FM25](fm25_load_outside_scope.ipynb) |
#
# ## Which of them is your error?
#
# Paste your error with its traceback, whole or in part, from any version of TensorFlow and Keras, and press the button. The
# answer names a notebook, the fix and the words that it was found by, or says *none of the modes*. Nothing leaves this machine.
#
# After `%load_ext strategy_clinic`, an exception that nobody catches ends with the same answer in one line, in any notebook.

# %% tags=["panel"]
from strategy_clinic import desk, finder, machine

error, button, answer = desk.box()

# %% [markdown]
# ## Or a program that gives wrong results without an error?
#
# [Examine your code](examine_your_code.ipynb) runs your program on different numbers of virtual devices, compares the runs, and
# marks the line that is wrong. After `%load_ext strategy_clinic`, `%%examine` above a cell does the same in any notebook.

# %% [markdown]
# ## No message to paste?
#
# Describe what you see in the field, or choose the strategy that you use or a document that you have read. The list shows the
# modes that match.

# %% tags=["panel"]
boxes, found = finder.narrow()

# %% [markdown] tags=["map"]
# ## All failure modes
#
# They are in groups, by what you see and where. Where the program of a mode *raises*, there is an error; *wrong numbers* come
# without one. Another program with the same mistake may do the other: the first lines of a page say what both do.

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
# - Run all cells, once the bar below says *Idle*. Every program on a page runs as a script of its own, in a new Python process. A
#   page whose programs do not behave as it says stops with an error.
# - A cell that begins with `%%program` is a program. Without that line it can be copied into a new file, or into the first
#   cell of a restarted notebook: devices are set before TensorFlow runs. The failing lines are marked `# wrong`, the changed
#   lines of the fix `# fixed`.
# - Four parameters, in a folded cell at the top, decide what runs: `strategy`, `devices`, `save_format` and `keras`. They replace
#   the lines of the programs that create the strategy, save and load. The panel switches them without running the page again,
#   and shows the programs for the setup that you choose.
# - Every result says how it was obtained. *executed*: the program ran on the named devices, virtual CPUs unless you have better.
#   *traced*: TensorFlow's own `TPUStrategy` refused the program while it was traced, with no TPU attached. *emulated*:
#   `TPUStrategy` traced the program, and the graph of all replicas ran on CPU devices. *compiled*: a compiler answered.
#   *recorded*: the result comes from another machine.
# - The exercise starts red. The solution is folded away below it.
#
# Five documents give advice about these failures. Each has a notebook that tests it, statement by statement:
# [weights in `strategy.run`](documents/000_weights_in_run.ipynb), [checkpoints](documents/001_checkpoints.ipynb), [gradient
# accumulation](documents/002_gradient_accumulation.ipynb), [`TPUStrategy`](documents/003_tpu_strategy.ipynb) and
# [`load_model`](documents/004_load_model.ipynb).

# %%
machine.show_switches()

# %% [markdown]
# ## Without a browser
#
# `clinic triage error.txt` names the mode of an error.
# `clinic run fm25 --strategy mirrored --devices 1,2,4 --save-format keras,h5` runs one notebook over a grid of parameters;
# `papermill notebooks/fm25_load_outside_scope.ipynb out.ipynb -p devices 4` runs it once. Both fail when a program does not
# behave as its page declares.
