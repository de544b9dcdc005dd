"""Runs in the program's process, in its own interpreter, and reports as events what the program does with TensorFlow."""
