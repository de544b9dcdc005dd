"""From facts to findings: pure functions, one for each failure mode, and what they read in sources and compare in runs."""
