"""What a mode accepts and what it refuses, on experiments of three lines."""

import linecache

import pytest
from sessions import MODE, verdicts
from strategy_clinic import Proof, Setup, SilentFailure, experiment, observe
from strategy_clinic.base.errors import Unavailable, UserError
from strategy_clinic.experiments.error_text import last_line
from strategy_clinic.experiments.proofs import Result
from strategy_clinic.experiments.verdicts import Verdict, classify
from strategy_clinic.session import Disagreement, Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

ONE, TWO, FOUR = (Setup("mirrored", count) for count in (1, 2, 4))


@experiment
def raises(setup):
    raise ValueError("in user code:\n\n  ValueError: wrong shape\n")


@experiment
def raises_otherwise(setup):
    raise ValueError("wrong dtype")


@experiment
def differs(setup):
    return Proof("both are equal", [1.0], [2.0])


@experiment
def equal(setup):
    return Proof("both are equal", [[1.0, 2.0]], [[1.0, 2.0]])


@experiment
def nothing(setup):
    return None


@pytest.mark.parametrize(
    "setup, run", [(ONE, equal), (ONE, nothing), (TWO, raises), (FOUR, differs)]
)
def test_reproduces_accepts_what_is_declared(setup, run):
    Session(MODE, setup).reproduces(run)


@pytest.mark.parametrize(
    "setup, run",
    [
        (TWO, nothing),
        (TWO, raises_otherwise),
        (TWO, differs),
        (ONE, raises),
        (ONE, differs),
        (FOUR, equal),
        (FOUR, raises),
    ],
)
def test_reproduces_refuses_everything_else(setup, run):
    words = "FM00 did not reproduce: declared .* the run gave .* See notebooks/fm00"
    with pytest.raises(Disagreement, match=words):
        Session(MODE, setup).reproduces(run)


def test_what_cannot_run_here_is_neither_right_nor_wrong(capsys):
    @experiment
    def absent(setup):
        raise Unavailable("there is no TPU")

    Session(MODE, TWO).reproduces(absent)
    assert "not run: there is no TPU" in capsys.readouterr().out


@pytest.mark.parametrize("run", [nothing, differs, raises])
def test_a_fix_is_proven_by_values_only(run):
    with pytest.raises(Disagreement, match="at 'fixed'"):
        Session(MODE, TWO).proves(run)


def opened(broken, fixed) -> Session:
    """A page on which both experiments have been shown."""
    session = Session(MODE, TWO)
    session.experiments |= {"broken": broken, "fixed": fixed}
    return session


def test_a_step_that_needs_both_experiments_says_which_is_missing():
    for step in (lambda session: session.table([TWO]), Session.panel):
        with pytest.raises(UserError, match="FM00 needs both experiments, and broken and fixed"):
            step(Session(MODE, TWO))


def test_a_silent_failure_shows_the_wrong_value_beside_the_right_one(capsys):
    Session(MODE, FOUR).reproduces(differs)
    assert capsys.readouterr().out.strip().endswith("(got 1, expected 2)")


def test_a_table_refuses_the_right_outcome_for_the_wrong_reason():
    opened(raises, equal).table([TWO])
    with pytest.raises(Disagreement, match="wrong dtype"):
        opened(raises_otherwise, equal).table([TWO])
    with pytest.raises(Disagreement, match="at 'fixed"):
        opened(raises, differs).table([TWO])


def test_claims_are_judged_by_what_was_observed(capsys):
    Session(MODE, TWO).judges({"000-C1": [False, False], "000-C2": [True, False]})
    assert "000-C2 is half on Keras 3, true on Keras 2 (executed): two" in capsys.readouterr().out
    Session(MODE, TWO).judges({"000-C1": [False], "000-C2": [True, False]}, evidence="traced")
    assert "000-C1 is false (traced): one" in capsys.readouterr().out
    with pytest.raises(UserError, match="evidence = 'seen'"):
        Session(MODE, TWO).judges({"000-C1": [False], "000-C2": [True, False]}, evidence="seen")
    for found in (
        {"000-C1": [True], "000-C2": [True, False]},
        {"000-C1": [False], "000-C2": [True]},
    ):
        with pytest.raises(Disagreement):
            Session(MODE, TWO).judges(found)
    with pytest.raises(UserError, match="no run in this notebook tests it"):
        Session(MODE, TWO).judges({"000-C1": [False]})
    with pytest.raises(Disagreement, match="000-C3"):
        Session(MODE, TWO).judges({"000-C1": [False], "000-C2": [True, False], "000-C3": [True]})


def test_an_exercise_is_red_until_it_proves_something(capsys):
    for attempt in (nothing, differs, raises):
        Session(MODE, TWO).exercise(attempt)
        assert "FM00 exercise (executed) | red: " in capsys.readouterr().out
    Session(MODE, TWO).exercise(equal)
    assert "FM00 exercise (executed) | green: both are equal" in capsys.readouterr().out


def test_a_proof_that_does_not_hold_raises_when_called():
    with pytest.raises(SilentFailure, match="not so: both are equal"):
        differs(TWO)


@pytest.mark.parametrize(
    "got, want", [([1.0], [1.0, 2.0]), ([[1.0]], [[1.0, 1.0]]), ([float("nan")], [float("nan")])]
)
def test_proofs_that_do_not_hold(got, want):
    assert not Proof("equal", got, want).holds


def test_a_proof_needs_values():
    with pytest.raises(UserError, match="compares no values"):
        Proof("nothing", [], [])


@pytest.mark.parametrize(
    "outcome, evidence, says",
    [
        ("works", "", ""),
        ("works", "none", ""),
        ("works", "seen", ""),
        ("fine", "executed", ""),
        ("unavailable", "none", ""),
        ("unavailable", "executed", "no TPU"),
    ],
)
def test_a_verdict_without_honest_evidence_is_refused(outcome, evidence, says):
    with pytest.raises(UserError):
        Verdict("broken", TWO, outcome, evidence, says)


@pytest.mark.parametrize(
    "error, outcome",
    [
        (TimeoutError("t"), "hangs"),
        (ChildProcessError("c"), "crashes"),
        (SilentFailure("s"), "silent"),
        (KeyError("k"), "raises"),
        (Unavailable("u"), "unavailable"),
    ],
)
def test_outcomes_by_kind_of_error(error, outcome):
    assert classify("broken", TWO, Result(error=error)).outcome == outcome


def test_the_useful_line_is_the_last_one():
    found = verdicts({"broken": raises}, [TWO])
    assert found[0].says == "wrong shape"
    assert last_line(ValueError("")) == ""


def test_of_several_root_errors_one_is_told_without_names():
    text = "Detected at node cond/A\n2 root error(s) found.\n"
    text += "  (0) INVALID_ARGUMENT:  Feed a value for 'cond/_1/A_2' of int32\n\t [[{{node cond/A_2}}]]\n"
    text += (
        "  (1) INVALID_ARGUMENT:  Feed a value for 'cond/_1/A' of int32\n\t [[{{node cond/A}}]]\n"
    )
    text += "0 successful operations.\n0 derived errors ignored. [Op:__inference_step_12]"
    assert last_line(ValueError(text)) == "Feed a value for of int32"


def test_the_name_of_a_node_is_not_what_happened():
    text = "End of sequence\n\t [[{{node IteratorGetNext}}]] [Op:__inference_step_12]\n\t [[RemoteCall]]"
    assert last_line(ValueError(text)) == "End of sequence"


def test_the_useful_line_is_the_same_in_every_run():
    text = "defined in FuncGraph(name=step{}), which is out of scope."
    assert last_line(TypeError(text.format(", id=140604639972928"))) == text.format("")
    assert last_line(ValueError("in <function f at 0x7f01c2>, found")) == "in <function f>, found"


def test_a_compilers_first_line_is_the_useful_one():
    text = (
        "Detected unsupported operations when trying to compile graph __inference_step_12[_Xla=true,c=34] on "
        "XLA_CPU_JIT: PyFunc (No registered 'PyFunc' OpKernel for XLA_CPU_JIT devices compatible with node "
        "{{node PyFunc}}){{node PyFunc}}\nThe op is created at:\n\ttf2xla conversion failed while converting"
    )
    wanted = (
        "Detected unsupported operations when trying to compile graph step on XLA_CPU_JIT: PyFunc (No registered "
        "'PyFunc' OpKernel for XLA_CPU_JIT devices)"
    )
    many = f"2 root error(s) found.\n  (0) INVALID_ARGUMENT:  {text}\n  (1) INVALID_ARGUMENT:  {text[:90]}"
    assert last_line(ValueError(text)) == last_line(ValueError(many)) == wanted


def test_an_error_of_a_running_graph_was_not_found_by_tracing():
    import tensorflow as tf

    traced = Setup("tpu_traced", 8)
    ran = tf.errors.InvalidArgumentError(None, None, "refused")
    found = [classify("broken", traced, Result(error=each)) for each in (ran, ValueError("no"))]
    assert [each.evidence for each in found] == ["emulated", "traced"]


@pytest.mark.parametrize("end", ["}", "]\n}\n", "{{node step/add}}", "  )  "])
def test_the_useful_line_has_words(end):
    """Keras ends some messages with a configuration, and TensorFlow some with the place in a graph."""
    assert (
        last_line(ValueError(f"Unknown layer: 'Scale'.\nconfig={{'a': 1,\n{end}"))
        == "config={'a': 1,"
    )
    assert last_line(ValueError(end)) == ""


def test_the_lines_of_a_key_error_are_lines():
    text = "in user code:\n\n    File \"a.py\", line 1\n\n    KeyError: 'no such variable'\n"
    assert last_line(KeyError(text)) == "'no such variable'"
    assert last_line(KeyError("no such variable")) == "'no such variable'"


class Variable:
    """As much of a variable as the figure of its copies reads."""

    name, value, device = "kernel:0", print, "/device:CPU:1"


def test_what_an_experiment_observes_is_in_its_own_verdict():
    @experiment
    def inner(setup):
        observe(inside=[Variable()])

    @experiment
    def fails(setup):
        observe(before=[Variable()])
        inner(setup)
        observe(after=[Variable()])
        raise ValueError("wrong shape")

    observe(outside=[Variable()])  # in no experiment
    failed, nothing_seen = verdicts({"broken": fails, "fixed": nothing}, [TWO])
    assert failed.result.observations == {
        "before": {"kernel 0": ["CPU:1"]},
        "after": {"kernel 0": ["CPU:1"]},
    }
    assert nothing_seen.result.observations == {}


HELPER = "def helper():\n    count({})\n"
RUN = "@experiment\ndef run(setup):\n    helper()\n"


def run_cell(number: int, text: str, names: dict):
    """Runs a cell as IPython does: its text is in linecache, in the order of the cells."""
    file = f"<ipython-input-{number}>"
    linecache.cache[file] = (len(text), float(number), text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)


def test_a_result_is_used_again_until_its_source_or_its_setup_is_another():
    runs = []
    names = {"count": runs.append, "experiment": experiment}
    session = Session(MODE, TWO)
    try:
        run_cell(1, HELPER.format(1), names)
        run_cell(2, RUN, names)
        session.run({"broken": names["run"]}, [TWO, TWO])
        session.run({"broken": names["run"]}, [TWO])
        assert runs == [1]
        session.run({"broken": names["run"]}, [TWO, ONE])
        assert runs == [1, 1]
        session.run({"broken": names["run"]}, [TWO], again=True)
        assert runs == [1, 1, 1]
        run_cell(3, HELPER.format(2), names)
        session.run({"broken": names["run"]}, [TWO])
        assert runs == [1, 1, 1, 2]
        Session(MODE, TWO).run({"broken": names["run"]}, [TWO])
        assert runs == [1, 1, 1, 2, 2]
    finally:
        for number in (1, 2, 3):
            linecache.cache.pop(f"<ipython-input-{number}>", None)
