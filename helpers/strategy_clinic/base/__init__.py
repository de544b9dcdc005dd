"""Errors, files, output, package versions and project settings; imports neither TensorFlow nor notebooks."""
