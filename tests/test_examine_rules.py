"""Rules of the examiner, on facts alone: what each must say, and what it must not say."""

import pytest
from examine_facts import (
    LINE,
    MINE,
    OTHER,
    ended,
    fact,
    loaded,
    modes,
    run,
    saved,
    state,
    strategy,
    updated,
    variable,
    written,
)
from strategy_clinic.examiner.rules import findings, loud
from strategy_clinic.examiner.runs import cluster


def test_nothing_is_said_of_nothing():
    assert modes(run()) == modes() == []


# fm11, fm19, fm21, fm23, fm25, fm26, fm38


def test_no_gradients_for_an_unbuilt_model():
    early = fact("unbuilt", name="model", made=LINE)
    nothing = updated(gradients=0, state=state())
    assert modes(run(early, nothing)) == [("fm11", 7)]
    assert modes(run(early, updated(state=state()))) == []


def test_a_mean_of_means():
    assert modes(run(fact("reduced", sizes=[3, 1], values=[1.0, 5.0]))) == [("fm19", 7)]
    assert modes(run(fact("reduced", sizes=[3, 1], values=[2.0, 2.0]))) == []
    assert modes(run(fact("reduced", sizes=[4, 0], values=[2.0, float("nan")]))) == [("fm19", 7)]


def batches(replicas, each, *more):
    sizes = fact("batch", sizes=[each] * replicas)
    return run(strategy(replicas), fact("by_function"), sizes, *more, devices=replicas)


def test_a_whole_batch_for_each_replica():
    batched = fact("batched", size=8, at=OTHER)
    assert modes(batches(1, 8), batches(2, 8, batched)) == [("fm21", 20)]
    assert modes(batches(1, 8), batches(2, 4, batched)) == []


def test_a_whole_batch_that_only_a_traced_loop_takes():
    """No batch is seen there, but the function that makes the dataset of a replica is."""

    def made(replicas, size, at=(*OTHER, *LINE)):
        batched = fact("batched", size=size, at=list(at))
        return run(strategy(replicas), fact("by_function"), batched, devices=replicas)

    assert modes(made(1, 8), made(2, 8)) == [("fm21", 20)]
    assert modes(made(1, 8), made(2, 4)) == []
    assert modes(made(1, 8, OTHER), made(2, 8, OTHER)) == []  # batched somewhere else


def test_a_batch_of_which_each_process_sees_its_part():
    """Two replicas of which only one is here: a process of two."""
    part = run(strategy(2), fact("by_function"), fact("batch", sizes=[8]))
    assert (part.processes(), batches(2, 8).processes(), run().processes()) == (2, 1, 1)
    assert modes(batches(1, 8), part) == [("fm21", 7)]
    assert modes(batches(1, 16), part) == []


def process(index, value, **changes):
    kept = variable(1, copies=1, reading="ON_WRITE") | changes
    return run(kept, ended(values={"1": [value, value]})).but(role=f"worker {index}")


def test_processes_that_differ_at_the_end():
    assert modes(process(0, 1.0), process(1, 1.2)) == [("fm38", 7)]
    assert modes(process(0, 1.0), process(1, 1.000001)) == []
    for own in ({"copies": 0}, {"reading": "ON_READ"}, {"dtype": "int64"}):
        assert modes(process(0, 1.0, **own), process(1, 1.2, **own)) == []
    assert modes(process(0, 1.0), process(1, 1.2).but(ended="killed")) == []


@pytest.mark.parametrize(
    "facts, asked",
    [
        ([fact("cluster", strategy="parameter_server")], "parameter_server"),
        (
            [fact("raised", error="KeyError", text="KeyError: 'TF_CONFIG'", inside=[])],
            "multi_worker",
        ),
        ([fact("raised", error="KeyError", text="KeyError: 'other'", inside=[])], ""),
        ([strategy()], ""),
    ],
)
def test_which_processes_a_program_asks_for(facts, asked):
    assert cluster.asked_for(run(*facts)) == asked


def test_a_program_that_asks_how_many_replicas_there_are_means_it():
    asked = fact("asked")
    assert modes(batches(1, 8, asked), batches(2, 8, asked)) == []


def test_replicas_that_write_to_a_variable_outside_the_scope():
    assert modes(run(MINE, written())) == [("fm23", 7)]
    assert modes(run(variable(1, maker="user", copies=2), written())) == []
    assert modes(run(variable(1, maker="metric"), written(by="metric"))) == []
    assert modes(run(MINE, written(replicas=0))) == []
    assert modes(run(MINE, {"fact": "central", "number": 1}, written())) == []


MIRRORED = variable(1, copies=2, parts=[10, 11])


def test_a_model_loaded_outside_the_scope_that_takes_the_place_of_the_saved_one():
    models = [MIRRORED, variable(2), saved(held=[1], what="model")]
    outside = [called(8, 1, 1), *models, loaded(scope=False)]
    assert modes(run(*outside, called(8, 1, 2))) == [("fm25", 7)]
    central = [variable(1), {"fact": "central", "number": 1}, *outside[2:]]
    assert modes(run(called(8, 1, 1), *central, called(8, 1, 2))) == [("fm25", 7)]
    assert modes(run(*outside)) == modes(run(*models, loaded(scope=False), called(8, 1, 2))) == []
    assert modes(run(*outside, loaded(), called(8, 1, 2))) == []


def test_a_restore_outside_the_scope_into_central_storage():
    """A model stays where the scope has put it; only the count of saves, which no strategy has made, is a plain variable."""
    spread, count = {"fact": "central", "number": 1}, variable(3, maker="file")
    restored = loaded(how="restore", scope=False, numbers=[1, 3], single=[1, 3])
    trained = updated(state=state(trains=[1]))
    facts = [variable(1), spread, count, trained, saved(held=[1, 3]), restored]
    assert modes(run(*facts)) == []
    assert modes(run(*facts, updated(state=state(trains=[3])))) == [("fm25", 7)]


def test_a_model_that_was_on_one_device_all_along():
    single = [called(8, 1, 1), variable(1), variable(2), saved(held=[1]), loaded(scope=False)]
    assert modes(run(*single, called(8, 1, 2))) == []


def called(size, replicas, number):
    return fact("called", size=size, replicas=replicas, numbers=[number], at=OTHER)


def goes_on(size, trains=2):
    trained = updated(state=state(trains=[trains], steps=9))
    return run(called(8, 1, 1), saved(held=[1]), loaded(), called(size, 2, 2), trained)


def test_a_training_that_goes_on_with_larger_steps():
    assert modes(goes_on(8)) == [("fm26", 20)]
    assert modes(goes_on(4)) == modes(goes_on(8, trains=5)) == []


def test_replicas_that_differ_at_the_end():
    assert modes(run(MIRRORED, ended(apart=[{"number": 1, "apart": 0.2}]))) == [("fm38", 7)]
    assert modes(run(MIRRORED, ended(apart=[{"number": 1, "apart": 1e-7}]))) == []
    own = variable(1, copies=2, maker="optimizer")
    assert modes(run(own, ended(apart=[{"number": 1, "apart": 0.2}]))) == []


def test_replicas_that_differ_after_a_step_and_are_made_one_again():
    step = {"fact": "step", "number": 2, "values": {}, "apart": [{"number": 1, "apart": 0.2}]}
    assert modes(run(MIRRORED, step, ended())) == [("fm38", 7)]
    assert modes(run(MIRRORED, step | {"apart": []}, ended())) == []


LAYER = [["/program/train.py", 3, "main"]]


def test_replicas_that_differ_are_blamed_on_the_layer():
    apart = ended(apart=[{"number": 1, "apart": 0.2, "layer": LAYER}])
    assert modes(run(MIRRORED, apart)) == [("fm38", 3)]


# Loud modes


def raised(text, **changes):
    usual = {"error": "ValueError", "text": f"ValueError: {text}", "at": LINE, "inside": []}
    return fact("raised", **usual | changes)


def test_an_exception_is_named_by_triage():
    words = "No gradients provided for any variable."
    assert modes(run(raised(words), ended="raised")) == [("fm34", 7)]
    assert modes(run(raised("something else"), ended="raised")) == []


IN_KERAS = 'File "/lib/tf_keras/src/{}.py", line 632, in call\n  File "/lib/tensorflow/values.py", line 1, in assign'


@pytest.mark.parametrize(
    "place, found",
    [("layers/normalization", [("fm38", 7)]), ("optimizers/optimizer", [])],
    ids=["a layer that was chosen", "an optimizer for itself"],
)
def test_who_writes_without_an_aggregation(place, found):
    words = (
        "You must specify an aggregation method to update a AggregatingVariable in Replica Context."
    )
    text = f"Traceback\n  {IN_KERAS.format(place)}\nValueError: {words}"
    assert modes(run(raised("") | {"text": text}, ended="raised")) == found


def test_an_optimizer_is_blamed_where_it_got_another_model():
    words = "Unknown variable: <Variable path=dense/kernel>. This optimizer can only be called for the variables it was"
    error = raised(f"{words} originally built with.", at=OTHER)
    assert modes(run(error, ended="raised")) == [("fm10", 20)]
    again = fact("compiled", new=[1])
    assert modes(run(again, error, ended="raised")) == [("fm10", 7)]


def test_what_a_traced_function_says_is_further_in():
    inside = [["/program/train.py", 31, "step"]]
    words = "The filename must end in `.weights.h5`. Received: filepath=my"
    assert modes(run(raised(words, inside=inside))) == [("fm04", 31)]
    assert modes(run(raised(words, inside=[*LINE, *inside]))) == [("fm04", 7)]


@pytest.mark.parametrize(
    "line, blamed",
    [(4, 3), (5, 2)],
    ids=["the model that was built for it", "the number that was written down"],
)
def test_weights_of_another_architecture(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    lines = [
        "def main(path):",
        "    units = 8",
        "    model = build(9)",
        "    model.load_weights(path)",
        "    load(path, units)",
    ]
    path.write_text("\n".join(lines))
    words = "Weight expects shape (3, 8). Received saved weight with shape (3, 4)"
    facts = raised(words, at=[[str(path), line, "main"]])
    assert modes(run(facts)) == [("fm06", blamed)]


def test_a_model_made_before_the_scope_is_blamed_on_the_function_that_trains_it():
    made = [
        ["/program/train.py", 3, "make"],
        ["/program/train.py", 12, "main"],
        ["/program/train.py", 30, "<module>"],
    ]
    at = [["/program/train.py", 14, "main"], made[2]]
    strategy_at = [["/program/train.py", 2, "<module>"]]
    words = 'Need to be inside "with strategy.scope()" for <MirroredStrategy object at 0x7f>'
    facts = [strategy() | {"at": strategy_at}, variable(1, at=made), raised(words, at=at)]
    assert modes(run(*facts, ended="raised")) == [("fm03", 12)]


def test_an_error_of_a_graph_is_told_by_its_reason():
    text = """Graph execution error:
  (0) OUT_OF_RANGE:  End of sequence
\t [[{{node IteratorGetNext}}]]
0 successful operations.
0 derived errors ignored. [Op:__inference_step_12]"""
    failed = run(raised(text, error="OutOfRangeError"), ended="raised")
    (said,) = findings.findings_of([failed])
    assert (said.mode, said.says) == ("fm42", "OutOfRangeError: End of sequence")


def test_every_rule_is_of_a_mode_that_exists():
    from strategy_clinic.triage import wordings

    assert {*findings.RULES, *loud.BLAMED} <= set(wordings.declared_modes())
