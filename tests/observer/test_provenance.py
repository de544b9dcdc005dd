"""Whose code a file is, wherever the libraries and the program lie. No TensorFlow but in the last test."""

import os
import sys
import sysconfig
import threading
import types
from pathlib import Path

import pytest
from strategy_clinic.base import files
from strategy_clinic.observer import provenance
from strategy_clinic.observer.events import Frame, Owner
from strategy_clinic.observer.provenance import Provenance

# Folders whose names are those of parts of libraries, which is no reason for anything.
NAMES = ["home", "models", "layers", "optimizers", "checkpoint", "trainers", "data-packages"]


@pytest.fixture(params=NAMES)
def venv(request, tmp_path, monkeypatch):
    """A virtual environment with packages, below a folder with such a name."""
    place = tmp_path / request.param / "venv" / "lib" / "python3.11" / "site-packages"
    for name in ("tensorflow", "keras", "tf_keras"):
        module = types.ModuleType(name)
        module.__file__ = str(place / name / "__init__.py")
        monkeypatch.setitem(sys.modules, name, module)
    sysconfig.get_config_vars()  # it reads a file on sys.path, once in a process
    monkeypatch.setattr(sys, "path", [str(tmp_path / request.param), str(place)])
    return place


FILES = {
    "tensorflow/python/ops/resource_variable_ops.py": None,
    "tensorflow/python/checkpoint/restore.py": Owner.CHECKPOINT,
    "keras/src/layers/core/dense.py": Owner.LAYER,
    "keras/src/models/model.py": Owner.LAYER,
    "keras/src/optimizers/adam.py": Owner.OPTIMIZER,
    "keras/src/metrics/metric.py": Owner.METRIC,
    "keras/src/random/seed_generator.py": Owner.RANDOM,
    "keras/src/saving/saving_lib.py": Owner.CHECKPOINT,
    "keras/src/trainers/trainer.py": Owner.TRAINER,
    "keras/src/backend/tensorflow/trainer.py": Owner.TRAINER,
    "tf_keras/src/engine/base_layer.py": Owner.LAYER,
    "keras_hub/src/models/bert.py": Owner.LAYER,
    "models/__init__.py": None,
    "numpy/lib/npyio.py": None,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_library_has_the_purpose_of_its_place_in_the_library(name, venv):
    assert Provenance().owner_of(str(venv / name)) is FILES[name]


def test_a_library_that_is_in_no_folder_for_packages(tmp_path, monkeypatch):
    module = types.ModuleType("keras")
    module.__file__ = str(tmp_path / "models" / "keras" / "__init__.py")
    monkeypatch.setitem(sys.modules, "keras", module)
    place = tmp_path / "models"
    assert Provenance().owner_of(str(place / "keras" / "src" / "utils.py")) is None
    assert Provenance().owner_of(str(place / "keras" / "src" / "layers" / "x.py")) is Owner.LAYER
    assert Provenance().owner_of(str(place / "train.py")) is Owner.USER


@pytest.mark.parametrize("folder", NAMES)
def test_a_program_is_the_users_own_in_any_folder(folder, tmp_path):
    program = tmp_path / folder / "train.py"
    program.parent.mkdir()
    program.touch()
    assert Provenance().is_own(str(program))


def test_a_library_that_is_reached_by_links(tmp_path, monkeypatch):
    """Some installers link each package to a cache."""
    place, cache = tmp_path / "site-packages", tmp_path / "cache" / "keras"
    (cache / "layers").mkdir(parents=True)
    (cache / "layers" / "dense.py").touch()
    place.mkdir()
    (place / "keras").symlink_to(cache)
    monkeypatch.setattr(sys, "path", [str(place)])
    assert Provenance().owner_of(str(place / "keras" / "layers" / "dense.py")) is Owner.LAYER


def test_what_else_is_nobodys_or_the_users():
    here = Provenance()
    assert here.owner_of(os.__file__) is None
    assert here.owner_of("<frozen importlib._bootstrap>") is None
    assert here.owner_of("<string>") is None
    assert here.owner_of(str(files.PACKAGE / "setups" / "tpu.py")) is None
    assert here.owner_of(provenance.__file__) is None
    assert here.owner_of("/tmp/__autograph_generated_filexyz.py") is None
    assert here.owner_of("<ipython-input-1-abc>") is Owner.USER
    assert here.owner_of("/tmp/ipykernel_123/456.py") is Owner.USER


def test_the_innermost_part_of_a_library_counts(venv, tmp_path):
    call_site = Provenance().call_site

    def called_in(path, function):
        names = {"inner": function}
        exec(compile("def outer():\n    return inner()", str(path), "exec"), names)
        return names["outer"]

    optimizer = called_in(venv / "keras/src/optimizers/adam.py", call_site)
    layer = called_in(venv / "keras/src/layers/dense.py", optimizer)
    program = called_in(tmp_path / "train.py", layer)
    assert program() == ((str(tmp_path / "train.py"), 2), Owner.OPTIMIZER)
    assert called_in(tmp_path / "train.py", call_site)()[1] is Owner.USER


def test_who_calls_is_the_program_or_a_library(venv, tmp_path):
    asks = Provenance().called_by_program
    for path, expected in ((tmp_path / "train.py", True), (venv / "keras/models.py", False)):
        names = {"asks": asks}
        exec(compile("asked = asks()", str(path), "exec"), names)
        assert names["asked"] is expected


# A real program, in real folders

OUTSIDE = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
count = tf.Variable(0.0)
with strategy.scope():
    weight = tf.Variable(1.0)


@tf.function
def step():
    strategy.run(lambda: count.assign_add(weight))


step()
"""


@pytest.mark.slow
def test_findings_do_not_depend_on_the_names_of_folders(tmp_path, monkeypatch, capfd):
    """fm23 is found also with an environment below a folder named `models`, and in a folder named `data-packages`."""
    from strategy_clinic import cli

    folder = Path("models", "data-packages")
    place = tmp_path / folder / "program"
    place.mkdir(parents=True)
    (place / "train.py").write_text(OUTSIDE)
    python = sys.executable
    if Path(sys.prefix, "pyvenv.cfg").exists():
        (tmp_path / folder / "venv").symlink_to(sys.prefix)
        python = str(tmp_path / folder / "venv" / "bin" / "python")
    monkeypatch.chdir(place)
    status = cli.main(["examine", "--devices", "2", "--python", python, "train.py"])
    report = capfd.readouterr().out
    assert status == 1 and "train.py:5  fm23" in report


def test_the_script_is_the_users_wherever_it_lies():
    here, script = (
        Provenance(),
        files.PACKAGE / "modes" / "fm37_loss_scaled_per_replica" / "broken.py",
    )
    here.script = str(script)
    assert here.owner_of(str(script)) is Owner.USER
    assert here.owner_of(str(script.with_name("fixed.py"))) is None


def test_the_package_that_is_run_is_the_programs_wherever_it_is_installed(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    for name in ("mine", "other", "spaces/train"):  # one without __init__.py
        (site / name).mkdir(parents=True)
    (site / "mine" / "__init__.py").touch()
    (site / "alone.py").touch()
    monkeypatch.setattr(sys, "path", ["", str(site), *sys.path])
    for module, own in (
        ("mine.train", "mine/a.py"),
        ("spaces.train", "spaces/train/a.py"),
        ("alone", "alone.py"),
    ):
        provenance = Provenance()
        provenance.runs(["-m", module])
        assert provenance.is_own(str(site / own))
        assert not provenance.is_own(str(site / "other" / "a.py"))


class ReplicaThread(threading.Thread):
    """Stands for TensorFlow's thread of one replica."""


ReplicaThread.__module__ = provenance.REPLICA_THREADS


@pytest.mark.parametrize("kind, called", [(threading.Thread, False), (ReplicaThread, True)])
def test_only_threads_of_replicas_were_called_by_a_run(kind, called, monkeypatch):
    tf_stack = types.SimpleNamespace(extract_stack=list)
    monkeypatch.setattr(provenance, "tf_internals", types.SimpleNamespace(tf_stack=tf_stack))
    here, seen = Provenance(), []
    here.replicas_run((Frame("/train.py", 3, "train"),))
    thread = kind(target=lambda: seen.append(here.stack()))
    thread.start()
    thread.join()
    assert seen == [here.replica_caller if called else ()]
