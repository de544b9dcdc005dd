"""The cluster that a program describes itself, and the argument that tells it which of the tasks it is."""

import json

import pytest
from strategy_clinic.observer.own_cluster import arguments_of_tasks, is_here


def config(addresses=("localhost:1", "localhost:2"), index=0, job="worker"):
    return json.dumps({"cluster": {job: list(addresses)}, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(
    "given, index, expected",
    [
        (["0"], 0, [["0"], ["1"]]),
        (["--epochs", "3", "1"], 1, [["--epochs", "3", "0"], ["--epochs", "3", "1"]]),
        (["--task=0", "-v"], 0, [["--task=0", "-v"], ["--task=1", "-v"]]),
        (["0", "0"], 0, []),  # which of them?
        (["10"], 0, []),
        ([], 0, []),
    ],
)
def test_the_arguments_of_each_task(given, index, expected):
    assert arguments_of_tasks(config(index=index), given) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[]",
        "{}",
        '{"cluster": 1, "task": 2}',
        config(addresses=["localhost:1"]),
        config(index="0"),
        '{"cluster": {"chief": ["a:1"], "worker": ["a:2", "a:3"]}, "task": {"index": 0}}',
    ],
)
def test_a_cluster_whose_tasks_are_not_told_by_an_argument(text):
    assert arguments_of_tasks(text, ["0"]) == []


def test_a_cluster_of_this_machine():
    assert is_here(config()) and is_here(config(["127.0.0.1:1", "0.0.0.0:2"])) and is_here("")
    assert not is_here(config(["localhost:1", "10.0.0.7:1"]))
