"""Files of weights near the place where a program looks for its latest checkpoint."""

import pytest
from strategy_clinic.observer.stored_values import files_near


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "runs/a/ck-1.index",
        "runs/a/ck-1.data-0",
        "runs/b.weights.h5",
        "ck-2.index",
        "x.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()


@pytest.mark.parametrize(
    "sought, near",
    [
        ("runs", ("runs/b.weights.h5", "runs/a/ck-1")),
        ("./runs/a/", ("runs/a/ck-1",)),
        ("runs/a/ck", ("runs/a/ck-1",)),
        ("ck", ("ck-2",)),
        ("runs/a/other", ()),
        ("elsewhere/ck", ()),
    ],
    ids=["below", "in it", "a prefix", "a prefix here", "another prefix", "no folder"],
)
def test_files_near(folder, sought, near):
    assert files_near(sought) == near
