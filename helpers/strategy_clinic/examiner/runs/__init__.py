"""Runs of a program that are made and watched, each in processes of its own, and which of them an examination needs."""
