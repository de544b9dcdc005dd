"""Output of a page for readers: figures, verdict cards and widgets."""
