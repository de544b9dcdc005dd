"""The clinic's own modes as programs to examine, and the score that is kept of them."""
