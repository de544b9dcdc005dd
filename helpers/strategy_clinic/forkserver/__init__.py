"""The fork server, which has TensorFlow imported, its client, and kernels that are forked from it; an extra."""
