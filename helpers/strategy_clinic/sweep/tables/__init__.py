"""The rows of the sweep, one table for each kind."""
