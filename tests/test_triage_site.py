"""The search of messages on the site: its script answers what the command answers, text by text."""

import functools
import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from error_samples import CUT, DESCRIBED, ERRORS, FIT, OF_NO_MODE
from strategy_clinic.triage import answer_text, classify, search_data
from test_triage import WRAPPERS, in_a_window
from test_triage_near import BEGUN_LATE, TYPED
from test_triage_similarity import MEMORY, ORDINARY

SCRIPT = ROOT / "book" / "static" / "triage.js"
MANY = 60  # texts, at least
ASKED = [
    "dropout same on both gpus",
    "accuracy above 1",
    "weights wrong after loading",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)",
    "merge_call called while",
    "I call `model = load_model('a')`:\n```\nx = copy.deepcopy(layer)\n```\nand both differ",
    "for x in data:\n    strategy.run(step, args=(x,))\n",
    "def step(x):\n    w = model.get_weights()\nstrategy.run(step, args=(x,))",
    "Strasse straße ﬀ ı İ KeyError: 'ä' ½ ² ٣",
    "&lt;b&gt;Need to be inside &quot;with strategy.scope()&#34; for &#x3c;",
]
OTHER_NAME = [
    "model = load_model(path)\nTypeError: __init__() got an unexpected keyword argument 'lr'"
]
OF_RELEASES = [
    "keras==3.8.0: the loss is nan after 60 batches with MirroredStrategy",
    "Keras version: 3.10.0, TF 2.19. The loss is nan after 60 batches with MirroredStrategy",
    "tensorflow 2.13.0\nValueError: Layer 'dense' expected 2 variables, but received 0 variables during loading.",
    "worked in tf 2.15, fails in tf 2.16.1\nAttributeError: 'Sequential' object has no attribute '_get_save_spec'",
    "TensorFlow version (use command below): 2.18.0\nAttributeError: 'Sequential' object has no attribute '_get_save_spec'",
    "ValueError: Layer 'lstm_cell' expected 3 variables, but received 0 variables during loading.",
    "ValueError: Attempt to convert a value (PerReplica:{ 0: <tf.Tensor>}) in multi_worker_model.fit",
    "from keras 3.6.0 to 3.8.0: the loss is nan after 60 batches with MirroredStrategy",
    "keras 3.4.1 AttributeError: 'list' object has no attribute 'shape' in load_model",
]
TEXTS = [text for _, text in [*ERRORS, *DESCRIBED, *CUT]]
TEXTS += [*OF_NO_MODE, *TYPED, *MEMORY, *ORDINARY, *ASKED, *OTHER_NAME, *OF_RELEASES, FIT]
TEXTS += [wrapper(text) for wrapper in [*WRAPPERS, in_a_window] for _, text in ERRORS[::9]]
TEXTS += BEGUN_LATE
FEW = [*TYPED, *MEMORY, *OF_RELEASES]  # enough to show what the site has otherwise

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")


@pytest.fixture(scope="module")
def data():
    """What the site's page holds, as the browser reads it."""
    return json.loads(json.dumps(search_data.data(lambda mode: mode.notebook)))


def answers_of_site(questions):
    """Returns the answers to each pair of data and texts; one process is asked for all, which compiles the script once."""
    done = subprocess.run(
        ["node", ROOT / "tests" / "site_triage.js", SCRIPT],
        input=json.dumps([{"data": data, "texts": texts} for data, texts in questions]),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def differences(*questions):
    """Returns for each pair of data and texts those that the site answers otherwise."""
    answered = zip(questions, answers_of_site(questions), strict=True)
    return [
        [text for text, answer in zip(texts, theirs) if not same(of_command(text), answer)]
        for (_, texts), theirs in answered
    ]


of_command = functools.cache(classify.triage)


def same(mine, theirs) -> bool:
    """Whether both name the same modes, as likely, for the same reasons, and show the same lines."""
    pairs = list(zip(mine.candidates, theirs["candidates"]))
    shown = [len(answer_text.lines_of(mine)), len(theirs["lines"]) + bool(mine.mode)]
    return (
        (mine.mode, mine.known, len(mine.candidates))
        == (theirs["mode"], theirs["known"], len(theirs["candidates"]))
        and abs(mine.confidence - theirs["confidence"]) < 0.002
        and all(
            (each.mode, each.because, each.fix, each.error)
            == (its["mode"], its["because"], its["fix"], its["error"])
            and abs(each.score - its["score"]) < 0.002
            for each, its in pairs
        )
        and shown[0] == shown[1]
    )


def with_number(**changed):
    return lambda data: data | {"number": data["number"] | changed}


def without_releases(data):
    return data | {"wordings": [each | {"releases": None} for each in data["wordings"]]}


def without_errors(data):
    return data | {"patterns": data["patterns"] | {"raised": ["nothing is raised", ""]}}


# What the page of the site may have otherwise, and texts that show it.
CHANGES = {
    "hint": (with_number(hint=0), FEW),
    "per_edit": (with_number(per_edit=1000), FEW),
    "name": (with_number(name=0), OTHER_NAME),
    "half": (with_number(half=2), FEW),
    "unknown": (with_number(unknown=3), FEW),
    "gap": (with_number(gap=0), FEW),
    "release": (with_number(release=1), OF_RELEASES),
    "releases": (without_releases, OF_RELEASES),
    "versions with Keras 3": (lambda data: data | {"with_keras_3": [2, 12]}, OF_RELEASES),
    "errors": (without_errors, FEW),
}


@pytest.fixture(scope="module")
def differing(data):
    """The texts that the site answers otherwise than the command, without and with each change of what its page holds."""
    changed = [(change(data), texts) for change, texts in CHANGES.values()]
    return dict(zip(["", *CHANGES], differences((data, TEXTS), *changed), strict=True))


@pytest.mark.slow
@needs_node
def test_the_site_answers_as_the_command_does(differing):
    assert len(TEXTS) > MANY
    assert differing[""] == []


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("name", CHANGES)
def test_what_the_site_has_otherwise_is_seen(differing, name):
    assert differing[name]


def test_expressions_are_written_for_a_browser():
    assert search_data.javascript(r"(?s)\A(?!x).(?i:ab)\Z") == [
        r"(?<![\s\S])(?!x).(?:[aA][bB])(?![\s\S])",
        "s",
    ]
    assert search_data.javascript(re.compile("^a", re.MULTILINE | re.IGNORECASE)) == ["^a", "im"]
