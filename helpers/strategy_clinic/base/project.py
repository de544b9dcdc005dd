"""What pyproject.toml says, read in this one place, and what is written from it: `python -m strategy_clinic.base.project`."""

import re
import tomllib
from pathlib import Path

from . import files


def declared() -> dict:
    return tomllib.loads((files.ROOT / "pyproject.toml").read_text())


def project() -> dict:
    return declared()["project"]


def setting() -> dict:
    """The repository and the tag that links and set-up cells name."""
    return declared()["tool"]["clinic"]


def python_version() -> str:
    """The oldest Python that the project supports, which is the one that its fixed environments use."""
    return re.search(r">=\s*([\d.]+)", project()["requires-python"]).group(1)


def derived() -> dict[Path, str]:
    """What each derived file must hold; the lock, as a constraint, decides the exact versions."""
    requirements = project()["dependencies"] + project()["optional-dependencies"]["test"]
    listed = "".join(f'      - "{requirement}"\n' for requirement in requirements)
    environment = (
        "# Written by `make lock` from pyproject.toml; the exact versions are those of requirements.lock.\n"
        f"name: {project()['name']}\ndependencies:\n  - python={python_version()}\n  - pip\n  - pip:\n"
        f"      - -c requirements.lock\n{listed}      - -e .\n"
    )
    return {
        files.ROOT / "environment.yml": environment,
        files.ROOT / "binder" / "runtime.txt": f"python-{python_version()}\n",
    }


if __name__ == "__main__":
    for path, text in derived().items():
        path.write_text(text)
