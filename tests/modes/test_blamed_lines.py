"""The lines that the examiner blames for modes that are exceptions, and whose rule is no more than that choice."""

import pytest
from recorded import LINE, OTHER, run, stack, strategy, variable
from strategy_clinic.examiner.rule import mode_rules
from strategy_clinic.observer.events import ExceptionRaised, GradientComputed, Owner

PROGRAM = """\
def make():
    return variable(1)


def use(name):
    connect(name)


def main():
    made = make()

    def step(x):
        return x

    strategy.run(step)
    use("tpu")


main()
"""
OPTIMIZER = variable(4, maker=Owner.OPTIMIZER)
IN_MAIN = stack("/program/train.py", 9, 30)


@pytest.fixture
def at(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return lambda *lines: stack(tmp_path / "train.py", *lines)


def blamed(mode, frames, *events):
    frames = mode_rules().blame[mode](run(*events), frames)
    return [frame.line for frame in frames]


@pytest.mark.parametrize(
    "line, blamed_line",
    [
        ("model.compile('sgd', metrics=[m], jit_compile=True)", 3),
        ("@tf.function(jit_compile=True)", 3),
        ("model.compile('sgd', metrics=[m], jit_compile=False)", 1),
        ("model.compile('sgd', metrics=[m], jit_compile='auto')", 1),
    ],
)
def test_who_asks_for_xla(tmp_path, line, blamed_line):
    path = tmp_path / "train.py"
    path.write_text(f"x = tf.numpy_function(f, [y], tf.float32)\n\n{line}\ndef train(): pass\n")
    assert blamed("fm24", stack(path, 1))[0] == blamed_line


def test_a_gradient_of_which_a_part_is_none():
    gradients = GradientComputed(OTHER, 1, 2), GradientComputed(LINE, 0, 2)
    assert blamed("fm13", IN_MAIN, *gradients) == [20]
    assert blamed("fm13", IN_MAIN) == [9, 30]


def test_a_gradient_that_a_traced_step_uses(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("grads = tape.gradient(loss, weights)\nstrategy.run(step)\n")
    traced = stack(path, 7, function="step")
    raised = ExceptionRaised(stack(path, 2), "ValueError", "None values", traced)
    frames = (*traced, *raised.location)
    for line, blamed_lines in ((1, [1]), (2, [7, 2])):
        gradient = GradientComputed(stack(path, line), 1, 2)
        assert blamed("fm13", frames, gradient, raised) == blamed_lines
    assert blamed("fm13", stack(path, 2), GradientComputed(stack(path, 2), 1, 2)) == [2]


def test_who_gave_a_value_of_all_replicas_to_a_function(at):
    assert blamed("fm39", at(6, 16, 19)) == [16, 19]
    assert blamed("fm39", at(10, 19)) == [10, 19]


REDUCES = """\
def each(x):
    return strategy.run(learn, args=(x,))
def step(x):
    loss, norm = strategy.run(learn, args=(x,))
    return strategy.reduce("SUM", loss, axis=None), norm
loss, norm = map(float, step(x))
both = step(x)
print(float(both[1]))
print(float(each(x)))
"""


@pytest.mark.parametrize("line, lines", [(6, [5, 6]), (8, [5, 8]), (9, [9])])
def test_a_function_that_reduces_only_some_of_its_results(tmp_path, line, lines):
    path = tmp_path / "train.py"
    path.write_text(REDUCES)
    assert blamed("fm39", stack(path, line)) == lines


def test_a_condition_or_a_loop(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "learn()\ntf.cond(last, learn, skip)\ntf.while_loop(more, learn, [0])\nmain()\n"
    )
    assert blamed("fm15", stack(path, 1, 2, 4)) == [2, 4]
    assert blamed("fm15", stack(path, 1, 3, 4)) == [3, 4]
    assert blamed("fm15", stack(path, 1, 4)) == [1, 4]


@pytest.mark.parametrize(
    "line, blamed_lines",
    [
        ("self.last = logits", [4, 2, 9]),
        ("self.loss[0] = f(logits)", [4, 2, 9]),
        ("kept.append(logits)", [4, 2, 9]),
        ("global logits", [2, 9]),
        ("loss = f(logits)", [2, 9]),
        ("self.last = other", [2, 9]),
    ],
)
def test_where_the_tensor_of_a_graph_is_stored(tmp_path, line, blamed_lines):
    path = tmp_path / "train.py"
    path.write_text(f"def step(self, x):\n    logits = self.net(x)\n\n    {line}\n")
    assert blamed("fm33", stack(path, 2, 9)) == blamed_lines


def test_a_tensor_is_stored_where_it_is_made(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def step(self, x):\n    self.last = self.net(x)\n    self.last = x\n")
    assert blamed("fm33", stack(path, 2)) == [2]
    path.write_text("self.last = self.net(x)\n")
    assert blamed("fm33", stack(path, 1)) == [1]


READS = "model.book = Book()\n\ndef log():\n    print(model.book.usage.numpy())\n"
BOOK = "class Book:\n    def call(self, x):\n        self.usage = tf.reduce_sum(x)\n"


@pytest.mark.parametrize("reads, lines", [(READS, [3, 4]), (READS.replace("usage", "x"), [4])])
def test_a_tensor_of_an_object_in_another_file(tmp_path, reads, lines):
    """The line that stores the object is not to blame."""
    path, book = tmp_path / "train.py", tmp_path / "book.py"
    path.write_text(reads)
    book.write_text(BOOK)
    made = variable(1, location=stack(book, 2))
    assert blamed("fm33", stack(path, 4), made) == lines


def test_a_tensor_that_raises_where_it_is_read(tmp_path):
    path = tmp_path / "train.py"
    text = (
        "def step(self, x):\n    self.last = self.net(x)\n\ndef log(self):\n    print(self.last)\n"
    )
    path.write_text(text)
    assert blamed("fm33", stack(path, 5)) == [2, 5]
    path.write_text(f"{text}\ndef other(self, x):\n    self.last = x\n")
    assert blamed("fm33", stack(path, 5)) == [5]


@pytest.mark.parametrize(
    "line",
    [
        "self.last: tf.Tensor = self.net(x)",
        "self.last, y = self.net(x)",
        "self.last += self.net(x)",
    ],
)
def test_a_tensor_that_is_stored_in_another_form(tmp_path, line):
    path = tmp_path / "train.py"
    path.write_text(f"def step(self, x):\n    {line}\n\ndef log(self):\n    print(self.last)\n")
    assert blamed("fm33", stack(path, 5)) == [2, 5]


def test_who_gave_the_name_of_the_tpu(at):
    assert blamed("fm17", at(6, 16)) == [16]


def test_who_gave_the_devices_of_the_strategy(at):
    assert blamed("fm18", IN_MAIN, strategy(location=at(6, 16))) == [16]
    assert blamed("fm18", IN_MAIN) == [9, 30]


def test_a_method_of_the_strategy_that_a_step_calls(at):
    refused = ExceptionRaised(
        OTHER, "RuntimeError", "gather method requires cross-replica context, use all_gather()", ()
    )
    assert blamed("fm20", at(12, 14), refused) == [12, 14]


@pytest.mark.parametrize("mode", ["fm20", "fm22"])
def test_the_end_of_the_step(mode, at):
    assert blamed(mode, at(15)) == [13, 15]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("return tf.reduce_sum(gathered), loss", [7, 10]),
        ("return tf.reduce_max(gathered), tf.reduce_sum(loss)", [3, 10]),
        ("return gathered", [3, 10]),
    ],
)
def test_a_gather_whose_result_is_added_up(tmp_path, line, expected):
    path = tmp_path / "train.py"
    path.write_text(
        "def step(x):\n    total = tf.reduce_sum(x)\n    return total\n\ndef all_losses(x):\n"
        f"    loss = strategy.run(step, args=(x,))\n    gathered = strategy.gather(loss, axis=0)\n    {line}\n\nall_losses(x)\n"
    )
    assert blamed("fm20", stack(path, 7, 10)) == expected
    text = (
        path.read_text()
        .replace("gathered = strategy", "return sum(strategy")
        .replace("=0)", "=0))")
    )
    path.write_text(text)
    assert blamed("fm20", stack(path, 7, 10)) == [7, 10]


def test_the_function_that_made_the_strategy():
    inner = (*stack("/program/train.py", 3, function="step"), *IN_MAIN)
    assert blamed("fm31", inner, strategy(location=LINE)) == [9, 30]
    assert blamed("fm31", inner) == [3, 9, 30]


def test_where_the_optimizer_was_made():
    assert blamed("fm32", IN_MAIN, variable(1), OPTIMIZER) == [7]
    assert blamed("fm32", IN_MAIN, variable(1)) == [9, 30]


def test_the_last_strategy():
    assert blamed("fm36", IN_MAIN, strategy(location=LINE), strategy(location=OTHER)) == [20]
    assert blamed("fm36", IN_MAIN) == [9, 30]
