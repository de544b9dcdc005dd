"""Events as lines of JSON: each kind is read as it was written, and anything else is refused."""

import dataclasses
import enum
import json
import typing

import pytest
from strategy_clinic.examiner.reading import EventError, from_json, kinds
from strategy_clinic.observer import events
from strategy_clinic.observer.events import Frame

LINE = events.VariableRead(3).to_json()
RESTORED = events.CheckpointRestored((), None, (), (1,), (), "").to_json()


def example(hint):
    """A value of the type that an annotation names."""
    arguments = typing.get_args(hint)
    if type(None) in arguments:
        return example(arguments[0])
    if arguments:
        return (example(arguments[0]), example(arguments[0]))
    if dataclasses.is_dataclass(hint):
        return hint(**{name: example(each) for name, each in typing.get_type_hints(hint).items()})
    if issubclass(hint, enum.Enum):
        return list(hint)[-1]
    return {Frame: Frame("train.py", 7, "main"), str: "words", float: 0.5, int: 3, bool: True}[hint]


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.__name__)
def test_an_event_is_read_as_it_was_written(kind):
    event = example(kind)
    assert from_json(event.to_json()) == event
    assert hash(event) == hash(from_json(event.to_json()))


def test_what_may_be_absent_is_null():
    restored = events.CheckpointRestored((), None, (), (1,), (), "")
    assert from_json(restored.to_json()) == restored


def test_numbers_that_are_none():
    """A loss that explodes is reported, too."""
    text = events.ModelAnswered((), events.Sample(float("inf"), (float("nan"),))).to_json()
    answered = from_json(text)
    assert answered.output.norm == float("inf")
    assert answered.output.entries[0] != answered.output.entries[0]


def changed(**fields):
    return json.dumps(json.loads(LINE) | fields)


REFUSED = {
    "": "not an event",
    "[]": "not an event",
    "3": "not an event",
    LINE[:-3]: "not an event",
    '{"event": "VariableRead", "number": 3}': "not an event",
    changed(schema=2): "schema 2 cannot be read; this is schema 1",
    changed(event="VariableGone"): "no event 'VariableGone' in schema 1",
    changed(event="Event"): "no event 'Event'",
    changed(number="3"): "VariableRead event do not fit: '3' is not int",
    changed(number=True): "True is not int",
    changed(more=1): r"\['more'\] missing or unknown",
    '{"schema": 1, "event": "VariableRead"}': r"\['number'\] missing or unknown",
    events.StrategyMade((Frame("train.py", 7, "main"),), "Mirrored", 2)
    .to_json()
    .replace('"main"', '"main", 1'): "StrategyMade event do not fit",
    events.StrategyMade((Frame("train.py", 7, "main"),), "Mirrored", 2)
    .to_json()
    .replace("7", '"7"'): "'7' is not int",
    RESTORED.replace("[1]", "[1, true]"): "True is not int",
    RESTORED.replace("null", "3"): "3 is not str",
    events.FunctionRetraced((), 5, events.RetraceCause.NUMBER, 0)
    .to_json()
    .replace("Python", "round"): "not a valid RetraceCause",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_text_is_refused(text):
    with pytest.raises(EventError, match=REFUSED[text]):
        from_json(text)


def test_only_plain_values_are_written():
    with pytest.raises(TypeError, match="object cannot be a part of an event"):
        events.VariableRead(object()).to_json()
