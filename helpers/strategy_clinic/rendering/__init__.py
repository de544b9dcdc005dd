"""Renders the pages' sources into executed notebooks, and finds notebooks by the names that a command is given."""
