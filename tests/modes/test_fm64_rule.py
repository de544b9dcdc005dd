"""The examiner's rule for fm64: a Python generator under a strategy."""

import pytest
from recorded import OTHER, found, modes, run, stack, strategy
from strategy_clinic.observer.events import DataRanOut

GENERATOR = """\
def batches():
    yield from [1, 2]


{line}
"""


def examined(tmp_path, line, keras=3, replicas=2):
    path = tmp_path / "train.py"
    path.write_text(GENERATOR.format(line=line))
    last = len(path.read_text().splitlines())
    made = [strategy(replicas)] if replicas else []
    return run(*made, DataRanOut(stack(path, last), 0), keras=keras)


@pytest.mark.parametrize("keras", [3, None], ids=["Keras 3", "the installed one"])
@pytest.mark.parametrize(
    "line",
    [
        "model.fit(batches(), epochs=2)",
        "model.evaluate(x=batches())",
        "loss = model.evaluate(batches())",
        "model.fit(number for number in range(3))",
        "data = batches()\nmodel.fit(data)",
    ],
)
def test_a_generator_that_has_ended(tmp_path, line, keras):
    (finding,) = found(examined(tmp_path, line, keras=keras))
    assert (finding.mode, finding.line) == ("fm64", 5 + line.count("\n"))
    assert "cannot give back" in str(finding.message)


@pytest.mark.parametrize(
    "line",
    ["model.fit(dataset)", "model.fit(from_generator(batches))", "model.predict(batches())"],
)
def test_other_data(tmp_path, line):
    assert modes(examined(tmp_path, line)) == []


@pytest.mark.parametrize(
    "changes",
    [{"keras": 2}, {"replicas": 0}],
    ids=["Keras 2", "no strategy"],
)
def test_where_nothing_is_lost(tmp_path, changes):
    assert modes(examined(tmp_path, "model.fit(batches())", **changes)) == []


def test_an_end_that_nobody_can_place():
    assert modes(run(strategy(2), DataRanOut((), 0), DataRanOut(OTHER, 0), keras=3)) == []
