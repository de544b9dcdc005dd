"""Triage: from a pasted error, or a description in the reader's own words, to its failure mode."""
