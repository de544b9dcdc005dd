"""Which of the program's lines to blame: where a value comes from, read in the program's own source. Runs nothing."""

import ast
import functools
from pathlib import Path


@functools.lru_cache(maxsize=64)
def tree_of(path: str, _: float) -> ast.Module | None:
    try:
        return ast.parse(Path(path).read_text())
    except (OSError, SyntaxError, ValueError):
        return None


def tree_at(path: str) -> ast.Module | None:
    file = Path(path)
    return tree_of(path, file.stat().st_mtime) if file.exists() else None


def around(path: str, line: int, kinds) -> ast.AST | None:
    """The innermost node of these kinds that the line belongs to."""
    tree = tree_at(path)
    found = [
        each
        for each in (ast.walk(tree) if tree else ())
        if isinstance(each, kinds) and each.lineno <= line <= each.end_lineno
    ]
    return min(found, key=lambda each: each.end_lineno - each.lineno, default=None)


def function_at(frame) -> ast.AST | None:
    return around(frame[0], frame[1], ast.FunctionDef | ast.AsyncFunctionDef)


def statement_at(frame) -> ast.AST | None:
    return around(frame[0], frame[1], ast.stmt)


def parameters(function) -> list[str]:
    given = function.args if function is not None else None
    listed = [*given.posonlyargs, *given.args, *given.kwonlyargs] if given else []
    return [each.arg for each in listed]


def names_under(node) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def same_words(one, other) -> bool:
    """Whether two lines are one, or say the same in the same function."""
    if list(one) == list(other):
        return True
    said = [statement_at(frame) for frame in (one, other)]
    alike = all(said) and ast.dump(said[0]) == ast.dump(said[1])
    return alike and (one[0], one[2]) == (other[0], other[2])


def deciding(at, made) -> tuple:
    """The frames from the function on in which a thing was put together: what is done with it is decided there."""
    homes = {(frame[0], frame[2]) for frame in made}
    for i, frame in enumerate(at):
        if (frame[0], frame[2]) in homes:
            return tuple(at[i:])
    return tuple(at)


def assigned_before(frame, name: str) -> list | None:
    """The last line before a frame, in its function, that gives a name its value."""
    scope = function_at(frame) or tree_at(frame[0])
    found = [
        each
        for each in (ast.walk(scope) if scope else ())
        if isinstance(each, ast.Assign | ast.AugAssign) and each.lineno < frame[1]
        if name in {n for t in assigned_targets(each) for n in names_under(t)}
    ]
    last = max(found, key=lambda each: each.lineno, default=None)
    return [frame[0], last.lineno, frame[2]] if last else None


def assigned_targets(assignment) -> list:
    return getattr(assignment, "targets", None) or [assignment.target]


def name_given(frame, methods: tuple, place: int = 0) -> str:
    """The name that is given, or called and given, at this place, to the call of one of these methods in a line."""
    statement = statement_at(frame)
    for each in ast.walk(statement) if statement else ():
        if isinstance(each, ast.Call) and called_name(each) in methods and len(each.args) > place:
            given = each.args[place]
            given = given.func if isinstance(given, ast.Call) else given
            return given.id if isinstance(given, ast.Name) else ""
    return ""


def called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def calls_in(frame) -> list[str]:
    """The names of the functions that a line calls."""
    statement = statement_at(frame)
    nodes = ast.walk(statement) if statement else ()
    return [called_name(each) for each in nodes if isinstance(each, ast.Call)]


def from_value(at, methods: tuple) -> tuple:
    """The line that gave the first name_given its value: an assignment in the same function, or what a caller passed."""
    if not at:
        return ()
    name = name_given(at[0], methods)
    made = assigned_before(at[0], name) if name else None
    if made:
        return (made, *at)
    passed = name in parameters(function_at(at[0])) and len(at) > 1
    return tuple(at[1:] if passed else at)


def from_choice(at) -> tuple:
    """The line that chose a function or a number which callers have passed on to here, under whatever names."""
    statement = statement_at(at[0]) if at else None
    names = names_under(statement) if statement else []
    for name in [*names, *(inner for each in names for inner in names_behind(at[0], each))]:
        chosen = chosen_for(tuple(at), name)
        if chosen:
            return (chosen, *at)
    return tuple(at)


def names_behind(frame, name: str) -> list[str]:
    made = assigned_before(frame, name)
    written = statement_at(made) if made else None
    return names_under(written.value) if written is not None else []


def chosen_for(at: tuple, name: str) -> list | None:
    """Follows a parameter from caller to caller, up to where a plain name or number was given to it."""
    at, name = passed_from(at, name)
    while at:
        made = assigned_before(at[0], name)
        if made:
            return made if is_plain(statement_at(made).value) else None
        at, name = passed_from(at, name)
    return None


def is_plain(value) -> bool:
    """A name or a number; a switch such as `training=True` chooses nothing that a rule is after."""
    number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return number or isinstance(value, ast.Name | ast.Attribute)


def passed_from(at: tuple, name: str) -> tuple[tuple, str]:
    """The frames from which a parameter was passed, and the name that it has there."""
    for i, frame in enumerate(at[:-1]):
        if owns(frame, at[0], name):
            function = function_at(frame)
            place = parameters(function).index(name)
            return at[i + 1 :], name_given(at[i + 1], (function.name,), place)
    return passed_to_maker(at, name)


def passed_to_maker(at: tuple, name: str) -> tuple[tuple, str]:
    """The same for a function that was made in another, which has returned since and is in no frame."""
    makers = [each for each in functions_around(at[0]) if name in parameters(each)]
    for maker in makers[-1:]:
        for i, frame in enumerate(at):
            given = given_to(maker, function_at(frame), parameters(maker).index(name))
            if given:
                return at[i:], given
    return (), ""


def functions_around(frame) -> list:
    tree = tree_at(frame[0])
    nodes = ast.walk(tree) if tree else ()
    found = [each for each in nodes if isinstance(each, ast.FunctionDef)]
    return [each for each in found if each.lineno <= frame[1] <= each.end_lineno]


def given_to(maker, scope, place: int) -> str:
    """The name that a function gives at this place where it calls the maker."""
    calls = [each for each in ast.walk(scope) if isinstance(each, ast.Call)] if scope else []
    given = [
        each.args[place]
        for each in calls
        if called_name(each) == maker.name and len(each.args) > place
    ]
    return next((each.id for each in given if isinstance(each, ast.Name)), "")


def owns(frame, inner, name: str) -> bool:
    """Whether a name of an inner function is a parameter of the function that a frame is in."""
    function = function_at(frame)
    around_it = function is not None and function.lineno <= inner[1] <= function.end_lineno
    return around_it and frame[0] == inner[0] and name in parameters(function)


def from_caller(at) -> tuple:
    """Up to whoever decides: a function that only hands on what it is given has decided nothing."""
    at = tuple(at)
    while len(at) > 1:
        function, statement = function_at(at[0]), statement_at(at[0])
        handed_on = set(parameters(function)) & set(names_under(statement)) if statement else ()
        if not handed_on or (at[1][2] == "<module>" and has_literals(statement)):
            break
        at = at[1:]
    return at


def has_literals(statement) -> bool:
    """Whether a value is written into a call here."""
    calls = [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
    given = [argument for call in calls for argument in call.args]
    return any(isinstance(each, ast.Constant | ast.Tuple | ast.List | ast.Dict) for each in given)


def from_literal(at) -> tuple:
    """The line of this function in which what is used here was written down."""
    statement = statement_at(at[0]) if at else None
    for name in names_under(statement) if statement else ():
        made = assigned_before(at[0], name)
        written = statement_at(made) if made else None
        if isinstance(getattr(written, "value", None), ast.Constant | ast.Dict | ast.List):
            return (made, *at)
    return tuple(at)


def from_factory(at) -> tuple:
    """Up to whoever calls a function that is nothing but this line."""
    at = tuple(at)
    while len(at) > 1 and is_factory(at[0]):
        at = at[1:]
    return at


def is_factory(frame) -> bool:
    function = function_at(frame)
    if function is None:
        return False
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return len(body) == 1 and isinstance(body[0], ast.Return)


def from_condition(at) -> tuple:
    """The frame in which a condition or a loop leads to what failed."""
    for i, frame in enumerate(at):
        statement = statement_at(frame)
        calls = (
            [each for each in ast.walk(statement) if isinstance(each, ast.Call)]
            if statement
            else []
        )
        if any(called_name(each) in ("cond", "case", "while_loop") for each in calls):
            return tuple(at[i:])
    return tuple(at)


def returned(at) -> tuple:
    """The line that ends the function that is given to `run`, wherever up the frames that function is defined."""
    name = next(filter(None, (given_to_run(frame) for frame in at)), "")
    for i, frame in enumerate(at):
        ends = [each for each in defined_in(frame, name) if isinstance(each, ast.Return)]
        if ends:
            return ([frame[0], ends[-1].lineno, name], *at[i:])
        function = function_at(frame)
        if name in parameters(function) and i + 1 < len(at):
            name = name_given(at[i + 1], (function.name,), parameters(function).index(name)) or name
    return tuple(at)


def given_to_run(frame) -> str:
    """The name of the step that a function, or one that is defined in it, gives to `run`."""
    function = function_at(frame)
    own = name_given(frame, ("run",))
    inner = [each for each in ast.walk(function) if isinstance(each, ast.Call)] if function else []
    names = [each.args[0].id for each in inner if called_name(each) == "run" and is_named(each)]
    return own or next(iter(names), "")


def is_named(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name)


def defined_in(frame, name: str) -> list:
    """All that belongs to the functions of this name in the function of a frame."""
    scope = function_at(frame) or tree_at(frame[0])
    nodes = ast.walk(scope) if scope and name else ()
    found = [each for each in nodes if isinstance(each, ast.FunctionDef) and each.name == name]
    return [inner for each in found for inner in ast.walk(each)]


def code_at(path: str, line: int) -> str:
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
