"""What the tables show of programs that run: each is run on two devices and on one with the same examples."""

import dataclasses
import re
import subprocess
import sys

import pytest
from strategy_clinic.base import files
from strategy_clinic.examiner.cells import Cell, listing_of
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.inside import (
    EMULATED,
    NOT_DISTRIBUTED,
    OTHER_PROCESSES,
    InsideSandbox,
    look_inside,
)
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.inside import html, text
from strategy_clinic.inside.tables import NORMS, TURNS
from strategy_clinic.inside.watch import MOST_TURNS, OF_XLA
from strategy_clinic.processes import python_process
from strategy_clinic.programs.switches import for_setup
from strategy_clinic.setups.parameters import Setup
from thorough import thorough

pytestmark = pytest.mark.slow
MIRRORED = Setup("mirrored", 2, "keras", 3)
# A program of a mode, the version of Keras, the first stage that is marked, and the line that makes it; none is marked.
MODES = [
    ("fm25", "broken", 3, "examples", "loaded.fit"),
    thorough("fm37", "broken", 3, "loss", "loss = tf.reduce_mean(errors)"),
    thorough("fm37", "fixed", 3, None, ""),
    ("fm50", "broken", 3, "sent", "model.fit"),
    thorough("fm50", "broken", 2, None, ""),
    thorough("fm50", "fixed", 3, None, ""),
    ("fm53", "broken", 3, "examples", "strategy.run"),
    thorough("fm49", "broken", 3, "loss", "return tf.reduce_mean"),
    ("fm56", "broken", 3, "drawn", "dropout("),
    thorough("fm56", "fixed", 3, None, ""),
    ("fm68", "broken", 3, "metric", "model.compile"),
    thorough("fm68", "fixed", 3, None, ""),
]


def program(folder, source, keras=3):
    (folder / "train.py").write_text(source)
    server = python_process.fork_server()
    return ProgramSpec(("train.py",), folder, keras=keras, fork_server=server, limit=120)


def shown(folder, source, keras=3, steps=6):
    return look_inside(program(folder, source, keras), 2, steps)


@pytest.mark.parametrize("mode, part, keras, stage, line", MODES)
def test_a_mode_is_seen_where_it_begins(mode, part, keras, stage, line, tmp_path):
    setup = dataclasses.replace(MIRRORED, keras=keras)
    tables = shown(tmp_path, for_setup(files.program_text(mode, part), setup), keras)
    assert tables.steps and tables.replicas == 2 and not tables.notes
    assert (tables.first[1].stage.key if tables.first else None) == stage
    assert line in (tables.source[tables.place.line - 1] if tables.place else "")


BEGIN = """\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    weight = tf.Variable([1.0, 2.0])
    mean = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.NONE)
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build([weight])
data = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(16.0), (8, 2))).batch(4)


def step(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((inputs * weight) ** 2) / 4
    gradient = tape.gradient(loss, weight)
    optimizer.apply_gradients([(gradient, weight)])
    UPDATE
    return loss


"""
LOOP = """
train_step = tf.function(lambda batch: strategy.run(step, args=(batch,)))
for batch in strategy.experimental_distribute_dataset(data):
    losses = train_step(batch)
    print("loss", round(float(strategy.reduce("SUM", losses, axis=None)), 3))
"""
EAGER = LOOP.replace("tf.function(", "(")
IN_A_GRAPH = """
@tf.function
def train(iterator):
    for _ in tf.range(2):
        strategy.run(step, args=(next(iterator),))


train(iter(strategy.experimental_distribute_dataset(data)))
"""
COPIES = BEGIN.replace("UPDATE", "mean.assign(tf.reduce_mean(inputs))")
RIGHT = BEGIN.replace("UPDATE", "pass")


@pytest.mark.parametrize("loop, steps", [(LOOP, 2), (EAGER, 2), thorough(IN_A_GRAPH, 2)])
def test_nothing_is_marked_in_a_right_program(loop, steps, tmp_path):
    tables = shown(tmp_path, RIGHT + loop)
    assert tables.headline == f"nothing differs in {steps} steps"
    stages = {row.stage.key for step in tables.steps for row in step.rows}
    assert stages >= {"examples", "loss", "gradient", "aggregated", "update", "slot", "counter"}


def test_a_copy_that_differs_is_the_first_that_is_marked(tmp_path):
    tables = shown(tmp_path, COPIES + LOOP)
    (row,) = tables.steps[0].marked
    assert (row.stage.key, row.mark) == ("state", "the copies differ")
    assert [cell.entries for cell in row.cells] == [(1.5,), (5.5,)]


def test_the_program_computes_what_it_computes_alone(tmp_path):
    with InsideSandbox(program(tmp_path, RIGHT + LOOP).checked()) as sandbox:
        watched = sandbox.watch(2).recordings[0].output
    command = [sys.executable, "train.py"]
    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert re.findall("loss .*", watched) == re.findall("loss .*", alone) != []


def test_a_run_ends_after_the_steps_that_are_shown(tmp_path):
    tables = shown(tmp_path, RIGHT + LOOP.replace("(data)", "(data.repeat())"), steps=3)
    assert len(tables.steps) == 3 and not tables.first


COMPILED = """
@tf.function(jit_compile=True)
def gradient_of(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((inputs * weight) ** 2) / 4
    return tape.gradient(loss, weight)


def step(inputs):
    optimizer.apply_gradients([(gradient_of(inputs), weight)])
    return tf.reduce_sum(inputs)
"""


def test_what_xla_compiles_is_said_not_to_be_seen(tmp_path):
    tables = shown(tmp_path, RIGHT.partition("def step")[0] + COMPILED + LOOP)
    assert OF_XLA in tables.notes and tables.first is None
    assert {"update", "returned"} <= {row.stage.key for row in tables.steps[0].rows}


def test_two_runs_at_once_show_what_they_show_one_by_one(tmp_path):
    one_by_one = shown(tmp_path, COPIES + LOOP)
    for expected in (2, 4):  # another number than it has: the run on one device is repeated
        spec = program(tmp_path, COPIES + LOOP)
        assert look_inside(spec, 2, 6, expected) == one_by_one


FIT = """\
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((WIDTH,)), tf.keras.layers.Dense(WIDTH)])
    model.compile("sgd", "mse", steps_per_execution=COUNT)
model.fit(np.ones((64, WIDTH)), np.ones((64, WIDTH)), batch_size=8, shuffle=False, verbose=0)
"""


def fitted(folder, width, count, steps=6):
    source = FIT.replace("WIDTH", str(width)).replace("COUNT", str(count))
    return shown(folder, source, 2, steps)  # Keras 3 cannot run several steps in one call here


def test_of_steps_in_one_call_the_first_six_are_shown_and_a_sentence_says_so(tmp_path):
    tables = fitted(tmp_path, 3, 8)
    parts = ["step 1", *(f"step 1, part {part}" for part in range(2, MOST_TURNS + 1))]
    assert [step.title for step in tables.steps] == parts
    assert TURNS in tables.notes and f"the first {MOST_TURNS}" in TURNS
    variables = ["variable" in {row.stage.key for row in step.rows} for step in tables.steps]
    assert variables == [False] * 5 + [True], "variables are shown after the last step"


def test_of_steps_in_calls_of_their_own_no_sentence_is_said(tmp_path):
    tables = fitted(tmp_path, 3, 1)
    assert [step.title for step in tables.steps] == [f"step {n}" for n in range(1, 7)]
    assert TURNS not in tables.notes


@pytest.mark.thorough
@pytest.mark.parametrize("width, weights", [(1000, 1_001_000), (999, 0)])
def test_of_a_million_weights_norms_are_shown_and_a_sentence_says_so(width, weights, tmp_path):
    tables = fitted(tmp_path, width, 1, steps=1)
    said = [note for note in tables.notes if "norms are shown" in note]
    assert said == ([NORMS.format(weights)] if weights else [])
    assert f"{width}×{width}, norm" in text.in_words(tables)


ENDS = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()


@tf.function
def step():
    return strategy.run(lambda: tf.ones(()))


result = step()
print("kind:", "number" if hasattr(result, "numpy") else "several")
LAST
"""
HOW_IT_ENDS = [
    thorough("", "kind: several", "kind: number"),
    ("float(result)", "TypeError: float() argument must be", "kind: number"),
    thorough("raise SystemExit(0)", "kind: several", "kind: number"),
    ("raise SystemExit(2)", None, None),
]


@pytest.mark.parametrize("last, several, one", HOW_IT_ENDS)
def test_the_last_row_is_what_is_printed_last_or_raised(last, several, one, tmp_path):
    tables = shown(tmp_path, ENDS.replace("LAST", last))
    row = tables.steps[0].rows[-1]
    if several is None:
        assert row.stage.key != "end"
    else:
        assert row.cells[0].words.startswith(several) and row.alone.words == one
        assert row.mark and tables.first[1] == row
        lines = [tables.source[frame.line - 1] for frame in row.lines]
        assert lines == [last] * several.startswith("TypeError")


def test_a_step_that_an_exception_ends_is_shown_as_far_as_it_came(tmp_path):
    """One replica has a loss, the other has none, and of its examples sometimes none: only what both have is compared."""
    tables = shown(tmp_path, for_setup(files.program_text("fm32", "broken"), MIRRORED))
    (step,) = tables.steps
    assert [row.stage.key for row in step.rows if row.mark] == ["end"]
    assert all(bool(row.compared) == (None not in row.cells) for row in step.rows)
    assert step.rows[-1].cells[0].words.startswith("InvalidArgumentError: You must feed a value")


COUNTS = BEGIN.replace("data = ", "count = tf.Variable(0)\ndata = ")
COUNTS = COUNTS.replace("UPDATE", "count.assign_add(1)") + LOOP


def test_a_failure_after_the_last_step_takes_no_mark_off_it(tmp_path):
    """The counter has one copy, which is a fact about a whole step, and not what a replica had not come to."""
    tables = shown(tmp_path, f"{COUNTS}\n1 / 0\n")
    assert len(tables.ends) == 2 and all("ZeroDivisionError" in each for each in tables.ends)
    for step in tables.steps:
        (row,) = [row for row in step.rows if row.mark]
        assert row.stage.key == "state" and row.cells[1] is None
        assert row.mark == "it is 2 times that of one device"


WORKERS = RIGHT.replace("MirroredStrategy()", "MultiWorkerMirroredStrategy()") + LOOP
MEAN = WORKERS.replace(
    "tf.reduce_sum((inputs * weight) ** 2) / 4", "tf.reduce_mean(inputs * weight)"
)


@pytest.mark.parametrize("source, stage", [(WORKERS, None), thorough(MEAN, "loss")])
def test_each_worker_has_a_column(source, stage, tmp_path):
    """Two processes, which add up what they have; they end after as many steps as are shown."""
    tables = shown(tmp_path, source.replace("(data)", "(data.repeat())"), steps=2)
    assert tables.columns == ["replica 0, worker 0", "replica 1, worker 1", "one device"]
    assert len(tables.steps) == 2 and tables.ends == () and tables.notes == ()
    assert (tables.first[1].stage.key if tables.first else None) == stage
    rows = {row.stage.key: row for row in tables.steps[0].rows}
    first, second = rows["examples"].cells
    assert first.shape == second.shape == (2, 2) and first.rows != second.rows
    assert None not in rows["variable"].cells
    assert [row.stage.key for row in tables.steps[0].rows].count("reported") == 1


BY_ARGUMENT = """\
import json, os, sys

addresses = ["127.0.0.1:20173", "127.0.0.1:20177"]
task = {"type": "worker", "index": int(sys.argv[1])}
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
"""


def test_workers_that_are_told_their_task_by_an_argument(tmp_path):
    source = BY_ARGUMENT + WORKERS.replace("(data)", "(data.repeat())")
    spec = dataclasses.replace(program(tmp_path, source), arguments=("train.py", "0"))
    tables = look_inside(spec, 2, 2)
    assert tables.columns[:2] == ["replica 0, worker 0", "replica 1, worker 1"]
    assert len(tables.steps) == 2 and tables.ends == ()


SERVERS = """
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
"""


def test_what_servers_compute_is_said_not_to_be_seen(tmp_path):
    tables = shown(tmp_path, SERVERS)
    assert OTHER_PROCESSES.format("parameter_server") in tables.notes
    assert tables.comparison == "no step was seen" and "No step was seen." in html.page(tables)


ON_TPU = """\
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
"""


def test_an_emulated_tpu_is_said_to_be_emulated(tmp_path):
    source = (RIGHT + LOOP).replace("strategy = tf.distribute.MirroredStrategy()\n", ON_TPU)
    tables = shown(tmp_path, source)
    assert EMULATED in tables.notes and f"Not seen: {EMULATED}." in html.page(tables)
    assert tables.replicas > 1 and tables.steps


LARGE = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    layers = [tf.keras.layers.Dense(2000), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential([tf.keras.Input((500,)), *layers])
    model.compile("sgd", "mse", steps_per_execution=EACH)
inputs = np.random.normal(size=(32, 500)).astype("float32")
model.fit(inputs, inputs[:, :1], batch_size=8, verbose=0)
"""


def test_of_a_million_weights_norms_are_shown(tmp_path):
    tables = shown(tmp_path, LARGE.replace("EACH", "1"), steps=1)
    assert NORMS.format(1_004_001) in tables.notes and not tables.first
    page = html.page(tables)
    assert "500×2000, norm" in page and len(page) < 100_000
    longest = max(strip.count("<i ") for strip in page.split("inside-strip'")[1:])
    assert longest == 24, "a strip of sums"


@pytest.mark.thorough
def test_steps_of_one_call_are_shown_one_by_one(tmp_path):
    """On Keras 2: on Keras 3, `fit` fails with two replicas."""
    tables = shown(tmp_path, LARGE.replace("EACH", "2"), keras=2)
    assert [step.title for step in tables.steps[:3]] == ["step 1", "step 1, part 2", "step 2"]
    assert TURNS in tables.notes and not tables.first


FAILS = "tf.debugging.assert_less(loss, 0.0)\n    optimizer.apply"


def test_a_step_that_fails_is_shown_as_far_as_it_came(tmp_path):
    """One replica may fail before the other begins: what that one lacks differs from nothing."""
    source = RIGHT.replace("optimizer.apply", FAILS) + LOOP
    tables = shown(tmp_path, source)
    line = source.splitlines().index("    losses = train_step(batch)") + 1
    said = "on 2 devices it ended with InvalidArgumentError: assertion failed: "
    assert tables.ends[0].startswith(said) and tables.ends[0].endswith(f"(line {line})")
    assert tables.comparison == "nothing differs in 1 step until then"
    stages = [row.stage.key for row in tables.steps[0].rows]
    assert "loss" in stages and "update" not in stages
    assert f"O{said[1:]}" in html.page(tables)


def test_a_program_that_makes_no_step_is_a_page_too(tmp_path):
    tables = shown(tmp_path, "print('hello')")
    assert tables.headline == "no step was seen" and NOT_DISTRIBUTED in tables.notes
    assert "No step was seen." in html.page(tables) and "No step was seen." in html.card(tables)


def test_lines_of_cells_have_the_names_that_their_reader_knows(tmp_path):
    begin, _, step = (COPIES + LOOP).partition("data = ")
    listing = listing_of("train.ipynb", [Cell(1, begin), Cell(4, f"# two\ndata = {step}")])
    spec = dataclasses.replace(program(tmp_path, ""), arguments=()).with_listing(listing)
    tables = look_inside(spec)
    assert tables.name_of(tables.place) == "cell 1, line 6"
    assert "The row is made by <a href='#line-7'>cell 1, line 6</a>." in html.page(tables)
    assert "cell 4, line 2  data = tf.data" in text.in_words(tables) or "cell 4" in html.page(
        tables
    )


LATE = (RIGHT + LOOP).replace("range(16.0), (8, 2)", "range(52.0), (26, 2)")
LATE = LATE.replace("/ 4\n", "/ tf.where(tf.shape(inputs)[0] > 1, 4.0, 1.0)\n")


def test_an_examination_shows_the_step_in_which_its_runs_part(tmp_path):
    """The seventh batch has two examples, and a replica with one divides by another number."""
    found = plan.examine(program(tmp_path, LATE), show=True)
    step, row = found.tables.first
    assert (step.number, row.stage.key) == (7, "loss") and len(found.tables.steps) == 6
    assert [run.words for run in found.runs].count("on 2 devices (shown)") == 1


def test_one_replica_is_one_column(tmp_path):
    tables = shown(tmp_path, RIGHT.replace("MirroredStrategy()", "get_strategy()") + LOOP)
    assert tables.columns == ["replica 0", "one device"]
    assert tables.notes == (NOT_DISTRIBUTED,) and tables.first is None
