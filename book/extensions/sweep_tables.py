"""The tables of the sweep, from its newest record."""

from strategy_clinic.sweep import pictures


def tables() -> str:
    return f"<div class='clinic-sweep'>{pictures.sweep_html('upstream.html')}</div>"
