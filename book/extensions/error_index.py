"""Pages that lead from what one sees to a failure mode, made from the declarations of the modes and their words."""

import json
from collections.abc import Iterable
from pathlib import PurePosixPath

from strategy_clinic.modes import groups as mode_groups
from strategy_clinic.modes import kinds, registry
from strategy_clinic.modes.failure_mode import FailureMode
from strategy_clinic.triage import page_messages, search_data, wordings


def page_of(mode: FailureMode) -> str:
    return PurePosixPath(mode.notebook).stem


def modes_of(kind: str) -> list[FailureMode]:
    """Returns the modes of a kind, those first that show it before anything else."""
    modes = [mode for mode in registry.modes() if kind in kinds.kinds_of(mode)]
    return sorted(modes, key=lambda mode: kinds.kinds_of(mode).index(kind))


def shown_as(name: str) -> str:
    """Returns a table of the modes of a kind, whose name has `_` for each space."""
    lines = ["| what you see | how to repair it | page |", "|---|---|---|"]
    for mode in modes_of(name.replace("_", " ")):
        lines.append(f"| {cell(mode.sees)} | {cell(mode.fix)} | [{mode.id}](../{mode.notebook}) |")
    return "\n".join(lines)


def groups() -> str:
    """Returns a list of the groups of modes, each with its sentence."""
    return "\n".join(
        f"- [{group.title}](../notebooks/{group.name}.md). {group.about}"
        for group in mode_groups.groups()
    )


def group_pages() -> str:
    """Returns the part of the sidebar that leads to all modes by way of their groups."""
    pages = [f"notebooks/{group.name}" for group in mode_groups.groups()]
    return toctree(pages, ":caption: Failure modes")


def group(name: str) -> str:
    """Returns the sentence of a group and a table of its modes, which the sidebar lists below it."""
    found, modes = next(
        pair for pair in mode_groups.grouped(registry.modes()) if pair[0].name == name
    )
    lines = ["| what you see | how it fails | page |", "|---|---|---|"]
    for mode in modes:
        words = f"{cell(mode.sees)} | {kinds.how_it_fails(mode)}"
        lines.append(f"| {words} | [{mode.id}]({page_of(mode)}.ipynb) |")
    return "\n".join([found.about, "", *lines, "", toctree(map(page_of, modes))])


def toctree(pages: Iterable[str], *options: str) -> str:
    return "\n".join(["```{toctree}", ":hidden:", *options, "", *pages, "```"])


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def messages() -> str:
    """Returns every message with which a page begins, and the pages of all modes that it may be of."""
    lines = ["## Messages", "", "| message | pages |", "|---|---|"]
    declared = wordings.declared_modes()
    for message, modes in page_messages.shared().items():
        pages = ", ".join(f"[{mode}](../{declared[mode].notebook})" for mode in modes)
        lines.append(f"| {code(message)} | {pages} |")
    return "\n".join(lines)


def code(message: str) -> str:
    """Returns a message as code, which may have backticks of its own."""
    return f"`` {cell(message)} ``" if "`" in message else f"`{cell(message)}`"


def search_field() -> str:
    """Returns a field that finds modes in a browser, with all that triage knows as its data."""
    data = search_data.data(lambda mode: f"../notebooks/{page_of(mode)}.html")
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<div class="clinic-search">
<label for="clinic-error">Error message, or some words</label>
<textarea id="clinic-error" rows="4" spellcheck="false"></textarea>
<div class="clinic-found" role="status"></div>
<script type="application/json">{written}</script>
</div>"""
