"""Exercises: handed out, handed in, graded."""
