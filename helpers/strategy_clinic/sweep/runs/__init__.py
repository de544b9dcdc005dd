"""Runs of the cells: all rows together, each in a process, and the command."""
