# %% [markdown]
# # The atlas: what breaks where
#
# Every failure mode under every setup that matters to it, as recorded by runs. A cell says what becomes of the broken code:
# it **raises**, it is **silent** (wrong, without a word), it **works** after all, or it **differs** by save format.

# %% tags=["records"]
from strategy_clinic import atlas

atlas.picture()

# %% [markdown]
# ## Look closer
#
# The filters need a running kernel; `clinic atlas page.html` writes the same as a page that needs none. Each cell leads to its
# notebook.

# %% tags=["panel"]
boxes, table = atlas.explorer()

# %% [markdown]
# ## What has changed over versions
#
# Other versions were run in the notebooks' own setups. Versions on which a mode says the same are one cell; a cell opens, by a
# click or by Enter, to the verdicts behind it, to what the message was and became, and to the versions between which it changed.

# %% tags=["records"]
atlas.over_versions()

# %% [markdown]
# ## What nobody has recorded yet
#
# A record is made on the runtime that it speaks of, never guessed from another.

# %%
atlas.show_missing()
