"""A normalising flow (RealNVP) made of tf.Module, with an optimizer of its own."""
