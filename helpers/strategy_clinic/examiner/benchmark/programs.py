"""The clinic's own modes as programs: each experiment of a notebook by itself, without the clinic's checks, and the score."""

import ast
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...base import files
from ...base.errors import UserError, choose
from ...base.free_names import needed
from ...modes.registry import mode_by_id
from ...processes import python_process
from ...setups import strategies
from ...setups.parameters import Setup
from ..recording import Examination
from ..runs import plan
from ..runs.sandbox import Case

SUBJECTS = "broken", "fixed", "solved"
PATIENT_LIMIT = 120
ONE_PROCESS = "valid: default, one_device, mirrored, central_storage, tpu_traced"
STAND_IN_NAME = (
    "patient_words"  # the module that stands in for `strategy_clinic` in a patient's folder
)
# What a notebook takes from the package, without checks: a program has none. It shows what it has found, and nobody compares.
STAND_IN = '''\
"""What programs made of notebooks take from the clinic; no check of the clinic's is among it."""

import types

import tensorflow as tf

from strategy_clinic.experiments import checks as real
from strategy_clinic.setups import formats, runtime, strategies, tpu
from strategy_clinic.setups.strategies import runner


class Nothing:
    def assert_optimizer_resumed(self, model, steps):
        model.optimizer.build(model.trainable_variables)  # as the check does, before files are gone

    def __getattr__(self, name):
        return getattr(real, name) if name == "variable_of" else lambda *_, **__: None


class Proof:
    def __init__(self, what, got, want, tolerance=0):
        print(what, [[float(x) for x in tf.reshape(tf.cast(each, "float64"), [-1])] for each in got])

    def unwrap(self):
        return self


def build_strategy(setup):
    if setup.strategy == "mirrored":
        return tf.distribute.MirroredStrategy()
    parts = tf.config.get_logical_device_configuration(tf.config.list_physical_devices("CPU")[0])
    here = len(parts or [None])  # on as many devices as there are in this run
    if setup.strategy == "tpu_traced":
        return tpu.strategy(replicas=1 if here == 1 else 0)
    if setup.strategy == "central_storage":
        setup = setup.but(devices=here)
    return strategies.TABLE[setup.strategy].build(setup.devices)


def experiment(function):
    return function


def observe(**variables):
    pass


def values_of(weight):
    return [part.numpy() for part in getattr(real.variable_of(weight), "values", [real.variable_of(weight)])]


def __getattr__(name):
    """Whatever else a notebook takes for its pages."""
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda *_, **__: None


checks = Nothing()
figures = types.SimpleNamespace(values_of=values_of)
compiler = Nothing()
workers = types.SimpleNamespace(launch=lambda place, pairs: [types.SimpleNamespace(unwrap=lambda: run(s)) for run, s in pairs])
'''


@dataclass(frozen=True)
class Patient:
    """One experiment of one mode, and what the examiner is to say of it."""

    mode: str
    subject: str
    setup: Setup
    text: str
    guilty: int  # the line, or 0

    @property
    def sick(self) -> bool:
        return self.subject == "broken" and mode_by_id(self.mode).expects(self.setup) != "works"


def patients_of(path: Path, keras: int, strategy: str = "") -> list[Patient]:
    """The three programs of one source. Lines keep their numbers, so that the guilty one is where it was."""
    text = path.read_text()
    tree = ast.parse(text)
    body = [each for each in tree.body if not isinstance(each, ast.Expr)]
    mode = files.page_name(path)[:4]
    return [
        Patient(
            mode,
            subject,
            setup_in(tree, keras, strategy),
            program_of(text, body, subject),
            guilty_line(text, body),
        )
        for subject in SUBJECTS
    ]


def setup_in(tree: ast.Module, keras: int, strategy: str = "") -> Setup:
    """What the notebook's parameters say, with this generation of Keras, and perhaps another strategy."""
    assigned = {
        each.targets[0].id: each.value.value
        for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
    }
    chosen = {name: assigned[name] for name in ("strategy", "devices", "save_format")}
    if strategy:
        counts = choose_row(strategy).counts
        fitting = [each for each in counts if each in (2, chosen["devices"]) and each > 1]
        chosen |= {"strategy": strategy, "devices": max(fitting, default=counts[-1])}
    return Setup(**chosen, keras=keras)


def choose_row(strategy: str) -> strategies.Row:
    row = strategies.TABLE[choose("strategy", strategy, strategies.TABLE)]
    if row.tasks or row.missing():
        raise UserError(f"strategy = {strategy!r} is none for one process here; {ONE_PROCESS}.")
    return row


def guilty_line(text: str, body: list) -> int:
    """Of what `broken` is made of; other cells may have guilty lines of their own."""
    lines = text.splitlines()
    for statement in needed(body, {"broken"}):
        for number in range(statement.lineno, statement.end_lineno + 1):
            if "# guilty" in lines[number - 1]:
                return number
    return 0


def program_of(text: str, body: list, subject: str) -> str:
    """What an experiment needs, where it stood; everything else is an empty line."""
    lines, kept = text.splitlines(), {}
    for statement in needed(body, {subject}):
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))]
        )
        for number in range(first, statement.end_lineno + 1):
            kept[number] = with_stand_in(lines[number - 1])
    whole = [kept.get(number, "") for number in range(1, len(lines) + 1)]
    return "\n".join([*whole, f"{subject}(patient_setup.SETUP)", ""])


def with_stand_in(line: str) -> str:
    return line.replace("from strategy_clinic import", f"from {STAND_IN_NAME} import")


def lay_out_patient(patient: Patient, place: Path) -> Case:
    """A folder with the program and its setup, and beside it what the program takes its words from."""
    folder, words = place / "patient", place / "words"
    folder.mkdir()
    words.mkdir()
    setup = f"from strategy_clinic.setups.parameters import Setup\n\nSETUP = Setup(**{patient.setup.as_dict()!r})\n"
    (words / f"{STAND_IN_NAME}.py").write_text(STAND_IN)
    (words / "patient_setup.py").write_text(setup)
    name = f"{patient.mode}_{patient.subject}.py"
    (folder / name).write_text(patient.text.replace("\n", "import patient_setup\n", 1))
    libraries = (str(words), str(files.PACKAGE.parent))
    options = {"keras": patient.setup.keras, "limit": PATIENT_LIMIT, "libraries": libraries}
    return Case((name,), folder, warm=python_process.fork_server(), **options)


def examine_patient(patient: Patient) -> Examination:
    """As a reader's program is, on as many devices as its setup says, and on one."""
    with tempfile.TemporaryDirectory() as place:
        program = lay_out_patient(patient, Path(place).resolve())
        counts = sorted({1, patient.setup.devices})
        return plan.examined(program, counts, lambda line: None)


def chosen_patients(modes: list[str], keras: int, strategy: str = "") -> list[Patient]:
    paths = [path for mode, path in patient_sources().items() if not modes or mode in modes]
    return [patient for path in paths for patient in patients_of(path, keras, strategy)]


def patient_sources() -> dict[str, Path]:
    return {
        files.page_name(path)[:4]: path for path in files.page_sources() if path.name == "page.py"
    }
