"""A check of an environment that others have set up, such as Colab's, against the versions that were tested."""

import importlib.util
import platform
from typing import TYPE_CHECKING

from ..base import project
from ..base.errors import UserError
from ..base.package_versions import version_of
from . import runtime

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

USED = ("tensorflow", "tf_keras", "keras", "matplotlib", "ipywidgets")  # by notebooks
TPU = (
    'This TPU runtime has no TensorFlow. For the TPU run: %pip install tensorflow-tpu==2.20.0 "libtpu<0.0.22", then '
    "%pip install --no-deps tf_keras==2.20.1, and restart the session (found in the packages, not run on a TPU); "
    "or choose a CPU runtime, where everything but the strategy `tpu` runs."
)


def greet() -> None:
    """Prints a sentence for each package that is missing or was not tested; raises a UserError without TensorFlow."""
    if importlib.util.find_spec("tensorflow") is None:
        raise UserError(without_tensorflow())
    for sentence in about_packages():
        print(sentence)


def without_tensorflow() -> str:
    if runtime.tpu_attached():
        return TPU
    packages = " ".join(f'"{package}"' for package in project.project()["dependencies"][:2])
    return f"This runtime has no TensorFlow: run %pip install {packages}, and restart the session."


def about_packages() -> list[str]:
    """Returns a sentence for each package, and for Python, that is missing or has a version that was not tested."""
    from packaging.requirements import Requirement

    sentences = []
    for text in project.requirements():
        package = Requirement(text)
        if package.name in USED:
            here = version_of(package.name)
            sentences.append(about_version(package.name, here, package.specifier))
    python = Requirement(f"Python{project.project()['requires-python']}")
    sentences.append(about_version("Python", platform.python_version(), python.specifier))
    return [sentence for sentence in sentences if sentence]


def about_version(name: str, here: str | None, tested: "SpecifierSet") -> str:
    if not here:
        # Another release of tf_keras would replace the TensorFlow that is here.
        release = ".".join((version_of("tensorflow") or "").split(".")[:2])
        package = f"tf_keras=={release}.*" if name == "tf_keras" else f"{name}{tested}"
        return f'There is no {name} here: run %pip install "{package}", or go without.'
    if tested.contains(here, prereleases=True):
        return ""
    return f"Here is {name} {here}, and tested is {tested}: the notebooks go on, but may show something else."
