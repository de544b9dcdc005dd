"""Which functions of the program a model is given, under whatever form. No TensorFlow."""

import functools
from types import SimpleNamespace

import pytest
from strategy_clinic.observer.definitions import code_of, definition, name_of
from strategy_clinic.observer.events import Use


def error(labels, outputs, scale=1.0):
    return scale * (labels - outputs)


class Metric:
    name = "share"

    def result(self):
        return 0.0

    def error(self):
        return self.result()


class Wrapper:
    """Keeps a function as Keras does."""

    def __init__(self, fn):
        self.fn = fn


@functools.wraps(error)
def decorated(*args):
    return error(*args)


GIVEN = {
    "a function": error,
    "a lambda": (lambda labels, outputs: labels),
    "a partial": functools.partial(error, scale=2.0),
    "a partial of a partial": functools.partial(functools.partial(error), scale=2.0),
    "decorated": decorated,
    "an object with a function": Wrapper(error),
    "an object with a partial": Wrapper(functools.partial(error)),
    "traced": SimpleNamespace(python_function=error),
}


@pytest.mark.parametrize("form", GIVEN)
def test_the_code_of_what_a_model_is_given(form):
    expected = GIVEN["a lambda"] if form == "a lambda" else error
    assert code_of(GIVEN[form]) is expected.__code__


def test_a_method():
    assert code_of(Metric().error) is Metric.error.__code__


@pytest.mark.parametrize("thing", ["mse", None, 3, Metric(), max, functools.partial(max)])
def test_what_has_no_code(thing):
    assert code_of(thing) is None


def test_a_wrapper_around_itself_ends():
    endless = SimpleNamespace()
    endless.fn = endless
    assert code_of(endless) is None


def found(thing, method="result", is_own=lambda path: True):
    return [*definition(Use.METRIC, name_of(thing), thing, method, is_own)]


def test_a_metric_that_is_an_object_is_where_its_class_returns():
    (only,) = found(Metric())
    code = Metric.result.__code__
    assert (only.name, only.location.line) == ("share", code.co_firstlineno)
    assert (only.location.path, only.location.function) == (__file__, "result")


def test_a_function_has_its_own_name():
    (only,) = found(error)
    assert (only.name, only.location.function) == ("error", "error")


def test_what_a_library_defines_is_left_out():
    assert found(Metric(), is_own=lambda path: False) == []
    assert found("mse") == []
