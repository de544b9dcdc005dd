"""Events and recordings as a watched program makes them, and how a program with servers begins, for tests of the examiner."""

from dataclasses import replace

from strategy_clinic.examiner.divergence import first_divergence
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import Replace
from strategy_clinic.examiner.recording import Recording, Role
from strategy_clinic.examiner.rule import ModeRules, Runs, mode_rules
from strategy_clinic.observer.events import (
    Definition,
    Ended,
    Frame,
    GradientsApplied,
    Loaded,
    ModelCompiled,
    OmittedVariable,
    OptimizerState,
    Outcome,
    Owner,
    Sample,
    Saved,
    SaveKind,
    StepEnded,
    StrategyMade,
    VariableMade,
    VariableValue,
    VariableWritten,
)
from strategy_clinic.observer.replacements import Replacement

LINE = (Frame("/program/train.py", 7, "main"),)
OTHER = (Frame("/program/train.py", 20, "main"),)
# One text for all tasks: workers and servers wait here until the chief has ended.
AS_A_TASK = """\
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        address = {"job_name": resolver.task_type, "task_index": resolver.task_id}
        tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", **address).join()"""


def run(*events, devices=2, role=Role.WATCHED, **fields):
    return Recording(role, devices, tuple(events), **fields)


def found(*recordings):
    diagnosis = diagnose(Runs(recordings))
    assert not [each for each in diagnosis.unseen if each.startswith("not everything")]
    return diagnosis.findings


def modes(*recordings):
    return [(finding.mode, finding.line) for finding in found(*recordings)]


def answering(**answers):
    """Makes follow-up runs: a recording for each kind of change by its name, `same` for the run without a change.

    The list of what was asked is its attribute `asked`.
    """

    def make(follow_up):
        make.asked.append(follow_up.change)
        return answers["same" if follow_up.change is None else type(follow_up.change).__name__]

    make.asked = []
    return make


# Events


def stack(path, *lines, function="main"):
    return tuple(Frame(str(path), line, function) for line in lines)


def values(entries):
    """By number, the entries of variables; their norm is of no matter."""
    return tuple(VariableValue(n, Sample(0.0, tuple(each))) for n, each in entries.items())


def variable(number, **changes):
    usual = VariableMade(LINE, number, f"v{number}", (3,), "float32", Owner.LAYER, 0, (), "AUTO")
    return replace(usual, **changes)


MINE = variable(1, maker=Owner.USER)


def omitted(**changes):
    return replace(
        OmittedVariable(1, trained=False, read=True, changed=True, scalar=2.0), **changes
    )


def saved(held=(2,), left=(), **changes):
    usual = Saved(OTHER, SaveKind.CHECKPOINT, "ck-1", (), tuple(held), tuple(left), ())
    return replace(usual, **changes)


def strategy(replicas=2, location=LINE):
    return StrategyMade(location, "MirroredStrategy", replicas)


def state(**changes):
    return replace(OptimizerState("Adam", (1,), 3, (4, 5, 6), "0.1"), **changes)


def updated(location=OTHER, gradients=2, **changes):
    return GradientsApplied(location, gradients, 0, state(**changes))


def compiled(location, *definitions):
    return ModelCompiled(location, 1, definitions=definitions)


def defined(use, path, line, function, name=""):
    return Definition(use, name or function, Frame(str(path), line, function))


def ended(entries=(), **changes):
    usual = Ended(Outcome.FINISHED, 0, 1.0, values(dict(entries)), (), ())
    return replace(usual, **changes)


def loaded(**changes):
    return replace(Loaded(LINE, "load", "ck-1", (2,), (2,), True, 2), **changes)


def written(**changes):
    return replace(VariableWritten(OTHER, 1, Owner.USER, 2), **changes)


# Runs that differ, and what is reported of them

NUDGED = frozenset({Replacement.NUDGED_WEIGHTS})
WRITTEN = written(location=OTHER, writer=Owner.OPTIMIZER)


def trained(value, *events, devices=2, **fields):
    """A run whose first step takes the one weight from 1 to this value, written on line 20."""
    step = StepEnded(1, values({1: [value]}), values({1: [1.0]}), (), ())
    role = Role.WATCHED if devices > 1 else Role.COMPARED
    made = strategy(devices), variable(1), updated(), WRITTEN
    return run(*made, *events, step, ended({1: [value]}), devices=devices, role=role, **fields)


def settled(one, other, answers=(), without=()):
    """What is reported, and which replacements were tried. `answers` maps replacements to the values on 1 and 2 devices."""
    known = {frozenset(key): pair for key, pair in dict(answers).items()}
    asked = []

    def again(follow_up):
        change = follow_up.change
        assert isinstance(change, Replace)
        asked.append((follow_up.recording.devices, change))
        if change.replacements == NUDGED and NUDGED not in known:
            return replace(follow_up.recording, role=Role.CHANGED)
        pair = known.get(change.replacements, (0.9, 0.8))
        return replace(trained(pair[follow_up.recording.devices - 1]), role=Role.CHANGED)

    divergence = first_divergence(one, other)
    rules = ModeRules(without, {}, (), suspects=mode_rules().suspects)
    diagnosis = diagnose(Runs([other, one], [divergence] if divergence else []), again, rules)
    return diagnosis, [(change.replacements - NUDGED, change.keras) for _, change in asked]
