"""The tables of the sweep, from its newest record."""

import reports
from strategy_clinic.sweep import pictures


def tables() -> str:
    html = pictures.sweep_html(lambda report: f"upstream.html#{reports.anchor(report)}", level=2)
    return f"<div class='clinic-sweep'>{html}</div>"
