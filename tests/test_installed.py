"""The version of a package is that of the module that is imported, whatever its distribution is called."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import packaging
import pytest
from conftest import ROOT
from strategy_clinic.base import package_versions

BUILDS = ["tensorflow", "tf-nightly", "tensorflow-cpu", "tensorflow-rocm", "intel-tensorflow"]
ASKED = """
import sys
sys.path[:0] = {places!r}
from strategy_clinic.base.package_versions import version_of
from strategy_clinic.setups import environment_check, runtime
print(version_of("tensorflow"), runtime.versions()["tensorflow"], version_of("a_package_of_nobody"))
print([each for each in environment_check.about_packages() if each.split()[2] == "tensorflow"])
"""


def stand_in(folder: Path, distribution: str, version: str):
    """A distribution with nothing in it but an empty package `tensorflow`."""
    (folder / "tensorflow").mkdir(parents=True)
    (folder / "tensorflow" / "__init__.py").write_text(
        "raise ImportError('nobody has to import it')"
    )
    described = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (described / "top_level.txt").write_text("tensorflow\n")


@pytest.mark.parametrize(
    "distribution",
    [BUILDS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in BUILDS[1:])],
)
@pytest.mark.parametrize("version, told", [("2.21.0", False), ("2.23.0.dev20261026", True)])
def test_any_build_of_tensorflow_has_its_version(tmp_path, distribution, version, told):
    """An interpreter that sees the stand-in and the clinic, and none of this environment's packages."""
    stand_in(tmp_path, distribution, version)
    (tmp_path / "packaging").symlink_to(Path(packaging.__file__).parent)
    asked = ASKED.format(places=[str(tmp_path), str(ROOT / "helpers")])
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", asked], capture_output=True, text=True
    )
    versions, sentences = ended.stdout.splitlines()
    assert versions == f"{version} {version} None", ended.stderr
    assert (f"Here is tensorflow {version}, and tested is" in sentences) is told


def test_what_is_imported_counts_and_is_spelt_one_way(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "tensorflow", SimpleNamespace(__version__="2.23.0-dev20261026")
    )
    assert package_versions.version_of("tensorflow") == "2.23.0.dev20261026"
