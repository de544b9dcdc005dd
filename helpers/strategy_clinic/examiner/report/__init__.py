"""What an examination came to: for a person at a terminal, on a page, for other programs."""
