"""The reference of the command `clinic`, made from its parser."""

import argparse
from pathlib import Path

from strategy_clinic import cli


def commands() -> str:
    """Returns a section for each command, with its usage and its arguments."""
    group = next(each for each in cli.parser()._actions if each.choices)
    purposes = {each.dest: each.help for each in group._choices_actions}
    return "\n\n".join(
        section(name, purposes[name], parser) for name, parser in group.choices.items()
    )


def section(name: str, purpose: str, parser: argparse.ArgumentParser) -> str:
    shown = [each for each in parser._actions if each.help and each.dest not in ("help", "verbose")]
    usage = argparse.HelpFormatter(parser.prog, width=90)
    usage.add_usage(None, [each for each in parser._actions if each in shown], [], "")
    rows = [f"| {names_of(each)} | {row_text(each)} |" for each in shown]
    lines = [f"## clinic {name}", "", f"{purpose[0].upper()}{purpose[1:]}.", "", "```text"]
    lines += [usage.format_help().strip(), "```", "", "| argument | meaning |", "|---|---|", *rows]
    return "\n".join(lines)


def names_of(action: argparse.Action) -> str:
    names = ", ".join(f"`{each}`" for each in action.option_strings)
    return names or f"`{action.metavar or action.dest}`"


def row_text(action: argparse.Action) -> str:
    """Returns what an argument means, with its default where that is a value to read."""
    default = action.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    said = "default" in str(action.help) or not isinstance(default, str | int | Path)
    if said or default in ("", False, 0) or Path(str(default)).is_absolute():
        return str(action.help).replace("|", "\\|")
    return f"{action.help}; default: `{default}`".replace("|", "\\|")
