"""Programs that are drawn at random, run on one device and on several, and shrunk to the smallest that differs."""
