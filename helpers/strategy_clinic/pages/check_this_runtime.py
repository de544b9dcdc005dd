# %% [markdown]
# # Check this runtime
#
# Opened on Colab with a CPU, a GPU or a TPU, on Kaggle, in Binder or on your own machine, this notebook runs other notebooks of
# the clinic where it is, and says whether failures and fixes come out as they are stored, recorded and declared.

# %% [markdown]
# ## What this machine offers

# %% tags=["machine"]
from strategy_clinic import machine

machine.show()

# %% [markdown]
# ## What is to be checked
#
# One mode takes about half a minute. You may name several, such as `fm01 fm25`; on a TPU fm16 says most. `all` takes them all,
# half an hour or more on a small machine. The stop button stops it, and nothing here is changed by it. `keras` is 2 or 3.

# %%
modes = "fm01"
keras = 3

# %% [markdown]
# ## The check
#
# First every verdict of these modes, under each strategy and save format that matters to them, against the record of this kind of
# runtime; where nobody has recorded one, against what the notebooks declare. On another version of TensorFlow it is each mode in
# its notebook's own setup, against the nearest version that is recorded. What is otherwise is told first, with both messages.
# Then the stored outputs, by nbval: a dot is a cell that says what it said.

# %% tags=["machine"]
from strategy_clinic import checkup

found = checkup.run(modes, keras)

# %% [markdown]
# ## What was found, to take away
#
# The link holds the record that the check has just made: every verdict, the evidence for it and the versions of this runtime.
# Of a GPU or a TPU nobody may have made one yet. In `notebooks/records` it shows in [the atlas](atlas.ipynb).

# %% tags=["machine"]
checkup.offer(found)
