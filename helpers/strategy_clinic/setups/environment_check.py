"""What a runtime that others have furnished lacks: a sentence for each, and the rest goes on where it can."""

import importlib.util
import platform

from ..base import project
from ..base.errors import UserError
from ..base.package_versions import version_of
from . import runtime

USED = ("tensorflow", "tf_keras", "keras", "matplotlib", "ipywidgets")  # by notebooks
TPU = (
    'This TPU runtime has no TensorFlow. For the TPU run: %pip install tensorflow-tpu==2.20.0 "libtpu<0.0.22", then '
    "%pip install --no-deps tf_keras==2.20.1, and restart the session (found in the packages, not run on a TPU); "
    "or choose a CPU runtime, where everything but the strategy `tpu` runs."
)


def greet():
    """Says nothing on a runtime that is as tested; stops a notebook only where there is no TensorFlow."""
    if importlib.util.find_spec("tensorflow") is None:
        raise UserError(without_tensorflow())
    for sentence in about_packages():
        print(sentence)


def without_tensorflow() -> str:
    if runtime.tpu_attached():
        return TPU
    wanted = " ".join(f'"{each}"' for each in project.project()["dependencies"][:2])
    return f"This runtime has no TensorFlow: run %pip install {wanted}, and restart the session."


def about_packages() -> list[str]:
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in project.requirements()]
    wanted.append(Requirement(f"Python{project.project()['requires-python']}"))
    said = [
        about_package(each.name, each.specifier)
        for each in wanted
        if each.name in (*USED, "Python")
    ]
    return [each for each in said if each]


def about_package(name: str, tested) -> str:
    found = version(name)
    if not found:
        return (
            f'There is no {name} here: run %pip install "{fitting(name, tested)}", or go without.'
        )
    if tested.contains(found, prereleases=True):
        return ""
    return f"Here is {name} {found}, and tested is {tested}: the notebooks go on, but may show something else."


def fitting(name: str, tested) -> str:
    """What to install. tf_keras is chosen to fit the TensorFlow that is here, since another would replace it."""
    if name == "tf_keras":
        return f"tf_keras=={'.'.join(version('tensorflow').split('.')[:2])}.*"
    return f"{name}{tested}"


def version(name: str) -> str | None:
    if name == "Python":
        return platform.python_version()
    return version_of(name)
