"""Records what the solutions of exercises print: on other numbers of devices, and with other data.

    python tools/record_expected.py [MODE ...]     # without a mode: those that are out of date

Each solution is run twice under each setup. What it does not print both times alike is left out.
"""

import sys

from strategy_clinic.base.files import write_whole
from strategy_clinic.modes import registry
from strategy_clinic.workshop import expected


def out_of_date() -> list[str]:
    return [mode.id for mode in registry.modes() if not expected.is_current(mode.id)]


def main() -> None:
    for name in sys.argv[1:] or out_of_date():
        found = expected.recorded(registry.mode_by_id(name))
        write_whole(expected.path_of(name), found.as_json())
        runs = [(right.devices, right.variation, right.prints) for right in found.runs]
        print(name, "constant" if found.constant else "", *runs, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
