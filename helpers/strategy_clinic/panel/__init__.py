"""What a reader looks at and clicks: figures, verdict cards, widgets."""

from .widgets import panel

__all__ = ["panel"]
