"""What tells whether the user of a program can give a value as an option."""

import ast

import pytest
from recorded import run
from strategy_clinic.examiner.options import MOST_STEPS, Options, Origin
from strategy_clinic.observer.events import Frame, OptionRead


def origin(path, code, *read):
    path.write_text(code)
    return Origin(Frame(str(path), 1, "main"), Options(run(*read)))


def value(code):
    return ast.parse(code, mode="eval").body


@pytest.mark.parametrize("names, expected", [(MOST_STEPS, True), (MOST_STEPS + 1, False)])
def test_an_option_is_followed_through_some_names(tmp_path, names, expected):
    chain = [f"name{i} = name{i + 1}" for i in range(names - 1)]
    code = "\n".join([*chain, f"name{names - 1} = args.out"])
    place = origin(tmp_path / "program.py", code, OptionRead("out", ""))
    assert place.reads_option(value("join(name0, 'last')")) is expected


def test_each_value_of_a_name_is_looked_at_once(tmp_path):
    """Names that follow from each other, of which a long program has many, have as many paths as steps allow."""
    names = [f"name{i}" for i in range(30)]
    code = "\n".join(f"{name} = [{', '.join(names)}]" for name in names)
    looked = []
    place = origin(tmp_path / "program.py", code, OptionRead("out", ""))
    parts = place.reached(value("name0"), lambda node: looked.append(node) or ast.walk(node))
    assert len([*parts]) > len(looked) == 1 + len(names)
    assert not place.reads_option(value("name0"))
    assert place.new_lines(value("name0")) == []


@pytest.mark.parametrize(
    "text, lines",
    [
        ("time.time()", [1]),
        ("join('runs', uuid.uuid4().hex)", [1]),
        ("datetime.now().isoformat()[:10]", [1]),
        ("Path(mkdtemp()) / 'last'", [1]),
        ("args.time", []),
        ("args.now.lower()", []),
        ("names['time']", []),
    ],
)
def test_what_makes_a_value_anew(tmp_path, text, lines):
    """An option may have the name of a clock."""
    place = origin(tmp_path / "program.py", "", OptionRead("out", ""))
    assert place.new_lines(value(text)) == lines


@pytest.mark.parametrize(
    "code",
    [
        "a, b = load(args.out)",
        "folders['last'] = args.out",
        "prepare(**vars(args))",
        "prepare(*args.out)",
        "[x, *y], z = args.out",
    ],
)
def test_what_no_name_of_a_value_is_given(tmp_path, code):
    place = origin(tmp_path / "program.py", code, OptionRead("out", ""))
    assert not place.reads_option(value("'fixed' + 'x'"))
    assert not place.reads_option(value("other.folder"))
