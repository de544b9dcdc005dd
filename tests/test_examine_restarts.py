"""What a second start misses, on facts alone: runs are stood in for by what they would have shown."""

import pytest
from examine_facts import OTHER, ended, fact, lost, modes, run, saved, state, updated, variable

from helpers.examine.runs import restarts

COUNT = variable(1, maker="user", dtype="int64")


def stopped(count=COUNT, **changes):
    return run(count, saved(left=[lost(**changes)]))


def second(value, *facts):
    """A start that ends with this value of the one weight that it trains."""
    trained = updated(state=state(trains=[2]))
    weight, end = variable(2), ended(values={"2": [value, value]})
    return run(COUNT, weight, trained, saved(left=[lost()]), *facts, end)


def missed(first, restarted, *others):
    """The facts that are added, and the options of the runs that were asked."""
    asked, others = [], list(others)

    def once_more(*options):
        asked.append(options)
        return others.pop(0)

    return list(restarts.missing(first, restarted, once_more, lambda line: None)), asked


def test_a_count_without_which_the_training_is_another():
    facts, asked = missed(stopped(), second(1.0), second(2.0), second(1.0))
    assert asked == [("--begin", "1:2.0"), ()]
    assert modes(second(1.0, *facts)) == [("fm05", 7)]


@pytest.mark.parametrize(
    "others",
    [[second(1.0)], [second(2.0), second(3.0)]],
    ids=["the same with it", "never the same"],
)
def test_a_count_that_makes_no_difference_or_cannot_be_told(others):
    assert missed(stopped(), second(1.0), *others)[0] == []


@pytest.mark.parametrize(
    "first",
    [
        stopped(read=False),
        stopped(changed=False),
        stopped(now=None),
        stopped(COUNT | {"maker": "layer"}),
        stopped(COUNT | {"at": OTHER}),
    ],
    ids=["unread", "unchanged", "not one number", "of a layer", "made elsewhere"],
)
def test_nothing_is_asked_of_what_cannot_be_missed(first):
    assert missed(first, second(1.0)) == ([], [])


def test_a_start_knows_what_was_saved_before_and_by_which_optimizers():
    first = run(saved(optimizers=[state()]), fact("used", number=1))
    assert [
        (each["fact"], each["held"], each["optimizers"]) for each in restarts.of_before(first)
    ] == [("saved before", [], [state()])]
