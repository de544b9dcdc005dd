"""What pages tell to paste works in other models than theirs, on three devices, and where a program is started once."""

import ast
import textwrap

import pytest
from conftest import ROOT
from strategy_clinic import Setup
from strategy_clinic.base import files
from strategy_clinic.programs.run import Job, run_program
from thorough import mostly_thorough

PROGRAM = (ROOT / "tests" / "page_variants.py").read_text()
MARKER = "# paste\n"


def class_in(mode: str, subject: str, name: str) -> str:
    """Returns the source of a class of a page's program, with its decorators."""
    text = files.program_text(mode, subject)
    (found,) = [each for each in ast.parse(text).body if getattr(each, "name", "") == name]
    return ast.unparse(found)


def method_in(mode: str, subject: str, name: str, method: str) -> str:
    """Returns the source of a method of a class of a page's program."""
    (found,) = [
        each
        for each in ast.parse(class_in(mode, subject, name)).body[0].body
        if getattr(each, "name", "") == method
    ]
    return ast.unparse(found)


def block_in(mode: str, words: str) -> str:
    """Returns the block of code in the text of a page that has these words."""
    lines = files.mode_pages()[mode].read_text().splitlines()
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
    blocks = [each.partition("```\n")[0] for each in text.split("```python\n")[1:]]
    (found,) = [each for each in blocks if words in each]
    return found


def with_methods(head: str, block: str) -> str:
    return f"{head}\n{textwrap.indent(block, '    ')}\n"


WRAPPING = """\
@tf.keras.utils.register_keras_serializable()
class Wrapping(tf.keras.layers.Layer):
    def __init__(self, inner, **options):
        super().__init__(**options)
        self.inner = inner

    def call(self, inputs):
        return self.inner(inputs)
"""
SCALING = """\
@tf.keras.utils.register_keras_serializable()
class Scaling(tf.keras.Model):
    def __init__(self, factor=1.0, **options):
        super().__init__(**options)
        self.factor, self.words = factor, tf.keras.layers.Embedding(7, 2)
        self.score = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.factor * self.score(tf.reduce_mean(self.words(inputs), axis=1))
"""


def pasted() -> str:
    pieces = [
        class_in("fm50", "fixed", "ClipsTheSum"),
        block_in("fm51", "def finite_everywhere").partition("\noptimizer")[0],
        class_in("fm56", "fixed", "OwnDropout"),
        f"PATCH = {block_in('fm56', 'def next_of_replica')!r}",
        block_in("fm55", "def dice"),
        block_in("fm54", "class Remembering"),
        with_methods(WRAPPING, block_in("fm30", "def from_config")),
        with_methods(SCALING, method_in("fm72", "fixed", "Scaled", "get_config")),
        class_in("fm33", "fixed", "Centre"),
    ]
    return "\n\n".join(pieces)


@pytest.mark.slow
@pytest.mark.parametrize("keras", mostly_thorough([3, 2]))
def test_what_is_pasted_works_in_other_models(keras):
    assert PROGRAM.count(MARKER) == 1
    text = PROGRAM.replace(MARKER, pasted())
    run = run_program(Job(text, Setup("default", 1, keras=keras), seconds=240))
    assert (run.error, run.printed) == (None, "all cases have run: True\n"), run


SAVED = f"""\
import tensorflow as tf

workers = tf.distribute.MultiWorkerMirroredStrategy()
strategy = workers
with strategy.scope():
    options = {{"aggregation": tf.VariableAggregation.SUM}}
    seen = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, **options)
checkpoint = tf.train.Checkpoint(seen=seen)
{block_in("fm47", "should_checkpoint")}
seen.numpy()  # ends when all workers have saved
print("one file stays:", tf.io.gfile.glob("saved/*.index") + tf.io.gfile.glob("scratch/*"))
"""
STAYS = "one file stays: ['saved/model-1.index']\n"


@pytest.mark.slow
@pytest.mark.parametrize("setup", mostly_thorough([Setup("default", 1), Setup("multi_worker", 2)]))
def test_each_worker_saves_and_one_file_stays(setup):
    """Without `TF_CONFIG`, as where a program is started once, the only worker keeps its file."""
    run = run_program(Job(SAVED, setup))
    assert (run.error, run.printed) == (None, STAYS), run
