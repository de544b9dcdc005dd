"""The wheel, installed where the repository is not: the whole clinic, from an empty folder. Kernels are real."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT
from kernels import end_servers
from strategy_clinic import cli
from strategy_clinic.modes import registry
from strategy_clinic.triage import classify, wordings
from test_handout import solution_lines

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PROJECT = ("hatch_build.py", "pyproject.toml", "requirements.lock")
KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")
# In no symptom that a MODE declares, so only a file of wordings leads from here to the mode.
ERROR = "ValueError: `logical_core_id` to assign must be lower then total number of logical devices"
# A symptom of a MODE, for what needs any error at all.
SYMPTOM = 'RuntimeError("merge_call called while defining a new graph or a tf.function")'
TELL = "import strategy_clinic, sys\n\nprint(sys.executable, strategy_clinic.__file__)"


@dataclass(frozen=True)
class Clinic:
    """An environment in which the clinic is installed, as somebody at a terminal uses it."""

    python: Path
    environment: dict

    def run(self, folder: Path, *command, text: str = "") -> subprocess.CompletedProcess:
        given = {"cwd": folder, "env": self.environment, "input": text, "timeout": 120}
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, **given)

    def ask(self, folder: Path, *command, text: str = "") -> str:
        """What a command says that ends as it should."""
        done = self.run(folder, *command, text=text)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout

    def clinic(self, folder: Path, *words, text: str = "") -> str:
        return self.ask(folder, self.python.with_name("clinic"), *words, text=text)

    def shell(self, folder: Path, *lines: str) -> str:
        """A real IPython shell, to which these lines are typed."""
        options = ("--no-banner", "--simple-prompt", "--colors=NoColor")
        typed = "".join(f"{line}\n" for line in lines)
        return self.ask(folder, self.python, "-m", "IPython", *options, text=typed)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def build_wheel(folder: Path, *options) -> Path:
    """As `clinic wheel` builds it."""
    assert cli.main(list(map(str, ["wheel", folder, *options]))) == 0
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Iterator[Clinic]:
    """The wheel in an environment of its own, beside links to what it needs; this repository is out of its sight."""
    folder = tmp_path_factory.mktemp("own")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "-q", "--no-deps", wheel], check=True)
    link_packages(next((folder / "venv").glob("lib/*/site-packages")))
    clinic = Clinic(python, environment(folder))
    clinic.ask(folder, python, "-m", "strategy_clinic.forkserver.kernelspec")
    yield clinic
    end_servers(folder)


def link_packages(own: Path):
    """All packages of this environment but the clinic itself, however it may be installed here."""
    left = ("strategy_clinic", "_strategy_clinic")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        kept = path.suffix != ".pth" and not path.name.startswith(left)
        if kept and not (own / path.name).exists():
            (own / path.name).symlink_to(path)


def environment(folder: Path) -> dict:
    """A warm process of its own, and nothing that says where this repository is."""
    (folder / "runtime").mkdir()
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {"XDG_RUNTIME_DIR": folder / "runtime", "IPYTHONDIR": folder / "ipython"}
    return kept | {name: str(path) for name, path in own.items()}


@pytest.fixture
def empty(tmp_path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


# What lies in it


def kept_here(*folders: str) -> set[str]:
    listed = ["git", "ls-files", "-co", "--exclude-standard", *folders]
    said = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in said.splitlines() if (ROOT / name).is_file()}


def packed(wheel: Path, folder: str) -> dict[str, bytes]:
    """The wheel's files below a folder, by their path there."""
    archive = zipfile.ZipFile(wheel)
    names = [name for name in archive.namelist() if name.startswith(folder)]
    return {name.removeprefix(folder): archive.read(name) for name in names}


def files_in(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_wheel_holds_the_package_and_the_notebooks_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    beside = kept_here("notebooks", "README.md", *PROJECT)
    shipped = {f"strategy_clinic/shipped/{name}" for name in beside}
    assert names == {name.removeprefix("helpers/") for name in kept_here("helpers")} | shipped


def test_the_wheel_of_a_handout_has_no_solution(tmp_path):
    assert cli.main(["handout", str(tmp_path / "OUT"), "fm37"]) == 0
    made = build_wheel(tmp_path / "wheel", "--of", tmp_path / "OUT" / "for-participants")
    lines = solution_lines()
    for name, text in packed(made, "strategy_clinic/").items():
        assert not [line for line in lines if line.encode() in text.replace(b'\\"', b'"')], name
    assert set(packed(made, "strategy_clinic/shipped/notebooks/")) == {
        "00_start_here.ipynb",
        "fm37_loss_scaled_per_replica.ipynb",
    }


@pytest.mark.parametrize("without", ["hatch_build.py", "pyproject.toml"])
def test_a_wheel_that_cannot_be_built_is_one_sentence(tmp_path, capsys, without):
    for name in {"hatch_build.py", "pyproject.toml"} - {without}:
        (tmp_path / name).write_text("")
    assert cli.main(["wheel", str(tmp_path / "out"), "--of", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_editable_installation_copies_nothing(tmp_path):
    """Else its copies would be older than the repository, in a folder that Python takes for the package."""
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path]
    subprocess.run([*install, "--editable", ROOT], check=True)
    assert not (tmp_path / "strategy_clinic").exists()
    assert (tmp_path / "_strategy_clinic.pth").read_text().strip() == str(ROOT / "helpers")


def test_what_runs_is_what_was_installed(installed, empty):
    code = "import strategy_clinic; print(strategy_clinic.__file__)"
    package = installed.ask(empty, installed.python, "-c", code).strip()
    assert Path(package).is_relative_to(installed.python.parents[1])


# Triage


def require_all_wordings(clinic: Clinic, folder: Path):
    said = clinic.ask(folder, clinic.python, "-m", "strategy_clinic", "triage", text=ERROR)
    assert said.startswith("fm18 "), f"of an error in a file of wordings: {said}"
    count = "from strategy_clinic.triage import wordings; print(len(wordings.wordings()))"
    assert int(clinic.ask(folder, clinic.python, "-c", count)) == len(wordings.wordings())


def test_triage_knows_every_wording(installed, empty):
    symptoms = tuple(each for each in wordings.wordings() if each.origin == "MODE")
    assert classify.triage(ERROR, symptoms).mode is None
    require_all_wordings(installed, empty)


def test_a_wheel_without_its_wordings_is_noticed(wheel, installed, empty, tmp_path):
    """Unpacked, and found before what is installed; it works, which is why somebody has to look."""
    names = [name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/words.toml")]
    zipfile.ZipFile(wheel).extractall(tmp_path / "poor", names)
    found_first = {"PYTHONPATH": str(tmp_path / "poor")}
    poor = Clinic(installed.python, installed.environment | found_first)
    assert poor.ask(empty, poor.python, "-m", "strategy_clinic", "triage", text=SYMPTOM).startswith(
        "fm15"
    )
    with pytest.raises(AssertionError, match="of an error in a file of wordings: no known wording"):
        require_all_wordings(poor, empty)


def test_answers_name_notebooks_where_they_are(installed, empty):
    """In a clone they are below `notebooks`; here that would lead nowhere."""
    triaged = installed.clinic(empty, "triage", text=SYMPTOM)
    raised = installed.shell(empty, "%load_ext strategy_clinic", f"raise {SYMPTOM}")
    (empty / "train.py").write_text(f"import tensorflow\nraise {SYMPTOM}\n")
    examined = installed.run(empty, installed.python.with_name("clinic"), "examine", "train.py")
    for said in (triaged, raised, examined.stdout):
        (path,) = set(re.findall(r"\S+/fm15_\w+\.ipynb", said))
        assert Path(path).is_file(), path


# Runs and records


def test_a_mode_runs_as_it_declares(installed, empty):
    said = installed.clinic(empty, "run", "fm05", "-o", "out")
    assert "as declared" in said and "1 of 1 runs agree with their mode; results in out" in said
    line = json.loads((empty / "out" / "verdicts.jsonl").read_text())
    assert (line["mode"], line["broken"], line["fixed"]) == ("fm05", "wrong", "works")
    assert (empty / "out" / line["notebook"]).exists()
    assert [each.name for each in empty.iterdir()] == ["out"]


def test_a_notebook_runs_where_somebody_works(installed, empty):
    """By papermill alone, which gets a kernel as JupyterLab does; forked, unless the warm process cannot start."""
    installed.clinic(empty, "notebooks", "here")
    path = telling(empty / "here" / "fm05_untracked_variable.ipynb", empty / "here", last=3)
    papermill = (installed.python, "-m", "papermill", "--no-progress-bar")
    done = installed.run(path.parent, *papermill, path.name, "../ran.ipynb")
    assert done.returncode == 0, done.stderr
    assert "start cold" not in done.stderr or sys.platform != "linux"
    require_own(installed, empty / "ran.ipynb")


def telling(notebook: Path, folder: Path, last: int | None = None) -> Path:
    """A copy of a notebook, up to its set-up cell or the whole of it, that tells at its end in what it was run."""
    copy = json.loads(notebook.read_text())
    cell = {"cell_type": "code", "id": "tell", "metadata": {}, "source": TELL}
    copy["cells"] = copy["cells"][:last] + [cell | {"execution_count": None, "outputs": []}]
    path = folder / f"{notebook.stem.split('_')[0]}_mine.ipynb"
    path.write_text(json.dumps(copy))
    return path


def require_own(clinic: Clinic, ran: Path):
    last = json.loads(ran.read_text())["cells"][-1]
    python, package = "".join(last["outputs"][0]["text"]).split()
    assert python == str(clinic.python)
    assert Path(package).is_relative_to(clinic.python.parents[1])


def test_the_atlas_has_verdicts_of_every_mode(installed, empty):
    installed.clinic(empty, "atlas", "atlas.html")
    rows = re.findall(r"<tr.*?</tr>", (empty / "atlas.html").read_text(), re.DOTALL)
    for mode in registry.modes():
        of_mode = [row for row in rows if f"{mode.id}<span> {mode.slug}</span>" in row]
        assert any(re.search(r">[✖▲✔≠]</a>", row) for row in of_mode), mode.id


def test_what_needs_a_clone_says_so(installed, empty):
    done = installed.run(empty, installed.python.with_name("clinic"), "render", "fm01")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "needs a clone of the repository; it has no public address yet" in done.stderr


def test_pytest_finds_the_fixture(installed, empty):
    """By its entry point, in every session: so no fixture of a project may have its name."""
    said = installed.ask(empty, installed.python, "-m", "pytest", "-q", "--fixtures")
    assert re.search(r"^clinic_examine .*\n +Examines a program", said, re.M)


# Notebooks to work in


def test_notebooks_are_laid_out_and_work_in_them_is_kept(wheel, installed, empty):
    own = packed(wheel, "strategy_clinic/shipped/notebooks/")
    own = {name: text for name, text in own.items() if name.endswith(".ipynb")}
    said = installed.clinic(empty, "notebooks", "here")
    assert f"{len(own)} notebooks in here, {len(own)} of them new" in said and "left" not in said
    assert files_in(empty / "here") == own
    edited = empty / "here" / "fm05_untracked_variable.ipynb"
    edited.write_text("mine")
    (empty / "here" / "atlas.ipynb").unlink()
    said = installed.clinic(empty, "notebooks", "here")
    assert f"{len(own)} notebooks in here, 1 of them new" in said
    assert f"to get it again): {edited.name}\n" in said and edited.read_text() == "mine"


def without_pages(package: dict[str, bytes]) -> dict[str, bytes]:
    """Leaves out the sources of the pages, of which a handout has the declarations only, and the programs that are solutions."""
    pages = re.compile(r"pages/|modes/\w+/(page|fixed|solution)\.py")
    return {name: text for name, text in package.items() if not pages.match(name)}


def test_a_handout_is_whole(wheel, installed, empty):
    """What lies in it needs neither the wheel nor the repository."""
    installed.clinic(empty, "handout", "OUT", "fm01")
    own = packed(wheel, "strategy_clinic/")
    shipped = {name: own.pop(name) for name in list(own) if name.startswith("shipped/")}
    handed_out = files_in(empty / "OUT" / "for-participants" / "helpers" / "strategy_clinic")
    assert without_pages(handed_out) == without_pages(own)
    for name in PROJECT:
        assert (empty / "OUT" / "for-participants" / name).read_bytes() == shipped[
            f"shipped/{name}"
        ]
    environment = installed.environment | {
        "PYTHONPATH": str(empty / "OUT" / "for-participants" / "helpers")
    }
    copy = Clinic(installed.python, environment)
    said = copy.ask(
        empty, copy.python, "-c", "import strategy_clinic; print(strategy_clinic.__file__)"
    )
    assert Path(said.strip()).is_relative_to(empty / "OUT" / "for-participants")
    require_all_wordings(copy, empty / "OUT" / "for-participants")


def test_the_package_is_an_extension_of_ipython(installed, empty):
    said = installed.shell(empty, "%load_ext strategy_clinic", f"raise {SYMPTOM}")
    assert said.count("fm15 accumulation_under_strategy: ") == 1
