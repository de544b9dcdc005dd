"""What a function reads of Python: numbers and random generators, found in its source."""

import linecache
import random

import numpy as np
import pytest
from strategy_clinic.observer.python_reads import UNKNOWN, names_in, reads_of, state_of

rate, verbose, first_call = 0.1, False, 0
config = {"rate": 0.2}
generator = np.random.default_rng(0)


class Settings:
    decay = 0.9

    def __init__(self):
        self.scale = 2.0
        self.steps = 0

    @property
    def computed(self):
        raise AssertionError("a property is not asked")

    def step(self, x):
        self.steps += 1
        return x * self.scale * self.computed / self.steps + helper(x)


settings = Settings()


def helper(x):
    return x * rate


def reading_all(x):
    return x * rate + config["rate"] * settings.scale * settings.decay


def reading_nothing(x, rate=3.0):
    scale = 2.0
    for verbose in range(3):
        x += rate * scale * verbose
    return [rate for rate in (x, scale)]


def showing(x):
    print("rate", rate)
    if verbose:
        print("verbose")
    if x is None:
        raise ValueError(rate)
    return x


def drawing(x):
    return x + np.random.normal() + random.random() + generator.normal()


def drawing_elsewhere(x, tf):
    np.random.seed(1)
    tf.Variable(np.random.normal(size=3))
    return tf.py_function(drawing, [x], float) + tf.numpy_function(lambda: generator.normal(), [x])


def asking(x):
    return x if first_call == 0 else x * first_call


def names(function):
    return [read.name for read in reads_of(function, lambda path: path == __file__).numbers]


def drawn(function):
    return [draw.name for draw in reads_of(function, lambda path: path == __file__).draws]


@pytest.mark.parametrize(
    "function, expected",
    [
        (helper, ["rate"]),
        (reading_all, ["rate", "config['rate']", "settings.scale", "settings.decay"]),
        (settings.step, ["self.scale", "self.steps", "rate"]),
        (lambda x: helper(x) * verbose, ["verbose", "rate"]),
        (reading_nothing, []),
        (showing, []),
    ],
    ids=["global", "attributes", "method", "lambda", "its own names", "shown only"],
)
def test_numbers(function, expected):
    assert names(function) == expected


def test_closures():
    strength = 0.5

    def outer(x):
        def inner(y):
            return y * strength

        return inner(x)

    (read,) = reads_of(outer, lambda path: path == __file__).numbers
    assert (read.name, read.lookup()) == ("strength", 0.5)
    strength = 0.75
    assert read.lookup() == 0.75


def test_values_are_looked_up_again():
    own = Settings()
    read = reads_of(own.step, lambda path: path == __file__).numbers[0]
    own.scale = 3.0
    assert (read.name, read.lookup()) == ("self.scale", 3.0)
    del own.scale
    assert read.lookup() is UNKNOWN


class Optimizer:
    """As one of Keras, which keeps what computes its rate."""

    def __init__(self, rate=None):
        self._learning_rate = rate

    def apply_gradients(self, pairs): ...


class Schedule:
    def __init__(self):
        self.factor = 0.5

    def __call__(self, step):
        return self.factor * step


def test_which_optimizer_a_name_has():
    trainer = Settings()
    trainer.optimizer = first = Optimizer()

    def step(x):
        trainer.optimizer.apply_gradients(x)
        return trainer.optimizer.variables

    read = reads_of(step, lambda path: path == __file__).numbers[0]
    assert (read.name, str(read.lookup())) == ("trainer.optimizer", "Optimizer")
    before = read.lookup()
    assert before == read.lookup()
    trainer.optimizer = Optimizer()
    assert before != read.lookup()
    trainer.optimizer = first
    assert before == read.lookup()
    trainer.optimizer = 0.5
    assert read.lookup() is UNKNOWN


@pytest.mark.parametrize(
    "made, expected", [(lambda: rate, "rate"), (Schedule(), "self.factor"), (0.5, None)]
)
def test_what_computes_the_rate_of_an_optimizer_is_read(made, expected):
    optimizer = Optimizer(made)

    def step(x):
        optimizer.apply_gradients(x)

    assert names(step) == [*filter(None, [expected, "optimizer"])][::-1]


def test_the_length_of_a_list_is_a_number():
    seen, other = [], 2.0

    def counting(x):
        return x / (1 + len(seen)) + len(other) + len(x)

    (read,) = reads_of(counting, lambda path: path == __file__).numbers[:1]
    assert (read.name, read.lookup()) == ("len(seen)", 0)
    seen.append(1)
    assert read.lookup() == 1
    assert names(counting) == ["len(seen)", "other"]


def test_objects_are_not_kept_alive():
    own = Settings()
    read = reads_of(own.step, lambda path: path == __file__).numbers[0]
    del own
    assert read.lookup() is UNKNOWN


def test_counters():
    reads = reads_of(settings.step, lambda path: path == __file__)
    assert {*reads.counted} == {"self.steps"}
    assert "self.steps +=" in linecache.getline(__file__, reads.counted["self.steps"].line)


class Numbers:
    one = two = three = last = 0

    def step(self, x):
        if self.one == 0:
            x += 1
        self.one += 1
        self.two = self.two + 1
        self.last = self.two
        if self.two % 4 == 0:
            x += self.three
        return x


def test_which_counters_a_function_asks_for_their_first_number():
    reads = reads_of(Numbers().step, lambda path: path == __file__)
    assert {*reads.counted} == {"x", "self.one", "self.two"}
    assert {each.name for each in reads.numbers if each.asks_whether_first} == {"self.one"}


def passing(x, owner):
    return owner.step(x) + calling(x, owner)


def calling(x, given):
    return x * given.scale


def rebinding(x, owner):
    owner = x
    return x * owner.scale


def running(x, strategy, owner):
    return strategy.run(calling, args=(x, owner))


def running_by_position(x, strategy, owner):
    return strategy.run(calling, [x, owner])


def test_arguments_lead_to_what_they_are():
    own, is_own = Settings(), lambda path: path == __file__
    read = {each.name for each in reads_of(passing, is_own, [1.0, own]).numbers}
    assert read == {"self.scale", "self.steps", "rate", "given.scale"}
    assert {each.name for each in reads_of(passing, is_own, [1.0], {"owner": own}).numbers} == read
    assert not reads_of(passing, is_own, [1.0]).numbers
    assert not reads_of(rebinding, is_own, [1.0, own]).numbers
    for function in (running, running_by_position):
        (in_replica,) = reads_of(function, is_own, [1.0, object(), own]).numbers
        assert in_replica.name == "given.scale"


def test_a_comparison_with_0_asks_whether_it_is_the_first_call():
    reads = reads_of(asking, lambda path: path == __file__).numbers
    assert [read.asks_whether_first for read in reads] == [True, False]


def test_random_numbers():
    assert drawn(drawing) == ["np.random.normal", "random.random", "generator.normal"]
    assert drawn(drawing_elsewhere) == []


def test_the_names_of_a_function_are_those_of_functions_in_it_too():
    def outer(model):
        return lambda batch: model.train_step(batch)

    assert "train_step" in names_in(outer.__code__)


def test_functions_of_libraries_are_not_read():
    assert reads_of(reading_all, lambda path: False).numbers == []


@pytest.mark.parametrize(
    "one, draw",
    [
        (random, random.random),
        (np.random, np.random.normal),
        (own := random.Random(1), own.random),
        (legacy := np.random.RandomState(1), legacy.normal),
        (new := np.random.default_rng(1), new.normal),
    ],
)
def test_states_of_generators(one, draw):
    before = state_of(one)
    assert state_of(one) == before
    draw()
    assert state_of(one) != before
