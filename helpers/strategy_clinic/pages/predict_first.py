# %% [markdown]
# # Predict first: which number will replica 1 hold?
#
# A training program on two devices, before anybody has seen what it does. Write down what each replica will hold, then compare it
# with a run. What you did not expect is what the notebook of the failure explains.

# %% [markdown]
# ## Choose a program
#
# `mode` is the notebook whose broken program runs, such as `fm37` or `fm25`. `devices` is the number of replicas. `predictions`
# are answers to the questions below, separated by commas, for a run without a browser; leave out the numbers that you do not know.

# %% tags=["parameters"]
mode = "fm37"
devices = 2
keras = 3
predictions = ""

# %% [markdown]
# ## The program and the questions
#
# The program has run on the devices and on one device with the same examples, and every number was kept. Read the program. Who
# computes what, from which examples?

# %% tags=["machine"]
from strategy_clinic import prediction

page = prediction.ask(mode, devices, keras)

# %% [markdown]
# ## Your predictions
#
# Write a number into each field. Then press the button: each answer is compared with what the run holds, and the tables of the step
# appear below. An answer is right within one percent.

# %% tags=["panel"]
page.fields()

# %% tags=["machine"]
page.compare(predictions)

# %% tags=["tests"]
# What the run holds is right, and twice as much is wrong; a question without an answer gets the run's number.
HELD = [question.held for question in page.questions]
RIGHT = page.compared([str(each) for each in HELD]).splitlines()
assert [line.endswith("as in the run.") for line in RIGHT] == [True] * len(HELD)
WRONG = page.compared([str(2 * each + 1) for each in HELD]).splitlines()
assert not any(line.endswith("as in the run.") for line in WRONG)
assert "predicted" not in page.compared(["", "1"]).splitlines()[0]

# %% [markdown]
# ## In a class
#
# Give everybody two minutes before the button is pressed, and collect the answers on the board. Where they differ, ask for the
# reason: which examples, divided by how many, added up by whom? Then press it, and open the notebook of the mode.
#
# `papermill predict_first.ipynb compared.ipynb -p predictions "1, 1, 2"` compares without a browser.
