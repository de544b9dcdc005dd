"""From a source to a stored notebook, and the names by which it is found."""
