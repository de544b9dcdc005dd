"""Edits that several modes share: a number that a restart forgets is kept as another one is, or with its object."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .blame import name_of
from .edits import Edit, inserted
from .repair import Binding, Source, Ways, names
from .repair_saved import Holder, added, savers, values_in

# Classes whose variables a checkpoint finds.
TRACKABLE = {"Module", "Layer", "Model", "Metric", "AutoTrackable"}


def keep_number(source: Source, line: int) -> Ways:
    """Yields the edits by which what a statement makes is saved and read again: that of this line, or one that is told."""
    for each in (line, *source.told):
        statement = source.simple_statement(each)
        for target, _ in pairs_of(statement) if isinstance(statement, Binding) else ():
            if isinstance(target, ast.Name | ast.Attribute):
                yield from beside_another(source, source.code(target))
        if statement:
            yield from in_state(source, statement)
            yield from in_function(source, statement)


# As another one


@dataclass(frozen=True)
class Read:
    """A statement that takes a value from what was saved, by the key that it was saved with."""

    key: str
    target: str
    statement: ast.Assign


def beside_another(source: Source, lost: str) -> Ways:
    """Yields copies of the places that save and read another value; those that make it a whole number last."""
    found = kept_beside(source, lost)
    for read, saves in sorted(found, key=lambda each: "int(" in source.code(each[0].statement)):
        name, line = lost.rpartition(".")[2], source.code(read.statement)
        for quote in "'\"":
            line = line.replace(f"{quote}{read.key}{quote}", f"{quote}{name}{quote}")
        kept = [kept_in(source, each, read, lost) for each in saves]
        again = source.insert_after(read.statement, renamed(line, read.target, lost))
        yield [*filter(None, kept), again]


def kept_beside(source: Source, lost: str) -> list[tuple[Read, list[Holder]]]:
    """Returns the values of the same object that are saved and read by a key, with what saves them, and not this one."""
    owner, _, name = lost.rpartition(".")
    holders: list[Holder] = [*source.of(ast.Dict), *source.of(ast.Call)]
    kept = [(each, values) for each in holders if (values := values_in(each))]
    found = []
    for read in reads(source):
        saves = [
            each
            for each, values in kept
            if (value := values.get(read.key)) and mentions(source, value, read.target)
        ]
        known = any(name in values_in(each) for each in saves)
        if saves and not known and owner == read.target.rpartition(".")[0] and lost != read.target:
            found.append((read, saves))
    return found


def reads(source: Source) -> list[Read]:
    found = []
    for each in source.of(ast.Assign):
        target = each.targets[0]
        keys = [key.slice for key in source.of(ast.Subscript, each.value)]
        keys += [call.args[0] for call in source.calls("get", each.value) if call.args]
        named = [key.value for key in keys if isinstance(key, ast.Constant)]
        is_alone = source.simple_statement(each.lineno) is each
        if isinstance(target, ast.Name | ast.Attribute) and is_alone:
            found += [Read(key, source.code(target), each) for key in named if isinstance(key, str)]
    return found


def kept_in(source: Source, holder: Holder, read: Read, lost: str) -> Edit | None:
    value = renamed(source.code(values_in(holder)[read.key]), read.target, lost)
    return added(source, holder, lost.rpartition(".")[2], value)


def mentions(source: Source, value: ast.expr, name: str) -> bool:
    return bool(whole_word(name).search(source.code(value)))


def renamed(code: str, name: str, other: str) -> str:
    return whole_word(name).sub(lambda _: other, code)


def whole_word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(name)}\b")


# As the state of its object

Setting = ast.Assign | ast.AnnAssign | ast.AugAssign
STATE = "tf.train.experimental.PythonState"
METHODS = """

    def serialize(self):
        return json.dumps([{values}], default=float)

    def deserialize(self, kept):
        [{values}] = json.loads(kept)"""


def in_state(source: Source, statement: ast.stmt) -> Ways:
    """Yields the edits by which a checkpoint has the numbers of an object, which its class writes as a text and reads."""
    own = source.class_of(statement)
    if own is None:
        return
    kept = ", ".join(f"self.{name}" for name in numbers_of(source, own))
    for held in held_in(source, own) if kept else ():
        methods = source.append(own, METHODS.format(values=kept))
        yield [derived(source, own), methods, *held]


def numbers_of(source: Source, own: ast.AST) -> dict[str, Setting]:
    """Returns the attributes of a class, or names of a function, that begin as a number or None and are set again."""
    found: dict[str, tuple[Setting, ast.expr | None]] = {}
    again: set[str] = set()
    is_class = isinstance(own, ast.ClassDef)
    within = {*ast.walk(own)}
    for each in settings(source):
        for target, value in pairs_of(each):
            name, is_attribute = name_of(target), isinstance(target, ast.Attribute)
            is_own = each in within if is_attribute else source.function(each) is own
            if is_attribute and not is_class or not is_attribute and not is_own:
                continue
            if is_own and name and name not in found:
                found[name] = each, value
            else:
                again.add(name)
    return {
        name: each for name, (each, value) in found.items() if name in again and is_number(value)
    }


def settings(source: Source) -> list[Setting]:
    """Returns the assignments of a file; those to a number that changes come after the others."""
    plain: list[Setting] = [*source.of(ast.Assign), *source.of(ast.AnnAssign)]
    return [*plain, *source.of(ast.AugAssign)]


def pairs_of(statement: Setting) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values)
        case ast.Assign(targets=targets, value=value):
            yield from ((each, value) for each in targets)
        case ast.AnnAssign(target=target, value=value):
            yield target, value
        case ast.AugAssign(target=target):
            yield target, None


def is_number(value: ast.expr | None) -> bool:
    code = "" if value is None else ast.unparse(value)
    return bool(re.fullmatch(r"None|-?[\d.]+(e-?\d+)?|.*\binf\b.*", code))


def derived(source: Source, own: ast.ClassDef) -> Edit:
    """Returns the edit that gives a class another base."""
    if own.bases:
        return inserted(source.end(own.bases[-1]), f", {STATE}")
    for word in own.keywords[:1]:
        return inserted(source.position(word.lineno, word.col_offset), f"{STATE}, ")
    line = source.lines[own.lineno - 1]
    after = line.index(own.name, line.index("class ") + len("class ")) + len(own.name)
    brackets = len(line[after:]) - len(re.sub(r"^\s*\(\s*\)", "", line[after:]))
    return Edit((own.lineno, after + 1), (own.lineno, after + 1 + brackets), f"({STATE})")


def held_in(source: Source, own: ast.ClassDef) -> Iterator[list[Edit]]:
    """Yields the edits by which a checkpoint has an object of a class; none if one finds it in another object."""
    if TRACKABLE & {*map(name_of, own.bases)}:
        yield []
    objects = [target for _, target, call in source.makers() if name_of(call.func) == own.name]
    for holder in savers(source):
        statement = source.statement(holder.lineno)
        seen = [each for each in objects if statement and source.can_see(statement, each)]
        names = [(name_of(each), source.code(each)) for each in seen]
        if source.class_of(holder) is own:
            names.append((own.name.lower(), "self"))
        for name, code in names:
            edit = added(source, holder, name, code)
            yield [edit] if edit else []


# As the state of what a function has

OF_FUNCTION = """\
class KeptNumbers({state}):
    def serialize(self):
        return json.dumps([{names}], default=float)

    def deserialize(self, kept):
        {word} {names}
        [{names}] = json.loads(kept)
"""
OF_GENERATOR = """\
class KeptGenerator({state}):
    def __init__(self, generator):
        self.generator = generator

    def serialize(self):
        return json.dumps(self.generator.bit_generator.state)

    def deserialize(self, kept):
        self.generator.bit_generator.state = json.loads(kept)


"""
OF_OBJECT = """\
class KeptObject({state}):
    def __init__(self, thing):
        self.thing = thing

    def serialize(self):
        kept = vars(self.thing)
        generators = {{k: v.bit_generator.state for k, v in kept.items() if hasattr(v, "bit_generator")}}
        numbers = {{k: v for k, v in kept.items() if v is None or isinstance(v, (int, float))}}
        return json.dumps([numbers, generators])

    def deserialize(self, kept):
        numbers, generators = json.loads(kept)
        vars(self.thing).update(numbers)
        for name, state in generators.items():
            vars(self.thing)[name].bit_generator.state = state


"""
GENERATORS = "default_rng", "Generator"  # of NumPy


def in_function(source: Source, statement: ast.stmt) -> Ways:
    """Yields the edits by which a checkpoint that a function makes has the numbers that it changes, from before it on."""
    function = source.function(statement)
    word = "nonlocal" if isinstance(function, ast.FunctionDef) else "global"
    for holder in savers(source):
        place = source.statement(holder.lineno)
        if place is None or source.function(holder) is not function:
            continue
        firsts = {
            name: above(source, each, place) for name, each in numbers_of(source, function).items()
        }
        known = [name for name, moved in firsts.items() if moved is not None]
        edit = added(source, holder, "numbers", "KeptNumbers()")
        if known and edit:
            text = OF_FUNCTION.format(state=STATE, names=", ".join(known), word=word)
            moves = dict.fromkeys(each for moved in firsts.values() for each in moved or ())
            yield [*moves, source.insert_before(place, *text.split("\n")), edit]


def of_generators(source: Source) -> Ways:
    """Yields the edits by which a checkpoint has a random generator of NumPy, which its class writes as a text."""
    for made, target, call in source.makers():
        is_generator = name_of(call.func) in GENERATORS
        for holder in savers(source) if is_generator else ():
            place = source.statement(holder.lineno)
            moved = above(source, made, place) if place else None
            if place is None or moved is None or not isinstance(target, ast.Name | ast.Attribute):
                continue
            seen = [source.code(target)] if moved else source.as_seen(place, target)
            text = OF_GENERATOR.format(state=STATE).splitlines()
            before = source.insert_before(source.outermost(place), *text)
            for code in seen:
                edit = added(source, holder, name_of(target), f"KeptGenerator({code})")
                yield [*moved, before, edit] if edit else []


def of_objects(source: Source) -> Ways:
    """Yields the edits by which a checkpoint has the numbers and generators of an object of a class of another file."""
    own = {each.name for each in source.of(ast.ClassDef)}
    made_of = [
        (made, target, call.func.id)
        for made, target, call in source.makers()
        if isinstance(call.func, ast.Name)
    ]
    for holder in savers(source):
        place = source.statement(holder.lineno)
        for made, target, kind in made_of:
            if place is None or source.is_later(made, place):
                continue
            is_other = kind[:1].isupper() and kind not in own
            for code in source.as_seen(place, target) if is_other else ():
                text = OF_OBJECT.format(state=STATE).splitlines()
                edit = added(source, holder, name_of(target), f"KeptObject({code})")
                before = source.insert_before(source.outermost(place), *text)
                yield [before, edit] if edit else []


def above(source: Source, made: Setting, place: ast.stmt) -> list[Edit] | None:
    """Returns the edits that move a statement above another one of its function if it is below; None if it cannot be moved."""
    if source.function(made) is not source.function(place) or made.lineno < place.lineno:
        return []
    around = [place, *(each for each in source.parents_of(place) if isinstance(each, ast.stmt))]
    block = source.block(made)
    known = made.value and names(made.value) <= source.names_before(place) | {*dir(builtins)}
    for each in around if known else ():
        if each in block:
            return source.move(made, above=each) or None
    return None
