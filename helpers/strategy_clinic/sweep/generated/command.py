"""The command `clinic sweep --generate`: prints each smallest program that differs, and what tells of it."""

from typing import TYPE_CHECKING

from ...base.display import say
from ...base.errors import UserError
from ..settled import REPOSITORY_FOLDER

if TYPE_CHECKING:
    from .search import Finding


def generate_programs(minutes: float, seed: int) -> int:
    """Runs drawn programs for so many minutes; returns 1 if one differs of which no report tells."""
    try:
        from .search import search
    except ImportError:
        raise UserError("--generate needs Hypothesis; run: pip install hypothesis") from None
    from .worker import worker

    def tell(finding: "Finding") -> None:
        print(in_words(finding), flush=True)

    say(f"runs programs that are drawn with the seed {seed} for {minutes:g} minutes")
    with worker() as asked:
        found = search(asked.result, minutes, seed, tell)
    news = [each for each in found.found if not each.known]
    print(
        f"{len(found.results)} programs have run; {len(found.found)} differ each in its own way, "
        f"{len(news)} of them in a way of which no report tells"
    )
    return 1 if news else 0


def in_words(finding: "Finding") -> str:
    """Returns what a program chose, how it differs, what tells of it, and its source if nothing does."""
    chosen = ", ".join(sorted(finding.program.choices)) or "a plain program"
    result = finding.result
    turns = "; one device that takes the parts in turn gives the same" if result.in_turn else ""
    lines = [
        chosen,
        f"  {result.outcome}: {result.says}{turns}",
        f"  {reference(finding.known) or 'news: no report tells of it'}",
    ]
    if not finding.known:
        lines += ["", *(f"    {line}".rstrip() for line in finding.program.source.splitlines())]
    return "\n".join(lines)


def reference(known: str) -> str:
    if not known or known.startswith("https://"):
        return known
    return f"{REPOSITORY_FOLDER}/{known}.md"
