"""The site: pages by what a reader comes for, and every notebook, to be read without a kernel and without a network."""

import sys
from pathlib import Path

from strategy_clinic.base import outcomes
from strategy_clinic.base.quick_imports import without_grammars

with without_grammars():
    from strategy_clinic import book

book.prepare(Path(__file__).parent / "notebooks")

project = html_title = "Strategy Clinic"
sys.path.insert(0, str(Path(__file__).parent / "extensions"))
extensions = ["myst_nb", "generated"]
highlight_language = "sh"  # of blocks that name none: commands
myst_heading_anchors = 2  # so that a link to a section is the same here and on GitHub
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # no stored notebook holds a widget, so nothing is fetched to show one
# Furo: one style sheet, one small script, the reader's own fonts, dark and narrow windows; it fetches nothing.
html_theme = "furo"
html_theme_options = {
    f"{kind}_css_variables": {
        "color-brand-primary": brand,
        "color-brand-content": brand,
        **{f"outcome-{row.name}": getattr(row, kind) for row in outcomes.ROWS},
    }
    for kind, brand in (("light", "#1d6b4c"), ("dark", "#7fd1ae"))
}
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["book.css"]
html_js_files = ["book.js", "switches.js", "triage.js", "search_errors.js"]
html_use_index = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
