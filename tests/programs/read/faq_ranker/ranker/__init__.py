"""Ranks the entries of a FAQ for a question."""
