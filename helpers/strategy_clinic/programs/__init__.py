"""The programs of the modes: plain TensorFlow scripts, their lines for a setup, and runs of them in processes of their own."""
