# %% [markdown]
# # Check this runtime
#
# Do the results on these pages hold on your machine, with your TensorFlow, on your GPU? Run this notebook there: on Colab with a
# CPU, a GPU or a TPU, on Kaggle, in Binder or on your own machine. It runs the programs of other notebooks and compares their
# outcomes with those on the pages.

# %% [markdown]
# ## What this machine offers

# %% tags=["machine"]
from strategy_clinic import machine

machine.show()

# %% [markdown]
# ## Choose the modes
#
# One mode takes about half a minute. You can name several, such as `fm01 fm25`. On a TPU start with fm16. `all` checks all modes
# and takes half an hour or more on a small machine. You can interrupt the kernel at any time: no file is changed. `keras` is 2 or
# 3.

# %%
modes = "fm01"
keras = 3

# %% [markdown]
# ## The check
#
# Before anything else it names the errors that the installed releases of TensorFlow and Keras are known to have. On a machine
# with GPUs it then adds up over all of them once in each way, and once without direct copies between GPUs. Each way runs in a
# process of its own, which is killed after two minutes. The part that does not work is named before any program is suspected.
#
# It runs the programs of each mode under every strategy and save format that matters to the mode, and compares the outcomes with
# the record of this kind of machine. Without such a record it compares them with what the notebooks declare. On another version
# of TensorFlow it runs each mode in its notebook's own setup only, and compares with the nearest recorded version.
#
# Differences are listed first, with both messages. Then nbval compares the stored outputs of the notebooks: each dot is a cell
# whose output is the same.

# %% tags=["machine"]
from strategy_clinic import checkup

found = checkup.run(modes, keras)

# %% [markdown]
# ## Download the record
#
# The link downloads the record of this check: every verdict, its evidence, and the versions of TensorFlow and Keras. Put the file
# into `notebooks/records`, and [the atlas](atlas.ipynb) shows it. Records of GPUs and TPUs are welcome.

# %% tags=["machine"]
checkup.offer(found)
