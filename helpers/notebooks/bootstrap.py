# Set-up: finds the helpers beside this notebook; on Colab and Kaggle, fetches them. It installs nothing.
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS, TAG, OLDEST = "https://github.com/OWNER/NAME", "TAG", (3, 11)
HOSTED = ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE")


class Stop(Exception):
    def _render_traceback_(self):  # what notebooks show instead of a traceback
        return [str(self)]


def has_helpers(folder):
    return (folder / "helpers" / "base" / "files.py").exists()


def new_folder():
    """Empty, beside this notebook or, where nothing can be written, in the home folder."""
    for place, instead in ((Path.cwd(), Path.home()), (Path.home(), None)):
        try:
            return Path(tempfile.mkdtemp(prefix="fetching-", dir=place))
        except OSError:
            if instead:
                print(f"Nothing can be written to {place}, so the helpers go to {instead}.")
    raise Stop(
        f"The helpers have to be fetched, and neither {Path.cwd()} nor {Path.home()} can be written: "
        "run this notebook from a folder that can be."
    )


def fetch(folder):
    command = ["git", "clone", "-q", "--depth=1", "-b", TAG, ADDRESS, str(folder)]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}  # fail where git would wait for a name
    try:
        subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        text = (getattr(error, "stderr", b"") or b"").decode(errors="replace") or str(error)
        said = (text.partition("fatal: ")[2] or text).strip().splitlines()[0]
        raise Stop(
            f"The helpers could not be fetched from {ADDRESS} at {TAG} ({said}): "
            "give this runtime the internet (Kaggle: Settings) and run this cell again."
        ) from None


def fetched():
    """The helpers at this notebook's own tag, fetched once for all notebooks of a runtime."""
    name = f"strategy-clinic-{TAG}"
    known = [each / name for each in (Path.cwd(), Path.home()) if has_helpers(each / name)]
    if known:
        return known[0]
    folder = new_folder()
    fetch(folder)
    return folder if folder.with_name(name).exists() else folder.rename(folder.with_name(name))


def helpers_folders():
    above = [each for each in (Path.cwd(), *Path.cwd().parents) if has_helpers(each)]
    return above or [fetched() for name in HOSTED if os.environ.get(name)]


if sys.version_info < OLDEST:
    need, have = (f"{each[0]}.{each[1]}" for each in (OLDEST, sys.version_info))
    raise Stop(
        f"The notebooks need Python {need} or newer, and this runtime has {have}: "
        "choose a newer one (Colab: Runtime, Change runtime type)."
    )
sys.path[:0] = [str(each) for each in helpers_folders()[:1]]
try:
    from helpers import hosts
except ImportError as error:
    if error.name != "helpers":
        raise
    raise Stop(
        f"No helpers beside or above this notebook: open it in a clone of {ADDRESS}."
    ) from None

hosts.greet()
