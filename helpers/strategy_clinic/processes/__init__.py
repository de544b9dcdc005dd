"""Processes that hold TensorFlow: how they start, what they are asked, and runs of notebooks in them."""
