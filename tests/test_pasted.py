"""Every health check that a page prints works where there is nothing but TensorFlow."""

import ast
import inspect

import pytest
from strategy_clinic import Setup, pasted
from strategy_clinic.programs import checks
from strategy_clinic.programs.run import Job, run_program

CHECKS = [name for name in vars(checks) if name.startswith("assert_")]


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_a_check_can_be_pasted(name):
    """Alone, as `strategy_clinic.pasted` returns it, it has every name that it uses."""
    text = pasted(getattr(checks, name))
    body = ast.parse(text).body
    assert all(isinstance(each, ast.ClassDef | ast.FunctionDef) for each in body)
    assert name in {each.name for each in body}
    run = run_program(Job(f"{text}\n\n{EXAMPLES[name]}", Setup("mirrored", 2)))
    assert run.error is None and run.printed.split() == ["quiet", "SilentFailure"], run


def test_the_source_of_checks_is_the_same_on_every_python():
    """Since Python 3.12 `ast.unparse` writes a string within an f-string with other quotes."""
    fields = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(checks)))
        if isinstance(node, ast.FormattedValue)
    ]
    nested = [
        ast.unparse(field)
        for field in fields
        if any(is_text(node) for node in ast.walk(field.value))
    ]
    assert fields and not nested


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


SETTING = """
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
def dense():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    return model
with strategy.scope():
    inside = dense()
outside = dense()
def outcome(check, *arguments):
    try:
        check(*arguments)
        print("quiet")
    except SilentFailure:
        print("SilentFailure")
def both(check, good, bad):
    outcome(check, *good)
    outcome(check, *bad)
def per_replica(*values):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group])
    )
def restored(name):
    path = tf.train.Checkpoint(a=tf.Variable(1.0)).save("here")
    return tf.train.Checkpoint(**{name: tf.Variable(0.0)}).restore(path)
"""
# For each check what it lets pass, and then what it does not.
GIVEN = {
    "assert_distributed": "(strategy, inside.variables), (strategy, outside.variables)",
    "assert_tracked": "(inside, inside.variables), (inside, [tf.Variable(0.0)])",
    "assert_restored": "(restored('a'),), (restored('b'),)",
    "assert_gradients_fit": "([tf.ones(2)], [tf.Variable([1.0, 2.0])]), ([None], [tf.Variable(1.0)])",
    "assert_same_global_batch": "(strategy, 4, 8), (strategy, 8, 8)",
    "assert_optimizer_resumed": "(outside, 0), (outside, 5)",
    "assert_shared": "(inside, inside), (inside, outside)",
    "assert_loss_of_whole_batch": "(strategy, per_replica(1.0, 2.0), 3.0), (strategy, per_replica(1.0, 2.0), 1.5)",
    "assert_replicas_agree": "(strategy, inside.variables), (strategy, apart())",
    "assert_scope_of_writers": "(strategy, inside.variables), (strategy, outside.variables)",
    "assert_mean_of_all": "(strategy, 2.0, per_replica([1.0], [3.0])), (strategy, 3.0, per_replica([1.0], [3.0]))",
    "assert_learning_rate": "(inside.optimizer, 0.001), (inside.optimizer, 0.1)",
    "assert_global_batch": "(strategy, per_replica([1.0], [3.0]), 2), (strategy, per_replica([1.0], [3.0]), 1)",
}
APART = """
def apart():
    with strategy.scope():
        count = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    for number, copy in enumerate(count.values):
        copy.assign(float(number))
    return [count]
"""
EXAMPLES = {name: f"{SETTING}{APART}\nboth({name}, {given})" for name, given in GIVEN.items()}


def test_every_check_has_an_example():
    assert set(EXAMPLES) == set(CHECKS)
