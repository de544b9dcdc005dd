"""Loud modes: an exception is named by triage, and what was observed before it says which line is to blame."""

import re

from ...experiments.error_text import useful_line
from ...triage import classify
from ..recording import Finding, Observation
from . import blame
from .silent import is_part
from .tracing import by_source, nested_function

RAISED_FRAME = re.compile(r'File "([^"]+)", line \d+')


def findings_of_errors(runs: list[Observation]) -> list[Finding]:
    found = [finding_of_error(each) for each in runs]
    return [each for each in found if each]


def finding_of_error(run: Observation) -> Finding | None:
    raised = run.last("raised")
    said = classify.triage(raised["text"]) if raised else None
    if not said or not said.mode:
        return None
    mode = by_source(said.mode, raised, innermost(raised))
    if mode == "fm38" and by_optimizer(raised):
        return None
    at = blamed(mode, run, raised)
    words = useful_line(raised["text"])
    says = f"{raised['error']}: {words.removeprefix(raised['error'] + ': ')}"[:300]
    return Finding(mode, at, says, f"raised on {run.devices} devices", (run.devices,))


def by_optimizer(raised: dict) -> bool:
    """Whether an optimizer of Keras writes there, to what it keeps for itself: that is nothing the program has chosen."""
    frames = [each for each in RAISED_FRAME.findall(raised["text"]) if "/tensorflow/" not in each]
    return bool(frames) and "keras" in frames[-1] and "/optimizers/" in frames[-1]


def blamed(mode: str, run: Observation, raised: dict) -> tuple:
    at = innermost(raised)
    return tuple(BLAMED[mode](run, at) if mode in BLAMED else at) or at


def innermost(raised: dict) -> tuple:
    """The frames of the program; those of a traced function are told in the message, and are further in."""
    inside = raised.get("inside", ())
    return tuple([*inside, *[each for each in raised["at"] if each not in inside]])


# What decides, where that is not the innermost line. Each gets the run and the frames, and returns frames.


def made_outside(run: Observation, at) -> tuple:
    """The first variable of a model that no strategy knows, though there is one."""
    strategies = run.of("strategy")
    single = [each for each in run.of("variable") if each["maker"] == "layer" and each["at"]]
    outside = [each for each in single if not each["copies"] and not is_part(run, each)]
    made = strategies[0]["at"] if strategies else ()
    return blame.deciding(outside[0]["at"], [*made, *at]) if outside else at


def path_given(run: Observation, at) -> tuple:
    methods = ("restore", "read", "load_weights", "save_weights", "load_model", "save", "load")
    return blame.from_value(at, methods)


def architecture(run: Observation, at) -> tuple:
    """Where the model was built that does not take the weights, or where a number for it was written down."""
    name, called, _ = blame.code_at(*at[0][:2]).partition(".load_weights(") if at else ("", "", "")
    made = blame.assigned_before(at[0], name) if called and name.isidentifier() else None
    return (made, *at) if made else blame.from_literal(at)


def where_made_up(kind: str):
    """The frame of the function in which a thing was made: what is done with it is decided there."""

    def decide(run: Observation, at) -> tuple:
        made = made_of(run, kind)
        return blame.deciding(at, blame.from_factory(made))

    return decide


def made_of(run: Observation, maker: str) -> list:
    found = [each["at"] for each in run.of("variable") if each["maker"] == maker and each["at"]]
    return found[0] if found else []


def compiled_again(run: Observation, at) -> tuple:
    """Where a used optimizer was given a model with more variables; without such a place, where it was made."""
    given = run.last("compiled").get("at")
    return tuple(given) if given else where_made_up("optimizer")(run, at)


def unbuilt(run: Observation, at) -> tuple:
    found = run.last("unbuilt")
    return blame.deciding(found["at"], found["made"]) if found else at


def empty_gradient(run: Observation, at) -> tuple:
    found = [each["at"] for each in run.of("gradient") if each["missing"]]
    return tuple(found[-1]) if found else at


def loss_without_gradient(run: Observation, at) -> tuple:
    return blame.from_value(empty_gradient(run, at), ("gradient",))


def optimizer_made(run: Observation, at) -> tuple:
    return tuple(made_of(run, "optimizer")) or at


def last_strategy(run: Observation, at) -> tuple:
    return tuple(run.last("strategy").get("at", at))


def strategy_given(run: Observation, at) -> tuple:
    return blame.from_caller(last_strategy(run, at))


def scope_opened(run: Observation, at) -> tuple:
    strategies = run.of("strategy")
    return blame.deciding(at, strategies[-1]["at"]) if strategies else at


BLAMED = {
    "fm03": made_outside,
    "fm04": path_given,
    "fm06": architecture,
    "fm08": path_given,
    "fm10": compiled_again,
    "fm11": unbuilt,
    "fm12": lambda run, at: blame.from_factory(at),
    "fm13": empty_gradient,
    "fm15": lambda run, at: blame.from_condition(at),
    "fm17": lambda run, at: blame.from_caller(at),
    "fm18": strategy_given,
    "fm20": lambda run, at: blame.returned(at),
    "fm22": lambda run, at: blame.returned(at),
    "fm31": scope_opened,
    "fm32": optimizer_made,
    "fm34": loss_without_gradient,
    "fm36": last_strategy,
    "fm40": nested_function,
}
