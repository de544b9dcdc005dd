"""Makes lanes, one at a time: an environment for each version in lanes.toml, and its record.

python tools/make_lanes.py [NAME ...]                all of them, or these; a second call goes on where the first was stopped
python tools/make_lanes.py nightly --only-at FOLDER  the environment and no record
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".venv-lanes"
OURS = {"tensorflow", "tf_keras", "keras"}  # what a lane has in another version
UNUSED = {"jupyterlab"}  # what no run without a reader needs


def described() -> dict:
    return tomllib.loads((ROOT / "tools" / "lanes.toml").read_text())


def others() -> list[str]:
    """Returns what the notebooks need besides: all but the packages that a lane chooses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["notebooks"]
    return [each for each in needed if re.match(r"[\w-]+", each)[0] not in OURS | UNUSED]


def commands(lane: dict, folder: Path) -> list[list[str]]:
    """What makes an environment; the clinic comes last and alone, as it would refuse other versions."""
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q"]
    return [
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, *lane["versions"], *others()],
        [*pip, "--no-deps", *lane["alone"], "-e", str(ROOT)],
        [python, "-m", "strategy_clinic.forkserver.kernelspec"],
    ]


def make(name: str, folder: Path):
    """Runs what was not run to its end for these versions before; the stamp is written last."""
    lane, stamp = described()[name], folder / "lane"
    if stamp.exists() and stamp.read_text() == repr(lane):
        print(f"{name}: {folder} is there", flush=True)
        return
    for command in commands(lane, folder):
        print(f"{name}: {' '.join(command[1:])}", flush=True)
        subprocess.run(command, cwd=ROOT, check=True)
    stamp.write_text(repr(lane))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("names", nargs="*", metavar="NAME", help=", ".join(described()))
    asked.add_argument("--only-at", type=Path, metavar="FOLDER")
    options, ended = asked.parse_args(), 0
    if unknown := set(options.names) - set(described()):
        asked.error(
            f"there is no lane {', '.join(unknown)}; lanes.toml has {', '.join(described())}"
        )
    for name in options.names or described():
        make(name, options.only_at or PLACE / name)
        if not options.only_at:
            clinic = [str(PLACE / name / "bin" / "clinic"), "record", "--lane", "--jobs", "2"]
            ended |= subprocess.run(clinic, cwd=ROOT).returncode
    return ended


if __name__ == "__main__":
    sys.exit(main())
