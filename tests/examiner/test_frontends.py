"""Notebooks, cells, pasted texts, pytest and parts of this process, really examined: about half a minute in all."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial

import nbformat
import pytest
import strategy_clinic
from browser import FAILING
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_notebook
from strategy_clinic.base import files
from strategy_clinic.examiner.frontends import widget
from strategy_clinic.examiner.report.text import failure_of
from strategy_clinic.examiner.runs import progress
from strategy_clinic.processes import notebook_job

pytestmark = [pytest.mark.slow, pytest.mark.live]
pytest_plugins = ["pytester"]

COUNTING = """\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
count = tf.Variable(0.0)
strategy.run(lambda: count.assign_add(1.0))
"""
GUILTY = "count = tf.Variable(0.0)"
WAITING = """\
%%time
import socket, time
if strategy.num_replicas_in_sync == 1:
    socket.create_connection(("localhost", {port}))
    time.sleep(99)
display(count)
"""


def test_ctrl_c_in_a_notebook_reports_what_is_known(tmp_path):
    """The first run has shown something; the second would not end."""
    listener = socket.create_server(("localhost", 0))
    listener.settimeout(60)
    waiting = WAITING.format(port=listener.getsockname()[1])
    texts = ["%pip install nothing\nimport helpers", COUNTING, waiting]
    made = new_notebook(cells=[new_code_cell(text) for text in texts])
    (tmp_path / "notes").mkdir()
    nbformat.write(made, tmp_path / "notes" / "train.ipynb")
    (tmp_path / "notes" / "helpers.py").write_text("mine = True\n")
    command = [sys.executable, "-P", "-m", "strategy_clinic", "examine", "notes/train.ipynb"]
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options |= {"env": os.environ | {"PYTHONPATH": str(ROOT / "helpers")}}
    options["preexec_fn"] = partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # ignored in a background job
    with subprocess.Popen(command, **options) as process:
        lines = [process.stderr.readline() for _ in range(4)]
        assert lines[1].startswith("  finished") and lines[2].startswith("known so far: ")
        assert lines[3].startswith("running on 1 device")
        with listener:
            listener.accept()[0].close()
        process.send_signal(signal.SIGINT)
        report, more = process.communicate(timeout=30)
    assert report.startswith("notes/train.ipynb, cell 2, line 4  fm23") and GUILTY in report
    assert "proof     observed on 2 devices: 2 replicas wrote to it at cell 2, line 5" in report
    assert "note: stopped before all runs were made" in report and "Traceback" not in more
    assert "left out: cell 1, line 1 `%pip install nothing`" in report
    assert process.returncode == 1
    assert sorted(os.listdir(tmp_path / "notes")) == ["helpers.py", "train.ipynb"]


def test_a_cell_is_examined_with_what_it_needs_and_not_run_here(tensorflow, magic_shell, capsys):
    first, second = "STEP = 1.0  # a number", COUNTING.replace("(1.0)", "(STEP)")
    magic_shell.run_cell(first, store_history=True)
    magic_shell.run_cell(f"%%examine --devices 2\n{second}", store_history=True)
    said = capsys.readouterr().out
    number = len(magic_shell.history_manager.input_hist_raw) - 1
    assert "running on 2 devices (watched) ...\n  finished\n" in said
    assert f"cell {number}, line 5  fm23" in said and GUILTY in said
    assert "note: one cell that ran before was included" in said
    assert "count" not in magic_shell.user_ns


def test_below_the_answer_is_what_each_replica_held(tensorflow, magic_shell, capsys):
    magic_shell.run_cell(f"%%examine --devices 2 --show\n{COUNTING}", store_history=True)
    said = capsys.readouterr().out
    number = len(magic_shell.history_manager.input_hist_raw) - 1
    below = said.partition("the program ran")[2]
    assert f"cell {number}: the runs part in step 1" in below and "replica 1" in below
    assert f"made by cell {number}, line 5" in below, "as for the finding"


def test_a_cell_that_hangs_is_reported(magic_shell, capsys):
    magic_shell.run_cell(
        "%%examine --devices 2 --limit 2\nwhile True:\n    pass", store_history=True
    )
    assert "was still computing when the time was over" in capsys.readouterr().out


def test_a_script_is_marked_up_where_it_lies(tensorflow, tmp_path, capsys):
    (tmp_path / "train.py").write_text(COUNTING)
    examination = widget.marked_up(str(tmp_path / "train.py"), "2", 3)
    assert [(each.mode, each.line) for each in examination.findings] == [("fm23", 4)]
    assert "fm23" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, says",
    [
        ("input('? ')", "EOFError: EOF when reading a line (line 1)"),
        ("x = 1\nimport sys\nsys.exit(3)", "exited with status 3"),
    ],
)
def test_a_program_that_fails_in_its_own_way_is_marked_there(text, says):
    examination, _ = widget.examine_given(text, "1, 2", 3, progress.ignore)
    assert says in failure_of(examination) and examination.findings == []
    assert examination.failed_at.line == (1 if "input" in text else 0)


def test_the_notebook_is_stored_with_its_answer():
    text = (files.notebooks() / "examine_your_code.ipynb").read_text()
    marked = text.split("data-clinic-marked='")[1:]
    assert len(marked) == 1 and "tf.reduce_mean(errors)" in marked[0].split("</span>")[1]
    assert "fm37 loss_scaled_per_replica" in text


def test_the_notebook_takes_a_program_as_a_parameter(tmp_path):
    """Headless, as `papermill -p program train.py` gives it."""
    import papermill

    (tmp_path / "train.py").write_text(FAILING)
    done = papermill.execute_notebook(
        ROOT / "notebooks" / "examine_your_code.ipynb",
        tmp_path / "out.ipynb",
        {"program": str(tmp_path / "train.py"), "counts": "1"},
        **notebook_job.papermill_options(tmp_path),
    )
    told = [
        output.data for cell in done.cells for output in cell.get("outputs", []) if "data" in output
    ]
    (card,) = [each for each in told if "clinic-listing" in each.get("text/html", "")]
    assert (
        "train.py:2  fm04" in card["text/plain"] and "data-clinic-marked='2'" in card["text/html"]
    )


# In pytest


@pytest.mark.thorough
def test_a_test_asserts_that_nothing_is_found(pytester):
    pytester.makepyfile(
        wrong=COUNTING,
        leaves="raise SystemExit(3)",
        test_training="""
        def test_wrong(clinic_examine):
            assert not clinic_examine("wrong.py", devices=(2,))

        def test_leaves(clinic_examine):
            clinic_examine("leaves.py")
        """,
    )
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=2)
    text = done.stdout.str()
    assert "assert not <wrong.py:4  fm23" in text.replace(f"{pytester.path}/", "")
    assert "proof     observed on 2 devices" in text
    assert "leaves.py: it failed in a way that is none of the modes: exited with status 3" in text


# In this process


def counted_by_replicas():
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    count = tf.Variable(0.0)
    strategy.run(lambda: count.assign_add(1.0))


def test_a_part_of_this_process_is_watched(tensorflow):
    import tensorflow as tf

    kind, layer = type(tf.Variable(0.0)), tf.keras.layers.Layer
    plain = kind.assign, tf.GradientTape.gradient, layer.__new__, tf.keras.Model.__call__
    for _ in range(2):  # nothing is left of the first time
        with strategy_clinic.watching() as found:
            counted_by_replicas()
        assert [each.mode for each in found] == ["fm23"] and "count = tf.Variable" in found.report
    with strategy_clinic.watching() as found:
        tf.Variable(1.0).assign(2.0)
    assert not found
    there = kind.assign, tf.GradientTape.gradient, layer.__new__, tf.keras.Model.__call__
    assert plain == there


def test_calls_that_trace_again_are_seen_here_too(tensorflow):
    import tensorflow as tf

    step = tf.function(lambda n: n + 1)
    with strategy_clinic.watching() as found:
        for n in range(6):
            step(n)
    assert [each.mode for each in found] == ["fm43"]


def test_an_exception_goes_its_way_and_is_named(tensorflow):
    import tensorflow as tf

    with pytest.raises(RuntimeError, match="merge_call"), strategy_clinic.watching() as found:
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        step = tf.function(lambda: tf.distribute.get_replica_context().merge_call(lambda s: None))
        inner = tf.function(step)
        strategy.run(tf.function(lambda: inner()))
    assert [each.mode for each in found] == ["fm40"]
