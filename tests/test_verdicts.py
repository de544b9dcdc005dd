"""What a mode accepts and what it refuses, for programs that end in each way."""

import textwrap
from dataclasses import replace

import pytest
from sessions import MODE
from strategy_clinic import Setup, SilentFailure
from strategy_clinic.base.errors import Unavailable, UserError
from strategy_clinic.programs import error_text
from strategy_clinic.programs import run as programs
from strategy_clinic.programs.error_text import last_line
from strategy_clinic.programs.run import Run
from strategy_clinic.programs.verdicts import Verdict, classify
from strategy_clinic.session import Disagreement, Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tensorflow")]

ONE, TWO, FOUR = (Setup("mirrored", count) for count in (1, 2, 4))


RIGHT, WRONG = Run("sum 3\n"), Run("sum 4\n")
REFUSED = Run("", ValueError("in user code:\n\n  ValueError: wrong shape\n"), 1)
OTHERWISE = Run("", ValueError("wrong dtype"), 1)
STAGED = Run("", programs.exception_named("StagingError", "ValueError: wrong shape"), 1)
STAGED_OTHERWISE = Run("", programs.exception_named("StagingError", "TypeError: wrong shape"), 1)
ABSENT = Run("", Unavailable("there is no TPU"))


@pytest.fixture
def ended(monkeypatch):
    """Lets programs end as they say: the text of each is the name of one of the runs above."""

    def run(jobs):
        return [globals()[each.text.strip()] for each in jobs]

    monkeypatch.setattr(programs, "run_programs", run)


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize(
    "setup, text, says",
    [
        (ONE, "RIGHT", "right"),
        (TWO, "REFUSED", "raises; it should print: sum 3"),
        (FOUR, "WRONG", "wrong; it should print: sum 3"),
        (TWO, "ABSENT", "not run: there is no TPU"),
    ],
)
def test_a_broken_program_fails_as_its_mode_declares(setup, text, says, capsys):
    Session(MODE, setup).program("broken", text)
    assert capsys.readouterr().out.strip().endswith(f"| {says}")


def test_the_line_of_an_error_is_one_of_the_program_for_this_setup(monkeypatch, capsys):
    """A setup with several devices has more lines than the cell."""
    refused = replace(REFUSED, line=5)
    monkeypatch.setattr(programs, "run_programs", lambda jobs: [refused for _ in jobs])
    cell = "import tensorflow as tf\nstrategy = tf.distribute.get_strategy()\nstrategy.fails()"
    Session(MODE, TWO).program("broken", cell)
    assert "line 5: strategy.fails()" in capsys.readouterr().out


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize(
    "setup, text",
    [
        (TWO, "RIGHT"),
        (TWO, "OTHERWISE"),
        (TWO, "WRONG"),
        (ONE, "REFUSED"),
        (ONE, "WRONG"),
        (FOUR, "RIGHT"),
        (FOUR, "REFUSED"),
    ],
)
def test_every_other_end_of_a_broken_program_is_refused(setup, text):
    words = (
        "FM00 disagrees with its run at 'broken': declared .* the run gave .* See notebooks/fm00"
    )
    with pytest.raises(Disagreement, match=words):
        Session(MODE, setup).program("broken", text)


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize("subject", ["fixed", "solution"])
def test_a_repair_prints_what_is_right(subject, capsys):
    for text in ("WRONG", "REFUSED"):
        with pytest.raises(Disagreement, match=f"at '{subject}'"):
            Session(MODE, TWO).program(subject, text)
    for text in ("RIGHT", "ABSENT"):
        Session(MODE, TWO).program(subject, text)
    assert f"FM00 {subject} (executed) | right" in capsys.readouterr().out


@pytest.mark.usefixtures("ended")
def test_an_exercise_is_red_until_it_prints_what_is_right(capsys):
    for text in ("WRONG", "REFUSED"):
        Session(MODE, TWO).program("exercise", text)
        assert "it should print: sum 3" in capsys.readouterr().out
    Session(MODE, TWO).program("exercise", "RIGHT")
    assert "FM00 exercise (executed) | right" in capsys.readouterr().out


def test_a_program_that_is_none():
    with pytest.raises(UserError, match="program = 'fixd' .* Did you mean 'fixed'"):
        Session(MODE, TWO).program("fixd", "print(1)")


def opened(broken: str, fixed: str) -> Session:
    """A page on which both programs have been run."""
    session = Session(MODE, TWO)
    session.texts |= {"broken": broken, "fixed": fixed}
    return session


def test_a_step_that_needs_both_programs_says_which_is_missing():
    for step in (lambda session: session.table([TWO]), Session.panel, Session.placement):
        with pytest.raises(UserError, match="the program 'broken' has not been run"):
            step(Session(MODE, TWO))


@pytest.mark.usefixtures("ended")
def test_a_table_refuses_the_right_outcome_for_the_wrong_reason():
    opened("REFUSED", "RIGHT").table([TWO])
    with pytest.raises(Disagreement, match="wrong dtype"):
        opened("OTHERWISE", "RIGHT").table([TWO])
    with pytest.raises(Disagreement, match="at 'fixed"):
        opened("REFUSED", "WRONG").table([TWO])


@pytest.mark.usefixtures("ended")
def test_an_error_that_autograph_wraps_is_the_one_in_its_message():
    opened("STAGED", "RIGHT").table([TWO])
    with pytest.raises(Disagreement, match="TypeError"):
        opened("STAGED_OTHERWISE", "RIGHT").table([TWO])


def test_variants_of_a_program_differ_in_one_line():
    session = opened("a = 1\nprint(a)\n", "")
    assert session.variants("broken", "a = 1", {"two": "a = 2"}) == {"two": "a = 2\nprint(a)\n"}
    with pytest.raises(UserError, match="stands 2 times in broken.py"):
        session.variants("broken", "a", {"two": "b"})


@pytest.mark.usefixtures("ended")
def test_what_programs_print_by_name_and_setup():
    printed = Session(MODE, TWO).prints({"a": "RIGHT", "b": "REFUSED"}, [ONE, TWO])
    assert printed == {"a": ["sum 3", "sum 3"], "b": ["ValueError", "ValueError"]}


def test_a_result_is_used_again_until_the_program_or_its_setup_is_another(monkeypatch):
    runs = []
    monkeypatch.setattr(
        programs, "run_programs", lambda jobs: [runs.append(each.text) or RIGHT for each in jobs]
    )
    session = Session(MODE, TWO)
    session.run({"broken": "a"}, [TWO, TWO])
    session.run({"broken": "a"}, [TWO])
    assert runs == ["a"]
    session.run({"broken": "a"}, [TWO, ONE])
    session.run({"broken": "a"}, [TWO], again=True)
    session.run({"broken": "b"}, [TWO])
    assert runs == ["a", "a", "a", "b"]


def test_a_strategy_without_a_meaning_gives_its_reason():
    mode = replace(MODE, unavailable={"mirrored": "nothing is divided"})
    (verdict,) = Session(mode, TWO).run({"broken": "print(1)"}, [TWO])
    assert (verdict.outcome, verdict.says) == ("unavailable", "nothing is divided")


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
        (SilentFailure("s"), "wrong"),
        (KeyError("k"), "raises"),
        (Unavailable("u"), "unavailable"),
    ],
)
def test_outcomes_by_kind_of_error(error, outcome):
    assert classify("broken", TWO, Run(error=error)).outcome == outcome


def test_the_useful_line_is_the_last_one():
    assert last_line(REFUSED.error) == "wrong shape"
    assert last_line(ValueError("")) == ""


def test_of_several_root_errors_one_is_told_without_names():
    text = "Detected at node cond/A\n2 root error(s) found.\n"
    text += "  (0) INVALID_ARGUMENT:  Feed a value for 'cond/_1/A_2' of int32\n\t [[{{node cond/A_2}}]]\n"
    text += (
        "  (1) INVALID_ARGUMENT:  Feed a value for 'cond/_1/A' of int32\n\t [[{{node cond/A}}]]\n"
    )
    text += "0 successful operations.\n0 derived errors ignored. [Op:__inference_step_12]"
    assert last_line(ValueError(text)) == "Feed a value for of int32"


def test_a_function_that_was_cancelled_is_not_what_happened():
    text = (
        "2 root error(s) found.\n  (0) CANCELLED:  Function was cancelled before it was started\n"
    )
    text += "  (1) INVALID_ARGUMENT:  scale must have the same number of elements\n"
    assert last_line(ValueError(text)) == "scale must have the same number of elements"
    alone = "  (0) CANCELLED:  Function was cancelled before it was started"
    assert last_line(ValueError(alone)) == "Function was cancelled before it was started"


def test_of_objects_that_are_not_loaded_the_example_is_told():
    text = (
        "A total of 2 objects could not be loaded. Example error message for object <Dense name=a>:"
    )
    example = "Layer 'a' expected 2 variables, but received 0 variables during loading."
    told = f"{text}\n\n{example}\n\nList of objects that could not be loaded:\n[<Dense name=a>]"
    assert last_line(ValueError(told)) == f"{text} {example}"


def test_the_name_of_a_node_is_not_what_happened():
    text = "End of sequence\n\t [[{{node IteratorGetNext}}]] [Op:__inference_step_12]\n\t [[RemoteCall]]"
    assert last_line(ValueError(text)) == "End of sequence"


@pytest.mark.parametrize("indent", ["", "    "])
def test_values_for_replicas_that_a_message_quotes_take_one_line(indent):
    """A message from traced code is indented."""
    value = 'PerReplica:{\n      0: Tensor("a:0")\n}'.replace("\n", f"\n{indent}")
    told = f"{indent}Only tensors may be passed: {value} (of type PerReplica)"
    assert (
        last_line(ValueError(told))
        == "Only tensors may be passed: PerReplica:{…} (of type PerReplica)"
    )


def test_of_an_object_that_a_checkpoint_quotes_its_path_is_told():
    where = "Unresolved object in checkpoint (root).optimizer._variables.2"
    text = f'{where}: attributes {{\n  name: "VARIABLE_VALUE"\n}}\nhas_checkpoint_values {{\n  value: true\n}}\n'
    assert last_line(AssertionError(text)) == where


def test_the_useful_line_of_a_traceback_through_a_scope_is_its_end():
    text = 'File "train.py", line 3, in main\n    with strategy.scope():\n{}IndexError: pop from empty list'
    for between in ("", "         ^^^^^^^^^^^^^^^^^\n"):
        assert error_text.useful_line(text.format(between)) == "IndexError: pop from empty list"
    advice = "ValueError: not in the scope.\nwith strategy.scope():\n  model=_create_model()\n"
    assert error_text.useful_line(advice) == "ValueError: not in the scope."


def test_the_useful_line_names_no_device():
    node = "{{function_node __wrapped__AddN_N_2_device_/job:localhost/task:0/device:CPU:0}} "
    assert last_line(ValueError(f"{node}must have the same size")) == "must have the same size"


def test_the_useful_line_is_the_type_that_an_operation_refuses():
    reason = "Value for attr 'T' of string is not in the list of allowed values"
    assert last_line(ValueError(f"{reason}: half\n\t; NodeDef: {{{{node AddN}}}}; Op<>")) == reason


def test_of_a_collective_its_shapes_are_told():
    reason = "Shape mismatch in the collective instance 112. Op expected shape [8] but another member expected shape [1]."
    text = f"Graph execution error:\nCollective ops is aborted by: {reason}\nThe error could be from a previous operation."
    assert last_line(ValueError(text)) == reason


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


def test_what_keras_adds_to_a_message_is_no_reason():
    text = (
        "Exception encountered when calling Scale.call().\n\n\x1b[1mtf.function only supports singleton "
        "tf.Variables\x1b[0m\n\nArguments received by Scale.call():\n  • inputs=tf.Tensor(shape=(2, 3))"
    )
    said = "tf.function only supports singleton tf.Variables"
    assert last_line(ValueError(text)) == said
    assert last_line(ValueError(f"in user code:\n\n{textwrap.indent(text, '    ')}")) == said
    older = text.replace("Arguments", "Call arguments").replace("Scale.call()", 'layer "scale"')
    assert last_line(ValueError(older)) == said
    text = "Failed. No OpKernel was registered to support Op 'X' with {}\n\t<no registered kernels>"
    assert last_line(ValueError(text)).startswith("No OpKernel was registered to support Op 'X'")


def test_a_list_or_code_after_a_message_is_no_reason():
    failed = (
        "A total of 2 objects could not be loaded. Example error message for object <Dense name=a>:"
    )
    text = f"{failed}\n\nwrong shape\n\nList of objects that could not be loaded:\n[<Dense name=a>]"
    assert last_line(ValueError(text)) == f"{failed} wrong shape"
    refused = "Variable (v) was not created in the distribution strategy scope of (s). Write it so:"
    text = f"{refused}\n\nwith strategy.scope():\n  model=_create_model()\n  model.compile(...)"
    assert last_line(ValueError(text)) == refused


def test_an_error_of_a_running_graph_was_not_found_by_tracing():
    import tensorflow as tf

    traced = Setup("tpu_traced", 8)
    ran = tf.errors.InvalidArgumentError(None, None, "refused")
    found = [classify("broken", traced, Run(error=each)) for each in (ran, ValueError("no"))]
    assert [each.evidence for each in found] == ["emulated", "traced"]


@pytest.mark.parametrize("end", ["}", "]\n}\n", "{{node step/add}}", "  )  "])
def test_the_useful_line_has_words(end):
    """Keras ends some messages with a configuration, and TensorFlow some with the place in a graph."""
    assert (
        last_line(ValueError(f"Unknown layer: 'Scale'.\nconfig={{'a': 1,\n{end}"))
        == "config={'a': 1,"
    )
    assert last_line(ValueError(end)) == ""


def test_the_useful_line_is_not_the_values_of_an_array():
    values = "[[ 0.1, 2.],\n       [-3e-05, 1.]]"
    text = f"wrong shape of <tf.Variable shape=(2, 2), numpy=\narray({values}, dtype=float32)>"
    short = "wrong shape of <tf.Variable shape=(2, 2), numpy=array([...], dtype=float32)>"
    assert last_line(ValueError(text)) == short
    assert last_line(ValueError(f"wrong value={values}>")) == "wrong value=[...]>"
    assert last_line(ValueError("wrong shapes [2, 3] and [4]")) == "wrong shapes [2, 3] and [4]"


def test_the_useful_line_is_not_the_end_of_a_value_for_each_replica():
    parts = "PerReplica:{\n  0: <tf.Tensor: shape=(2, 1), numpy=\narray([[1.],\n       [2.]], dtype=float32)>,\n  1: None\n}"
    text = f"in user code:\n\nAttempt to convert a value ({parts}) with an unsupported type"
    said = "Attempt to convert a value (PerReplica:{…}) with an unsupported type"
    assert last_line(ValueError(text)) == said


def test_the_lines_of_a_key_error_are_lines():
    text = "in user code:\n\n    File \"a.py\", line 1\n\n    KeyError: 'no such variable'\n"
    assert last_line(KeyError(text)) == "'no such variable'"
    assert last_line(KeyError("no such variable")) == "'no such variable'"
