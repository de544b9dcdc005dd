"""Triage: errors of many versions, whole and in part, what looks near and is none, and whatever else may be pasted."""

import html
import io
import json
import os
import random
import resource
import subprocess
import sys
import time

import pytest
from conftest import ROOT
from IPython.core.interactiveshell import InteractiveShell

import helpers
from helpers import cli, desk, triage

# One message a line, as TensorFlow and Keras of that time word it; none is one of the recorded ones.
ERRORS = [
    ("fm01", "NotImplementedError: numpy() is only available when eager execution is enabled. __inference_train_step"),
    ("fm02", "RuntimeError: Method requires being in cross-tower context, use get_tower_context().merge_call()"),
    ("fm03", "RuntimeError: Mixing different DistributionStrategy objects: <a> is not <b>"),
    ("fm03", "ValueError: Trying to create optimizer slot variable under the scope for tf.distribute.Strategy (<x>)"),
    ("fm04", "ValueError: The filepath provided must end in `.keras` (Keras model format). Received: filepath=w.h5"),
    ("fm05", "AssertionError: Tried to export a function which references untracked object Tensor(\"1:0\")"),
    ("fm06", "InvalidArgumentError: Assign requires shapes of both tensors to match. lhs shape= [9] rhs shape= [8]"),
    ("fm06", "NotFoundError: Key conv1/weights not found in checkpoint"),
    ("fm06", "ValueError: You are trying to load a weight file containing 25 layers into a model with 31 layers."),
    ("fm06", "ValueError: Shape of variable w:0 ((4,)) doesn't match with shape of tensor w ([5]) from checkpoint reader."),
    ("fm07", "NotImplementedError: Cannot convert a symbolic Tensor (loss/mul:0) to a numpy array."),
    ("fm07", "OperatorNotAllowedInGraphError: using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution."),
    ("fm08", "DataLossError: Unable to open table file m.ckpt.data-00000-of-00001: Data loss: not an sstable"),
    ("fm08", "ValueError: Can't load save_path when it is None."),
    ("fm09", "NotFoundError: Key dense/kernel/Adam_1 not found in checkpoint"),
    ("fm10", "ValueError: Unknown variable: <KerasVariable shape=(2, 2), dtype=float32, path=d/kernel>."),
    ("fm11", "ValueError: You called `set_weights(weights)` on layer \"d\" with a weight list of length 2, "
     "but the layer was expecting 0 weights."),
    ("fm12", "ValueError: tf.function-decorated function tried to create variables on non-first call."),
    ("fm13", "    optimizer.apply_gradients(zip(grads, weights))\nValueError: None values not supported."),
    ("fm15", "ValueError: You must specify an aggregation method to update a MirroredVariable in Tower Context."),
    ("fm17", "RuntimeError: Cannot find any TPU cores in the system (master address grpc://10.0.0.2:8470)."),
    ("fm18", "ValueError: TPUConfig.num_shards is not set correctly. According to TPU system metadata"),
    ("fm19", "AssertionError: batch_size must be divisible by the number of TPU cores in use (33 vs 8)"),
    ("fm20", "RuntimeError: tf.distribute.Strategy.gather method requires cross-replica context, use all_gather()"),
    ("fm21", "AttributeError: 'DistributedDataset' object has no attribute 'map'"),
    ("fm22", "TypeError: unsupported operand type(s) for +: 'PerReplica' and 'int'"),
    ("fm26", "ValueError: You are trying to load a weight file containing 1 layers into a model with 19 layers."),
    ("fm27", "OSError: SavedModel file does not exist at: ckpt/{saved_model.pbtxt|saved_model.pb}"),
    ("fm28", "    w = np.array(model.get_weights())\n"
     "ValueError: could not broadcast input array from shape (3,3) into shape (3)"),
    ("fm29", "WARNING:tensorflow:Error in loading the saved optimizer state. As a result, your model is starting "
     "with a freshly initialized optimizer."),
    ("fm30", "ValueError: Unknown loss function:focal_loss"),
    ("fm31", "RuntimeError: `add_update` was called in a cross-replica context. This is not expected."),
    ("fm32", "assertion failed: [Trying to access a placeholder that is not supposed to be executed.]"),
    ("fm33", "TypeError: An op outside of the function building code is being passed\na \"Graph\" tensor."),
    ("fm34", "ValueError: Variable <tf.Variable 'w:0'> has `None` for gradient. Please make sure that all of your ops "
     "have a gradient defined"),
    ("fm36", "InternalError: Device GPU:1 is joining a group with size 4, but that group has size 2 (group_key=1)"),
    ("fm37", "ValueError: Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for loss "
     "reduction when losses are used with `tf.distribute.Strategy` outside of the built-in training loops."),
]  # fmt: skip
STRANGERS = [
    "ResourceExhaustedError: OOM when allocating tensor with shape[64,112,112,64] and type float",
    "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize",
    "ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value 4",
    "ValueError: Shapes (None, 1) and (None, 10) are incompatible",
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: \"fc.weight\".",
    "jax._src.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on traced array",
    "OSError: Unable to open file (file signature not found)",
    "OSError: Unable to synchronously open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
    "AttributeError: 'str' object has no attribute 'decode'",
    "KeyError: 'loss'",
    "ZeroDivisionError: division by zero",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "ModuleNotFoundError: No module named 'keras.layers.normalization'",
    "InvalidArgumentError: indices[0,3] = 5000 is not in [0, 5000)",
    "ValueError: setting an array element with a sequence.",
    "NotImplementedError: Cannot convert a symbolic Tensor (lstm/strided_slice:0) to a numpy array.",
    "ValueError: not enough values to unpack (expected 2, got 0)\n  for key, value in line.split(','):",
    "TypeError: __init__() got an unexpected keyword argument 'lr'",
    "RuntimeError: You must compile your model before training/testing. Use `model.compile(optimizer, loss)`.",
    "Invalid argument: You must feed a value for placeholder tensor 'x' with dtype float",
    "",
    "Hello, my code does not work, please help.",
]  # fmt: skip
FIT = """Traceback (most recent call last):
  File "train.py", line 40, in <module>
    model.fit(data, epochs=3)
  File "/usr/lib/python3/site-packages/keras/engine/training.py", line 1040, in step_function  **
    outputs = model.distribute_strategy.run(run_step, args=(data,))
  File "/usr/lib/python3/site-packages/tensorflow/python/distribute/distribute_lib.py", line 2585, in merge_call
    return self._merge_call(merge_fn, args, kwargs)
  File "/usr/lib/python3/site-packages/keras/optimizers/optimizer_v2/optimizer_v2.py", line 640, in apply_gradients
    return tf.__internal__.distribute.interim.maybe_merge_call(
"""


def mode_of(text: str):
    return triage.triage(text).mode


@pytest.mark.parametrize("mode, text", ERRORS, ids=[f"{mode} {text[:40]}" for mode, text in ERRORS])
def test_an_error_leads_to_its_mode(mode, text):
    assert mode_of(text) == mode


@pytest.mark.parametrize("text", STRANGERS, ids=[text[:40] for text in STRANGERS])
def test_what_looks_near_is_none(text):
    found = triage.triage(text)
    assert found.mode is None and found.confidence >= 0.5


def coloured(text):
    return "".join(f"\x1b[1;31m{word}\x1b[0m " for word in text.split(" "))


def in_windows(text):
    return f'  File "C:\\Users\\me\\train.py", line 3, in step\r\n{text}'.replace("\n", "\r\n")


def in_user_code(text):
    return (
        'ValueError: in user code:\n\n    File "a.py", line 2, in f  *\n        g(x)\n\n    ' + text
    )


def in_pytest(text):
    return "\n".join(f"E       {line}" for line in text.split("\n"))


def quoted(text):
    return "\n".join(f"> {line}" for line in text.split("\n")).replace("`", "")


def from_a_notebook_file(text):
    return json.dumps({"traceback": coloured(text).split("\n")})


def from_a_page(text):
    return f"<pre>{html.escape(text)}</pre>"


def wrapped(text):
    return text.replace(" ", "\n   ")


def among_warnings(text):
    before = "2020-01-01 00:00:00.1: W tensorflow/core Could not load dynamic library 'libcudart.so.11.0'\n"
    warned = "WARNING:tensorflow:No training configuration found in the save file, so the model was *not* compiled.\n"
    return f"{before}WARNING:tensorflow:AutoGraph could not transform f and will run it as-is.\n{warned}{text}"


def after_training(text):
    return FIT + text


WRAPPERS = [coloured, in_windows, in_user_code, in_pytest, quoted, from_a_page, wrapped]
WRAPPERS += [from_a_notebook_file]
WRAPPERS += [among_warnings, after_training]
RAISED = [(mode, text) for mode, text in ERRORS if "WARNING" not in text]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
def test_however_it_is_pasted(wrapper):
    wrong = [(mode, text[:60], mode_of(wrapper(text))) for mode, text in RAISED]
    assert [each for each in wrong if each[0] != each[2]] == []


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
def test_a_stranger_stays_one_however_it_is_pasted(wrapper):
    texts = [text for text in STRANGERS[:-2] if "not enough" not in text]
    assert [(text, mode_of(wrapper(text))) for text in texts if mode_of(wrapper(text))] == []


def test_frames_of_every_fit_prove_nothing():
    assert mode_of(FIT) is None
    assert mode_of(FIT + "ValueError: something else") is None


def test_a_warning_counts_only_where_nothing_is_raised():
    warning = "WARNING:tensorflow:Skipping variable loading for optimizer 'Adam', because it has 1 variables"
    assert mode_of(warning) == "fm29"
    assert mode_of(f"{warning}\nKeyError: 'labels'") is None


def test_the_last_of_several_errors_is_the_one():
    texts = dict(ERRORS)
    assert mode_of(f"{texts['fm08']}\n\n{texts['fm30']}") == "fm30"
    assert mode_of(f"{texts['fm30']}\n\n{texts['fm08']}") == "fm08"
    assert mode_of(f"{texts['fm30']}\n\n{STRANGERS[0]}") is None


def test_a_runner_up_is_told():
    both = "\n".join(text for mode, text in ERRORS if mode in ("fm08", "fm31"))
    assert triage.triage(both).mode == "fm31"
    assert any(line.startswith("  or fm08") for line in desk.words_of(triage.triage(both)))


def test_a_message_without_its_end_is_enough():
    cut = [(mode, text[: int(len(text) * 0.9)]) for mode, text in ERRORS if len(text) > 80]
    wrong = [(mode, text, mode_of(text)) for mode, text in cut if mode_of(text) != mode]
    assert len(wrong) <= len(cut) // 10, wrong


def test_confidence_means_how_often_it_is_right():
    """Of answers that are called nine in ten, at least nine in ten are right, and doubt comes with a low figure."""
    judged = [(triage.triage(text), mode) for mode, text in ERRORS]
    judged += [(triage.triage(text), None) for text in STRANGERS]
    sure = [found.mode == mode for found, mode in judged if found.confidence >= 0.9]
    assert sum(sure) >= 0.9 * len(sure) and len(sure) > 20
    both = triage.triage("\n".join([ERRORS[6][1], STRANGERS[0]]))
    assert both.mode is None and any(each.mode == "fm06" for each in both.candidates)


# The command


def run(*arguments, text=b""):
    return subprocess.run(
        [sys.executable, "-m", "helpers", "triage", *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
    )


def test_the_command_prints_mode_reason_notebook_and_fix():
    done = run(text=ERRORS[4][1].encode())
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert said.startswith("fm04 weights_path_refused (0.") and "must end in" in said
    assert "fix: end the path in `.weights.h5`" in said
    assert "notebooks/fm04_weights_path_refused.ipynb" in said


def test_none_is_an_answer_too():
    done = run("-", text=STRANGERS[0].encode())
    assert done.returncode == 0
    assert b"none of the modes" in done.stdout and b"out of memory" in done.stdout


def test_json_has_the_agreed_form(tmp_path):
    path = tmp_path / "error.txt"
    path.write_text(ERRORS[6][1], encoding="utf-16")
    found = json.loads(run("--json", str(path)).stdout)
    assert set(found) == {"mode", "confidence", "candidates"} and found["mode"] == "fm06"
    assert 0.9 < found["confidence"] <= 1
    assert set(found["candidates"][0]) == {"mode", "score", "because"}


def test_jsonl_answers_line_by_line():
    reports = [{"id": number, "text": text} for number, (_, text) in enumerate(ERRORS)]
    done = run("--jsonl", text="\n".join(map(json.dumps, reports)).encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == list(range(len(ERRORS)))
    assert [each["mode"] for each in answers] == [mode for mode, _ in ERRORS]


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"id": 1}', '{"text": "x"}', '{"id": 1, "text": 2}', "7"]
)
def test_what_is_no_report_is_refused(line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    assert cli.main(["triage", "--jsonl"]) == 2
    assert capsys.readouterr().err.startswith("clinic: Line 1 is no JSON object")


def test_what_cannot_be_read_is_one_sentence(tmp_path, capsys):
    assert cli.main(["triage", str(tmp_path / "absent.txt")]) == 2
    assert cli.main(["triage", str(tmp_path)]) == 2
    assert cli.main(["triage", "a", "b"]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_a_broken_file_of_wordings_is_named(project):
    path = project / "notebooks" / "wordings" / "fm04.toml"
    for text in (
        "[[wording]\n",
        "[[wording]]\nsays = 3\n",
        "[[wording]]\nsayss = 'x'\nfrom = '1'\n",
    ):
        path.write_text(text)
        triage.wordings.cache_clear()
        with pytest.raises(triage.Refused, match="fm04.toml"):
            triage.triage("anything")


def test_it_is_quick_and_needs_no_tensorflow():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run(text=ERRORS[0][1].encode()).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    loaded = "import sys; from helpers import cli; cli.main(['triage', '/dev/null']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True)
    assert not {"tensorflow", "keras", "nbformat", "ipywidgets"} & set(done.stdout.split())


def test_a_thousand_texts_take_seconds():
    texts = [FIT * 3 + text for _, text in ERRORS] * (1000 // len(ERRORS) + 1)
    assert timed(lambda: [triage.triage(text) for text in texts[:1000]]) < 10


def timed(work) -> float:
    """Seconds of this process, so that others on the machine do not matter."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


# Whatever else may be pasted


PIECES = [
    piece for each in triage.wordings() for words in each.says for piece in triage.phrases(words)[0]
]
HUGE = {
    "nothing": " " * 10_000_000,
    "one letter": "a" * 10_000_000,
    "one line": "Key " * 2_500_000,
    "gaps": "Key x trying to load a weight file containing " * 200_000,
    "lines": "\n" * 10_000_000,
    "colours": "\x1b[31m" * 2_000_000,
    "open colours": "\x1b]" * 5_000_000,
    "brackets": "([{<" * 2_500_000,
    "quotes": "'\"`" * 3_333_333,
    "entities": "&amp;" * 2_000_000,
    "frames": 'File "a.py", line 1, in f\n' * 400_000,
    "half frames": 'File "' * 1_600_000,
    "paths": "a/b.py:" * 1_400_000,
    "errors": "ValueError" * 1_000_000,
    "margins": "> | > | " * 1_250_000,
    "says": "The shape of the target variable and the shape of the target value " * 150_000,
    "every piece": " ".join(PIECES) * 200,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_text_takes_a_moment(name):
    assert timed(lambda: triage.triage(HUGE[name])) < 3


def test_random_bytes_and_random_pieces_never_raise():
    chance = random.Random(7)
    for _ in range(300):
        text = desk.decoded(chance.randbytes(chance.randrange(2000)))
        found = triage.triage(text + " ".join(chance.choices(PIECES, k=chance.randrange(9))))
        assert 0 <= found.confidence <= 1 and desk.card(found) and desk.words_of(found)
        assert json.loads(json.dumps(found.as_dict()))


def test_an_error_at_the_end_of_a_huge_text_is_found():
    assert mode_of("step 1: loss 0.5\n" * 1_000_000 + ERRORS[6][1]) == "fm06"


def test_what_a_page_shows_is_escaped():
    evil = "<script>alert(1)</script>"
    text = f'  File "{evil}.py", line 3, in {evil}\nKey {evil}<img src=x onerror=alert(2)> not found in checkpoint'
    for each in (text, html.escape(text), html.escape(html.escape(text))):
        page = desk.card(triage.triage(each))
        shown = page.split("</style>")[1]
        assert "data-clinic-mode='fm06'" in shown and "not found in checkpoint" in shown
        assert "<script" not in shown and "<img" not in shown


def test_no_sign_that_steers_a_terminal_is_printed():
    said = desk.words_of(triage.triage("Key \x07\x9b31m\x1b[2J\x00x not found in checkpoint"))
    assert "fm06" in said[0] and all(line.isprintable() for line in said)


# In a notebook


def test_the_box_shows_a_card_with_a_link(capsys):
    field, button, shown = desk.box()
    assert field.description and field.tooltip and button.tooltip and shown.value == ""
    field.value = ERRORS[6][1]
    button.click()
    assert (
        "href='fm06_architecture_changed.ipynb'" in shown.value and "role='status'" in shown.value
    )
    field.value = STRANGERS[0]
    button.click()
    assert "none of the modes" in shown.value and "href" not in shown.value


LOUD = "raise ValueError('The filename must end in `.weights.h5`. Received: filepath=x')"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return InteractiveShell()


def told(shell, capsys, code: str) -> str:
    shell.run_cell(code)
    return capsys.readouterr().out


def test_an_uncaught_exception_ends_with_the_line_that_names_its_mode(shell, capsys):
    before = told(shell, capsys, LOUD)
    shell.run_line_magic("load_ext", "helpers")
    after = told(shell, capsys, LOUD)
    assert "fm04" not in before and len(before) > 100
    assert after.startswith(before) and after != before
    line = after.removeprefix(before)
    assert line.count("\n") == 1 and "notebooks/fm04_weights_path_refused.ipynb" in line
    assert told(shell, capsys, "1 / 0") == told(shell, capsys, "1 / 0")
    assert "fm" not in told(shell, capsys, "1 / 0").split("ZeroDivisionError")[-1]
    assert told(shell, capsys, "print('well')") == "well\n"
    shell.run_line_magic("unload_ext", "helpers")
    assert told(shell, capsys, LOUD) == before


@pytest.mark.parametrize("broken", [RuntimeError("boom"), triage.Refused("no"), RecursionError()])
def test_a_crash_of_triage_never_hides_the_error(shell, capsys, monkeypatch, broken):
    def crash(*_):
        raise broken

    before = told(shell, capsys, LOUD)
    helpers.load_ipython_extension(shell)
    monkeypatch.setattr(triage, "triage", crash)
    after = told(shell, capsys, LOUD)
    assert after == before and "must end in" in after


def test_the_line_names_a_mode_of_an_error_that_was_caught_on_the_way(shell, capsys):
    helpers.load_ipython_extension(shell)
    code = f"try:\n    {LOUD}\nexcept ValueError as error:\n    raise RuntimeError('in my code') from error"
    assert "fm04 weights_path_refused" in told(shell, capsys, code)


def test_reports_can_be_scored(tmp_path):
    path = tmp_path / "reports.jsonl"
    rows = [{"id": 1, "label": "FM04", "text": ERRORS[4][1], "source": "a/b#1"}]
    rows += [
        {"id": 2, "label": "none", "text": ERRORS[6][1]},
        {"id": 3, "label": "none", "text": ""},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    score = ROOT / "tests" / "score_triage.py"
    done = subprocess.run(
        [sys.executable, score, path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert "right mode first: 1 of 1" in done.stdout and "one is claimed: 1 of 2" in done.stdout
