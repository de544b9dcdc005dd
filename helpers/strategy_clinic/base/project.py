"""The settings in pyproject.toml, and the files that are written from them: `python -m strategy_clinic.base.project`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import files


def declared() -> Mapping[str, Any]:
    return files.toml((files.ROOT / "pyproject.toml").read_text())


def project() -> dict[str, Any]:
    return dict(declared()["project"])


def setting() -> dict[str, str]:
    """Returns the repository and the tag that links and set-up cells name."""
    return dict(declared()["tool"]["clinic"])


def address() -> str:
    """Returns the address of the published repository, or "" if it is not published.

    Whatever names an address asks here: one that nobody owns could be registered by somebody else.
    """
    repository = setting()["repository"]
    return f"https://github.com/{repository}" if repository else ""


def published_notebooks() -> str | None:
    """Returns the address of the folder with the notebooks of this version, or None if it is not published."""
    return f"{address()}/blob/{setting()['tag']}/notebooks/" if address() else None


def python_versions() -> str:
    """Returns the oldest and the newest supported Python, for a sentence: 3.11 to 3.13."""
    first, after = re.findall(r"3\.(\d+)", project()["requires-python"])
    return f"3.{first} to 3.{int(after) - 1}"


def python_version() -> str:
    """Returns the oldest supported Python, which conda and Binder use."""
    return python_versions().split()[0]


def requirements() -> list[str]:
    """Returns what the notebooks need, with the versions that are tested."""
    return [*project()["dependencies"], *project()["optional-dependencies"]["notebooks"]]


def distribution_name(requirement: str) -> str:
    """Returns the name in `jupyter_client>=7` as registries spell it: jupyter-client."""
    return re.split(r"[^\w-]", requirement)[0].replace("_", "-").lower()


def extra_with(module: str) -> str | None:
    """Returns the first extra that installs this module, or None."""
    name = distribution_name(module)
    extras: dict[str, list[str]] = project()["optional-dependencies"]
    return next((extra for extra in extras if name in map(distribution_name, extras[extra])), None)


def install_command(extra: str) -> str:
    """Returns the command that adds an extra here. In a clone it names no package, since a registry has none of this name."""
    return (
        f"pip install -e '.[{extra}]'"
        if files.is_clone()
        else f"pip install 'strategy-clinic[{extra}]'"
    )


def derived() -> dict[Path, str]:
    """Returns the text of each derived file; the lock, as a constraint, decides the exact versions."""
    lines = [f'"{requirement}"' for requirement in requirements()]
    lines = ["-c requirements.lock", *lines, "-e .[test]"]
    environment = (
        "# Written by `make lock` from pyproject.toml; the exact versions are those of requirements.lock.\n"
        f"name: {project()['name']}\ndependencies:\n  - python={python_version()}\n  - pip\n  - pip:\n"
    ) + "".join(f"      - {line}\n" for line in lines)
    return {
        files.ROOT / "environment.yml": environment,
        files.ROOT / "binder" / "runtime.txt": f"python-{python_version()}\n",
    }


if __name__ == "__main__":
    for path, text in derived().items():
        path.write_text(text)
