"""The examiner's rule for fm05: variables that no checkpoint holds and a restart misses."""

from dataclasses import replace

import pytest
from edited_programs import edited, examined
from recorded import (
    LINE,
    MINE,
    OTHER,
    answering,
    ended,
    found,
    loaded,
    modes,
    omitted,
    run,
    saved,
    stack,
    state,
    updated,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.after_restart import Lost
from strategy_clinic.examiner.engine import NOT_REPEATED, diagnose
from strategy_clinic.examiner.findings import BeginWith, GiveValue, ResetVariable
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.examiner.restarts import in_numbers
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    CallbackState,
    ExamplesTaken,
    GradientComputed,
    Held,
    LearningRateWritten,
    ModelAnswered,
    NothingTrained,
    OldValueSaved,
    Outcome,
    Owner,
    ProgramState,
    Sample,
    SavedAgain,
    SaveKind,
    StepEnded,
    VariableRead,
    VariablesKept,
)

TOGETHER = updated(trains=(1, 2), steps=1)


def test_a_trained_variable_that_no_checkpoint_holds():
    save = saved(left=[omitted(trained=True)])
    assert modes(run(MINE, TOGETHER, save, steps=4)) == [("fm05", 7)]
    with_line = saved(left=[omitted(trained=True)], made_at=OTHER)
    (finding,) = found(run(MINE, TOGETHER, with_line, steps=4))
    assert finding.line == 20 and "v1 of line 7 is in no checkpoint" in str(finding.message)


def test_a_part_of_a_model_that_is_saved_once_after_the_training():
    """Such as an encoder, which is used without what it was trained with."""
    save = saved(left=[omitted(trained=True)])
    assert modes(run(MINE, TOGETHER, save)) == []
    assert modes(run(MINE, TOGETHER, save, SavedAgain(save.path, 4))) == [("fm05", 7)]
    assert modes(run(MINE, TOGETHER, replace(save, path="ck-0"), save)) == [("fm05", 7)]
    of_optimizer = replace(save, optimizers=(state(variables=(9,)),))
    assert modes(run(MINE, TOGETHER, of_optimizer)) == []
    assert modes(run(MINE, TOGETHER, replace(of_optimizer, variables=(2, 9)))) == [("fm05", 7)]


def test_a_variable_that_is_trained_by_hand():
    by_hand = GradientComputed(OTHER, 0, 2, connected=(1, 2))
    assert modes(run(MINE, by_hand, saved(left=[omitted()]), steps=4)) == [("fm05", 7)]
    other = GradientComputed(OTHER, 0, 1, connected=(2,))
    assert modes(run(MINE, other, saved(left=[omitted()]))) == []


def test_a_model_of_which_nothing_is_trained():
    (finding,) = found(run(MINE, NothingTrained(OTHER, (1,))))
    assert (finding.mode, finding.line) == ("fm05", 7)
    assert "that Keras does not track: fit trains nothing" in str(finding.message)


def test_an_attribute_of_a_checkpoint_that_is_set_to_a_number():
    old = OldValueSaved(LINE, "step", "ck-1", 1.0, 11.0)
    (finding,) = found(run(old))
    assert (finding.mode, finding.line) == ("fm05", 7)
    assert str(finding.proof).endswith("ck-1 has the variable's 1 and not 11")
    assert modes(run(replace(old, location=()))) == []


@pytest.mark.parametrize(
    "events",
    [
        [TOGETHER, saved(left=[omitted(trained=True)]), saved(held=[1, 2])],
        [TOGETHER, saved(left=[omitted(trained=True)], kind=SaveKind.MODEL)],
        [saved(left=[omitted(trained=True)])],
        [updated(trains=(2, 3)), saved(left=[omitted(trained=True)])],
        [updated(trains=(1, 3)), saved(left=[omitted(trained=True)])],
    ],
    ids=[
        "in another checkpoint",
        "a model's file",
        "trained by itself, as a model that is another matter",
        "only others are trained together",
        "trained together with what is not saved",
    ],
)
def test_a_variable_that_is_rightly_left_out(events):
    assert modes(run(MINE, *events)) == []


ATTRIBUTE = saved(left=[omitted(trained=True, of_saved=True)], kind=SaveKind.MODEL)


@pytest.mark.parametrize("keras, mode", [(3, "fm66"), (2, "fm05")])
def test_an_attribute_of_the_model_that_keras_does_not_save(keras, mode):
    (finding,) = found(run(MINE, TOGETHER, ATTRIBUTE, keras=keras))
    assert (finding.mode, finding.line) == (mode, 7)
    assert "is in no file that Keras saved" in str(finding.message)


def test_an_attribute_that_a_checkpoint_holds():
    assert modes(run(MINE, TOGETHER, ATTRIBUTE, saved(held=[1, 2]))) == []


def test_a_models_file_is_no_checkpoint_that_holds_it():
    model = saved(held=[1, 2], kind=SaveKind.MODEL)
    save = saved(left=[omitted(trained=True)])
    assert modes(run(MINE, TOGETHER, save, model, steps=4)) == [("fm05", 7)]


def test_a_teacher_that_keras_has_saved_before_the_checkpoints_of_its_student():
    """It was trained together with variables of its own file only."""
    teacher = saved(held=[1, 2], kind=SaveKind.MODEL)
    student = saved(held=[3], left=[omitted(trained=True)])
    assert modes(run(MINE, TOGETHER, teacher, student)) == []


def test_a_file_of_keras_beside_each_checkpoint_holds_it():
    """A restart loads both: the checkpoint with the optimizer, and the weights."""
    model, other = saved(held=[1, 2], kind=SaveKind.MODEL), saved(left=[omitted(trained=True)])
    assert modes(run(MINE, TOGETHER, other, model, other, model)) == []
    assert modes(run(MINE, TOGETHER, other, model, other, other)) == [("fm05", 7)]
    assert modes(run(MINE, TOGETHER, loaded(variables=(1, 2)), other)) == []


def test_a_variable_that_no_line_of_the_program_has_made():
    made = replace(MINE, location=())
    assert modes(run(made, TOGETHER, saved(left=[omitted(trained=True)]))) == []


# What only another run can tell


def trained(value, *events, **fields):
    """A run with one step that ends with this value of another variable."""
    step = StepEnded(1, values({2: [value]}), (), (), ())
    return run(
        MINE, variable(2), updated(trains=(2,)), saved(left=[omitted()]), step, *events, **fields
    )


def diagnosed(first, run_again):
    """What is found, and which changes were asked for."""
    diagnosis = diagnose(Runs([first]), run_again)
    return diagnosis, run_again.asked


def test_a_variable_that_another_run_has_missed():
    again = answering(ResetVariable=trained(2.0), same=trained(1.0))
    diagnosis, asked = diagnosed(trained(1.0), again)
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line) == ("fm05", 7)
    assert "with its first value from there on, the training differs" in str(finding.message)
    assert (
        str(finding.proof)
        == "observed in a run without a strategy: line 20 saved 1 variables without it"
    )
    assert asked == [ResetVariable(1), None]


def test_a_variable_beside_a_model_that_is_saved_after_the_checkpoints():
    model = saved(kind=SaveKind.MODEL, left=[omitted()])
    again = answering(ResetVariable=trained(2.0, model), same=trained(1.0, model))
    diagnosis, _ = diagnosed(trained(1.0, model), again)
    assert [(each.mode, each.line) for each in diagnosis.findings] == [("fm05", 7)]


def test_a_variable_that_makes_no_difference():
    diagnosis, asked = diagnosed(trained(1.0), answering(ResetVariable=trained(1.0)))
    assert (diagnosis.findings, diagnosis.notes, asked) == ([], [], [ResetVariable(1)])


def test_a_program_that_does_not_repeat_itself():
    again = answering(ResetVariable=trained(2.0), same=trained(3.0))
    diagnosis, asked = diagnosed(trained(1.0), again)
    assert (diagnosis.findings, diagnosis.unseen) == ([], [NOT_REPEATED])
    assert asked == [ResetVariable(1), None]


def test_without_another_run_nothing_is_said():
    assert modes(trained(1.0)) == []


@pytest.mark.parametrize(
    "made, left, asked",
    [
        (MINE, omitted(), [ResetVariable(1)]),
        (MINE, omitted(read=False), []),
        (MINE, omitted(changed=False), []),
        (replace(MINE, dtype="int64", shape=()), omitted(), [ResetVariable(1)]),
        (replace(MINE, dtype="int64"), omitted(), []),
        (replace(MINE, dtype="bool", shape=()), omitted(), []),
        (replace(MINE, maker=Owner.LAYER), omitted(), []),
    ],
    ids=["state", "unread", "unchanged", "count", "state of a generator", "flag", "of a layer"],
)
def test_which_variables_are_tried(made, left, asked):
    first = run(made, saved(left=[left]))
    again = answering(ResetVariable=first)
    assert diagnosed(first, again)[1] == asked


def test_at_most_three_variables_are_tried():
    made = [replace(MINE, number=n) for n in range(1, 6)]
    first = run(*made, saved(held=[9], left=[omitted(number=n) for n in range(1, 6)]))
    assert diagnosed(first, answering(ResetVariable=first))[1] == [
        ResetVariable(n) for n in (1, 2, 3)
    ]


# What takes the place of a variable after loading

AGAIN, READ = variable(3, maker=Owner.USER), VariableRead(3)
LOADING = [MINE, saved(left=[omitted()]), loaded()]


def given(*events):
    """The variables that get the value which was not saved."""
    first = run(*events)
    _, asked = diagnosed(first, answering(ResetVariable=first, GiveValue=first))
    return [change.target for change in asked if isinstance(change, GiveValue)]


def test_what_is_made_again_after_loading_gets_the_value():
    assert given(*LOADING, AGAIN, READ) == [3]
    assert given(*LOADING, AGAIN, written(number=1), READ) == [3]
    assert given(*LOADING[:2], AGAIN, loaded(), READ) == [3]


@pytest.mark.parametrize("load_at, expected", [(OTHER, [3]), (stack("train.py", 33), [])])
def test_what_a_load_makes_may_be_read_in_it(load_at, expected):
    again = replace(AGAIN, location=(*AGAIN.location, *OTHER))
    first = replace(LOADING[0], location=(*LOADING[0].location, *OTHER))
    load = loaded(location=load_at)
    assert given(first, *LOADING[1:-1], again, READ, load) == expected


@pytest.mark.parametrize(
    "events",
    [
        [*LOADING, AGAIN, written(number=3, replicas=0), READ],
        [*LOADING, replace(AGAIN, location=OTHER), READ],
        [*LOADING, replace(AGAIN, shape=(4,)), READ],
        [*LOADING, AGAIN],
        [*LOADING[:2], AGAIN, READ],
        [MINE, AGAIN, saved(left=[omitted()]), loaded(), READ],
        [*LOADING, AGAIN, loaded(variables=(3,)), READ],
        [*LOADING, AGAIN, READ, variable(4, maker=Owner.USER, parts=(3,))],
    ],
    ids=[
        "written",
        "elsewhere",
        "another shape",
        "unread",
        "nothing loaded",
        "made before saving",
        "loaded",
        "a copy",
    ],
)
def test_what_does_not_take_its_place(events):
    assert given(*events) == []


def answered(value):
    return ModelAnswered(LINE, Sample(0.0, (value,)))


def test_a_difference_that_the_value_makes_to_a_models_answer():
    first, other = (run(*LOADING, AGAIN, READ, answered(value)) for value in (1.0, 1.5))
    diagnosis, asked = diagnosed(first, answering(ResetVariable=first, GiveValue=other, same=first))
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line) == ("fm05", 7)
    assert str(finding.message).endswith("gets its value, the predictions differ at line 7")
    assert asked == [ResetVariable(1), GiveValue(1, 3), None]


def test_a_variable_that_is_missed_without_loading_is_tried_no_more():
    first, other = (run(*LOADING, AGAIN, READ, answered(value)) for value in (1.0, 1.5))
    again = answering(ResetVariable=other, same=first)
    assert diagnosed(first, again)[1] == [ResetVariable(1), None]


def test_a_difference_that_another_run_does_not_make():
    first = run(*LOADING, AGAIN, READ, answered(1.0))
    assert diagnosed(first, answering(ResetVariable=first, GiveValue=first))[0].findings == []


# What a second start misses

COUNT = variable(1, maker=Owner.USER, dtype="int64")


def stopped(made=COUNT, **changes):
    return run(made, saved(left=[omitted(**changes)]), role=Role.STOPPED)


def second(value, before=None):
    """A start that ends with this value of the one weight that it trains."""
    events = [
        COUNT,
        variable(2),
        updated(trains=(2,)),
        saved(left=[omitted()]),
        ended({2: [value]}),
    ]
    return run(*events, role=Role.RESTARTED, before=before or stopped())


def test_a_count_without_which_the_training_is_another():
    diagnosis, asked = diagnosed(second(1.0), answering(BeginWith=second(2.0), same=second(1.0)))
    (finding,) = diagnosis.findings
    assert (finding.mode, finding.line) == ("fm05", 7)
    assert "started again with the value that it had" in str(finding.message)
    assert asked == [BeginWith(1, 2.0), None]


@pytest.mark.parametrize(
    "again",
    [answering(BeginWith=second(1.0)), answering(BeginWith=second(2.0), same=second(3.0))],
    ids=["the same with it", "never the same"],
)
def test_a_count_that_makes_no_difference_or_cannot_be_told(again):
    assert diagnosed(second(1.0), again)[0].findings == []


@pytest.mark.parametrize(
    "before",
    [
        stopped(read=False),
        stopped(changed=False),
        stopped(scalar=None),
        stopped(replace(COUNT, maker=Owner.LAYER)),
        stopped(replace(COUNT, location=OTHER)),
        run(variable(2, maker=Owner.USER), saved(left=[omitted(number=2)])),
        run(COUNT, saved(left=[omitted(number=2)])),
        run(COUNT),
    ],
    ids=[
        "unread",
        "unchanged",
        "not one number",
        "of a layer",
        "made elsewhere",
        "another",
        "not left out",
        "not saved",
    ],
)
def test_nothing_is_asked_of_what_cannot_be_missed(before):
    diagnosis, asked = diagnosed(second(1.0, before), answering())
    assert (diagnosis.findings, asked) == ([], [])


# A program that goes on, and begins with the first epoch again


@pytest.mark.parametrize(
    "usual, rates, how, expected",
    [
        ((0.4, 0.2, 0.1), (0.4, 0.2), {}, [("fm05", 1)]),
        ((0.4, 0.2, 0.1), (0.4, 0.2), {"begun": 0}, [("fm05", 1)]),
        ((0.4, 0.4, 0.2), (0.4, 0.4), {}, [("fm05", 1)]),
        ((0.4, 0.2, 0.1), (0.2, 0.1), {}, []),
        ((0.4, 0.4, 0.2), (0.4, 0.2), {}, []),
        ((0.4, 0.4, 0.2), (0.4, 0.2), {"begun": 0}, []),
        ((0.4, 0.2, 0.1), (0.4, 0.2), {"begun": 2}, []),
        ((0.4, 0.2, 0.1), (0.4, 0.2), {"epoch": 1}, []),
        ((0.4, 0.2, 0.1), (0.4, 0.2), {"text": "opt.learning_rate = f(n)"}, []),
        ((0.4, 0.2, 0.1), (0.4, 0.2), {"first": False}, []),
        ((0.4, 0.2, 0.1), (), {}, []),
    ],
    ids=[
        "the first",
        "the first, with a new optimizer",
        "the first, which was kept",
        "the next",
        "the next, which is the first",
        "the next, with a new optimizer",
        "unknown updates",
        "a later epoch",
        "by the program",
        "after the first update",
        "none",
    ],
)
def test_fit_sets_the_rates_of_the_first_epochs_again(tmp_path, usual, rates, how, expected):
    path = tmp_path / "train.py"
    path.write_text(how.get("text", "model.fit(x)"))

    def fitted(values, begun=0):
        """Each epoch has 4 updates, and a save; a rate is reported when it is another one."""
        begins = updated(steps=begun, learning_rate=str((*values, 0.4)[0]))
        written = [LearningRateWritten(stack(path, 1), 6, each) for each in dict.fromkeys(values)]
        ended_at = [
            state(steps=begun + 4 * epoch, learning_rate=str(rate))
            for epoch, rate in enumerate(values, 1)
        ]
        saves = [saved(path=f"ck-{each.steps}", optimizers=(each,)) for each in ended_at]
        if how.get("first", True):
            return [*written[:1], begins, *written[1:], *saves]
        return [begins, *written, *saves]

    whole, killed = run(*fitted(usual)), run(*fitted(usual[:1]), role=Role.STOPPED)
    epoch = CallbackState(LINE, "ModelCheckpoint", False, None, 0, "ck", how.get("epoch", 0))
    again = [loaded(path="ck-4"), *fitted(rates, how.get("begun", 4)), epoch]
    restart = {"role": Role.RESTARTED, "before": killed, "whole": whole, "moment": Moment.AFTER}
    assert modes(run(*again, **restart)) == expected


# Metrics


SUM = {"shape": (), "synchronization": "ON_READ", "aggregation": "SUM"}
PRINTS = """\
mean = Mean()
best = tf.Variable(9.0)
checkpoint = Checkpoint(net=net, best=best)
while more:
    shown = mean.result().numpy()
"""


def with_mean(tmp_path, begun, kind=SUM, same=None, restarts=1):
    """What is made of restarts that begin a mean again; `begun` is what differs if one begins with another value."""
    path = tmp_path / "train.py"
    path.write_text(PRINTS)

    def kept(updates, mean, before=False, **changes):
        names = {"mean": mean, "shown": "0.5", "best": "() 0.6 0.6"} | changes
        held = [Held(str(path), "", name, value) for name, value in names.items()]
        return ProgramState(updates, tuple(held), before)

    def again(output="mean 0.4", paths=("ck-2",), **changes):
        states = kept(2, "() 0 0; () 0 0", True, best="() 0.7 0.7"), kept(4, MEAN, **changes)
        saves = [saved(path=each) for each in paths]
        return run(LOAD, *made, TAKEN, *states, *saves, END, **fields, output=output)

    names = {8: "total", 9: "count"}
    sums = [
        variable(number, name=name, location=stack(path, 1), **kind)
        for number, name in names.items()
    ]
    own = variable(7, maker=Owner.USER, location=stack(path, 2))
    made = MINE, own, *sums, updated()
    usual = kept(0, "() 0 0; () 0 0", True), kept(2, "() 1 1; () 2 2"), kept(2, MEAN, True)
    save = saved(path="ck-1", location=stack(path, 4), made_at=stack(path, 3))
    before = kept(2, "() 1 1; () 2 2", True, best="() 0.7 0.7")
    later = kept(4, "() 1.8 1.8; () 4 4")
    whole = run(*made, save, *usual[:2], before, later, END, output="mean 0.45")
    fields = {"role": Role.RESTARTED, "moment": Moment.AFTER, "whole": whole}
    fields["before"] = run(*made, save, outcome=Outcome.KILLED)
    other = run(*usual[:2], before, later, devices=1, role=Role.COMPARED)
    answers = answering(BeginWith=again(**begun), same=again(**(same or {})))
    diagnosis = diagnose(Runs([*(again() for _ in range(restarts)), other]), answers)
    told = [(each.mode, each.line) for each in diagnosis.findings]
    notes = [str(each) for each in diagnosis.notes if "of this metric" in str(each)]
    return told, notes, answers.asked, diagnosis


MEAN = "() 0.8 0.8; () 2 2"
LOAD, END = loaded(path="ck-1"), ended({1: [0.5]})
TAKEN = ExamplesTaken(LINE, False, 2, 2, (3, 4))


@pytest.mark.parametrize(
    "begun",
    [{}, {"output": "mean  4e-05"}, {"shown": "0.55"}],
    ids=["nothing", "a line", "a number"],
)
def test_a_metric_that_begins_again_and_is_only_printed(tmp_path, begun):
    told, (note,), asked, _ = with_mean(tmp_path, begun)
    assert told == [] and asked == [BeginWith(8, 1.0)]
    assert note.startswith(
        "mean (line 1): the value of this metric begins again after a restart, and"
    )


def test_one_restart_tells_about_a_metric(tmp_path):
    _, notes, asked, _ = with_mean(tmp_path, {}, restarts=3)
    assert len(notes) == len(asked) == 1


@pytest.mark.parametrize(
    "begun",
    [
        {"output": "mean 0.55, the best so far"},
        {"best": "() 0.55 0.55"},
        {"paths": ("best", "ck-2")},
    ],
    ids=["other words", "another best value", "a save"],
)
def test_a_metric_that_begins_again_and_decides(tmp_path, begun):
    told, notes, _, diagnosis = with_mean(tmp_path, begun)
    assert told == [("fm05", 3)] and notes == []
    message = str(diagnosis.findings[0].message)
    assert "after 2 updates its total is 0 where a restart goes on, and 1 in the run" in message
    # What another run without a change has, too, follows from something else.
    assert with_mean(tmp_path, begun, same=begun)[:2] == ([], [])


@pytest.mark.parametrize("kind", [{"shape": ()}, SUM | {"maker": Owner.USER}])
def test_variables_that_are_of_no_metric_begin_again(tmp_path, kind):
    told, notes, asked, _ = with_mean(tmp_path, {}, kind)
    assert told == [("fm05", 3)] and notes == asked == []


@pytest.mark.parametrize(
    "value, right, expected",
    [
        ("0", "4", ("it", "0", "4")),
        ("() 0 0", "() 2 2", ("it", "0", "2")),
        ("(3,) 0 0", "(3,) 2.5 1", ("its norm", "0", "2.5")),
        ("() 1 1; () 0 0", "() 1 1; () 2 2", ("a variable of it", "0", "2")),
        ("() 1 1; (3,) 0 0", "() 1 1; (3,) 2 1", ("the norm of a variable of it", "0", "2")),
        ("int64 (3,)", "int64 (4,)", ("it", "int64 (3,)", "int64 (4,)")),
    ],
)
def test_what_a_number_of_a_lost_value_is(value, right, expected):
    lost = Lost(("/program/train.py", "Job", "sums"), 2, value, right, True)
    assert in_numbers(run(), lost) == expected


# A program that goes on, and counts from the beginning again


def epochs(*steps, name="w-{}.weights.h5", begin=1):
    """What a callback saves after each epoch."""
    return [
        saved(path=name.format(number), optimizers=(state(steps=each),))
        for number, each in enumerate(steps, begin)
    ]


def gone_on(saves, path="w-1.weights.h5", whole=None, **changes):
    """What is found if a program is killed after its first epoch of two, loads a file, and saves these."""
    whole = run(*(whole or epochs(16, 32)))
    killed = run(*epochs(16), role=Role.STOPPED)
    usual = {"role": Role.RESTARTED, "before": killed, "whole": whole, "moment": Moment.AFTER}
    return modes(run(loaded(path=path), *saves, **(usual | changes)))


def test_a_numbered_file_that_is_replaced_by_a_later_state():
    assert gone_on(epochs(32, 48)) == [("fm05", 20)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"saves": epochs(32, begin=2)},
        {"saves": epochs(16, 32)},
        {"saves": epochs(32, 48), "path": "pretrained.weights.h5"},
        {
            "saves": epochs(32, 48, name="best/w-{}.h5"),
            "whole": epochs(16, 32, name="best/w-{}.h5"),
        },
        {"saves": epochs(32), "whole": epochs(16)},
        {"saves": epochs(32, 48, begin=2), "whole": epochs(16, 32, 32)},
        {"saves": epochs(32), "whole": [*epochs(16, 32), SavedAgain("w-1.weights.h5", 24)]},
        {"saves": [replace(each, optimizers=()) for each in epochs(32, 48)]},
        {"saves": [replace(each, location=()) for each in epochs(32, 48)]},
        {"saves": epochs(32, 48), "role": Role.CHANGED},
    ],
    ids=[
        "it goes on with the number",
        "the same state again",
        "another file is loaded",
        "files in another folder than the one that it loads",
        "no other number",
        "it goes on with the number, and the last save is one more of the same state",
        "a file that is replaced anyway",
        "no optimizer",
        "on no line",
        "not started again",
    ],
)
def test_a_file_that_is_rightly_written_again(arguments):
    assert gone_on(**arguments) == []


# A checkpoint of other things


def gone_on_as_made(first=1.0, loads=0, held=(9,), kind=SaveKind.CHECKPOINT, given=()):
    """What is found if a restart begins with this value of the one weight that it trains, and loads before or after that.

    `given` are the writes of the program before its first update.
    """
    made = variable(1), updated(trains=(1,))
    begins = [StepEnded(1, (), values({1: [value]}), (), ()) for value in (1.0, first)]
    whole = run(*made, begins[0], saved(held=held, kind=kind))
    killed = run(*made, begins[0], saved(held=held, kind=kind), role=Role.STOPPED)
    events = [begins[1]]
    events.insert(loads, loaded(variables=(9,)))
    fields = {"role": Role.RESTARTED, "before": killed, "whole": whole, "moment": Moment.AFTER}
    return modes(run(made[0], *given, made[1], *events, **fields))


def test_a_checkpoint_that_has_none_of_the_trained_weights():
    assert gone_on_as_made() == [("fm05", 20)]


@pytest.mark.parametrize(
    "changes",
    [
        {"first": 0.5},
        {"loads": 1},
        {"held": (1, 9)},
        {"kind": SaveKind.ARRAYS},
        {"given": [written(number=1)]},
    ],
    ids=[
        "filled from another file",
        "loaded for another purpose later",
        "held",
        "no checkpoint",
        "set by the program",
    ],
)
def test_a_restart_that_does_not_begin_with_weights_as_they_were_made(changes):
    assert "fm05" not in dict(gone_on_as_made(**changes))


# A checkpoint without the model

KEPT = VariablesKept(LINE, "restore", "ck-1", (8,), (), 0, True, False)
OPTIMIZER_ONLY = saved(made_at=OTHER, optimizers=(state(trains=(1,)),))
FRESH = variable(8, location=OTHER)
RESTORED = loaded(variables=(8,))


def test_a_checkpoint_that_holds_the_optimizer_alone():
    (finding,) = found(run(variable(1), OPTIMIZER_ONLY, FRESH, RESTORED, KEPT, VariableRead(8)))
    assert (finding.mode, finding.line) == ("fm05", 20)
    assert "line 7 gives none of 1 variables a value" in str(finding.message)


@pytest.mark.parametrize(
    "events",
    [
        [OPTIMIZER_ONLY, RESTORED, KEPT],
        [RESTORED, KEPT, VariableRead(8)],
        [replace(OPTIMIZER_ONLY, made_at=()), RESTORED, KEPT, VariableRead(8)],
        [replace(OPTIMIZER_ONLY, optimizers=()), RESTORED, KEPT, VariableRead(8)],
        [OPTIMIZER_ONLY, RESTORED, replace(KEPT, filled=1), VariableRead(8)],
        [OPTIMIZER_ONLY, RESTORED, replace(KEPT, function="load_weights"), VariableRead(8)],
        [OPTIMIZER_ONLY, RESTORED, KEPT, written(number=8), VariableRead(8)],
        [OPTIMIZER_ONLY, RESTORED, KEPT, RESTORED, VariableRead(8)],
        [OPTIMIZER_ONLY, RESTORED, replace(KEPT, kept=(8, 9)), VariableRead(8), variable(9)],
    ],
    ids=[
        "not used",
        "a file from elsewhere",
        "on no line",
        "of no optimizer",
        "a part is filled",
        "no checkpoint",
        "set or trained",
        "loaded, too",
        "another model",
    ],
)
def test_a_model_that_is_rightly_not_filled(events):
    assert [mode for mode, _ in modes(run(variable(1), FRESH, *events)) if mode == "fm05"] == []


# Networks of the program that no checkpoint has

FOLLOWER = variable(1)  # of a layer
FOLLOWS = updated(trains=(2,)), written(replicas=0)
LEFT = saved(left=[omitted()], made_at=OTHER, location=LINE)


def trained_on(*events, made=FOLLOWER, left=LEFT, first=(), steps=FOLLOWS, whole=(), **fields):
    """A restart that loads what was saved and trains on, and in which all else is as before."""
    before = run(made, *first, *steps, left)
    whole = run(made, *first, *whole, *steps, left)
    roles = {"role": Role.RESTARTED, "moment": Moment.AFTER, "before": before, "whole": whole}
    return run(FOLLOWER, *first, loaded(), *events, *FOLLOWS, **roles | fields)


INITIAL = written(location=LINE, replicas=0)


@pytest.mark.parametrize("first", [(), (INITIAL,)], ids=["as made", "as set at first"])
def test_a_network_that_a_restart_makes_anew(first):
    (finding,) = found(trained_on(first=first))
    assert (finding.mode, finding.line) == ("fm05", 20)
    assert "v1 of line 7 is in no checkpoint, and after a restart" in str(finding.message)


@pytest.mark.parametrize(
    "recording",
    [
        trained_on(replace(INITIAL), first=(INITIAL,)),
        trained_on(written(location=stack("other.py", 3), replicas=0)),
        trained_on(loaded(path="other", variables=(1,))),
        trained_on(left=saved(left=[omitted(changed=False)])),
        trained_on(left=saved(held=(1, 2))),
        trained_on(steps=FOLLOWS[:1]),
        trained_on(steps=(INITIAL, FOLLOWS[0])),
        trained_on(made=variable(1, location=OTHER)),
        trained_on(made=variable(1, shape=(4,))),
        trained_on(role=Role.WATCHED),
    ],
    ids=[
        "set again",
        "set by another line",
        "loaded",
        "unchanged",
        "in the checkpoint",
        "never written to",
        "written to before training only",
        "made elsewhere",
        "of another shape",
        "no restart",
    ],
)
def test_a_network_that_a_restart_does_not_miss(recording):
    assert found(recording) == []


def averaged(*events, made=MINE, **changes):
    """A restart after which numbers of the program itself are updated as before."""
    left = saved(left=[omitted(scalar=None, **changes)], made_at=OTHER)
    before = whole = run(made, *FOLLOWS, left)
    roles = {"role": Role.RESTARTED, "moment": Moment.AFTER, "before": before, "whole": whole}
    return run(made, loaded(), *events, **roles)


def test_an_average_that_a_restart_makes_anew():
    (finding,) = found(averaged(VariableRead(1), *FOLLOWS))
    assert (finding.mode, finding.line) == ("fm05", 20)


@pytest.mark.parametrize(
    "recording",
    [
        averaged(*FOLLOWS, VariableRead(1)),
        averaged(VariableRead(1), *FOLLOWS, written(location=LINE, replicas=0)),
        averaged(VariableRead(1), *FOLLOWS, made=replace(MINE, dtype="int64")),
        averaged(VariableRead(1), *FOLLOWS, read=False),
        averaged(VariableRead(1), *FOLLOWS, trained=True),
    ],
    ids=["written first", "set to 0 by another line", "no numbers", "never read", "trained"],
)
def test_numbers_that_a_restart_rightly_makes_anew(recording):
    assert found(recording) == []


# In real processes

FOLLOWED = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()


def make_net():
    net = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    return net


def follow(share):
    for followed, variable in zip(net.variables, follower.variables):
        variable.assign(share * followed + (1 - share) * variable)


with strategy.scope():
    net, follower = make_net(), make_net()
    optimizer = tf.keras.optimizers.SGD(0.1)
checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
follow(1.0)
checkpoint.restore(manager.latest_checkpoint)


@tf.function
def step():
    def replica_step():
        x = tf.ones((2, 3))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x) - follower(x) - 1.0) ** 2) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))

    strategy.run(replica_step)


done = 4 * int((manager.latest_checkpoint or "-0").split("-")[-1])
for number in range(done + 1, 13):
    step()
    follow(0.1)
    if number % 4 == 0:
        manager.save()
"""
HELD = ("Checkpoint(net=net", "Checkpoint(net=net, follower=follower")
SET_AGAIN = ("\n\n\n@tf.function", "\nfollow(1.0)\n\n\n@tf.function")


@pytest.mark.replayed
@pytest.mark.parametrize(
    "edits, expected",
    [([], ["fm05"]), ([HELD], []), ([SET_AGAIN], ["fm05"])],
    ids=["left out", "held", "set again"],
)
def test_a_network_that_follows_another_one(tmp_path, edits, expected):
    """What is set again from other weights goes on otherwise than what was saved."""
    findings = examined(tmp_path, edited(FOLLOWED, edits)).findings
    assert [each.mode for each in findings] == expected
