"""Checks fm61: `strategy.run` has trained for many steps outside of a graph, on several replicas."""

from ...examiner.findings import Location, Note, Text
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import RunEager

SEVERAL = 10
ENOUGH = 50  # steps; a short program may be eager on purpose


@rule("fm61", explains_divergence=False)
def steps_by_python(recording: Recording) -> Steps:
    for run in recording.of(RunEager):
        if run.calls < SEVERAL or run.replicas == 1 or run.by_choice or not run.location:
            continue
        if run.calls < ENOUGH:
            yield Note(
                Text(
                    f"Python executes {run.calls} steps operation by operation: `strategy.run` (",
                    Location(run.location),
                    ") is in no `tf.function`, which would be faster (fm61)",
                )
            )
        else:
            message = (
                f"Python executes each step, operation by operation, for {run.replicas} replicas: "
                "this `strategy.run` is in no `tf.function`"
            )
            proof = f"{run.calls} calls that trained, none of them in a graph"
            yield observed("fm61", recording, run.location, message, proof)
