"""Which messages lead to a page on which they do not stand: python tools/wordings_on_pages.py [--shrink]

It prints a table of the pages: how many wordings of TensorFlow 2.18 to 2.21 and Keras 2 and 3 lead to each, and how many of
them stand neither in its text nor in its outputs. --shrink takes from tests/wordings_missing_on_pages.toml what need not be
there any more; it adds nothing.
"""

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from strategy_clinic.triage import page_messages, wordings

EXCEPTIONS = Path(__file__).parents[1] / "tests" / "wordings_missing_on_pages.toml"


def excepted(path: Path = EXCEPTIONS) -> dict[str, list[str]]:
    """Returns the messages that may still be missing, by mode."""
    return {
        mode: text.strip().splitlines() for mode, text in tomllib.loads(path.read_text()).items()
    }


def missing() -> dict[str, list[str]]:
    """Returns the messages that are missing now, by mode."""
    modes = wordings.declared_modes()
    return {mode: absent for mode in modes if (absent := page_messages.missing(modes[mode]))}


def shrink(path: Path = EXCEPTIONS) -> None:
    now = missing()
    kept = {
        mode: [says for says in lines if says in now.get(mode, ())]
        for mode, lines in excepted(path).items()
    }
    head = path.read_text().partition("\nfm")[0]
    parts = [
        f"{mode} = '''\n" + "\n".join(lines) + "\n'''" for mode, lines in kept.items() if lines
    ]
    path.write_text("\n".join([head, *parts, ""]))


def table() -> str:
    lines = ["| page | wordings | missing | in the list |", "|---|---|---|---|"]
    now, listed = missing(), excepted()
    for mode in wordings.declared_modes():
        every = len(page_messages.of_today(mode))
        if every:
            counts = [every, len(now.get(mode, ())), len(listed.get(mode, ()))]
            lines.append(f"| {mode} | {' | '.join(map(str, counts))} |")
    total = [sum(map(len, found.values())) for found in (now, listed)]
    return "\n".join([*lines, f"{total[0]} are missing, {total[1]} may be"])


if __name__ == "__main__":
    if "--shrink" in sys.argv[1:]:
        shrink()
    print(table())
