"""The engines know no failure mode: what is special about one is in its folder. The law is broken below."""

import re

from law import all_tests_of
from strategy_clinic.base import files

# Examples in the help and in the messages of commands that take an id.
EXAMPLES = {
    'help="ids such as fm25; without any: all modes"',
    'help="ids such as fm25, notebooks, or all"',
    'help="ids such as fm25, or documents; without any: all pages"',
    'help="such as fm49"',
    "give ids such as 'fm01 fm25', or 'all'.",
    "an id is fm and two digits, such as fm49.",
}


def law_engines_know_no_mode() -> list[str]:
    """No module outside the folders of the modes names one, in its code or in its comments."""
    package = files.package()
    engines = set(package.rglob("*.py")) - set(files.page_sources())
    outside = [path for path in engines if not path.parent.name.startswith("fm")]
    return [
        f"{path.relative_to(package)} names a mode: {line.strip()}"
        for path in sorted(outside)
        for line in path.read_text().splitlines()
        if re.search(r"fm\d\d", line) and not any(example in line for example in EXAMPLES)
    ]


def adding(name: str, text: str):
    def mutation(root):
        with open(root / "helpers" / "strategy_clinic" / name, "a") as file:
            file.write(f"\n{text}\n")

    mutation.__name__ = f"{name} with {text}"
    return mutation


MUTATIONS = [
    ("law_engines_know_no_mode", adding("examiner/engine.py", 'if mode == "fm05":\n    pass')),
    ("law_engines_know_no_mode", adding("triage/classify.py", "# except for fm38")),
    ("law_engines_know_no_mode", adding("cli.py", 'USUAL = "fm01"')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
