"""`python -m strategy_clinic.forkserver.beside COMMAND`: runs a command, such as a Jupyter server, beside a fork server.

The fork server is there before a kernel is asked for, so the first kernel is warm, too, and stays as long as the command runs.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import client


def become(command: Sequence[str]) -> NoReturn:
    """Replaces this process by a command, once a fork server is starting, where there can be one."""
    program = shutil.which(command[0])
    if not program:
        sys.exit(f"There is no command {command[0]!r}.")
    client.start_for_this_process()
    os.execv(program, list(command))


if __name__ == "__main__":
    become(sys.argv[1:] or sys.exit(str(__doc__).splitlines()[0]))
