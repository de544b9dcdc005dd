"""Experiments: functions that run under a setup, here or in other processes, what they prove, and the verdicts."""
