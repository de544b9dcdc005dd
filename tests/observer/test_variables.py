"""What the observer reads of variables."""

from types import SimpleNamespace

import numpy as np
import pytest
from strategy_clinic.observer import variables
from strategy_clinic.observer.events import Owner, Sample, VariableValue
from strategy_clinic.observer.training import MOST_TRAININGS, Training

ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    "copies, distance",
    [([ONES, ONES], 0), ([ONES, 0.5 * ONES], 0.5), ([ONES, np.zeros(0), 0.5 * ONES], 0.5)],
    ids=["same", "apart", "one without a value yet"],
)
def test_how_far_copies_are_apart(monkeypatch, copies, distance):
    monkeypatch.setattr(variables, "arrays_of", lambda _: copies)
    assert variables.distance_of_copies(None) == pytest.approx(distance)


def test_the_weights_of_a_layer_are_those_that_it_has_now():
    class Layer:
        weights = ()

    layer = Layer()
    assert variables.weights_of(layer) == []
    layer.weights = [ONES, "a vocabulary"]  # it was built
    assert [*map(id, variables.weights_of(layer))] == [id(ONES)]


# Which variables are kept


class Variable:
    name = "v:0"


VALUE = VariableValue(1, Sample(2.0, (2.0,)))


@pytest.mark.parametrize("hold, is_kept", [(False, False), (True, True)])
def test_what_is_released_is_gone_with_the_program_and_its_value_is_kept(
    monkeypatch, hold, is_kept
):
    monkeypatch.setattr(variables, "sample_of", lambda _: VALUE.sample)
    kept = variables.Variables(SimpleNamespace(settings=SimpleNamespace(hold=hold)))
    variable = Variable()
    record = kept.records[variable] = variables.Record(1, variable, Owner.LAYER)
    kept.hold([record])
    del variable
    assert record.variable is not None
    kept.release()
    assert (record.variable is not None) is is_kept
    assert kept.last_values() == (VALUE,)
    assert kept.values() == ((VALUE,) if is_kept else ())


@pytest.mark.parametrize(
    "steps, training, released", [(3, 1, 1), (0, 1, 0), (3, MOST_TRAININGS, 0)]
)
def test_what_a_training_held_is_released_by_the_next_one_that_is_looked_at(
    steps, training, released
):
    """What the last of them holds stays, since nothing of a later training is held."""
    calls = []
    watched = SimpleNamespace(
        optimizers=SimpleNamespace(used={1: None, 2: None}),
        optimizers_seen=(1,),
        new_optimizers=(1,),
        steps=steps,
        training=training,
        variables=SimpleNamespace(release=lambda: calls.append(1)),
    )
    Training.begin_training(watched)
    assert (len(calls), watched.optimizers_seen) == (released, (1, 2))
