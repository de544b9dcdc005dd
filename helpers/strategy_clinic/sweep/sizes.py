"""The sizes of inputs, which tables need without TensorFlow."""

FEATURES = 6
CLASSES = 3
TIME = 5
