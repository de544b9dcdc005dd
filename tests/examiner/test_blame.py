"""The line to blame, found in a program's source."""

import ast
import textwrap
from pathlib import Path

import pytest
from recorded import stack
from strategy_clinic.examiner import blame
from strategy_clinic.observer.events import Frame

PROGRAM = """\
def read(path):
    return open_file(path)

def passes(path):
    model.load_weights(path)

def main(name):
    folder = "out"
    path = folder + name
    passes(path)
    plain = path
    passes("written")

def count(n):
    batch = n
    use(batch)

def outer(size):
    def inner():
        return take(size)
    return inner

def trains():
    size = 8
    run(outer(size))

main("a")
"""


@pytest.fixture
def at(tmp_path):
    """Frames of the program, by their lines."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)

    def frames(*lines, function="main"):
        return stack(path, *lines, function=function)

    return frames


def lines(found):
    return [frame.line for frame in found]


def test_the_code_of_a_line(at, tmp_path):
    path = at(1)[0].path
    assert blame.code_at(path, 2) == "return open_file(path)"
    assert blame.code_at(path, 0) == blame.code_at(path, 99) == ""
    assert blame.code_at(str(tmp_path / "none.py"), 1) == ""


FORM_FEED = "x = '\f'  # \x85 \u2028\r\ncafé = 1\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        "# -*- coding: latin-1 -*-\ncafé = 1\n".encode("latin-1"),
        "# vim: set fileencoding=cp1252 :\ncafé = '€'\n".encode("cp1252"),
        "\N{BOM}# café\ncafé = 1\n".encode(),
        FORM_FEED.encode(),
    ],
    ids=["latin-1", "cp1252", "BOM", "form feed"],
)
def test_a_file_is_read_as_python_reads_it(tmp_path, raw):
    path = tmp_path / "train.py"
    path.write_bytes(raw)
    assert blame.code_at(str(path), 2).startswith("café = ")
    lines = [n.lineno for n in blame.nodes_of_file(str(path)) if isinstance(n, ast.Assign)]
    assert lines[-1] == 2


def test_a_file_that_is_no_python(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("def (")
    (frame,) = stack(path, 1)
    assert blame.statement_at(frame) is None
    assert blame.function_at(stack(tmp_path / "none.py", 1)[0]) is None


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("first()\n")
    (frame,) = stack(path, 1)
    assert blame.called_at(frame) == ["first"]
    path.write_text("second()\n\n")
    import os

    os.utime(path, (1, 1))
    assert blame.called_at(frame) == ["second"]


def test_the_first_argument_is_followed_to_its_assignment_or_to_the_caller(at):
    functions = blame.FILE_FUNCTIONS
    assert lines(blame.from_argument(at(5, 10), functions)) == [10]
    assert lines(blame.from_argument(at(10), ("passes",))) == [9, 10]
    assert lines(blame.from_argument(at(5), functions)) == [5]
    assert blame.from_argument((), functions) == ()


def test_a_function_that_only_passes_on_decides_nothing(at):
    assert lines(blame.from_caller(at(5, 10))) == [10]
    assert lines(blame.from_caller(at(10, 27))) == [10, 27]


def test_a_function_of_one_line_is_a_factory(at):
    assert lines(blame.from_factory(at(2, 10))) == [10]
    assert lines(blame.from_factory(at(9, 27))) == [9, 27]
    assert lines(blame.from_factory(at(27, 10))) == [27, 10]


def test_what_is_done_with_an_object_is_decided_where_it_was_made(at):
    assert lines(blame.from_maker(at(5, 10), at(9))) == [5, 10]
    inner = (*at(5, function="passes"), *at(10))
    assert lines(blame.from_maker(inner, at(9))) == [10]
    assert blame.from_maker(inner, ()) == inner


@pytest.mark.parametrize(
    "line, is_decided",
    [("data.batch(size).prefetch(2)", False), ("data.batch(8).take(size)", True)],
)
def test_a_call_among_others_that_passes_on_its_argument(line, is_decided, tmp_path):
    path = tmp_path / "data.py"
    path.write_text(f"def batches(data, size):\n    return {line}\n\nbatches(data, 4)\n")
    frames = stack(path, 2, 4, function="batches")
    assert lines(blame.from_decision(frames, ("batch",))) == ([2, 4] if is_decided else [4])


def test_a_parameter_of_a_method_is_followed_to_what_a_call_gives(tmp_path):
    path = tmp_path / "model.py"
    text = "class Job:\n    def block(self, width):\n        return Dense(width)\n\n"
    path.write_text(text + "large = 8\nsmall = 4\njob.block(small)\njob.block(width=large)\n")
    assert lines(blame.from_choice(stack(path, 3, 7))) == [6, 3, 7]
    assert lines(blame.from_choice(stack(path, 3, 8))) == [5, 3, 8]
    path.write_text(path.read_text().replace("block(self", "__init__(self"))
    path.write_text(path.read_text().replace("job.block", "Job"))
    assert lines(blame.from_choice(stack(path, 3, 7))) == [6, 3, 7]


def test_a_function_that_calls_itself_is_passed_nothing_by_itself(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def block(width):\n    return block(width)\n")
    frames = stack(path, 2)
    assert blame.from_choice(frames) == frames


def test_what_parameters_are_given(tmp_path):
    path = tmp_path / "train.py"
    text = "class Job:\n    def run(self, folder, *, size):\n        self.folder = folder\n\n"
    path.write_text(text + "Job().run(args.out, size=4)\n")
    found = blame.values_by_name(str(path))
    assert [*map(ast.unparse, found["folder"])] == ["args.out", "folder"]
    assert [*map(ast.unparse, found["size"])] == ["4"]


@pytest.mark.parametrize(
    "loop, line",
    [("while running():", 1), ("for x in items(3):", 1), ("for x in range(3):", 2)],
)
def test_the_line_that_ends_a_loop(loop, line, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"{loop}\n    step()\n")
    assert lines(blame.from_loop(stack(path, 2)))[0] == line


@pytest.mark.parametrize(
    "lines, is_one",
    [((2, 3), True), ((2, 5), False), ((5, 5), True), ((5, 6), False)],
    ids=["in a loop", "after it", "one line", "two lines"],
)
def test_lines_in_one_loop(lines, is_one, tmp_path):
    path = tmp_path / "train.py"
    path.write_text("for x in data:\n    step(x)\n    save()\n\nstep(0)\nsave()\n")
    one, other = (stack(path, line) for line in lines)
    assert blame.in_one_loop(one, other) is is_one
    assert not blame.in_one_loop(one, (*other, Frame(str(path), 9, "")))
    assert not blame.in_one_loop(one, ())


@pytest.mark.parametrize(
    "text, is_one",
    [("tf.function", True), ("function(jit_compile=True)", True), ("property", False)],
)
def test_what_is_tf_function(text, is_one):
    assert blame.is_tf_function(ast.parse(text, mode="eval").body) is is_one


@pytest.mark.parametrize("line, knows", [("with mirrored.scope():", True), ("with tape:", False)])
def test_a_function_that_knows_a_strategy(line, knows):
    code = ast.parse(f"def build():\n    {line}\n        pass").body[0]
    assert blame.knows_strategy(code) is knows


def test_the_last_assignment_above_a_line(at):
    (frame,) = at(12)
    assert blame.last_assignment(frame, "path").line == 9
    assert blame.last_assignment(frame, "plain").line == 11
    assert blame.last_assignment(frame, "other") is None


ASSIGNED = """\
def step(x):
    {line}
    other: float
    loss: float
    return gradient(loss, weights)
"""


@pytest.mark.parametrize(
    "line, value",
    [
        ("loss = mean(x)", "mean(x)"),
        ("loss: float = mean(x)", "mean(x)"),
        ("loss += mean(x)", "mean(x)"),
        ("if x: loss = mean(x)", "mean(x)"),
        ("with tape: loss: float = mean(x)", "mean(x)"),
        ("for x in data: loss = mean(x)", "mean(x)"),
        ("loss = mean(x); other = 1", "mean(x)"),
        ("print(x)", None),
    ],
)
def test_the_value_of_an_assignment(line, value, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(ASSIGNED.format(line=line))
    frames = stack(path, 5, function="step")
    assigned = blame.last_assignment(frames[0], "loss")
    found = blame.assigned_value(assigned)
    assert (found and ast.unparse(found)) == value
    assert lines(blame.from_argument(frames, ("gradient",))) == ([2, 5] if value else [5])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("if x: loss = mean(x)", "loss = mean(x)"),
        ("if x: first(); second()", "first()"),
        ("first(); second()", "first()"),
        ("run([\n  1]); second()", "second()"),
        ("def step(x): return mean(x)", "return mean(x)"),
    ],
)
def test_the_statement_of_a_line_with_several(text, expected, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(text)
    (frame,) = stack(path, text.count("\n") + 1)
    assert ast.unparse(blame.statement_at(frame)) == expected


def test_the_function_of_a_line_with_several(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("class Job: step = None\nclass Other:\n    def step(self, x): return mean(x)\n")
    assert blame.innermost(stack(path, 1)[0], ast.ClassDef).name == "Job"
    assert blame.function_at(stack(path, 3)[0]).name == "step"


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_the_run_in_a_function_that_is_called(kind, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"{kind} step(x):\n    return strategy.run(f, args=(x,))\n\nstep(1)\n")
    assert lines(blame.into_called(stack(path, 4))) == [2, 4]


@pytest.mark.parametrize("first", ["self, ", "cls, ", ""])
def test_the_arguments_of_a_method_begin_behind_its_object(first):
    function = ast.parse(f"def make({first}folder, size): pass").body[0]
    call = ast.parse("Job.make(path, 4)", mode="eval").body
    assert ast.unparse(blame.argument_of(call, function, "folder")) == "path"
    assert ast.unparse(blame.argument_of(call, function, "size")) == "4"


PASSED = """\
class Job:
    def {name}(self, parts):
        return Checkpoint(**parts)

class Own(Job):
    pass

def make(parts):
    return Checkpoint(**parts)

job = {call}
"""


@pytest.mark.parametrize(
    "line, name, call",
    [
        (9, "run", "log(level, make(contents))"),
        (9, "run", "log(level, make(parts=contents))"),
        (9, "run", "cached(contents)"),
        (3, "run", "log(level, Job().run(contents))"),
        (3, "__init__", "log(level, Job(contents))"),
        (3, "__init__", "log(level, Own(contents))"),
        (3, "__init__", "super(level).__init__(contents)"),
        (3, "__call__", "job(contents)"),
    ],
)
def test_what_a_caller_gives(line, name, call, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PASSED.format(name=name, call=call))
    given = blame.argument_passed(stack(path, line, 11), "parts")
    assert ast.unparse(given) == "contents"


def test_a_choice_in_the_function_that_made_this_one(at):
    """`outer` has returned, and is in no frame."""
    assert lines(blame.from_choice(at(20, 25))) == [24, 20, 25]


MODEL = """\
def block(x, width):
    x = norm()(x)
    return layers.Dense(width)(x)

def build(inputs):
    x = inputs
    width = 4
    return block(x, width)
"""


@pytest.mark.parametrize("line, expected", [(2, [2, 8]), (3, [7, 3, 8])], ids=["data", "a number"])
def test_what_a_layer_is_called_with_is_no_choice(line, expected, tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    stacks = *stack(path, line, function="block"), *stack(path, 8, function="build")
    assert lines(blame.from_choice(stacks)) == expected


FACTOR = """\
def bonus(settings, entropy):
    return settings.weight * tf.reduce_mean(entropy)

def learn(self, entropy):
    settings = self.settings
    return bonus(settings, entropy)
"""


@pytest.mark.parametrize(
    "old, new, expected",
    [("", "", [2, 6]), ("tf.reduce_mean", "settings.mean", [5, 2, 6])],
    ids=["a number of it", "a function of it"],
)
def test_an_object_of_which_a_line_reads_an_attribute(old, new, expected, tmp_path):
    path = tmp_path / "loss.py"
    path.write_text(FACTOR.replace(old, new) if old else FACTOR)
    stacks = *stack(path, 2, function="bonus"), *stack(path, 6, function="learn")
    assert lines(blame.from_choice(stacks)) == expected


def test_the_same_statement(at, tmp_path):
    (one,), (other,) = at(9), at(10)
    assert blame.same_statement(one, one)
    assert not blame.same_statement(one, other)
    twice = tmp_path / "twice.py"
    twice.write_text("a = make()\na = make()\n")
    assert blame.same_statement(*stack(twice, 1, 2))
    first, second = (Frame(str(twice), line, f"function{line}") for line in (1, 2))
    assert not blame.same_statement(first, second)


STEPS = """\
def train(batch):
    def step(part):
        loss = model(part)
        return loss
    strategy.run(step, args=(batch,))

def given(step):
    strategy.run(step)

def main():
    def mine(part):
        return part
    given(mine)
"""


@pytest.mark.parametrize(
    "frames, line", [([5], 4), ([8, 13], 12), ([9], 9)], ids=["here", "passed", "nowhere"]
)
def test_the_end_of_the_step_that_is_given_to_run(tmp_path, frames, line):
    path = tmp_path / "train.py"
    path.write_text(STEPS)
    assert blame.from_return(stack(path, *frames))[0].line == line


CONTENTS = {
    "train.py": """\
        class Job:
            def __init__(self, learner, folder):
                self.learner = learner
                self.first = tf.train.Checkpoint(model=model, **self.parts())
                self.store = Store(folder, learner.trackables())
                self.others = Snapshots(folder, model=model)

            def parts(self):
                items = {"model": self.model}
                items.update(step=self.step)
                return items
        """,
    "store.py": """\
        class Store:
            def __init__(self, folder, trackables):
                self.checkpoint = tf.train.Checkpoint(**trackables)

        class Snapshots:
            def __init__(self, folder, **parts):
                self.checkpoint = tf.train.Checkpoint(**parts)
                parts = {"model": parts["model"]}
                self.second = tf.train.Checkpoint(**parts)
                self.third = tf.train.Checkpoint(model=parts["model"])
        """,
    "learner.py": """\
        class Learner:
            def trackables(self):
                return {"online": self.online}
        """,
}


@pytest.mark.parametrize(
    "made_at, expected",
    [
        ([("train.py", 4)], ("train.py", 9)),  # a method, which puts it together
        ([("store.py", 3), ("train.py", 5)], ("learner.py", 3)),  # the caller's, in another file
        ([("store.py", 7), ("train.py", 6)], ("train.py", 6)),  # one by one
        ([("store.py", 9), ("train.py", 6)], ("store.py", 8)),  # an assignment
        ([("store.py", 10), ("train.py", 6)], ("store.py", 10)),  # no `**`
        ([("store.py", 3)], ("store.py", 3)),  # no caller is known
    ],
)
def test_what_puts_a_checkpoint_together(tmp_path, made_at, expected):
    for name, text in CONTENTS.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    paths = [str(tmp_path / name) for name in CONTENTS]
    stack = tuple(Frame(str(tmp_path / name), line, "") for name, line in made_at)
    first = blame.from_contents(stack, paths)[0]
    assert (Path(first.path).name, first.line) == expected


@pytest.mark.parametrize(
    "more, line",
    [
        ("", 3),
        ("        self.loss = chosen\n", None),
        ("        self.other = chosen\n", 3),
        ("        loss = chosen\n", 3),
        ("        self.loss: Loss = chosen\n", None),
    ],
    ids=["once", "twice", "another", "a name", "twice, with its type"],
)
def test_a_function_that_an_attribute_is_given(tmp_path, more, line):
    text = "class Job:\n    def __init__(self):\n        self.loss = tf.reduce_mean\n"
    step = "    def step(self, x):\n        return self.loss(self.model(x))\n"
    path = tmp_path / "train.py"
    path.write_text(text + more + step)
    frame = Frame(str(path), 5 + bool(more), "step")
    found = blame.attribute_called(frame)
    assert (found and found.line) == line


@pytest.mark.parametrize(
    "value, is_plain",
    [("size", True), ("options.size", True), ("16", True), ("0.5", True)]
    + [("True", False), ("'a'", False), ("size + 1", False), ("len(names)", False)],
)
def test_what_is_a_plain_name_or_number(value, is_plain):
    assert blame.is_plain(ast.parse(value, mode="eval").body) is is_plain


def test_no_value_is_none_that_is_plain():
    assert not blame.is_plain(None)


PARTIALS = """\
norm = partial(Norm, momentum=0.7)
dense = partial(Dense, use_bias=False)
plain = Norm
def build():
    x = relu(norm()(x))
    x = norm(momentum=0.5)(x)
    x = plain()(x)
    x = norm()(dense()(x))
"""


@pytest.mark.parametrize("line, blamed", [(5, [1, 5]), (6, [6]), (7, [7]), (8, [8])])
def test_a_partial_that_is_called_without_arguments(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(PARTIALS)
    frames = blame.from_partial((Frame(str(path), line, "build"),))
    assert [frame.line for frame in frames] == blamed


BOUND = """\
def total(errors, reduce):
    return sum(weight * reduce(each) for weight, each in errors)
def other(errors, reduce):
    return reduce(errors)
def make_loss():
    return partial(total, reduce=tf.reduce_mean)
"""


@pytest.mark.parametrize(
    "line, function, expected",
    [(2, "total", [6, 2]), (4, "other", [4])],
    ids=["bound", "not bound"],
)
def test_a_partial_chooses_what_its_function_is_given(line, function, expected, tmp_path):
    path = tmp_path / "losses.py"
    path.write_text(BOUND)
    assert lines(blame.from_choice(stack(path, line, function=function))) == expected


LISTED = """PARTS = ("model", "optimizer")

def saver(model, optimizer):
    return tf.train.Checkpoint(**{name: locals()[name] for name in PARTS})
"""
ITERATED = """def windows(first):
    def draw(step):
        return step
    return tf.data.Dataset.range(first).map(draw)

def train():
    data = distributed(windows(3))
    for batch in data:
        step(batch)
"""


@pytest.mark.parametrize(
    "text, line, function, choose, expected",
    [
        (LISTED, 4, "saver", lambda stack: blame.from_contents(stack, ()), 1),
        (ITERATED, 9, "train", blame.from_iterated, 4),
        (ITERATED, 7, "train", blame.from_iterated, 7),
    ],
    ids=["parts that a list names", "what a loop goes through", "no loop"],
)
def test_who_decides_what_is_saved_or_taken(tmp_path, text, line, function, choose, expected):
    path = tmp_path / "train.py"
    path.write_text(text)
    assert choose((Frame(str(path), line, function),))[0].line == expected


def test_a_function_that_another_one_defines_is_called_there(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(ITERATED)
    inner, outer, caller = (
        Frame(str(path), *each) for each in ((3, "draw"), (4, "windows"), (7, "train"))
    )
    assert blame.from_definer((inner, outer, caller)) == (outer, caller)
