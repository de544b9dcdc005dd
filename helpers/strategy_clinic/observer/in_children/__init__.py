"""A folder for PYTHONPATH: a Python that finds it observes itself, since an observed program has started it."""
