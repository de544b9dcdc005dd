# %% [markdown]
# # The atlas: which program fails under which strategy
#
# Each row is the broken program of one failure mode, and each column is a strategy with a number of devices. The signs are
# explained beside it. Where Keras 2 and Keras 3 have different outcomes, a mode has two rows. A program that does not depend on
# the strategy was run in its own setup only.

# %% tags=["records"]
from strategy_clinic import atlas

atlas.picture()

# %% [markdown]
# ## What has changed between versions
#
# Each program was also run with older versions of TensorFlow and Keras, and with the nightly builds, in its notebook's setup.
# Versions with the same outcome share one cell. Open a cell, with a click or with Enter, to see the message and the versions
# between which it changed.

# %% tags=["records"]
atlas.over_versions()

# %% [markdown]
# ## Filter by document, strategy, machine or save format
#
# The filters need a running kernel. `clinic atlas page.html` writes a page that needs none, with the same table and with all
# classes of Keras that `clinic sweep` has compared. Each cell is a link to its notebook.

# %% tags=["panel"]
boxes, table = atlas.explorer()

# %% [markdown]
# ## What has not been recorded
#
# A verdict is recorded on the machine that it is about. Nothing here was derived from runs on another kind of machine.

# %%
atlas.show_missing()
