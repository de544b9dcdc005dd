"""From a program of the reader's own to the failure modes that it has, each with its line, its proof and its notebook."""
