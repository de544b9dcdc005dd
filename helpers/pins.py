"""environment.yml and binder/runtime.txt, written from pyproject.toml: `python -m helpers.pins`."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def python_version() -> str:
    """The oldest Python that the project supports, which is the one that its fixed environments use."""
    return re.search(r">=\s*([\d.]+)", project()["requires-python"]).group(1)


def requirements() -> list[str]:
    return project()["dependencies"] + project()["optional-dependencies"]["test"]


def files() -> dict[Path, str]:
    """What each derived file must hold; the lock, as a constraint, decides the exact versions."""
    listed = "".join(f'      - "{requirement}"\n' for requirement in requirements())
    environment = (
        "# Written by `make lock` from pyproject.toml; the exact versions are those of requirements.lock.\n"
        f"name: {project()['name']}\ndependencies:\n  - python={python_version()}\n  - pip\n  - pip:\n"
        f"      - -c requirements.lock\n{listed}      - -e .\n"
    )
    return {
        ROOT / "environment.yml": environment,
        ROOT / "binder" / "runtime.txt": f"python-{python_version()}\n",
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
