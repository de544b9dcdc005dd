"""The examiner's rule for fm08: a restart that does not find what was saved."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    found,
    loaded,
    modes,
    run,
    saved,
    stack,
    updated,
    values,
    variable,
)
from strategy_clinic.examiner.recording import Moment, Role
from strategy_clinic.observer.events import (
    CheckpointRestored,
    CheckpointSought,
    ExceptionRaised,
    FileMoved,
    LoadUnused,
    LookedFor,
    OptionRead,
    Outcome,
    SaveKind,
    Started,
    StepEnded,
)

BEFORE = run(saved(made_at=OTHER), role=Role.STOPPED)


def restored(path="ck-1", made_at=OTHER):
    return CheckpointRestored(LINE, path, made_at, (1, 2), (), "")


def test_a_restart_that_does_not_find_what_was_saved():
    (finding,) = found(run(restored(None), before=BEFORE))
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "ck-1 was there" in str(finding.proof)


@pytest.mark.parametrize(
    "events, before",
    [
        ([restored(None), saved(made_at=OTHER)], None),
        ([restored(), restored(None)], BEFORE),
        ([restored(None)], run(saved(made_at=LINE))),
        ([restored(None)], run(saved(made_at=OTHER, kind=SaveKind.MODEL))),
        ([], BEFORE),
        ([replace(restored(None), location=())], BEFORE),
    ],
    ids=[
        "first start",
        "found at first",
        "another object",
        "a model's file",
        "no restore",
        "no line",
    ],
)
def test_a_restore_that_has_nothing_to_find(events, before):
    assert modes(run(*events, before=before)) == []


# A program that asks for its latest checkpoint


def sought(path=None, nearby=("runs/monday/ck-1",), folder="runs", **changes):
    return replace(CheckpointSought(LINE, folder, path, tuple(nearby)), **changes)


SAVED = saved(path="runs/monday/ck-1")
KERAS = saved(path="runs/monday/ck-1", kind=SaveKind.MODEL)


@pytest.mark.parametrize(
    "recording",
    [
        run(SAVED, sought()),
        run(Started(2, "/home/me"), saved(path="/home/me/runs/monday/ck-1"), sought()),
        run(KERAS, sought()),
        run(sought(), before=run(SAVED, role=Role.STOPPED)),
    ],
    ids=["below the folder", "by its whole path", "a file of Keras", "before a restart"],
)
def test_a_checkpoint_near_the_place_where_it_is_sought(recording):
    (finding,) = found(recording)
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "ck-1 was there" in str(finding.proof)


def test_a_checkpoint_that_is_sought_where_each_start_saves_a_file_of_keras():
    weights = saved(path="runs/last.weights.h5", kind=SaveKind.MODEL)
    looks = sought(nearby=[weights.path])
    killed = run(weights, role=Role.STOPPED)
    (finding,) = found(run(looks, weights, before=killed))
    assert "saves files of Keras" in str(finding.message)
    assert modes(run(looks, weights)) == []
    assert modes(run(looks, replace(weights, path="runs/ck-1"), before=killed)) == []


@pytest.mark.parametrize(
    "events",
    [
        [sought(), SAVED],
        [SAVED, sought("runs/monday/ck-1", nearby=())],
        [SAVED, sought(nearby=())],
        [saved(path="runs/friday/ck-1"), sought()],
        [SAVED, sought(), sought("runs/monday/ck-1", nearby=())],
        [SAVED, sought(), restored("runs/monday/ck-1")],
        [SAVED, sought(), saved(path="runs/ck-1")],
        [KERAS, sought(), saved(path="elsewhere/ck-1")],
        [SAVED, sought(location=())],
    ],
    ids=[
        "a first start",
        "found",
        "nothing is near",
        "near is what another program saved",
        "found in the next folder",
        "restored nevertheless",
        "the first start of a second phase",
        "files of Keras beside checkpoints",
        "on no line",
    ],
)
def test_a_checkpoint_that_is_rightly_not_found(events):
    assert modes(run(*events)) == []


@pytest.mark.parametrize("folder, expected", [("runs/best", [("fm08", 7)]), ("runs/bes", [])])
def test_a_checkpoint_that_is_sought_by_the_prefix_of_its_path(folder, expected):
    """Also in a program that asks for it in its folder elsewhere."""
    files = {"nearby": ("runs/best-1",)}
    later = sought("runs/best-1", nearby=())
    events = saved(path="/home/me/runs/best-1"), sought(folder=folder, **files), later
    assert modes(run(Started(2, "/home/me"), *events)) == expected


def test_what_is_saved_and_loaded_after_it_is_no_other_file():
    later = loaded(path="export"), saved(path="export", kind=SaveKind.MODEL)
    assert modes(run(SAVED, sought(), later[0])) == []
    assert modes(run(SAVED, sought(), later[1], later[0])) == [("fm08", 7)]


def test_a_model_that_is_loaded_and_not_used():
    (finding,) = found(run(LoadUnused(LINE, "best.keras", "best", "model")))
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "model, which has the same shapes and other values, is used" in str(finding.proof)
    assert modes(run(LoadUnused((), "best.keras", "best", "model"))) == []
    unused = LoadUnused(LINE, "best.keras", "best", "model")
    assert modes(run(unused, outcome=Outcome.RAISED)) == [], "it may have used it later"


# Programs that are started again and begin from zero

PROGRAM = """\
import os
PATH = "model.keras"
def start(given=PATH):
    BackupAndRestore(f"backup_{time.time()}")
    CheckpointManager(checkpoint, folder).restore_or_initialize()
    if os.path.exists("checkpoints/model.keras"):
        model = load_model(PATH)
"""
BACKUP, MANAGER, ASKED = 4, 5, 6
START = Started(2, "/program")
BEGINS = StepEnded(1, (), values({1: [0.5]}), (), ())


@pytest.fixture
def program(tmp_path):
    """Writes a program, and returns the stack of a line of it."""

    def at(line, text=PROGRAM):
        (tmp_path / "train.py").write_text(text)
        return stack(tmp_path / "train.py", line, function="start")

    return at


def from_zero(before, now, path="model.keras", begins=BEGINS):
    """What is found if a program has looked for something, saved, was killed, and looks for it again."""
    made = START, variable(1), updated()
    whole = run(*made, *before, begins, saved(path=path))
    killed = run(*made, *before, begins, saved(path=path), role=Role.STOPPED)
    return found(
        run(
            *made,
            *now,
            BEGINS,
            role=Role.RESTARTED,
            before=killed,
            whole=whole,
            moment=Moment.AFTER,
        )
    )


def test_a_backup_in_a_folder_that_is_new_at_each_start(program):
    line = program(BACKUP)
    looks = [LookedFor(line, folder, True) for folder in ("backup_1", "backup_2")]
    (finding,) = from_zero(looks[:1], looks[1:], "backup_1/latest.weights.h5")
    assert (finding.mode, finding.line) == ("fm08", BACKUP)
    assert "each start looks in another folder: backup_1/latest.weights.h5" in str(finding.message)


NAMED = """\
import argparse
class Trainer:
    def __init__(self):
        folder = os.path.join("runs", f"job-{os.getpid()}")
        self.manager = CheckpointManager(self.checkpoint, directory=folder)

    def start(self):
        latest = self.manager.latest_checkpoint
"""


def test_a_folder_that_an_earlier_line_names_anew_at_each_start(program):
    looks = [CheckpointSought(program(8, NAMED), each, None, ()) for each in ("runs/1", "runs/2")]
    (finding,) = from_zero(looks[:1], looks[1:], "runs/1/ckpt-1")
    assert (finding.mode, finding.line) == ("fm08", 4)
    given = NAMED.replace("{os.getpid()}", "{os.environ['JOB']}")
    looks = [CheckpointSought(program(8, given), each, None, ()) for each in ("runs/1", "runs/2")]
    asks = OptionRead("JOB", "")
    assert from_zero([*looks[:1], asks], [looks[1], asks], "runs/1/ckpt-1") == []


@pytest.mark.parametrize(
    "before, now, path",
    [
        ("backup", "backup", "backup/latest.weights.h5"),
        ("backup_1", "backup_2", "model.keras"),
    ],
    ids=["in the same folder", "nothing was saved there"],
)
def test_a_backup_that_is_not_lost(program, before, now, path):
    line = program(BACKUP)
    assert from_zero([LookedFor(line, before, True)], [LookedFor(line, now, True)], path) == []


def test_a_folder_with_the_time_that_the_program_lists_for_another_purpose(program):
    looks = [LookedFor(program(ASKED), folder, True) for folder in ("logs_1", "logs_2")]
    assert from_zero(looks[:1], looks[1:], "logs_1/latest.weights.h5") == []


def test_a_program_that_goes_on_beside_a_folder_with_the_time(program):
    looks = [LookedFor(program(BACKUP), folder, True) for folder in ("backup_1", "backup_2")]
    other = replace(BEGINS, initial_values=values({1: [0.1]}))
    assert from_zero(looks[:1], looks[1:], "backup_1/latest.weights.h5", other) == []


GIVEN_FOLDER = """\
import argparse
args = parser.parse_args()
{code}
manager = CheckpointManager(checkpoint, {folder})
checkpoint.restore(manager.latest_checkpoint)
"""
UNSET = (OptionRead("out", ""), OptionRead("epochs", "4"))


def begun_anew(program, code, options=UNSET, others=UNSET, folder="folder"):
    """Which lines are blamed if each start looks in another folder."""
    text = GIVEN_FOLDER.format(code=code, folder=folder)
    line = program(len(text.splitlines()), text)
    looks = [CheckpointSought(line, f"/new/{each}", None, ()) for each in (1, 2)]
    found = from_zero([*options, looks[0]], [*others, looks[1]], "/new/1/ckpt-1")
    return [each.line for each in found if each.mode == "fm08"]


@pytest.mark.parametrize(
    "code",
    [
        "folder = args.out or tempfile.mkdtemp()",
        "folder = args.out if args.out else tempfile.mkdtemp()",
        "folder = os.path.join(args.out or tempfile.mkdtemp(), 'ckpt')",
        "folder = args.out\nif not folder:\n    folder = tempfile.mkdtemp()",
        "folder = vars(args)['out'] or tempfile.mkdtemp()",
        "folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()",
        "def named(given):\n    return given or tempfile.mkdtemp()\nfolder = named(args.out)",
        "folder = time.strftime('%H')\nif args.out:\n    checkpoint.restore(args.out)",
        "folder: str = args.out or tempfile.mkdtemp()",
        "print(folder := args.out)",
        "for folder in [args.out]:\n    pass",
        "for i, folder in enumerate([args.out]):\n    pass",
        "folder = 'runs'\nfolder += args.out",
        "with TemporaryDirectory(dir=args.out) as folder:\n    pass",
        "folder, size = args.out, 3",
        "[folder, *others] = parts_of(args.out)",
    ],
)
def test_a_new_folder_in_place_of_an_option_that_is_not_given(program, code):
    assert begun_anew(program, code) == []


TAKES = "    return CheckpointManager(checkpoint, folder)\n"
CLASS = """\
class Manager:
    def __init__(self, folder):
        self.manager = CheckpointManager(checkpoint, folder)
"""
DATA = """\
class Manager{base}:
    folder: str
    def start(self):
        self.manager = CheckpointManager(checkpoint, self.folder)
"""
OWN = "class Own(Manager):\n    def __init__(self, path):\n        super().__init__(path)\n"


@pytest.mark.parametrize(
    "code",
    [
        f"def make(folder=args.out):\n{TAKES}make()",
        f"def make(*, size=1, folder=args.out):\n{TAKES}make()",
        f"async def make(folder):\n{TAKES}make(args.out)",
        f"def make(size, folder):\n{TAKES}make(4, **options_of(args.out))",
        f"@classmethod\ndef make(cls, folder):\n{TAKES}Job.make(args.out)",
        f"{CLASS}Manager(args.out)",
        f"{CLASS}class Own(Manager):\n    pass\nOwn(args.out)",
        f"{CLASS}{OWN}Own(args.out)",
        f"@dataclass\n{DATA.format(base='')}Manager(args.out)",
        f"{DATA.format(base='(NamedTuple)')}Manager(args.out)",
    ],
)
def test_a_new_folder_where_a_parameter_may_be_an_option(program, code):
    assert begun_anew(program, code, folder="'fixed'") == []


@pytest.mark.parametrize(
    "code",
    [
        "folder = tempfile.mkdtemp()",
        "folder: str = tempfile.mkdtemp()",
        "folder, label = tempfile.mkdtemp(), args.out",
        "folder = tempfile.mkdtemp()\na, b = split(args.out)",
        "folder = tempfile.mkdtemp()\nnames['out'] = args.out",
        "folder = os.path.join(args.out or 'runs', time.strftime('%H'))",
        "label = args.out or 'run'\nfolder = f'{label}-{os.getpid()}'",
        "folder = args.folder or tempfile.mkdtemp()",
        "args.out = tempfile.mkdtemp()\nfolder = args.out",
    ],
)
def test_a_new_folder_that_no_option_can_replace(program, code):
    """Though the program takes options for other things."""
    (line,) = begun_anew(program, code)
    assert line in range(3, 5)


def test_a_new_folder_that_is_the_default_of_an_option(program):
    options = [[OptionRead("out", f"/new/{each}")] for each in (1, 2)]
    assert begun_anew(program, "", *options, folder="args.out") == []
    assert begun_anew(program, "", options[0], options[0], folder="args.out") != []


def test_a_folder_of_another_file_that_is_an_attribute_of_the_options(program):
    assert begun_anew(program, "config = Config(**vars(args))", folder="config.out") == []


def test_a_restore_of_nothing_in_a_folder_that_is_an_option(program):
    text = GIVEN_FOLDER.format(code="folder = args.out or tempfile.mkdtemp()", folder="folder")
    sought = CheckpointSought(program(5, text), "/new/2", None, ())
    for options, expected in ((UNSET, []), ((), [("fm08", 7)])):
        assert modes(run(*options, sought, restored(None), before=BEFORE)) == expected


# What is loaded from another folder than the one where it is saved

LOADS = """\
import os
path = os.path.join(folder, "model.weights.h5")
model.load_weights(path)
model.load_weights("saved/model.weights.h5")
"""
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
OF_H5PY = (
    "FileNotFoundError: [Errno 2] Unable to synchronously open file (unable to open file: name = '{}', errno = 2, "
    "error message = 'No such file or directory', flags = 0, o_flags = 0)"
)
OF_KERAS = (
    "ValueError: File not found: filepath={}. Please ensure the file is an accessible `.keras` file"
)
OF_KERAS_2 = "OSError: No file or directory found at {}"
WEIGHTS = "model.weights.h5"


def not_found(at, message):
    return ExceptionRaised(at, message.partition(":")[0], f"Traceback\n{message}\n", ())


def second_start_fails(
    folder, text=LOADS, *, line=4, says=OF_H5PY, asks=f"saved/{WEIGHTS}", after=(), own=()
):
    """What is found if a program has saved below `runs`, and does not find a file when it is started again."""
    (folder / "train.py").write_text(text)
    save = saved(path=f"/program/runs/{WEIGHTS}", kind=SaveKind.MODEL)
    killed = run(START, save, role=Role.STOPPED, outcome=Outcome.KILLED)
    raised = not_found(stack(folder / "train.py", line), says.format(asks))
    fields = {"before": killed, "whole": run(START, save, *after), "outcome": Outcome.RAISED}
    second = run(START, *own, raised, role=Role.RESTARTED, moment=Moment.AFTER, **fields)
    return modes(second)


@pytest.mark.parametrize("says", [NO_FILE, OF_H5PY, OF_KERAS, OF_KERAS_2])
@pytest.mark.parametrize("asks", [f"saved/{WEIGHTS}", f"/my runs/of Monday/{WEIGHTS}"])
def test_a_file_that_is_saved_in_another_folder_than_it_is_loaded_from(tmp_path, says, asks):
    assert second_start_fails(tmp_path, says=says, asks=asks) == [("fm08", 4)]


@pytest.mark.parametrize(
    "says", [NO_FILE.replace("'", '"'), f"{NO_FILE}. Can't go on", f"{OF_KERAS_2}."]
)
def test_a_path_with_an_apostrophe_or_beside_one(tmp_path, says):
    asks = f"it's here/{WEIGHTS}"
    assert second_start_fails(tmp_path, says=says, asks=asks) == [("fm08", 4)]


def test_a_file_in_a_folder_with_spaces_that_is_not_saved_is_another(tmp_path):
    asks = f"my runs/{WEIGHTS} of Monday"
    assert second_start_fails(tmp_path, says=NO_FILE, asks=asks) == [("restart", 4)]


def test_the_line_that_puts_the_path_together_is_the_only_one(tmp_path):
    assert second_start_fails(tmp_path, line=3) == [("fm08", 2)]


SAVED_LATER = saved(path=f"/program/saved/{WEIGHTS}", kind=SaveKind.MODEL)


@pytest.mark.parametrize(
    "changes",
    [
        {"asks": "saved/vocabulary.txt"},
        {"asks": f"runs/{WEIGHTS}"},
        {"asks": f"/program/runs/{WEIGHTS}"},
        {"after": [SAVED_LATER]},
        {"own": [SAVED_LATER]},
        {"says": "ValueError: {} has 3 layers and not 4"},
        {"says": "OSError: Unable to open file (file signature not found: name = '{}')"},
        {"after": [FileMoved(LINE, "runs/new", f"saved/{WEIGHTS}")]},
        {"own": [FileMoved(LINE, "runs", "saved")]},
    ],
    ids=[
        "another file",
        "where it was saved",
        "by its whole path",
        "saved there at the end",
        "saved there by itself",
        "another error",
        "a file that cannot be read",
        "moved there at the end",
        "its folder is moved there",
    ],
)
def test_a_second_start_that_fails_for_another_reason(tmp_path, changes):
    assert [mode for mode, _ in second_start_fails(tmp_path, **changes)] == ["restart"]


def test_a_program_that_moves_another_file_or_has_only_such_words(tmp_path):
    text = LOADS.replace("import os", "np.copy(x); name.replace('a', 'b'); os.rename")
    others = [FileMoved(LINE, "logs/old", "logs/new")]
    assert second_start_fails(tmp_path, text=text, after=others) == [("fm08", 4)]


# A file with another number


def load_fails(folder, asks, *paths, moved=(), says=OF_H5PY):
    """What is found if a program has saved these files, and then does not find another."""
    (folder / "train.py").write_text(LOADS)
    saves = [saved(path=f"/program/{path}", kind=SaveKind.MODEL) for path in paths]
    raised = not_found(stack(folder / "train.py", 4), says.format(asks))
    return modes(run(START, *saves, *moved, raised, outcome=Outcome.RAISED))


@pytest.mark.parametrize(
    "asks, paths, changes",
    [
        ("logs/ep004.weights.h5", ["logs/ep004.weights.h5"], {}),
        ("logs/ep004.weights.h5", ["logs/best.weights.h5"], {}),
        ("other/ep004.weights.h5", ["logs/ep003.weights.h5"], {}),
        ("logs/best.weights.h5", ["logs/ep003.weights.h5"], {}),
        ("logs/ep004.weights.h5", [], {}),
        ("logs/ep004.weights.h5", ["logs/ep003.weights.h5"], {"says": "ValueError: {} is old"}),
        (
            "logs/ep004.weights.h5",
            ["logs/ep003.weights.h5"],
            {"moved": [FileMoved(LINE, "logs/ep004.weights.h5", "best.weights.h5")]},
        ),
    ],
    ids=[
        "deleted",
        "another name",
        "another folder",
        "no number",
        "nothing saved",
        "another error",
        "moved",
    ],
)
def test_a_file_that_is_missing_for_another_reason(tmp_path, asks, paths, changes):
    assert load_fails(tmp_path, asks, *paths, **changes) == []
