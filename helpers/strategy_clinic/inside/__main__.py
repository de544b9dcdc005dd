"""Starts a watched run: `python FOLDER/strategy_clinic/inside/__main__.py` or `python -m strategy_clinic.inside`."""

import os
import sys


def start() -> None:
    if (
        not __package__
    ):  # run as a file: the package is found in FOLDER, whatever the program's folder has
        sys.path[0] = os.path.abspath(__file__).rsplit(os.sep, 3)[0]
    from strategy_clinic.inside.main import main

    main()


if __name__ == "__main__":
    start()
