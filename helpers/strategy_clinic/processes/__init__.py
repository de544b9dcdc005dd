"""Processes that hold TensorFlow, and what is forked from them; they know no failure mode."""
