"""Failure modes: what goes wrong, how it is run, and what the run is held to."""
