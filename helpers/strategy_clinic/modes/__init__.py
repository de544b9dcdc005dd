"""Failure modes: one folder each, with its page, its words and its rule; and what a declaration may hold."""
