import os

import pytest
from strategy_clinic.base import dataset_iterators
from strategy_clinic.base.errors import UserError
from strategy_clinic.programs import child
from strategy_clinic.setups import described_tpu, formats, parameters, runtime, strategies
from strategy_clinic.setups.parameters import Setup

BAD = [
    ({"strategy": "mirorred"}, ["'mirorred'", "'mirrored'", "Did you mean"]),
    ({"save_format": "pickle"}, ["'pickle'", "'npz'"]),
    ({"devices": 0}, ["0", "1, 2, 4, 8"]),
    ({"devices": -1}, ["-1", "1, 2, 4, 8"]),
    ({"devices": 3}, ["3", "1, 2, 4, 8"]),
    ({"devices": "two"}, ["'two'", "1, 2, 4, 8"]),
    ({"devices": True}, ["True"]),
    ({"devices": 2.0}, ["2.0"]),
    ({"devices": None}, ["None"]),
    ({"keras": 4}, ["4", "2, 3"]),
    ({"strategy": ["mirrored"]}, ["['mirrored']"]),
    ({"strategy": "default", "devices": 2}, ["for default", "valid: 1"]),
]


@pytest.mark.parametrize("given, expected", BAD)
def test_bad_values_are_one_sentence(given, expected):
    with pytest.raises(UserError) as refused:
        Setup(**given)
    assert all(words in str(refused.value) for words in expected)
    assert "\n" not in str(refused.value)


def test_every_row_can_be_asked_for():
    for row in strategies.ROWS:
        for count in row.counts:
            for each in formats.ROWS:
                for keras in runtime.KERAS_VERSIONS:
                    assert Setup(row.name, count, each.name, keras).strategy == row.name


def test_a_refusal_shows_no_traceback_in_a_notebook():
    assert UserError("one sentence")._render_traceback_() == ["one sentence"]


def test_grid_keeps_what_makes_sense_and_says_what_does_not():
    kept, skipped = parameters.combinations(["default", "mirrored"], [1, 2], ["keras"], [3])
    assert [(each.strategy, each.devices) for each in kept] == [
        ("default", 1),
        ("mirrored", 1),
        ("mirrored", 2),
    ]
    assert len(skipped) == 1 and "for default" in skipped[0]


@pytest.mark.parametrize("devices", [[1, 3], [0, 2], ["two", 2]])
def test_grid_refuses_a_value_that_no_strategy_takes(devices):
    with pytest.raises(UserError, match="devices"):
        parameters.combinations(["mirrored"], devices, ["keras"], [3])


def test_names_of_parameters_in_an_injected_cell():
    assert parameters.assigned("# Parameters\nstrategy = 'mirrored'\ndevcies = 4\n") == [
        "strategy",
        "devcies",
    ]


def test_pieces_of_several_gpus_are_spread():
    names = ["GPU:0", "GPU:1", "GPU:2", "GPU:3"]
    assert runtime._spread(names, 2) == ["GPU:0", "GPU:2", "GPU:1", "GPU:3"]
    assert runtime._spread(names[:2], 1) == ["GPU:0", "GPU:1"]


def test_an_emulated_tpu_hides_gpus_before_tensorflow_looks_for_devices(monkeypatch):
    hidden = []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(
        runtime, "start_tensorflow", lambda: hidden.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
    )
    monkeypatch.setattr(dataset_iterators, "turn_off_autotuning", lambda change: None)
    monkeypatch.setattr(described_tpu, "describe_tpu", lambda change, devices: None)
    child.prepare(described_tpu=False)
    child.prepare(described_tpu=True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert hidden == [None, "-1"]
