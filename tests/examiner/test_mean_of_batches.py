"""A printed number that is the plain mean of the numbers of several batches."""

import pytest
from recorded import run, stack
from strategy_clinic.examiner.mean_of_batches import Printed, mean_of_batches
from strategy_clinic.observer.events import BatchTaken, DatasetBatched, MeanReduced, NumbersRead

PROGRAM = """\
def judge(batch):
    return strategy.reduce("MEAN", strategy.run(check, (batch,)), axis=None)
def evaluate():
    for batch in data:
        error = judge(batch)
        errors.append(float(error))
for batch in train:
    losses.append(float(learn(batch)))
    shares.append(judge(batch))
evaluate()
"""
NUMBERS = (0.9137, 0.7211, 0.4519, 0.8126, 0.6035, 0.3742)  # two passes of three batches
MORE = (*NUMBERS, 0.7011, 0.5123, 0.3001)
OUTPUT = "epoch 1: error 0.69557\nepoch 2: error 0.59677\n"
SHORTER = "epoch 1: error 0.6956\nepoch 2: error 0.5968\nepoch 3: error 0.5045\n"
MEAN, READ, TAKEN = (2, 5, 10), (6, 10), (4, 10)


@pytest.fixture
def told(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)

    def made(
        numbers=NUMBERS,
        output=OUTPUT,
        sizes=(8, 3),
        batched=(16,),
        mean=MEAN,
        read=READ,
        taken=TAKEN,
    ):
        events = [BatchTaken(stack(path, *taken), (size, size)) for size in sizes]
        events += [DatasetBatched(stack(path, 3), size) for size in batched]
        events += [MeanReduced(stack(path, *mean), (), ())] if mean else []
        events += [NumbersRead(stack(path, *read), len(numbers), numbers, ())]
        return mean_of_batches(run(*events, output=output))

    return made


@pytest.mark.parametrize(
    "fields, number",
    [
        ({}, "0.69557"),
        ({"numbers": tuple(n for each in NUMBERS for n in (each, 8.0))}, "0.69557"),
        ({"numbers": (0.1, 0.2, 0.3, *NUMBERS)}, "0.69557"),
        ({"numbers": MORE, "output": SHORTER}, "0.6956"),
        ({"mean": (2, 9), "read": (9,), "taken": (7,)}, "0.69557"),
        ({"output": "rmse 0.83401\nrmse 0.77251\n"}, "0.83401"),
        ({"output": "perplexity 2.00484\nperplexity 1.81624\n"}, "2.00484"),
        ({"output": "rmse 0.83401\nperplexity 1.81624\n"}, None),
        ({"output": SHORTER}, None),
        ({"sizes": (8,)}, None),
        ({"mean": ()}, None),
        ({"read": (8,)}, None),
        ({"mean": (2, 9), "read": (8,)}, None),
        ({"mean": (2, 9)}, None),
        ({"sizes": (8, 3), "batched": (16, 6)}, None),
        ({"sizes": (8, 3), "batched": (16, 3)}, None),
        ({"output": "error 0.68121\nerror 0.58020\n"}, None),
        ({"output": "error 0.69557\n"}, None),
        ({"output": "error 0.7\nerror 0.6\n"}, None),
    ],
    ids=[
        "a mean of means",
        "with another number that is read of each batch",
        "after a pass that is not printed",
        "fewer digits of more passes",
        "read where it is reduced",
        "its root",
        "its exponential",
        "one of each",
        "fewer digits",
        "batches of one size",
        "no mean over replicas",
        "read in another loop",
        "batches of another loop",
        "a mean of another loop",
        "batches of another size that are whole",
        "of a replica",
        "another mean",
        "by chance, maybe",
        "too few digits",
    ],
)
def test_a_mean_of_means_is_told_by_its_value(told, fields, number):
    found = told(**fields)
    assert (found and found.printed) == number
    assert not found or (found.batches, found.sizes) == (3, (16, 6))


def test_each_printed_number_is_read_once(told, monkeypatch):
    """A long output has ten thousands, and there are hundreds of means that may be among them."""
    read = []
    monkeypatch.setattr(
        "strategy_clinic.examiner.mean_of_batches.unit", lambda number: read.append(number) or 1e-5
    )
    numbers = [f"{7 + i / 100:.5f}" for i in range(100)]
    assert told(output="\n".join(numbers)) is None
    assert read == numbers


def test_of_several_numbers_that_a_mean_may_be_the_first_is_told():
    printed = Printed(["7.00", "0.12", "0.1234", "0.123", "0.12"])
    assert printed.first(0.12342) == "0.12"
    assert printed.first(0.1279) == ""
    assert printed.first(7.004) == "7.00"


@pytest.mark.usefixtures("told")
def test_a_comprehension_is_in_the_loop_around_it(tmp_path):
    path = tmp_path / "train.py"
    events = [BatchTaken(stack(path, *TAKEN), (size, size)) for size in (8, 3)]
    location = (*stack(path, 6, function="<listcomp>"), *stack(path, *READ))
    events += [MeanReduced(stack(path, *MEAN), (), ()), NumbersRead(location, 6, NUMBERS, ())]
    assert mean_of_batches(run(*events, output=OUTPUT))
