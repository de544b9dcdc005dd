"""Checks fm58: `fit` took more steps than it was asked for, or raised; then the line that compiled the model is to blame."""

from ...examiner.blame import with_keyword
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, observed, reclassify, rule
from ...observer.events import ExceptionRaised, FitOverran, ModelCompiled, Stack


@reclassify("fm58")
def unless_one_step(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """An optimizer that a replica builds raises the same, which is fm32."""
    steps = [each.steps_per_execution for each in run.of(ModelCompiled)]
    return "fm32" if {*steps} == {1} else mode


@blames("fm58")
def compiled(recording: Recording, stack: Stack) -> Stack:
    """Returns where the last model was compiled that takes several steps in a call."""
    chosen = [each for each in recording.of(ModelCompiled) if each.steps_per_execution > 1]
    stack = chosen[-1].location if chosen else stack
    return with_keyword(stack, "steps_per_execution") if stack else stack


@rule("fm58")
def too_many_steps(recording: Recording) -> Steps:
    for fit in recording.of(FitOverran):
        if fit.steps_per_execution > 1:
            message = "`steps_per_epoch` is no multiple of `steps_per_execution`, and each epoch takes more"
            proof = f"{fit.asked} steps were asked for, and {fit.taken} were taken"
            yield observed("fm58", recording, fit.location, message, proof)
