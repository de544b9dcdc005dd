"""Wrapped functions: arguments by name, errors of handlers and of programs, and everything put back. No TensorFlow."""

import inspect
import pickle
import subprocess
import sys
import weakref

import pytest
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer.context import Context, Settings
from strategy_clinic.observer.identity_map import IdentityMap


class Base:
    def method(self, first, second=2, *rest, third, **options):
        """Returns what it gets."""
        return first, second, rest, third, options

    def pairs(self, items):
        return list(items)

    def outer(self):
        return self.inner()

    def inner(self):
        return "inner"

    @property
    def size(self):
        return 7


class Inheriting(Base):
    pass


@pytest.fixture
def context(tmp_path):
    context = Context(Settings(str(tmp_path / "events.jsonl")))
    yield context
    context.patches.restore()


def failures(context):
    with open(context.settings.events) as file:
        return [(event.handler, event.error) for event in map(from_json, file)]


CALLS = [
    lambda call: call(1, third=3),
    lambda call: call(first=1, third=3),
    lambda call: call(third=3, second=2, first=1),
]


@pytest.mark.parametrize("make", CALLS)
def test_a_handler_reads_arguments_by_name(context, make):
    seen = []
    context.patches.wrap(
        Base, "method", lambda call: seen.append([call[n] for n in ("first", "second", "third")])
    )
    assert make(Base().method) == (1, 2, (), 3, {})
    assert seen == [[1, 2, 3]]


def test_a_wrapped_function_looks_like_the_plain_one(context):
    plain = Base.method
    context.patches.wrap(Base, "method")
    assert Base.method is not plain
    assert inspect.signature(Base.method) == inspect.signature(plain)
    assert inspect.getfullargspec(Base.method) == inspect.getfullargspec(plain)
    assert (Base.method.__name__, Base.method.__doc__) == (plain.__name__, plain.__doc__)


def test_a_wrong_call_is_the_programs_own(context):
    context.patches.wrap(Base, "method", lambda call: call["first"], lambda _, call: call["first"])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        Base().method(third=3)
    with pytest.raises(FileNotFoundError):
        failures(context)


def test_an_iterator_can_be_read_by_a_handler_and_by_the_function(context):
    seen = []
    context.patches.wrap(
        Base, "pairs", lambda call: seen.append(list(call["items"])), listed="items"
    )
    assert Base().pairs(zip("ab", "cd")) == Base().pairs(items=zip("ab", "cd"))
    assert seen == [[("a", "c"), ("b", "d")]] * 2


def test_an_iterator_that_fails_does_so_in_the_program(context):
    context.patches.wrap(Base, "pairs", listed="items")
    with pytest.raises(ZeroDivisionError):
        Base().pairs(1 // number for number in (1, 0))


def test_an_error_of_a_handler_is_an_event_once(context):
    def failing(*_):
        raise KeyError("mine")

    context.patches.wrap(Base, "inner", failing, failing)
    assert [Base().inner(), Base().inner()] == ["inner", "inner"]
    assert [error for _, error in failures(context)] == ["KeyError: 'mine'"]


def test_what_a_handler_does_is_not_reported(context):
    seen = []
    context.patches.wrap(Base, "inner", lambda call: seen.append(call.owner.inner()))
    assert Base().inner() == "inner"
    assert seen == ["inner"]


def test_of_nested_calls_in_a_group_the_outermost_is_reported(context):
    seen = []
    for name in ("outer", "inner"):
        context.patches.wrap(
            Base, name, after=lambda _, call, name=name: seen.append(name), group="group"
        )
    Base().outer()
    Base().inner()
    assert seen == ["outer", "inner"]


def test_a_group_ends_with_an_exception(context):
    seen = []
    context.patches.wrap(Base, "pairs", after=lambda *_: seen.append(1), group="group")
    with pytest.raises(TypeError):
        Base().pairs(3)
    Base().pairs([])
    assert seen == [1]


def test_everything_is_put_back(context):
    before = dict(vars(Base)), dict(vars(Inheriting))
    patches, seen = context.patches, []
    patches.wrap(Inheriting, "inner", after=lambda *_: seen.append(1))
    patches.wrap(Inheriting, "inner", after=lambda *_: seen.append(2))
    patches.wrap(Inheriting, "outer", here=True)
    patches.wrap_property(Inheriting, "size", lambda value, _: seen.append(value))
    patches.wrap_new(Inheriting, lambda made: seen.append(type(made)))
    assert "outer" in vars(Inheriting) and Inheriting().size == 7 and Inheriting().inner()
    assert seen == [Inheriting, 7, Inheriting, 1, 2]
    patches.restore()
    assert (dict(vars(Base)), dict(vars(Inheriting))) == before
    assert Inheriting().inner() == "inner" and len(seen) == 5


def test_pickle_finds_a_function_that_is_wrapped_in_another_class(context):
    context.patches.wrap(Inheriting, "outer", here=True)
    context.patches.wrap(Inheriting, "inner")
    assert (Inheriting.outer.__qualname__, Inheriting.inner.__qualname__) == (
        "Inheriting.outer",
        "Base.inner",
    )
    pickled = pickle.dumps([Inheriting.outer, Inheriting.inner, Inheriting().outer])
    assert pickle.loads(pickled)[:2] == [Inheriting.outer, Base.inner]
    context.patches.restore()
    outer, inner, method = pickle.loads(pickled)
    assert (outer, inner, method.__func__) == (Base.outer, Base.inner, Base.outer)


def test_what_the_program_has_replaced_since_stays(context, monkeypatch):
    context.patches.wrap(Base, "inner")
    theirs = vars(Base)["inner"]
    monkeypatch.setattr(Base, "inner", lambda self: "theirs")
    context.patches.restore()
    assert Base().inner() == "theirs"
    monkeypatch.undo()
    assert vars(Base)["inner"] is theirs
    del theirs
    Base.inner = Base.inner.__wrapped__


def test_an_observer_that_was_stopped_does_nothing(context):
    seen = []
    context.patches.wrap(Base, "inner", lambda call: seen.append(1))
    taken = Base().inner
    context.stopped = True
    assert taken() == "inner" and seen == []


def test_a_map_by_identity_forgets_what_is_gone():
    class Thing:
        __hash__ = None

        def __eq__(self, other):
            raise TypeError

    kept, gone = Thing(), Thing()
    numbers = IdentityMap()
    numbers[kept], numbers[gone] = 1, 2
    assert [numbers.get(kept), numbers.get(gone), numbers.get(None)] == [1, 2, None]
    assert numbers.setdefault(kept, lambda: 3) == 1
    reference = weakref.ref(gone)
    del gone
    assert reference() is None
    assert list(numbers.items()) == [(kept, 1)] and len(numbers.entries) == 1


WATCH = """
import random, sys
from strategy_clinic.observer.patching import ImportWatch

seen = []
watch = ImportWatch(
    {name: lambda name=name: seen.append(name) for name in ("colorsys", "draws", "never")},
    {"colorsys": lambda: seen.append(hasattr(sys.modules["colorsys"], "rgb_to_hsv"))},
)
sys.meta_path.insert(0, watch)
import colorsys
assert seen == [False, "colorsys"] and colorsys.rgb_to_hsv(0, 0, 0)
with open("draws.py", "w") as file:
    file.write("import random; drawn = random.random()")
sys.path.append("")
random.seed(1)
import draws
assert random.random() == draws.drawn
assert list(watch.actions) == ["never"]
try:
    import never
except ModuleNotFoundError as error:
    assert error.name == "never"
else:
    raise AssertionError
"""


def test_an_import_is_noticed_once_it_is_done(tmp_path):
    subprocess.run([sys.executable, "-c", WATCH], check=True, cwd=tmp_path)
