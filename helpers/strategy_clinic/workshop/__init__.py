"""Exercises for a class: handed out without solutions, and graded as they come back."""
