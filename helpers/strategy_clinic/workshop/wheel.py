"""The command `clinic wheel`: for a machine that has neither the clone nor an address to install from, such as Colab's."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..base import files
from ..base.display import say
from ..base.errors import UserError

BACKEND = "hatchling"
BUILD = f"import sys; from {BACKEND}.build import build_wheel; print(build_wheel(sys.argv[1]))"


def build_wheel(project: Path, folder: Path, tell: Callable[[str], None] = say) -> None:
    """Builds the wheel of a clone, or of a handout, by the build backend of both; uses no network.

    Raises UserError for a folder that is neither, and if the backend fails.
    """
    if not (project / "hatch_build.py").is_file():
        raise UserError(f"{str(project)!r} is no clone and no handout: hatch_build.py is missing.")
    place = files.writable(folder)
    build = [sys.executable, "-c", BUILD, str(place.resolve())]
    done = subprocess.run(build, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"The wheel was not built: {done.stderr.strip().splitlines()[-1]}")
    wheel = place / done.stdout.split()[-1]
    requirement = shlex.quote(f"strategy-clinic[notebooks] @ {wheel.resolve().as_uri()}")
    tell(f"wrote {wheel}; in Colab, upload it and a notebook, and run the notebook")
    tell(f"elsewhere run: pip install {requirement}")
