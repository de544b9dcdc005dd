"""`python -m strategy_clinic.forkserver.kernelspec [--uninstall]`: what the kernel `python3` of this environment starts.

Notebooks name that kernel, so they start warm without a change to them.
"""

import argparse
import json
import sys
from pathlib import Path

from ..base.files import write_whole
from .client import KERNEL

MODULE = "strategy_clinic.forkserver.kernel"
WARM = Path(__file__).parent / "jupyter"  # a folder for JUPYTER_PATH, with the same kernel


def install(warm: bool = True) -> Path:
    """Writes a kernelspec, ipykernel's own if not `warm`, where every Jupyter tool of this environment finds it first."""
    from ipykernel.kernelspec import get_kernel_dict

    spec = get_kernel_dict()
    if warm:
        spec["argv"] = [MODULE if word == KERNEL else word for word in spec["argv"]]
    path = Path(sys.prefix) / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    # A new file: uv links one file into the environments of several projects.
    write_whole(path, json.dumps(spec, indent=1) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uninstall", action="store_true", help="write ipykernel's own kernelspec")
    options = parser.parse_args()
    print(install(warm=not options.uninstall))


if __name__ == "__main__":
    main()
