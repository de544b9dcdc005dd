"""The sweep: its tables, how values are compared, what is stored, resumed and reported, and that a planted fault is found."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.sweep import code, items, pictures, record, report, settled
from strategy_clinic.sweep.code import code_of, modules_of
from strategy_clinic.sweep.differences import Outcome, Raised, Result, compare
from strategy_clinic.sweep.items import Item, cells_of, matches
from strategy_clinic.sweep.record import RecordedCell, SweepRecord
from strategy_clinic.sweep.runs import catalogue, command, measured, rounding, run
from thorough import thorough

SGD = next(item for item in catalogue.ITEMS if item.path == "optimizer/SGD/clipnorm")
ADAM = next(item for item in catalogue.ITEMS if item.path == "optimizer/Adam/clipnorm")


# The tables


def test_a_sweep_has_at_least_2500_cells_and_each_its_own_name():
    names = [cell.name for cell in catalogue.chosen_cells([2, 3])]
    assert len(names) >= 2500
    assert len(names) == len(set(names))


def test_the_cells_are_of_every_kind_way_and_number_of_replicas():
    cells = catalogue.chosen_cells([2, 3])
    for keras in (2, 3):
        own = [cell for cell in cells if cell.keras == keras]
        assert {cell.item.kind for cell in own} == set(items.Kind)
        assert {cell.how for cell in own} == set(items.How)
        assert {cell.parts for cell in own} == set(items.Parts)
        assert {cell.replicas for cell in own} == {1, 2, 4}


def test_no_class_is_both_swept_and_left_out():
    for _, table in catalogue.INSPECTED.values():
        assert not {item.name for item in table.ITEMS} & set(table.NOT_SWEPT) - {
            "Layer",
            "Optimizer",
        }
        assert all(table.NOT_SWEPT.values())


def test_a_pattern_chooses_cells():
    name = cells_of(SGD, 3)[0].name
    assert name == "optimizer/SGD/clipnorm/fit/even/x1/keras3"
    assert matches(name, "SGD") and matches(name, "optimizer/*/x1/keras3")
    assert not matches(name, "optimizer/*/x2/*") and not matches(name, "Adam")
    assert {cell.keras for cell in catalogue.chosen_cells([2], "SGD")} == {2}


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_the_command_reaches_the_sweep(check, capsys):
    assert cli.main(["sweep", "--only", "nonsense", *check]) == 2
    assert "No cell fits --only 'nonsense'" in capsys.readouterr().err


def test_a_pattern_without_cells_is_refused():
    with pytest.raises(UserError, match="No cell fits --only 'nonsense'"):
        command.require_cells([3], "nonsense")


@pytest.fixture
def invented_keras(monkeypatch):
    """A Keras with the base classes, one class that has a row, and one that nobody knows."""
    for module, (base, _) in catalogue.INSPECTED.items():
        parent = type(base, (), {})
        found = ModuleType(f"invented.{module}")
        vars(found).update({base: parent, "Unheard": type("Unheard", (parent,), {}), "number": 1})
        monkeypatch.setitem(sys.modules, found.__name__, found)
    monkeypatch.setitem(sys.modules, "invented", ModuleType("invented"))
    monkeypatch.setitem(catalogue.KERAS, 3, "invented")
    return sys.modules


def test_a_new_class_of_keras_is_named(invented_keras):
    new = [f"{module}.Unheard" for module in catalogue.INSPECTED]
    assert [name for name in catalogue.classes_without_row(3) if name.endswith("Unheard")] == new
    losses = invented_keras["invented.losses"]
    losses.Huber = type("Huber", (losses.Loss,), {})
    assert "losses.Huber" not in catalogue.classes_without_row(3)


def test_a_new_argument_is_named_unless_a_row_gives_it_or_it_is_left_out(invented_keras):
    class SGD:
        def __init__(self, learning_rate=0.1, momentum=0.0, name="sgd", unheard=1):
            pass

    optimizers = invented_keras["invented.optimizers"]
    optimizers.SGD = type("SGD", (SGD, optimizers.Optimizer), {})
    assert [each for each in catalogue.arguments_of_classes() if "SGD" in each] == [
        "optimizers.SGD(unheard)"
    ]


def test_a_new_argument_of_a_method_is_named(invented_keras):
    class Model:
        def compile(self, optimizer=None, unheard=None):
            pass

        fit = evaluate = predict = train_on_batch = test_on_batch = predict_on_batch = compile

    invented_keras["invented"].Model = Model
    assert catalogue.arguments_of_methods()[0] == "Model.compile(unheard)"
    assert len(catalogue.arguments_of_methods()) == len(catalogue.METHODS)


def test_an_argument_of_one_method_is_not_given_to_another():
    row = Item(items.Kind.TRAINING, "fit", "x", None, (), with_=(("fitted", {"batch_size": 5}),))
    assert "batch_size" in catalogue.given_in(row, "fit")
    assert "batch_size" not in catalogue.given_in(row, "evaluate")
    row = replace(row, name="test_on_batch", with_=(("on_batch", {"return_dict": True}),))
    assert "return_dict" in catalogue.given_in(row, "test_on_batch")
    assert "return_dict" not in catalogue.given_in(row, "train_on_batch")


def test_what_is_left_out_is_an_argument_or_one_of_a_class_that_has_rows():
    names = {item.name for item in catalogue.ITEMS}
    for method in (name.partition(".")[0] for name in catalogue.training.NOT_SWEPT if "." in name):
        assert method in catalogue.METHODS
    for left_out in catalogue.arguments.NOT_SWEPT:
        assert "." not in left_out or left_out.partition(".")[0] in names


# Errors of TensorFlow, for which no repair of Keras can show that their cells turn red: twins without the cause are the same.
TWINS = {
    "check/shape/Conv2D with oneDNN/loop/empty/x2": "check/shape/Conv2D/loop/empty/x2",
    "check/arrays/a generator of slices/fit/even/x2": "check/arrays/a generator of copies/fit/even/x2",
    "check/deletion/an iterator/loop/even/x1": "check/deletion/an iterator, not autotuned/loop/even/x1",
}


@pytest.mark.parametrize("name, twin", TWINS.items())
def test_a_cell_that_differs_has_a_twin_without_the_cause_that_does_not(name, twin):
    cells = record.records()[-1].cells
    assert cells[f"{name}/keras3"].outcome is Outcome.DIFFERS
    assert cells[f"{twin}/keras3"].outcome is Outcome.SAME


# Comparing


@pytest.mark.parametrize(
    "found, right, outcome",
    [
        ({"w": [np.ones(2)]}, {"w": [np.ones(2)]}, Outcome.SAME),
        ({"w": 1.00001}, {"w": 1.0}, Outcome.SAME),
        ({"w": 1.001}, {"w": 1.0}, Outcome.DIFFERS),
        ({"w": 1000.01}, {"w": 1000.0}, Outcome.SAME),
        ({"w": np.nan}, {"w": 1.0}, Outcome.DIFFERS),
        ({"w": np.nan}, {"w": np.nan}, Outcome.SAME),
        ({"w": -np.inf}, {"w": np.inf}, Outcome.DIFFERS),
        ({"w": np.ones((4, 1))}, {"w": np.ones((2, 1))}, Outcome.DIFFERS),
        ({"w": [1.0]}, {"w": [1.0, 2.0]}, Outcome.DIFFERS),
        ({"w": []}, {"w": []}, Outcome.SAME),
        (Raised("ValueError: a"), {"w": 1.0}, Outcome.RAISES),
        ({"w": 1.0}, Raised("ValueError: a"), Outcome.RAISES_NOT),
        (Raised("ValueError: a"), Raised("ValueError: b"), Outcome.UNAVAILABLE),
    ],
)
def test_values_are_compared(found, right, outcome):
    assert compare(found, right, 1e-4).outcome is outcome


def test_the_values_that_differ_are_named_with_their_numbers():
    result = compare(
        {"a": 1.0, "b": [np.array([1.0, 2.0])]}, {"a": 1.0, "b": [np.array([1.0, 3.0])]}, 1e-4
    )
    assert result == Result(Outcome.DIFFERS, ["b"], "b 2, right 3", size=0.33)


@pytest.mark.parametrize(
    "found, right, size",
    [
        ([1.0, 20.0], [1.0, 10.0], 1.0),
        ([0.5], [0.25], 0.25),  # of small numbers the difference itself
        ([np.nan], [1.0], None),
        (np.ones((4, 1)), np.ones((2, 1)), None),
    ],
)
def test_a_difference_has_a_size_relative_to_the_values(found, right, size):
    assert compare({"w": np.asarray(found)}, {"w": np.asarray(right)}, 1e-4).size == size


def test_a_value_that_is_finite_on_one_device_only_has_a_label():
    found, right = {"a": [np.zeros(1), np.array([np.nan, 1])]}, {"a": [np.ones(1), np.ones(2)]}
    assert compare(found, right, 1e-4).values == ["a not finite"]
    assert compare(right, found, 1e-4).values == ["a"]


def test_a_message_is_one_line_without_what_differs_by_process():
    text = "Graph execution error:\n\nDetected at node x\nFile a.py\n(1) INTERNAL:  no rows in dense_3\n\t [[{{node x}}]]"
    assert measured.one_line(ValueError(text)) == "ValueError: (1) INTERNAL:  no rows in dense"
    resource = "Trying to access resource dense/kernel/replica/919 (defined @ /home/me/x.py:3) located in device"
    said = "ValueError: Trying to access resource dense/kernel/replica located in device"
    assert measured.one_line(ValueError(resource)) == said
    below = "in user code:\n\n    File 'a.py'\n    KeyError: 'w'"
    assert measured.one_line(RuntimeError(below)) == "RuntimeError: KeyError: 'w'"


def test_a_cell_with_a_coarser_tolerance_may_have_named_fewer_values():
    was = RecordedCell("x", "", Outcome.DIFFERS, ["weights"], size=0.1)
    now = replace(was, values=["weights", "loss"], rounding=1e-7)
    assert not record.is_another(was, now, True)
    assert record.is_another(replace(was, rounding=1e-7), now, True)
    assert record.is_another(was, replace(now, values=["loss"]), True)
    assert record.is_another(was, replace(now, in_turn=True), True)
    assert record.is_another(was, replace(now, size=1.0), True)


# Storing and resuming


def new_record() -> SweepRecord:
    return SweepRecord(
        {"tensorflow": "2.21.0", "keras": "3.15.1", "tf_keras": "2.21.0"}, "2026-01-01"
    )


def filled(*items_: Item, outcome: Outcome = Outcome.SAME) -> SweepRecord:
    made = new_record()
    for item in items_:
        cells = cells_of(item, 3)
        made.add(cells, {cell.name: Result(outcome) for cell in cells})
    return made


def test_a_record_is_read_as_it_was_written(tmp_path):
    made = filled(SGD, ADAM, outcome=Outcome.RAISES)
    record.write_record(made, tmp_path / "sweep.json")
    text = (tmp_path / "sweep.json").read_text()
    assert record.parse_record(text) == replace(made, cells=dict(sorted(made.cells.items())))
    assert sum('"cell": ' in line for line in text.splitlines()) == len(made.cells)


def test_a_cell_whose_code_has_changed_is_run_again(monkeypatch):
    made, cell = filled(SGD), cells_of(SGD, 3)[0]
    assert made.holds(cell)
    assert not made.holds(replace(cell, item=replace(SGD, make=SGD.make.but(clipnorm=0.2))))
    assert not made.holds(cells_of(ADAM, 3)[0])
    monkeypatch.setattr(code, "plain", lambda module: f"another {module}")
    assert not made.holds(cell)


def test_own_code_counts_only_where_it_is_used(monkeypatch):
    own = next(item for item in catalogue.ITEMS if item.path.startswith("loss/function/"))
    before = code_of(SGD), code_of(own)
    plain = code.plain
    monkeypatch.setattr(
        code, "plain", lambda name: "new" if name == "measurements.own" else plain(name)
    )
    assert (code_of(SGD) == before[0], code_of(own) == before[1]) == (True, False)


def test_every_module_that_measures_a_row_counts_and_no_table():
    """What is imported by what measures, at the top or in a function, is found without a list."""
    found = modules_of(SGD)
    assert {"differences", "items", "runs.in_turn", "runs.measured", "runs.rounding"} <= found
    assert {"measurements.place", "measurements.optimizer"} <= found
    assert not any(name.startswith("tables.") for name in found)
    for module in found:
        loaded = sys.modules.get(f"strategy_clinic.sweep.{module}")
        for other in vars(loaded).values() if loaded else ():
            name = getattr(other, "__module__", None) or ""
            if name.startswith("strategy_clinic.sweep."):
                assert name.removeprefix("strategy_clinic.sweep.") in found


def test_comments_and_docstrings_change_no_code(tmp_path, monkeypatch):
    monkeypatch.setattr(code, "FOLDER", tmp_path)
    texts = {
        "one": '"""One."""\n\n\ndef f():\n    """Returns one."""\n    return 1  # why\n',
        "same": "def f():\n    return 1\n",
        "other": "def f():\n    return 2\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    code.source_of.cache_clear()
    one, same, other = [code.plain.__wrapped__(name) for name in texts]
    code.source_of.cache_clear()
    assert one == same != other


# What rounding does


def test_the_tolerance_is_so_many_times_what_the_last_digits_do():
    assert rounding.tolerance_of(1e-6) == pytest.approx(rounding.GROWS * 1e-6)
    for policy, digit in rounding.LAST_DIGITS.items():
        row = replace(SGD, with_=(("policy", policy),))
        assert rounding.last_digit_of(row) == digit
    assert rounding.last_digit_of(SGD) == np.finfo("float32").eps


def test_numbers_that_are_drawn_have_other_last_digits_only():
    by = 2**-23
    for draw in ("normal", "uniform"):
        one = getattr(np.random.default_rng(2), draw)(size=(3, 2))
        other = getattr(rounding.Nudged(2, by), draw)(size=(3, 2))
        assert np.all(one != other) and np.allclose(one, other, rtol=1.01 * by, atol=0)
    assert np.array_equal(
        np.random.default_rng(2).integers(9, size=5), rounding.Nudged(2, by).integers(9, size=5)
    )


def test_first_weights_and_inputs_are_changed_where_rounding_is_measured():
    class Weight(float):
        def assign(self, value):
            changed.append(value)

    class Model:
        trainable_weights = (Weight(2.0),)

        def compile(self):
            pass

    changed: list[float] = []
    before = np.random.default_rng(2).normal()
    with rounding.last_digits_changed(Model, 0.5):
        Model().compile()
        assert np.random.default_rng(2).normal() in (0.5 * before, 1.5 * before)
    assert changed == [3.0] and np.random.default_rng(2).normal() == before


def test_a_row_without_what_rounding_does_is_measured_and_one_with_it_is_not(monkeypatch):
    asked = []

    def values_at(cell, replicas):
        asked.append(replicas)
        return SimpleNamespace(values={"w": 1.0 + 1e-5 * (replicas > 0)}, right={})

    monkeypatch.setattr(measured, "values_at", values_at)
    monkeypatch.setattr(measured, "rounding_of", lambda cell, values: asked.append("?") or 1e-6)
    monkeypatch.setattr(measured, "agrees_in_turn", lambda *_: False)
    cell = cells_of(SGD, 3)[1]
    assert measured.result_of(cell, {}).outcome is Outcome.SAME and asked == [0, "?", 2]
    asked.clear()
    result = measured.result_of(cell, {}, 1e-7)
    assert result.outcome is Outcome.DIFFERS and result.rounding == 1e-7 and asked == [0, 2]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Runs without processes, and a record in an empty folder; the rows that have been run."""
    done = []

    def run_together(cells, known):
        done.append(cells[0].item.path)
        return {cell.name: Result(Outcome.SAME) for cell in cells}

    monkeypatch.setattr(run, "run_together", run_together)
    monkeypatch.setattr(run, "TOGETHER", 1)
    monkeypatch.setattr(command, "new_record", new_record)
    monkeypatch.setattr(command, "without_row", lambda versions: [])
    monkeypatch.setattr(
        record, "record_file", lambda name: tmp_path / f"sweep-tensorflow-{name}.json"
    )
    return done


def sweep(*more: object) -> int:
    return command.record_sweep([3], "optimizer/*/clipnorm/*", 1, *(more or (False, "")))


def test_a_sweep_that_is_stopped_continues_where_it_was(runs, monkeypatch, capsys):
    told = []

    def stop_after_two(row, results):
        told.append(row)
        if len(told) == 2:
            raise KeyboardInterrupt

    cells = catalogue.chosen_cells([3], "optimizer/*/clipnorm/*")
    with pytest.raises(KeyboardInterrupt):
        run.sweep(new_record(), cells, 1, record.write_record, stop_after_two)
    stored = record.read_record("2.21").cells
    assert set(stored) == {cell.name for row in told for cell in row}
    before = len(runs)
    assert sweep() == 0
    assert len(run.rows_of(cells)) - 2 == len(runs) - before
    assert len(record.read_record("2.21").cells) == len(cells)
    assert f"{len(stored)} of {len(cells)} cells are recorded already" in capsys.readouterr().out
    assert sweep() == 0 and len(runs) - before == len(run.rows_of(cells)) - 2
    sweep(True, "")
    assert len(runs) - before == 2 * len(run.rows_of(cells)) - 2


def test_progress_is_a_line_for_each_row_without_a_terminal(runs, capsys):
    sweep()
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"[{len(catalogue.chosen_cells([3], 'optimizer/*/clipnorm/*'))}/")
    assert len(said) == len(runs)


def test_cells_of_rows_that_are_gone_are_dropped(runs):
    made = filled(SGD)
    made.cells["optimizer/Old/plain/fit/even/x2/keras3"] = RecordedCell("Old", "", Outcome.SAME)
    record.write_record(made)
    sweep()
    assert "optimizer/Old/plain/fit/even/x2/keras3" not in record.read_record("2.21").cells


@pytest.mark.parametrize(
    "error, outcome", [(TimeoutError("x"), "hangs"), (ChildProcessError("it died"), "crashes")]
)
def test_a_hang_or_a_crash_costs_one_cell(monkeypatch, error, outcome):
    cells = cells_of(ADAM, 3) + cells_of(SGD, 3)
    bad = cells[-2].name

    def ask(question, keras, seconds):
        asked = [name for names in question["rows"].values() for name in names]
        if bad in asked:
            raise error
        return {name: vars(Result(Outcome.SAME)) for name in asked}

    monkeypatch.setattr(run, "ask", ask)
    found = run.run_together(cells)
    assert {name: each.outcome for name, each in found.items()} == {
        cell.name: outcome if cell.name == bad else "same" for cell in cells
    }


def test_a_process_gets_whole_rows_of_one_version():
    cells = catalogue.chosen_cells([2, 3])
    groups = run.together(cells)
    assert [cell for some in groups for cell in some] == cells
    assert all(len({cell.keras for cell in some}) == 1 for some in groups)
    assert max(map(len, groups)) == run.TOGETHER
    rows = [{cell.item.path for cell in some} for some in groups if some[0].keras == 3]
    assert sum(map(len, rows)) == len(set.union(*rows))


def test_news_are_differences_that_are_new_or_gone():
    before, now = filled(SGD, ADAM), filled(SGD)
    assert record.news(before, now) == []
    first, second, third = list(now.cells)
    before.cells[first] = replace(before.cells[first], outcome=Outcome.RAISES, says="ValueError")
    now.cells[second] = replace(now.cells[second], outcome=Outcome.DIFFERS, values=["w"])
    before.cells.pop(third)
    now.cells[third] = replace(now.cells[third], outcome=Outcome.HANGS)
    now.without_row = ["Keras 3 losses.New"]
    assert record.news(before, now) == [
        "news: Keras 3 losses.New has no row",
        f"news: {first}: was raises (ValueError); is same",
        f"news: {second}: was same; is differs",
        f"news: {third} is not in the record, and hangs: ",
    ]


def test_a_difference_of_another_size_is_news_unless_its_row_says_that_sizes_vary():
    before, now = filled(SGD, outcome=Outcome.DIFFERS), filled(SGD, outcome=Outcome.DIFFERS)
    first, second, third = list(now.cells)
    for name, was, size in ((first, 0.01, 0.02), (second, 0.001, 3.0), (third, 0.1, None)):
        before.cells[name] = replace(before.cells[name], size=was)
        now.cells[name] = replace(now.cells[name], size=size)
    assert [line.split(":")[1].strip() for line in record.news(before, now)] == [second]
    assert record.news(before, now, lambda cell: False) == []


def test_a_difference_that_no_longer_agrees_with_parts_in_turn_is_news():
    before, now = filled(SGD, outcome=Outcome.DIFFERS), filled(SGD, outcome=Outcome.DIFFERS)
    name = next(iter(now.cells))
    before.cells[name] = replace(before.cells[name], in_turn=True)
    assert [line.split(":")[1].strip() for line in record.news(before, now)] == [name]


def test_a_check_prints_news_and_stores_what_it_found(runs, tmp_path, capsys):
    made = filled(SGD, outcome=Outcome.RAISES)
    record.write_record(made)
    (tmp_path / "found").mkdir()
    said = command.check_sweep([3], "optimizer/SGD/clipnorm/", 1, "", tmp_path / "found")
    assert said == 1
    assert capsys.readouterr().out.count("news: ") == len(made.cells)
    assert record.read_record("2.21") == made
    stored = record.parse_record((tmp_path / "found" / "sweep-tensorflow-2.21.json").read_text())
    assert {cell.outcome for cell in stored.cells.values()} == {Outcome.SAME}


def test_a_check_without_a_record_says_what_to_run(runs):
    with pytest.raises(UserError, match="run: clinic sweep"):
        command.check_sweep([3], "SGD", 1, "", None)


# Explaining and reporting


def different(name: str, *values: str) -> RecordedCell:
    return RecordedCell(name, "", Outcome.DIFFERS, list(values), "w 1, right 2")


@pytest.fixture
def explained(monkeypatch):
    rows = (
        settled.Settled(
            settled.Why.BUG, "clipped early", ("optimizer/*/clipnorm/*",), report="clip"
        ),
        settled.Settled(settled.Why.NUMERICAL, "rounded", ("metric/*",), values=("metric",)),
        settled.Settled(settled.Why.BUG, "a mean of means", in_turn=True, report="means"),
    )
    monkeypatch.setattr(settled, "settled", lambda: rows)
    made = filled(SGD)
    name = next(iter(made.cells))
    made.cells[name] = different(name, "weights")
    odd = "metric/AUC/plain/evaluate/even/x2/keras3"
    made.cells[odd] = different(odd, "metric")
    return made


def test_a_difference_without_a_row_is_shown_first_as_not_explained(explained):
    odd = "loss/Dice/plain/fit/even/x2/keras2"
    assert settled.unexplained(explained.to_settle) == []
    explained.cells[odd] = different(odd, "loss")
    assert settled.unexplained(explained.to_settle) == [explained.cells[odd]]
    blocks = report.in_words(explained).split("\n\n")
    assert blocks[1] == f"not explained: 1 cells\n  {odd}: differs: w 1, right 2"
    assert "bug: clipped early (upstream/clip.md): 1 cells" in blocks[2] + blocks[3]


def test_a_row_explains_only_the_values_that_it_names(explained):
    odd = "metric/AUC/plain/evaluate/even/x2/keras3"
    explained.cells[odd] = different(odd, "metric", "weights")
    assert settled.unexplained(explained.to_settle) == [explained.cells[odd]]


def test_a_row_about_parts_in_turn_explains_only_what_agrees_with_them(explained):
    odd = "loss/Dice/plain/fit/even/x2/keras2"
    explained.cells[odd] = replace(different(odd, "loss"), in_turn=True)
    assert settled.unexplained(explained.to_settle) == []
    explained.cells[odd] = different(odd, "loss")
    assert settled.unexplained(explained.to_settle) == [explained.cells[odd]]


def test_a_cell_in_which_one_device_raises_is_to_be_settled(explained):
    odd = "loss/Dice/plain/fit/even/x2/keras2"
    explained.cells[odd] = RecordedCell(odd, "", Outcome.UNAVAILABLE, says="ValueError: x")
    assert settled.unexplained(explained.to_settle) == [explained.cells[odd]]


def test_the_report_as_data_has_each_difference_with_its_reason(explained):
    found = report.as_data(explained, ["news: x"])["differences"]
    assert [(line["why"], line["reference"]) for line in found] == [
        ("bug", "upstream/clip.md"),
        ("numerical", ""),
    ]
    json.dumps(found)


def test_the_page_shows_each_row_and_each_explanation(explained, monkeypatch):
    monkeypatch.setattr(pictures, "records", lambda: [explained])
    name = next(iter(explained.cells))
    explained.cells[name] = replace(explained.cells[name], says="<b>1</b>")
    page = pictures.sweep_html("upstream/{}.md".format, level=3)
    assert "SGD, clipnorm" in page and "clipped early" in page
    assert "href='upstream/clip.md'" in page
    assert "<b>1</b>" not in page and "&lt;b&gt;1" in page
    monkeypatch.setattr(pictures, "records", list)
    assert pictures.sweep_html(str, level=3) == ""


# Real cells

PLANTED = """
import sys
from strategy_clinic.setups import runtime
from strategy_clinic.sweep import devices
from strategy_clinic.sweep.items import Item, Kind, How, Parts, call, cells_of
from strategy_clinic.sweep.runs import measured

runtime.choose_keras(3)
runtime.start_tensorflow()
devices.split_cpu()
import keras
from strategy_clinic.sweep.measurements import own


class Forgets(keras.optimizers.SGD):
    def _all_reduce_sum_gradients(self, pairs):
        return pairs


own.planted = lambda keras: Forgets(0.1)
for name in ("own.planted", "optimizers.SGD"):
    make = call(name) if "own" in name else call(name, 0.1)
    item = Item(Kind.OPTIMIZER, name, "plain", make, ((How.FIT, Parts.EVEN, (1, 2, 4)),))
    references = {}
    for cell in cells_of(item, 3):
        result = measured.result_of(cell, references)
        print(name, result.outcome, *result.values, flush=True)
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_an_optimizer_that_forgets_to_reduce_is_found():
    environment = os.environ | {"PYTHONPATH": str(ROOT / "helpers"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PLANTED],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.stdout.splitlines() == [
        "own.planted same",
        "own.planted differs weights",
        "own.planted differs weights",
        *["optimizers.SGD same"] * 3,
    ], done.stderr[-2000:]


WANTED = [
    "optimizer/SGD/global_clipnorm/fit/even/x2/*",
    "optimizer/SGD/plain/loop/uneven/x4/*",
    "loss/function/returns one number/fit/even/x4/*",
    "loss/MeanSquaredError/plain/fit/empty/x4/*",
    "layer/BatchNormalization/plain/fit/even/x2/*",
    "metric/AUC/plain/evaluate/uneven/x2/*",
    "training/predict_on_batch/*/x2/*",
    "check/loss/compute_loss in the scope/loop/even/x2/*",
    "check/steps/a loop/loop/even/x2/*",
]
FEW = WANTED[::4]  # an optimizer, a layer and a check
WORKERS = ["workers/MultiWorkerMirroredStrategy/plain/loop/even/x2/*"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "keras, wanted",
    [
        (3, FEW),
        thorough(3, WANTED),
        thorough(2, WANTED),
        thorough(3, WORKERS),
        thorough(2, WORKERS),
    ],
)
def test_real_cells_have_the_results_of_the_record(keras, wanted):
    """Some cells with an error, with a difference and without."""
    stored = record.records()[-1]
    cells = [cell for pattern in wanted for cell in catalogue.chosen_cells([keras], pattern)]
    found = run.run_together(cells)
    assert cells and len(found) == len(cells)
    seen = {name: of_record(result).seen for name, result in found.items()}
    assert seen == {name: stored.cells[name].seen for name in seen}


def of_record(result: Result) -> RecordedCell:
    return RecordedCell("", "", **vars(result))


@pytest.mark.slow
def test_every_class_of_the_installed_keras_has_a_row():
    assert run.without_row([2, 3]) == []


@pytest.mark.slow
def test_every_argument_of_the_installed_keras_has_a_row_or_a_reason():
    counting = (
        "from strategy_clinic.sweep.runs import catalogue; print(catalogue.counts_of_arguments())"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "helpers"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", counting], capture_output=True, text=True, env=environment
    )
    counts = ast.literal_eval(done.stdout)
    assert counts["neither"] == 0 and counts["a row"] >= 700, counts
