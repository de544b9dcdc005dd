"""What a layer is made from, and when a copy of weights is seen to follow its source."""

import pytest
from strategy_clinic.observer.copies import asked_for_config, config_given, share_moved
from strategy_clinic.observer.events import Sample

OLD = tuple(range(10))
GOAL = tuple(2.0 * each + 1.0 for each in range(10))


def moved(*shares):
    """What is seen of two variables whose entries go these shares of the way, in turn."""
    new = [old + share * (goal - old) for old, goal, share in zip(OLD, GOAL, shares * 10)]
    before, after, source = ((Sample(1.0, tuple(map(float, each))),) for each in (OLD, new, GOAL))
    return share_moved(before, after, source)


def test_all_entries_go_the_same_share_of_the_way():
    assert moved(0.25) == pytest.approx(0.25)
    assert moved(1.0) == pytest.approx(1.0)


def test_entries_that_go_elsewhere():
    assert moved(0.25, 0.5) is None
    assert moved(0.0) is None
    assert moved(-0.5) is None


def test_too_few_entries_or_other_shapes():
    few = (Sample(1.0, (0.0, 1.0)),), (Sample(1.0, (0.5, 1.5)),), (Sample(1.0, (1.0, 2.0)),)
    assert share_moved(*few) is None
    assert share_moved(few[0], few[1], (Sample(1.0, (1.0,)),)) is None


LIBRARY = """
class Base:
    @classmethod
    def from_config(cls, config):
        return config_given(is_own)

class Layer(Base):
    @classmethod
    def from_config(cls, config):
        return super().from_config({**config})

class Wrapper(Base):
    @classmethod
    def from_config(cls, config):
        return deserialize(config["layer"])

class Both:
    def __init__(self):
        self.second = Layer.from_config({"name": "second"})

def deserialize(config):
    return Layer.from_config(config)

def load():
    return Layer.from_config({"name": "loaded"})
"""
PROGRAM = """
class Own(Layer):
    @classmethod
    def from_config(cls, config):
        return super().from_config(config)

made = [each({"name": "a"}) for each in (Base.from_config, Layer.from_config, Own.from_config, deserialize)]
others = [Wrapper.from_config({"layer": {"name": "a"}}), Both().second, load()]
"""


def test_what_a_line_of_the_program_makes_a_layer_from():
    """Not what a library makes by itself, and not a layer within another one."""
    names = {"config_given": config_given, "is_own": lambda path: path == "program"}
    exec(compile(LIBRARY, "library", "exec"), names)
    exec(compile(PROGRAM, "program", "exec"), names)
    assert names["made"] == [{"name": "a"}] * 4
    assert names["others"] == [None] * 3


WRITERS = """
class Base:
    def get_config(self):
        return asked_for_config(is_own)

class Layer(Base):
    def get_config(self):
        return super().get_config()

def inner(layer):
    return layer.get_config()

def serialize(layer):
    return inner(layer)

def save(layer):
    return serialize(layer)
"""
ASKS = """
class Own(Layer):
    def get_config(self):
        return super().get_config()

asked = [each(kind()) for kind in (Layer, Own) for each in (lambda layer: layer.get_config(), serialize)]
others = [save(Layer()), save(Own())]
"""


def test_whose_configuration_a_line_of_the_program_asks_for():
    names = {"asked_for_config": asked_for_config, "is_own": lambda path: path == "program"}
    exec(compile(WRITERS, "library", "exec"), names)
    exec(compile(ASKS, "program", "exec"), names)
    assert names["asked"] == [True] * 4
    assert names["others"] == [False] * 2
