"""Triage: errors whole and in part, what looks near and is not a mode, and whatever else may be pasted."""

import functools
import html
import json
import random
import re
import signal
import textwrap

import pytest
from conftest import forget
from error_samples import ERRORS, FIT, OF_NO_MODE
from strategy_clinic.base.errors import UserError
from strategy_clinic.triage import answer_text, classify, command, phrases, report_text, wordings


def mode_of(text: str):
    return classify.triage(text).mode


@pytest.mark.parametrize("text", OF_NO_MODE, ids=[text[:40] for text in OF_NO_MODE])
def test_what_looks_near_is_none(text):
    found = classify.triage(text)
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


def before_each_line(prefix, width=60):
    """Returns what writes a prefix before each line of a text that is wrapped."""

    def wrapper(text):
        lines = (textwrap.wrap(line, width) or [""] for line in text.split("\n"))
        return "\n".join(prefix + part for parts in lines for part in parts)

    wrapper.__name__ = prefix.strip()
    return wrapper


def in_a_box(text):
    return "\n".join(f"│ {line:62} │" for line in before_each_line("")(text).split("\n"))


def in_a_cell_of_a_table(text):
    return before_each_line("")(text).replace("\n", "<br />")


def escaped_for_markdown(text):
    return re.sub(r"([_*\[\]<>()`])", r"\\\1", text)


def with_signs_of_no_width(text):
    return text.replace(" ", " \u200b")


def in_a_window(text, width=40):
    """Returns a text as a window cuts it, which breaks words: three lines, so that the width is to be seen."""
    text = f"Traceback (most recent call last): x {'x' * width} {text}"
    return "\n".join(text[place : place + width] for place in range(0, len(text), width))


def among_warnings(text):
    before = "2020-01-01 00:00:00.1: W tensorflow/core Could not load dynamic library 'libcudart.so.11.0'\n"
    warned = "WARNING:tensorflow:No training configuration found in the save file, so the model was *not* compiled.\n"
    return f"{before}WARNING:tensorflow:AutoGraph could not transform f and will run it as-is.\n{warned}{text}"


def after_training(text):
    return FIT + text


WRAPPERS = [coloured, in_windows, in_user_code, in_pytest, quoted, from_a_page, wrapped]
WRAPPERS += [from_a_notebook_file]
WRAPPERS += [in_a_box, in_a_cell_of_a_table, escaped_for_markdown, with_signs_of_no_width]
OF_RUNNERS = [
    "worker_1  | ",
    "[1,0]<stderr>:",
    "(Trainer pid=12, ip=10.0.0.2) ",
    "[rank0]: ",
    "3: ",
    "2024-05-02T17:21:33.678068Z ",
    "[2024-05-02 17:21:33,678] ERROR ",
    "May 02 17:21:33 node7 python[42]: ",
    "job-7-x5n | 2024-05-02 17:21:33 ",
    "# ",
    "- ",
]
WRAPPERS += map(before_each_line, OF_RUNNERS)
WRAPPERS += [among_warnings, after_training]
RAISED = [(mode, text) for mode, text in ERRORS if "WARNING" not in text]


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
def test_however_it_is_pasted(wrapper):
    wrong = [(mode, text[:60], mode_of(wrapper(text))) for mode, text in RAISED]
    assert [each for each in wrong if each[0] != each[2]] == []


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
def test_an_error_of_no_mode_stays_one_however_it_is_pasted(wrapper):
    texts = [text for text in OF_NO_MODE[:-2] if "not enough" not in text]
    assert [(text, mode_of(wrapper(text))) for text in texts if mode_of(wrapper(text))] == []


@pytest.mark.parametrize("width", [44, 60, 80])
def test_words_that_a_window_has_cut_are_read_whole(width):
    wrong = [(mode, mode_of(in_a_window(text, width))) for mode, text in RAISED if "\n" not in text]
    assert [each for each in wrong if each[0] != each[1]] == []


def test_lines_of_no_one_width_are_read_as_they_are():
    text = "Need to be inside with strategy\nscope, and so on with the program\nof which it is"
    assert report_text.ReportText(text).lines == text
    assert report_text.with_whole_words("a" * 50) == "a" * 50


def test_what_a_line_says_is_no_prefix_of_it():
    for text in ["[[{{node IteratorGetNext}}]]", "[Op:AddN]", "---> 17   x = 1", "12 raise x"]:
        assert report_text.ReportText(text).lines == text


def test_frames_of_every_fit_prove_nothing():
    assert mode_of(FIT) is None
    assert mode_of(FIT + "ValueError: something else") is None


def test_a_warning_counts_only_where_nothing_is_raised():
    warning = "WARNING:tensorflow:Skipping variable loading for optimizer 'Adam', because it has 1 variables"
    assert mode_of(warning) == "fm29"
    assert mode_of(f"{warning}\nKeyError: 'labels'") is None


def test_the_log_line_at_the_end_of_every_dataset_is_none():
    ended = "OUT_OF_RANGE: End of sequence"
    assert mode_of(f"OutOfRangeError: {ended}") == "fm42"
    assert (
        mode_of(f"local_rendezvous.cc:404] Local rendezvous is aborting with status: {ended}")
        is None
    )


def test_the_last_of_several_errors_is_the_one():
    texts = dict(ERRORS)
    assert mode_of(f"{texts['fm08']}\n\n{texts['fm30']}") == "fm30"
    assert mode_of(f"{texts['fm30']}\n\n{texts['fm08']}") == "fm08"
    assert mode_of(f"{texts['fm30']}\n\n{OF_NO_MODE[0]}") is None


def test_a_runner_up_is_told():
    both = "\n".join(text for mode, text in ERRORS if mode in ("fm08", "fm31"))
    assert classify.triage(both).mode == "fm31"
    assert any(line.startswith("  or fm08") for line in answer_text.lines_of(classify.triage(both)))


def test_a_message_without_its_end_is_enough():
    cut = [(mode, text[: int(len(text) * 0.9)]) for mode, text in ERRORS if len(text) > 80]
    wrong = [(mode, text, mode_of(text)) for mode, text in cut if mode_of(text) != mode]
    assert len(wrong) <= len(cut) // 10, wrong


def test_confidence_means_how_often_it_is_right():
    """Of answers that are called nine in ten, at least nine in ten are right, and doubt comes with a low figure."""
    judged = [(classify.triage(text), mode) for mode, text in ERRORS]
    judged += [(classify.triage(text), None) for text in OF_NO_MODE]
    sure = [found.mode == mode for found, mode in judged if found.confidence >= 0.9]
    assert sum(sure) >= 0.9 * len(sure) and len(sure) > 20
    both = classify.triage("\n".join([ERRORS[6][1], OF_NO_MODE[0]]))
    assert both.mode is None and any(each.mode == "fm06" for each in both.candidates)


def test_a_broken_file_of_wordings_is_named(project):
    path = wordings.words_files()["fm04"]
    for text in (
        "[[wording]\n",
        "[[wording]]\nsays = 3\n",
        "[[wording]]\nsayss = 'x'\nfrom = '1'\n",
        "answers = 'x'\n",
        "[[code]]\nwords = 'x'\n",
    ):
        path.write_text(text)
        forget()
        with pytest.raises(UserError, match="fm04_weights_path_refused/words.toml"):
            classify.triage("anything")


# Whatever else may be pasted


@functools.cache
def pieces() -> list[str]:
    return [
        piece
        for each in wordings.wordings()
        for words in each.says
        for piece in phrases.readings(words)[0]
    ]


def huge(name: str) -> str:
    piece, count = HUGE[name]
    return (piece or " ".join(pieces())) * count


# A piece, or none for every piece of a wording, and how often it is repeated.
HUGE = {
    "nothing": (" ", 10_000_000),
    "one letter": ("a", 10_000_000),
    "long paths": ("a" * 1000 + ".py ", 10_000),
    "one line": ("Key ", 2_500_000),
    "gaps": ("Key x trying to load a weight file containing ", 200_000),
    "lines": ("\n", 10_000_000),
    "colours": ("\x1b[31m", 2_000_000),
    "open colours": ("\x1b]", 5_000_000),
    "brackets": ("([{<", 2_500_000),
    "quotes": ("'\"`", 3_333_333),
    "entities": ("&amp;", 2_000_000),
    "frames": ('File "a.py", line 1, in f\n', 400_000),
    "half frames": ('File "', 1_600_000),
    "paths": ("a/b.py:", 1_400_000),
    "errors": ("ValueError", 1_000_000),
    "margins": ("> | > | ", 1_250_000),
    "says": ("The shape of the target variable and the shape of the target value ", 150_000),
    "every piece": ("", 200),
}


@pytest.fixture
def ended_if_endless():
    """Raises in a test that would otherwise run for hours, as an expression that backtracks does."""

    def end(*_):
        raise TimeoutError("not finished after two minutes")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_of_a_huge_text_no_more_is_read_than_of_a_long_one(name, ended_if_endless):
    text = huge(name)
    assert len(report_text.ReportText(text).lines) <= report_text.LONGEST + 1
    assert 0 <= classify.triage(text).confidence <= 1


@pytest.mark.slow
def test_of_a_huge_text_nothing_between_the_two_ends_counts():
    begin, end = "step 1: loss 0.5\n" * 20_000, "step 2: loss 0.5\n" * 20_000
    found = classify.triage(begin + ERRORS[6][1] + ERRORS[9][1] + end)
    half = report_text.LONGEST // 2
    assert found.mode is None and found == classify.triage(f"{begin[:half]}\n{end[-half:]}")


@pytest.mark.slow
def test_random_bytes_and_random_pieces_never_raise():
    chance = random.Random(7)
    for _ in range(300):
        text = command.decoded(chance.randbytes(chance.randrange(2000)))
        found = classify.triage(text + " ".join(chance.choices(pieces(), k=chance.randrange(9))))
        assert (
            0 <= found.confidence <= 1 and answer_text.card(found) and answer_text.lines_of(found)
        )
        assert json.loads(json.dumps(found.as_dict()))


@pytest.mark.slow
def test_an_error_at_the_end_of_a_huge_text_is_found():
    assert mode_of("step 1: loss 0.5\n" * 1_000_000 + ERRORS[6][1]) == "fm06"
